/* SPDX-License-Identifier: GPL-2.0-only */
/* Arguments of a request in the words of tracefs. */
#include <inttypes.h>
#include <string.h>

#include "base/sink.h"
#include "base/text.h"
#include "probe/answer_build.h"
#include "probe/definition.h"
#include "probe/near.h"

enum { PROLOGUE_INSNS = 64, ARGUMENT_REGISTERS = 6 };

/* What is written for one argument. */
struct writing {
	struct rt_answer_query *q;
	const struct rt_request_argument *a;
	struct rt_sink text, signature;
	RT_VEC(const char *) names;
};

__attribute__((format(printf, 3, 4))) static struct rt_error *refuse(const struct writing *w, const char *fix,
								     const char *format, ...)
{
	_cleanup_free_ char *why = NULL;
	struct rt_error *err;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&why, format, ap);
	va_end(ap);
	if (n < 0) {
		why = NULL;
		return rt_error_nomem();
	}
	err = rt_error_new(RT_E_UNSUPPORTED, "argument '%s' of %s: %s", w->a->text,
			   rt_answer_where(w->q->build, w->q->place), why);
	return fix ? rt_error_fix(err, "%s", fix) : err;
}

/* Of kernel functions without DWARF. */
static bool has_prototypes(const struct writing *w)
{
	const struct rt_answer_build *b = w->q->build;

	return b->module->kernel && b->module->kernel->btf && !b->debug;
}

/* Data of a kernel, by its distance from _text: its addresses are others at each boot. */
static struct rt_error *kernel_data(const struct writing *w, uint64_t address, char base[48])
{
	uint64_t distance;
	const char *why = rt_kernel_data(w->q->build->module->kernel, (struct rt_elfaddr){ address }, &distance);

	if (why)
		return refuse(w, NULL, "%s", why);
	snprintf(base, 48, "@_text+%" PRIu64, distance);
	return NULL;
}

/* Distance of an ELF address from the start of the file, as the kernel counts "@+": as far from the probe as it is. */
static bool file_distance(const struct writing *w, uint64_t address, int64_t *ret)
{
	struct rt_foff offset;

	if (!rt_image_offset(w->q->build->module->image, w->q->address, &offset))
		return false;
	*ret = (int64_t)(offset.v + (address - w->q->address.v));
	return *ret >= 0;
}

/* Has the register the value that it had at the entry of the machine function? Straight code without writes to it. */
static bool still_holds(const struct writing *w, uint8_t reg)
{
	struct rt_answer_build *b = w->q->build;
	const struct rt_instance *in = w->q->place->instance;
	struct rt_elfaddr at = in ? in->around : w->q->address;

	for (unsigned n = 0; n < PROLOGUE_INSNS && at.v < w->q->address.v; n++) {
		struct rt_insn insn;

		if (!rt_body_at(&b->body, at, &insn) || insn.jump || insn.ret || insn.call ||
		    (insn.writes & (1u << reg)) || (at.v != in->around.v && rt_body_is_target(&b->body, at)))
			return false;
		at.v += insn.length;
	}
	return at.v == w->q->address.v;
}

/* Where in the first straight code of the function the place in its frame is filled; false: nowhere. */
static bool stored_at(const struct writing *w, const struct rt_location *l, struct rt_elfaddr *ret)
{
	struct rt_answer_build *b = w->q->build;
	struct rt_elfaddr at = w->q->place->instance->around;

	for (unsigned n = 0; n < PROLOGUE_INSNS; n++) {
		struct rt_cfi_row row;
		struct rt_insn insn;

		if (!rt_body_at(&b->body, at, &insn) || insn.jump || insn.ret)
			return false;
		if (insn.has_mem && insn.mem.writes && !insn.mem.segment && insn.mem.index == RT_REG_NONE &&
		    rt_dwarf_cfi(b->module->dwarf, at, &row) && row.cfa_reg == insn.mem.base &&
		    insn.mem.disp - row.cfa_offset == l->cfa_offset) {
			ret->v = at.v + insn.length;
			return true;
		}
		at.v += insn.length;
	}
	return false;
}

