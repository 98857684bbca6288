/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which files a process has mapped. A module is one version of one file (device,
 * inode, size and time of change), opened through the mapping itself, so that a
 * file that was deleted or replaced meanwhile still is the one that runs. Only
 * files with executable mappings count; the vdso and anonymous code do not.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fs.h"
#include "base/log.h"
#include "session/internal.h"

#define MAPS_MAX (256u << 20)

typedef RT_VEC(struct rt_session_map) map_vec;

static uint64_t hash_stat(const struct stat *st)
{
	uint64_t h = st->st_dev;

	h = (h ^ (uint64_t)st->st_size) * 0x9e3779b97f4a7c15u;
	h = (h ^ (uint64_t)st->st_ctim.tv_sec) * 0x9e3779b97f4a7c15u;
	h = (h ^ (uint64_t)st->st_ctim.tv_nsec) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static struct rt_key key_of(const struct stat *st)
{
	return rt_key_make(hash_stat(st), st->st_ino);
}

/* The names by which the file of a mapping can be reached, best first. */
static bool candidate(unsigned n, uint32_t pid, const struct rt_maps_line *line, char *path, size_t size)
{
	switch (n) {
	case 0: /* needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE */
		snprintf(path, size, "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, pid, line->start, line->end);
		return true;
	case 1:
		if (line->deleted || line->path[0] != '/')
			path[0] = 0;
		else
			snprintf(path, size, "/proc/%u/root%s", pid, line->path);
		return true;
	case 2:
		snprintf(path, size, "/proc/%u/exe", pid);
		return true;
	default:
		return false;
	}
}

/* Stats the very file that is mapped; path says how it was reached. */
static bool find_file(uint32_t pid, const struct rt_maps_line *line, char *path, size_t size, struct stat *ret)
{
	for (unsigned n = 0; candidate(n, pid, line, path, size); n++) {
		/* overlay file systems show another device in maps than stat() does: the inode has to do */
		if (path[0] && stat(path, ret) == 0 && S_ISREG(ret->st_mode) && (n == 0 || ret->st_ino == line->inode))
			return true;
	}
	return false;
}

static struct rt_error *announce(struct rt_session *s, struct rt_module *m, bool deleted)
{
	_cleanup_free_ struct rt_wire_module *record = rt_record_module(m->id, m->path);

	if (!record)
		return rt_error_nomem();
	record->build_id_size = m->image->build_id_size < RT_BUILD_ID_MAX ? m->image->build_id_size : RT_BUILD_ID_MAX;
	record->content_hash = m->image->build_id_is_hash;
	record->flags = (uint16_t)((m->main ? RT_MODULE_MAIN : 0) | (deleted ? RT_MODULE_DELETED : 0));
	memcpy(record->build_id, m->image->build_id, sizeof(record->build_id));
	return rt_emit(s, &record->head, 0, 0);
}

/* Takes the file behind fd (< 0: errno says why not) as a module. A file that is no ELF file is none: *ret is 0. */
static struct rt_error *open_module(struct rt_session *s, struct rt_process *p, int fd, const struct rt_maps_line *line,
				    const struct stat *st, uint32_t *ret)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	struct rt_error *err = NULL;
	struct rt_module *m;

	*ret = 0;
	if (fd < 0)
		return rt_emit_loss(s, RT_LOSS_REFUSED, rt_process_wire(p), 0, "cannot read %s: %s", line->path,
				    strerror(errno));
	err = rt_image_open_fd(fd, line->path, &image);
	if (rt_error_catch(&err, RT_E_NOT_ELF))
		return NULL;
	if (err) {
		struct rt_error *lost = err->code == RT_E_NOMEM ? err : NULL;

		if (lost)
			return lost;
		lost = rt_emit_loss(s, RT_LOSS_REFUSED, rt_process_wire(p), 0, "%s", err->message);
		rt_error_free(err);
		return lost;
	}
	err = rt_image_find_debug(image, AT_FDCWD);
	if (err) { /* a damaged debug file takes names away, not the module */
		rt_log_debug("session", "%s: %s", line->path, err->message);
		rt_error_free(err);
	}
	m = calloc(1, sizeof(*m));
	if (!m || !(m->path = strdup(line->path)) || !rt_vec_push(&s->modules, m)) {
		if (m)
			free(m->path);
		free(m);
		return rt_error_nomem();
	}
	m->id = (uint32_t)s->modules.len;
	m->inode = st->st_ino;
	m->dev = st->st_dev;
	m->size = (uint64_t)st->st_size;
	m->image = rt_take(image);
	*ret = m->id;
	return NULL;
}

static bool is_main(uint32_t pid, const struct stat *st)
{
	struct stat exe;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	return stat(path, &exe) == 0 && exe.st_ino == st->st_ino && exe.st_dev == st->st_dev;
}

/* The module of a file-backed mapping, opened at first sight. */
static struct rt_error *module_of(struct rt_session *s, struct rt_process *p, const struct rt_maps_line *line,
				  uint32_t *ret)
{
	char path[4300];
	struct stat st;
	uint64_t *known;
	bool fresh = false, main_image;

	*ret = 0;
	if (!find_file(p->tgid, line, path, sizeof(path), &st))
		return NULL;
	known = rt_map_put(&s->files, key_of(&st), &fresh);
	if (!known)
		return rt_error_nomem();
	*ret = (uint32_t)*known;
	if (!fresh && !*ret)
		return NULL;
	main_image = !p->main_module && is_main(p->tgid, &st);
	if (fresh) {
		_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		struct rt_module *m;

		RT_TRY(open_module(s, p, fd, line, &st, ret));
		known = rt_map_get(&s->files, key_of(&st));
		if (known)
			*known = *ret;
		m = rt_session_module(s, *ret);
		if (!m)
			return NULL;
		m->main = main_image;
		RT_TRY(announce(s, m, line->deleted));
		if (s->hooks.image)
			s->hooks.image(s->hooks.arg, m->id, m->image, fd);
	}
	if (main_image) {
		p->main_module = *ret;
		rt_session_module(s, *ret)->main = true;
	}
	return NULL;
}

bool rt_session_file(const char *path, struct rt_key *ret)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	*ret = key_of(&st);
	return true;
}

