/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which units may have a function of a given name, without reading their trees.
 *
 * A DIE tells its name either as an offset into a section of strings or as the text itself, and both are bytes of its
 * unit. So a unit where neither is found, at whatever place, has no such DIE. Where they are found, the DIE around them
 * is looked at: a call of the function, or the function's declaration, is no reason to read the unit. A unit whose
 * names are told in any other way, or by DIEs of other units, is not judged.
 *
 * In a large file this is all bytes of .debug_info, so several threads do it.
 */
#include <gelf.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "dwarf/skim.h"
#include "dwarf/unit.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

enum {
	OFFSETS_MAX = 1 << 16, /* strings that end in the name */
	FEW = 8,               /* offsets that are compared one by one */
	PLACES_MAX = 1 << 16,  /* where the name is told in one unit */
	SHARE = 4 << 20,       /* bytes that a thread takes at a time */
	THREADS_MAX = 8,
};

typedef uint8_t lanes __attribute__((vector_size(16)));

/* Two bytes that follow each other in each word that is looked for: the low ones differ most. */
struct pair {
	lanes low, high;
};

/* What is looked for: words, and the first 4 bytes of a text. */
struct wanted {
	const char *text; /* NULL: none */
	size_t size;      /* of it, with its end */
	RT_VEC(uint32_t) words;
	uint64_t fits[1 << 10]; /* a bit for each hash of a word */
	struct pair pairs[FEW + 1];
	size_t pair_count; /* 0: each byte is looked at */
	unsigned shift;    /* where in a word the pairs are */
};

struct job {
	size_t first, count; /* units */
	struct rt_bytes bytes;
};

struct name_search {
	struct rt_dwarf *dwarf;
	struct rt_bytes info, abbrev;
	bool mapped; /* info is in the file: its pages can be had again. Of memory they would be lost */
	struct wanted name;
	uint64_t *starts; /* of each unit's header; UINT64_MAX: it is not looked at */
	bool *held;       /* of each unit: it may have the function */
	RT_VEC(struct job) jobs;
	size_t next; /* job that nobody took yet */
};

/* One thread's. */
struct judge {
	struct name_search *search;
	struct rt_map open_abbrevs; /* offset of a table -> 1: its names are all in its own unit, 2: not */
	struct rt_skim skim;
	struct rt_places places, declared;
	struct wanted references;
};

static uint32_t word_at(const unsigned char *data)
{
	uint32_t word;

	memcpy(&word, data, sizeof(word));
	return word;
}

static uint32_t hash(uint32_t word)
{
	return (word ^ word >> 16) & 0xffff;
}

static bool want(struct wanted *w, uint64_t word)
{
	if (word > UINT32_MAX || w->words.len >= OFFSETS_MAX || !rt_vec_push(&w->words, (uint32_t)word))
		return false;
	w->fits[hash((uint32_t)word) / 64] |= UINT64_C(1) << hash((uint32_t)word) % 64;
	return true;
}

static void forget(struct wanted *w)
{
	for (size_t i = 0; i < w->words.len; i++)
		w->fits[hash(w->words.data[i]) / 64] = 0;
	rt_vec_clear(&w->words);
}

static void add_pair(struct wanted *w, uint32_t word)
{
	w->pairs[w->pair_count++] = (struct pair){ (lanes){ 0 } + (uint8_t)(word >> 8 * w->shift),
						   (lanes){ 0 } + (uint8_t)(word >> 8 * w->shift >> 8) };
}

/* After the last want(). */
static void make_pairs(struct wanted *w)
{
	w->pair_count = 0;
	if (w->words.len > FEW || (w->text && w->size < sizeof(uint32_t)))
		return;
	/* zeroes are everywhere: any other bytes tell more */
	w->shift = 0;
	for (size_t i = 0; i < w->words.len; i++)
		if (!(w->words.data[i] & 0xffff))
			w->shift = 1;
	for (size_t i = 0; i < w->words.len; i++)
		add_pair(w, w->words.data[i]);
	if (w->text)
		add_pair(w, word_at((const unsigned char *)w->text));
}

/* Linkers let a string be the end of another: each place counts. false: too many, or no memory. */
static bool find_offsets(struct name_search *s, struct rt_bytes strings)
{
	const unsigned char *begin = strings.data, *at = begin, *end = begin + strings.size;

	while ((at = memmem(at, (size_t)(end - at), s->name.text, s->name.size)) != NULL)
		if (!want(&s->name, (uint64_t)(at++ - begin)))
			return false;
	return true;
}

static bool is_hit(const struct wanted *w, const unsigned char *at, size_t left)
{
	uint32_t word;

	if (w->text && left >= w->size && !memcmp(at, w->text, w->size))
		return true;
	if (left < sizeof(word))
		return false;
	word = word_at(at);
	if (!(w->fits[hash(word) / 64] >> hash(word) % 64 & 1))
		return false;
	for (size_t i = 0; i < w->words.len; i++)
		if (w->words.data[i] == word)
			return true;
	return false;
}

