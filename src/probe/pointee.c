/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/pointee.h"

#include <stdlib.h>
#include <string.h>

#include "dwarf/listing.h"

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

bool rt_same_struct(const char *a, const char *b)
{
	size_t n = bare(&a), m = bare(&b);

	return n && n == m && !memcmp(a, b, n);
}

unsigned rt_pointee_stars(const char *type)
{
	unsigned n = 0;

	for (const char *s = type; s && (s = strchr(s, '*')); s++)
		n++;
	return n;
}

unsigned rt_points_to(const char *type, const char *structure)
{
	unsigned stars = rt_pointee_stars(type);

	return stars && rt_same_struct(type, structure) ? stars : 0;
}

bool rt_pointee_based(const struct rt_datum *d)
{
	return d->kind == RT_DATUM_POINTER && d->where.base == RT_LOCATION_REG && d->where.is_value &&
	       !d->where.at_entry && !d->where.deref_count && !d->where.in_frame;
}

static bool add_member(const struct rt_pointer_member *member, void *arg)
{
	struct rt_pointees *p = arg;

	return !member->pointee || rt_vec_push(&p->members, *member);
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
	rt_writers_deinit(&p->writers);
}

bool rt_pointee_member(const struct rt_pointees *p, const char *type, int64_t offset, struct rt_typed *ret)
{
	size_t low = 0, high = p->members.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->members.data[middle].offset < (uint64_t)offset)
			low = middle + 1;
		else
			high = middle;
	}
	for (; offset >= 0 && low < p->members.len && p->members.data[low].offset == (uint64_t)offset; low++) {
		const struct rt_pointer_member *m = &p->members.data[low];

		if (rt_same_struct(type, m->structure)) {
			*ret = (struct rt_typed){ m->pointee, m->pointers };
			return true;
		}
	}
	return false;
}
