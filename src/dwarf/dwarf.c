/* SPDX-License-Identifier: GPL-2.0-only */
/* Opening a module's debug information, and the index from addresses to units. */
#include "dwarf/rows.h"
#include "dwarf/unit.h"

#include <elf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of units, after which their pages go. */
enum { PASS_BYTES = 16 << 20 };

bool rt_spans_add(struct rt_spans *spans, uint64_t lo, uint64_t hi, uint32_t value)
{
	return rt_vec_push(&spans->v, ((struct rt_span){ .lo = lo, .hi = hi, .value = value }));
}

static int compare_spans(const void *a, const void *b)
{
	const struct rt_span *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	if (x->hi != y->hi)
		return x->hi > y->hi ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

void rt_spans_sort(struct rt_spans *spans)
{
	uint64_t reach = 0;

	if (spans->v.len)
		qsort(spans->v.data, spans->v.len, sizeof(*spans->v.data), compare_spans);
	for (size_t i = 0; i < spans->v.len; i++) {
		if (spans->v.data[i].hi > reach)
			reach = spans->v.data[i].hi;
		spans->v.data[i].reach = reach;
	}
}

bool rt_spans_next(const struct rt_spans *spans, uint64_t addr, size_t *pos, uint32_t *ret)
{
	size_t i = *pos;

	if (i == SIZE_MAX) {
		size_t lo = 0, hi = spans->v.len;

		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;

			if (spans->v.data[mid].lo <= addr)
				lo = mid + 1;
			else
				hi = mid;
		}
		i = lo;
	}
	while (i > 0 && spans->v.data[i - 1].reach > addr) {
		i--;
		if (spans->v.data[i].hi > addr) {
			*pos = i;
			*ret = spans->v.data[i].value;
			return true;
		}
	}
	*pos = 0;
	return false;
}

const char *rt_dwarf_text(struct rt_dwarf *dwarf, const char *text)
{
	uint32_t id = text ? rt_intern_string(&dwarf->strings, text) : 0;

	return id ? rt_intern_text(&dwarf->strings, id) : NULL;
}

const char *rt_dwarf_path(struct rt_dwarf *dwarf, Dwarf_Die *die, const char *path)
{
	_cleanup_free_ char *joined = NULL;
	const char *dir;
	Dwarf_Die unit;

	if (!path || path[0] == '/' ||
	    (!rt_unit_of_split(dwarf, die->cu, &unit) && !dwarf_diecu(die, &unit, NULL, NULL)))
		return rt_dwarf_text(dwarf, path);
	dir = rt_die_string(&unit, DW_AT_comp_dir);
	if (!dir || dir[0] != '/' || asprintf(&joined, "%s/%s", dir, path) < 0)
		return rt_dwarf_text(dwarf, path);
	return rt_dwarf_text(dwarf, joined);
}

bool rt_dwarf_in_code(const struct rt_dwarf *dwarf, uint64_t addr)
{
	for (size_t i = 0; i < dwarf->code.len; i++) {
		if (addr >= dwarf->code.data[i].lo && addr < dwarf->code.data[i].hi)
			return true;
	}
	return !dwarf->code.len;
}

/* By size in memory: a debug file opened for itself has its code only in name. */
static struct rt_error *read_code(struct rt_dwarf *dwarf)
{
	size_t count;

	if (!dwarf->image->elf || elf_getphdrnum(dwarf->image->elf, &count) != 0)
		return NULL;
	for (size_t i = 0; i < count && dwarf->code.len < RT_DWARF_SEGMENTS_MAX; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(dwarf->image->elf, i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		if (ph.p_memsz && ph.p_vaddr + ph.p_memsz > ph.p_vaddr &&
		    !rt_vec_push(&dwarf->code, ((struct rt_span){ .lo = ph.p_vaddr, .hi = ph.p_vaddr + ph.p_memsz })))
			return rt_error_nomem();
	}
	return NULL;
}

bool rt_dwarf_add_ranges(struct rt_dwarf *dwarf, Dwarf_Die *die, struct rt_spans *spans, uint32_t value, bool *ret_any)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	for (unsigned i = 0; i < RT_DWARF_RANGES_MAX; i++) {
		at = dwarf_ranges(die, at, &base, &lo, &hi);
		if (at <= 0)
			break;
		if (lo >= hi || !rt_dwarf_in_code(dwarf, lo))
			continue;
		if (dwarf->span_count++ >= RT_DWARF_SPANS_MAX)
			break;
		*ret_any = true;
		if (!rt_spans_add(spans, lo, hi, value))
			return false;
	}
	return true;
}

void rt_dwarf_give_back(const struct rt_dwarf *dwarf, struct rt_bytes bytes)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)bytes.data & ~(page - 1);

	if (dwarf->mapped)
		(void)madvise((void *)begin, bytes.size + ((uintptr_t)bytes.data - begin), MADV_DONTNEED);
}

/* A pass over all units has come to the one of die; *begin: what was given back so far. */
static void pass_unit(const struct rt_dwarf *dwarf, Dwarf_Die *die, uint64_t *begin)
{
	uint64_t at = dwarf_dieoffset(die);
	struct rt_bytes behind;

	/* units of types may be in a section of their own, and then come last */
	if (!dwarf->has_bytes || at < *begin || at - *begin < PASS_BYTES ||
	    !rt_bytes_sub(dwarf->info, *begin, at - *begin, &behind))
		return;
	rt_dwarf_give_back(dwarf, behind);
	*begin = at;
}