/* [from, to) of the unit; false: too many, or no memory */
static bool find_one_by_one(const struct wanted *w, struct rt_bytes unit, size_t from, size_t to,
			    struct rt_places *places)
{
	for (size_t i = from; i < to; i++)
		if (is_hit(w, unit.data + i, unit.size - i) &&
		    (places->v.len >= PLACES_MAX || !rt_vec_push(&places->v, (uint32_t)i)))
			return false;
	return true;
}

/* Any of the 16 places from at on; at[17] is the last byte that is read. */
static bool may_hit(const struct wanted *w, const unsigned char *at)
{
	lanes first, second, any = { 0 };
	uint64_t halves[2];

	memcpy(&first, at + w->shift, sizeof(first));
	memcpy(&second, at + w->shift + 1, sizeof(second));
	for (size_t i = 0; i < w->pair_count; i++)
		any |= (lanes)(first == w->pairs[i].low) & (lanes)(second == w->pairs[i].high);
	memcpy(halves, &any, sizeof(halves));
	return halves[0] | halves[1];
}

/* Where in the unit they are, rising. false: too many, or no memory */
static bool find(const struct wanted *w, struct rt_bytes unit, struct rt_places *places)
{
	size_t at = 0;

	rt_vec_clear(&places->v);
	/* most of the time of a search in a large file is spent here */
	if (w->pair_count)
		for (; unit.size - at >= 18; at += 16)
			if (may_hit(w, unit.data + at) && !find_one_by_one(w, unit, at, at + 16, places))
				return false;
	return find_one_by_one(w, unit, at, unit.size, places);
}

/* Where the unit's header and the rest of it are, and where its abbreviations. */
static bool read_header(const struct name_search *s, uint64_t at, uint64_t die, struct rt_skim_unit *ret)
{
	struct rt_cursor c = rt_cursor_make(s->info, false);
	uint64_t length;
	uint32_t word;
	uint16_t version;
	bool wide;

	if (!rt_cursor_skip(&c, at) || !rt_cursor_u32(&c, &word))
		return false;
	length = word;
	wide = word == UINT32_MAX;
	if (wide && !rt_cursor_u64(&c, &length))
		return false;
	if (length > rt_cursor_left(&c))
		return false;
	length += c.pos - at;
	if (!rt_cursor_u16(&c, &version) || version < 2 || version > 5)
		return false;
	/* version 5 has the kind and the size of addresses before the offset */
	if (version >= 5 && (!rt_cursor_skip(&c, 1) || !rt_cursor_u8(&c, &ret->address_size)))
		return false;
	if (wide && !rt_cursor_u64(&c, &ret->abbrev_offset))
		return false;
	if (!wide) {
		if (!rt_cursor_u32(&c, &word))
			return false;
		ret->abbrev_offset = word;
	}
	if (version < 5 && !rt_cursor_u8(&c, &ret->address_size))
		return false;
	ret->version = (uint8_t)version;
	ret->offset_size = wide ? 8 : 4;
	ret->abbrev = s->abbrev;
	if (length > UINT32_MAX || die < at || die - at > length)
		return false;
	ret->first = (uint32_t)(die - at);
	return rt_bytes_sub(s->info, at, length, &ret->bytes);
}

/* Is there a DIE that is more of what was only declared? */
static bool has_definition(struct judge *j, const struct rt_skim_unit *unit)
{
	struct rt_places none = { 0 };
	bool has;

	if (!j->declared.v.len)
		return false;
	forget(&j->references);
	for (size_t i = 0; i < j->declared.v.len; i++)
		if (!want(&j->references, j->declared.v.data[i]))
			return true;
	make_pairs(&j->references);
	has = j->skim.has_other_refs || !find(&j->references, unit->bytes, &j->places) ||
	      rt_skim_has_function(&j->skim, unit, &j->places, &none);
	rt_vec_deinit(&none.v);
	return has;
}

static bool may_hold(struct judge *j, size_t index)
{
	const struct name_search *s = j->search;
	struct rt_skim_unit unit;
	uint64_t *slot;

	if (!read_header(s, s->starts[index], dwarf_dieoffset(&s->dwarf->units.data[index].die), &unit))
		return true;
	slot = rt_map_put(&j->open_abbrevs, rt_key_make(unit.abbrev_offset, 0), NULL);
	if (!slot)
		return true;
	if (!*slot)
		*slot = rt_skim_is_own(s->abbrev, unit.abbrev_offset) ? 1 : 2;
	if (*slot == 2 || !find(&s->name, unit.bytes, &j->places))
		return true;
	if (!j->places.v.len)
		return false;
	rt_vec_clear(&j->declared.v);
	return rt_skim_has_function(&j->skim, &unit, &j->places, &j->declared) || has_definition(j, &unit);
}

/* All pages come in together, and go again: one by one, and all at the end, they take longer than the search. */
static void load(const struct name_search *s, struct rt_bytes bytes, int advice)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)bytes.data & ~(page - 1);

	/* where the kernel cannot, they come when they are looked at */
	if (s->mapped)
		(void)madvise((void *)begin, bytes.size + ((uintptr_t)bytes.data - begin), advice);
}

