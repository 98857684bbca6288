/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/pointee.h"

#include <stdlib.h>
#include <string.h>

#include "dwarf/listing.h"
#include "probe/counted.h"

enum { FUNCTION_BYTES = 64 << 10, SCOPES_MAX = 16 };

/* "obj" of "const struct obj *" without _t or _s, by which C tells a typedef from its tag; 0: no such pointer */
static size_t bare(const char **type)
{
	const char *s = *type, *end;

	while (!strncmp(s, "const ", 6) || !strncmp(s, "struct ", 7))
		s = strchr(s, ' ') + 1;
	end = s + strcspn(s, " *");
	*type = s;
	if (end - s > 2 && end[-2] == '_' && (end[-1] == 't' || end[-1] == 's'))
		end -= 2;
	return (size_t)(end - s);
}

static bool same_struct(const char *a, const char *b)
{
	size_t n = bare(&a), m = bare(&b);

	return n && n == m && !memcmp(a, b, n);
}

unsigned rt_points_to(const char *type, const char *structure)
{
	unsigned stars = 0;

	for (const char *s = type; s && (s = strchr(s, '*')); s++)
		stars++;
	return stars && same_struct(type, structure) ? stars : 0;
}

bool rt_pointee_based(const struct rt_datum *d)
{
	return d->kind == RT_DATUM_POINTER && d->where.base == RT_LOCATION_REG && d->where.is_value &&
	       !d->where.at_entry && !d->where.deref_count && !d->where.in_frame;
}

static bool add_member(const struct rt_pointer_member *member, void *arg)
{
	struct rt_pointees *p = arg;

	return !member->pointee || member->pointers != 1 || rt_vec_push(&p->members, *member);
}

static int by_offset(const void *a, const void *b)
{
	const struct rt_pointer_member *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

struct rt_error *rt_pointees_init(struct rt_pointees *p)
{
	RT_TRY(rt_dwarf_pointer_members(p->b->module->dwarf, add_member, p));
	if (p->members.len)
		qsort(p->members.data, p->members.len, sizeof(p->members.data[0]), by_offset);
	return NULL;
}

void rt_pointees_deinit(struct rt_pointees *p)
{
	rt_vec_deinit(&p->members);
}

/* the first member at an offset of at least so much */
static size_t first_at(const struct rt_pointees *p, uint64_t offset)
{
	size_t low = 0, high = p->members.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->members.data[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct holder {
	const struct rt_pointees *p;
	struct rt_instance in;
	const struct rt_insn *load;
	const char *structure;
	bool found, other;
};

/* load reads the variable itself, from where it lies in the frame */
static bool is_in_frame(const struct holder *h, const struct rt_datum *d)
{
	const struct rt_location *at = &d->where;
	struct rt_cfi_row row;

	if (d->kind != RT_DATUM_POINTER || at->base != RT_LOCATION_REG || at->is_value || at->at_entry ||
	    at->deref_count)
		return false;
	if (at->reg == h->load->mem.base && at->offset == h->load->mem.disp)
		return true;
	return at->cfa_known && rt_dwarf_cfi(h->p->b->module->dwarf, h->load->addr, &row) &&
	       row.cfa_reg == h->load->mem.base && h->load->mem.disp - row.cfa_offset == at->cfa_offset;
}

/* load reads what the variable points to, which is a pointer to the structure, or several */
static bool is_output(const struct holder *h, const struct rt_datum *d)
{
	return rt_pointee_based(d) && d->where.reg == h->load->mem.base && d->where.offset == 0 &&
	       h->load->mem.disp % 8 == 0 && rt_points_to(d->type, h->structure) == 2;
}

/* the variable is what load reads, or what it reads from: then the member there points to the structure */
static void see_holder(const char *name, void *arg)
{
	struct holder *h = arg;
	struct rt_datum d;

	if (h->found || rt_dwarf_datum(h->p->b->module->dwarf, &h->in, h->load->addr, name, NULL, 0, &d) != NULL)
		return;
	if (is_in_frame(h, &d)) {
		h->found = rt_points_to(d.type, h->structure) == 1;
		h->other |= !h->found && d.type && strncmp(d.type, "void", 4) != 0;
	}
	if (h->load->mem.disp < 0)
		return;
	h->found |= is_output(h, &d);
	if (!rt_pointee_based(&d) || d.where.offset || d.where.reg != h->load->mem.base)
		return;
	for (size_t i = first_at(h->p, (uint64_t)h->load->mem.disp);
	     i < h->p->members.len && h->p->members.data[i].offset == (uint64_t)h->load->mem.disp && !h->found; i++)
		h->found = rt_points_to(d.type, h->p->members.data[i].structure) == 1 &&
			   same_struct(h->p->members.data[i].pointee, h->structure);
}

/* the instruction that reg was read from memory with, as it is at `at`; false: another way may lead there, or none did
 */
static bool find_load(struct rt_plan_build *b, struct rt_elfaddr at, uint8_t reg, struct rt_insn *ret)
{
	struct rt_elfaddr start, end;
	struct rt_insn one;
	bool loaded = false;

	if (reg >= RT_TRACK_REGS || !rt_survey_range(&b->survey, at, &start, &end) || end.v - start.v > FUNCTION_BYTES)
		return false;
	for (struct rt_elfaddr pc = start; pc.v < at.v; pc.v += one.length) {
		if (!rt_plan_decode(b, pc, &one))
			return false;
		if (one.is_mov && one.has_mem && one.mem.reads && one.dst_reg == reg && one.mem.size == 8) {
			*ret = one;
			loaded = true;
		} else if (one.call || one.ret || (one.jump && !one.conditional) || (one.writes & 1u << reg)) {
			loaded = false;
		}
	}
	return loaded && ret->mem.base < RT_TRACK_REGS && ret->mem.index == RT_REG_NONE && !ret->mem.segment &&
	       !rt_counted_joined(b, start, end, ret->addr, at);
}

enum rt_pointee rt_pointee_read(const struct rt_pointees *p, struct rt_elfaddr at, uint8_t reg, const char *structure)
{
	struct holder h = { .p = p, .structure = structure };
	struct rt_instance inner;
	struct rt_insn load;
	bool more = find_load(p->b, at, reg, &load);

	h.load = &load;
	more = more && rt_dwarf_instance_at(p->b->module->dwarf, load.addr, &h.in);
	for (unsigned depth = 0; more && !h.found && depth < SCOPES_MAX; depth++) {
		rt_dwarf_names(p->b->module->dwarf, &h.in, load.addr, true, see_holder, &h);
		inner = h.in;
		more = rt_dwarf_instance_outer(p->b->module->dwarf, &inner, &h.in);
	}
	return h.found ? RT_POINTEE_OBJECT : h.other ? RT_POINTEE_OTHER : RT_POINTEE_UNKNOWN;
}
