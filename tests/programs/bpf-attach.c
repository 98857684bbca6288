/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bpf-attach CGROUP: in a network namespace of its own, attaches BPF programs without links (XDP, tc, flow dissector,
 * control group), closes every descriptor, prints "WHERE ID" for each and "ready", and waits for its standard input.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LO = 1 };

/* return value; exit */
static int load(enum bpf_prog_type type, enum bpf_attach_type attach, int value)
{
	struct bpf_insn insns[] = { { .code = 0xb7, .imm = value }, { .code = 0x95 } };
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach);

	return bpf_prog_load(type, "rt_attached", "GPL", insns, 2, &options);
}

static void say(const char *where, int fd, int failed)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	if (fd < 0 || failed || bpf_obj_get_info_by_fd(fd, &info, &size))
		printf("%s failed %d\n", where, failed);
	else
		printf("%s %u\n", where, info.id);
	close(fd);
}

static void tc(const char *where, enum bpf_tc_attach_point point)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = LO, .attach_point = point);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = 7, .priority = 3);
	int fd = load(BPF_PROG_TYPE_SCHED_CLS, 0, 0);

	bpf_tc_hook_create(&hook);
	options.prog_fd = fd;
	say(where, fd, bpf_tc_attach(&hook, &options));
}

int main(int argc, char **argv)
{
	int fd, group;
	char c;

	libbpf_set_print(NULL);
	if (argc < 2 || unshare(CLONE_NEWNET))
		return 1;
	group = open(argv[1], O_RDONLY | O_DIRECTORY);
	fd = load(BPF_PROG_TYPE_XDP, BPF_XDP, XDP_PASS);
	say("xdp", fd, bpf_xdp_attach(LO, fd, XDP_FLAGS_SKB_MODE, NULL));
	tc("tc-ingress", BPF_TC_INGRESS);
	tc("tc-egress", BPF_TC_EGRESS);
	fd = load(BPF_PROG_TYPE_FLOW_DISSECTOR, BPF_FLOW_DISSECTOR, 0);
	say("flow", fd, bpf_prog_attach(fd, 0, BPF_FLOW_DISSECTOR, 0));
	fd = load(BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS, 1);
	say("cgroup", fd, bpf_prog_attach(fd, group, BPF_CGROUP_INET_EGRESS, 0));
	close(group);
	puts("ready");
	fflush(stdout);
	return read(0, &c, 1) < 0;
}
