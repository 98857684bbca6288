// SPDX-License-Identifier: GPL-2.0-only
/*
 * PMU/TERM,TERM.../: the kernel says in sysfs what type a PMU has, which bits each term sets (format/) and which terms
 * a named event stands for (events/).
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fs.h"
#include "base/text.h"
#include "engine/event_name_priv.h"
#include "probe/near.h"

enum { FILE_MAX = 4096, ALIASES = 2 /* an event of an event */ };

struct pmu {
	const char *text; /* the whole name, for messages */
	const char *name;
	int fd; /* its folder */
};

/* The one line of a file below folder; NULL: there is none. Caller frees. */
static char *line_of(int folder, const char *kind, const char *name)
{
	char path[256], *text = NULL;

	if (!*name || *name == '.' || strchr(name, '/') ||
	    snprintf(path, sizeof(path), "%s%s%s", kind, *kind ? "/" : "", name) >= (int)sizeof(path))
		return NULL;
	rt_error_free(rt_fs_read(folder, path, FILE_MAX, &text, NULL));
	if (text)
		text[strcspn(text, "\n")] = 0;
	return text;
}

static bool parse_value(const char *text, uint64_t *ret)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

	text += hex ? 2 : 0;
	return rt_parse_u64(text, strlen(text), hex ? 16 : 10, ret);
}

static uint64_t *config_of(struct rt_event_desc *desc, const char *name, size_t len)
{
	if (len == 6 && !memcmp(name, "config", 6))
		return &desc->config;
	if (len == 7 && !memcmp(name, "config1", 7))
		return &desc->config1;
	return len == 7 && !memcmp(name, "config2", 7) ? &desc->config2 : NULL;
}

/* Puts value into the bits that a format tells: "config:0-7,32-35". false: it is no format, or value is too large. */
static bool deposit(const char *format, uint64_t value, struct rt_event_desc *desc)
{
	size_t len = strcspn(format, ":");
	uint64_t *config = config_of(desc, format, len);
	const char *p = format + len;

	if (!config || *p != ':')
		return false;
	do {
		size_t range = strcspn(++p, ","), first = strcspn(p, "-,");
		uint64_t low, high;

		if (!rt_parse_u64(p, first, 10, &low) || low > 63)
			return false;
		high = low;
		if (first < range &&
		    (!rt_parse_u64(p + first + 1, range - first - 1, 10, &high) || high > 63 || high < low))
			return false;
		for (uint64_t bit = low; bit <= high; bit++, value >>= 1)
			*config = (*config & ~(1ull << bit)) | (value & 1) << bit;
		p += range;
	} while (*p == ',');
	return !value;
}

