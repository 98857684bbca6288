/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Specs with their plans. The first batch is the owner's spec. When a program
 * that starts later has families of its own, they become a further batch,
 * because a plan's spec must not change; types and points get numbers that
 * are unique over all batches.
 */
#include "session/batch.h"
#include "base/log.h"
#include "probe/spec_type.h"

/* of the functions of a type: what defines one matters; and what calls one, where that counts */
enum { DEFINED = 1, CALLED = 2 };

/* Objects that are only made and freed, as blocks of the heap are, are each module's. */
static bool counts(const struct rt_spec_type *type)
{
	for (size_t i = 0; i < type->functions.len; i++) {
		if (type->functions.data[i].op == RT_OP_GET || type->functions.data[i].op == RT_OP_PUT)
			return true;
	}
	return false;
}

static struct rt_error *index_names(struct rt_batch *b)
{
	for (size_t i = 0; i < b->spec->types.len; i++) {
		const struct rt_spec_type *type = &b->spec->types.data[i];

		for (size_t k = 0; k < type->functions.len; k++) {
			uint64_t *slot;

			if (rt_spec_is_pattern(&type->functions.data[k]))
				continue;
			slot = rt_map_put(&b->names, rt_key_text(type->functions.data[k].name), NULL);
			if (!slot)
				return rt_error_nomem();
			*slot |= counts(type) ? DEFINED | CALLED : DEFINED;
		}
	}
	return NULL;
}

static void batch_free(struct rt_batch *b)
{
	rt_plan_destroy(b->plan);
	rt_spec_deinit(&b->own);
	rt_map_deinit(&b->names);
	rt_vec_deinit(&b->digest);
	free(b);
}

struct rt_error *rt_batch_add(struct rt_session *s, struct rt_spec *spec, struct rt_spec *own)
{
	struct rt_batch *b = calloc(1, sizeof(*b));
	struct rt_error *err;

	if (!b)
		return rt_error_nomem();
	b->spec = spec;
	if (own) {
		b->own = *own;
		*own = (struct rt_spec){ 0 };
		b->spec = &b->own;
	}
	b->type_base = s->type_nr;
	err = rt_plan_create(b->spec, &s->options.plan, &b->plan);
	if (!err)
		err = index_names(b);
	for (size_t i = 0; !err && i < b->spec->types.len; i++) {
		if (!rt_vec_push(&b->digest, 0))
			err = rt_error_nomem();
	}
	if (!err && !rt_vec_push(&s->batches, b))
		err = rt_error_nomem();
	if (err) {
		batch_free(b);
		return err;
	}
	s->type_nr += (uint32_t)b->spec->types.len;
	return NULL;
}

void rt_batches_deinit(struct rt_session *s)
{
	for (size_t i = 0; i < s->batches.len; i++)
		batch_free(s->batches.data[i]);
	rt_vec_deinit(&s->batches);
	rt_vec_deinit(&s->points);
}

static bool patterns_match(const struct rt_batch *b, const char *name, bool called)
{
	for (size_t i = 0; i < b->spec->types.len; i++) {
		const struct rt_spec_type *type = &b->spec->types.data[i];

		if (called && !counts(type))
			continue;
		for (size_t k = 0; k < type->functions.len; k++) {
			if (rt_spec_means(type->functions.data[k].name, name, rt_spec_is_told(type)))
				return true;
		}
	}
	return false;
}

/* sdt:prov:name and 0xADDRESS@DSO are not in the symbol table */
static bool has_special(const struct rt_batch *b, const struct rt_module *m)
{
	struct rt_bytes notes;

	for (size_t i = 0; i < b->spec->types.len; i++) {
		const struct rt_spec_type *type = &b->spec->types.data[i];

		for (size_t k = 0; k < type->functions.len; k++) {
			const char *name = type->functions.data[k].name;

			if (!strncmp(name, "0x", 2))
				return true;
			if (!strncmp(name, "sdt:", 4) && rt_image_section(m->image, ".note.stapsdt", &notes, NULL))
				return true;
		}
	}
	return false;
}

bool rt_batch_matters(const struct rt_batch *b, const struct rt_module *m)
{
	bool patterns = false;

	/* The program itself may have the functions only inlined. Who calls those of another module stores what they
	 * return, hands it out and frees what holds it. */
	if (m->main || has_special(b, m))
		return true;
	for (size_t i = 0; i < b->spec->types.len && !patterns; i++) {
		const struct rt_spec_type *type = &b->spec->types.data[i];

		for (size_t k = 0; k < type->functions.len && !patterns; k++)
			patterns = rt_spec_is_told(type) || rt_spec_is_pattern(&type->functions.data[k]);
	}
	for (size_t i = 0; m->symtab && i < m->symtab->count; i++) {
		const struct rt_symbol *sym = &m->symtab->symbols[i];
		const uint64_t *known;

		if (!sym->function && !sym->plt)
			continue;
		known = rt_map_get(&b->names, rt_key_text(sym->name));
		if (known && *known & (sym->plt ? CALLED : DEFINED))
			return true;
		if (patterns && patterns_match(b, sym->name, sym->plt))
			return true;
	}
	return false;
}

