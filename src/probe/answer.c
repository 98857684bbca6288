/* SPDX-License-Identifier: GPL-2.0-only */
/* From a request to places: functions by name, addresses, markers. */
#include "probe/answer.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "elf/demangle.h"
#include "elf/sdt.h"
#include "probe/answer_build.h"
#include "probe/definition.h"
#include "probe/lines.h"
#include "probe/marker_text.h"
#include "probe/near.h"
#include "probe/source_name.h"
#include "probe/spec.h"

enum { FUNCTIONS_MAX = 10000 };

const char *rt_answer_text(struct rt_answer_build *b, const char *format, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, format);
	text = rt_arena_vprintf(&b->answer->arena, format, ap);
	va_end(ap);
	return text ? text : "";
}

void rt_answer_note(struct rt_answer_build *b, const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	text = rt_arena_vprintf(&b->answer->arena, format, ap);
	va_end(ap);
	/* without memory there is one note less */
	if (text)
		(void)rt_vec_push(&b->answer->notes, text);
}

const char *rt_answer_where(struct rt_answer_build *b, const struct rt_answer_place *place)
{
	const char *name = place->function ? place->function : b->module->image->name;
	struct rt_source_line line;

	/* the addresses of kallsyms are those of one boot */
	if (b->module->kernel && !b->debug)
		return name;
	if (b->debug && rt_dwarf_line(b->debug, place->address, &line) && line.line)
		return rt_answer_text(b, "%s at 0x%" PRIx64 " (%s:%u)", name, place->address.v, rt_basename(line.file),
				      line.line);
	return rt_answer_text(b, "%s at 0x%" PRIx64, name, place->address.v);
}

struct rt_error *rt_answer_body(struct rt_answer_build *b, struct rt_elfaddr addr)
{
	const struct rt_answer_module *m = b->module;

	if (rt_body_holds(&b->body, addr))
		return NULL;
	rt_body_deinit(&b->body);
	return rt_body_read(m->image, m->symtab, m->dwarf, m->decoder, addr, &b->body);
}

/* pattern: of the request, or a part of it */
static bool fits(const struct rt_request *r, const char *pattern, const char *name)
{
	return r->is_glob ? rt_glob_match(pattern, name) : !strcmp(pattern, name);
}

static bool fits_request(const char *name, const void *arg)
{
	const struct rt_request *r = arg;

	return fits(r, r->function, name);
}

/* A plain name is that of a function; one with "::" or "(" is compared with all that the source says. */
static bool wants(struct rt_dwarf *dwarf, const struct rt_instance *fn, void *arg)
{
	const struct rt_answer_build *b = arg;
	const struct rt_request *r = b->request;
	const char *pattern = r->function, *last = pattern;

	if (r->file && !(fn->file && rt_path_is(fn->file, r->file)))
		return false;
	if (fits(r, pattern, fn->function) || (fn->linkage && fits(r, pattern, fn->linkage)))
		return true;
	if (strchr(pattern, '(') && fn->linkage && rt_source_fits(fn->linkage, true, fits_request, r))
		return true;
	if (!strstr(pattern, "::"))
		return false;
	for (const char *c = pattern; (c = strstr(c, "::")); c += 2)
		last = c + 2;
	/* cheap first: what is behind the last "::" is the plain name, but for templates that have their own */
	if (!strpbrk(pattern, "<(") && !fits(r, last, fn->function) &&
	    strncmp(fn->function, last, r->is_glob ? strcspn(last, "*?[\\") : strlen(last)) != 0)
		return false;
	/* debug information of Rust, and nameless namespaces, leave out what the symbol tells */
	return rt_source_end_fits(rt_dwarf_qualified(dwarf, fn), fits_request, r) ||
	       (fn->linkage && rt_source_fits(fn->linkage, false, fits_request, r));
}

static bool symbol_fits(const struct rt_request *r, const struct rt_symbol *s)
{
	const char *pattern = r->function;

	return fits(r, pattern, s->name) || (rt_is_mangled(s->name) && rt_source_may_fit(pattern, s->name) &&
					     rt_source_fits(s->name, strchr(pattern, '(') != NULL, fits_request, r));
}

