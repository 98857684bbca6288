/* SPDX-License-Identifier: GPL-2.0-only */
/* Members of structs, and which of them is the reference counter. */
#include <ctype.h>
#include <string.h>

#include "dwarf/types.h"

#define RT_NESTING_MAX 8
#define RT_MEMBERS_MAX 20000 /* looked at per question */

struct search {
	struct rt_dwarf *dwarf;
	unsigned budget;
};

/* Where a member starts in its struct. */
bool rt_member_offset(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	Dwarf_Op *ops;
	size_t nops;

	if (dwarf_attr(die, DW_AT_data_member_location, &attr)) {
		if (dwarf_formudata(&attr, &value) == 0) {
			*ret = value;
			return true;
		}
		if (dwarf_getlocation(&attr, &ops, &nops) != 0 || nops != 1 || ops[0].atom != DW_OP_plus_uconst)
			return false;
		*ret = ops[0].number;
		return true;
	}
	if (dwarf_attr(die, DW_AT_data_bit_offset, &attr)) {
		if (dwarf_formudata(&attr, &value) != 0)
			return false;
		*ret = value / 8;
		return true;
	}
	*ret = 0; /* members of unions have no place attribute */
	return true;
}

bool rt_is_member(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	/* static members of classes are declarations */
	return (tag == DW_TAG_member || tag == DW_TAG_inheritance) && !dwarf_hasattr(die, DW_AT_external) &&
	       !dwarf_hasattr(die, DW_AT_declaration);
}

/* Member `name` (len bytes) of a struct; looks into nameless ones and base classes. */
static bool find_member(struct search *s, Dwarf_Die *structure, const char *name, size_t len, unsigned level,
			uint64_t *ret_offset, Dwarf_Die *ret)
{
	Dwarf_Die child, type, inner;
	uint64_t offset;

	if (level > RT_NESTING_MAX || dwarf_child(structure, &child) != 0)
		return false;
	do {
		const char *own;

		if (!rt_is_member(&child) || !rt_die_type(&child, &type) || !rt_member_offset(&child, &offset))
			continue;
		if (!s->budget--) {
			s->budget = 0;
			return false;
		}
		own = dwarf_tag(&child) == DW_TAG_member ? dwarf_diename(&child) : NULL;
		if (own && strlen(own) == len && memcmp(own, name, len) == 0) {
			*ret_offset = offset;
			*ret = child;
			return true;
		}
		if (!own && rt_type_struct(s->dwarf, &type, &inner) &&
		    find_member(s, &inner, name, len, level + 1, ret_offset, ret)) {
			*ret_offset += offset;
			return true;
		}
	} while (rt_die_next(&child));
	return false;
}

bool rt_member_find(struct rt_dwarf *dwarf, Dwarf_Die *structure, const char *name, uint64_t *ret_offset,
		    Dwarf_Die *ret)
{
	struct search s = { .dwarf = dwarf, .budget = RT_MEMBERS_MAX };

	return find_member(&s, structure, name, strlen(name), 0, ret_offset, ret);
}

static void fill(struct rt_dwarf *dwarf, uint64_t offset, Dwarf_Die *type, struct rt_member *ret)
{
	struct rt_param text = { 0 };
	Dwarf_Word size = 0;
	Dwarf_Die inner;

	if (rt_type_struct(dwarf, type, &inner))
		dwarf_aggregate_size(&inner, &size);
	else if (dwarf_aggregate_size(type, &size) != 0)
		size = 0;
	rt_type_spell(dwarf, type, &text);
	*ret = (struct rt_member){ .offset = offset, .size = size <= UINT32_MAX ? size : 0, .type = text.type };
}

bool rt_dwarf_member(struct rt_dwarf *dwarf, const char *structure, const char *member, struct rt_member *ret)
{
	struct search s = { .dwarf = dwarf, .budget = RT_MEMBERS_MAX };
	uint64_t total = 0, offset;
	Dwarf_Die at, die, type;

	if (!rt_type_find(dwarf, structure, &at))
		return false;
	for (;;) {
		size_t len = strcspn(member, ".");

		if (!find_member(&s, &at, member, len, 0, &offset, &die) || !rt_die_type(&die, &type))
			return false;
		total += offset;
		if (!member[len])
			break;
		member += len + 1;
		if (!rt_type_struct(dwarf, &type, &at))
			return false;
	}
	fill(dwarf, total, &type, ret);
	return true;
}

