/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/functions.h"

#include <elf.h>
#include <string.h>

#include "base/map.h"

struct build {
	const struct rt_image *image;
	const struct rt_symtab *symtab;
	struct rt_functions *out;
	struct rt_map by_addr; /* -> index of the list + 1 */
	struct rt_error *err;
};

static struct rt_error *add_aliases(struct build *b, const struct rt_symbol *first, const struct rt_symbol *end,
				    struct rt_listed *listed)
{
	const char **names = rt_arena_alloc(&b->out->arena, (size_t)(end - first) * sizeof(*names));
	size_t count = 0;

	if (!names)
		return rt_error_nomem();
	for (const struct rt_symbol *s = first; s < end; s++) {
		bool known = !s->function || s->plt || !strcmp(s->name, listed->name);

		for (size_t i = 0; i < count && !known; i++)
			known = !strcmp(names[i], s->name);
		if (!known)
			names[count++] = s->name;
	}
	listed->aliases = names;
	listed->alias_count = count;
	return NULL;
}

/* All symbols of one address are one function. */
static struct rt_error *add_symbols(struct build *b, const struct rt_symbol *first, const struct rt_symbol *end)
{
	const struct rt_symbol *main = rt_symtab_code_at(b->symtab, first->addr), *any = NULL;
	struct rt_listed *listed;
	uint64_t *slot;

	for (const struct rt_symbol *s = first; s < end; s++) {
		if (s->function && !s->plt && !any)
			any = s;
	}
	if (!any || !rt_image_is_code(b->image, first->addr))
		return NULL;
	if (!main || main->addr.v != first->addr.v || !main->function || main->plt)
		main = any;
	listed = rt_vec_add(&b->out->list);
	slot = listed ? rt_map_put(&b->by_addr, rt_key_make(first->addr.v, 0), NULL) : NULL;
	if (!slot)
		return rt_error_nomem();
	*slot = b->out->list.len;
	*listed = (struct rt_listed){ .name = main->name, .has_body = true, .addr = main->addr, .size = main->size };
	for (const struct rt_symbol *s = first; s < end; s++) {
		listed->ifunc |= s->ifunc && !s->plt;
		listed->exported |= s->dynamic && s->function && !s->plt;
		if (s->function && !s->plt && s->size > listed->size)
			listed->size = s->size;
	}
	return add_aliases(b, first, end, listed);
}

static struct rt_error *read_symbols(struct build *b)
{
	const struct rt_symbol *all = b->symtab->symbols, *end = all + b->symtab->count;

	for (const struct rt_symbol *s = all, *next; s < end; s = next) {
		for (next = s + 1; next < end && next->addr.v == s->addr.v;)
			next++;
		RT_TRY(add_symbols(b, s, next));
	}
	return NULL;
}

/* "name.part.0" is a piece of the function, and what is inlined elsewhere is not that piece. */
static bool is_clone(const struct rt_listed *listed, const struct rt_function *function)
{
	return strchr(listed->name, '.') && strcmp(listed->name, function->name) != 0;
}

/* Of several symbols, the one that the source says. */
static void prefer(struct rt_listed *listed, const char *name)
{
	for (size_t i = 0; i < listed->alias_count; i++) {
		const char *alias = listed->aliases[i];

		if (strcmp(alias, name) != 0)
			continue;
		listed->aliases[i] = listed->name;
		listed->name = alias;
	}
}

static bool take(const struct rt_function *function, void *arg)
{
	struct build *b = arg;
	uint64_t *slot = function->has_body ? rt_map_get(&b->by_addr, rt_key_make(function->addr.v, 0)) : NULL;
	struct rt_listed *listed = slot ? &b->out->list.data[*slot - 1] : NULL;

	if (!listed) {
		if (function->has_body && !rt_image_is_code(b->image, function->addr))
			return true;
		listed = rt_vec_add(&b->out->list);
		if (!listed) {
			b->err = rt_error_nomem();
			return false;
		}
		listed->name = function->linkage ?: function->name;
		listed->has_body = function->has_body;
		listed->addr = function->addr;
	}
	if (!listed->size)
		listed->size = function->size;
	prefer(listed, function->linkage ?: function->name);
	listed->source_name = function->name;
	listed->file = function->file;
	listed->line = function->line;
	listed->inlined = is_clone(listed, function) ? 0 : function->inlined;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct rt_listed *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (!order && x->addr.v != y->addr.v)
		order = x->addr.v < y->addr.v ? -1 : 1;
	if (!order && x->file && y->file)
		order = strcmp(x->file, y->file);
	return order;
}

struct rt_error *rt_functions_read(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_dwarf *dwarf,
				   struct rt_functions *ret)
{
	struct build b = { .image = image, .symtab = symtab, .out = ret };
	struct rt_error *err;

	*ret = (struct rt_functions){ 0 };
	err = read_symbols(&b);
	if (!err)
		err = rt_dwarf_each_function(dwarf, take, &b);
	rt_map_deinit(&b.by_addr);
	if (!err)
		err = b.err;
	if (!err && ret->list.len)
		qsort(ret->list.data, ret->list.len, sizeof(*ret->list.data), compare);
	return err;
}

void rt_functions_deinit(struct rt_functions *functions)
{
	rt_vec_deinit(&functions->list);
	rt_arena_deinit(&functions->arena);
}
