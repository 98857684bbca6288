/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Modules -> points. Each module is planned once, when the first process that
 * maps it has its initial modules together; the points go out as records
 * before anything is armed.
 */
#include "base/log.h"
#include "probe/call.h"
#include "probe/source_name.h"
#include "probe/spec_type.h"
#include "session/batch.h"

/*
 * Where all that happens to an object names it by its address: not what the kernel hands out, whose objects are ranges,
 * nor types with an operation on two objects at once.
 */
static bool is_sampled(const struct rt_session *s, const struct rt_plan_type *type)
{
	return s->options.engine.sample.on && !rt_spec_is_calls(type->spec) && !rt_spec_has_op(type->spec, RT_OP_SWAP);
}

/* Its objects have one owner: they are made and put, and nothing else, so that who frees one that was not put ends it.
 */
static bool has_one_owner(const struct rt_spec_type *type)
{
	bool put = false;

	for (size_t i = 0; i < type->functions.len; i++) {
		const enum rt_op op = type->functions.data[i].op;

		if (op != RT_OP_NEW && op != RT_OP_PUT)
			return type->owned;
		put |= op == RT_OP_PUT;
	}
	return type->owned || (put && !rt_spec_has_counter(type) && !rt_spec_is_calls(type));
}

static uint32_t type_flags(const struct rt_session *s, const struct rt_batch *b, const struct rt_plan_type *type)
{
	const struct rt_call *call = type->spec->functions.len ? rt_spec_call(&type->spec->functions.data[0]) : NULL;
	uint32_t flags = type->floating ? RT_TYPE_FLOATING : 0;

	if (call)
		flags |= RT_TYPE_KERNEL | (call->kind == RT_CALL_DESCRIPTOR ? RT_TYPE_DESCRIPTOR : 0);
	if (rt_spec_is_only_made(type->spec))
		flags |= RT_TYPE_HEAP_ONLY;
	if (type->spec->owned)
		flags |= RT_TYPE_OWNED;
	if (is_sampled(s, type))
		flags |= RT_TYPE_SAMPLED;
	for (size_t i = 0; i < b->plan->points.len; i++) {
		if (b->plan->points.data[i].type == type->id && b->plan->points.data[i].op == RT_OP_FREE)
			return flags | RT_TYPE_FREE_KNOWN;
	}
	return flags;
}

/* A type goes out when its first point is there, and again when more became known about it. */
static struct rt_error *emit_types(struct rt_session *s, struct rt_batch *b)
{
	for (size_t i = 0; i < b->plan->types.len; i++) {
		const struct rt_plan_type *type = &b->plan->types.data[i];
		_cleanup_free_ struct rt_wire_type *record = NULL;
		uint64_t digest;

		if (!type->points)
			continue;
		record = rt_record_type(b->type_base + type->id, type->spec->name, type->structure);
		if (!record)
			return rt_error_nomem();
		record->start = type->start;
		record->counter_offset = type->counter_offset;
		record->counter_size = type->counter_size;
		record->object_size = type->object_size;
		record->flags = type_flags(s, b, type);
		digest = ((uint64_t)(uint32_t)record->start << 32 | (uint32_t)record->counter_offset) ^
			 (uint64_t)record->object_size << 20 ^ (uint64_t)record->counter_size << 8 ^ record->flags ^
			 (uint64_t)(type->structure != NULL) << 62 ^ 1ull << 63;
		if (b->digest.data[i] == digest)
			continue;
		b->digest.data[i] = digest;
		RT_TRY(rt_emit(s, &record->head, 0, 0));
	}
	return NULL;
}