/* How much a member's name looks like a counter of references: 0 is best, -1 not at all. */
static int name_rank(const char *name)
{
	static const char *const names[] = { "refcount", "refcnt",  "ref_count",       "ref_cnt",    "refs",
					     "nref",     "nrefs",   "num_refs",        "ref",        "kref",
					     "rc",       "usage",   "use_count",       "usecount",   "usage_count",
					     "users",    "uses",    "reference_count", "references", "reference",
					     "refc",     "counter", "count",           "cnt" };
	static const char *const parts[] = { "refcount", "refcnt", "ref_count", "ref_cnt", "usecount", "use_count" };
	static const char *const ends[] = { "_ref", "_refs", "_nref", "_usage", "_rc", "_users" };
	char low[64];
	size_t n = 0;

	if (strncmp(name, "m_", 2) == 0)
		name += 2;
	while (*name == '_')
		name++;
	for (; name[n] && n < sizeof(low) - 1; n++)
		low[n] = tolower((unsigned char)name[n]);
	low[n] = '\0';
	while (n && low[n - 1] == '_')
		low[--n] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		/* the last three say "counter" of whatever: behind everything that says "reference" */
		if (strcmp(low, names[i]) == 0)
			return i < 21 ? (int)i : (int)i + 40;
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (strstr(low, parts[i]))
			return 30 + (int)i;
	}
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		size_t len = strlen(ends[i]);

		if (n > len && strcmp(low + n - len, ends[i]) == 0)
			return 40 + (int)i;
	}
	return -1;
}

/* An integer that can count: no bool, no bit field. */
static bool is_integer(Dwarf_Die *type)
{
	uint64_t encoding, size;

	if (dwarf_tag(type) != DW_TAG_base_type || !rt_die_number(type, DW_AT_encoding, &encoding) ||
	    !rt_die_number(type, DW_AT_byte_size, &size))
		return false;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return false;
	return encoding == DW_ATE_signed || encoding == DW_ATE_unsigned || encoding == DW_ATE_signed_char ||
	       encoding == DW_ATE_unsigned_char;
}

/* The integer that type is, or that is all there is in the struct (atomic_t, kref, std::atomic). */
static bool the_integer(struct search *s, Dwarf_Die *type, unsigned level, uint64_t *ret_offset, Dwarf_Die *ret_type)
{
	Dwarf_Die at, child, member, found_type = { 0 };
	uint64_t offset, inner, found = 0;
	bool any = false;

	if (level > 4 || !rt_type_peel(type, &at))
		return false;
	if (is_integer(&at)) {
		*ret_offset = 0;
		*ret_type = at;
		return true;
	}
	if (!rt_type_struct(s->dwarf, &at, &at) || dwarf_child(&at, &child) != 0)
		return false;
	do {
		if (!rt_is_member(&child) || !rt_die_type(&child, &member) || !rt_member_offset(&child, &offset))
			continue;
		if (any || !s->budget || dwarf_hasattr(&child, DW_AT_bit_size))
			return false;
		s->budget--;
		if (!the_integer(s, &member, level + 1, &inner, &found_type))
			return false;
		found = offset + inner;
		any = true;
	} while (rt_die_next(&child));
	if (!any)
		return false;
	*ret_offset = found;
	*ret_type = found_type;
	return true;
}

/*
 * A counter and who is told when it is 0, or whom it belongs to: such a struct is there for the counter alone, and what
 * has one has that counter.
 */
static bool is_counter_with_pointers(struct search *s, Dwarf_Die *structure)
{
	unsigned counters = 0, pointers = 0;
	Dwarf_Die child, type, integer;
	uint64_t within;

	if (dwarf_tag(structure) == DW_TAG_union_type || dwarf_child(structure, &child) != 0)
		return false;
	do {
		const char *name;

		if (!rt_is_member(&child))
			continue;
		name = dwarf_tag(&child) == DW_TAG_member ? dwarf_diename(&child) : NULL;
		if (!s->budget || !name || !rt_die_type(&child, &type) || dwarf_hasattr(&child, DW_AT_bit_size))
			return false;
		s->budget--;
		if (the_integer(s, &type, 0, &within, &integer))
			counters += name_rank(name) >= 0 ? 1 : 2;
		else if (rt_type_peel(&type, &type) && dwarf_tag(&type) == DW_TAG_pointer_type)
			pointers++;
		else
			return false;
	} while (rt_die_next(&child));
	return counters == 1 && pointers <= 2;
}