/* Is the CFA here as far from its register as behind the prologue? */
static bool same_frame(const struct writing *w)
{
	struct rt_dwarf *dwarf = w->q->build->module->dwarf;
	struct rt_cfi_row here, behind;

	return rt_dwarf_cfi(dwarf, w->q->address, &here) &&
	       (here.cfa_reg != RT_REG_RSP ||
		(w->q->prologue_end.v && rt_dwarf_cfi(dwarf, w->q->prologue_end, &behind) &&
		 here.cfa_reg == behind.cfa_reg && here.cfa_offset == behind.cfa_offset));
}

/* Compilers say "in the frame" for the whole function, also before the prologue has stored it there. */
static struct rt_error *check_frame(struct writing *w, const struct rt_datum *v)
{
	const struct rt_location *l = &v->variable;
	struct rt_elfaddr home;

	if (!l->in_frame || !w->q->place->instance)
		return NULL;
	if (l->cfa_known && l->cfa_offset >= 0) {
		/* the caller has stored it; but is sp already where this is counted from? */
		if (same_frame(w))
			return NULL;
		w->q->early = true;
		return refuse(w, "probe a later line: FUNC:LINE", "%s", rt_dwarf_no_frame);
	}
	if (!v->is_param) {
		w->q->early |= w->q->below;
		if (w->q->below)
			return refuse(w, "probe a line behind its first assignment: FUNC:LINE",
				      "it has no value at the beginning of the function");
		return NULL;
	}
	if (!l->cfa_known || !stored_at(w, l, &home))
		return refuse(w, "probe a later line: FUNC:LINE",
			      "where it is stored into its place in the frame cannot be seen");
	if (w->q->address.v < home.v && w->q->address.v >= w->q->place->instance->around.v) {
		w->q->early = true;
		return refuse(w,
			      rt_answer_text(w->q->build,
					     "it can be read from 0x%" PRIx64 " on: FUNC without +OFFSET, "
					     "or FUNC:LINE",
					     home.v),
			      "it is not yet stored into its place in the frame");
	}
	return NULL;
}

/* May what is read have been changed between the place that was asked for and the one that is armed? */
static struct rt_error *check_stores(const struct writing *w, const struct rt_location *l)
{
	bool reads = l->deref_count || !l->is_value;

	if (!w->q->stores || !reads || (l->in_frame && l->deref_count == 0))
		return NULL;
	return refuse(w, "ask for the pointer alone",
		      "the probe stands behind an instruction that writes memory (0x%" PRIx64
		      "), and may read what it has changed",
		      w->q->place->address.v);
}

/* "+8(+0(%di))": the base, then each load. */
static struct rt_error *write_location(struct writing *w, const struct rt_location *l, bool user, struct rt_sink *out)
{
	const char *reg = rt_kernel_register(l->reg);
	unsigned first = 0, loads = l->deref_count + !l->is_value;
	char base[48] = "";
	int64_t distance;
	uint64_t number;

