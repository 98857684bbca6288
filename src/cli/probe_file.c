/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/probe_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/text.h"
#include "cli/fetch.h"
#include "cli/listing.h"
#include "cli/probe_cached.h"
#include "cli/probe_kernel.h"
#include "cli/root.h"
#include "report/words.h"

enum { SOURCE_MAX = 64 << 20, SUFFIX_MAX = 10000 };

static const char *source(void *arg, const char *path)
{
	struct rt_probe_plan *p = arg;
	_cleanup_close_ int fd = -1;
	char *text = NULL, *name;
	struct rt_error *err;

	for (size_t i = 0; i < p->sources.len; i += 2)
		if (!strcmp(p->sources.data[i], path))
			return p->sources.data[i + 1];
	err = rt_fs_open_inside(p->root, path, &fd);
	if (!err)
		err = rt_fs_read_fd(fd, path, SOURCE_MAX, &text, NULL);
	rt_error_free(err);
	name = strdup(path);
	if (!name || !rt_vec_reserve(&p->sources, p->sources.len + 2)) {
		free(name);
		free(text);
		return NULL;
	}
	(void)rt_vec_push(&p->sources, name);
	(void)rt_vec_push(&p->sources, text);
	return text;
}

static struct rt_error *open_file(const struct rt_options *options, const char *name, struct rt_probe_plan *p)
{
	_cleanup_close_ int fd = -1;

	if (!name)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe: in which file?"),
				    "-x FILE: a program or library; or -k VMLINUX");
	RT_TRY(rt_root_open(options, &p->root));
	RT_TRY(rt_fs_open_inside(p->root, name, &fd));
	p->path = p->root == AT_FDCWD ? realpath(name, NULL) : rt_fs_plain_path(rt_format(&p->arena, "/%s", name));
	if (!p->path)
		return rt_error_nomem();
	if (strpbrk(p->path, " \t\n\\\""))
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "the kernel takes no blank in a path: %s", p->path),
				    "a bind mount or hard link without one; a symbolic link does not help");
	p->fd = rt_take_fd(&fd);
	if (fstat(p->fd, &p->opened))
		return rt_error_errno(RT_E_UNREADABLE, errno, "cannot read %s", name);
	return rt_image_open_fd(p->fd, name, &p->image);
}

struct rt_error *rt_probe_plan_read(struct rt_probe_plan *p, const struct rt_probe_options *options)
{
	if (p->is_read || p->is_kernel)
		return NULL;
	p->is_read = true;
	RT_TRY(rt_fetch_debug(&options->common, p->root, p->image));
	RT_TRY(rt_symtab_create(p->image, &p->symtab));
	RT_TRY(rt_dwarf_create(p->image, &p->dwarf));
	return rt_decoder_create(p->image->machine, &p->decoder);
}

const char *rt_probe_plan_group(struct rt_probe_plan *p)
{
	const char *base = p->path ? rt_basename(p->path) : "";
	char text[RT_REQUEST_NAME_MAX + 1] = "probe_";
	size_t n = strlen(text);

	if (p->is_kernel)
		return "probe";
	for (; rt_is_word(*base) && n < RT_REQUEST_NAME_MAX; base++)
		text[n++] = *base;
	text[n] = '\0';
	return rt_format(&p->arena, "%s", text);
}

static bool is_taken(const struct rt_probe_plan *p, const struct rt_probe_events *taken, const char *group,
		     const char *event)
{
	for (size_t i = 0; i < p->lines.len; i++)
		if (!strcmp(p->lines.data[i].group, group) && !strcmp(p->lines.data[i].event, event))
			return true;
	return taken && rt_probe_events_has(taken, group, event);
}

/* Names clash within a group only. */
struct rt_error *rt_probe_plan_name(struct rt_probe_plan *p, const struct rt_probe_events *taken, bool told, bool force,
				    const char *group, const char *wanted, const char **ret)
{
	*ret = wanted;
	if (!is_taken(p, taken, group, wanted))
		return NULL;
	if (told && !force && taken && rt_probe_events_has(taken, group, wanted))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "there is an event %s:%s already", group, wanted),
				    "reftrace probe del %s:%s; or --force, which puts a number behind the name", group,
				    wanted);
	for (unsigned n = 1; n < SUFFIX_MAX; n++) {
		int room = RT_REQUEST_NAME_MAX - 6;

		*ret = rt_format(&p->arena, "%.*s_%u", room, wanted, n);
		if (!is_taken(p, taken, group, *ret))
			return NULL;
	}
	return rt_error_new(RT_E_LIMIT, "there are %d events %s:%s already", SUFFIX_MAX, group, wanted);
}

