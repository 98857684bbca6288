/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Errors are values. A function that can fail returns struct rt_error *, NULL
 * for success; the caller owns it and frees it with rt_error_free(), or hands
 * it up. Nothing below the command line exits or prints.
 *
 * A message says what failed and names the file or object; it is lower case
 * and has no full stop. "fix" holds what the user can do about it, as commands
 * that exist in this build. Both are shown by the command line as
 *
 *     reftrace: E12 cannot read /opt/app: Permission denied
 *           fix: ...
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

#include "base/cleanup.h"

enum rt_code {
#define RT_CODE(name, text, what) RT_E_##name,
#include "base/codes.def"
#undef RT_CODE
	RT_E_NR
};

struct rt_error {
	enum rt_code code;
	int errnum;    /* the errno behind it, or 0 */
	char *message; /* owned */
	char *fix;     /* owned; NULL where nothing helps; may hold several lines */
};

#define RT_CHECK __attribute__((warn_unused_result))

/*
 * Makes an error. The message is printf-style. Never returns NULL: without
 * memory it returns a static "out of memory" error, which rt_error_free()
 * leaves alone.
 */
RT_CHECK struct rt_error *rt_error_new(enum rt_code code, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* As rt_error_new(), appends ": strerror(errnum)" and keeps errnum. */
RT_CHECK struct rt_error *rt_error_errno(enum rt_code code, int errnum, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The static out-of-memory error. */
RT_CHECK struct rt_error *rt_error_nomem(void);

/* Sets (replaces) the fix text of err, printf-style. Returns err, for chaining. */
struct rt_error *rt_error_fix(struct rt_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "text: " before the message on the way up. Returns err. NULL stays NULL. */
struct rt_error *rt_error_wrap(struct rt_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* If *err has this code: frees it, sets it to NULL, returns true. */
bool rt_error_catch(struct rt_error **err, enum rt_code code);

/* "E12" for RT_E_UNREADABLE. Static string. */
const char *rt_code_text(enum rt_code code);

/* The registry's one-line meaning of a code. Static string. */
const char *rt_code_meaning(enum rt_code code);

/* Frees err; NULL is fine. */
void rt_error_free(struct rt_error *err);
RT_CLEANUP(struct rt_error *, rt_error_free);
#define _cleanup_error_ _cleanup_(rt_error_freep)

/* Returns from the calling function when expr yields an error. */
#define RT_TRY(expr) \
	do { \
		struct rt_error *rt_try_err_ = (expr); \
		if (rt_try_err_) \
			return rt_try_err_; \
	} while (0)
