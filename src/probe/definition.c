/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/definition.h"

#include <ctype.h>
#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "base/intern.h"
#include "base/text.h"
#include "probe/spec_type.h"

bool rt_marker_name(const struct rt_sdt_marker *m, char text[RT_MARKER_NAME_MAX])
{
	return snprintf(text, RT_MARKER_NAME_MAX, RT_SPEC_MARKER "%s:%s", m->provider, m->name) < RT_MARKER_NAME_MAX;
}

const char *rt_kernel_register(uint8_t reg)
{
	static const char *const names[] = { "ax", "dx", "cx",  "bx",  "si",  "di",  "bp",  "sp",
					     "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" };

	return reg < sizeof(names) / sizeof(names[0]) ? names[reg] : NULL;
}

/* As the kernel's regs_query_register_offset() knows it (arch/.../kernel/ptrace.c). false: it does not. */
static bool register_name(uint16_t machine, uint8_t reg, char text[8])
{
	if (machine == RT_MACHINE_X86_64 && rt_kernel_register(reg))
		snprintf(text, 8, "%s", rt_kernel_register(reg));
	else if (machine == RT_MACHINE_AARCH64 && reg < 31)
		snprintf(text, 8, "x%u", reg);
	else if (machine == RT_MACHINE_AARCH64 && reg == 31)
		snprintf(text, 8, "sp");
	else
		return false;
	return true;
}

struct line {
	const struct rt_marker_file *file;
	const struct rt_sdt_marker *marker;
	struct rt_foff offset;
};

static const struct rt_symbol *operand_symbol(const struct line *l, const struct rt_operand *o)
{
	char name[256];

	if (o->symbol_len >= sizeof(name) || !l->file->symtab)
		return NULL;
	memcpy(name, o->symbol, o->symbol_len);
	name[o->symbol_len] = 0;
	return rt_symtab_find(l->file->symtab, name);
}

/* "%di", "+8(%di)", "\\5", "@+0x3020" into text. NULL, or why tracefs has no word for it. */
static const char *fetch(const struct line *l, const struct rt_operand *o, char text[64])
{
	uint16_t machine = l->file->image->machine;
	const struct rt_symbol *symbol = NULL;
	uint64_t offset;
	char reg[8];

	if (o->kind == RT_OPERAND_UNKNOWN)
		return o->why;
	if (o->is_float)
		return "the kernel's probes read no floating-point registers";
	if (o->index != RT_REG_NONE)
		return "the kernel's probes cannot add an index";
	if (o->base != RT_REG_NONE && !register_name(machine, o->base, reg))
		return "the kernel's probes do not read this register";
	if (o->kind == RT_OPERAND_SYMBOL || o->kind == RT_OPERAND_ADDRESS) {
		symbol = operand_symbol(l, o);
		if (!symbol)
			return "the file does not have its symbol";
	}
	switch (o->kind) {
	case RT_OPERAND_REG:
		snprintf(text, 64, "%%%s", reg);
		return NULL;
	case RT_OPERAND_MEMORY:
		if (o->base != RT_REG_NONE)
			snprintf(text, 64, "%+" PRId64 "(%%%s)", o->value, reg);
		else
			snprintf(text, 64, "@0x%" PRIx64, (uint64_t)o->value);
		return o->base == RT_REG_NONE && o->value < 0 ? "the kernel's probes read no such address" : NULL;
	case RT_OPERAND_CONST:
		snprintf(text, 64, "\\%" PRId64, o->value);
		return NULL;
	case RT_OPERAND_ADDRESS:
		snprintf(text, 64, "\\%" PRId64, (int64_t)(symbol->addr.v + (uint64_t)o->value));
		return l->file->image->type == ET_EXEC ? NULL : "where the file is loaded is not known before";
	default:
		break;
	}
	/* counted by the kernel from where the probe is: as far as the addresses are from each other */
	offset = l->offset.v + (symbol->addr.v + (uint64_t)o->value - l->marker->location.v);
	snprintf(text, 64, "@+0x%" PRIx64, offset);
	/* it reads a signed number, and there is no minus for it */
	return offset <= INT64_MAX ? NULL : "its symbol lies before the file's begin in memory";
}

static bool is_identifier(const char *text)
{
	size_t len = rt_identifier_length(text);

	return len && !text[len];
}

/* Could the kernel take it apart again? Its words end at blanks, a path at the last colon. */
static bool is_word(const char *text)
{
	while (*text && !isspace((unsigned char)*text) && !iscntrl((unsigned char)*text))
		text++;
	return !*text;
}

static void write_arguments(const struct line *l, const struct rt_definition_options *options, struct rt_sink *sink)
{
	const char *args = l->marker->args;
	struct rt_operand o;

	for (unsigned n = 1; rt_operand_next(&args, l->file->image->machine, &o); n++) {
		char text[64];
		const char *why = fetch(l, &o, text);

		if (why && options->dropped)
			options->dropped(options->arg, n, &o, why);
		if (why)
			continue;
		if (n <= 32 && options->strings >> (n - 1) & 1) {
			rt_sink_printf(sink, " arg%u=+0(%s):string", n, text);
			continue;
		}
		rt_sink_printf(sink, " arg%u=%s", n, text);
		if (o.size)
			rt_sink_printf(sink, ":%c%u", o.is_signed ? 's' : 'u', o.size * 8u);
	}
}

