/* SPDX-License-Identifier: GPL-2.0-only */
/* cache: what the build-id cache holds, and putting in and taking out. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "cache/cache.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/kernel.h"
#include "cli/options.h"
#include "elf/build_id.h"
#include "probe/definition.h"
#include "report/words.h"

enum { OPT_OLDER = 0x1000, OPT_MAX_SIZE, OPT_DIR, OPT_REPLACE, OPT_ALL, OPT_ALWAYS, PREFIX_MIN = 4 };

#define KCORES "[kernel.kcore]" /* where copies of kernels' memory were seen, as perf calls it */

struct cache_options {
	struct rt_options common; /* first: argp hands it on */
	const char *root;
	uint64_t older_ns;
	bool replace, all, always;
};

static const struct argp_option own[] = {
	{ "buildid-dir", OPT_DIR, "DIR", 0, "the cache is DIR (default $PERF_BUILDID_DIR, else ~/.debug)", 1 },
	{ "replace", OPT_REPLACE, NULL, 0, "add: in the place of the file that is there, whatever that tells", 1 },
	{ "all", OPT_ALL, NULL, 0, "rm: everything", 1 },
	{ "older", OPT_OLDER, "TIME", 0, "rm: what was not used for TIME: 24h, 30m", 1 },
	{ "max-size", OPT_MAX_SIZE, "SIZE", 0, "gc: the least recently used go until the rest has SIZE: 5G, 500M", 1 },
	{ "always", OPT_ALWAYS, NULL, 0,
	  "gc: from now on, too, when something was put in; without --max-size no longer", 1 },
	{ NULL, 'l', NULL, 0, "list, by the letter that perf has for it", 2 },
	{ NULL, 'a', "FILE[,FILE]", 0, "add, by perf's letter", 2 },
	{ NULL, 'k', "KCORE", 0, "add a copy of the kernel's code, by perf's letter", 2 },
	{ NULL, 'r', "FILE[,FILE]", 0, "rm, by perf's letter", 2 },
	{ NULL, 'p', "PATH[,PATH]", 0, "rm, by perf's letter: no file needs to be there", 2 },
	{ NULL, 'P', NULL, 0, "rm --all, by perf's letter", 2 },
	{ NULL, 'u', "FILE[,FILE]", 0, "add --replace, by perf's letter", 2 },
	{ 0 },
};

static bool is_kcore(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash && !strcmp(slash, "/kcore");
}

