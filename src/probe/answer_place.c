/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which instruction stands for a place. The first one does, if it can be armed and all arguments can be told there;
 * else one behind it in the same straight code, which runs whenever the first does.
 */
#include <inttypes.h>
#include <string.h>

#include "probe/answer_build.h"
#include "probe/site.h"

enum { LINE_BYTES = 160, LINE_INSNS = 48 };

/* What one place is tried with. */
struct trial {
	struct rt_answer_build *b;
	const struct rt_answer_place *place;
	struct rt_elfaddr prologue_end; /* v = 0: none behind the place */
	struct rt_answer_point best;
	bool found, early, later_first;
	bool waited;            /* something was not in the frame yet */
	size_t notes;           /* of the answer before */
	struct rt_error *first; /* why the first one cannot be taken */
	struct rt_error *why;   /* the first reason that a later one does not take away */
};

static struct rt_elfaddr prologue_end(struct rt_answer_build *b, const struct rt_answer_place *place)
{
	if (!place->instance || place->instance->inlined || !rt_body_holds(&b->body, place->address))
		return (struct rt_elfaddr){ 0 };
	return rt_dwarf_prologue_end(b->debug, place->instance->unit, place->instance->around, b->body.end);
}

static struct rt_error *not_insn(struct rt_answer_build *b, const struct rt_answer_place *place,
				 struct rt_elfaddr before, struct rt_elfaddr behind)
{
	return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED,
					 "%s is inside of an instruction: a probe there would destroy the program",
					 rt_answer_where(b, place)),
			    "instructions begin at 0x%" PRIx64 " and 0x%" PRIx64, before.v, behind.v);
}

static struct rt_error *not_armable(struct rt_answer_build *b, const struct rt_answer_place *place)
{
	return rt_error_fix(
		rt_error_new(RT_E_UNSUPPORTED,
			     "%s: the kernel cannot arm the instruction there (a lock or segment prefix, or "
			     "unknown): it would never fire",
			     rt_answer_where(b, place)),
		place->exactly ? "take the one behind it, or FUNC without +OFFSET" : "probe another line: FUNC:LINE");
}

static struct rt_error *fill_point(struct trial *t, struct rt_elfaddr at, struct rt_answer_point *p)
{
	struct rt_answer_build *b = t->b;
	const struct rt_kernel *kernel = b->module->kernel;
	const char *why = kernel ? rt_kernel_refuses(kernel, at) : NULL;
	struct rt_source_line line = { 0 };

	if (why)
		return rt_error_new(RT_E_UNSUPPORTED, "%s: %s", rt_answer_where(b, t->place), why);
	if (kernel)
		p->offset.v = at.v - kernel->text.v;
	else if (!rt_image_offset(b->module->image, at, &p->offset))
		return rt_error_new(RT_E_UNSUPPORTED, "%s: its code is not in the file", rt_answer_where(b, t->place));
	p->address = at;
	p->at_return = b->request->at_return;
	p->function = t->place->function;
	p->key = t->place->key ? t->place->key : rt_answer_text(b, "0x%" PRIx64, t->place->address.v);
	if (b->debug && rt_dwarf_line(b->debug, t->place->address, &line)) {
		p->file = line.file;
		p->line = line.line;
	}
	return NULL;
}

/* The point with its arguments at one instruction. Running out of memory is the only error. */
static struct rt_error *try_at(struct trial *t, const struct rt_insn *insn, bool stores, bool *ret_done)
{
	struct rt_answer_build *b = t->b;
	struct rt_answer_query q = { .build = b, .place = t->place, .address = insn->addr, .stores = stores };
	struct rt_answer_point p = { .at_return = false };
	struct rt_error *err = NULL;

	q.prologue_end = t->prologue_end;
	q.below = t->prologue_end.v && t->place->is_entry && insn->addr.v < t->prologue_end.v;
	b->answer->notes.len = t->notes;
	/* of its own instructions the kernel arms more than of a program's */
	if (insn->cost == RT_COST_NEVER && !b->module->kernel)
		err = not_armable(b, t->place);
	if (!err)
		err = fill_point(t, insn->addr, &p);
	if (!err)
		err = rt_answer_arguments(&q, &p);
	if (err && err->code == RT_E_NOMEM)
		return err;
	t->waited |= q.early;
	if (err) {
		struct rt_error **keep = !t->first ? &t->first : q.early || t->why ? NULL : &t->why;

		if (keep)
			*keep = err;
		else
			rt_error_free(err);
		if (keep == &t->first)
			t->later_first = q.early || insn->cost == RT_COST_NEVER;
		return NULL;
	}
	t->best = p;
	t->found = true;
	t->early = q.early;
	/* where something had to be stored first, all of the prologue is waited for, as perf and debuggers do */
	*ret_done = !q.early &&
		    (insn->addr.v == t->place->address.v || !t->prologue_end.v || insn->addr.v >= t->prologue_end.v);
	return NULL;
}