/* Code, and the data beside it that a census may name. */
static bool wanted(const struct rt_maps_line *line)
{
	return line->inode && (line->executable || line->writable) && line->path[0] == '/';
}

static struct rt_error *read_maps(struct rt_session *s, struct rt_process *p, map_vec *ret)
{
	_cleanup_free_ char *text = NULL;
	struct rt_maps_line line;
	char path[64], *cursor;
	struct rt_error *err;

	snprintf(path, sizeof(path), "/proc/%u/maps", p->tgid);
	err = rt_fs_read(AT_FDCWD, path, MAPS_MAX, &text, NULL);
	if (err) {
		if (err->code == RT_E_NOMEM)
			return err;
		rt_error_free(err); /* gone, or a zombie */
		return NULL;
	}
	cursor = text;
	while (rt_maps_parse_line(&cursor, &line)) {
		struct rt_session_map map = { line.start, line.end, line.offset, 0, line.executable };
		struct rt_session_map *last = ret->len ? &ret->data[ret->len - 1] : NULL;
		const struct rt_session_map *old;

		if (!wanted(&line))
			continue;
		/* files that are only mapped as data are no modules: data counts behind code of the same file */
		if (!line.executable && (!last || strcmp(rt_session_module(s, last->module)->path, line.path)))
			continue;
		old = rt_process_map(p, line.start);
		if (!line.executable)
			map.module = last->module;
		else if (old && old->start == line.start && old->end == line.end && old->offset == line.offset &&
			 rt_session_module(s, old->module)->inode == line.inode)
			map.module = old->module; /* as before */
		else
			RT_TRY(module_of(s, p, &line, &map.module));
		if (map.module && !rt_vec_push(ret, map))
			return rt_error_nomem();
	}
	return NULL;
}

static bool same_map(const struct rt_session_map *a, const struct rt_session_map *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset && a->module == b->module;
}

static struct rt_error *emit_changes(struct rt_session *s, struct rt_process *p, const map_vec *now)
{
	size_t i = 0, k = 0;

