/* SPDX-License-Identifier: GPL-2.0-only */
/* Engine U, and what needs it, on machines that its agent was not written for. */
#include "engine/engine.h"

static struct rt_error *unsupported(void)
{
	return rt_error_new(RT_E_UNSUPPORTED, "engine agent is for x86-64 only");
}

static struct rt_error *none_probe(const struct rt_engine_options *options)
{
	return unsupported();
}

static struct rt_error *none_open(const struct rt_engine_options *options, struct rt_engine **ret)
{
	return unsupported();
}

const struct rt_engine_ops rt_engine_agent = { .name = "agent", .probe = none_probe, .open = none_open };
const struct rt_engine_ops rt_engine_mixed = { .name = "agent+uprobe", .probe = none_probe, .open = none_open };
