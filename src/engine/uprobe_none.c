// SPDX-License-Identifier: GPL-2.0-only
/* Engine K in a build without BPF (no clang or bpftool, or not x86-64): says so. */
#include "engine/engine.h"
#include "engine/uprobe.h"

static struct rt_error *unsupported(void)
{
	return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "this reftrace was built without engine uprobe"),
			    "build it with clang, bpftool and libbpf-dev installed");
}

static struct rt_error *none_probe(const struct rt_engine_options *options)
{
	return unsupported();
}

static struct rt_error *none_open(const struct rt_engine_options *options, struct rt_engine **ret)
{
	return unsupported();
}

const struct rt_engine_ops rt_engine_uprobe = { .name = "uprobe", .probe = none_probe, .open = none_open };

bool rt_uprobe_avoid_nop5(void)
{
	return true;
}
