/* SPDX-License-Identifier: GPL-2.0-only */
/* Specs as data: joining, writing, freeing. The parser is parse.c. */
#include "probe/spec.h"

#include <inttypes.h>
#include <string.h>

#include "base/sink.h"
#include "event/stream.h"
#include "probe/call.h"
#include "probe/spec_type.h"

void rt_spec_type_deinit(struct rt_spec_type *type)
{
	for (size_t i = 0; i < type->functions.len; i++) {
		free(type->functions.data[i].name);
		free(type->functions.data[i].dso);
	}
	rt_vec_deinit(&type->functions);
	free(type->name);
	free(type->counter_struct);
	free(type->counter_member);
	free(type->klass);
	free(type->origin);
	*type = (struct rt_spec_type){ 0 };
}

void rt_spec_deinit(struct rt_spec *spec)
{
	for (size_t i = 0; i < spec->types.len; i++)
		rt_spec_type_deinit(&spec->types.data[i]);
	rt_vec_deinit(&spec->types);
}

/* What speaks for the type in a function's name; of a marker, its provider; of what is kept, its group. */
static const char *stem_text(const struct rt_spec_function *f)
{
	if (rt_spec_is_kept(f))
		return f->name + strlen(RT_SPEC_KEPT);
	return f->name + (rt_spec_is_marker(f) ? strlen(RT_SPEC_MARKER) : 0);
}

/* What of a stem can be a type's name: "Ref<ns::Node>" is Ref.ns::Node. */
static char *type_name(const char *stem, size_t len)
{
	char *name = strndup(stem, len);
	size_t n = 0;

	for (size_t i = 0; name && i < len; i++) {
		if (rt_spec_is_name_char(stem[i]) || stem[i] == '-' || stem[i] == ':')
			name[n++] = stem[i];
		else if (n && name[n - 1] != '.')
			name[n++] = '.';
	}
	while (n && strchr(".:", name[n - 1]))
		n--;
	if (!name || n) {
		if (name)
			name[n] = '\0';
		return name;
	}
	free(name);
	return strdup("object");
}

char *rt_spec_common_stem(const struct rt_spec_type *type)
{
	const char *first = stem_text(&type->functions.data[0]);
	size_t len = strcspn(first, "*?");

	for (size_t i = 1; i < type->functions.len; i++) {
		const char *name = stem_text(&type->functions.data[i]);
		size_t n = 0;

		while (n < len && name[n] == first[n])
			n++;
		len = n;
	}
	/* half a word in common is nothing: obj_put and obj_pull meet in "obj" */
	if (type->functions.len > 1 || first[len])
		while (len > 0 && first[len - 1] != '_' && first[len - 1] != ':')
			len--;
	while (len > 0 && (first[len - 1] == '_' || first[len - 1] == ':'))
		len--;
	return type_name(first, len);
}

bool rt_spec_verified(struct rt_spec_type *type)
{
	size_t kept = 0, ends = 0;
	bool usable = true;

	for (size_t i = 0; i < type->functions.len; i++) {
		struct rt_spec_function *f = &type->functions.data[i];

		if (!f->unverified) {
			ends += f->op == RT_OP_PUT || f->op == RT_OP_FREE;
			type->functions.data[kept++] = *f;
			continue;
		}
		/* without a constructor less is known of an object; without any of the others it looks lost */
		usable &= f->op == RT_OP_NEW || f->hidden;
		free(f->name);
		free(f->dso);
	}
	type->functions.len = kept;
	return usable && ends;
}

/* A name of none of the types may be one of a class. */
static bool may_be_class(const struct rt_spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->types.len; i++) {
		if (rt_glob_match(name, spec->types.data[i].name))
			return false;
	}
	return true;
}