static void *work(void *arg)
{
	struct name_search *s = arg;
	struct judge j = { .search = s };
	size_t taken;

	while ((taken = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED)) < s->jobs.len) {
		const struct job *job = &s->jobs.data[taken];

		load(s, job->bytes, MADV_POPULATE_READ);
		for (size_t i = job->first; i < job->first + job->count; i++)
			if (s->starts[i] != UINT64_MAX)
				s->held[i] = may_hold(&j, i);
		load(s, job->bytes, MADV_DONTNEED);
	}
	rt_map_deinit(&j.open_abbrevs);
	rt_skim_deinit(&j.skim);
	rt_vec_deinit(&j.places.v);
	rt_vec_deinit(&j.declared.v);
	rt_vec_deinit(&j.references.words);
	return NULL;
}

static unsigned cpu_count(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static void judge_all(struct name_search *s)
{
	pthread_t threads[THREADS_MAX];
	size_t wanted = cpu_count() < THREADS_MAX ? cpu_count() : THREADS_MAX, count = 0;

	/* this one works, too; and alone where no other can be had */
	while (count + 1 < wanted && count + 1 < s->jobs.len && !pthread_create(&threads[count], NULL, work, s))
		count++;
	(void)work(s);
	for (size_t i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
}

static bool add_job(struct name_search *s, size_t first, size_t end, uint64_t from, uint64_t to)
{
	struct job job = { .first = first, .count = end - first };

	return to >= from && rt_bytes_sub(s->info, from, to - from, &job.bytes) && rt_vec_push(&s->jobs, job);
}

/* A unit that libdw cannot place is walked: its header is where its DIE is, less what lies between. */
static bool share(struct name_search *s)
{
	struct rt_dwarf *dwarf = s->dwarf;
	uint64_t begin = 0;
	size_t first = 0;

	for (size_t i = 0; i < dwarf->units.len; i++) {
		struct rt_unit *unit = &dwarf->units.data[i];
		uint64_t at = dwarf_dieoffset(&unit->die) - dwarf_cuoffset(&unit->die);

		s->starts[i] = UINT64_MAX;
		s->held[i] = unit->skeleton;
		/* units of types may be in a section of their own */
		if (!unit->code || unit->walked || unit->skeleton)
			continue;
		s->starts[i] = at;
		if (at - begin < SHARE)
			continue;
		if (!add_job(s, first, i, begin, at))
			return false;
		begin = at;
		first = i;
	}
	return add_job(s, first, dwarf->units.len, begin, s->info.size);
}

/* false: units of this file cannot be judged */
static bool prepare(struct name_search *s)
{
	struct rt_dwarf *dwarf = s->dwarf;
	const bool own = dwarf->dw == dwarf->own.dw;
	const struct rt_image *image = own ? dwarf->image : dwarf->image->debug;
	const struct rt_dwarf_source *source = own ? &dwarf->own : &dwarf->companion;
	struct rt_bytes strings;
	GElf_Ehdr head;

	/* what an object file's bytes say is only so with its relocations */
	if (!image->elf || !gelf_getehdr(image->elf, &head) || head.e_type == ET_REL ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB)
		return false;
	if (!rt_source_section(image, source, ".debug_info", &s->info) ||
	    !rt_source_section(image, source, ".debug_abbrev", &s->abbrev))
		return false;
	if (rt_source_section(image, source, ".debug_str", &strings) && !find_offsets(s, strings))
		return false;
	if (rt_source_section(image, source, ".debug_line_str", &strings) && !find_offsets(s, strings))
		return false;
	s->mapped = image->mapped && s->info.data >= image->bytes.data &&
		    s->info.data + s->info.size <= image->bytes.data + image->bytes.size;
	make_pairs(&s->name);
	s->starts = calloc(dwarf->units.len + 1, sizeof(*s->starts));
	s->held = calloc(dwarf->units.len + 1, sizeof(*s->held));
	return s->starts && s->held && share(s);
}

static struct rt_error *walk(struct name_search *s)
{
	struct rt_dwarf *dwarf = s->dwarf;

	judge_all(s);
	for (size_t i = 0; i < dwarf->units.len; i++)
		if (dwarf->units.data[i].code && s->held[i])
			RT_TRY(rt_unit_walk(dwarf, &dwarf->units.data[i]));
	return NULL;
}

struct rt_error *rt_dwarf_walk_named(struct rt_dwarf *dwarf, const char *name)
{
	struct name_search s = { .dwarf = dwarf, .name = { .text = name, .size = strlen(name) + 1 } };
	struct rt_error *err;

	if (dwarf->all_walked)
		return NULL;
	err = prepare(&s) ? walk(&s) : rt_dwarf_walk_all(dwarf);
	rt_vec_deinit(&s.name.words);
	rt_vec_deinit(&s.jobs);
	free(s.starts);
	free(s.held);
	return err;
}
