/* SPDX-License-Identifier: GPL-2.0-only */
#include "recording/kernel_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/vec.h"

struct symbol {
	uint64_t start;
	const char *name; /* into kallsyms */
	size_t len;
	bool needed;
};

struct table {
	RT_VEC(struct symbol) symbols;
};

static int by_start(const void *x, const void *y)
{
	const struct symbol *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	/* aliases in the file's order */
	return a->name < b->name ? -1 : a->name > b->name;
}

/* Functions only: t, T, w, W; BPF programs have records of their own. */
static bool parse(const char *line, size_t len, struct symbol *ret)
{
	const char *end = memchr(line, ' ', len), *name, *tab;
	size_t left;

	if (!end || (size_t)(end - line) + 3 >= len || !rt_parse_u64(line, (size_t)(end - line), 16, &ret->start) ||
	    !(ret->start >> 63) || !end[1] || !strchr("tTwW", end[1]) || end[2] != ' ')
		return false;
	name = end + 3;
	left = len - (size_t)(name - line);
	tab = memchr(name, '\t', left);
	ret->name = name;
	ret->len = tab ? (size_t)(tab - name) : left;
	ret->needed = false;
	return ret->len && ret->len < 512 && !(tab && left >= 5 && !memcmp(name + left - 5, "[bpf]", 5));
}

uint64_t rt_kernel_address(struct rt_bytes kallsyms, const char *name)
{
	const char *at = (const char *)kallsyms.data, *stop = at + kallsyms.size;
	size_t len = strlen(name);

	while (at < stop) {
		const char *end = memchr(at, '\n', (size_t)(stop - at));
		struct symbol s;

		end = end ? end : stop;
		if (parse(at, (size_t)(end - at), &s) && s.len == len && !memcmp(s.name, name, len))
			return s.start;
		at = end + 1;
	}
	return 0;
}

static struct rt_error *read_all(struct rt_bytes kallsyms, struct table *t)
{
	const char *at = (const char *)kallsyms.data, *stop = at + kallsyms.size;

	while (at < stop) {
		const char *end = memchr(at, '\n', (size_t)(stop - at));
		struct symbol s;

		end = end ? end : stop;
		if (parse(at, (size_t)(end - at), &s) && !rt_vec_push(&t->symbols, s))
			return rt_error_nomem();
		at = end + 1;
	}
	if (t->symbols.len)
		qsort(t->symbols.data, t->symbols.len, sizeof(*t->symbols.data), by_start);
	return NULL;
}

/* Of several names at one address the last stands for it, as in perf. */
static bool is_alias(const struct table *t, size_t i)
{
	return i + 1 < t->symbols.len && t->symbols.data[i + 1].start == t->symbols.data[i].start;
}

static void mark(struct table *t, uint64_t ip)
{
	size_t low = 0, high = t->symbols.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->symbols.data[mid].start <= ip)
			low = mid + 1;
		else
			high = mid;
	}
	if (low)
		t->symbols.data[low - 1].needed = true;
}

static uint64_t end_of(const struct table *t, size_t i)
{
	for (size_t k = i + 1; k < t->symbols.len; k++) {
		if (t->symbols.data[k].start > t->symbols.data[i].start)
			return t->symbols.data[k].start;
	}
	return t->symbols.data[i].start + 4096;
}

void rt_kernel_names_free(struct rt_kernel_name *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i].name);
	free(names);
}

struct rt_error *rt_kernel_names(struct rt_bytes kallsyms, const struct rt_map *addresses, struct rt_kernel_name **ret,
				 size_t *ret_count)
{
	const struct rt_map_slot *slot;
	struct table t = { 0 };
	struct rt_kernel_name *names = NULL;
	struct rt_error *err;
	size_t pos = 0, n = 0;

	err = kallsyms.size && (!addresses || addresses->len) ? read_all(kallsyms, &t) : NULL;
	while (!err && addresses && t.symbols.len && (slot = rt_map_next(addresses, &pos)))
		mark(&t, slot->key.a);
	if (!err)
		names = calloc(t.symbols.len + 1, sizeof(*names));
	for (size_t i = 0; names && i < t.symbols.len; i++) {
		uint64_t size = end_of(&t, i) - t.symbols.data[i].start;

		if (addresses ? !t.symbols.data[i].needed : is_alias(&t, i))
			continue;
		/* what lies beyond 1 MiB is a hole between modules */
		names[n] = (struct rt_kernel_name){ .start = t.symbols.data[i].start,
						    .size = size < 1u << 20 ? (uint32_t)size : 1u << 20,
						    .name = strndup(t.symbols.data[i].name, t.symbols.data[i].len) };
		if (!names[n].name)
			break;
		n++;
	}
	rt_vec_deinit(&t.symbols);
	if (err || !names) {
		rt_kernel_names_free(names, n);
		return err ?: rt_error_nomem();
	}
	*ret = names;
	*ret_count = n;
	return NULL;
}
