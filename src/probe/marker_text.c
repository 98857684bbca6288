/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/marker_text.h"

#include <string.h>

#include "base/text.h"
#include "probe/operand.h"

enum { TEXTS_MAX = 32, OUTER_MAX = 64, POINTER_BYTES = 8 };

/*
 * Documented arguments: https://docs.python.org/3/howto/instrumentation.html, and the chapter on dynamic tracing of
 * PostgreSQL's manual. HotSpot's texts have a length beside them and no end, so they are none.
 */
static const struct {
	const char *provider, *name;
	uint32_t texts;
} known[] = {
	{ "python", "function__entry", 3 },
	{ "python", "function__return", 3 },
	{ "python", "line", 3 },
	{ "python", "import__find__load__start", 1 },
	{ "python", "import__find__load__done", 1 },
	{ "python", "audit", 1 },
	{ "postgresql", "query__start", 1 },
	{ "postgresql", "query__done", 1 },
	{ "postgresql", "query__parse__start", 1 },
	{ "postgresql", "query__parse__done", 1 },
	{ "postgresql", "query__rewrite__start", 1 },
	{ "postgresql", "query__rewrite__done", 1 },
	{ "postgresql", "statement__status", 1 },
};

struct search {
	struct rt_dwarf *dwarf;
	struct rt_instance instance;
	struct rt_elfaddr at;
	const struct rt_operand *operands;
	unsigned count;
	uint32_t texts;
	uint32_t seen, found; /* of this instance: variables of any type, and texts among them */
};

/* Is the value of the variable just what the operand says? */
static bool is_there(const struct rt_location *l, const struct rt_operand *o)
{
	if (l->base != RT_LOCATION_REG || l->at_entry || l->deref_count || l->reg != o->base)
		return false;
	if (o->kind == RT_OPERAND_REG)
		return l->is_value && !l->offset;
	return o->kind == RT_OPERAND_MEMORY && o->index == RT_REG_NONE && !l->is_value && l->offset == o->value;
}

/* uint8_t and the like are bytes */
static bool is_char_pointer(const struct rt_datum *d)
{
	const char *type = d->type ?: "";

	type += strncmp(type, "const ", 6) ? 0 : 6;
	return d->kind == RT_DATUM_POINTER && d->is_text && !strncmp(type, "char", 4) && !rt_is_word(type[4]);
}

static void see(const char *name, void *arg)
{
	struct search *s = arg;
	struct rt_datum datum;

	if (rt_dwarf_datum(s->dwarf, &s->instance, s->at, name, NULL, 0, &datum))
		return;
	for (unsigned i = 0; i < s->count; i++) {
		if (s->operands[i].size != POINTER_BYTES || !is_there(&datum.where, &s->operands[i]))
			continue;
		s->seen |= UINT32_C(1) << i;
		if (is_char_pointer(&datum))
			s->found |= UINT32_C(1) << i;
	}
}

uint32_t rt_marker_texts(const struct rt_image *image, struct rt_dwarf *dwarf, const struct rt_sdt_marker *marker)
{
	struct rt_operand operands[TEXTS_MAX];
	struct search s = { .dwarf = dwarf, .at = marker->location, .operands = operands };
	const char *args = marker->args;
	uint32_t decided = 0;
	bool more;

	while (s.count < TEXTS_MAX && rt_operand_next(&args, image->machine, &operands[s.count]))
		s.count++;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].provider, marker->provider) && !strcmp(known[i].name, marker->name))
			s.texts = known[i].texts & ((UINT64_C(1) << s.count) - 1);
	if (s.texts || !s.count || !dwarf || !rt_dwarf_present(dwarf))
		return s.texts;
	more = rt_dwarf_instance_at(dwarf, s.at, &s.instance);
	for (unsigned i = 0; more && i < OUTER_MAX; i++) {
		struct rt_instance outer;

		/* of one value with several types, that of the innermost function is the marker's */
		s.found = s.seen = 0;
		rt_dwarf_names(dwarf, &s.instance, s.at, true, see, &s);
		s.texts |= s.found & ~decided;
		decided |= s.seen;
		more = rt_dwarf_instance_outer(dwarf, &s.instance, &outer);
		s.instance = outer;
	}
	return s.texts;
}
