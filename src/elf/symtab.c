/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/symtab.h"

#include <elf.h>
#include <string.h>

#include "base/map.h"
#include "base/sort.h"
#include "elf/section.h"
#include "elf/symtab_build.h"

struct name {
	uint32_t hash, symbol;
};

struct owned {
	struct rt_arena arena;
	struct rt_elfaddr *ends;  /* per symbol: address behind it, size 0 resolved */
	struct rt_elfaddr *reach; /* highest end of symbols [0, i] */
	struct name *names;       /* sorted by hash, then as in symbols; no PLT stubs */
	size_t name_count;
};

struct raw_symbol {
	uint32_t name;
	uint8_t info, other;
	uint16_t section;
	uint64_t value, size;
};

struct rt_error *rt_symtab_add(struct rt_symtab_build *build, const struct rt_symbol *symbol, struct rt_elfaddr limit)
{
	if (!rt_vec_push(&build->symbols, *symbol) || !rt_vec_push(&build->limits, limit))
		return rt_error_nomem();
	return NULL;
}

static bool read_symbol(const struct rt_image *image, struct rt_cursor *c, struct raw_symbol *ret)
{
	if (!rt_cursor_u32(c, &ret->name))
		return false;
	if (image->is_64)
		return rt_cursor_u8(c, &ret->info) && rt_cursor_u8(c, &ret->other) && rt_cursor_u16(c, &ret->section) &&
		       rt_cursor_u64(c, &ret->value) && rt_cursor_u64(c, &ret->size);
	return rt_elf_word(image, c, &ret->value) && rt_elf_word(image, c, &ret->size) && rt_cursor_u8(c, &ret->info) &&
	       rt_cursor_u8(c, &ret->other) && rt_cursor_u16(c, &ret->section);
}

/* strings: a copy with a NUL behind it. NULL: no usable name. */
static const char *symbol_name(struct rt_arena *arena, struct rt_bytes strings, uint32_t offset, size_t *budget)
{
	const char *name, *version;
	size_t len, left;

	if (offset >= strings.size)
		return NULL;
	name = (const char *)strings.data + offset;
	if (!*name)
		return NULL;
	left = strings.size - offset;
	len = strnlen(name, left < RT_SYMBOL_NAME_MAX ? left : RT_SYMBOL_NAME_MAX);
	if (len == RT_SYMBOL_NAME_MAX)
		return NULL;
	version = memchr(name + 1, '@', len - 1);
	if (!version)
		return name;
	/* copies are paid from a budget of the table's own size: names may overlap */
	len = (size_t)(version - name);
	if (*budget < len)
		return NULL;
	*budget -= len;
	return rt_arena_strndup(arena, name, len);
}

static bool wanted(const struct raw_symbol *raw)
{
	unsigned type = raw->info & 15;

	if (raw->section == SHN_UNDEF || raw->section == SHN_ABS || raw->section == SHN_COMMON)
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT || type == STT_NOTYPE;
}

/* The section of a symbol, and of the next ones, as a rule. */
struct place {
	uint16_t index; /* 0: none yet */
	bool sound;
	struct rt_section section;
};

static struct rt_elfaddr section_end(const struct rt_image *image, const struct raw_symbol *raw, struct place *place)
{
	const struct rt_section *s = &place->section;

	if (place->index != raw->section) {
		place->index = raw->section;
		place->sound = raw->section < SHN_LORESERVE && rt_section_bare(image, raw->section, &place->section);
	}
	if (place->sound && s->addr.v <= raw->value && s->size <= UINT64_MAX - s->addr.v)
		return (struct rt_elfaddr){ s->addr.v + s->size };
	return (struct rt_elfaddr){ UINT64_MAX };
}

static struct rt_error *read_table(const struct rt_image *image, const struct rt_section *table,
				   struct rt_symtab_build *build)
{
	bool dynamic = table->type == SHT_DYNSYM;
	struct rt_bytes bytes, strings;
	struct place place = { .index = 0 };
	struct rt_section names;
	struct raw_symbol raw;
	struct rt_cursor c;
	size_t budget;
	char *copy;