static struct rt_error *add_function(struct rt_answer_build *b, const struct rt_instance *in)
{
	const struct rt_request *r = b->request;
	struct rt_answer_place place = { .instance = in,
					 .function = in->function,
					 .address = { in->entry.v + r->offset },
					 .exactly = r->offset != 0,
					 .is_entry = !r->offset };

	place.key = rt_answer_text(b, "%s:%s:%u", in->linkage ? in->linkage : in->function, in->file ? in->file : "",
				   in->line);
	if (r->offset && !rt_dwarf_instance_holds(b->debug, in, place.address))
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "%s+%" PRIu64 " is not in the code of %s",
						 in->function, r->offset, in->function),
				    "reftrace probe show -x FILE %s", in->function);
	return rt_answer_add(b, &place);
}

static bool covered(const struct rt_instance *list, size_t count, struct rt_elfaddr addr)
{
	for (size_t i = 0; i < count; i++)
		if (!list[i].inlined && list[i].entry.v == addr.v)
			return true;
	return false;
}

/* What only the symbol table knows. *ret_ifunc: it is a function that picks another at load time. */
static struct rt_error *add_symbols(struct rt_answer_build *b, const struct rt_instance *list, size_t count,
				    size_t *ret_found, bool *ret_ifunc)
{
	const struct rt_request *r = b->request;
	const struct rt_symtab *symtab = b->module->symtab;
	struct rt_elfaddr last = { UINT64_MAX };
	const bool is_kernel = b->module->kernel;

	for (size_t i = 0; symtab && i < symtab->count; i++) {
		const struct rt_symbol *s = &symtab->symbols[i];
		struct rt_answer_place place = { .function = s->name,
						 .key = s->name,
						 .address = { s->addr.v + r->offset },
						 .exactly = r->offset != 0,
						 .is_entry = !r->offset };

		if (!s->function || s->plt || !s->addr.v || s->addr.v == last.v || covered(list, count, s->addr) ||
		    !symbol_fits(r, s))
			continue;
		/* what compilers put before functions is no code that runs */
		if (is_kernel && (!strncmp(s->name, "__pfx_", 6) || !strncmp(s->name, "__cfi_", 6)))
			continue;
		/* with a pattern, what debug information does not know is start-up code, or a part of a function */
		if (r->is_glob && (b->debug || strstr(s->name, ".cold") || strstr(s->name, ".part.")))
			continue;
		if (s->ifunc) {
			*ret_ifunc = true;
			continue;
		}
		if (b->debug && rt_dwarf_instance_at(b->debug, s->addr, &(struct rt_instance){ 0 }) && r->file)
			continue;
		last = s->addr;
		++*ret_found;
		if (r->offset && s->size && r->offset >= s->size)
			return rt_error_fix(
				rt_error_new(RT_E_NOT_FOUND, "%s+%" PRIu64 " is behind its end", s->name, r->offset),
				"it has %" PRIu64 " bytes", s->size);
		RT_TRY(rt_answer_add(b, &place));
	}
	return NULL;
}

/* Names of the source may begin at any part: all of them that are near are offered. */
struct offered {
	struct rt_near near;
	struct rt_arena names;
};

static bool offer_part(const char *name, const void *arg)
{
	const struct offered *const *offered = arg;
	struct offered *o = (struct offered *)(uintptr_t)*offered;
	unsigned limit = rt_slip_limit(o->near.wanted);
	const char *copy;

	if (rt_edit_distance(o->near.wanted, name, limit) > limit)
		return false;
	copy = rt_arena_strndup(&o->names, name, strlen(name));
	if (copy)
		rt_near_offer(&o->near, copy);
	return false;
}

static void offer_source(struct offered *o, const char *name)
{
	if (name && rt_source_is(o->near.wanted))
		(void)rt_source_end_fits(name, offer_part, &(const struct offered *){ o });
}

