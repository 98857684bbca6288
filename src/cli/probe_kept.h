/* SPDX-License-Identifier: GPL-2.0-only */
/* probe list --cache, probe del --cache. */
#pragma once

#include "cli/options.h"

/* The options of `probe list` and `probe del`. */
struct rt_probe_list_options {
	struct rt_options common; /* first: argp hands it on; operands are globs of [GROUP:]EVENT */
	bool dry_run, cache;
};

/* Prints the definitions that the build-id cache has, as text or JSON. */
RT_CHECK struct rt_error *rt_probe_kept_list(const struct rt_probe_list_options *options);
/* Takes out of it what the globs fit; markers, too. RT_E_NOT_FOUND. */
RT_CHECK struct rt_error *rt_probe_kept_del(const struct rt_probe_list_options *options);
