/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside of the parser of probe definitions. */
#pragma once

#include "base/fs.h"
#include "probe/request.h"

struct rt_scanner {
	struct rt_request *request;
	const char *text, *at;
};

/* An RT_E_SPEC that points at the column of at. */
RT_CHECK struct rt_error *rt_request_fault(const struct rt_scanner *s, const char *at, const char *fix,
					   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Copy of [at, at + len) without its backslashes, in the request's arena; NULL: out of memory. */
char *rt_scanner_copy(struct rt_scanner *s, const char *at, size_t len);
/* Takes a number, decimal or 0x, at most max. */
RT_CHECK struct rt_error *rt_scanner_number(struct rt_scanner *s, const char *what, uint64_t max, uint64_t *ret);

/* Takes one argument, up to a blank or the end. */
RT_CHECK struct rt_error *rt_request_parse_argument(struct rt_scanner *s);
