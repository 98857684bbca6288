/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as an ELF file with debug info: every question is answered or refused, without a fault or a hang. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/listing.h"
#include "dwarf/variable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct names {
	const char *list[32];
	size_t count;
};

static bool keep(const struct rt_signature *sig, void *arg)
{
	struct names *names = arg;

	for (size_t i = 0; i < sig->param_count; i++) {
		if (names->count < 32 && sig->params[i].pointee)
			names->list[names->count++] = sig->params[i].pointee;
	}
	if (names->count < 32 && sig->has_inlined)
		names->list[names->count++] = sig->function;
	return names->count < 32;
}

/* Every place holds something, and something else than its neighbours. */
static bool any_memory(const struct rt_dwarf_memory *self, uint64_t address, uint64_t *ret)
{
	*ret = address * 0x9e3779b97f4a7c15u;
	return address % 64 != 0;
}

static void ask_caller(struct rt_dwarf *dwarf, struct rt_elfaddr addr)
{
	struct rt_dwarf_memory memory = { any_memory };
	struct rt_dwarf_regs regs = { .known = (1u << RT_DWARF_REGS) - 1 }, before;
	bool signal;

	for (unsigned i = 0; i < RT_DWARF_REGS; i++)
		regs.value[i] = 0x7ffe00001000u + 0x1238 * i;
	regs.value[RT_DWARF_RA] = addr.v;
	before = regs;
	if (rt_dwarf_step(dwarf, addr, &memory, &regs, &signal) != RT_DWARF_STEPPED) {
		if (memcmp(&before, &regs, sizeof(regs)) != 0)
			abort();
	} else if (!(regs.known & 1u << RT_DWARF_RA) || !(regs.known & 1u << RT_DWARF_RSP)) {
		abort();
	}
}

static void ask_address(struct rt_dwarf *dwarf, struct rt_elfaddr addr)
{
	struct rt_scope scopes[16];
	struct rt_source_line line;
	struct rt_elfaddr start, end;
	struct rt_cfi_row row;
	bool lsda;

	rt_dwarf_scopes(dwarf, addr, scopes, 16);
	rt_dwarf_line(dwarf, addr, &line);
	rt_dwarf_cfi(dwarf, addr, &row);
	if (rt_dwarf_fde(dwarf, addr, &start, &end, &lsda) && (addr.v < start.v || addr.v >= end.v))
		abort();
	ask_caller(dwarf, addr);
}

static bool see_variable(const struct rt_variable *v, void *arg)
{
	size_t *count = arg;

	if (!v->name || (v->where == RT_WHERE_ELSEWHERE && !v->range_count))
		abort();
	return ++*count < 256;
}

static void ask_variables(struct rt_dwarf *dwarf, struct rt_elfaddr addr, const struct rt_instance *in)
{
	struct rt_elfaddr prologue;
	const char *file;
	struct rt_error *err;
	size_t count = 0, hidden;
	uint32_t line;

	rt_dwarf_instance_call(dwarf, in, &file, &line);
	err = rt_dwarf_variables(dwarf, in, addr, true, see_variable, &count, &hidden, &prologue);
	rt_error_free(err);
}

struct listing {
	struct rt_dwarf *dwarf;
	size_t rows, functions, asked;
};

static bool see_row(const struct rt_row *row, void *arg)
{
	struct listing *l = arg;
	struct rt_instance in;

	if (l->asked++ < 64 && rt_dwarf_instance_of_row(l->dwarf, row, &in))
		ask_variables(l->dwarf, row->addr, &in);
	return ++l->rows < 4096;
}

static bool see_function(const struct rt_function *function, void *arg)
{
	struct listing *l = arg;

	if (!function->name || (!function->has_body && !function->inlined))
		abort();
	return ++l->functions < 4096;
}

static bool any_file(const char *file, void *arg)
{
	return true;
}

static bool any_name(const char *name, const char *linkage, void *arg)
{
	return true;
}

static bool any_function(struct rt_dwarf *dwarf, const struct rt_instance *fn, void *arg)
{
	return true;
}

static bool any_member(const struct rt_pointer_member *member, void *arg)
{
	return true;
}

static bool any_global(struct rt_elfaddr addr, const char *pointee, void *arg)
{
	return true;
}

static bool any_pointer(const struct rt_function_pointer *p, void *arg)
{
	return true;
}

static bool any_wanted(const char *name, void *arg)
{
	return true;
}

static void list_pointers(struct rt_dwarf *dwarf)
{
	rt_error_free(rt_dwarf_pointer_members(dwarf, any_member, NULL));
	rt_error_free(rt_dwarf_pointer_globals(dwarf, any_global, NULL));
	rt_error_free(rt_dwarf_function_pointers(dwarf, any_wanted, any_pointer, NULL));
}