static uint32_t aux_of(const struct rt_point *p)
{
	if (p->kind == RT_POINT_CALL)
		return p->size_reg == RT_REG_NONE ? RT_AUX_NONE : RT_AUX_SIZE;
	if (p->stored || p->filled)
		return RT_AUX_STORED;
	if (p->look)
		return RT_AUX_BLOCK;
	if (p->place == RT_PLACE_ARG_PTR || p->place == RT_PLACE_OUT || p->place == RT_PLACE_RET_PTR)
		return p->frees ? RT_AUX_BLOCK : RT_AUX_SLOT;
	return p->class_at ? RT_AUX_CLASS : RT_AUX_NONE;
}

/* Where the object tells its class, if the point is one of an operation on it that has no slot to tell. */
static uint32_t class_at(const struct rt_point *p, const struct rt_spec_type *type)
{
	bool slot = p->place == RT_PLACE_ARG_PTR || p->place == RT_PLACE_OUT || p->place == RT_PLACE_RET_PTR;

	if (!type->path.steps || slot || p->op == RT_OP_MOVE || p->op == RT_OP_SWAP || p->kind == RT_POINT_CALL)
		return 0;
	return (uint32_t)type->path.step[0] + 1;
}

/* The points of the batch from `first` on, of this module (0: the kernel), are the session's from now on. */
static struct rt_error *take_points(struct rt_session *s, struct rt_batch *b, uint32_t module, size_t first,
				    uint32_t *count)
{
	for (size_t i = first; i < b->plan->points.len; i++) {
		_cleanup_free_ struct rt_wire_point *record = NULL;
		struct rt_point *point = rt_vec_add(&s->points);

		if (!point)
			return rt_error_nomem();
		*point = b->plan->points.data[i];
		point->id = (uint32_t)s->points.len;
		point->module = module;
		point->type += b->type_base;
		/* 1 is what nearly all types do */
		point->start = b->plan->types.data[point->type - b->type_base - 1].start;
		if (point->start == RT_START_UNKNOWN)
			point->start = 1;
		point->sampled = is_sampled(s, &b->plan->types.data[point->type - b->type_base - 1]);
		point->owned = point->op == RT_OP_NEW &&
			       has_one_owner(b->plan->types.data[point->type - b->type_base - 1].spec);
		point->class_at = class_at(point, b->plan->types.data[point->type - b->type_base - 1].spec);
		s->classed |= point->class_at != 0;
		record = rt_record_point(point->id, point->name, point->ender ? point->ender : point->alias);
		if (!record)
			return rt_error_nomem();
		record->head.op = point->op;
		record->type = point->type;
		record->module = module;
		record->delta = point->delta;
		record->address = point->address.v;
		record->function = point->function.v;
		record->flags = point->flags | (point->first ? RT_EV_FIRST : 0u);
		record->aux = aux_of(point);
		RT_TRY(rt_emit(s, &record->head, 0, 0));
		(*count)++;
	}
	return NULL;
}

static struct rt_error *take_refused(struct rt_session *s, struct rt_batch *b)
{
	for (; b->refused_seen < b->plan->refused.len; b->refused_seen++) {
		const struct rt_refused *r = &b->plan->refused.data[b->refused_seen];

		_cleanup_free_ struct rt_wire_loss *loss = NULL;
		_cleanup_free_ char *text = NULL;

		if (asprintf(&text, "%s: %s", r->function, r->why) < 0)
			return rt_error_nomem();
		loss = rt_record_loss(RT_LOSS_REFUSED, 0, b->type_base + r->type, text);
		if (!loss)
			return rt_error_nomem();
		RT_TRY(rt_emit(s, &loss->head, 0, 0));
	}
	for (; b->doubts_seen < b->plan->doubts.len; b->doubts_seen++)
		RT_TRY(rt_emit_loss(s, RT_LOSS_DOUBT, 0, 0, "%s", b->plan->doubts.data[b->doubts_seen]));
	for (; b->limits_seen < b->plan->limits.len; b->limits_seen++)
		RT_TRY(rt_emit_loss(s, RT_LOSS_LIMIT, 0, 0, "%s", b->plan->limits.data[b->limits_seen]));
	return NULL;
}