	if ((table->flags & SHF_COMPRESSED) || !rt_section_bytes(image, table, &bytes) ||
	    !rt_section_at(image, table->link, &names) || !rt_section_bytes(image, &names, &strings) || !strings.size)
		return NULL;
	build->has_symtab |= !dynamic;
	copy = rt_arena_alloc(build->arena, strings.size + 1);
	if (!copy)
		return rt_error_nomem();
	memcpy(copy, strings.data, strings.size);
	strings.data = (uint8_t *)copy;
	budget = strings.size * 2 + 4096;
	c = rt_cursor_make(bytes, image->big_endian);
	while (read_symbol(image, &c, &raw)) {
		unsigned bind = raw.info >> 4, type = raw.info & 15;
		struct rt_symbol symbol = { .addr = { raw.value }, .size = raw.size, .dynamic = dynamic };

		if (!wanted(&raw))
			continue;
		symbol.name = symbol_name(build->arena, strings, raw.name, &budget);
		/* $x and the like only mark where code and data begin */
		if (!symbol.name || (type == STT_NOTYPE && *symbol.name == '$'))
			continue;
		symbol.full = (const char *)strings.data + raw.name;
		symbol.label = type == STT_NOTYPE && ELF64_ST_VISIBILITY(raw.other) != STV_HIDDEN &&
			       ELF64_ST_VISIBILITY(raw.other) != STV_INTERNAL;
		symbol.ifunc = type == STT_GNU_IFUNC;
		symbol.function = type == STT_FUNC || symbol.ifunc;
		symbol.bind = bind == STB_LOCAL ? RT_BIND_LOCAL : bind == STB_WEAK ? RT_BIND_WEAK : RT_BIND_GLOBAL;
		RT_TRY(rt_symtab_add(build, &symbol, section_end(image, &raw, &place)));
	}
	return NULL;
}

static struct rt_error *read_image(const struct rt_image *image, struct rt_symtab_build *build)
{
	/* a sound file has one table of each kind */
	bool seen[2] = { false, false };
	size_t n = rt_section_count(image);
	struct rt_section s;

	for (size_t i = 0; i < n && rt_section_bare(image, i, &s); i++) {
		if ((s.type != SHT_SYMTAB && s.type != SHT_DYNSYM) || seen[s.type == SHT_DYNSYM])
			continue;
		seen[s.type == SHT_DYNSYM] = true;
		RT_TRY(read_table(image, &s, build));
	}
	return NULL;
}

static struct rt_error *read_debugdata(const struct rt_image *image, struct rt_symtab_build *build)
{
	_cleanup_(rt_image_destroyp) struct rt_image *small = NULL;
	_cleanup_error_ struct rt_error *damaged = NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct rt_error *err;
	size_t size = 0;

	RT_TRY(rt_debugdata_read(image, &bytes, &size));
	if (!bytes)
		return NULL;
	damaged = rt_image_from_bytes(rt_bytes_make(bytes, size), ".gnu_debugdata", &small);
	if (damaged)
		return NULL;
	err = read_image(small, build);
	/* small refers to bytes: it goes first */
	rt_image_destroy(rt_take(small));
	return err;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct rt_symbol *x = a, *y = b;
	int by_name;

	if (x->addr.v != y->addr.v)
		return x->addr.v < y->addr.v ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	by_name = x->name == y->name ? 0 : strcmp(x->name, y->name);
	if (by_name)
		return by_name;
	return x->plt != y->plt ? x->plt - y->plt : y->function - x->function;
}

/* Of each symbol, in the order that they have: sorted by address first, as most of them differ there. */
static int compare_keys(const void *a, const void *b, void *arg)
{
	const struct rt_symtab_build *build = arg;
	const struct rt_sort_key *x = a, *y = b;
	int by_symbol = compare_symbols(&build->symbols.data[x->index], &build->symbols.data[y->index]);

	return by_symbol ? by_symbol : x->index < y->index ? -1 : x->index > y->index;
}

static void sort_equal(struct rt_sort_key *keys, size_t count, struct rt_symtab_build *build)
{
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && keys[next].value == keys[i].value;)
			next++;
		if (next - i > 1)
			qsort_r(keys + i, next - i, sizeof(*keys), compare_keys, build);
	}
}

/* The same symbol from several tables becomes one. */
static void merge_into(struct rt_symbol *last, const struct rt_symbol *symbol)
{
	last->dynamic |= symbol->dynamic;
	last->ifunc |= symbol->ifunc;
	last->label |= symbol->label;
	if (!strcmp(last->full, last->name))
		last->full = symbol->full;
	if (last->bind == RT_BIND_LOCAL)
		last->bind = symbol->bind;
}

