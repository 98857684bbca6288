/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions of the build-id cache as events: in tracefs, in our group, as long as the recording lasts. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/fs.h"
#include "engine/markers_priv.h"

struct search {
	struct rt_markers *m;
	const char *text; /* as written */
	char *group;      /* NULL: any; owned, as are the next three */
	char *event, *modifiers, *file;
	size_t fitting;
	struct rt_error *refused; /* the first file that it was not made for */
};

static void search_deinit(struct search *s)
{
	free(s->group);
	free(s->event);
	free(s->file);
	rt_error_free(s->refused);
}

/* "[%][GROUP:]EVENT[:MODIFIERS][@FILE]" */
static struct rt_error *parse(const char *text, struct search *s)
{
	const char *rest = text + (*text == '%'), *at = strchr(rest, '@');
	size_t len = at ? (size_t)(at - rest) : strlen(rest), first = strcspn(rest, ":@");
	size_t second = first < len ? first + 1 + strcspn(rest + first + 1, ":@") : first;

	if (!len || !first || (first < len && second == first + 1) || (at && !at[1]))
		return rt_error_fix(
			rt_error_new(RT_E_USAGE, "-e '%s' names no definition", text),
			"write %%GROUP:EVENT, or %%GROUP:EVENT@FILE; list them: reftrace probe list --cache");
	s->event = first < len ? strndup(rest + first + 1, second - first - 1) : strndup(rest, len);
	s->group = first < len ? strndup(rest, first) : NULL;
	s->file = at ? strdup(at + 1) : NULL;
	s->modifiers = second < len ? strndup(rest + second + 1, len - second - 1) : NULL;
	return s->event && (first >= len || s->group) && (!at || s->file) && (second >= len || s->modifiers)
		       ? NULL
		       : rt_error_nomem();
}

static struct rt_error *define_line(struct search *s, const struct rt_marker_holder *h,
				    const struct rt_cached_line *line, unsigned number, int *ret_errnum)
{
	_cleanup_free_ char *text = NULL, *semaphore = NULL;
	struct rt_elfaddr address;
	const char *why = NULL;

	if (!rt_image_address(h->image, line->offset, true, &address))
		why = "its place is not in the code";
	if (!why)
		why = rt_markers_unarmable(s->m, h->image, address);
	if (why)
		return rt_error_new(RT_E_UNARMED, "-e '%s': %s:%s at 0x%" PRIx64 " of %s: %s", s->text, line->group,
				    line->event, line->offset.v, h->path, why);
	if (line->semaphore.v && rt_markers_by_kernel(s->m) &&
	    asprintf(&semaphore, "(0x%" PRIx64 ")", line->semaphore.v) < 0) {
		semaphore = NULL;
		return rt_error_nomem();
	}
	/* what was looked at, whatever lies at its path by now */
	if (asprintf(&text, "%c:%s/m%u /proc/self/fd/%d:0x%" PRIx64 "%s%s", line->at_return ? 'r' : 'p', s->m->group,
		     number, h->fd, line->offset.v, semaphore ?: "", line->arguments) < 0) {
		text = NULL;
		return rt_error_nomem();
	}
	*ret_errnum = rt_tracefs_write(s->m->tracefs, text);
	return *ret_errnum ? NULL : rt_markers_note_written(s->m, h->fd, h->image, line->offset, line->semaphore);
}

/* All lines of one entry: those of one name are one event, where the kernel takes them as such. */
static struct rt_error *define_entry(struct search *s, const struct rt_marker_holder *h,
				     const struct rt_probes_entry *e, const char *mark)
{
	size_t first = s->m->defined.len;

	for (size_t i = 0; i < e->lines.len; i++) {
		_cleanup_free_ char *group = NULL;
		struct rt_cached_line line;
		int errnum = EINVAL;

		if (!rt_cached_read(e->lines.data[i], &line))
			continue;
		if (asprintf(&group, "%s%s", line.group, mark) < 0) {
			group = NULL;
			return rt_error_nomem();
		}
		for (size_t k = first; k < s->m->defined.len && errnum; k++)
			if (!strcmp(s->m->defined.data[k].name, line.event))
				RT_TRY(define_line(s, h, &line, s->m->defined.data[k].number, &errnum));
		if (!errnum)
			continue;
		RT_TRY(define_line(s, h, &line, rt_markers_next_number(s->m), &errnum));
		if (errnum)
			return rt_markers_refused(s->m, s->text, group, errnum);
		RT_TRY(rt_markers_defined(s->m, group, line.event));
	}
	return NULL;
}

static struct rt_error *define_probes(struct search *s, const struct rt_marker_holder *h,
				      const struct rt_probes *probes, const char *mark)
{
	for (size_t i = 0; i < probes->entries.len; i++) {
		const struct rt_probes_entry *e = &probes->entries.data[i];

		/* markers are read from the file itself */
		if (e->sdt || !rt_cached_fits(e, s->group, s->event))
			continue;
		s->fitting++;
		RT_TRY(define_entry(s, h, e, mark));
	}
	return NULL;
}

