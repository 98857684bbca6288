/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What objects tell of their class: the engine reads one word of the object, a pointer most often, with each event.
 * What that leads to stays for the life of the process, so it is read here when the word is met for the first time, and
 * told before the event. A word that leads nowhere is of no class.
 */
#include <string.h>

#include "elf/demangle.h"
#include "probe/text_table.h"
#include "session/batch.h"

enum { CLASS_NAME = 256 };

static const struct rt_spec_type *type_of(const struct rt_session *s, uint32_t id)
{
	for (size_t i = 0; i < s->batches.len; i++) {
		const struct rt_batch *b = s->batches.data[i];

		if (id > b->type_base && id - b->type_base <= b->spec->types.len)
			return &b->spec->types.data[id - b->type_base - 1];
	}
	return NULL;
}

static bool read_word(uint32_t pid, uint64_t address, void *ret, size_t size)
{
	return rt_proc_read(pid, address, ret, size) == size;
}

/* A text that ends, and holds what can be shown. */
static bool read_text(uint32_t pid, uint64_t address, char text[CLASS_NAME])
{
	size_t n = rt_proc_read(pid, address, text, CLASS_NAME), whole = CLASS_NAME - address % CLASS_NAME;

	/* it may lie right before what is not mapped */
	if (!n)
		n = rt_proc_read(pid, address, text, whole);
	if (!n || !text[0] || !memchr(text, 0, n))
		return false;
	for (const char *c = text; *c; c++) {
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return false;
	}
	return true;
}

/* Where the module keeps the texts of numbers that FN[@DSO] knows. */
static bool table_of(struct rt_session *s, const struct rt_session_map *map, const char *function, uint64_t *ret)
{
	_cleanup_(rt_decoder_destroyp) struct rt_decoder *decoder = NULL;
	struct rt_module *m = rt_session_module(s, map->module);
	const struct rt_symtab *symtab = NULL;
	const struct rt_symbol *symbol;
	struct rt_elfaddr at;
	uint64_t bias;

	rt_error_free(rt_module_symtab(m, &symtab));
	symbol = symtab ? rt_symtab_find(symtab, function) : NULL;
	if (!symbol || symbol->plt || !symbol->function || !rt_session_map_bias(s, map, &bias))
		return false;
	rt_error_free(rt_decoder_create(m->image->machine, &decoder));
	if (!decoder || !rt_text_table(m->image, symtab, decoder, symbol, &at))
		return false;
	*ret = at.v + bias;
	return true;
}

static bool find_table(struct rt_session *s, const struct rt_process *p, const struct rt_spec_type *type, uint64_t *ret)
{
	_cleanup_free_ char *function = strndup(type->klass + type->path.lookup, type->path.lookup_len);
	char *dso = function ? strchr(function, '@') : NULL;

	if (dso)
		*dso++ = 0;
	for (size_t i = 0; function && i < p->maps.len; i++) {
		const struct rt_session_map *map = &p->maps.data[i];
		const struct rt_module *m = map->executable ? rt_session_module(s, map->module) : NULL;

		if (m && (!dso || !strncmp(rt_module_basename(m), dso, strlen(dso))) && table_of(s, map, function, ret))
			return true;
	}
	return false;
}

/* What FN says of the number at the end of the path. */
static bool look_up(struct rt_session *s, const struct rt_process *p, const struct rt_spec_type *type, uint32_t number,
		    uint64_t *ret)
{
	enum { NUMBERS = 1 << 24 };
	uint64_t variable, table;

	return number < NUMBERS && find_table(s, p, type, &variable) &&
	       read_word(p->tgid, variable, &table, sizeof(table)) &&
	       read_word(p->tgid, table + 8ull * number, ret, sizeof(*ret));
}

/* "N2ns6ButtonE" is ns::Button; a star before it tells the linker something */
static void demangle(char text[CLASS_NAME])
{
	static const char type_info[] = "typeinfo for ";
	_cleanup_free_ char *mangled = NULL, *name = NULL;

	if (asprintf(&mangled, "_ZTI%s", text + (*text == '*')) < 0) {
		mangled = NULL;
		return;
	}
	name = rt_demangle(mangled);
	if (name && !strncmp(name, type_info, sizeof(type_info) - 1))
		snprintf(text, CLASS_NAME, "%s", name + sizeof(type_info) - 1);
}

/* Follows the path from the word, which the engine has read at its beginning. */
static bool read_name(struct rt_session *s, const struct rt_process *p, const struct rt_spec_type *type, uint64_t word,
		      char text[CLASS_NAME])
{
	const struct rt_class_path *path = &type->path;
	uint32_t number;

	for (unsigned i = 1; i < path->steps; i++) {
		uint64_t at = word + (uint64_t)(int64_t)path->step[i];

		if (i + 1 == path->steps && path->lookup_len) {
			if (!read_word(p->tgid, at, &number, sizeof(number)) || !look_up(s, p, type, number, &word))
				return false;
		} else if (!read_word(p->tgid, at, &word, sizeof(word))) {
			return false;
		}
	}
	if (!read_text(p->tgid, word, text))
		return false;
	if (path->mangled)
		demangle(text);
	return true;
}

static struct rt_error *take_word(struct rt_session *s, const struct rt_wire_event *e, uint32_t type)
{
	const struct rt_process *p = rt_session_process(s, RT_PID_OF(e->head.pid));
	const struct rt_spec_type *spec = type_of(s, type);
	_cleanup_free_ struct rt_wire_class *record = NULL;
	char text[CLASS_NAME];

	if (!p || !spec || rt_process_wire(p) != e->head.pid || !read_name(s, p, spec, e->aux, text))
		return NULL;
	record = rt_record_class(type, e->aux, text);
	if (!record)
		return rt_error_nomem();
	record->head.time_ns = e->head.time_ns;
	record->head.pid = e->head.pid;
	return s->hooks.sink->record(s->hooks.sink, &record->head);
}

struct rt_error *rt_class_events(struct rt_session *s, const struct rt_wire_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct rt_wire_event *e = &events[i];
		const struct rt_point *p =
			e->aux && e->point && e->point <= s->points.len ? &s->points.data[e->point - 1] : NULL;
		bool made;

		if (!p || !p->class_at)
			continue;
		if (!rt_map_put(&s->class_words, rt_key_make(e->aux, (uint64_t)e->head.pid << 32 | p->type), &made))
			return rt_error_nomem();
		if (made)
			RT_TRY(take_word(s, e, p->type));
	}
	return NULL;
}