/* In the order of keys; owned->ends: of their sections. */
static void take(struct rt_symtab *symtab, const struct rt_symtab_build *build, const struct rt_sort_key *keys)
{
	struct owned *owned = symtab->owned;

	for (size_t i = 0; i < build->symbols.len; i++) {
		const struct rt_symbol *symbol = &build->symbols.data[keys[i].index];
		struct rt_symbol *last = symtab->count ? &symtab->symbols[symtab->count - 1] : NULL;

		if (last && !compare_symbols(last, symbol)) {
			merge_into(last, symbol);
			continue;
		}
		symtab->symbols[symtab->count] = *symbol;
		owned->ends[symtab->count++] = build->limits.data[keys[i].index];
	}
}

static void set_ends(struct rt_symtab *symtab, struct owned *owned)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = symtab->count; i-- > 0;) {
		const struct rt_symbol *s = &symtab->symbols[i];

		if (i + 1 < symtab->count && s[1].addr.v > s->addr.v)
			next = s[1].addr.v;
		if (s->size)
			owned->ends[i].v = s->size < UINT64_MAX - s->addr.v ? s->addr.v + s->size : UINT64_MAX;
		else if (next < owned->ends[i].v)
			owned->ends[i].v = next;
	}
	for (size_t i = 0; i < symtab->count; i++) {
		owned->reach[i] = owned->ends[i];
		if (i && owned->reach[i - 1].v > owned->reach[i].v)
			owned->reach[i] = owned->reach[i - 1];
	}
}

static uint64_t hash_name(const char *name)
{
	return rt_hash(0, name, strlen(name));
}

/* keys: of at least all symbols */
static void index_names(struct rt_symtab *symtab, struct rt_sort_key *keys, struct rt_sort_key *spare)
{
	struct owned *owned = symtab->owned;
	size_t count = 0;

	for (size_t i = 0; i < symtab->count; i++)
		if (!symtab->symbols[i].plt)
			keys[count++] =
				(struct rt_sort_key){ hash_name(symtab->symbols[i].name) & UINT32_MAX, (uint32_t)i };
	keys = rt_sort_keys(keys, spare, count);
	for (size_t i = 0; i < count; i++)
		owned->names[i] = (struct name){ (uint32_t)keys[i].value, keys[i].index };
	owned->name_count = count;
}

/* Sorts what was collected and makes the two indexes. */
static struct rt_error *sort(struct rt_symtab *symtab, struct rt_symtab_build *build)
{
	struct owned *owned = symtab->owned;
	size_t count = build->symbols.len;
	_cleanup_free_ struct rt_sort_key *keys = calloc(count + 1, sizeof(*keys));
	_cleanup_free_ struct rt_sort_key *spare = calloc(count + 1, sizeof(*spare));
	struct rt_sort_key *sorted;

	symtab->stripped = !build->has_symtab;
	symtab->symbols = calloc(count + 1, sizeof(*symtab->symbols));
	owned->ends = calloc(count + 1, sizeof(*owned->ends));
	owned->reach = calloc(count + 1, sizeof(*owned->reach));
	owned->names = calloc(count + 1, sizeof(*owned->names));
	if (!keys || !spare || !symtab->symbols || !owned->ends || !owned->reach || !owned->names)
		return rt_error_nomem();
	for (size_t i = 0; i < count; i++)
		keys[i] = (struct rt_sort_key){ build->symbols.data[i].addr.v, (uint32_t)i };
	sorted = rt_sort_keys(keys, spare, count);
	sort_equal(sorted, count, build);
	take(symtab, build, sorted);
	set_ends(symtab, owned);
	index_names(symtab, keys, spare);
	return NULL;
}

static struct rt_error *collect(const struct rt_image *image, struct rt_symtab_build *build)
{
	RT_TRY(read_image(image, build));
	if (image->debug)
		RT_TRY(read_image(image->debug, build));
	RT_TRY(read_debugdata(image, build));
	return rt_plt_read(image, build);
}

struct rt_error *rt_symtab_begin(struct rt_symtab_build *build, struct rt_symtab **ret)
{
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = calloc(1, sizeof(*symtab));
	struct owned *owned;

	if (!symtab)
		return rt_error_nomem();
	symtab->owned = owned = calloc(1, sizeof(*owned));
	if (!owned)
		return rt_error_nomem();
	build->arena = &owned->arena;
	*ret = rt_take(symtab);
	return NULL;
}

