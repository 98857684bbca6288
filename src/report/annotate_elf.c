/* SPDX-License-Identifier: GPL-2.0-only */
/* A function of an ELF file: its code, and where DWARF says each instruction comes from. */
#include <string.h>

#include "elf/build_id.h"
#include "report/annotate_build.h"

enum { SCOPES = 16, UNSIZED_MAX = 4096, NEAR = 3 };

static struct rt_error *check_file(const struct rt_annotate_elf *what)
{
	char want[2 * RT_BUILD_ID_MAX + 1], have[2 * RT_BUILD_ID_WHOLE_MAX + 1];
	const struct rt_image *image = what->image;
	const char *path = what->path ?: "the module";

	if (!image)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "cannot annotate %s: the file is not here", path),
				    "bring the file back to that place, with the same build-id");
	if (!what->build_id_size || what->build_id_size > RT_BUILD_ID_MAX)
		return NULL;
	if (rt_build_id_fits(image->build_id, image->build_id_size, what->build_id, what->build_id_size))
		return NULL;
	rt_build_id_text(what->build_id, what->build_id_size, want);
	rt_build_id_text(image->build_id, image->build_id_size, have);
	return rt_error_fix(rt_error_new(RT_E_BUILD_ID,
					 "cannot annotate %s: its build-id is %s, that of the recording is %s", path,
					 image->build_id_size ? have : "missing", want),
			    "annotate with the file that was recorded, or record again");
}

static struct rt_error *no_function(const struct rt_annotate_elf *what)
{
	const char *path = what->path ?: what->image->name;
	struct rt_error *err;
	char near[512] = "";
	unsigned count = 0;
	size_t len = 0;

	if (!what->function)
		err = rt_error_new(RT_E_NO_FUNCTION, "no function of %s covers %#llx", path,
				   (unsigned long long)what->address.v);
	else
		err = rt_error_new(RT_E_NO_FUNCTION, "no function %s in %s", what->function, path);
	for (size_t i = 0; what->function && *what->function && i < what->symtab->count && count < NEAR; i++) {
		const struct rt_symbol *s = &what->symtab->symbols[i];
		int n;

		if (!s->function || s->plt || !strcasestr(s->name, what->function))
			continue;
		n = snprintf(near + len, sizeof(near) - len, "%s%s", count ? ", " : "", s->name);
		if (n < 0 || (size_t)n >= sizeof(near) - len)
			break;
		len += (size_t)n;
		count++;
	}
	if (count)
		return rt_error_fix(err, "did you mean %.*s?", (int)len, near);
	if (what->symtab->stripped)
		return rt_error_fix(err,
				    "the file is stripped: install its debug symbols, or keep the unstripped file");
	return err;
}

static const struct rt_symbol *find_function(const struct rt_annotate_elf *what)
{
	const struct rt_symbol *s = what->function ? rt_symtab_find(what->symtab, what->function)
						   : rt_symtab_at(what->symtab, what->address);

	return s && s->function && !s->plt ? s : NULL;
}

/* To the next symbol where the table does not tell. */
static uint64_t function_size(const struct rt_symtab *symtab, const struct rt_symbol *s)
{
	if (s->size)
		return s->size;
	for (const struct rt_symbol *next = s + 1; next < symtab->symbols + symtab->count; next++) {
		if (next->addr.v > s->addr.v)
			return next->addr.v - s->addr.v < UNSIZED_MAX ? next->addr.v - s->addr.v : UNSIZED_MAX;
	}
	return UNSIZED_MAX;
}

static void name_target(const struct rt_annotate_elf *what, struct rt_annotation *a, size_t index, uint64_t start)
{
	uint64_t to = rt_annotation_target(a, index), end = a->lines[a->line_count - 1].address;
	const struct rt_symbol *s;
	char text[320];

	/* inside of the function it gets a label, unless it calls itself */
	if (to == RT_NO_TARGET || (to > start && to <= end))
		return;
	if (to == start && strncmp(a->lines[index].text, "call", 4) != 0 &&
	    strncmp(a->lines[index].text, "bl ", 3) != 0)
		return;
	s = rt_symtab_at(what->symtab, (struct rt_elfaddr){ to });
	if (!s)
		return;
	if (s->addr.v == to)
		snprintf(text, sizeof(text), "%.256s%s", s->name, s->plt ? "@plt" : "");
	else
		snprintf(text, sizeof(text), "%.256s%s+0x%llx", s->name, s->plt ? "@plt" : "",
			 (unsigned long long)(to - s->addr.v));
	a->lines[index].target_name = rt_annotation_keep(a, text);
}

static void source_of(const struct rt_annotate_elf *what, struct rt_annotation *a, struct rt_annotation_line *line)
{
	struct rt_scope scopes[SCOPES];
	struct rt_source_line place;
	const char *source = NULL;
	bool stale = false;
	size_t count;

	if (!rt_dwarf_line(what->dwarf, (struct rt_elfaddr){ line->address }, &place) || !place.line)
		return;
	line->file = rt_annotation_keep(a, place.file);
	line->line = place.line;
	line->column = place.column;
	count = rt_dwarf_scopes(what->dwarf, (struct rt_elfaddr){ line->address }, scopes, SCOPES);
	if (count && scopes[0].inlined)
		line->inlined = rt_annotation_keep(a, scopes[0].function);
	if (what->namer && place.file)
		source = what->namer->source_line(what->namer, what->module, place.file, place.line, &stale);
	line->source = rt_annotation_keep(a, source);
	if (stale)
		rt_annotation_note(a, "source files are newer than the program: their lines are not shown");
}

struct rt_error *rt_annotate_elf(const struct rt_annotate_elf *what, const struct rt_annotate_hits *hits,
				 struct rt_annotation **ret)
{
	_cleanup_(rt_annotation_destroyp) struct rt_annotation *a = NULL;
	const struct rt_symbol *s;
	struct rt_bytes code;

	RT_TRY(check_file(what));
	s = find_function(what);
	if (!s)
		return no_function(what);
	code = rt_image_at(what->image, s->addr, function_size(what->symtab, s));
	if (!code.size)
		return rt_error_fix(rt_error_new(RT_E_FORMAT, "cannot annotate %s: %s holds no code for it", s->name,
						 what->path ?: what->image->name),
				    "this looks like a debug file: annotate with the program or library itself");
	RT_TRY(rt_annotation_begin(hits, &a));
	a->function = rt_annotation_keep(a, s->name);
	a->module = rt_annotation_keep(a, what->path ?: what->image->name);
	RT_TRY(rt_annotation_machine_code(a, what->image->machine, code, s->addr.v));
	for (size_t i = 0; i < a->line_count; i++) {
		name_target(what, a, i, s->addr.v);
		if (what->dwarf)
			source_of(what, a, &a->lines[i]);
	}
	if (!what->dwarf || !rt_dwarf_present(what->dwarf))
		rt_annotation_note(a, "no debug information: no source lines");
	for (size_t i = 0; i < hits->count; i++)
		rt_annotation_hit(a, rt_annotation_at(a, hits->hits[i].address), &hits->hits[i]);
	rt_annotation_end(a);
	*ret = rt_take(a);
	return NULL;
}
