/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel that probes are placed in: a vmlinux with DWARF, or one with BTF, or BTF alone with the host's kallsyms
 * and notes; told by the user, or what can be found of the kernel that runs here.
 */
#pragma once

#include "cli/probe_file.h"

extern const struct argp rt_probe_kernel_argp; /* -k, --kernel, --kallsyms, --notes; input: struct rt_probe_options */

/* Whether the definitions are of a kernel. */
bool rt_probe_of_kernel(const struct rt_probe_options *options);

/*
 * Opens it into plan, which owns all of it also on failure. RT_E_USAGE when something is missing, RT_E_BUILD_ID when
 * the parts are of different kernels, RT_E_NOT_FOUND, RT_E_UNREADABLE, RT_E_FORMAT.
 */
RT_CHECK struct rt_error *rt_probe_kernel_open(const struct rt_probe_options *options, struct rt_probe_plan *plan);
