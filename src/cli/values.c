/* SPDX-License-Identifier: GPL-2.0-only */
/* Values of options: times, sizes, lists of pids. */
#include "cli/options.h"

#include <string.h>

#include "base/text.h"

static const struct {
	const char *name;
	uint64_t ns;
} time_units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000000 },
	{ "s", 1000000000 },
	{ "", 1000000000 },
	{ "m", UINT64_C(60000000000) },
	{ "min", UINT64_C(60000000000) },
	{ "h", UINT64_C(3600000000000) },
};

static struct rt_error *bad_duration(const char *text)
{
	return rt_error_fix(rt_error_new(RT_E_USAGE, "'%s' is no time", text), "write it like 30s, 100ms, 1.5m, 2h");
}

struct rt_error *rt_parse_duration(const char *text, uint64_t *ret_ns)
{
	size_t whole = strspn(text, "0123456789"), fraction = 0;
	const char *unit = text + whole;
	uint64_t value, part = 0, scale = 1;

	if (!rt_parse_u64(text, whole, 10, &value))
		return bad_duration(text);
	if (*unit == '.') {
		fraction = strspn(unit + 1, "0123456789");
		if (fraction > 9 || !rt_parse_u64(unit + 1, fraction, 10, &part))
			return bad_duration(text);
		unit += 1 + fraction;
		while (fraction--)
			scale *= 10;
	}
	for (size_t i = 0; i < sizeof(time_units) / sizeof(*time_units); i++) {
		uint64_t ns = time_units[i].ns;

		if (strcmp(unit, time_units[i].name) != 0)
			continue;
		if (value > UINT64_MAX / ns / 2)
			return bad_duration(text);
		value = value * ns + (uint64_t)((double)part * (double)ns / (double)scale);
		if (!value)
			return bad_duration(text);
		*ret_ns = value;
		return NULL;
	}
	return bad_duration(text);
}

struct rt_error *rt_parse_size(const char *text, size_t *ret)
{
	static const char units[] = "KMG";
	size_t digits = strspn(text, "0123456789");
	const char *unit = text + digits, *at;
	unsigned shift = 0;
	uint64_t value;
	bool sound = rt_parse_u64(text, digits, 10, &value) && value;

	if (sound && *unit) {
		at = strchr(units, *unit >= 'a' ? *unit - 32 : *unit);
		sound = at && (!unit[1] || (unit[1] == 'B' && !unit[2]));
		shift = sound ? 10 * (unsigned)(at - units + 1) : 0;
	}
	if (!sound || value > (UINT64_C(1) << 40) >> shift)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "'%s' is no size", text), "write it like 64K, 16M, 1G");
	*ret = (size_t)(value << shift);
	return NULL;
}

struct rt_error *rt_parse_part(const char *text, const char *what, double most, double *ret)
{
	size_t whole = strspn(text, "0123456789"), fraction = 0;
	const char *at = text + whole;
	uint64_t value, part = 0;
	double v, scale = 1;
	bool sound = rt_parse_u64(text, whole, 10, &value);

	if (sound && *at == '.') {
		fraction = strspn(++at, "0123456789");
		sound = fraction && fraction <= 18 && rt_parse_u64(at, fraction, 10, &part);
		at += fraction;
	}
	while (fraction--)
		scale *= 10;
	v = (double)value + (double)part / scale;
	if (sound && *at == '/') {
		whole = strspn(++at, "0123456789");
		sound = rt_parse_u64(at, whole, 10, &value) && value;
		v /= sound ? (double)value : 1;
		at += whole;
	} else if (sound && *at == '%') {
		v /= 100;
		at++;
	}
	if (!sound || *at || v < 1e-9 || v > most)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--%s=%s is no part of something", what, text),
				    "write it like 1/100, 5%% or 0.05%s", most > 1 ? "" : "; at most 1");
	*ret = v;
	return NULL;
}

struct rt_error *rt_parse_pids(const char *text, struct rt_options *options)
{
	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		uint64_t pid;

		if (!rt_parse_u64(p, len, 10, &pid) || !pid || pid > RT_PID_MASK)
			return rt_error_fix(rt_error_new(RT_E_USAGE, "'%s' is no process id", text),
					    "write -p PID or -p PID,PID; find one with: pgrep NAME");
		if (!rt_vec_push(&options->pids, (uint32_t)pid))
			return rt_error_nomem();
		p += len;
		if (!*p)
			return NULL;
	}
}
