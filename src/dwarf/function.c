/* SPDX-License-Identifier: GPL-2.0-only */
/* All functions of a module, one for each piece of code, and those that have none. */
#include "dwarf/listing.h"
#include "dwarf/unit.h"

/* What is told of a function by its name and file, over all units: a header's function is in many. */
struct whole {
	uint32_t fn; /* the first one */
	uint32_t inlined;
	bool has_body;
};

struct wholes {
	struct rt_map index; /* (name, file) -> index of list + 1 */
	RT_VEC(struct whole) list;
};

/* NULL: out of memory */
static struct whole *whole_of(struct wholes *wholes, struct rt_dwarf *dwarf, uint32_t fn_index)
{
	struct rt_fn *fn = &dwarf->fns.data[fn_index];
	struct whole *whole;
	uint64_t *slot;

	rt_fn_resolve(dwarf, fn);
	/* interned: equal text, equal pointer */
	slot = rt_map_put(&wholes->index,
			  rt_key_make((uintptr_t)(fn->linkage ? fn->linkage : fn->name), (uintptr_t)fn->file), NULL);
	if (!slot)
		return NULL;
	if (*slot)
		return &wholes->list.data[*slot - 1];
	whole = rt_vec_add(&wholes->list);
	if (!whole)
		return NULL;
	*slot = wholes->list.len;
	whole->fn = fn_index;
	return whole;
}

static struct rt_error *count(struct rt_dwarf *dwarf, struct wholes *wholes)
{
	for (size_t u = 0; u < dwarf->units.len; u++) {
		struct rt_unit *unit = &dwarf->units.data[u];

		for (size_t i = 0; i < unit->nodes.len; i++) {
			struct rt_node *node = &unit->nodes.data[i];
			struct whole *whole = whole_of(wholes, dwarf, node->fn);

			if (!whole)
				return rt_error_nomem();
			if (!node->inlined) {
				whole->has_body = true;
				continue;
			}
			/* only then can it be the part of a split function that is no call */
			if (node->parent && unit->nodes.data[node->parent - 1].fn == node->fn)
				rt_node_name(dwarf, unit, node);
			whole->inlined += !node->split;
		}
	}
	return NULL;
}

static uint64_t range_size(const struct rt_unit *unit, const struct rt_node *node)
{
	size_t pos = SIZE_MAX;
	uint32_t index;

	while (rt_spans_next(&unit->spans, node->entry, &pos, &index)) {
		const struct rt_span *span = &unit->spans.v.data[pos];

		if (&unit->nodes.data[index] == node && span->lo == node->entry)
			return span->hi - span->lo;
	}
	return 0;
}

static struct rt_function about(const struct rt_fn *fn, const struct whole *whole)
{
	return (struct rt_function){
		.name = fn->name,
		.linkage = fn->linkage,
		.file = fn->file,
		.line = fn->line,
		.inlined = whole->inlined,
	};
}

static struct rt_error *tell(struct rt_dwarf *dwarf, struct wholes *wholes,
			     bool (*visit)(const struct rt_function *function, void *arg), void *arg)
{
	struct rt_function function;

	for (size_t u = 0; u < dwarf->units.len; u++) {
		struct rt_unit *unit = &dwarf->units.data[u];

		for (size_t i = 0; i < unit->nodes.len; i++) {
			const struct rt_node *node = &unit->nodes.data[i];
			const struct rt_fn *fn = &dwarf->fns.data[node->fn];
			const struct whole *whole;

			if (node->inlined || !fn->name)
				continue;
			whole = whole_of(wholes, dwarf, node->fn);
			if (!whole)
				return rt_error_nomem();
			function = about(fn, whole);
			function.has_body = true;
			function.addr.v = node->entry;
			function.size = range_size(unit, node);
			if (!visit(&function, arg))
				return NULL;
		}
	}
	for (size_t i = 0; i < wholes->list.len; i++) {
		const struct whole *whole = &wholes->list.data[i];
		const struct rt_fn *fn = &dwarf->fns.data[whole->fn];

		function = about(fn, whole);
		if (!whole->has_body && whole->inlined && fn->name && !visit(&function, arg))
			return NULL;
	}
	return NULL;
}

struct rt_error *rt_dwarf_each_function(struct rt_dwarf *dwarf,
					bool (*visit)(const struct rt_function *function, void *arg), void *arg)
{
	struct wholes wholes = { 0 };
	struct rt_error *err;

	if (!dwarf->dw)
		return NULL;
	RT_TRY(rt_dwarf_walk_all(dwarf));
	err = count(dwarf, &wholes);
	if (!err)
		err = tell(dwarf, &wholes, visit, arg);
	rt_map_deinit(&wholes.index);
	rt_vec_deinit(&wholes.list);
	return err;
}
