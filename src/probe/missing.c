/* SPDX-License-Identifier: GPL-2.0-only */
/* What to say when functions that the user named are nowhere. */
#include <string.h>

#include "base/fs.h"
#include "base/sink.h"
#include "elf/demangle.h"
#include "elf/sdt.h"
#include "probe/build.h"
#include "probe/definition.h"
#include "probe/near.h"
#include "probe/scan.h"
#include "probe/spec_type.h"

struct shortage {
	const struct rt_plan_type *type;
	const struct rt_spec_function *missing; /* first function that is nowhere */
	const struct rt_spec_function *refused; /* first function that cannot be probed */
};

/* true when one of the ops was named for the type, but has no point. */
static bool lacks(const struct rt_plan_type *type, enum rt_op a, enum rt_op b, struct shortage *ret)
{
	struct shortage s = { .type = type };
	bool named = false;

	for (size_t i = 0; i < type->spec->functions.len; i++) {
		const struct rt_spec_function *f = &type->spec->functions.data[i];

		if (f->op != a && f->op != b)
			continue;
		named = true;
		if (type->seen[i] & RT_SEEN_POINT)
			return false;
		if (type->seen[i] & RT_SEEN_REFUSED) {
			if (!s.refused)
				s.refused = f;
		} else if (!s.missing) {
			s.missing = f;
		}
	}
	if (named)
		*ret = s;
	return named;
}

static struct rt_error *refused_error(const struct rt_plan *plan, const struct shortage *s)
{
	const char *why = "";
	struct rt_error *err;

	for (size_t i = 0; i < plan->refused.len; i++)
		if (plan->refused.data[i].type == s->type->id &&
		    rt_spec_means(s->refused->name, plan->refused.data[i].function, true))
			why = plan->refused.data[i].why;
	err = rt_error_new(RT_E_UNARMED, "type %s: '%s' is there but cannot be probed: %s", s->type->spec->name,
			   s->refused->name, why);
	return plan->options.room && !plan->options.breakpoints
		       ? rt_error_fix(err, "a breakpoint needs no room; as root: --engine agent+uprobe")
		       : err;
}

enum { DEMANGLED_MAX = 20000 }; /* names: each takes microseconds */

struct candidates {
	struct rt_near near;
	size_t symbols; /* how many names were looked at */
	size_t demangled;
	struct rt_survey *surveys;
	size_t count;
};

/* Names of C++ and Rust as the user would write them. */
static void offer_symbol(struct candidates *c, struct rt_survey *survey, const char *name)
{
	_cleanup_free_ char *source = c->demangled < DEMANGLED_MAX ? rt_demangle_name(name) : NULL;
	uint32_t id = source ? rt_intern_string(&survey->names, source) : 0;

	c->demangled += source != NULL;
	rt_near_offer(&c->near, id ? rt_intern_text(&survey->names, id) : name);
}

static void offer_all(struct candidates *c)
{
	for (size_t m = 0; m < c->count; m++) {
		struct rt_survey *s = &c->surveys[m];

		c->symbols += s->symbols.len;
		for (size_t i = 0; i < s->symbols.len; i++)
			if (s->symbols.data[i].clone != RT_CLONE_PART)
				offer_symbol(c, s, rt_intern_text(&s->names, s->symbols.data[i].name));
		for (size_t i = 0; i < s->functions.len; i++)
			if (s->functions.data[i].has_inlined)
				offer_symbol(c, s, s->functions.data[i].name);
	}
}

/* "obj_get (leak.c:19)" */
static void write_name(struct rt_sink *text, struct candidates *c, const char *name)
{
	rt_sink_puts(text, name);
	for (size_t m = 0; m < c->count; m++) {
		const struct rt_survey_function *f = rt_survey_function(&c->surveys[m], name, NULL);

		if (!f || !f->file || !f->line)
			continue;
		rt_sink_printf(text, " (%s:%u%s)", rt_basename(f->file), f->line,
			       !f->has_body && f->has_inlined ? ", only inlined" : "");
		return;
	}
}

/* true when the file may have had the function under a name that is gone. */
static bool is_stripped(const struct rt_plan_module *module)
{
	return module->symtab && module->symtab->stripped && !(module->dwarf && rt_dwarf_present(module->dwarf));
}

static struct rt_error *stripped_error(const struct rt_plan_module *module, const char *function)
{
	const struct rt_image *image = module->image;
	char id[2 * RT_BUILD_ID_WHOLE_MAX + 1];
	struct rt_error *err;

	if (!image->build_id_size || image->build_id_is_hash)
		err = rt_error_new(RT_E_STRIPPED,
				   "%s has no symbol table (stripped) and no build-id, so no '%s' is seen",
				   module->name, function);
	else
		err = rt_error_new(RT_E_STRIPPED,
				   "%s has no symbol table (stripped), so no '%s' is seen; its build-id is %s",
				   module->name, function, rt_build_id_text(image->build_id, image->build_id_size, id));
	return rt_error_fix(err,
			    "install its debug symbols (the -dbgsym or -debuginfo package of this build-id)\n"
			    "or name the code by its ELF address: -P 'get=0xADDRESS@%s:1 put=0xADDRESS@%s:1'",
			    rt_basename(module->name), rt_basename(module->name));
}