/* Of its own build-id, read from the open file; nothing else. */
static struct rt_error *define_holder(struct search *s, const struct rt_marker_holder *h)
{
	struct rt_probes probes;
	struct rt_error *err;

	if (!s->m->files.cache)
		return NULL;
	err = rt_cache_read_probes(s->m->files.cache, h->image->build_id, h->image->build_id_size, &probes);
	if (!err)
		err = define_probes(s, h, &probes, "");
	rt_probes_deinit(&probes);
	return err;
}

/* The file at path, whoever it is, as far as that is allowed. */
static struct rt_error *define_path(struct search *s, const char *path)
{
	const struct rt_marker_files *files = &s->m->files;
	struct rt_marker_holder h = { .fd = -1 };
	struct rt_cached_match match = { .trust = RT_CACHED_SAME };
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_free_ char *plain = realpath(path, NULL);
	_cleanup_close_ int fd = -1;
	struct rt_error *err;

	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	RT_TRY(rt_image_open_fd(fd, path, &image));
	err = rt_cached_match(files->cache, image, plain ?: path, s->group, s->event, &files->target->allow, &match);
	if (!err)
		err = rt_image_whole(image);
	h.fd = fd;
	h.image = image;
	h.path = plain;
	if (!err && match.why)
		rt_sink_printf(&s->m->warning, "%s'%s' may hit wrong places: %s; its events are marked %s",
			       s->m->warning.len ? "; " : "", s->text, match.why, rt_cached_mark(match.trust));
	if (!err)
		err = define_probes(s, &h, &match.probes, rt_cached_mark(match.trust));
	rt_cached_match_deinit(&match);
	return err;
}

/* Where the cache saw a file that has such a definition. */
static struct rt_error *define_items(struct search *s)
{
	const struct rt_marker_files *files = &s->m->files;

	for (size_t i = 0; i < files->item_count; i++) {
		const struct rt_cache_item *item = &files->items[i];
		struct rt_probes probes;
		struct rt_error *err;
		bool fits = false;

		if (!item->has[RT_CACHE_PROBES] || !item->path || *item->path != '/')
			continue;
		err = rt_cache_read_probes(files->cache, item->id, item->id_size, &probes);
		for (size_t k = 0; !err && k < probes.entries.len; k++)
			fits |= !probes.entries.data[k].sdt &&
				rt_cached_fits(&probes.entries.data[k], s->group, s->event);
		rt_probes_deinit(&probes);
		if (!err && fits)
			err = define_path(s, item->path);
		if (err && err->code == RT_E_BUILD_ID && !s->refused)
			s->refused = rt_take(err);
		/* what is not there is of another host */
		if (err && err->code != RT_E_BUILD_ID && err->code != RT_E_NOT_FOUND && err->code != RT_E_UNREADABLE)
			return err;
		rt_error_free(err);
	}
	return NULL;
}

static struct rt_error *define_all(struct search *s)
{
	const struct rt_marker_files *files = &s->m->files;

	if (s->file && files->cache)
		return rt_error_wrap(define_path(s, s->file), "-e '%s'", s->text);
	for (size_t i = 0; i < files->list.len; i++)
		RT_TRY(define_holder(s, &files->list.data[i]));
	return s->fitting || !files->cache ? NULL : define_items(s);
}

static struct rt_error *nothing(struct search *s)
{
	if (s->refused)
		return rt_error_wrap(rt_take(s->refused), "-e '%s'", s->text);
	return rt_error_fix(
		rt_error_new(RT_E_NOT_FOUND,
			     "-e '%s': the build-id cache has no such definition for the target's files, nor "
			     "for one that lies where it was",
			     s->text),
		"list them: reftrace probe list --cache; a file that lies elsewhere: -e '%s@FILE'", s->text);
}

struct rt_error *rt_markers_find_kept(struct rt_markers *m, const char *text, struct rt_event_list *list,
				      const char **ret_modifiers)
{
	struct search s = { .m = m, .text = text };
	size_t first = m->defined.len;
	struct rt_error *err = parse(text, &s);
	struct rt_wanted_marker *kept;

	if (!err && m->tracefs < 0)
		err = rt_event_no_tracefs(text, m->tracefs_errno);
	if (!err)
		err = rt_markers_prepare(m);
	if (!err)
		err = define_all(&s);
	if (!err && first == m->defined.len)
		err = nothing(&s);
	/* with those of the markers: who reads them does so when the search is over */
	if (!err && s.modifiers) {
		kept = rt_vec_add(&m->wanted);
		err = kept ? NULL : rt_error_nomem();
		if (kept)
			*kept = (struct rt_wanted_marker){ .modifiers = rt_take(s.modifiers) };
		*ret_modifiers = kept ? kept->modifiers : NULL;
	}
	free(s.modifiers);
	search_deinit(&s);
	return err ? err : rt_markers_add_events(m, first, list);
}