/* Does the instruction store anywhere but into the frame? */
static bool stores_outside(struct rt_answer_build *b, const struct rt_insn *insn)
{
	struct rt_cfi_row row;

	if (!insn->has_mem || !insn->mem.writes)
		return false;
	if (insn->mem.base == RT_REG_RSP && insn->mem.index == RT_REG_NONE && !insn->mem.segment)
		return false;
	return insn->mem.base != RT_REG_RBP || insn->mem.index != RT_REG_NONE || insn->mem.segment || !b->debug ||
	       !rt_dwarf_cfi(b->module->dwarf, insn->addr, &row) || row.cfa_reg != RT_REG_RBP;
}

/* The straight code from the place on, until something fits. */
static struct rt_error *walk(struct trial *t)
{
	const struct rt_answer_place *place = t->place;
	struct rt_answer_build *b = t->b;
	struct rt_elfaddr at = place->address;
	bool stores = false, done = false;

	for (unsigned n = 0; n < LINE_INSNS && at.v - place->address.v < LINE_BYTES && !done; n++) {
		struct rt_insn insn;

		if (!rt_body_at(&b->body, at, &insn))
			break;
		/* a place that others join does not run once for each time that the first one does */
		if (n && (rt_body_is_target(&b->body, at) ||
			  (place->instance && !rt_dwarf_instance_holds(b->debug, place->instance, at))))
			break;
		/* with something found, only the end of the prologue is better */
		if (!t->found || t->early || at.v == t->prologue_end.v)
			RT_TRY(try_at(t, &insn, stores, &done));
		if (place->exactly || insn.jump || insn.ret || insn.call)
			break;
		stores |= stores_outside(b, &insn);
		at.v += insn.length;
	}
	return NULL;
}

/* Hooking a return takes the return address off the stack: sp must still point to it. */
static struct rt_error *at_return(struct trial *t)
{
	struct rt_answer_build *b = t->b;
	const struct rt_answer_place *place = t->place;
	struct rt_site_request request = { .image = b->module->image,
					   .decoder = b->module->decoder,
					   .entry = place->address,
					   .start = b->body.start,
					   .end = b->body.end,
					   .reg = RT_REG_NONE,
					   .return_slot = true,
					   .nearest = true };
	struct rt_elfaddr start, end;
	struct rt_site site;
	struct rt_insn insn;
	const char *why;
	bool lsda = false, done;

	if (!b->module->returns_anyway && rt_dwarf_fde(b->module->dwarf, place->address, &start, &end, &lsda) && lsda)
		return rt_error_fix(
			rt_error_new(RT_E_UNSUPPORTED,
				     "%s has exception handlers: an exception that passes its hooked return ends "
				     "the program",
				     rt_answer_where(b, place)),
			"probe the lines behind its calls, or say --force");
	if (place->function && b->module->symtab) {
		const struct rt_symbol *symbol = rt_symtab_at(b->module->symtab, place->address);

		if (symbol && !strncmp(symbol->name, "_Z", 2))
			rt_answer_note(b, "%s is C++: an exception that passes its hooked return ends the program",
				       rt_answer_where(b, place));
		t->notes = b->answer->notes.len;
	}
	/* the walk is made for x86-64 */
	if (b->module->image->machine == RT_MACHINE_X86_64) {
		if (!rt_site_find(&request, &site, &why))
			return rt_error_new(RT_E_UNSUPPORTED, "%s: %s", rt_answer_where(b, place), why);
	} else {
		site.address = place->address;
	}
	if (!rt_body_at(&b->body, site.address, &insn))
		return not_armable(b, place);
	return try_at(t, &insn, false, &done);
}