static struct rt_error *plan_module(struct rt_session *s, struct rt_module *m)
{
	const struct rt_symtab *symtab;
	struct rt_error *err;

	m->planned = true;
	m->point = (uint32_t)s->points.len;
	err = rt_module_symtab(m, &symtab);
	for (size_t i = 0; i < s->batches.len && !err; i++) {
		struct rt_batch *b = s->batches.data[i];
		struct rt_plan_module pm;
		size_t first = 0;

		if (!rt_batch_matters(b, m))
			continue;
		err = rt_plan_module_of(m, &pm);
		if (!err)
			err = rt_plan_module(b->plan, &pm, &first);
		/* zeroes must not move a probe */
		if (!err)
			err = rt_image_whole(m->image);
		if (err)
			break;
		RT_TRY(emit_types(s, b));
		RT_TRY(take_points(s, b, m->id, first, &m->point_nr));
		RT_TRY(take_refused(s, b));
	}
	if (err && err->code != RT_E_NOMEM) {
		struct rt_error *lost = rt_emit_loss(s, RT_LOSS_REFUSED, 0, 0, "%s: %s", m->path, err->message);

		rt_error_free(err);
		return lost;
	}
	return err;
}

/* What is asked of the kernel is so for every process. */
static struct rt_error *plan_calls(struct rt_session *s)
{
	if (s->calls_planned)
		return NULL;
	s->calls_planned = true;
	s->call = (uint32_t)s->points.len;
	for (size_t i = 0; i < s->batches.len; i++) {
		struct rt_batch *b = s->batches.data[i];
		size_t first;

		RT_TRY(rt_plan_calls(b->plan, &first));
		RT_TRY(emit_types(s, b));
		RT_TRY(take_points(s, b, 0, first, &s->call_nr));
	}
	return NULL;
}

struct rt_error *rt_session_plan(struct rt_session *s, struct rt_process *p)
{
	RT_VEC(uint32_t) fresh = { 0 };
	struct rt_error *err = NULL;
	size_t points = s->points.len;

	for (size_t i = 0; i < p->maps.len; i++) {
		struct rt_module *m = rt_session_module(s, p->maps.data[i].module);

		if (m->planned)
			continue;
		m->planned = true;
		if (!rt_vec_push(&fresh, m->id)) {
			rt_vec_deinit(&fresh);
			return rt_error_nomem();
		}
	}
	if (fresh.len && s->options.scan)
		err = rt_batch_scan(s, fresh.data, fresh.len);
	if (!err && !s->batches.len && s->options.spec && s->options.spec->types.len)
		err = rt_batch_add(s, s->options.spec, NULL);
	if (!err)
		err = plan_calls(s);
	for (size_t i = 0; i < fresh.len && !err; i++)
		err = plan_module(s, rt_session_module(s, fresh.data[i]));
	rt_vec_deinit(&fresh);
	if (s->points.len != points) {
		free(s->pairs);
		s->pairs = NULL;
	}
	return err;
}

struct rt_error *rt_session_plan_freed(struct rt_session *s, struct rt_module *m, uint32_t type)
{
	const struct rt_symtab *symtab;
	size_t first = 0;

	for (size_t i = 0; i < s->batches.len && !m->freed_planned; i++) {
		struct rt_batch *b = s->batches.data[i];

		if (type - 1 < b->type_base || type - 1 - b->type_base >= b->plan->types.len)
			continue;
		m->freed_planned = true;
		m->freed = (uint32_t)s->points.len;
		RT_TRY(rt_module_symtab(m, &symtab));
		/* names will do: the debug information of the C library alone would take more memory than a run */
		RT_TRY(rt_plan_freed(b->plan, type - 1 - b->type_base,
				     &(struct rt_plan_module){ m->id, m->path, m->image, symtab, NULL }, &first));
		RT_TRY(take_points(s, b, m->id, first, &m->freed_nr));
	}
	return NULL;
}