/* Points of one function with the same arguments are one event. */
static struct rt_error *add_lines(struct rt_probe_plan *p, const struct rt_probe_events *taken,
				  const struct rt_request *r, const struct rt_answer *answer, bool force)
{
	size_t first = p->lines.len;

	for (size_t i = 0; i < answer->points.len; i++) {
		const struct rt_answer_point *point = &answer->points.data[i];
		struct rt_probe_line line = { .point = point, .first = true, .request = (size_t)(r - p->requests) };
		struct rt_sink text;
		struct rt_error *err;

		line.group = r->group ? r->group : point->group ? point->group : rt_probe_plan_group(p);
		for (size_t k = first; k < p->lines.len && !line.event; k++) {
			const struct rt_answer_point *other = p->lines.data[k].point;

			if (!strcmp(other->key, point->key) && !strcmp(other->signature, point->signature)) {
				line.event = p->lines.data[k].event;
				line.first = false;
			}
		}
		if (!line.event)
			RT_TRY(rt_probe_plan_name(p, taken, r->event != NULL, force, line.group, point->event,
						  &line.event));
		rt_sink_init_memory(&text);
		rt_answer_write(point, line.group, line.event, p->path, &text);
		err = rt_sink_end(&text);
		line.text = err ? "" : rt_format(&p->arena, "%s", text.buffer);
		rt_sink_deinit(&text);
		if (err)
			return err;
		if (!rt_vec_push(&p->lines, line))
			return rt_error_nomem();
	}
	for (size_t i = 0; i < answer->notes.len; i++)
		if (!rt_vec_push(&p->notes, rt_clean(&p->arena, answer->notes.data[i])))
			return rt_error_nomem();
	return NULL;
}

struct rt_answer_module rt_probe_plan_module(struct rt_probe_plan *p, const struct rt_probe_options *options)
{
	return (struct rt_answer_module){ .image = p->image,
					  .symtab = p->symtab,
					  .dwarf = p->dwarf,
					  .decoder = p->decoder,
					  .kernel = p->is_kernel ? &p->kernel : NULL,
					  .path = p->path,
					  .source = source,
					  .source_arg = p,
					  .partial = options->partial,
					  .all_places = options->all_places,
					  .returns_anyway = options->force };
}

static struct rt_error *answer(struct rt_probe_plan *p, const struct rt_probe_options *options, size_t i)
{
	struct rt_answer_module module;

	RT_TRY(rt_probe_plan_read(p, options));
	module = rt_probe_plan_module(p, options);
	return rt_answer_request(&p->requests[i], &module, &p->answers[i]);
}

/* Debug information that should be there and is not: places may be unknown for it. */
static const char *missing(struct rt_probe_plan *p)
{
	return p->dwarf ? rt_split_missing(&p->arena, p->dwarf) : NULL;
}

static struct rt_error *blame_missing(struct rt_probe_plan *p, struct rt_error *err)
{
	const char *text = err && err->code != RT_E_NOMEM ? missing(p) : NULL;

	return text ? rt_error_fix(err, "bring it back, or build again: %s", text) : err;
}

static struct rt_error *warn_of_missing(struct rt_probe_plan *p)
{
	const char *text = missing(p);

	if (!text)
		return NULL;
	text = rt_format(&p->arena, "places may lack: %s", text);
	return rt_vec_push(&p->warnings, rt_clean(&p->arena, text)) ? NULL : rt_error_nomem();
}

