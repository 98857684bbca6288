/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's own names, for recordings that do not hold them. */
#pragma once

#include "cache/cache.h"
#include "cli/pipeline.h"
#include "recording/recording.h"

/*
 * Gives the pipeline's chain the kernel's functions, if this machine runs the very kernel of the recording (by its
 * build-id, else by release and address), or a cache has its kallsyms. Finding none is success: addresses stay numbers.
 */
RT_CHECK struct rt_error *rt_kernel_give(const struct rt_recording *recording, struct rt_pipeline *pipeline);

/*
 * Puts the running kernel's own into a cache, by perf's names: "[kernel.kallsyms]", "[vdso]". RT_E_PRIVILEGE where the
 * kernel does not show its names. *ret_new: the cache had none.
 */
RT_CHECK struct rt_error *rt_kernel_put(struct rt_cache *cache, const char *name, bool *ret_new);

/* /proc/kallsyms as far as it may be read; empty when its addresses are hidden. Caller frees *ret. */
RT_CHECK struct rt_error *rt_kernel_kallsyms(char **ret, size_t *ret_size);
/* The vdso that this machine's kernel has given to us. The caller destroys *ret. */
RT_CHECK struct rt_error *rt_kernel_vdso(struct rt_image **ret);
