// SPDX-License-Identifier: GPL-2.0-only
/* Programs at the interfaces of one network namespace: XDP as libbpf tells, tc filters as rtnetlink lists them. */
#include <bpf/libbpf.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bpfprog/attached.h"

enum { ANSWER = 64 << 10, ANSWERS_MAX = 4096 };

struct net {
	const char *label;
	void (*found)(void *arg, uint32_t prog, const char *target);
	void *arg;
	int socket;
	const char *interface;
};

static void say(const struct net *net, uint32_t prog, const char *how)
{
	char target[320];

	snprintf(target, sizeof(target), "interface %s, %s%s", net->interface, how, net->label);
	net->found(net->arg, prog, target);
}

static void look_xdp(const struct net *net, int index)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (bpf_xdp_query(index, 0, &query))
		return;
	if (query.drv_prog_id)
		say(net, query.drv_prog_id, "xdp (driver)");
	if (query.skb_prog_id)
		say(net, query.skb_prog_id, "xdp (generic)");
	if (query.hw_prog_id)
		say(net, query.hw_prog_id, "xdp (hardware)");
}

/* The attribute of this type in [at, at + size); NULL: none. */
static struct rtattr *attribute(struct rtattr *at, size_t size, unsigned short type)
{
	int left = (int)size;

	for (; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
		if ((at->rta_type & NLA_TYPE_MASK) == type)
			return at;
	}
	return NULL;
}

static bool u32_of(struct rtattr *a, uint32_t *ret)
{
	if (!a || RTA_PAYLOAD(a) < sizeof(*ret))
		return false;
	memcpy(ret, RTA_DATA(a), sizeof(*ret));
	return true;
}

static void filter(const struct net *net, struct nlmsghdr *h, const char *where)
{
	const struct tcmsg *tc = NLMSG_DATA(h);
	struct rtattr *all, *kind, *options;
	char how[128];
	uint32_t prog;
	size_t size;

	if (h->nlmsg_type != RTM_NEWTFILTER || h->nlmsg_len < NLMSG_LENGTH(sizeof(*tc)))
		return;
	all = (struct rtattr *)(void *)((char *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(*tc)));
	size = h->nlmsg_len - NLMSG_LENGTH(sizeof(*tc));
	kind = attribute(all, size, TCA_KIND);
	options = attribute(all, size, TCA_OPTIONS);
	if (!kind || RTA_PAYLOAD(kind) < sizeof("bpf") || memcmp(RTA_DATA(kind), "bpf", sizeof("bpf")) != 0 || !options)
		return;
	if (!u32_of(attribute(RTA_DATA(options), RTA_PAYLOAD(options), TCA_BPF_ID), &prog))
		return;
	snprintf(how, sizeof(how), "tc %s, priority %u, handle 0x%x", where, TC_H_MAJ(tc->tcm_info) >> 16,
		 tc->tcm_handle);
	say(net, prog, how);
}

/* false: the last message of the dump. */
static bool messages(const struct net *net, char *buffer, size_t size, const char *where)
{
	struct nlmsghdr *h = (struct nlmsghdr *)(void *)buffer;
	int left = (int)size;

	for (; left > 0 && NLMSG_OK(h, (unsigned)left); h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			return false;
		filter(net, h, where);
	}
	return true;
}

static void look_filters(const struct net *net, int index, uint32_t parent, const char *where)
{
	struct {
		struct nlmsghdr head;
		struct tcmsg tc;
	} ask = { .head = { .nlmsg_len = sizeof(ask),
			    .nlmsg_type = RTM_GETTFILTER,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		  .tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = index, .tcm_parent = parent } };
	_cleanup_free_ char *buffer = malloc(ANSWER);

	if (!buffer || send(net->socket, &ask, sizeof(ask), 0) < 0)
		return;
	for (unsigned i = 0; i < ANSWERS_MAX; i++) {
		ssize_t n = recv(net->socket, buffer, ANSWER, 0);

		if (n <= 0 || !messages(net, buffer, (size_t)n, where))
			return;
	}
}

void rt_bpf_attached_net(const char *label, void (*found)(void *arg, uint32_t prog, const char *target), void *arg)
{
	struct timeval patience = { .tv_sec = 2 };
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct net net = { .label = label, .found = found, .arg = arg, .socket = fd };
	struct if_nameindex *all = if_nameindex();

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	for (size_t i = 0; all && all[i].if_index; i++) {
		int index = (int)all[i].if_index;

		net.interface = all[i].if_name;
		look_xdp(&net, index);
		if (fd < 0)
			continue;
		/* the qdisc clsact has two places, ingress (which is the first of them) one, others their root */
		look_filters(&net, index, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), "ingress");
		look_filters(&net, index, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS), "egress");
		look_filters(&net, index, 0, "root");
	}
	if (all)
		if_freenameindex(all);
}