/* A letter of perf buildid-cache stands for a verb and its names. */
static error_t letter(struct rt_options *options, const char *verb, char *names)
{
	const char *name;

	if (options->operands.len && strcmp(options->operands.data[0], verb) != 0)
		return rt_option_fault(options, rt_error_new(RT_E_USAGE, "cache: %s and %s, one at a time",
							     options->operands.data[0], verb));
	if (!options->operands.len && !rt_vec_push(&options->operands, verb))
		return rt_option_fault(options, rt_error_nomem());
	while ((name = strsep(&names, ",")))
		if (*name && !rt_vec_push(&options->operands, name))
			return rt_option_fault(options, rt_error_nomem());
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct cache_options *options = state->input;

	switch (key) {
	case OPT_DIR:
		options->root = arg;
		return 0;
	case OPT_OLDER:
		return rt_option_fault(&options->common, rt_parse_duration(arg, &options->older_ns));
	case OPT_MAX_SIZE:
		return rt_option_fault(&options->common, rt_parse_size(arg, &options->common.max_size));
	case OPT_REPLACE:
		options->replace = true;
		return 0;
	case OPT_ALL:
		options->all = true;
		return 0;
	case OPT_ALWAYS:
		options->always = true;
		return 0;
	case 'P':
		options->all = true;
		return letter(&options->common, "rm", NULL);
	case 'u':
		options->replace = true;
		return letter(&options->common, "add", arg);
	case 'l':
		return letter(&options->common, "list", NULL);
	case 'a':
		return letter(&options->common, "add", arg);
	case 'k':
		if (!is_kcore(arg))
			return rt_option_fault(&options->common,
					       rt_error_fix(rt_error_new(RT_E_USAGE, "%s is not called kcore", arg),
							    "reftrace cache -k /proc/kcore"));
		return letter(&options->common, "add", arg);
	case 'r':
	case 'p':
		return letter(&options->common, "rm", arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp cache_argp = { own, parse };
static const struct argp_child children[] = { { &cache_argp }, { &rt_common_argp }, { 0 } };
const struct argp rt_cache_argp = { NULL, rt_parse_operands,
				    "list\nshow ID|FILE\nadd FILE...\nverify\nrm ID|FILE...\ngc [--max-size SIZE]",
				    "Looks after the build-id cache that perf uses as well.", children };

struct job {
	const struct cache_options *options;
	struct rt_cache *cache;
	struct rt_cache_item *items;
	size_t count;
	struct rt_arena arena;
	int status;
};

static const char *hex(struct job *j, const struct rt_cache_item *item)
{
	char *text = rt_arena_alloc(&j->arena, 2 * RT_CACHE_ID_MAX + 1);

	return text ? rt_build_id_text(item->id, item->id_size, text) : "";
}

static const char *parts(struct job *j, const struct rt_cache_item *item)
{
	const char *text = "";

	for (int part = 0; part < RT_CACHE_PARTS; part++)
		if (item->has[part])
			text = rt_format(&j->arena, "%s%s%s", text, *text ? "," : "",
					 rt_cache_part_name((enum rt_cache_part)part));
	return text;
}

static void list_item(struct job *j, const struct rt_cache_item *item)
{
	printf("%-40s %10s  %s  (%s)\n", hex(j, item), rt_bytes_text(&j->arena, item->bytes),
	       item->path ? rt_clean(&j->arena, item->path) : "?", parts(j, item));
	for (size_t i = 0; i < item->others.len; i++)
		printf("%-40s %10s  %s  (the same)\n", "", "", rt_clean(&j->arena, item->others.data[i]));
}

static struct rt_error *list(struct job *j)
{
	for (size_t i = 0; i < j->count; i++)
		list_item(j, &j->items[i]);
	return NULL;
}

/*
 * The item that was first seen at a path where no file is any more, or never was one ("[vdso]"). *ret NULL: there is a
 * file, which tells its own build-id, or none was seen there.
 */
static struct rt_error *find_path(struct job *j, const char *path, const struct rt_cache_item **ret)
{
	*ret = NULL;
	if (!access(path, F_OK))
		return NULL;
	for (size_t i = 0; i < j->count; i++) {
		if (!rt_cache_item_is_at(&j->items[i], path))
			continue;
		if (*ret)
			return rt_error_fix(rt_error_new(RT_E_USAGE, "several build-ids were seen at %s", path),
					    "name one of: reftrace cache list");
		*ret = &j->items[i];
	}
	return NULL;
}

/* A file by its name; what holds hexadecimal digits alone is a build-id, or its beginning. */
static bool is_file(const char *name)
{
	return name[strspn(name, "0123456789abcdef")] != 0;
}

/* The item of a build-id, of its beginning, of a file's own, or of a path that is no more. */
static struct rt_error *find(struct job *j, const char *name, const struct rt_cache_item **ret)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	const struct rt_cache_item *found = NULL;
	char id[2 * RT_BUILD_ID_WHOLE_MAX + 1];

	if (is_file(name)) {
		RT_TRY(find_path(j, name, ret));
		if (*ret)
			return NULL;
		RT_TRY(rt_image_open(name, &image));
		name = rt_build_id_text(image->build_id, image->build_id_size, id);
	}
	for (size_t i = 0; i < j->count && strlen(name) >= PREFIX_MIN; i++) {
		if (strncmp(hex(j, &j->items[i]), name, strlen(name)) != 0)
			continue;
		if (found)
			return rt_error_new(RT_E_USAGE, "several build-ids begin with %s", name);
		found = &j->items[i];
	}
	if (!found)
		return rt_error_fix(
			rt_error_new(RT_E_NOT_FOUND, "%s has no build-id %s", rt_cache_root(j->cache), name),
			"list: reftrace cache list");
	*ret = found;
	return NULL;
}

static struct rt_error *show(struct job *j, const char *name)
{
	const struct rt_cache_item *item;
	const char *why;
	struct rt_probes probes;

	RT_TRY(find(j, name, &item));
	list_item(j, item);
	why = rt_cache_check(j->cache, item);
	if (why) {
		printf("  cannot be used: %s\n", why);
		j->status = RT_EXIT_TRUST;
	}
	RT_TRY(rt_cache_read_probes(j->cache, item->id, item->id_size, &probes));
	for (size_t i = 0; i < probes.entries.len; i++) {
		const struct rt_probes_entry *e = &probes.entries.data[i];

		printf("  %c%s\n", e->sdt ? '%' : '#', rt_clean(&j->arena, e->spec));
		for (size_t n = 0; n < e->lines.len; n++)
			printf("      %s\n", rt_clean(&j->arena, e->lines.data[n]));
	}
	if (probes.dropped)
		printf("  %zu lines are no entries: perf refuses such a file; the next change leaves them out\n",
		       probes.dropped);
	rt_probes_deinit(&probes);
	return NULL;
}

struct markers {
	struct rt_marker_file file;
	const struct rt_sdt_marker *list;
	size_t count, dropped;
};

static struct rt_error *add_markers(struct rt_probes *probes, void *arg)
{
	struct markers *m = arg;

	return rt_marker_entries(&m->file, m->list, m->count, probes, &m->dropped);
}

static struct rt_error *add_probes(struct job *j, const struct rt_image *image, const char *path)
{
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = NULL;
	_cleanup_free_ struct rt_sdt_marker *list = NULL;
	struct markers m = { .file = { .image = image, .path = path } };

	RT_TRY(rt_symtab_create(image, &symtab));
	m.file.symtab = symtab;
	RT_TRY(rt_sdt_read(image, &list, &m.count));
	RT_TRY(rt_image_whole(image));
	m.list = list;
	if (!m.count)
		return NULL;
	RT_TRY(rt_cache_change_probes(j->cache, image->build_id, image->build_id_size, path, add_markers, &m));
	if (m.dropped)
		printf("  %zu argument%s of its markers left out: tracefs has no words for them\n", m.dropped,
		       rt_plural(m.dropped));
	return NULL;
}

static void say_added(struct job *j, const char *path, bool made, const char *more)
{
	printf("%s %s%s\n", made ? "added" : "was there", rt_clean(&j->arena, path), more);
}

/* Is it the kernel's own, by perf's names? */
static bool is_kernels(const char *name)
{
	return !strcmp(name, "[kernel.kallsyms]") || !strcmp(name, "[vdso]");
}

/* A copy of the kernel's code. */
static struct rt_error *add_kcore(struct job *j, const char *name)
{
	bool made = false;

	if (access(name, F_OK))
		return rt_error_fix(
			rt_error_new(RT_E_UNSUPPORTED, "%s is not there: this kernel shows no memory of its own", name),
			"its names: reftrace cache add '[kernel.kallsyms]'");
	RT_TRY(rt_cache_put_kcore(j->cache, name, &made));
	say_added(j, name, made, "");
	return NULL;
}

static struct rt_error *add(struct job *j, const char *name)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL, *kept = NULL;
	_cleanup_free_ char *path = realpath(name, NULL);
	_cleanup_close_ int fd = -1;
	bool made = false;

	if (is_kernels(name)) {
		RT_TRY(rt_kernel_put(j->cache, name, &made));
		say_added(j, name, made, "");
		return NULL;
	}
	if (is_kcore(name) || !strcmp(name, KCORES))
		return add_kcore(j, is_kcore(name) ? name : "/proc/kcore");
	RT_TRY(rt_fs_open_file(AT_FDCWD, name, false, &fd));
	RT_TRY(rt_image_open_fd(fd, name, &image));
	if (!path)
		return rt_error_nomem();
	if (j->options->replace) {
		RT_TRY(rt_cache_replace_fd(j->cache, image->build_id, image->build_id_size, path, RT_CACHE_ELF, fd));
		made = true;
	} else {
		RT_TRY(rt_cache_put_fd(j->cache, image->build_id, image->build_id_size, path, RT_CACHE_ELF, fd, &made));
	}
	say_added(j, path, made, image->build_id_is_hash ? "  (no build-id: by the hash of its content)" : "");
	RT_TRY(rt_image_find_debug(image, AT_FDCWD));
	if (image->debug)
		RT_TRY(rt_cache_put(j->cache, image->build_id, image->build_id_size, path, RT_CACHE_DEBUG,
				    image->debug->bytes, NULL));
	/* what the cache has may tell more than this file */
	close(rt_take_fd(&fd));
	RT_TRY(rt_cache_get(j->cache, image->build_id, image->build_id_size, RT_CACHE_ELF, &fd));
	RT_TRY(rt_image_open_fd(fd, path, &kept));
	return add_probes(j, rt_cache_holds(j->cache, image->build_id, image->build_id_size) ? kept : image, path);
}

static struct rt_error *verify(struct job *j)
{
	size_t bad = 0;

	for (size_t i = 0; i < j->count; i++) {
		const char *why = rt_cache_check(j->cache, &j->items[i]);

		if (!why)
			continue;
		printf("%s  %s: %s\n", hex(j, &j->items[i]),
		       j->items[i].path ? rt_clean(&j->arena, j->items[i].path) : "?", why);
		bad++;
	}
	printf("%zu of %zu build-ids can be used\n", j->count - bad, j->count);
	j->status = bad ? RT_EXIT_TRUST : RT_EXIT_OK;
	return NULL;
}

static void say_gone(const struct rt_cache_item *item, void *arg)
{
	struct job *j = arg;

	printf("removed %s  %s\n", hex(j, item), item->path ? rt_clean(&j->arena, item->path) : "?");
}

static struct rt_error *take_out(struct job *j, const struct rt_cache_item *item)
{
	RT_TRY(rt_cache_remove(j->cache, item->id, item->id_size));
	say_gone(item, j);
	return NULL;
}

static struct rt_error *remove_older(struct job *j)
{
	int64_t before = (int64_t)time(NULL) - (int64_t)(j->options->older_ns / 1000000000);

	for (size_t i = 0; i < j->count; i++)
		if (j->items[i].used_s < before)
			RT_TRY(take_out(j, &j->items[i]));
	return NULL;
}

static struct rt_error *remove_all(struct job *j)
{
	for (size_t i = 0; i < j->count; i++)
		RT_TRY(take_out(j, &j->items[i]));
	return NULL;
}

static struct rt_error *collect(struct job *j)
{
	uint64_t max = j->options->common.max_size, left;

	if (!max && j->options->always) {
		RT_TRY(rt_cache_set_limit(j->cache, 0));
		printf("no limit\n");
		return NULL;
	}
	if (j->options->always)
		RT_TRY(rt_cache_set_limit(j->cache, max));
	max = max ?: rt_cache_limit(j->cache);
	if (!max)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "cache gc: how much may stay?"),
				    "reftrace cache gc --max-size 5G");
	RT_TRY(rt_cache_trim(j->cache, max, say_gone, j, &left));
	printf("%s left\n", rt_bytes_text(&j->arena, left));
	return NULL;
}

