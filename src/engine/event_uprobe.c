// SPDX-License-Identifier: GPL-2.0-only
/* Uprobes by name: u:PATH:SYMBOL, u:PATH:SYMBOL+0x10, u:PATH:0xOFFSET. */
#include <fcntl.h>
#include <string.h>

#include "base/text.h"
#include "elf/symtab.h"
#include "engine/event_name_priv.h"
#include "probe/near.h"

static struct rt_error *no_function(const struct rt_symtab *symtab, const char *path, const char *symbol)
{
	struct rt_near near = { .wanted = symbol };
	struct rt_error *err = rt_error_new(RT_E_NOT_FOUND, "%s has no function '%s'", path, symbol);

	for (size_t i = 0; i < symtab->count; i++) {
		if (symtab->symbols[i].function && !symtab->symbols[i].plt)
			rt_near_offer(&near, symtab->symbols[i].name);
	}
	if (near.count)
		return rt_error_fix(err, "did you mean %s? all of them: nm %s", near.names[0], path);
	return rt_error_fix(err,
			    symtab->stripped ? "the file is stripped: write u:%s:0xOFFSET (file offset)"
					     : "all of them: nm %s",
			    path);
}

/* File offset of symbol[+offset] in the image. */
static struct rt_error *resolve(const char *path, char *symbol, uint64_t *ret)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = NULL;
	const struct rt_symbol *found;
	char *plus = strchr(symbol, '+');
	uint64_t add = 0;
	struct rt_foff offset;

	if (plus) {
		const char *digits = plus + 1;
		unsigned base = strncmp(digits, "0x", 2) ? 10 : 16;

		digits += base == 16 ? 2 : 0;
		if (!rt_parse_u64(digits, strlen(digits), base, &add))
			return rt_error_new(RT_E_USAGE, "'%s' is no offset", plus + 1);
		*plus = 0;
	}
	RT_TRY(rt_image_open(path, &image));
	RT_TRY(rt_image_find_debug(image, AT_FDCWD));
	RT_TRY(rt_symtab_create(image, &symtab));
	found = rt_symtab_find(symtab, symbol);
	if (!found)
		return no_function(symtab, path, symbol);
	if (!rt_image_offset(image, (struct rt_elfaddr){ found->addr.v + add }, &offset))
		return rt_error_new(RT_E_NOT_FOUND, "%s in %s has no code in the file", symbol, path);
	RT_TRY(rt_image_whole(image));
	*ret = offset.v;
	return NULL;
}

struct rt_error *rt_event_uprobe(const char *text, const char *place, bool at_return, struct rt_event_desc *desc)
{
	const char *colon = strrchr(place, ':'), *what = colon ? colon + 1 : "";
	_cleanup_free_ char *path = NULL, *symbol = NULL;
	char *real;
	unsigned base = strncmp(what, "0x", 2) ? 10 : 16;

	if (!colon || colon == place || !*what)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "-e '%s' names no place in a file", text),
				    "write u:PATH:FUNCTION or u:PATH:0xOFFSET (file offset); at the return: ur:...");
	path = strndup(place, (size_t)(colon - place));
	symbol = strdup(what);
	if (!path || !symbol)
		return rt_error_nomem();
	real = realpath(path, NULL);
	if (!real)
		return rt_error_errno(RT_E_NOT_FOUND, ENOENT, "-e '%s': cannot read %s", text, path);
	desc->path = real;
	desc->kind = RT_EVENT_UPROBE;
	desc->config = at_return;
	what += base == 16 ? 2 : 0;
	if (rt_parse_u64(what, strlen(what), base, &desc->offset))
		return NULL;
	return rt_error_wrap(resolve(real, symbol, &desc->offset), "-e '%s'", text);
}