static bool offer_function(struct rt_dwarf *dwarf, const struct rt_instance *fn, void *arg)
{
	struct offered *o = arg;

	rt_near_offer(&o->near, fn->function);
	offer_source(o, rt_dwarf_qualified(dwarf, fn));
	return false;
}

static void offer_symbol(struct offered *o, const struct rt_symbol *s)
{
	_cleanup_free_ char *bare = NULL;

	rt_near_offer(&o->near, s->name);
	if (!rt_source_is(o->near.wanted) || !rt_is_mangled(s->name))
		return;
	bare = rt_demangle_name(s->name);
	offer_source(o, bare);
}

/* The names that are nearest to the one that there is not. */
static struct rt_error *with_near(struct rt_answer_build *b, struct rt_error *err)
{
	const struct rt_answer_module *m = b->module;
	struct offered o = { .near = { .wanted = b->request->function } };
	_cleanup_free_ struct rt_instance *none = NULL;
	size_t count;

	for (size_t i = 0; m->symtab && i < m->symtab->count; i++)
		if (m->symtab->symbols[i].function && !m->symtab->symbols[i].plt)
			offer_symbol(&o, &m->symtab->symbols[i]);
	if (b->debug)
		rt_error_free(rt_dwarf_instances(b->debug, NULL, offer_function, &o, &none, &count));
	if (o.near.count)
		err = rt_error_fix(err, "did you mean %s?", o.near.names[0]);
	rt_arena_deinit(&o.names);
	return err;
}

/* "Conv::operator int": what is behind the blank is an argument. */
static bool ends_with_operator(const char *name)
{
	size_t len = strlen(name), word = strlen("operator");

	return len >= word && !strcmp(name + len - word, "operator") && (len == word || name[len - word - 1] == ':');
}

static struct rt_error *no_function(struct rt_answer_build *b, bool ifunc)
{
	const struct rt_answer_module *m = b->module;
	const struct rt_request *r = b->request;
	struct rt_error *err;

	if (ifunc)
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
						 "%s in %s picks the real function when it is loaded (ifunc)",
						 r->function, m->image->name),
				    "name the one that it picks: reftrace probe show -x FILE '*%s*'", r->function);
	err = rt_error_new(m->symtab && m->symtab->stripped ? RT_E_STRIPPED : RT_E_NO_FUNCTION,
			   "%s: there is no function '%s'%s%s%s", m->image->name, r->function, r->file ? " in " : "",
			   r->file ? r->file : "",
			   m->symtab && m->symtab->stripped ? ", and the file is stripped" : "");
	for (size_t i = 0; m->symtab && i < m->symtab->count; i++) {
		const struct rt_symbol *s = &m->symtab->symbols[i];

		if (s->plt && !strcmp(s->name, r->function))
			return rt_error_fix(err, "it is in a library: -x LIBRARY (which: ldd %s)", m->path);
	}
	if (ends_with_operator(r->function))
		return rt_error_fix(err, "a blank in a name: '%s\\ int'", r->function);
	err = with_near(b, err);
	if (err->fix)
		return err;
	if (m->symtab && m->symtab->stripped)
		return rt_error_fix(err, "install its debug information, or give the file as it was before strip");
	if (!b->debug && (r->file || strstr(r->function, "::")))
		return rt_error_fix(err, "install its debug information");
	return rt_error_fix(err, "names may hold *, ? and [a-z]: '*%.40s*'", r->function);
}

/* Returns can be hooked where there is a call. */
static struct rt_error *add_instances(struct rt_answer_build *b, const struct rt_instance *list, size_t count,
				      size_t *ret_inlined)
{
	for (size_t i = 0; i < count; i++) {
		if (b->request->at_return && list[i].inlined)
			++*ret_inlined;
		else
			RT_TRY(add_function(b, &list[i]));
	}
	return NULL;
}

static struct rt_error *function(struct rt_answer_build *b)
{
	const struct rt_request *r = b->request;
	const struct rt_answer_module *m = b->module;
	_cleanup_free_ struct rt_instance *list = NULL;
	size_t count = 0, inlined = 0, found = 0;
	/* all other patterns fit more than one name */
	const char *name = r->is_glob || strpbrk(r->function, ":(") ? NULL : r->function;
	bool ifunc = false;