void rt_spec_keep(struct rt_spec *spec, const char *const *names, size_t count)
{
	size_t kept = 0;
	bool classes = false;

	for (size_t n = 0; n < count; n++)
		classes |= may_be_class(spec, names[n]);

	for (size_t i = 0; i < spec->types.len; i++) {
		struct rt_spec_type *type = &spec->types.data[i];
		size_t n = 0;

		while (n < count && !rt_glob_match(names[n], type->name))
			n++;
		if (n == count && !(classes && type->klass))
			rt_spec_type_deinit(type);
		else
			spec->types.data[kept++] = *type;
	}
	spec->types.len = kept;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool rt_spec_has_function(const struct rt_spec_type *type, const struct rt_spec_function *function)
{
	for (size_t i = 0; i < type->functions.len; i++) {
		const struct rt_spec_function *f = &type->functions.data[i];

		if (f->op == function->op && f->place == function->place && f->arg == function->arg &&
		    f->levels == function->levels && f->size_arg == function->size_arg && f->to == function->to &&
		    f->behind == function->behind && f->condition == function->condition &&
		    f->hidden == function->hidden && same_text(f->name, function->name) &&
		    same_text(f->dso, function->dso))
			return true;
	}
	return false;
}

struct rt_error *rt_spec_move(struct rt_spec *from, size_t at, struct rt_spec *to)
{
	if (!rt_vec_push(&to->types, from->types.data[at]))
		return rt_error_nomem();
	/* so that deinit frees what was not moved, and nothing else */
	from->types.data[at] = from->types.data[--from->types.len];
	return NULL;
}

void rt_spec_guess(struct rt_spec_type *type)
{
	for (size_t i = 0; i < type->functions.len; i++)
		type->functions.data[i].guessed = true;
}

struct rt_spec_type *rt_spec_type_named(const struct rt_spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->types.len; i++)
		if (strcmp(spec->types.data[i].name, name) == 0)
			return &spec->types.data[i];
	return NULL;
}

static void move_text(char **into, char **from)
{
	if (!*from)
		return;
	free(*into);
	*into = rt_take(*from);
}

/* into has room. */
static void join_type(struct rt_spec_type *into, struct rt_spec_type *from)
{
	for (size_t i = 0; i < from->functions.len; i++) {
		struct rt_spec_function *f = &from->functions.data[i];

		if (rt_spec_has_function(into, f))
			continue;
		into->functions.data[into->functions.len++] = *f;
		f->name = f->dso = NULL;
	}
	if (from->start != RT_START_UNKNOWN) {
		into->start = from->start;
		into->floating = from->floating;
	}
	if (from->counter_offset != RT_COUNTER_UNKNOWN) {
		into->counter_offset = from->counter_offset;
		into->counter_size = from->counter_size;
	}
	move_text(&into->counter_struct, &from->counter_struct);
	move_text(&into->counter_member, &from->counter_member);
	if (from->klass)
		into->path = from->path;
	move_text(&into->klass, &from->klass);
}

/* What was told in two places must not make one type of descriptors and mappings, or of calls and functions. */
static struct rt_error *check_kinds(const struct rt_spec_type *a, const struct rt_spec_type *b)
{
	const struct rt_spec_function *f = a->functions.len ? &a->functions.data[0] : NULL;
	const struct rt_spec_function *g = b->functions.len ? &b->functions.data[0] : NULL;
	const struct rt_call *call = f ? rt_spec_call(f) : NULL, *other = g ? rt_spec_call(g) : NULL;

	if (!f || !g || (!call && !other) || (call && other && call->kind == other->kind))
		return NULL;
	return rt_error_fix(rt_error_new(RT_E_SPEC, "type %s cannot have %s and %s: its objects are of one kind",
					 a->name, f->name, g->name),
			    "give one of them a type= of its own");
}

struct rt_error *rt_spec_join(struct rt_spec *into, struct rt_spec *from)
{
	/* all room first: from here on nothing can fail half-way */
	if (!rt_vec_reserve(&into->types, into->types.len + from->types.len))
		return rt_error_nomem();
	for (size_t i = 0; i < from->types.len; i++) {
		size_t functions = 0;
		struct rt_spec_type *old = rt_spec_type_named(into, from->types.data[i].name);

		/* a type that the same text has twice joins its first part */
		if (!old)
			old = rt_spec_type_named(from, from->types.data[i].name);
		RT_TRY(check_kinds(old, &from->types.data[i]));
		for (size_t j = 0; j < from->types.len; j++)
			if (strcmp(from->types.data[j].name, from->types.data[i].name) == 0)
				functions += from->types.data[j].functions.len;
		if (!rt_vec_reserve(&old->functions, old->functions.len + functions))
			return rt_error_nomem();
	}
	for (size_t i = 0; i < from->types.len; i++) {
		struct rt_spec_type *old = rt_spec_type_named(into, from->types.data[i].name);

		if (old) {
			join_type(old, &from->types.data[i]);
			continue;
		}
		into->types.data[into->types.len++] = from->types.data[i];
		from->types.data[i] = (struct rt_spec_type){ 0 };
	}
	for (size_t i = 0; i < from->types.len; i++)
		rt_spec_type_deinit(&from->types.data[i]);
	from->types.len = 0;
	return NULL;
}