/*
 * At this very place, of a kernel: its returns are hooked at the entry alone, and without debug information there may
 * be no code to be read. It looks itself whether an instruction begins there.
 */
static struct rt_error *exactly(struct trial *t)
{
	const struct rt_insn insn = { .addr = t->place->address };
	bool done;

	if (t->b->request->at_return && !t->place->is_entry)
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "%s: returns of a function are hooked at its entry",
						 rt_answer_where(t->b, t->place)),
				    "FUNC%%return");
	return try_at(t, &insn, false, &done);
}

/* What is behind the last "::" that is not in the arguments of a template, up to those of its own. */
static size_t last_name(const char *name, const char **ret)
{
	unsigned depth = 0;
	const char *last = name;

	for (const char *c = name; *c; c++) {
		depth += *c == '<';
		depth -= *c == '>' && depth;
		if (!depth && !strncmp(c, "::", 2))
			last = c + 2;
	}
	*ret = last;
	return strncmp(last, "operator", 8) != 0 && strcspn(last, "<") ? strcspn(last, "<") : strlen(last);
}

static const char *event_name(struct rt_answer_build *b, const struct rt_answer_place *place)
{
	const char *last, *end;
	char text[RT_REQUEST_NAME_MAX + 1];
	size_t n = 0, length;

	if (b->request->event)
		return b->request->event;
	if (!place->function || b->request->kind == RT_REQUEST_ADDRESS)
		return rt_answer_text(b, "abs_%" PRIx64, place->address.v);
	length = last_name(place->function, &last);
	end = last + length;
	/* room for "_L12345678", "__return" and a number */
	for (; last < end && *last != '.' && n < RT_REQUEST_NAME_MAX - 20; last++) {
		bool letter = (*last >= 'a' && *last <= 'z') || (*last >= 'A' && *last <= 'Z'),
		     digit = *last >= '0' && *last <= '9';

		if (digit && !n)
			text[n++] = '_';
		text[n++] = letter || digit ? *last : '_';
	}
	text[n] = '\0';
	if (!n)
		return rt_answer_text(b, "abs_%" PRIx64, place->address.v);
	if (place->named)
		return rt_answer_text(b, "%s_L%u", text, place->named);
	return rt_answer_text(b, "%s%s", text, b->request->at_return ? "__return" : "");
}

static struct rt_error *take(struct trial *t)
{
	struct rt_answer_build *b = t->b;
	const struct rt_answer_place *place = t->place;

	for (size_t i = 0; i < b->answer->points.len; i++)
		if (b->answer->points.data[i].address.v == t->best.address.v &&
		    !strcmp(b->answer->points.data[i].key, t->best.key))
			return NULL;
	t->best.event = event_name(b, place);
	if (t->best.address.v != place->address.v)
		rt_answer_note(b, "%s: the probe is %" PRIu64 " bytes behind, at 0x%" PRIx64 ": %s",
			       rt_answer_where(b, place), t->best.address.v - place->address.v, t->best.address.v,
			       t->waited || !t->first ? "there the prologue has stored the arguments"
						      : t->first->message);
	return rt_vec_push(&b->answer->points, t->best) ? NULL : rt_error_nomem();
}

struct rt_error *rt_answer_add(struct rt_answer_build *b, const struct rt_answer_place *place)
{
	struct trial t = { .b = b, .place = place, .notes = b->answer->notes.len };
	bool is_kernel = b->module->kernel;
	struct rt_elfaddr before, behind;
	struct rt_error *err;

	if (!is_kernel || b->debug) {
		RT_TRY(rt_answer_body(b, place->address));
		if (!rt_body_is_insn(&b->body, place->address, &before, &behind))
			return not_insn(b, place, before, behind);
		t.prologue_end = prologue_end(b, place);
	}
	if (is_kernel && (!b->debug || b->request->at_return))
		err = exactly(&t);
	else
		err = b->request->at_return ? at_return(&t) : walk(&t);
	if (!err && t.found) {
		err = take(&t);
	} else if (!err && b->module->partial && t.first) {
		rt_answer_note(b, "left out: %s", t.first->message);
	} else if (!err) {
		/* what is only too early at the place itself is no reason when it failed later, too */
		err = t.why && t.later_first ? rt_take(t.why) : rt_take(t.first);
		if (!err)
			err = not_armable(b, place);
	}
	rt_error_free(t.first);
	rt_error_free(t.why);
	return err;
}