/* The cache is asked for what is named so, and for what the file does not tell any more. */
static struct rt_error *resolve(struct rt_probe_plan *p, const struct rt_probe_options *options,
				const struct rt_probe_events *taken, size_t i)
{
	const struct rt_request *r = &p->requests[i];
	struct rt_bytes markers;
	struct rt_error *err;
	bool found;

	/* without markers there is nothing to look for in the file */
	if (r->cached && !p->is_kernel && !rt_image_section(p->image, ".note.stapsdt", &markers, NULL))
		return rt_probe_cached_add(p, options, taken, r);
	err = answer(p, options, i);
	if (!err)
		return add_lines(p, taken, r, &p->answers[i], options->force);
	if (err->code == RT_E_NOMEM)
		return err;
	if (r->cached && err->code == RT_E_NOT_FOUND) {
		rt_error_free(err);
		return rt_probe_cached_add(p, options, taken, r);
	}
	if (!p->dwarf || rt_dwarf_present(p->dwarf))
		return err;
	rt_error_free(rt_probe_cached_instead(p, options, taken, r, &found));
	if (found)
		rt_error_free(rt_take(err));
	return err;
}

struct rt_error *rt_probe_plan_make(const struct rt_probe_options *options, const struct rt_probe_events *taken,
				    struct rt_probe_plan *ret)
{
	size_t count = options->common.operands.len;
	const char *path;

	*ret = (struct rt_probe_plan){ .root = AT_FDCWD, .fd = -1 };
	if (!count)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe: a definition is needed: 'FUNC ARG...'"),
				    "man reftrace-probe");
	ret->answers = calloc(count + 1, sizeof(*ret->answers));
	ret->requests = calloc(count + 1, sizeof(*ret->requests));
	if (!ret->answers || !ret->requests)
		return rt_error_nomem();
	/* what is wrong with the words themselves comes first */
	for (; ret->count < count; ret->count++)
		RT_TRY(rt_request_parse(options->common.operands.data[ret->count], &ret->requests[ret->count]));
	if (rt_probe_of_kernel(options)) {
		RT_TRY(rt_probe_kernel_open(options, ret));
	} else {
		path = options->file;
		if (!path)
			RT_TRY(rt_probe_cached_path(ret, &path));
		RT_TRY(open_file(&options->common, path, ret));
	}
	for (size_t i = 0; i < count; i++)
		RT_TRY(blame_missing(ret, resolve(ret, options, taken, i)));
	RT_TRY(rt_fs_all_whole());
	return warn_of_missing(ret);
}

void rt_probe_plan_deinit(struct rt_probe_plan *p)
{
	/* the one that could not be parsed is behind the count */
	for (size_t i = 0; p->requests && i <= p->count; i++)
		rt_request_deinit(&p->requests[i]);
	for (size_t i = 0; p->answers && i < p->count; i++)
		rt_answer_deinit(&p->answers[i]);
	rt_cache_close(p->cache);
	if (p->fd >= 0)
		close(p->fd);
	for (size_t i = 0; i < p->sources.len; i++)
		free(p->sources.data[i]);
	rt_vec_deinit(&p->sources);
	free(p->requests);
	free(p->answers);
	free(p->path);
	rt_vec_deinit(&p->lines);
	rt_vec_deinit(&p->notes);
	rt_vec_deinit(&p->warnings);
	rt_decoder_destroy(p->decoder);
	rt_dwarf_destroy(p->dwarf);
	rt_symtab_destroy(p->symtab);
	rt_btf_destroy(p->btf);
	rt_image_destroy(p->image);
	rt_arena_deinit(&p->arena);
	if (p->root >= 0)
		close(p->root);
}

void rt_probe_plan_notes(const struct rt_probe_plan *plan, const struct rt_options *options)
{
	for (size_t i = 0; i < plan->notes.len && !options->quiet; i++)
		fprintf(stderr, "reftrace: %s\n", plan->notes.data[i]);
	for (size_t i = 0; i < plan->warnings.len; i++)
		fprintf(stderr, "reftrace: warning: %s\n", plan->warnings.data[i]);
}

struct rt_error *rt_probe_plan_check(const struct rt_probe_plan *plan)
{
	const struct stat *was = &plan->opened;
	struct stat there;

	if (!stat(plan->path, &there) && was->st_dev == there.st_dev && was->st_ino == there.st_ino &&
	    was->st_size == there.st_size && was->st_mtim.tv_sec == there.st_mtim.tv_sec &&
	    was->st_mtim.tv_nsec == there.st_mtim.tv_nsec)
		return NULL;
	return rt_error_fix(rt_error_new(RT_E_BUILD_ID,
					 "%s was replaced or written meanwhile: its probes are removed again",
					 plan->path),
			    "do it once more: they are resolved in the file that is there now");
}