	/* both are sorted by address; what is gone comes first, because what is new may overlap it */
	while (i < p->maps.len) {
		const struct rt_session_map *old = &p->maps.data[i];

		while (k < now->len && now->data[k].start < old->start)
			k++;
		if (k >= now->len || !same_map(old, &now->data[k]))
			RT_TRY(rt_emit_map(s, RT_WIRE_UNMAP, rt_process_wire(p), old));
		i++;
	}
	for (i = 0, k = 0; k < now->len; k++) {
		while (i < p->maps.len && p->maps.data[i].start < now->data[k].start)
			i++;
		if (i >= p->maps.len || !same_map(&p->maps.data[i], &now->data[k]))
			RT_TRY(rt_emit_map(s, RT_WIRE_MAP, rt_process_wire(p), &now->data[k]));
	}
	return NULL;
}

static bool is_there(const struct rt_process *p, uint32_t module)
{
	for (size_t i = 0; i < p->maps.len; i++)
		if (p->maps.data[i].module == module)
			return true;
	return false;
}

/* A module that comes again is armed again. */
static void forget_gone(struct rt_process *p)
{
	for (size_t i = p->armed.len; i-- > 0;)
		if (!is_there(p, p->armed.data[i]))
			p->armed.data[i] = p->armed.data[--p->armed.len];
	for (size_t i = p->hooked.len; i-- > 0;)
		if (!is_there(p, p->hooked.data[i]))
			p->hooked.data[i] = p->hooked.data[--p->hooked.len];
}

struct rt_error *rt_session_sync(struct rt_session *s, struct rt_process *p)
{
	map_vec now = { 0 };
	struct rt_error *err = read_maps(s, p, &now);

	if (!err)
		err = emit_changes(s, p, &now);
	if (err) {
		rt_vec_deinit(&now);
		return err;
	}
	rt_vec_deinit(&p->maps);
	p->maps.data = now.data;
	p->maps.len = now.len;
	p->maps.cap = now.cap;
	/* a breakpoint of the kernel stays with the file; a counter that was written does not */
	if (s->ops->room || s->options.engine.semaphore == RT_SEMAPHORE_WRITE)
		forget_gone(p);
	return NULL;
}

const struct rt_session_map *rt_process_map(const struct rt_process *p, uint64_t addr)
{
	size_t lo = 0, hi = p->maps.len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (addr < p->maps.data[mid].start)
			hi = mid;
		else if (addr >= p->maps.data[mid].end)
			lo = mid + 1;
		else
			return &p->maps.data[mid];
	}
	return NULL;
}

bool rt_session_map_bias(const struct rt_session *s, const struct rt_session_map *map, uint64_t *ret)
{
	const struct rt_module *m = rt_session_module(s, map->module);

	for (size_t i = 0; m && i < m->image->segment_count; i++) {
		const struct rt_segment *seg = &m->image->segments[i];
		uint64_t from = seg->offset.v & ~4095ull, to = seg->offset.v + (seg->end.v - seg->start.v);

		if (!!(seg->flags & PF_X) == map->executable && map->offset >= from && map->offset < to) {
			*ret = map->start - map->offset + seg->offset.v - seg->start.v;
			return true;
		}
	}
	return false;
}

struct rt_error *rt_module_symtab(struct rt_module *m, const struct rt_symtab **ret)
{
	if (!m->symtab)
		RT_TRY(rt_symtab_create(m->image, &m->symtab));
	*ret = m->symtab;
	return NULL;
}

struct rt_error *rt_module_dwarf(struct rt_module *m, struct rt_dwarf **ret)
{
	if (!m->dwarf)
		RT_TRY(rt_dwarf_create(m->image, &m->dwarf));
	*ret = m->dwarf;
	return NULL;
}

struct rt_error *rt_module_rows(struct rt_module *m, const struct rt_unwind_rows **ret)
{
	if (!m->rows)
		RT_TRY(rt_unwind_rows_create(m->image, &m->rows));
	*ret = m->rows;
	return NULL;
}

const char *rt_module_basename(const struct rt_module *m)
{
	return rt_basename(m->path);
}

void rt_modules_deinit(struct rt_session *s)
{
	for (size_t i = 0; i < s->modules.len; i++) {
		struct rt_module *m = s->modules.data[i];

		rt_bystander_forget(m);
		rt_unwind_rows_destroy(m->rows);
		rt_dwarf_destroy(m->dwarf);
		rt_symtab_destroy(m->symtab);
		rt_image_destroy(m->image);
		rt_vec_deinit(&m->unwinders.list);
		free(m->path);
		free(m);
	}
	rt_vec_deinit(&s->modules);
	rt_map_deinit(&s->files);
	rt_map_deinit(&s->unmapped);
}