/* ---- functions that were told and are nowhere ---- */

static bool half_found(const struct rt_batch *b)
{
	for (size_t i = 0; i < b->plan->types.len; i++) {
		const struct rt_plan_type *type = &b->plan->types.data[i];
		bool opens = false, closes = false;

		for (size_t k = 0; k < b->plan->points.len; k++) {
			const struct rt_point *p = &b->plan->points.data[k];

			/* what counts by itself stands for no function that was told */
			if (p->type != type->id || p->guessed)
				continue;
			opens |= p->op == RT_OP_NEW || p->op == RT_OP_GET;
			closes |= p->op == RT_OP_PUT || p->op == RT_OP_FREE || p->op == RT_OP_STEAL;
		}
		if (type->present && (!opens || !closes))
			return true;
	}
	return false;
}

/* The program may start another one or load a module that has the functions: as far as its imports tell. */
static bool may_lead_on(struct rt_session *s, const struct rt_process *p)
{
	static const char *const calls[] = { "fork", "vfork",  "clone",   "posix_spawn", "system", "popen",
					     "exec", "dlopen", "dlmopen", "g_spawn",     "syscall" };
	bool imports = false;

	for (size_t i = 0; i < p->maps.len; i++) {
		struct rt_module *m = rt_session_module(s, p->maps.data[i].module);

		if (m->id != p->main_module || !m->symtab)
			continue;
		for (size_t k = 0; k < m->symtab->count; k++) {
			const struct rt_symbol *sym = &m->symtab->symbols[k];

			imports |= sym->plt;
			for (size_t c = 0; sym->plt && c < sizeof(calls) / sizeof(calls[0]); c++) {
				if (!strncmp(sym->name, calls[c], strlen(calls[c])))
					return true;
			}
		}
		return !imports;
	}
	return true;
}

/* The modules that were looked at; caller frees *ret. */
static struct rt_error *known_modules(struct rt_session *s, struct rt_plan_module **ret, size_t *ret_count)
{
	_cleanup_free_ struct rt_plan_module *known = calloc(s->modules.len + 1, sizeof(*known));
	size_t count = 0;

	if (!known)
		return rt_error_nomem();
	for (size_t i = 0; i < s->modules.len; i++) {
		struct rt_module *m = s->modules.data[i];

		if (m->symtab)
			RT_TRY(rt_plan_module_of(m, &known[count++]));
	}
	*ret = rt_take(known);
	*ret_count = count;
	return NULL;
}

static struct rt_error *missing(struct rt_session *s)
{
	_cleanup_free_ struct rt_plan_module *known = NULL;
	size_t count = 0;

	RT_TRY(known_modules(s, &known, &count));
	for (size_t i = 0; i < s->batches.len; i++) {
		/* what a scan found is not told by anybody */
		if (s->batches.data[i]->spec == s->options.spec)
			RT_TRY(rt_plan_missing(s->batches.data[i]->plan, known, count));
	}
	return NULL;
}

struct rt_error *rt_session_check_missing(struct rt_session *s, struct rt_process *p)
{
	if (s->options.scan || !s->batches.len || p->attached)
		return NULL;
	if (half_found(s->batches.data[0]) || (!s->points.len && !may_lead_on(s, p)))
		return missing(s);
	return NULL;
}

static struct rt_error *note_unseen(struct rt_session *s, const char *name)
{
	_cleanup_free_ struct rt_plan_module *known = NULL;
	_cleanup_free_ char *near = NULL;
	size_t count = 0;

	RT_TRY(known_modules(s, &known, &count));
	RT_TRY(rt_plan_near(known, count, name, &near));
	return rt_emit_loss(s, RT_LOSS_REFUSED, 0, 0, "%s: no function of this name in any module%s%s", name,
			    *near ? "; " : "", near);
}