	for (unsigned i = 0; i < loads; i++) {
		int64_t offset = i < l->deref_count ? l->derefs[i] : l->offset;

		if (offset > INT32_MAX || offset < INT32_MIN)
			return refuse(w, NULL, "an offset that the kernel does not take");
	}
	switch (l->base) {
	case RT_LOCATION_REG:
		if (!reg)
			return refuse(w, NULL, "a register that the kernel does not read");
		snprintf(base, sizeof(base), "%%%s", reg);
		break;
	case RT_LOCATION_NUMBER:
		/* the first load is what "@" does */
		if (loads)
			snprintf(base, sizeof(base), "@0x%" PRIx64,
				 l->number + (uint64_t)(l->deref_count ? l->derefs[0] : l->offset));
		else
			snprintf(base, sizeof(base), "\\%" PRId64, (int64_t)(l->number + (uint64_t)l->offset));
		first = loads ? 1 : 0;
		break;
	case RT_LOCATION_ADDRESS:
		if (!loads)
			return refuse(w, "what lies there can be read: @SYMBOL, or a member of it",
				      "it is the address of something in the file, which the kernel cannot compute");
		number = l->number + (uint64_t)(l->deref_count ? l->derefs[0] : l->offset);
		first = 1;
		if (w->q->build->module->kernel) {
			RT_TRY(kernel_data(w, number, base));
			break;
		}
		if (!file_distance(w, number, &distance))
			return refuse(w, NULL, "it lies before the file's code, which the kernel cannot say");
		snprintf(base, sizeof(base), "@+0x%" PRIx64, (uint64_t)distance);
		break;
	}
	if (l->base == RT_LOCATION_REG && l->is_value && l->offset) {
		if (l->deref_count)
			return refuse(w, "probe where it is in a register",
				      "it is computed (a sum), which the kernel cannot say");
		return refuse(w,
			      rt_answer_text(w->q->build,
					     "its members can be read; or take the register: NAME=%%%s, which is "
					     "it - %" PRId64,
					     reg, l->offset),
			      "it is %%%s%+" PRId64 ", a sum, which the kernel cannot say", reg, l->offset);
	}
	if (l->base != RT_LOCATION_REG && l->is_value && l->deref_count && l->offset)
		return refuse(w, NULL, "it is computed (a sum), which the kernel cannot say");
	for (unsigned i = loads; i > first; i--) {
		int64_t offset = i - 1 < l->deref_count ? l->derefs[i - 1] : l->offset;

		rt_sink_printf(out, "%c%s%" PRId64 "(", offset < 0 ? '-' : '+', user ? "u" : "",
			       offset < 0 ? -offset : offset);
	}
	rt_sink_puts(out, base);
	for (unsigned i = loads; i > first; i--)
		rt_sink_puts(out, ")");
	return NULL;
}

static bool is_string(const char *type)
{
	return type && (!strncmp(type, "string", 6) || !strncmp(type, "ustring", 7));
}

/* Bytes that a type of the kernel reads: "u32" 4, "x8[4]" 1, "b3@2/8" 1; 0: not told. */
static unsigned type_bytes(const char *type)
{
	const char *digits = *type == 'b' ? strrchr(type, '/') : type;
	uint64_t bits;

	if (!digits || !rt_parse_u64(digits + 1, strcspn(digits + 1, "["), 10, &bits))
		return !strncmp(type, "char", 4) ? 1 : 0;
	return (unsigned)bits / 8;
}

/* The type that tells all of the value and nothing else, as perf chooses them. */
static struct rt_error *default_type(struct writing *w, const struct rt_datum *v, char text[32])
{
	bool whole = v->size == 1 || v->size == 2 || v->size == 4 || v->size == 8;

	switch (v->kind) {
	case RT_DATUM_STRUCT:
		return refuse(w, "name a member: VAR.MEMBER or VAR->MEMBER", "%s is more than one value",
			      v->type ? v->type : "it");
	case RT_DATUM_ARRAY:
		return refuse(w, v->is_text ? "add :string, or [0]" : "add [0], or a type with a count: :u32[4]",
			      "%s is more than one value", v->type ? v->type : "an array");
	case RT_DATUM_FLOAT:
		if (v->size == 4 || v->size == 8)
			return refuse(
				w, rt_answer_text(w->q->build, "its bits: %s:x%u", w->a->text, (unsigned)v->size * 8),
				"a floating-point number (%s), which the kernel does not show",
				v->type ? v->type : "float");
		break;
	case RT_DATUM_SIGNED:
	case RT_DATUM_UNSIGNED:
	case RT_DATUM_POINTER:
		if (!whole)
			break;
		if (v->bits && v->kind == RT_DATUM_SIGNED)
			return refuse(w,
				      rt_answer_text(w->q->build, "its bits: %s:b%u@%u/%u", w->a->text, v->bits,
						     v->shift, (unsigned)v->size * 8),
				      "a bit field with a sign, which the kernel does not extend");
		if (v->bits)
			snprintf(text, 32, "b%u@%u/%u", v->bits, v->shift, (unsigned)v->size * 8);
		else
			snprintf(text, 32, "%c%u", v->kind == RT_DATUM_SIGNED ? 's' : 'x', (unsigned)v->size * 8);
		return NULL;
	case RT_DATUM_OTHER:
		break;
	}
	return refuse(w, "give a type: VAR:x64", "the kernel has no type for %s of %u bytes", v->type ? v->type : "it",
		      (unsigned)v->size);
}