/* "did you mean: a, b?"; nothing where no name is near. */
static void write_near(struct rt_sink *text, struct candidates *c)
{
	for (size_t i = 0; i < c->near.count; i++) {
		rt_sink_puts(text, i ? ", " : "did you mean: ");
		write_name(text, c, c->near.names[i]);
	}
	if (c->near.count)
		rt_sink_puts(text, "?");
}

static struct rt_error *no_function_error(const struct rt_spec_function *f, struct candidates *c,
					  const struct rt_plan_module *modules)
{
	struct rt_error *err =
		c->count == 1
			? rt_error_new(RT_E_NO_FUNCTION, "no function '%s' in %s (%zu symbols read)", f->name,
				       modules[0].name, c->symbols)
			: rt_error_new(RT_E_NO_FUNCTION,
				       "no function '%s' in %s and %zu other files (%zu symbols read)", f->name,
				       c->count ? modules[0].name : "nothing", c->count ? c->count - 1 : 0, c->symbols);
	_cleanup_error_ struct rt_error *write_err = NULL;
	struct rt_sink text;

	rt_sink_init_memory(&text);
	write_near(&text, c);
	if (c->near.count)
		rt_sink_puts(&text, "\n");
	rt_sink_printf(&text, "list: reftrace scan %s", c->count ? modules[0].name : "FILE");
	write_err = rt_sink_end(&text);
	if (!write_err)
		err = rt_error_fix(err, "%s", text.buffer);
	rt_sink_deinit(&text);
	return err;
}

/* The function is in a file, but not where the spec says: FN@DSO. */
static struct rt_error *wrong_file_error(const struct rt_spec_function *f, struct candidates *c,
					 const struct rt_plan_module *modules)
{
	for (size_t m = 0; f->dso && m < c->count; m++) {
		struct rt_error *err;

		if (!rt_survey_symbol(&c->surveys[m], f->name, NULL) || rt_plan_dso_fits(f->dso, modules[m].name))
			continue;
		err = rt_error_new(RT_E_NO_FUNCTION, "no function '%s' in a file called %s", f->name, f->dso);
		return rt_error_fix(err, "%s has it: %s@%s", modules[m].name, f->name, rt_basename(modules[m].name));
	}
	return NULL;
}

/* "sdt:PROVIDER:NAME" of all modules, into near. names: owns them. */
static struct rt_error *offer_markers(const struct rt_plan_module *modules, size_t count, struct rt_intern *names,
				      struct rt_near *near, size_t *ret_count)
{
	for (size_t m = 0; m < count; m++) {
		_cleanup_free_ struct rt_sdt_marker *markers = NULL;
		size_t found = 0;
		struct rt_error *err = rt_sdt_read(modules[m].image, &markers, &found);

		if (err && !rt_error_catch(&err, RT_E_FORMAT))
			return err;
		*ret_count += found;
		for (size_t i = 0; i < found; i++) {
			char text[RT_MARKER_NAME_MAX];
			uint32_t id;

			(void)rt_marker_name(&markers[i], text);
			id = rt_intern_string(names, text);
			if (!id)
				return rt_error_nomem();
			rt_near_offer(near, rt_intern_text(names, id));
		}
	}
	return NULL;
}

static struct rt_error *no_marker_error(const struct rt_spec_function *f, const struct rt_plan_module *modules,
					size_t count)
{
	struct rt_near near = { .wanted = f->name };
	struct rt_intern names = { 0 };
	size_t markers = 0;
	struct rt_error *err = offer_markers(modules, count, &names, &near, &markers);
	const char *file = count ? modules[0].name : "FILE";

	if (!err) {
		err = rt_error_new(RT_E_NO_FUNCTION, "no marker '%s' in %s and what it loads (%zu markers read)",
				   f->name, file, markers);
		if (near.count)
			err = rt_error_fix(err, "did you mean: %s%s%s?\nlist: reftrace probe markers %s", near.names[0],
					   near.count > 1 ? ", " : "", near.count > 1 ? near.names[1] : "", file);
		else
			err = rt_error_fix(err, "list: reftrace probe markers %s", file);
	}
	rt_intern_deinit(&names);
	return err;
}

static struct rt_error *no_definition_error(const struct rt_spec_function *f)
{
	struct rt_error *err = rt_error_new(RT_E_NO_FUNCTION, "the build-id cache has no definition '%s' of %s",
					    f->name, f->dso ? f->dso : "the program and what it loads");

	return rt_error_fix(err,
			    "list: reftrace probe list --cache; one that was made for another build: %s@FILE, and "
			    "--allow-mismatch",
			    f->name);
}

