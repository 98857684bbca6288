/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* the one file-scope variable of base: which domains talk */
static const char *enabled;

void rt_log_enable(const char *domains)
{
	enabled = domains;
}

bool rt_log_enabled(const char *domain)
{
	size_t n = strlen(domain);

	if (!enabled)
		return false;
	if (!strcmp(enabled, "all"))
		return true;
	for (const char *p = enabled; *p; p += strcspn(p, ","), p += *p == ',') {
		if (!strncmp(p, domain, n) && (p[n] == ',' || !p[n]))
			return true;
		if (!strchr(p, ','))
			break;
	}
	return false;
}

void rt_log_debug(const char *domain, const char *format, ...)
{
	va_list args;

	if (!rt_log_enabled(domain))
		return;
	flockfile(stderr);
	fprintf(stderr, "reftrace: [%s] ", domain);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	funlockfile(stderr);
}