struct rt_error *rt_symtab_finish(struct rt_error *err, struct rt_symtab_build *build, struct rt_symtab *symtab,
				  struct rt_symtab **ret)
{
	if (!err)
		err = sort(symtab, build);
	rt_vec_deinit(&build->symbols);
	rt_vec_deinit(&build->limits);
	if (err)
		rt_symtab_destroy(symtab);
	else
		*ret = symtab;
	return err;
}

struct rt_error *rt_symtab_create(const struct rt_image *image, struct rt_symtab **ret)
{
	struct rt_symtab_build build = { 0 };
	struct rt_symtab *symtab = NULL;

	RT_TRY(rt_symtab_begin(&build, &symtab));
	return rt_symtab_finish(collect(image, &build), &build, symtab, ret);
}

void rt_symtab_destroy(struct rt_symtab *symtab)
{
	struct owned *owned;

	if (!symtab)
		return;
	owned = symtab->owned;
	if (owned) {
		rt_arena_deinit(&owned->arena);
		free(owned->ends);
		free(owned->reach);
		free(owned->names);
		free(owned);
	}
	free(symtab->symbols);
	free(symtab);
}

/* true when a names the same place better than b. */
static bool better(const struct rt_symbol *a, const struct rt_symbol *b)
{
	/* a size is a statement, its absence a guess; of two statements the nearer start is the inner one */
	if (!a->size != !b->size)
		return a->size;
	if (a->addr.v != b->addr.v)
		return a->addr.v > b->addr.v;
	/* of aliases the one that callers can use; weak or not tells nothing: "read" is the weak one of "__read" */
	if ((a->bind == RT_BIND_LOCAL) != (b->bind == RT_BIND_LOCAL))
		return a->bind != RT_BIND_LOCAL;
	return strlen(a->name) < strlen(b->name);
}

/* How many symbols start at addr or before it. */
static size_t count_up_to(const struct rt_symtab *symtab, struct rt_elfaddr addr)
{
	size_t low = 0, high = symtab->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (symtab->symbols[mid].addr.v <= addr.v)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct rt_symbol *rt_symtab_at(const struct rt_symtab *symtab, struct rt_elfaddr addr)
{
	const struct owned *owned = symtab->owned;
	const struct rt_symbol *best = NULL;

	for (size_t i = count_up_to(symtab, addr); i-- > 0 && owned->reach[i].v > addr.v;) {
		const struct rt_symbol *s = &symtab->symbols[i];

		if (best && best->size && best->addr.v > s->addr.v)
			break;
		if (s->function && owned->ends[i].v > addr.v && (!best || better(s, best)))
			best = s;
	}
	return best;
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/* Of two names of one address, is a the one that perf shows? */
static bool shown(const struct rt_symbol *a, const struct rt_symbol *b)
{
	if (!a->size != !b->size)
		return a->size;
	if (a->label != b->label)
		return b->label;
	if ((a->bind == RT_BIND_WEAK) != (b->bind == RT_BIND_WEAK))
		return b->bind == RT_BIND_WEAK;
	if ((a->bind == RT_BIND_GLOBAL) != (b->bind == RT_BIND_GLOBAL))
		return a->bind == RT_BIND_GLOBAL;
	if (underscores(a->full) != underscores(b->full))
		return underscores(a->full) < underscores(b->full);
	return strlen(a->full) > strlen(b->full);
}

const struct rt_symbol *rt_symtab_code_at(const struct rt_symtab *symtab, struct rt_elfaddr addr)
{
	const struct owned *owned = symtab->owned;
	const struct rt_symbol *best = NULL;

	for (size_t i = count_up_to(symtab, addr); i-- > 0 && owned->reach[i].v > addr.v;) {
		const struct rt_symbol *s = &symtab->symbols[i];

		if (best && best->addr.v > s->addr.v)
			break;
		if ((s->function || s->label) && owned->ends[i].v > addr.v && (!best || shown(s, best)))
			best = s;
	}
	return best;
}

const struct rt_symbol *rt_symtab_find(const struct rt_symtab *symtab, const char *name)
{
	const struct owned *owned = symtab->owned;
	const uint32_t hash = (uint32_t)hash_name(name);
	size_t low = 0, high = owned->name_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (owned->names[mid].hash < hash)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < owned->name_count && owned->names[low].hash == hash; low++) {
		const struct rt_symbol *symbol = &symtab->symbols[owned->names[low].symbol];

		if (!strcmp(symbol->name, name))
			return symbol;
	}
	return NULL;
}
