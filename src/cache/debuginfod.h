/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Debug information from debuginfod servers, by build-id: through libdebuginfod, which keeps what it fetched in its own
 * cache
 * (~/.cache/debuginfod_client). Only where a user asks for it: nothing here looks at DEBUGINFOD_URLS by itself before
 * rt_debuginfod_fetch() is called. The library is opened when it is needed (as libdw does): it brings libcurl and some
 * thirty more libraries, which no other command shall load.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct rt_debuginfod_options {
	const char *urls;    /* servers, separated by blanks; NULL: $DEBUGINFOD_URLS */
	uint64_t timeout_ns; /* without one more byte; 0: never */
	/* Called some times a second; total 0: not known yet. false ends the fetch with RT_E_UNREADABLE. May be NULL.
	 */
	bool (*progress)(void *arg, uint64_t bytes, uint64_t total);
	void *arg;
};

/*
 * Fetches the debug file of a build-id. *ret: an fd of the caller's, of a file that holds this very build-id: what a
 * server sends is compared, and thrown away with RT_E_BUILD_ID when it is something else. RT_E_UNSUPPORTED without the
 * library, RT_E_USAGE without a server, RT_E_NOT_FOUND when no server has it, RT_E_UNREADABLE for the rest. One thread
 * at a time.
 */
RT_CHECK struct rt_error *rt_debuginfod_fetch(const uint8_t *id, size_t id_size,
					      const struct rt_debuginfod_options *options, int *ret);
