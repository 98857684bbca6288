// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches BPF programs being loaded. At the exit of the bpf(2) call that made a
 * program, still in the loader's own thread, everything that the kernel keeps of
 * it is copied into a ring: the loader has no file descriptor yet that it could
 * close. What cannot be copied is named.
 *
 *   load     exit of bpf(2), ioctl(2), setsockopt(2): loads and attachments
 *   drop     entry of close(2): what a program had run until now; loaded only when run times are asked for
 *   forked   a child of a followed process is followed
 *   ended    a process is forgotten; what it still held is told as by drop
 *
 * These programs may be preempted: nothing per CPU is taken for granted.
 */
#include "load_attach.h"
#include "load_copy.h"
#include "load_stats.h"

#define NR_CLOSE 3
#define NR_IOCTL 16
#define NR_SETSOCKOPT 54
#define NR_BPF 321
#define CMD_PROG_LOAD 5
#define CMD_PROG_ATTACH 8
#define CMD_PROG_TEST_RUN 10
#define IOC_SET_BPF 0x40042408
#define SOL_SOCKET 1
#define SO_ATTACH_BPF 50

static void on_bpf(struct pt_regs *regs, long ret)
{
	uint32_t cmd = regs->di;

	if (cmd == CMD_PROG_LOAD) {
		on_load(ret);
	} else if (cmd == CMD_PROG_TEST_RUN) {
		on_test_run(regs->si);
	} else if (cmd == CMD_LINK_CREATE || cmd == CMD_RAW_TRACEPOINT_OPEN) {
		on_link(ret, cmd, regs->si);
	} else if (cmd == CMD_PROG_ATTACH) {
		on_attach(regs->si);
	}
}

SEC("tp_btf/sys_exit")
int load(uint64_t *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	long ret = ctx[1];
	uint64_t nr = regs->orig_ax;

	if ((nr != NR_BPF && nr != NR_IOCTL && nr != NR_SETSOCKOPT) || ret < 0)
		return 0;
	if (!is_followed(bpf_get_current_pid_tgid() >> 32))
		return 0;
	if (nr == NR_BPF)
		on_bpf(regs, ret);
	else if (nr == NR_IOCTL && (uint32_t)regs->si == IOC_SET_BPF)
		on_perf(regs->di, regs->dx);
	else if (nr == NR_SETSOCKOPT && regs->si == SOL_SOCKET && regs->dx == SO_ATTACH_BPF)
		on_socket(regs->r10);
	return 0;
}

SEC("tp_btf/sys_enter")
int drop(uint64_t *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];

	if (ctx[1] == NR_CLOSE && is_followed(bpf_get_current_pid_tgid() >> 32))
		put_stats(prog_behind(file_of(regs->di)));
	return 0;
}

SEC("raw_tp/sched_process_fork")
int forked(uint64_t *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	uint32_t old = BPF_CORE_READ(parent, tgid), new = BPF_CORE_READ(child, tgid);
	uint8_t one = 1;

	if (old != new &&bpf_map_lookup_elem(&followed, &old))
		bpf_map_update_elem(&followed, &new, &one, BPF_ANY);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int ended(uint64_t *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	uint32_t tgid = BPF_CORE_READ(task, tgid);

	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;
	if (rt_cpus && is_followed(tgid))
		drop_all(task);
	bpf_map_delete_elem(&followed, &tgid);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
