/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Types, points and processes: the small tables that records name by id.
 */
#include <string.h>

#include "base/fs.h"
#include "base/words.h"
#include "lifetime/state.h"

static struct lt_type *type_of(struct rt_lifetime *lt, uint32_t id)
{
	bool made;
	uint64_t *index = rt_map_put(&lt->type_by_id, rt_key_make(id, 0), &made);
	struct lt_type *t;

	if (!index)
		return NULL;
	if (!made)
		return &lt->types.data[*index];
	t = rt_vec_add(&lt->types);
	if (!t) {
		rt_map_remove(&lt->type_by_id, rt_key_make(id, 0), NULL);
		return NULL;
	}
	*index = lt->types.len - 1;
	t->id = id;
	t->name = "?";
	t->start = RT_START_UNKNOWN;
	t->counter_offset = RT_COUNTER_UNKNOWN;
	return t;
}

bool lt_type_record(struct rt_lifetime *lt, const struct rt_wire_type *r)
{
	struct lt_type *t = type_of(lt, r->id);
	uint32_t name = rt_intern_string(&lt->names, r->name);

	if (!t || !name)
		return false;
	t->name = rt_intern_text(&lt->names, name);
	if (rt_type_structure(r)) {
		uint32_t structure = rt_intern_string(&lt->names, rt_type_structure(r));

		if (!structure)
			return false;
		t->structure = rt_intern_text(&lt->names, structure);
	}
	if (r->start >= 0 && r->start < LT_COUNT_SANE) {
		t->start = r->start;
		t->start_learnt = false;
	}
	t->counter_offset = r->counter_offset;
	t->counter_size = r->counter_size;
	t->object_size = r->object_size;
	t->flags = r->flags;
	t->has_free |= (r->flags & RT_TYPE_FREE_KNOWN) != 0;
	return true;
}

static unsigned api_of(const struct rt_wire_point *r)
{
	if (r->head.op == RT_OP_NEW)
		return LT_API_NEW;
	if (r->head.op == RT_OP_MOVE && (r->flags & (RT_EV_AT_RETURN | RT_EV_HIDDEN)))
		return r->flags & RT_EV_AT_RETURN ? LT_API_HANDS : 0;
	if (r->flags & RT_EV_HIDDEN)
		return LT_API_FINDS;
	return r->head.op == RT_OP_GET ? LT_API | LT_API_GETS : LT_API;
}

/* frames call the function of this name (in names) something else, and so do points where it is inlined */
static bool learn_alias(struct rt_lifetime *lt, const struct rt_wire_point *r, uint32_t name)
{
	const char *alias = rt_point_alias(r);
	uint32_t other = alias ? rt_intern_string(&lt->names, alias) : 0;
	bool made = false;
	uint64_t *told = other ? rt_map_put(&lt->told_name, rt_key_make(other, 0), &made) : NULL;

	if (told)
		*told = name;
	for (size_t i = 0; made && i < lt->points.len; i++) {
		if (lt->points.data[i].name == other)
			lt->points.data[i].name = name;
	}
	return !alias || told;
}

uint32_t lt_told_name(const struct rt_lifetime *lt, uint32_t name)
{
	const uint64_t *told = rt_map_get(&lt->told_name, rt_key_make(name, 0));

	return told ? (uint32_t)*told : name;
}

bool lt_point_record(struct rt_lifetime *lt, const struct rt_wire_point *r)
{
	struct lt_type *t = type_of(lt, r->type);
	uint32_t name = lt_told_name(lt, rt_intern_string(&lt->names, r->name));
	bool made;
	uint64_t *index, *api;
	struct lt_point *p;

	if (!t || !name)
		return false;
	index = rt_map_put(&lt->point_by_id, rt_key_make(r->id, 0), &made);
	api = rt_map_put(&t->api, rt_key_make(name, 0), NULL);
	if (!index || !api || !learn_alias(lt, r, name))
		return false;
	*api |= api_of(r);
	if (!made)
		return true;
	p = rt_vec_add(&lt->points);
	if (!p) {
		rt_map_remove(&lt->point_by_id, rt_key_make(r->id, 0), NULL);
		return false;
	}
	*index = lt->points.len - 1;
	*p = (struct lt_point){ .id = r->id, .name = name, .hits = UINT64_MAX };
	p->type = (uint32_t)(t - lt->types.data);
	if (r->id < LT_POINTS_KNOWN)
		lt->type_of_point[r->id] = p->type + 1;
	p->op = r->head.op;
	t->makers |= p->op == RT_OP_NEW;
	p->function = r->function;
	p->module = r->module;
	p->aux = (uint8_t)r->aux;
	p->flags = (uint16_t)r->flags;
	p->ender = rt_point_ender(r) ? rt_intern_string(&lt->names, rt_point_ender(r)) : 0;
	return !rt_point_ender(r) || p->ender;
}

bool lt_module_record(struct rt_lifetime *lt, const struct rt_wire_module *r)
{
	uint32_t build = r->build_id_size ? rt_intern_bytes(&lt->builds, r->build_id, r->build_id_size) : 0;
	struct lt_module *m;
	uint32_t path;

	if (build > lt->build_modules.len && !rt_vec_push(&lt->build_modules, r->id))
		return false;
	if (!(r->flags & RT_MODULE_MAIN))
		return true;
	path = rt_intern_string(&lt->names, r->path);
	m = rt_vec_add(&lt->modules);
	if (!m || !path)
		return false;
	*m = (struct lt_module){ r->id, rt_intern_text(&lt->names, path) };
	return true;
}

