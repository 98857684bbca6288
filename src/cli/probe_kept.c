/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/probe_kept.h"

#include <string.h>

#include "base/fs.h"
#include "cli/file.h"
#include "cli/probe_cached.h"
#include "report/json_writer.h"
#include "report/words.h"

struct kept {
	const struct rt_probe_list_options *options;
	struct rt_cache *cache; /* NULL: there is none */
	struct rt_cache_item *items;
	size_t count, found;
	const struct rt_cache_item *item; /* that is looked at */
	struct rt_sink out;
	struct rt_json json;
	struct rt_arena arena;
};

static bool wanted(struct kept *k, const struct rt_probes_entry *e)
{
	for (size_t i = 0; i < k->options->common.operands.len; i++) {
		const char *glob = k->options->common.operands.data[i] + (*k->options->common.operands.data[i] == '%');
		size_t len = strcspn(glob, ":/");
		const char *group = glob[len] ? rt_format(&k->arena, "%.*s", (int)len, glob) : NULL;

		if (rt_cached_fits(e, group, group ? glob + len + 1 : glob))
			return true;
	}
	return !k->options->common.operands.len;
}

/* "GROUP:EVENT" of its first line; what has none that can be understood has no name */
static const char *name_of(struct kept *k, const struct rt_probes_entry *e)
{
	struct rt_cached_line line;

	for (size_t i = 0; i < e->lines.len; i++)
		if (rt_cached_read(e->lines.data[i], &line))
			return rt_format(&k->arena, "%s:%s", line.group, line.event);
	return "?";
}

/* Of the file that the cache saw: NULL when it is there. Static text. */
static const char *fault_of(const struct rt_cache_item *item)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	struct rt_error *err;

	if (!item->path)
		return "its link leads nowhere";
	if (*item->path != '/')
		return NULL;
	err = rt_image_open(item->path, &image);
	if (err) {
		rt_error_free(err);
		return "the file is not there";
	}
	return rt_build_id_fits(image->build_id, image->build_id_size, item->id, item->id_size)
		       ? NULL
		       : "the file has another build-id now";
}

/* What else somebody wrote below an entry is kept, and is no point. */
static size_t count_points(const struct rt_probes_entry *e)
{
	size_t count = 0;

	for (size_t i = 0; i < e->lines.len; i++) {
		const char *line = e->lines.data[i];

		count += (*line == 'p' || *line == 'r') && line[1] == ':' && strchr(line, ' ');
	}
	return count;
}

static void list_entry(struct kept *k, const struct rt_probes_entry *e, const char *fault)
{
	char id[2 * RT_CACHE_ID_MAX + 1];
	const char *path = k->item->path ?: "?";
	size_t points = count_points(e);

	rt_build_id_text(k->item->id, k->item->id_size, id);
	if (k->options->common.format != RT_FORMAT_JSON) {
		rt_sink_printf(&k->out, "%-32s %c%s  (%zu point%s in %s, %.12s%s%s)\n", name_of(k, e),
			       e->sdt ? '%' : '#', rt_clean(&k->arena, e->spec), points, rt_plural(points),
			       rt_clean(&k->arena, path), id, fault ? ": " : "", fault ?: "");
		return;
	}
	rt_json_begin_object(&k->json, NULL);
	rt_json_string(&k->json, "name", name_of(k, e));
	rt_json_string(&k->json, "kind", e->sdt ? "marker" : "definition");
	rt_json_string(&k->json, "definition", e->spec);
	rt_json_string(&k->json, "path", path);
	rt_json_string(&k->json, "build_id", id);
	if (fault)
		rt_json_string(&k->json, "fault", fault);
	rt_json_begin_array(&k->json, "lines");
	for (size_t i = 0; i < e->lines.len; i++)
		rt_json_string(&k->json, NULL, e->lines.data[i]);
	rt_json_end_array(&k->json);
	rt_json_end_object(&k->json);
}

static struct rt_error *list_item(struct kept *k)
{
	const char *fault = NULL;
	struct rt_probes probes;
	bool looked = false;

	RT_TRY(rt_cache_read_probes(k->cache, k->item->id, k->item->id_size, &probes));
	for (size_t i = 0; i < probes.entries.len; i++) {
		if (!wanted(k, &probes.entries.data[i]))
			continue;
		fault = looked ? fault : fault_of(k->item);
		looked = true;
		list_entry(k, &probes.entries.data[i], fault);
	}
	rt_probes_deinit(&probes);
	return NULL;
}

