/* SPDX-License-Identifier: GPL-2.0-only */
#include "recording/kernel_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/kallsyms.h"

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

/* The next function: t, T, w, W; BPF programs have records of their own. */
static bool next_function(struct rt_bytes kallsyms, size_t *pos, struct symbol *ret)
{
	struct rt_kallsym k;

	while (rt_kallsyms_next(kallsyms, pos, &k)) {
		if (!(k.address >> 63) || !strchr("tTwW", k.type) ||
		    (k.module_len == 5 && !memcmp(k.module, "[bpf]", 5)))
			continue;
		*ret = (struct symbol){ .start = k.address, .name = k.name, .len = k.len };
		return true;
	}
	return false;
}

uint64_t rt_kernel_address(struct rt_bytes kallsyms, const char *name)
{
	size_t len = strlen(name), pos = 0;
	struct symbol s;

	while (next_function(kallsyms, &pos, &s))
		if (s.len == len && !memcmp(s.name, name, len))
			return s.start;
	return 0;
}

static struct rt_error *read_all(struct rt_bytes kallsyms, struct table *t)
{
	struct symbol s;
	size_t pos = 0;

	while (next_function(kallsyms, &pos, &s))
		if (!rt_vec_push(&t->symbols, s))
			return rt_error_nomem();
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