struct rt_error *rt_session_note_unseen(struct rt_session *s)
{
	for (size_t i = 0; i < s->batches.len; i++) {
		const struct rt_plan *plan = s->batches.data[i]->plan;

		for (size_t k = 0; k < plan->types.len; k++) {
			const struct rt_plan_type *type = &plan->types.data[k];

			/* a preset names what many versions of a library have; -P means each word */
			if (!type->present || !type->spec->origin || strcmp(type->spec->origin, "-P") != 0)
				continue;
			for (size_t n = 0; n < type->spec->functions.len; n++) {
				const struct rt_spec_function *f = &type->spec->functions.data[n];

				if (type->seen[n] || f->guessed || rt_spec_is_glob(f->name))
					continue;
				RT_TRY(note_unseen(s, f->name));
			}
		}
	}
	return NULL;
}

/* Is anything armed that goes by this name: a type, or functions that begin with it? What has classes may have it. */
static bool armed_name(const struct rt_session *s, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < s->batches.len; i++) {
		const struct rt_plan *plan = s->batches.data[i]->plan;

		for (size_t k = 0; k < plan->points.len; k++) {
			const struct rt_point *p = &plan->points.data[k];

			if (rt_glob_match(name, plan->types.data[p->type - 1].spec->name) ||
			    plan->types.data[p->type - 1].spec->klass ||
			    (!strncmp(p->name, name, len) && p->name[len] == '_'))
				return true;
		}
	}
	return false;
}

/* -t asked for a type that neither -P nor a scan knows */
static struct rt_error *unknown_type(struct rt_session *s)
{
	_cleanup_free_ struct rt_plan_module *known = NULL;
	const char *const *name = s->options.types;
	size_t count = 0;

	while (name && *name && armed_name(s, *name))
		name++;
	if (!name || !*name)
		return NULL;
	RT_TRY(known_modules(s, &known, &count));
	return rt_scan_unknown(known, count, *name);
}

/* Nothing was found where families were searched for: because of no names, or in spite of them. */
static struct rt_error *no_family(const struct rt_session *s, struct rt_module *m)
{
	const char *name = rt_module_basename(m);
	const struct rt_symtab *symtab = NULL;
	char id[2 * RT_BUILD_ID_WHOLE_MAX + 1] = "none";
	struct rt_error *err;

	if (s->unsure)
		return rt_error_fix(
			rt_error_new(RT_E_NO_PAIRS,
				     "no get/put family was found in %s but such as only names speak for (%s)", name,
				     s->unsure),
			"trace it all the same: -t %s, or say what counts: -P 'type=%s get=FN:1 put=FN:1'", s->unsure,
			s->unsure);
	rt_error_free(rt_module_symtab(m, &symtab));
	if (!symtab || !symtab->stripped)
		return rt_error_fix(rt_error_new(RT_E_NO_PAIRS, "no get/put family was found in %s", name),
				    "name the functions: -P 'new=FN:ret get=FN:1 put=FN:1', or look: reftrace scan %s",
				    name);
	if (m->image->build_id_size)
		rt_build_id_text(m->image->build_id, m->image->build_id_size, id);
	err = rt_error_new(RT_E_STRIPPED,
			   "%s has no symbol table (stripped), and no library of its own has a get/put family; "
			   "its build-id is %s",
			   name, id);
	return rt_error_fix(err,
			    "install its debug symbols (the -dbgsym or -debuginfo package of this build-id)\n"
			    "or trace a library that it uses, by a preset: reftrace run -P gobject -- %s",
			    name);
}

struct rt_error *rt_session_check_nothing(struct rt_session *s)
{
	/* what it would have led to nobody knows, and a LOSS says so */
	if (s->untraced)
		return NULL;
	if (s->options.scan && s->modules.len)
		RT_TRY(unknown_type(s));
	if (s->points.len)
		return NULL;
	RT_TRY(missing(s));
	if (!s->modules.len)
		return NULL;
	return s->options.scan ? no_family(s, s->modules.data[0]) : NULL;
}
