// SPDX-License-Identifier: GPL-2.0-only
/* Words for numbers of bpf(2), as libbpf has them. */
#include <bpf/libbpf.h>

#include "bpfprog/catalog.h"

const char *rt_bpf_type_name(uint32_t type)
{
	return libbpf_bpf_prog_type_str((enum bpf_prog_type)type) ?: "?";
}

const char *rt_bpf_attach_name(uint32_t attach_type)
{
	/* newer than the libbpf of the build */
	switch (attach_type) {
	case 46:
		return "tcx_ingress";
	case 47:
		return "tcx_egress";
	case 48:
		return "trace_uprobe_multi";
	case 56:
		return "trace_kprobe_session";
	case 57:
		return "trace_uprobe_session";
	default:
		return libbpf_bpf_attach_type_str((enum bpf_attach_type)attach_type) ?: "?";
	}
}

const char *rt_bpf_link_name(uint32_t link_type)
{
	static const char *const newer[] = { "netfilter", "tcx", "uprobe_multi", "netkit", "sockmap" };

	if (link_type >= 10 && link_type < 10 + sizeof(newer) / sizeof(*newer))
		return newer[link_type - 10];
	return libbpf_bpf_link_type_str((enum bpf_link_type)link_type) ?: "link";
}