static void list(struct rt_dwarf *dwarf)
{
	struct listing l = { .dwarf = dwarf };
	struct rt_instance *instances = NULL;
	struct rt_extent *extents = NULL;
	struct rt_error *err;
	size_t count = 0;

	err = rt_dwarf_each_function(dwarf, see_function, &l);
	rt_error_free(err);
	err = rt_dwarf_each_file(dwarf, any_file, NULL);
	rt_error_free(err);
	err = rt_dwarf_extents(dwarf, any_name, NULL, &extents, &count);
	rt_error_free(err);
	free(extents);
	err = rt_dwarf_rows(dwarf, SIZE_MAX, any_file, see_row, &l);
	rt_error_free(err);
	count = 0;
	err = rt_dwarf_instances(dwarf, NULL, any_function, NULL, &instances, &count);
	rt_error_free(err);
	for (size_t i = 0; i < count && i < 64; i++)
		ask_variables(dwarf, instances[i].entry, &instances[i]);
	for (size_t i = 0; i < count && i < 64; i++)
		rt_error_free(rt_dwarf_inlined_into(dwarf, instances[i].entry, any_wanted, NULL));
	free(instances);
	list_pointers(dwarf);
}

static void ask_name(struct rt_dwarf *dwarf, const char *name)
{
	struct rt_inlined *list = NULL;
	struct rt_member member;
	struct rt_error *err;
	size_t count;

	rt_dwarf_counter(dwarf, name, &member);
	rt_dwarf_member(dwarf, name, "refs.counter", &member);
	rt_dwarf_struct_size(dwarf, name);
	rt_dwarf_nested(dwarf, name, 8, name);
	err = rt_dwarf_inlined(dwarf, name, 1, &list, &count);
	rt_error_free(err);
	free(list);
}

struct variables {
	struct rt_dwarf *dwarf;
	const struct rt_instance *instance;
	struct rt_elfaddr addr;
	unsigned left; /* questions */
};

/* The variable itself, and ways from it. What is answered keeps to its limits. */
static void ask_variable(const char *name, void *arg)
{
	static const struct rt_trail ways[] = { { .kind = RT_TRAIL_ARROW, .name = "next" },
						{ .kind = RT_TRAIL_INDEX, .index = 1 },
						{ .kind = RT_TRAIL_DOT, .name = "refs" },
						{ .kind = RT_TRAIL_ARROW, .name = "refs" } };
	struct variables *v = arg;
	struct rt_datum d;

	if (!v->left)
		return;
	v->left--;
	for (size_t from = 0; from < 4; from++)
		for (size_t count = 0; count + from <= 4; count++) {
			if (rt_dwarf_datum(v->dwarf, v->instance, v->addr, name, ways + from, count, &d))
				continue;
			if (!d.name || d.where.deref_count > RT_LOCATION_DEREFS_MAX ||
			    (d.where.base == RT_LOCATION_REG && d.where.reg > 15) ||
			    (d.bits && d.bits + d.shift > d.size * 8))
				abort();
		}
}

static bool want(struct rt_dwarf *dwarf, const struct rt_instance *fn, void *arg)
{
	unsigned *left = arg;

	if (!*left || !rt_dwarf_qualified(dwarf, fn))
		return false;
	--*left;
	return true;
}

static bool visit_row(const struct rt_row *row, void *arg)
{
	struct variables *v = arg;
	struct rt_instance in;

	if (!row->file || !row->line)
		abort();
	if (rt_dwarf_instance_of_row(v->dwarf, row, &in) && !rt_dwarf_instance_holds(v->dwarf, &in, row->addr))
		abort();
	return v->left && v->left--;
}

static void ask_instances(struct rt_dwarf *dwarf)
{
	struct variables v = { .dwarf = dwarf, .left = 2000 };
	struct rt_instance *list = NULL;
	unsigned functions = 64;
	size_t count = 0;
	struct rt_datum d;

	rt_error_free(rt_dwarf_instances(dwarf, NULL, want, &functions, &list, &count));
	for (size_t i = 0; i < count && i < 64; i++) {
		v.instance = &list[i];
		v.addr = list[i].entry;
		rt_dwarf_names(dwarf, &list[i], v.addr, true, ask_variable, &v);
		ask_variable("global", &v);
		rt_dwarf_returns(dwarf, &list[i], &d);
	}
	v.left = 2000;
	rt_error_free(rt_dwarf_rows(dwarf, SIZE_MAX, any_file, visit_row, &v));
	free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_dwarf_destroyp) struct rt_dwarf *dwarf = NULL;
	_cleanup_error_ struct rt_error *err = rt_image_from_bytes(rt_bytes_make(data, size), "fuzz", &image);
	struct names names = { 0 };

	if (err)
		return 0;
	err = rt_dwarf_create(image, &dwarf);
	if (err)
		return 0;
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rt_segment *s = &image->segments[i];

		for (uint64_t k = 0; k < 4096 && s->start.v + k < s->end.v; k += 7)
			ask_address(dwarf, (struct rt_elfaddr){ s->start.v + k });
	}
	err = rt_dwarf_functions(dwarf, keep, &names);
	list(dwarf);
	for (size_t i = 0; i < names.count; i++)
		ask_name(dwarf, names.list[i]);
	ask_instances(dwarf);
	return 0;
}
