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
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "dwarf/skim.h"
#include "dwarf/unit.h"
#include "dwarf/words.h"

enum {
	SHARE = 4 << 20, /* bytes that a thread takes at a time */
	THREADS_MAX = 8,
};

struct job {
	size_t first, count; /* units */
	struct rt_bytes bytes;
};

struct name_search {
	struct rt_dwarf *dwarf;
	struct rt_words name;
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
	struct rt_words references;
};

/* Linkers let a string be the end of another: each place counts. false: too many, or no memory. */
static bool find_offsets(struct name_search *s, struct rt_bytes strings)
{
	const unsigned char *begin = strings.data, *at = begin, *end = begin + strings.size;

	while ((at = memmem(at, (size_t)(end - at), s->name.text, s->name.size)) != NULL)
		if (!rt_words_add(&s->name, (uint64_t)(at++ - begin)))
			return false;
	return true;
}

/* Is there a DIE that is more of what was only declared? */
static bool has_definition(struct judge *j, const struct rt_skim_unit *unit)
{
	struct rt_places none = { 0 };
	bool has;

	if (!j->declared.v.len)
		return false;
	rt_words_clear(&j->references);
	for (size_t i = 0; i < j->declared.v.len; i++)
		if (!rt_words_add(&j->references, j->declared.v.data[i]))
			return true;
	rt_words_ready(&j->references);
	has = j->skim.has_other_refs || !rt_words_find(&j->references, unit->bytes, &j->places) ||
	      rt_skim_has_function(&j->skim, unit, &j->places, &none);
	rt_vec_deinit(&none.v);
	return has;
}

static bool may_hold(struct judge *j, size_t index)
{
	const struct name_search *s = j->search;
	struct rt_skim_unit unit;
	uint64_t *slot;

	if (!rt_skim_open(s->dwarf->info, s->dwarf->abbrev, s->starts[index],
			  dwarf_dieoffset(&s->dwarf->units.data[index].die), &unit))
		return true;
	slot = rt_map_put(&j->open_abbrevs, rt_key_make(unit.abbrev_offset, 0), NULL);
	if (!slot)
		return true;
	if (!*slot)
		*slot = rt_skim_is_own(s->dwarf->abbrev, unit.abbrev_offset) ? 1 : 2;
	if (*slot == 2 || !rt_words_find(&s->name, unit.bytes, &j->places))
		return true;
	if (!j->places.v.len)
		return false;
	rt_vec_clear(&j->declared.v);
	return rt_skim_has_function(&j->skim, &unit, &j->places, &j->declared) || has_definition(j, &unit);
}

static void *work(void *arg)
{
	struct name_search *s = arg;
	struct judge j = { .search = s };
	size_t taken;

	while ((taken = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED)) < s->jobs.len) {
		const struct job *job = &s->jobs.data[taken];

		for (size_t i = job->first; i < job->first + job->count; i++)
			if (s->starts[i] != UINT64_MAX)
				s->held[i] = may_hold(&j, i);
		rt_dwarf_give_back(s->dwarf, job->bytes);
	}
	rt_map_deinit(&j.open_abbrevs);
	rt_skim_deinit(&j.skim);
	rt_vec_deinit(&j.places.v);
	rt_vec_deinit(&j.declared.v);
	rt_words_deinit(&j.references);
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

	return to >= from && rt_bytes_sub(s->dwarf->info, from, to - from, &job.bytes) && rt_vec_push(&s->jobs, job);
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
	return add_job(s, first, dwarf->units.len, begin, s->dwarf->info.size);
}

/* false: units of this file cannot be judged */
static bool prepare(struct name_search *s)
{
	struct rt_dwarf *dwarf = s->dwarf;
	const bool own = dwarf->dw == dwarf->own.dw;
	const struct rt_image *image = own ? dwarf->image : dwarf->image->debug;
	const struct rt_dwarf_source *source = own ? &dwarf->own : &dwarf->companion;
	struct rt_bytes strings;

	if (!dwarf->has_bytes)
		return false;
	if (rt_source_section(image, source, ".debug_str", &strings) && !find_offsets(s, strings))
		return false;
	if (rt_source_section(image, source, ".debug_line_str", &strings) && !find_offsets(s, strings))
		return false;
	rt_words_ready(&s->name);
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
	rt_words_deinit(&s.name);
	rt_vec_deinit(&s.jobs);
	free(s.starts);
	free(s.held);
	return err;
}