static struct rt_error *read_units(struct rt_dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	uint64_t begin = 0;
	uint8_t kind;
	Dwarf_Die die;

	/* libdw itself would open whatever path the file tells for the rest of a skeleton */
	while (dwarf_get_units(dwarf->dw, cu, &cu, NULL, &kind, &die, NULL) == 0) {
		struct rt_unit *unit;

		if (dwarf_tag(&die) == DW_TAG_invalid)
			continue;
		unit = rt_vec_add(&dwarf->units);
		if (!unit)
			return rt_error_nomem();
		unit->die = unit->tree = die;
		unit->code = dwarf_tag(&die) != DW_TAG_type_unit && dwarf_tag(&die) != DW_TAG_partial_unit;
		unit->skeleton = kind == DW_UT_skeleton;
		pass_unit(dwarf, &die, &begin);
	}
	begin = 0;
	for (size_t i = 0; i < dwarf->units.len; i++) {
		struct rt_unit *unit = &dwarf->units.data[i];
		bool any = false;

		pass_unit(dwarf, &unit->die, &begin);
		if (!unit->code)
			continue;
		if (!rt_dwarf_add_ranges(dwarf, &unit->die, &dwarf->spans, i, &any))
			return rt_error_nomem();
		if (any)
			continue;
		/* Some producers give ranges only at the functions. */
		RT_TRY(rt_unit_walk(dwarf, unit));
		for (size_t k = 0; k < unit->spans.v.len; k++) {
			const struct rt_span *s = &unit->spans.v.data[k];

			if (!unit->nodes.data[s->value].parent && !rt_spans_add(&dwarf->spans, s->lo, s->hi, i))
				return rt_error_nomem();
		}
	}
	rt_spans_sort(&dwarf->spans);
	return NULL;
}

/* What an object file's bytes say is only so with its relocations. */
static void find_bytes(struct rt_dwarf *dwarf)
{
	const bool own = dwarf->dw == dwarf->own.dw;
	const struct rt_image *image = own ? dwarf->image : dwarf->image->debug;
	const struct rt_dwarf_source *source = own ? &dwarf->own : &dwarf->companion;
	GElf_Ehdr head;

	dwarf->has_bytes = image->elf && gelf_getehdr(image->elf, &head) && head.e_type != ET_REL &&
			   head.e_ident[EI_DATA] == ELFDATA2LSB &&
			   rt_source_section(image, source, ".debug_info", &dwarf->info) &&
			   rt_source_section(image, source, ".debug_abbrev", &dwarf->abbrev);
	dwarf->mapped = dwarf->has_bytes && image->mapped && dwarf->info.data >= image->bytes.data &&
			dwarf->info.data + dwarf->info.size <= image->bytes.data + image->bytes.size;
}

static bool has_units(const struct rt_dwarf_source *source)
{
	Dwarf_CU *cu;

	return source->dw && dwarf_get_units(source->dw, NULL, &cu, NULL, NULL, NULL, NULL) == 0;
}

struct rt_error *rt_dwarf_create(const struct rt_image *image, struct rt_dwarf **ret)
{
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = calloc(1, sizeof(*dwarf));

	if (!dwarf)
		return rt_error_nomem();
	dwarf->image = image;
	RT_TRY(read_code(dwarf));
	RT_TRY(rt_source_begin(image, &dwarf->own));
	if (has_units(&dwarf->own)) {
		dwarf->dw = dwarf->own.dw;
	} else if (image->debug) {
		RT_TRY(rt_source_begin(image->debug, &dwarf->companion));
		if (has_units(&dwarf->companion))
			dwarf->dw = dwarf->companion.dw;
	}
	if (dwarf->dw) {
		find_bytes(dwarf);
		RT_TRY(read_units(dwarf));
	}
	*ret = rt_take(dwarf);
	return NULL;
}

void rt_dwarf_destroy(struct rt_dwarf *dwarf)
{
	if (!dwarf)
		return;
	rt_unwind_rows_destroy(dwarf->rows);
	rt_source_end(&dwarf->own);
	rt_source_end(&dwarf->companion);
	for (size_t i = 0; i < dwarf->units.len; i++) {
		rt_source_end(&dwarf->units.data[i].split);
		rt_vec_deinit(&dwarf->units.data[i].nodes);
		rt_vec_deinit(&dwarf->units.data[i].spans.v);
	}
	rt_vec_deinit(&dwarf->units);
	rt_vec_deinit(&dwarf->spans.v);
	rt_vec_deinit(&dwarf->code);
	rt_skim_deinit(&dwarf->skim);
	rt_vec_deinit(&dwarf->fns);
	rt_vec_deinit(&dwarf->type_dies);
	rt_vec_deinit(&dwarf->global_dies);
	rt_vec_deinit(&dwarf->fdes[0].list);
	rt_vec_deinit(&dwarf->fdes[1].list);
	rt_vec_deinit(&dwarf->parts);
	rt_vec_deinit(&dwarf->missing);
	rt_source_end(&dwarf->package_source);
	rt_image_destroy(dwarf->package);
	rt_map_deinit(&dwarf->skeleton_by_cu);
	rt_map_deinit(&dwarf->fn_by_die);
	rt_map_deinit(&dwarf->types);
	rt_intern_deinit(&dwarf->strings);
	free(dwarf);
}

bool rt_dwarf_present(const struct rt_dwarf *dwarf)
{
	return dwarf->dw != NULL;
}
