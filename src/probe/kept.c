/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * "%GROUP:EVENT" of a spec: definitions that the build-id cache keeps, as markers of the module. Their lines say where,
 * and by which registers the object is read; what they say of a path is where the file was once, and is not used.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "probe/build.h"
#include "probe/kept.h"
#include "probe/spec_type.h"

static const char *copy(struct rt_plan_build *b, const char *text)
{
	return rt_arena_strndup(&b->arena, text, strlen(text));
}

/* Bytes of a number's type; without one the kernel takes a word. 0: no plain number. */
static unsigned type_bytes(const char *type)
{
	uint64_t bits;

	if (!type)
		return sizeof(uint64_t);
	if (!strchr("usx", *type) || !rt_parse_u64(type + 1, strlen(type + 1), 10, &bits))
		return 0;
	return (unsigned)bits / 8;
}

/*
 * One argument as the operand of a marker: a register, or what lies where one points to. What else uprobe_events can
 * say becomes an operand that nobody understands, so that it is refused where it is asked for.
 */
static void write_operand(struct rt_sink *sink, const struct rt_request_argument *a)
{
	const struct rt_request_fetch *f = &a->fetch;
	unsigned bytes = type_bytes(a->type);

	if (a->kind != RT_ARGUMENT_FETCH || f->base != RT_FETCH_REG || f->derefs > 1 || !bytes) {
		rt_sink_puts(sink, "8@?");
		return;
	}
	rt_sink_printf(sink, "%s%u@", a->type && *a->type == 's' ? "-" : "", bytes);
	if (f->derefs)
		rt_sink_printf(sink, "%" PRId64 "(", f->offset[0]);
	rt_sink_printf(sink, "%%%s%s%s", *f->name == 'r' ? "" : "r", f->name, f->derefs ? ")" : "");
}

static struct rt_error *write_operands(struct rt_sink *sink, const char *arguments, uint32_t *ret_results)
{
	_cleanup_(rt_request_deinit) struct rt_request r = { .kind = RT_REQUEST_FUNCTION };
	_cleanup_free_ char *text = NULL;
	struct rt_error *err;

	if (asprintf(&text, "f%s", arguments) < 0) {
		text = NULL;
		return rt_error_nomem();
	}
	err = rt_request_parse(text, &r);
	/* another tool's, which the kernel may know: then its place alone is of use */
	if (rt_error_catch(&err, RT_E_SPEC) || rt_error_catch(&err, RT_E_LIMIT))
		return NULL;
	RT_TRY(err);
	for (size_t i = 0; i < r.arguments.len; i++) {
		if (i < 32 && r.arguments.data[i].kind == RT_ARGUMENT_RETVAL)
			*ret_results |= UINT32_C(1) << i;
		rt_sink_puts(sink, i ? " " : "");
		write_operand(sink, &r.arguments.data[i]);
	}
	return NULL;
}

static struct rt_error *add_line(struct rt_plan_build *b, const struct rt_cached_line *line, const char *mark,
				 struct rt_kept *kept)
{
	_cleanup_(rt_sink_deinit) struct rt_sink args;
	struct rt_kept_marker *k = rt_arena_alloc(&b->arena, sizeof(*k));
	char group[sizeof(line->group) + 16];

	rt_sink_init_memory(&args);
	if (!k || !rt_vec_push(&kept->markers, k))
		return rt_error_nomem();
	*k = (struct rt_kept_marker){ .at_return = line->at_return };
	snprintf(group, sizeof(group), "%s%s", line->group, mark);
	RT_TRY(write_operands(&args, line->arguments, &k->results));
	RT_TRY(rt_sink_end(&args));
	k->marker.provider = copy(b, group);
	k->marker.name = copy(b, line->event);
	k->marker.args = copy(b, args.buffer ? args.buffer : "");
	if (!k->marker.provider || !k->marker.name || !k->marker.args)
		return rt_error_nomem();
	/* 0 is in no file: refused where the place is looked at */
	(void)rt_image_address(b->module->image, line->offset, true, &k->marker.location);
	if (line->semaphore.v)
		(void)rt_image_address(b->module->image, line->semaphore, false, &k->marker.semaphore);
	return NULL;
}

static struct rt_error *add_entries(struct rt_plan_build *b, const char *group, const char *event,
				    const struct rt_cached_match *match, struct rt_kept *kept)
{
	for (size_t i = 0; i < match->probes.entries.len; i++) {
		const struct rt_probes_entry *e = &match->probes.entries.data[i];
		struct rt_cached_line line;

		if (!rt_cached_fits(e, group, event))
			continue;
		for (size_t n = 0; n < e->lines.len; n++)
			if (rt_cached_read(e->lines.data[n], &line))
				RT_TRY(add_line(b, &line, rt_cached_mark(match->trust), kept));
	}
	return NULL;
}

static struct rt_error *doubt(struct rt_plan_build *b, const char *name, const char *how, const char *why)
{
	char *text;

	if (asprintf(&text, "%s by %s: %s", name, how, why) < 0)
		return rt_error_nomem();
	if (rt_vec_push(&b->plan->doubts, text))
		return NULL;
	free(text);
	return rt_error_nomem();
}

struct rt_error *rt_plan_kept(struct rt_plan_build *b, uint32_t type, uint32_t function, struct rt_kept *kept)
{
	static const struct rt_cached_allow none = { 0 };
	const struct rt_spec_function *f = &b->plan->types.data[type].spec->functions.data[function];
	const struct rt_plan_options *options = &b->plan->options;
	_cleanup_free_ char *name = strdup(f->name + strlen(RT_SPEC_KEPT));
	char *colon = name ? strchr(name, ':') : NULL;
	struct rt_cached_match match;
	struct rt_error *err;

	if (!colon)
		return name ? NULL : rt_error_nomem();
	*colon = '\0';
	if (!options->cache)
		return NULL;
	/* a file that nobody named is used by its build-id alone */
	err = rt_cached_match(options->cache, b->module->image, b->module->name, name, colon + 1,
			      f->dso ? &options->allow : &none, &match);
	if (!err && match.why)
		err = doubt(b, f->name, match.trust == RT_CACHED_MISMATCH ? "--allow-mismatch" : "--allow-unverified",
			    match.why);
	if (!err)
		err = add_entries(b, name, colon + 1, &match, kept);
	rt_cached_match_deinit(&match);
	if (err && err->code == RT_E_BUILD_ID && f->dso) {
		struct rt_error *refused = rt_plan_refuse(b, type, function, f->name, RT_E_BUILD_ID, "%s; %s",
							  err->message, err->fix ? err->fix : "");

		rt_error_free(err);
		return refused;
	}
	if (rt_error_catch(&err, RT_E_NOT_FOUND) || rt_error_catch(&err, RT_E_BUILD_ID))
		return NULL;
	return err;
}

void rt_kept_deinit(struct rt_kept *kept)
{
	rt_vec_deinit(&kept->markers);
}