/* A constant is written as its type shows it. */
static void fit_number(struct rt_location *l, const struct rt_datum *v)
{
	unsigned bits = (unsigned)v->size * 8;

	if (l->base != RT_LOCATION_NUMBER || !l->is_value || l->deref_count || !bits || bits >= 64)
		return;
	l->number &= (UINT64_C(1) << bits) - 1;
	if (v->kind == RT_DATUM_SIGNED && (l->number >> (bits - 1) & 1))
		l->number |= ~UINT64_C(0) << bits;
}

/* The location and type of a value, as the user wants it shown. */
static struct rt_error *shape(struct writing *w, struct rt_datum *v, char type[32])
{
	if (!w->a->type)
		return default_type(w, v, type);
	if (is_string(w->a->type)) {
		if (v->bits || !v->is_text)
			return refuse(w, "only char * and char [] are text", "%s is no text", v->type ? v->type : "it");
		/* the text lies where the pointer points to */
		if (v->kind == RT_DATUM_POINTER && v->where.is_value) {
			v->where.is_value = false;
		} else if (v->kind == RT_DATUM_POINTER) {
			if (v->where.deref_count == RT_LOCATION_DEREFS_MAX)
				return refuse(w, NULL, "behind too many pointers");
			v->where.derefs[v->where.deref_count++] = v->where.offset;
			v->where.offset = 0;
		}
		if (v->where.is_value)
			return refuse(w, NULL, "an array in a register");
	} else if (v->size && type_bytes(w->a->type) > v->size && v->kind != RT_DATUM_ARRAY) {
		return refuse(w, "a type of its size", "it has %u bytes, and %s reads %u", (unsigned)v->size,
			      w->a->type, type_bytes(w->a->type));
	} else if (strchr(w->a->type, '[') && v->where.is_value) {
		return refuse(w, "the type without [n]", "it is in a register, and no array");
	}
	if (strlen(w->a->type) >= 32)
		return refuse(w, NULL, "its type is too long");
	snprintf(type, 32, "%s", w->a->type);
	return NULL;
}

static struct rt_error *put(struct writing *w, const char *name, const char *value, const char *type)
{
	for (size_t i = 0; name && i < w->names.len; i++)
		if (!strcmp(w->names.data[i], name))
			return refuse(w, "give one of them another: NAME=...", "there are two arguments called %s",
				      name);
	if (name && !rt_vec_push(&w->names, name))
		return rt_error_nomem();
	rt_sink_puts(&w->text, " ");
	if (name)
		rt_sink_printf(&w->text, "%s=", name);
	rt_sink_printf(&w->text, "%s%s%s", value, type ? ":" : "", type ? type : "");
	rt_sink_printf(&w->signature, "%s:%s,", name ? name : "", type ? type : "");
	return NULL;
}

static struct rt_error *put_value(struct writing *w, struct rt_datum *v)
{
	_cleanup_(rt_sink_deinit) struct rt_sink text = { .fd = -1 };
	char type[32];

	RT_TRY(check_frame(w, v));
	RT_TRY(shape(w, v, type));
	if (v->where.at_entry && !still_holds(w, v->where.reg))
		return refuse(w, "probe the entry of the function around it",
			      "only what it was when the function was entered is known (DW_OP_entry_value of %%%s)",
			      rt_kernel_register(v->where.reg));
	RT_TRY(check_stores(w, &v->where));
	fit_number(&v->where, v);
	rt_sink_init_memory(&text);
	RT_TRY(write_location(w, &v->where, w->a->user, &text));
	RT_TRY(rt_sink_end(&text));
	return put(w, w->a->name ? w->a->name : v->name, text.buffer, type);
}

