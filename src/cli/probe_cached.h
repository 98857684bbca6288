/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions of the build-id cache in the plans of `probe show` and `probe add`, and plans that are kept there. */
#pragma once

#include "cli/probe_file.h"

/*
 * Opens the cache of the user that is behind sudo, else our own. *ret NULL: there is none. create: make it where it is
 * missing, and fail when that is impossible.
 */
RT_CHECK struct rt_error *rt_probe_cache_open(bool create, struct rt_cache **ret);

/*
 * The file that a plan's requests are about when nobody named one: where the cache saw the one that has the first of
 * them. In the plan's arena. RT_E_USAGE for a request that the cache is not asked for.
 */
RT_CHECK struct rt_error *rt_probe_cached_path(struct rt_probe_plan *plan, const char **ret);

/* The build-id that a name ("%GROUP:EVENT") is kept for. cache may be NULL. RT_E_NOT_FOUND, RT_E_USAGE for several. */
RT_CHECK struct rt_error *rt_probe_cached_id(const struct rt_cache *cache, const char *name,
					     uint8_t id[RT_CACHE_ID_MAX], size_t *ret_size);

/* Adds the lines of the definitions that a request names; errors of rt_cached_match(). */
RT_CHECK struct rt_error *rt_probe_cached_add(struct rt_probe_plan *plan, const struct rt_probe_options *options,
					      const struct rt_probe_events *taken, const struct rt_request *request);

/* The same of a request that was kept, word by word, when the plan's file could be asked. */
RT_CHECK struct rt_error *rt_probe_cached_instead(struct rt_probe_plan *plan, const struct rt_probe_options *options,
						  const struct rt_probe_events *taken, const struct rt_request *request,
						  bool *ret_found);

/* Keeps the plan's definitions for its file, and the file. What came from the cache is there already. */
RT_CHECK struct rt_error *rt_probe_cached_keep(struct rt_probe_plan *plan);