/* What was put in may have been too much. */
static struct rt_error *keep_limit(struct job *j)
{
	uint64_t max = rt_cache_limit(j->cache), left;

	return max ? rt_cache_trim(j->cache, max, say_gone, j, &left) : NULL;
}

static struct rt_error *each(struct job *j, struct rt_error *(*act)(struct job *j, const char *name))
{
	for (size_t i = 1; i < j->options->common.operands.len; i++)
		RT_TRY(act(j, j->options->common.operands.data[i]));
	return NULL;
}

static struct rt_error *take_out_named(struct job *j, const char *name)
{
	_cleanup_free_ char *path = NULL;
	const struct rt_cache_item *item;

	RT_TRY(find(j, name, &item));
	if (item->others.len && !strcmp(name, KCORES)) {
		RT_TRY(rt_cache_remove_kcore(j->cache, item->id, item->id_size));
		printf("removed %s  %s\n", hex(j, item), KCORES);
		return NULL;
	}
	path = is_file(name) ? realpath(name, NULL) : NULL;
	if (!item->others.len || !rt_cache_item_is_at(item, path ?: name))
		return take_out(j, item);
	RT_TRY(rt_cache_remove_path(j->cache, item->id, item->id_size, path ?: name));
	printf("removed %s; %s stays, which was seen elsewhere, too\n", rt_clean(&j->arena, path ?: name),
	       hex(j, item));
	return NULL;
}