static void offer_all(const struct pmu *pmu, const char *kind, struct rt_arena *names, struct rt_near *near)
{
	int fd = openat(pmu->fd, kind, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (fd >= 0 && !dir)
		close(fd);
	while (dir && (d = readdir(dir))) {
		const char *name = rt_arena_strndup(names, d->d_name, strlen(d->d_name));

		/* "energy-pkg.scale" is about an event */
		if (name && *name != '.' && !strchr(name, '.'))
			rt_near_offer(near, name);
	}
	if (dir)
		closedir(dir);
}

static struct rt_error *no_term(const struct pmu *pmu, const char *term)
{
	struct rt_near near = { .wanted = term };
	struct rt_arena names = { 0 };
	struct rt_error *err =
		rt_error_new(RT_E_USAGE, "-e '%s': PMU %s has no event and no term '%s'", pmu->text, pmu->name, term);

	offer_all(pmu, "events", &names, &near);
	offer_all(pmu, "format", &names, &near);
	err = near.count ? rt_error_fix(err, "did you mean %s?", near.names[0])
			 : rt_error_fix(err,
					"see: ls /sys/bus/event_source/devices/%s/events "
					"/sys/bus/event_source/devices/%s/format",
					pmu->name, pmu->name);
	rt_arena_deinit(&names);
	return err;
}

static struct rt_error *bad_value(const struct pmu *pmu, const char *term, const char *value)
{
	return rt_error_fix(rt_error_new(RT_E_USAGE, "-e '%s': '%s' is no value of %s", pmu->text, value, term),
			    "a number (%s=60, %s=0x3c) that fits into its bits: cat "
			    "/sys/bus/event_source/devices/%s/format/%s",
			    term, term, pmu->name, term);
}

static struct rt_error *parse_terms(const struct pmu *pmu, const char *terms, unsigned depth,
				    struct rt_event_desc *desc);

/* What perf itself knows, whatever the PMU. *ret false: it is none of these. */
static struct rt_error *own_term(const struct pmu *pmu, const char *term, const char *value, struct rt_event_desc *desc,
				 bool *ret)
{
	uint64_t *into = config_of(desc, term, strlen(term)), number;

	*ret = true;
	if (!into && !strcmp(term, "period"))
		into = &desc->period;
	if (!into && !strcmp(term, "freq"))
		into = &desc->frequency;
	if (into)
		return value && parse_value(value, into) ? NULL : bad_value(pmu, term, value ?: "");
	if (!strcmp(term, "name") && value && *value) {
		free(desc->name);
		desc->name = strdup(value);
		return desc->name ? NULL : rt_error_nomem();
	}
	if (!value && *term == 'r' && rt_parse_u64(term + 1, strlen(term + 1), 16, &number)) {
		desc->config = number;
		return NULL;
	}
	*ret = false;
	return NULL;
}

static struct rt_error *parse_term(const struct pmu *pmu, char *term, unsigned depth, struct rt_event_desc *desc)
{
	_cleanup_free_ char *format = NULL, *event = NULL;
	char *value = strchr(term, '=');
	uint64_t number = 1;
	bool own;

	if (value)
		*value++ = 0;
	if (!value)
		event = line_of(pmu->fd, "events", term);
	if (event) {
		if (depth >= ALIASES)
			return rt_error_new(RT_E_FORMAT, "PMU %s: event %s names itself", pmu->name, term);
		return parse_terms(pmu, event, depth + 1, desc);
	}
	RT_TRY(own_term(pmu, term, value, desc, &own));
	if (own)
		return NULL;
	format = line_of(pmu->fd, "format", term);
	if (!format)
		return no_term(pmu, term);
	if ((value && !parse_value(value, &number)) || !deposit(format, number, desc))
		return bad_value(pmu, term, value ?: "1");
	return NULL;
}

static struct rt_error *parse_terms(const struct pmu *pmu, const char *terms, unsigned depth,
				    struct rt_event_desc *desc)
{
	for (const char *p = terms; *p; p += *p == ',') {
		size_t len = strcspn(p, ",");
		_cleanup_free_ char *term = strndup(p, len);

		if (!term)
			return rt_error_nomem();
		if (!*term)
			return rt_error_fix(rt_error_new(RT_E_USAGE, "-e '%s' has an empty term", pmu->text),
					    "write %s/TERM=VALUE,TERM=VALUE/", pmu->name);
		RT_TRY(parse_term(pmu, term, depth, desc));
		p += len;
	}
	return NULL;
}

/* What there is instead: of a machine without CPU counters, the kernel's clock. */
static struct rt_error *no_pmu(const char *text, const char *name, int pmus)
{
	int fd = pmus < 0 ? -1 : dup(pmus);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct rt_error *err;
	char list[256] = "";
	struct dirent *d;
	size_t len = 0;

	if (fd >= 0 && !dir)
		close(fd);
	if (dir)
		rewinddir(dir);
	while (dir && (d = readdir(dir)) && len < sizeof(list)) {
		if (*d->d_name != '.')
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "", d->d_name);
	}
	if (dir)
		closedir(dir);
	err = rt_error_new(RT_E_UNSUPPORTED, "-e '%s': this machine has no PMU '%s'%s%s", text, name,
			   len ? "; it has " : "", list);
	if (!strncmp(name, "cpu", 3))
		return rt_error_fix(err, "a machine without CPU counters (a virtual one): record -e cpu-clock");
	return rt_error_fix(err, "see: ls /sys/bus/event_source/devices");
}

bool rt_event_is_pmu(const char *text)
{
	size_t len = strcspn(text, "/,:=");

	return len && text[len] == '/' && strncmp(text, "u:", 2) != 0;
}

struct rt_error *rt_event_pmu(const char *text, int pmus, struct rt_event_desc *desc, const char **ret_modifiers)
{
	const char *slash = strchr(text, '/'), *end = strchr(slash + 1, '/');
	_cleanup_free_ char *name = strndup(text, (size_t)(slash - text)), *terms = NULL, *type = NULL;
	_cleanup_close_ int fd = -1;
	struct pmu pmu = { .text = text, .name = name };
	uint64_t number;

	if (!name)
		return rt_error_nomem();
	if (!end)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "-e '%s' has no second slash", text),
				    "write %s/TERM=VALUE,.../, or %s/EVENT/", name, name);
	terms = strndup(slash + 1, (size_t)(end - slash - 1));
	if (!terms)
		return rt_error_nomem();
	if (pmus >= 0 && *name != '.')
		fd = openat(pmus, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return no_pmu(text, name, pmus);
	type = line_of(fd, "", "type");
	if (!type || !rt_parse_u64(type, strlen(type), 10, &number) || number > UINT32_MAX)
		return rt_error_new(RT_E_KERNEL, "-e '%s': PMU %s does not tell its type", text, name);
	pmu.fd = fd;
	desc->type = (uint32_t)number;
	desc->pmu = true;
	*ret_modifiers = end + 1 + (end[1] == ':');
	return parse_terms(&pmu, terms, 0, desc);
}