struct best {
	int rank; /* -1: none yet */
	uint64_t offset;
	Dwarf_Die type;
};

/* Each level of nesting weighs more than any name: a struct's own counter comes before its members'. */
static void rank_members(struct search *s, Dwarf_Die *structure, uint64_t base, int level, unsigned depth,
			 struct best *best)
{
	Dwarf_Die child, type, integer, inner;
	uint64_t offset, within;

	if (level > 3 || depth > RT_NESTING_MAX || dwarf_child(structure, &child) != 0)
		return;
	do {
		const char *name;
		int rank;

		if (!rt_is_member(&child) || !rt_die_type(&child, &type) || !rt_member_offset(&child, &offset))
			continue;
		if (!s->budget)
			return;
		s->budget--;
		name = dwarf_tag(&child) == DW_TAG_member ? dwarf_diename(&child) : NULL;
		rank = name ? name_rank(name) : -1;
		if (rank >= 0 && !dwarf_hasattr(&child, DW_AT_bit_size) &&
		    the_integer(s, &type, 0, &within, &integer)) {
			rank += 100 * level;
			if (best->rank < 0 || rank < best->rank)
				*best = (struct best){ rank, base + offset + within, integer };
		} else if (rt_type_struct(s->dwarf, &type, &inner)) {
			if (name && !is_counter_with_pointers(s, &inner))
				rank_members(s, &inner, base + offset, level + 1, depth + 1, best);
			else
				rank_members(s, &inner, base + offset, level, depth + 1, best);
		}
	} while (rt_die_next(&child));
}

bool rt_dwarf_counter(struct rt_dwarf *dwarf, const char *structure, struct rt_member *ret)
{
	struct search s = { .dwarf = dwarf, .budget = RT_MEMBERS_MAX };
	struct best best = { .rank = -1 };
	Dwarf_Die type;

	if (!rt_type_find(dwarf, structure, &type))
		return false;
	rank_members(&s, &type, 0, 0, 0, &best);
	if (best.rank < 0)
		return false;
	fill(dwarf, best.offset, &best.type, ret);
	ret->says_reference = best.rank % 100 < 60;
	ret->level = (uint8_t)(best.rank / 100);
	return true;
}

struct pointers {
	struct search s;
	const char *structure;
	bool (*visit)(const struct rt_pointer_member *member, void *arg);
	void *arg;
	bool stopped;
};

/* What the elements of a small array are, and how many pointers it has room for; 1 for what is no array: itself. */
static uint64_t take_apart(Dwarf_Die *type)
{
	Dwarf_Die array;
	Dwarf_Word size;

	if (!rt_type_peel(type, &array) || dwarf_tag(&array) != DW_TAG_array_type)
		return 1;
	if (dwarf_aggregate_size(&array, &size) != 0 || !rt_die_type(&array, type))
		return 0;
	return size / 8 <= RT_ELEMENTS_MAX ? size / 8 : 0;
}

static void see_pointers(struct pointers *p, Dwarf_Die *structure, uint64_t base, unsigned level)
{
	Dwarf_Die child, type, inner;
	uint64_t offset, elements;

	if (level > RT_NESTING_MAX || dwarf_child(structure, &child) != 0)
		return;
	do {
		struct rt_param spelled = { 0 };

		if (!rt_is_member(&child) || !rt_die_type(&child, &type) || !rt_member_offset(&child, &offset))
			continue;
		if (!p->s.budget)
			return;
		p->s.budget--;
		if (rt_type_struct(p->s.dwarf, &type, &inner)) {
			see_pointers(p, &inner, base + offset, level + 1);
			continue;
		}
		elements = take_apart(&type);
		if (!rt_type_peel(&type, &inner) || dwarf_tag(&inner) != DW_TAG_pointer_type)
			continue;
		rt_type_spell(p->s.dwarf, &type, &spelled);
		/* of a union, what it holds is a matter of what the others are */
		if (spelled.pointers > 2 || (!spelled.pointee && (spelled.pointers != 1 || !spelled.type ||
								  strcmp(spelled.type, "void *") != 0 ||
								  dwarf_tag(structure) == DW_TAG_union_type)))
			continue;
		for (uint64_t i = 0; i < elements && !p->stopped; i++)
			p->stopped = !p->visit(&(struct rt_pointer_member){ .structure = p->structure,
									    .pointee = spelled.pointee,
									    .offset = base + offset + 8 * i,
									    .pointers = spelled.pointers },
					       p->arg);
	} while (!p->stopped && rt_die_next(&child));
}

