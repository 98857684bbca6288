/* SPDX-License-Identifier: GPL-2.0-only */
/* From -P and -t to the spec of a run. */
#pragma once

#include "cli/options.h"
#include "probe/presets.h"

/*
 * Parses every -P into *spec; with -t, only the types that it names are kept. Without -P, types named with -t that a
 * preset has are added as if they had been found (their functions need not exist). *ret_scan: families are to be
 * searched for, since nothing was told, or not about some -t.
 */
RT_CHECK struct rt_error *rt_spec_choose(const struct rt_options *options, struct rt_spec *spec, bool *ret_scan);

/*
 * The presets that a run uses where it finds their functions, since nothing was told: neither -P, nor -t, nor
 * --no-presets; else *ret is NULL. The caller owns it.
 */
RT_CHECK struct rt_error *rt_spec_presets(const struct rt_options *options, struct rt_presets **ret);

/*
 * Where presets are: the user's, those installed beside the program, and those of the
 * source tree it was built in. NULL-terminated; caller frees the strings and the array with rt_preset_dirs_free().
 */
RT_CHECK struct rt_error *rt_preset_dirs(char ***ret);
void rt_preset_dirs_free(char **dirs);
RT_CLEANUP(char **, rt_preset_dirs_free);
