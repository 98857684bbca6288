/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/kallsyms.h"

#include <string.h>

#include "base/text.h"
#include "elf/symtab_build.h"

enum { NAME_MAX_BYTES = 512 };

static bool parse(const char *line, size_t len, struct rt_kallsym *ret)
{
	const char *end = memchr(line, ' ', len), *tab;
	size_t left;

	if (!end || (size_t)(end - line) + 3 >= len || !rt_parse_u64(line, (size_t)(end - line), 16, &ret->address) ||
	    !end[1] || end[2] != ' ')
		return false;
	ret->type = end[1];
	ret->name = end + 3;
	left = len - (size_t)(ret->name - line);
	tab = memchr(ret->name, '\t', left);
	ret->len = tab ? (size_t)(tab - ret->name) : left;
	ret->module = tab ? tab + 1 : NULL;
	ret->module_len = tab ? left - ret->len - 1 : 0;
	return ret->len && ret->len < NAME_MAX_BYTES;
}

bool rt_kallsyms_next(struct rt_bytes text, size_t *pos, struct rt_kallsym *ret)
{
	while (*pos < text.size) {
		const char *line = (const char *)text.data + *pos;
		const char *end = memchr(line, '\n', text.size - *pos);
		size_t len = end ? (size_t)(end - line) : text.size - *pos;

		*pos += len + !!end;
		if (parse(line, len, ret))
			return true;
	}
	return false;
}

static struct rt_error *collect(struct rt_bytes text, struct rt_symtab_build *build)
{
	struct rt_kallsym k;
	size_t pos = 0;

	while (rt_kallsyms_next(text, &pos, &k)) {
		struct rt_symbol symbol = { .addr = { k.address } };

		/* others are per-CPU offsets, or were hidden */
		if (k.module || !(k.address >> 63))
			continue;
		symbol.name = symbol.full = rt_arena_strndup(build->arena, k.name, k.len);
		if (!symbol.name)
			return rt_error_nomem();
		symbol.function = strchr("tTwW", k.type) != NULL;
		symbol.bind = k.type == 't' ? RT_BIND_LOCAL : strchr("wW", k.type) ? RT_BIND_WEAK : RT_BIND_GLOBAL;
		RT_TRY(rt_symtab_add(build, &symbol, (struct rt_elfaddr){ UINT64_MAX }));
	}
	build->has_symtab = build->symbols.len;
	return NULL;
}

struct rt_error *rt_symtab_of_kallsyms(struct rt_bytes text, struct rt_symtab **ret)
{
	struct rt_symtab_build build = { 0 };
	struct rt_symtab *symtab;

	RT_TRY(rt_symtab_begin(&build, &symtab));
	return rt_symtab_finish(collect(text, &build), &build, symtab, ret);
}