	if (b->debug)
		RT_TRY(rt_dwarf_instances(b->debug, name, wants, b, &list, &count));
	if (count > FUNCTIONS_MAX)
		return rt_error_fix(rt_error_new(RT_E_LIMIT, "'%s' fits %zu places", r->function, count),
				    "a narrower name, or FUNC@FILE");
	if (r->has_line || r->pattern) {
		if (!count)
			return b->debug ? no_function(b, false)
					: rt_error_fix(rt_error_new(RT_E_NOT_FOUND,
								    "%s has no debug information: lines "
								    "are not known",
								    m->image->name),
						       "FUNC or FUNC+OFFSET; or install its debug information");
		if (!r->has_line || r->line)
			return rt_answer_lines(b, list, count);
	}
	RT_TRY(add_instances(b, list, count, &inlined));
	if (!r->file)
		RT_TRY(add_symbols(b, list, count, &found, &ifunc));
	if (found && m->kernel && !b->debug)
		rt_answer_note(b, "BTF does not tell where %s is inlined: calls of its own code are seen alone",
			       r->function);
	if (inlined && inlined < count + found)
		rt_answer_note(b, "%s is inlined at %zu place%s: returns of these cannot be seen", r->function, inlined,
			       inlined == 1 ? "" : "s");
	else if (inlined)
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "%s is only inlined: it never returns", r->function),
				    "probe its last line: FUNC:LINE");
	return count + found ? NULL : no_function(b, ifunc);
}

static struct rt_error *address(struct rt_answer_build *b)
{
	struct rt_answer_place place = { .address = { b->request->offset }, .exactly = true };
	const struct rt_symbol *symbol = b->module->symtab ? rt_symtab_at(b->module->symtab, place.address) : NULL;
	struct rt_instance instance;

	if (b->debug && rt_dwarf_instance_at(b->debug, place.address, &instance)) {
		place.instance = &instance;
		place.is_entry = instance.entry.v == place.address.v;
	}
	place.function = place.instance ? instance.function : symbol ? symbol->name : NULL;
	if (symbol && symbol->addr.v == place.address.v)
		place.is_entry = true;
	return rt_answer_add(b, &place);
}

struct marker_note {
	struct rt_answer_build *b;
	const struct rt_sdt_marker *marker;
};

static void note_dropped(void *arg, unsigned n, const struct rt_operand *operand, const char *why)
{
	const struct marker_note *note = arg;

	rt_answer_note(note->b, "marker %s:%s: argument %u (%.*s) is left out: %s", note->marker->provider,
		       note->marker->name, n, (int)operand->text_len, operand->text, why);
}

/* A marker's arguments are its own; others are those of its place. */
static struct rt_error *add_marker(struct rt_answer_build *b, const struct rt_sdt_marker *m)
{
	const struct rt_answer_module *module = b->module;
	struct rt_marker_file file = { .image = module->image, .symtab = module->symtab, .path = "" };
	struct marker_note note = { b, m };
	struct rt_definition_options options = { .strings = rt_marker_texts(module->image, b->debug, m),
						 .dropped = note_dropped,
						 .arg = &note };
	_cleanup_(rt_sink_deinit) struct rt_sink text = { .fd = -1 };
	struct rt_answer_point p = { .address = m->location };
	struct rt_source_line line;
	const char *args, *why;