static void write_function(struct rt_sink *sink, const struct rt_spec_function *f)
{
	static const char *const conditions[] = {
		[RT_IF_ALWAYS] = "",         [RT_IF_NONZERO] = "?ret!=0", [RT_IF_ZERO] = "?ret==0",
		[RT_IF_POSITIVE] = "?ret>0", [RT_IF_NEGATIVE] = "?ret<0", [RT_IF_NOT_NEGATIVE] = "?ret>=0"
	};

	rt_sink_puts(sink, f->name);
	if (f->dso)
		rt_sink_printf(sink, "@%s", f->dso);
	if (f->place == RT_PLACE_RET)
		rt_sink_puts(sink, ":ret");
	else if (f->place == RT_PLACE_RET_PTR)
		rt_sink_puts(sink, ":*ret");
	else
		rt_sink_printf(sink, ":%s%s%u", f->place == RT_PLACE_OUT ? "out*" : "",
			       &"**"[RT_SPEC_LEVELS_MAX - rt_spec_levels(f)], f -> arg);
	if (f->behind)
		rt_sink_printf(sink, "+%u", f->behind);
	if (f->size_arg)
		rt_sink_printf(sink, f->to ? "-%u" : "[%u]", f->size_arg);
	rt_sink_puts(sink, f->tail ? ":tail" : "");
	rt_sink_puts(sink, conditions[f->condition]);
}

static void write_unverified(struct rt_sink *sink, const struct rt_spec_type *type)
{
	for (size_t i = 0; i < type->functions.len; i++) {
		const struct rt_spec_function *f = &type->functions.data[i];
		size_t first = 0;

		if (!f->unverified)
			continue;
		while (!type->functions.data[first].unverified || !same_text(type->functions.data[first].name, f->name))
			first++;
		if (first == i)
			rt_sink_printf(sink, "unverified=%s\n", f->name);
	}
}

static void write_type(struct rt_sink *sink, const struct rt_spec_type *type)
{
	rt_sink_printf(sink, "[%s]\n", type->name);
	for (int op = RT_OP_NEW; op < RT_OP_NR; op++)
		for (int hidden = 0; hidden < 2; hidden++)
			for (size_t i = 0; i < type->functions.len; i++) {
				const struct rt_spec_function *f = &type->functions.data[i];

				if (f->op != op || f->hidden != hidden)
					continue;
				rt_sink_printf(sink, "%s=", hidden ? "hidden" : rt_op_name(op));
				write_function(sink, f);
				rt_sink_puts(sink, "\n");
			}
	if (type->floating)
		rt_sink_puts(sink, "start=floating\n");
	else if (type->start != RT_START_UNKNOWN)
		rt_sink_printf(sink, "start=%" PRId32 "\n", type->start);
	if (type->counter_offset != RT_COUNTER_UNKNOWN)
		rt_sink_printf(sink, "counter=%+" PRId32 ":%" PRIu32 "\n", type->counter_offset, type->counter_size);
	if (type->counter_struct)
		rt_sink_printf(sink, "counter=%s.%s\n", type->counter_struct, type->counter_member);
	if (type->klass)
		rt_sink_printf(sink, "class=%s\n", type->klass);
	write_unverified(sink, type);
}

struct rt_error *rt_spec_write(const struct rt_spec *spec, char **ret)
{
	struct rt_sink sink;
	struct rt_error *err;

	rt_sink_init_memory(&sink);
	for (size_t i = 0; i < spec->types.len; i++) {
		if (i)
			rt_sink_puts(&sink, "\n");
		write_type(&sink, &spec->types.data[i]);
	}
	rt_sink_puts(&sink, "");
	err = rt_sink_end(&sink);
	if (!err) {
		char *text = strdup(sink.buffer ? sink.buffer : "");

		if (text)
			*ret = text;
		else
			err = rt_error_nomem();
	}
	rt_sink_deinit(&sink);
	return err;
}