/* ---- what a scan found that is not known yet ---- */

static bool same_functions(const struct rt_spec_type *a, const struct rt_spec_type *b)
{
	if (strcmp(a->name, b->name) != 0 || a->functions.len != b->functions.len)
		return false;
	for (size_t i = 0; i < a->functions.len; i++) {
		const struct rt_spec_function *f = &a->functions.data[i], *g = &b->functions.data[i];

		if (f->op != g->op || f->place != g->place || f->arg != g->arg || strcmp(f->name, g->name) != 0)
			return false;
	}
	return true;
}

static bool known(const struct rt_session *s, const struct rt_spec_type *type)
{
	for (size_t i = 0; i < s->batches.len; i++) {
		const struct rt_spec *spec = s->batches.data[i]->spec;

		for (size_t k = 0; k < spec->types.len; k++) {
			if (same_functions(&spec->types.data[k], type))
				return true;
		}
	}
	return false;
}

static void forget_type(struct rt_spec *spec, size_t at)
{
	struct rt_spec gone = { 0 };
	struct rt_spec_type type = spec->types.data[at];

	memmove(&spec->types.data[at], &spec->types.data[at + 1],
		(spec->types.len - at - 1) * sizeof(spec->types.data[0]));
	spec->types.len--;
	/* its owner frees what it holds: hand it to a spec of its own */
	if (rt_vec_push(&gone.types, type))
		rt_spec_deinit(&gone);
}

/*
 * A family that only names speak for may be no counting at all (av_packet_unref() empties a packet that stays): nothing
 * is traced by it unless -t asks. The first of them is kept for who is told that nothing was found.
 */
static struct rt_error *leave_unsure(struct rt_session *s, struct rt_spec *spec)
{
	for (size_t i = 0; i < spec->types.len;) {
		const struct rt_spec_type *type = &spec->types.data[i];

		if (!type->unsure) {
			i++;
			continue;
		}
		if (!s->unsure && !(s->unsure = strdup(type->name)))
			return rt_error_nomem();
		forget_type(spec, i);
	}
	return NULL;
}

static bool is_system(const struct rt_module *m)
{
	static const char *const names[] = { "libc.so",      "libc-",    "ld-linux", "ld-musl", "libpthread",
					     "libstdc++.so", "libgcc_s", "libm.so",  "libm-",   "libdl",
					     "librt",        "ld.so",    "libresolv" };
	const char *base = rt_module_basename(m);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(base, names[i], strlen(names[i])))
			return !m->main;
	}
	return false;
}

struct rt_error *rt_plan_module_of(struct rt_module *m, struct rt_plan_module *ret)
{
	const struct rt_symtab *symtab;
	struct rt_dwarf *dwarf;

	RT_TRY(rt_module_symtab(m, &symtab));
	RT_TRY(rt_module_dwarf(m, &dwarf));
	*ret = (struct rt_plan_module){ m->id, m->path, m->image, symtab, dwarf };
	return NULL;
}

struct rt_error *rt_batch_scan(struct rt_session *s, const uint32_t *modules, size_t count)
{
	struct rt_scan_options options = { .types = s->options.types };
	bool first = !s->batches.len && s->options.spec;
	struct rt_spec found = { 0 };
	struct rt_spec *spec = first ? s->options.spec : &found;
	struct rt_error *err = NULL;

	for (size_t i = 0; i < count && !err; i++) {
		struct rt_module *m = rt_session_module(s, modules[i]);
		struct rt_plan_module pm;

		if (m->scanned || is_system(m))
			continue;
		m->scanned = true;
		err = rt_plan_module_of(m, &pm);
		if (!err && s->options.presets)
			err = rt_presets_adopt(s->options.presets, &pm, spec);
		if (!err)
			err = rt_scan_module(&pm, &options, spec);
		/* a module that cannot be understood has no families; the others may */
		if (err && err->code != RT_E_NOMEM) {
			rt_log_debug("session", "scan of %s: %s", m->path, err->message);
			rt_error_free(err);
			err = NULL;
		}
	}
	if (!err && !s->options.types)
		err = leave_unsure(s, spec);
	for (size_t i = 0; !first && i < found.types.len;) {
		if (known(s, &found.types.data[i]))
			forget_type(&found, i);
		else
			i++;
	}
	if (!err && !first && found.types.len)
		err = rt_batch_add(s, NULL, &found);
	rt_spec_deinit(&found);
	return err;
}