static struct rt_error *missing_error(const struct rt_spec_function *f, struct candidates *c,
				      const struct rt_plan_module *modules)
{
	struct rt_error *err = wrong_file_error(f, c, modules);

	if (err)
		return err;
	c->near.wanted = f->name;
	offer_all(c);
	/* a slip is more likely than a name that was stripped away */
	for (size_t m = 0; m < c->count && !c->near.count; m++)
		if (f->dso ? rt_plan_dso_fits(f->dso, modules[m].name) : m == 0)
			if (is_stripped(&modules[m]))
				return stripped_error(&modules[m], f->name);
	return no_function_error(f, c, modules);
}

static struct rt_error *survey_all(struct candidates *c, const struct rt_plan_module *modules, size_t count)
{
	c->surveys = calloc(count + 1, sizeof(*c->surveys));
	if (!c->surveys)
		return rt_error_nomem();
	for (; c->count < count; c->count++)
		RT_TRY(rt_survey_init(&modules[c->count], &c->surveys[c->count]));
	return NULL;
}

static void forget_all(struct candidates *c)
{
	for (size_t i = 0; i < c->count; i++)
		rt_survey_deinit(&c->surveys[i]);
	free(c->surveys);
}

/* a mistyped get beside a good new would turn every put into an extra one */
static bool is_short(const struct rt_plan_type *type, struct shortage *ret)
{
	return lacks(type, RT_OP_GET, RT_OP_GET, ret) || lacks(type, RT_OP_PUT, RT_OP_PUT, ret) ||
	       lacks(type, RT_OP_NEW, RT_OP_GET, ret) || lacks(type, RT_OP_PUT, RT_OP_FREE, ret);
}

/* err: out of memory, or what to say of a function that is nowhere */
static struct rt_error *nowhere_error(const struct rt_spec_function *f, const struct rt_plan_module *modules,
				      size_t count)
{
	struct candidates c = { .count = 0 };
	struct rt_error *err;

	if (rt_spec_is_kept(f))
		return no_definition_error(f);
	if (rt_spec_is_marker(f))
		return no_marker_error(f, modules, count);
	err = survey_all(&c, modules, count);
	if (!err)
		err = missing_error(f, &c, modules);
	forget_all(&c);
	return err;
}

struct rt_error *rt_plan_missing(const struct rt_plan *plan, const struct rt_plan_module *modules, size_t count)
{
	struct shortage refused = { 0 };
	bool whole = false;

	for (size_t t = 0; t < plan->types.len; t++) {
		struct shortage s = { 0 };

		if (!rt_spec_is_told(plan->types.data[t].spec) || !is_short(&plan->types.data[t], &s))
			whole = true;
		else if (s.missing)
			return nowhere_error(s.missing, modules, count);
		else if (!refused.type)
			refused = s;
	}
	/* the others are worth the run; of this one the answer says what could not be probed */
	return refused.type && !whole ? refused_error(plan, &refused) : NULL;
}

struct rt_error *rt_plan_near(const struct rt_plan_module *modules, size_t count, const char *name, char **ret)
{
	struct candidates c = { .near.wanted = name };
	struct rt_error *err = survey_all(&c, modules, count);
	struct rt_sink text;

	rt_sink_init_memory(&text);
	if (!err) {
		offer_all(&c);
		write_near(&text, &c);
		/* also where nothing was written there is a text */
		rt_sink_puts(&text, "");
		err = rt_sink_end(&text);
	}
	if (!err) {
		char *copy = strdup(text.buffer ? text.buffer : "");

		if (copy)
			*ret = copy;
		else
			err = rt_error_nomem();
	}
	rt_sink_deinit(&text);
	forget_all(&c);
	return err;
}

struct rt_error *rt_scan_unknown(const struct rt_plan_module *modules, size_t count, const char *type)
{
	static const struct rt_scan_options all = { 0 };
	_cleanup_(rt_spec_deinit) struct rt_spec found = { 0 };
	struct rt_near near = { .wanted = type };
	struct rt_error *err;
	const char *name = count ? rt_basename(modules[0].name) : "the program";

	for (size_t i = 0; i < count; i++) {
		err = rt_scan_module(&modules[i], &all, &found);
		/* a module that cannot be read offers no names */
		if (err && err->code == RT_E_NOMEM)
			return err;
		rt_error_free(err);
	}
	for (size_t i = 0; i < found.types.len; i++)
		rt_near_offer(&near, found.types.data[i].name);
	err = rt_error_new(RT_E_NO_PAIRS, "no type '%s' in %s: no get/put family has this name", type, name);
	if (near.count)
		return rt_error_fix(err, "did you mean: %s%s%s%s%s?", near.names[0], near.count > 1 ? ", " : "",
				    near.count > 1 ? near.names[1] : "", near.count > 2 ? ", " : "",
				    near.count > 2 ? near.names[2] : "");
	return rt_error_fix(err,
			    "name the functions: -P 'type=%s new=FN:ret get=FN:1 put=FN:1', or look: reftrace scan %s",
			    type, count ? modules[0].name : "FILE");
}