static void offer(const char *name, void *arg)
{
	rt_near_offer(arg, name);
}

static struct rt_error *unknown(const struct writing *w, const char *why)
{
	const struct rt_answer_query *q = w->q;
	struct rt_near near = { .wanted = w->a->variable };
	struct rt_error *err = rt_error_new(RT_E_NOT_FOUND, "argument '%s' of %s: %s", w->a->text,
					    rt_answer_where(q->build, q->place), why);

	if (q->place->instance)
		rt_dwarf_names(q->build->debug, q->place->instance, q->address, true, offer, &near);
	else if (has_prototypes(w))
		(void)rt_kernel_parameters(q->build->module->kernel, q->place->function, offer, &near);
	if (near.count)
		return rt_error_fix(err, "did you mean %s?", near.names[0]);
	return rt_error_fix(err, "%s takes all that can be read there", has_prototypes(w) ? "$params" : "$vars");
}

static const char *fix_of(const struct writing *w, const char *why)
{
	if (has_prototypes(w))
		return "a vmlinux with debug information tells it; or name the register: NAME=%di";
	if (!w->q->build->debug)
		return "install its debug information, or name the register: NAME=%di";
	/* members and indexes: the reason says what would do */
	if (strncmp(why, "not known here", 14) != 0 && strncmp(why, "optimised away", 14) != 0)
		return NULL;
	return "FUNC:LINE where it is known, or $vars for what is there";
}

/* By the prototype that BTF has. */
static const char *by_prototype(const struct writing *w, struct rt_datum *ret)
{
	const struct rt_answer_build *b = w->q->build;
	const struct rt_request_argument *a = w->a;

	if (!w->q->place->is_entry || b->request->offset || !w->q->place->function)
		return "BTF tells arguments at the entry of a function only";
	return rt_kernel_datum(b->module->kernel, &b->answer->arena, w->q->place->function, a->variable, a->steps,
			       a->step_count, ret);
}

static struct rt_error *variable(struct writing *w)
{
	const struct rt_answer_query *q = w->q;
	const struct rt_answer_module *m = q->build->module;
	struct rt_datum v;
	const char *why = "there is no debug information";

	if (m->image->machine != RT_MACHINE_X86_64)
		return refuse(w, NULL, "variables can be read on x86-64 only");
	if (has_prototypes(w))
		why = by_prototype(w, &v);
	else if (q->build->debug)
		why = rt_dwarf_datum(q->build->debug, q->place->instance, q->address, w->a->variable, w->a->steps,
				     w->a->step_count, &v);
	if (why && (!strcmp(why, "there is no such variable") || !strcmp(why, rt_kernel_no_parameter)))
		return unknown(w, why);
	w->q->early |= why == rt_dwarf_no_frame;
	if (why)
		return refuse(w, fix_of(w, why), "%s", why);
	if (q->build->request->at_return && v.where.base == RT_LOCATION_REG)
		return refuse(w, "$retval; or probe the entry as well",
			      "it is known at the entry only, not at the return");
	return put_value(w, &v);
}

static struct rt_error *retval(struct writing *w)
{
	const struct rt_answer_query *q = w->q;
	const struct rt_instance *in = q->place->instance;
	bool by_btf = has_prototypes(w) && q->place->function, nothing = false;
	const char *why = NULL;
	struct rt_datum v;
	char type[32];

	if (!q->build->request->at_return)
		return refuse(w, "FUNC%return $retval", "there is a return value at the return only");
	if (by_btf && !w->a->type)
		why = rt_kernel_returns(q->build->module->kernel, &q->build->answer->arena, q->place->function, &v,
					&nothing);
	if (why)
		return refuse(w, "give a type: $retval:s64", "%s", why);
	if (!in && !(by_btf && !w->a->type))
		return put(w, w->a->name, "$retval", w->a->type);
	if (in)
		nothing = !rt_dwarf_returns(q->build->debug, in, &v);
	if (nothing)
		return refuse(w, "leave it out", "the function returns nothing (void)");
	if (v.kind == RT_DATUM_FLOAT || v.kind == RT_DATUM_STRUCT || v.size > 8)
		return refuse(w, NULL, "%s is not returned in the register that $retval reads", v.type ? v.type : "it");
	v.where = (struct rt_location){ .is_value = true };
	if (is_string(w->a->type)) {
		if (!v.is_text)
			return refuse(w, "only char * is text", "%s is no text", v.type ? v.type : "it");
		return put(w, w->a->name, "+0($retval)", w->a->type);
	}
	RT_TRY(shape(w, &v, type));
	return put(w, w->a->name, "$retval", type);
}