static struct rt_error *list(struct kept *k)
{
	bool is_json = k->options->common.format == RT_FORMAT_JSON;
	struct rt_error *err = NULL;

	if (is_json) {
		rt_json_begin_object(&k->json, NULL);
		rt_json_begin_array(&k->json, "definitions");
	}
	for (size_t i = 0; !err && i < k->count; i++) {
		k->item = &k->items[i];
		if (k->item->has[RT_CACHE_PROBES])
			err = list_item(k);
	}
	if (is_json) {
		rt_json_end_array(&k->json);
		rt_json_end_object(&k->json);
	}
	return err;
}

/* NULL: none is left. In the arena: it outlives its entry. */
static const char *next_wanted(struct kept *k, const struct rt_probes *probes, bool *ret_sdt)
{
	for (size_t i = 0; i < probes->entries.len; i++) {
		if (!wanted(k, &probes->entries.data[i]))
			continue;
		*ret_sdt = probes->entries.data[i].sdt;
		return rt_format(&k->arena, "%s", probes->entries.data[i].spec);
	}
	return NULL;
}

static struct rt_error *take_out(struct rt_probes *probes, void *arg)
{
	struct kept *k = arg;
	const char *spec;
	bool sdt = false;

	while ((spec = next_wanted(k, probes, &sdt)))
		(void)rt_probes_remove(probes, sdt, spec);
	return NULL;
}

/* Says what goes, and how much there is. */
static struct rt_error *announce(struct kept *k, size_t *ret)
{
	struct rt_probes probes;

	RT_TRY(rt_cache_read_probes(k->cache, k->item->id, k->item->id_size, &probes));
	*ret = 0;
	for (size_t i = 0; i < probes.entries.len; i++) {
		const struct rt_probes_entry *e = &probes.entries.data[i];

		if (!wanted(k, e))
			continue;
		++*ret;
		rt_sink_printf(&k->out, "%s %s  %c%s  (%s)\n", k->options->dry_run ? "would remove" : "removed",
			       name_of(k, e), e->sdt ? '%' : '#', rt_clean(&k->arena, e->spec),
			       rt_clean(&k->arena, k->item->path));
	}
	rt_probes_deinit(&probes);
	return NULL;
}

static struct rt_error *remove_in_item(struct kept *k)
{
	size_t count = 0;

	RT_TRY(announce(k, &count));
	k->found += count;
	if (!count || k->options->dry_run)
		return NULL;
	return rt_cache_change_probes(k->cache, k->item->id, k->item->id_size, k->item->path, take_out, k);
}

static struct rt_error *del(struct kept *k)
{
	struct rt_error *err = NULL;
	uid_t uid;
	gid_t gid;
	bool as_user = rt_invoking_user(&uid, &gid);

	if (!k->options->common.operands.len)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe del --cache: which?"),
				    "reftrace probe del --cache 'GROUP:*'; list them: reftrace probe list --cache");
	if (as_user)
		rt_fs_act_as(uid, gid);
	for (size_t i = 0; !err && i < k->count; i++) {
		k->item = &k->items[i];
		if (k->item->has[RT_CACHE_PROBES] && k->item->path)
			err = remove_in_item(k);
	}
	if (as_user)
		rt_fs_act_as(geteuid(), getegid());
	if (err || k->found)
		return err;
	return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "the build-id cache has no definition '%s'",
					 k->options->common.operands.data[0]),
			    "list them: reftrace probe list --cache");
}

static struct rt_error *work(const struct rt_probe_list_options *options, struct rt_error *(*act)(struct kept *k))
{
	struct kept k = { .options = options };
	struct rt_error *err = rt_probe_cache_open(false, &k.cache), *ended;

	if (!err && k.cache)
		err = rt_cache_list(k.cache, &k.items, &k.count);
	rt_sink_init_fd(&k.out, STDOUT_FILENO, "standard output");
	rt_json_init(&k.json, &k.out);
	if (!err)
		err = act(&k);
	ended = rt_sink_end(&k.out);
	rt_sink_deinit(&k.out);
	rt_cache_items_free(k.items, k.count);
	rt_cache_close(k.cache);
	rt_arena_deinit(&k.arena);
	if (err) {
		rt_error_free(ended);
		return err;
	}
	return ended;
}

struct rt_error *rt_probe_kept_list(const struct rt_probe_list_options *options)
{
	return work(options, list);
}

struct rt_error *rt_probe_kept_del(const struct rt_probe_list_options *options)
{
	return work(options, del);
}