	if (b->request->arguments.len)
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "a marker brings its own arguments"),
				    "others: probe 0x%" PRIx64 " ARG...", m->location.v);
	rt_sink_init_memory(&text);
	RT_TRY(rt_marker_definition(&file, m, &options, &text));
	RT_TRY(rt_sink_end(&text));
	/* "p:GROUP/EVENT :0xOFFSET(0xSEMAPHORE) ARGS": all but the arguments is known */
	args = strchr(text.buffer, ':');
	args = args ? strchr(args, ' ') : NULL;
	args = args ? strchr(args + 1, ' ') : NULL;
	p.arguments = p.signature = rt_answer_text(b, "%s", args ? args : "");
	why = rt_sdt_offsets(module->image, m, &p.offset, &p.semaphore);
	if (why)
		return rt_error_new(RT_E_UNARMED, "marker %s:%s: %s", m->provider, m->name, why);
	if (b->debug && rt_dwarf_line(b->debug, m->location, &line)) {
		p.file = line.file;
		p.line = line.line;
	}
	p.group = rt_answer_text(b, "sdt_%s", m->provider);
	p.key = rt_answer_text(b, "%s:%s", m->provider, m->name);
	p.event = b->request->event ? b->request->event : rt_answer_text(b, "%s", m->name);
	return rt_vec_push(&b->answer->points, p) ? NULL : rt_error_nomem();
}

static struct rt_error *marker(struct rt_answer_build *b)
{
	const struct rt_request *r = b->request;
	_cleanup_free_ struct rt_sdt_marker *list = NULL;
	size_t count = 0;

	RT_TRY(rt_sdt_read(b->module->image, &list, &count));
	for (size_t i = 0; i < count && r->provider; i++)
		if (rt_glob_match(r->provider, list[i].provider) && rt_glob_match(r->function, list[i].name))
			RT_TRY(add_marker(b, &list[i]));
	if (b->answer->points.len)
		return NULL;
	return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "%s has no marker %s:%s", b->module->image->name,
					 r->provider ?: "*", r->function),
			    "list them: reftrace probe markers FILE");
}

static struct rt_error *dispatch(struct rt_answer_build *b)
{
	switch (b->request->kind) {
	case RT_REQUEST_FUNCTION:
		return function(b);
	case RT_REQUEST_ADDRESS:
		if (b->module->kernel && !b->debug)
			return rt_error_fix(
				rt_error_new(RT_E_UNSUPPORTED, "an address of the kernel is another at each boot"),
				"FUNC+OFFSET");
		return address(b);
	case RT_REQUEST_MARKER:
		if (b->module->kernel)
			return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "a kernel has no SDT markers"),
					    "it has tracepoints: reftrace record -e SUBSYSTEM:NAME");
		return marker(b);
	case RT_REQUEST_LINE:
	case RT_REQUEST_SOURCE:
		break;
	}
	if (!b->debug)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "%s has no debug information: lines are not known",
						 b->module->image->name),
				    "FUNC or FUNC+OFFSET; or install its debug information");
	return rt_answer_lines(b, NULL, 0);
}

struct rt_error *rt_answer_request(const struct rt_request *request, const struct rt_answer_module *module,
				   struct rt_answer *ret)
{
	struct rt_answer_build b = { .request = request, .module = module, .answer = ret };
	struct rt_error *err;

	*ret = (struct rt_answer){ .arena = { 0 } };
	b.debug = module->dwarf && rt_dwarf_present(module->dwarf) ? module->dwarf : NULL;
	err = dispatch(&b);
	rt_body_deinit(&b.body);
	if (!err && !ret->points.len)
		err = rt_error_new(RT_E_NOT_FOUND, "'%s': no place is left where all of it can be told", request->text);
	return err;
}

void rt_answer_deinit(struct rt_answer *answer)
{
	rt_vec_deinit(&answer->points);
	rt_vec_deinit(&answer->notes);
	rt_arena_deinit(&answer->arena);
}

void rt_answer_write(const struct rt_answer_point *point, const char *group, const char *event, const char *path,
		     struct rt_sink *sink)
{
	rt_sink_printf(sink, "%c:%s/%s ", point->at_return ? 'r' : 'p', group, event);
	if (path)
		rt_sink_printf(sink, "%s:0x%" PRIx64, path, point->offset.v);
	else
		rt_sink_printf(sink, "_text+%" PRIu64, point->offset.v);
	if (point->semaphore.v)
		rt_sink_printf(sink, "(0x%" PRIx64 ")", point->semaphore.v);
	rt_sink_puts(sink, point->arguments);
}