/* $argN by the calling convention: at the first instruction of a function only. */
static struct rt_error *nth_argument(struct writing *w, char base[48])
{
	const struct rt_answer_query *q = w->q;
	uint64_t n = (uint64_t)w->a->fetch.number;

	if (q->build->module->image->machine != RT_MACHINE_X86_64)
		return refuse(w, NULL, "arguments can be told on x86-64 only");
	if (!q->place->is_entry || q->address.v != q->place->address.v || q->build->request->at_return ||
	    (q->place->instance && q->place->instance->inlined))
		return refuse(w, "name the variable", "arguments can be counted at the entry of a function only");
	if (n <= ARGUMENT_REGISTERS)
		snprintf(base, 48, "%%%s", rt_kernel_register((uint8_t)rt_reg_argument((unsigned)n)));
	else
		snprintf(base, 48, "$stack%" PRIu64, n - ARGUMENT_REGISTERS);
	return NULL;
}

static struct rt_error *fetch_base(struct writing *w, char base[48])
{
	const struct rt_request_fetch *f = &w->a->fetch;
	bool is_kernel = w->q->build->module->kernel;
	const struct rt_symbol *symbol;
	int64_t distance;

	switch (f->base) {
	case RT_FETCH_REG:
		snprintf(base, 48, "%%%s", f->name);
		return NULL;
	case RT_FETCH_STACK:
		snprintf(base, 48, "$stack");
		return NULL;
	case RT_FETCH_STACK_ENTRY:
		snprintf(base, 48, "$stack%" PRId64, f->number);
		return NULL;
	case RT_FETCH_COMM:
		snprintf(base, 48, "$comm");
		return NULL;
	case RT_FETCH_ARGUMENT:
		return nth_argument(w, base);
	case RT_FETCH_NUMBER:
		snprintf(base, 48, "\\%" PRId64, f->number);
		return NULL;
	case RT_FETCH_TEXT:
		return NULL;
	case RT_FETCH_ADDRESS:
		if (is_kernel)
			return refuse(w, "@SYMBOL", "an address of the kernel is another at each boot");
		snprintf(base, 48, "@0x%" PRIx64, (uint64_t)f->number);
		return NULL;
	case RT_FETCH_OFFSET:
		if (is_kernel)
			return refuse(w, "@SYMBOL", "a kernel is no file that is mapped");
		snprintf(base, 48, "@+0x%" PRIx64, (uint64_t)f->number);
		return NULL;
	case RT_FETCH_SYMBOL:
		symbol = w->q->build->module->symtab ? rt_symtab_find(w->q->build->module->symtab, f->name) : NULL;
		if (!symbol)
			return refuse(w, "nm FILE", "the file has no symbol %s", f->name);
		if (is_kernel)
			return kernel_data(w, symbol->addr.v + (uint64_t)f->number, base);
		if (!file_distance(w, symbol->addr.v + (uint64_t)f->number, &distance))
			return refuse(w, NULL, "it lies before the file's code, which the kernel cannot say");
		snprintf(base, 48, "@+0x%" PRIx64, (uint64_t)distance);
		return NULL;
	}
	return NULL;
}

static struct rt_error *fetch(struct writing *w)
{
	_cleanup_(rt_sink_deinit) struct rt_sink text;
	const struct rt_request_fetch *f = &w->a->fetch;
	char base[48];