struct rt_error *rt_type_each_struct(struct rt_dwarf *dwarf,
				     bool (*visit)(const char *name, Dwarf_Die *structure, void *arg), void *arg)
{
	bool more = true;

	if (!dwarf->dw)
		return NULL;
	RT_TRY(rt_types_read(dwarf));
	for (size_t i = 0; i < dwarf->type_dies.len && more; i++) {
		Dwarf_Die die = dwarf->type_dies.data[i], structure;
		bool is_name = dwarf_tag(&die) == DW_TAG_typedef;
		const char *name;

		/* what has a tag is there by that */
		if (!rt_type_struct(dwarf, &die, &structure) || (is_name && dwarf_diename(&structure)))
			continue;
		name = rt_dwarf_text(dwarf, dwarf_diename(&die));
		more = !name || visit(name, &structure, arg);
	}
	return NULL;
}

static bool see_struct(const char *name, Dwarf_Die *structure, void *arg)
{
	struct pointers *p = arg;

	p->structure = name;
	see_pointers(p, structure, 0, 0);
	return !p->stopped;
}

struct rt_error *rt_dwarf_pointer_members(struct rt_dwarf *dwarf,
					  bool (*visit)(const struct rt_pointer_member *member, void *arg), void *arg)
{
	struct pointers p = { .s = { .dwarf = dwarf, .budget = 100 * RT_MEMBERS_MAX }, .visit = visit, .arg = arg };

	return rt_type_each_struct(dwarf, see_struct, &p);
}

/* the first name of a type, behind qualifiers */
static const char *name_of(Dwarf_Die *type)
{
	const char *name = dwarf_diename(type);
	Dwarf_Die at = *type, next;

	for (unsigned i = 0; !name && i < RT_DWARF_HOPS_MAX && rt_die_type(&at, &next); i++) {
		at = next;
		name = dwarf_diename(&at);
	}
	return name;
}

/* the name of the struct that lies at the beginning of this one, which is *ret then; NULL: none that has a name */
static const char *head_of(struct rt_dwarf *dwarf, Dwarf_Die *structure, Dwarf_Die *ret)
{
	Dwarf_Die child, type;
	uint64_t offset;

	if (dwarf_tag(structure) == DW_TAG_union_type || dwarf_child(structure, &child) != 0)
		return NULL;
	do {
		if (!rt_is_member(&child) && dwarf_tag(&child) != DW_TAG_inheritance)
			continue;
		if (!rt_die_type(&child, &type) || !rt_member_offset(&child, &offset) || offset ||
		    !rt_type_struct(dwarf, &type, ret))
			return NULL;
		return dwarf_diename(ret) ? dwarf_diename(ret) : name_of(&type);
	} while (rt_die_next(&child));
	return NULL;
}

struct heads {
	struct rt_dwarf *dwarf;
	bool (*visit)(const char *structure, const char *head, void *arg);
	void *arg;
};

static bool see_head(const char *name, Dwarf_Die *structure, void *arg)
{
	const struct heads *h = arg;
	Dwarf_Die inner;
	const char *head = head_of(h->dwarf, structure, &inner);

	head = head ? rt_dwarf_text(h->dwarf, head) : NULL;
	return !head || h->visit(name, head, h->arg);
}

struct rt_error *rt_dwarf_heads(struct rt_dwarf *dwarf,
				bool (*visit)(const char *structure, const char *head, void *arg), void *arg)
{
	struct heads h = { .dwarf = dwarf, .visit = visit, .arg = arg };

	return rt_type_each_struct(dwarf, see_head, &h);
}

const char *rt_type_spell_heads(struct rt_dwarf *dwarf, Dwarf_Die *type, const struct rt_param *spelled)
{
	enum { DEPTH = 8 };
	const char *text = spelled->type, *head;
	Dwarf_Die pointer, at, inner;

	if (spelled->pointers != 1 || !spelled->pointee || !rt_type_peel(type, &pointer) ||
	    !rt_die_type(&pointer, &at) || !rt_type_peel(&at, &at) || !rt_type_is_aggregate(&at))
		return text;
	for (unsigned i = 0; i < DEPTH && text && (head = head_of(dwarf, &at, &inner)); i++) {
		_cleanup_free_ char *longer = NULL;

		if (asprintf(&longer, "%s|struct %s *", text, head) < 0)
			return NULL;
		text = rt_dwarf_text(dwarf, longer);
		at = inner;
	}
	return text;
}
