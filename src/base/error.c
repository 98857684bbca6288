/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char nomem_text[] = "out of memory";
static struct rt_error nomem = { .code = RT_E_NOMEM, .errnum = 12, .message = nomem_text };

static const struct {
	const char *text, *meaning;
} codes[] = {
#define RT_CODE(name, text, what) [RT_E_##name] = { text, what },
#include "base/codes.def"
#undef RT_CODE
};

static struct rt_error *make(enum rt_code code, int errnum, const char *format, va_list args)
{
	struct rt_error *err = calloc(1, sizeof(*err));
	char *text = NULL;

	if (!err)
		return &nomem;
	if (vasprintf(&text, format, args) < 0) {
		free(err);
		return &nomem;
	}
	err->code = code;
	err->errnum = errnum;
	err->message = text;
	if (errnum) {
		char *with = NULL;

		if (asprintf(&with, "%s: %s", text, strerror(errnum)) >= 0) {
			free(text);
			err->message = with;
		}
	}
	return err;
}

struct rt_error *rt_error_new(enum rt_code code, const char *format, ...)
{
	va_list args;
	struct rt_error *err;

	va_start(args, format);
	err = make(code, 0, format, args);
	va_end(args);
	return err;
}

struct rt_error *rt_error_errno(enum rt_code code, int errnum, const char *format, ...)
{
	va_list args;
	struct rt_error *err;

	va_start(args, format);
	err = make(code, errnum, format, args);
	va_end(args);
	return err;
}

struct rt_error *rt_error_nomem(void)
{
	return &nomem;
}

struct rt_error *rt_error_fix(struct rt_error *err, const char *format, ...)
{
	va_list args;
	char *text = NULL;

	if (!err || err == &nomem)
		return err;
	va_start(args, format);
	if (vasprintf(&text, format, args) >= 0) {
		free(err->fix);
		err->fix = text;
	}
	va_end(args);
	return err;
}

struct rt_error *rt_error_wrap(struct rt_error *err, const char *format, ...)
{
	va_list args;
	_cleanup_free_ char *prefix = NULL;
	char *text = NULL;

	if (!err || err == &nomem)
		return err;
	va_start(args, format);
	if (vasprintf(&prefix, format, args) < 0)
		prefix = NULL;
	va_end(args);
	if (prefix && asprintf(&text, "%s: %s", prefix, err->message) >= 0) {
		free(err->message);
		err->message = text;
	}
	return err;
}

bool rt_error_catch(struct rt_error **err, enum rt_code code)
{
	if (!*err || (*err)->code != code)
		return false;
	rt_error_free(*err);
	*err = NULL;
	return true;
}

const char *rt_code_text(enum rt_code code)
{
	return (unsigned)code < RT_E_NR ? codes[code].text : "E??";
}

const char *rt_code_meaning(enum rt_code code)
{
	return (unsigned)code < RT_E_NR ? codes[code].meaning : "unknown code";
}

void rt_error_free(struct rt_error *err)
{
	if (!err || err == &nomem)
		return;
	free(err->message);
	free(err->fix);
	free(err);
}
