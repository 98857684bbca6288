/* SPDX-License-Identifier: GPL-2.0-only */
/* Debug information of a file that is looked at: beside it, or, with --debuginfod, from a server. */
#pragma once

#include "cli/options.h"
#include "elf/image.h"

/*
 * rt_image_find_debug(); where the file has no debug information then and options ask for debuginfod, that of the
 * build-id cache, else of the server, with the bytes that have come on a terminal. What was fetched is kept in the
 * cache as perf keeps it. Ctrl-C ends us as it does without a server. A server that has none is no error: *options
 * stay, and a note is printed; what went wrong otherwise is one.
 */
RT_CHECK struct rt_error *rt_fetch_debug(const struct rt_options *options, int root_fd, struct rt_image *image);
/* The same without rt_image_find_debug(), which was called before. */
RT_CHECK struct rt_error *rt_fetch_missing(const struct rt_options *options, struct rt_image *image);