	rt_sink_init_memory(&text);
	RT_TRY(fetch_base(w, base));
	for (unsigned i = f->derefs; i-- > 0;)
		rt_sink_printf(&text, "%c%s%" PRIu64 "(", f->offset[i] < 0 ? '-' : '+',
			       f->user[i] && w->q->build->module->kernel ? "u" : "",
			       f->offset[i] < 0 ? -(uint64_t)f->offset[i] : (uint64_t)f->offset[i]);
	if (f->base == RT_FETCH_TEXT)
		rt_sink_printf(&text, "\\\"%s\"", f->name);
	else
		rt_sink_puts(&text, base);
	for (unsigned i = 0; i < f->derefs; i++)
		rt_sink_puts(&text, ")");
	RT_TRY(rt_sink_end(&text));
	return put(w, w->a->name, text.buffer, w->a->type);
}

struct names {
	RT_VEC(const char *) list;
};

static void keep(const char *name, void *arg)
{
	struct names *names = arg;

	for (size_t i = 0; i < names->list.len; i++)
		if (!strcmp(names->list.data[i], name))
			return;
	(void)rt_vec_push(&names->list, name);
}

/* $params, $vars: what can be told; the rest is noted. */
static struct rt_error *several(struct writing *w, bool variables)
{
	const struct rt_answer_query *q = w->q;
	const struct rt_request_argument *group = w->a;
	struct rt_error *err = NULL;
	struct names names = { 0 };
	const char *why = NULL;

	if (has_prototypes(w) && !variables && q->place->function)
		why = rt_kernel_parameters(q->build->module->kernel, q->place->function, keep, &names);
	else if (has_prototypes(w))
		why = "BTF knows no local variables";
	if (why) {
		rt_vec_deinit(&names.list);
		return refuse(w, "$params; or a vmlinux with debug information", "%s", why);
	}
	if (!q->place->instance && !has_prototypes(w))
		return refuse(w, "install its debug information, or name registers: NAME=%di",
			      "there is no debug information about it");
	if (q->place->instance)
		rt_dwarf_names(q->build->debug, q->place->instance, q->address, variables, keep, &names);
	for (size_t i = 0; i < names.list.len && !err; i++) {
		struct rt_request_argument one = { .text = names.list.data[i], .variable = names.list.data[i] };

		w->a = &one;
		err = variable(w);
		if (err && (err->code == RT_E_UNSUPPORTED || err->code == RT_E_NOT_FOUND)) {
			rt_answer_note(q->build, "left out: %s", err->message);
			rt_error_free(err);
			err = NULL;
		}
	}
	w->a = group;
	rt_vec_deinit(&names.list);
	return err;
}

static struct rt_error *each(struct writing *w)
{
	const struct rt_request *r = w->q->build->request;

	for (size_t i = 0; i < r->arguments.len; i++) {
		w->a = &r->arguments.data[i];
		switch (w->a->kind) {
		case RT_ARGUMENT_VARIABLE:
			RT_TRY(variable(w));
			break;
		case RT_ARGUMENT_FETCH:
			RT_TRY(fetch(w));
			break;
		case RT_ARGUMENT_RETVAL:
			RT_TRY(retval(w));
			break;
		case RT_ARGUMENT_PARAMS:
		case RT_ARGUMENT_VARS:
			RT_TRY(several(w, w->a->kind == RT_ARGUMENT_VARS));
			break;
		}
	}
	return NULL;
}

struct rt_error *rt_answer_arguments(struct rt_answer_query *query, struct rt_answer_point *ret)
{
	struct writing w = { .q = query };
	struct rt_error *err;

	rt_sink_init_memory(&w.text);
	rt_sink_init_memory(&w.signature);
	err = each(&w);
	if (!err)
		err = rt_sink_end(&w.text);
	if (!err)
		err = rt_sink_end(&w.signature);
	if (!err) {
		ret->arguments = rt_answer_text(query->build, "%s", w.text.len ? w.text.buffer : "");
		ret->signature = rt_answer_text(query->build, "%s", w.signature.len ? w.signature.buffer : "");
	}
	rt_vec_deinit(&w.names);
	rt_sink_deinit(&w.text);
	rt_sink_deinit(&w.signature);
	return err;
}