void lt_map_record(struct rt_lifetime *lt, const struct rt_wire_map *r)
{
	struct lt_process *p;

	for (size_t i = lt->modules.len; i-- > 0;) {
		if (lt->modules.data[i].id != r->module)
			continue;
		p = lt_process(lt, r->head.pid);
		if (p)
			p->exe = lt->modules.data[i].path;
		return;
	}
}

struct lt_point *lt_point(struct rt_lifetime *lt, uint32_t id)
{
	uint64_t *index = rt_map_get(&lt->point_by_id, rt_key_make(id, 0));

	return index ? &lt->points.data[*index] : NULL;
}

struct lt_process *lt_process(struct rt_lifetime *lt, uint32_t pid)
{
	bool made;
	uint64_t *index = rt_map_put(&lt->process_by_pid, rt_key_make(pid, 0), &made);
	struct lt_process *p;

	if (!index)
		return NULL;
	if (!made)
		return &lt->processes.data[*index];
	p = rt_vec_add(&lt->processes);
	if (!p) {
		rt_map_remove(&lt->process_by_pid, rt_key_make(pid, 0), NULL);
		return NULL;
	}
	*index = lt->processes.len - 1;
	p->pid = pid;
	return p;
}

uint32_t lt_domain_find(struct rt_lifetime *lt, uint32_t pid, uint32_t type)
{
	bool made;
	uint64_t *index = rt_map_put(&lt->domain_by_key, rt_key_make(pid, type), &made);

	if (!index)
		return 0;
	if (made && !rt_vec_push(&lt->domains, ((struct lt_domain){ pid, type }))) {
		rt_map_remove(&lt->domain_by_key, rt_key_make(pid, type), NULL);
		return 0;
	}
	if (made)
		*index = lt->domains.len - 1;
	lt->domain = (uint32_t)*index + 1;
	return lt->domain;
}

/*
 * "glib_autoptr_cleanup_Obj", "_nl_auto_obj_fcn", "ObjAutoUnref": what compilers call where a variable ends that is
 * declared so (__attribute__((cleanup))): the function that has the variable gives back.
 */
static bool is_cleanup(const struct lt_type *type, const struct lt_src *src)
{
	static const char *const always[] = { "autoptr", "autofree", "autocleanup" };
	static const char *const inlined[] = { "auto" };
	const char *name = src->frame.function;

	return rt_words_have(name, always, sizeof(always) / sizeof(always[0])) ||
	       (src->frame.inlined && rt_words_have(name, inlined, sizeof(inlined) / sizeof(inlined[0])) &&
		(strstr(name, type->name) || rt_words_destroy(name)));
}

/* "__thread__zput", "obj_putp": one-line wrappers that are as good as the function itself */
static bool is_wrapper(const struct lt_type *type, const struct lt_src *src)
{
	static const char *const always[] = { "zput", "putp", "unrefp", "freep" };
	static const char *const inlined[] = { "clear", "replace" };
	const char *s = src->frame.function;
	size_t n = strlen(type->name);

	s += strspn(s, "_");
	if (strncmp(s, type->name, n) || s[n] != '_')
		return false;
	s += n;
	s += strspn(s, "_");
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
		if (!strcmp(s, always[i]))
			return true;
	}
	for (size_t i = 0; src->frame.inlined && i < sizeof(inlined) / sizeof(inlined[0]); i++) {
		if (!strcmp(s, inlined[i]))
			return true;
	}
	return false;
}

static bool begins_with(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; name && i < count; i++) {
		if (!strncmp(name, list[i], strlen(list[i])))
			return true;
	}
	return false;
}

/*
 * The C library and its parts, by the names of their files, or of their functions where they are linked in: who calls
 * them is who asks the kernel.
 */
bool lt_is_c_library(const struct lt_src *src)
{
	static const char *const names[] = { "libc.so",    "libc-",    "ld-linux", "ld-musl",
					     "libpthread", "librt.so", "librt-" };
	static const char *const linked[] = { "_dl_", "_IO_", "_nl_", "__libc_", "__nss_", "_start" };
	const char *module = src->frame.module;

	return begins_with(module ? rt_basename(module) : NULL, names, sizeof(names) / sizeof(names[0])) ||
	       begins_with(src->frame.function, linked, sizeof(linked) / sizeof(linked[0]));
}

/* operator new and delete, by either name */
static bool is_operator(const struct lt_src *src)
{
	static const char *const names[] = { "operator new", "operator delete", "_Znw", "_Zna", "_Zdl", "_Zda" };

	return begins_with(src->frame.function, names, sizeof(names) / sizeof(names[0]));
}

unsigned lt_is_api(const struct rt_lifetime *lt, const struct lt_type *type, const struct lt_src *src)
{
	uint64_t *api = src->name ? rt_map_get(&type->api, rt_key_make(src->name, 0)) : NULL;

	if ((type->flags & (RT_TYPE_KERNEL | RT_TYPE_HEAP_ONLY)) && (lt_is_c_library(src) || is_operator(src)))
		return LT_API;
	if (!src->name)
		return 0;
	return api ? (unsigned)*api : is_wrapper(type, src) || is_cleanup(type, src) ? LT_API : 0;
}

int32_t lt_type_start(const struct lt_type *type)
{
	return type->start >= 0 ? type->start : 1;
}