static struct rt_error *act(struct job *j)
{
	size_t names = j->options->common.operands.len;
	const char *verb = names ? j->options->common.operands.data[0] : "";

	if (!strcmp(verb, "list") && names == 1)
		return list(j);
	if (!strcmp(verb, "verify") && names == 1)
		return verify(j);
	if (!strcmp(verb, "gc") && names == 1)
		return collect(j);
	if (!strcmp(verb, "show") && names > 1)
		return each(j, show);
	if (!strcmp(verb, "add") && names > 1) {
		RT_TRY(each(j, add));
		return keep_limit(j);
	}
	if (!strcmp(verb, "rm") && j->options->all && names == 1 && !j->options->older_ns)
		return remove_all(j);
	if (!strcmp(verb, "rm") && names > 1 && !j->options->older_ns && !j->options->all)
		return each(j, take_out_named);
	if (!strcmp(verb, "rm") && names == 1 && j->options->older_ns && !j->options->all)
		return remove_older(j);
	return rt_error_fix(
		rt_error_new(RT_E_USAGE, "cache: list, show, add, verify, rm or gc is needed, with what it takes"),
		"reftrace help cache");
}

static struct rt_error *with_cache(const struct cache_options *options, int *ret_status)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	struct job j = { .options = options };
	const char *verb = options->common.operands.len ? options->common.operands.data[0] : "";
	struct rt_error *err;

	RT_TRY(rt_cache_open(options->root, !strcmp(verb, "add") || options->always, &cache));
	j.cache = cache;
	RT_TRY(rt_cache_list(cache, &j.items, &j.count));
	err = act(&j);
	*ret_status = j.status;
	rt_cache_items_free(j.items, j.count);
	rt_arena_deinit(&j.arena);
	return err;
}

int cmd_cache(int argc, char **argv)
{
	struct cache_options options = { .root = NULL };
	struct rt_error *err = rt_options_parse(&rt_cache_argp, argc, argv, &options.common);
	int status = RT_EXIT_OK;

	if (!err && options.common.help)
		rt_options_help(&rt_cache_argp, "cache", stdout);
	else if (!err)
		err = with_cache(&options, &status);
	if (err)
		status = rt_failure(err);
	rt_options_deinit(&options.common);
	return status;
}