struct rt_error *rt_marker_definition(const struct rt_marker_file *file, const struct rt_sdt_marker *m,
				      const struct rt_definition_options *options, struct rt_sink *sink)
{
	static const struct rt_definition_options none;
	struct line l = { file, m, { 0 } };
	struct rt_foff semaphore;
	const char *why = rt_sdt_offsets(file->image, m, &l.offset, &semaphore);

	options = options ?: &none;
	if (!why && !options->event && (!is_identifier(m->provider) || !is_identifier(m->name)))
		why = "the kernel takes no such name";
	if (!why && !is_word(file->path))
		why = "the kernel takes no path with a blank";
	if (why)
		return rt_error_new(RT_E_UNARMED, "marker %s:%s: %s", m->provider, m->name, why);
	if (options->event)
		rt_sink_printf(sink, "p:%s", options->event);
	else
		rt_sink_printf(sink, "p:sdt_%s/%s", m->provider, m->name);
	rt_sink_printf(sink, " %s:0x%" PRIx64, file->path, l.offset.v);
	if (semaphore.v && !options->no_semaphore)
		rt_sink_printf(sink, "(0x%" PRIx64 ")", semaphore.v);
	write_arguments(&l, options, sink);
	return NULL;
}

/* ---- entries of a probes file ---- */

struct entries {
	const struct rt_marker_file *file;
	const struct rt_sdt_marker *markers;
	size_t count;
	size_t *next; /* index of the next marker of the same name, 0: none */
	size_t dropped;
};

static void count_dropped(void *arg, unsigned n, const struct rt_operand *operand, const char *why)
{
	size_t *dropped = arg;

	++*dropped;
}

static struct rt_error *definition_text(const struct entries *e, const struct rt_sdt_marker *m, size_t *dropped,
					char **ret)
{
	struct rt_definition_options options = { .dropped = count_dropped, .arg = dropped };
	_cleanup_(rt_sink_deinit) struct rt_sink text;

	rt_sink_init_memory(&text);
	RT_TRY(rt_marker_definition(e->file, m, &options, &text));
	RT_TRY(rt_sink_end(&text));
	*ret = strdup(text.buffer);
	return *ret ? NULL : rt_error_nomem();
}

struct lines {
	RT_VEC(char *) list;
};

static struct rt_error *collect_lines(struct entries *e, size_t first, struct lines *lines)
{
	for (size_t i = first + 1; i; i = e->next[i - 1]) {
		char *line = NULL;
		struct rt_error *err = definition_text(e, &e->markers[i - 1], &e->dropped, &line);

		/* what is not in the file is no probe, and no reason to have none */
		if (rt_error_catch(&err, RT_E_UNARMED))
			continue;
		RT_TRY(err);
		if (!rt_vec_push(&lines->list, line)) {
			free(line);
			return rt_error_nomem();
		}
	}
	return NULL;
}

/* All lines of one marker's name: it may have been compiled in at several places. */
static struct rt_error *add_entry(struct entries *e, size_t first, struct rt_probes *probes)
{
	const struct rt_sdt_marker *m = &e->markers[first];
	struct lines lines = { 0 };
	struct rt_error *err = collect_lines(e, first, &lines);
	char spec[2 * RT_MARKER_NAME_MAX];

	if (!err && lines.list.len &&
	    snprintf(spec, sizeof(spec), "sdt_%s:%s=%s", m->provider, m->name, m->name) < (int)sizeof(spec))
		err = rt_probes_set(probes, true, spec, (const char *const *)lines.list.data, lines.list.len);
	for (size_t i = 0; i < lines.list.len; i++)
		free(lines.list.data[i]);
	rt_vec_deinit(&lines.list);
	return err;
}

/* Chains the markers of each name; *ret_first: bit by bit, is it the first of its name? */
static struct rt_error *chain(struct entries *e, struct rt_intern *names, bool *first)
{
	size_t *last = calloc(e->count + 1, sizeof(*last)); /* by name: index + 1 */

	if (!last)
		return rt_error_nomem();
	for (size_t i = 0; i < e->count; i++) {
		char name[RT_MARKER_NAME_MAX];
		uint32_t id;

		if (!rt_marker_name(&e->markers[i], name))
			continue;
		id = rt_intern_string(names, name);
		if (!id || id > e->count) {
			free(last);
			return rt_error_nomem();
		}
		first[i] = !last[id];
		if (last[id])
			e->next[last[id] - 1] = i + 1;
		last[id] = i + 1;
	}
	free(last);
	return NULL;
}

struct rt_error *rt_marker_entries(const struct rt_marker_file *file, const struct rt_sdt_marker *markers, size_t count,
				   struct rt_probes *probes, size_t *ret_dropped)
{
	_cleanup_free_ size_t *next = calloc(count + 1, sizeof(*next));
	_cleanup_free_ bool *first = calloc(count + 1, sizeof(*first));
	struct entries e = { file, markers, count, next, 0 };
	struct rt_intern names = { 0 };
	struct rt_error *err;

	if (!next || !first)
		return rt_error_nomem();
	err = chain(&e, &names, first);
	rt_intern_deinit(&names);
	for (size_t i = 0; !err && i < count; i++)
		if (first[i])
			err = add_entry(&e, i, probes);
	*ret_dropped = e.dropped;
	return err;
}
