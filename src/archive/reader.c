/* SPDX-License-Identifier: GPL-2.0-only */
/* The archive is read twice: once to know and check everything, once to hand it out. */
#include <string.h>

#include "archive/archive.h"
#include "archive/library.h"
#include "archive/path.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"

enum { MANIFEST_MAX = 64 << 20, FILES_DEFAULT = 100000 };
#define BYTES_DEFAULT (16ull << 30)

struct rt_archive {
	struct rt_archive_library la;
	struct rt_bytes bytes;
	const char *name;
	struct rt_archive_limits limits;
	struct rt_arena arena;
	RT_VEC(struct rt_archive_item) items;
	RT_VEC(uint8_t) met; /* per item: seen in the tar */
};

static struct rt_error *tar_error(const struct rt_archive *a, struct archive *tar)
{
	const char *text = a->la.error_string(tar) ?: "?";
	bool cut = strstr(text, "runcated") != NULL;

	return rt_error_new(cut ? RT_E_TRUNCATED : RT_E_FORMAT, "%s: %s", a->name, text);
}

static struct rt_error *read_content(const struct rt_archive *a, struct archive *tar, const char *path, uint64_t size,
				     struct rt_sink *content)
{
	uint8_t part[64 << 10];
	la_ssize_t n;

	/* memory grows with what is really there, not with what the header says */
	while ((n = a->la.read_data(tar, part, sizeof(part))) > 0) {
		if ((uint64_t)n > size - content->len)
			return rt_error_new(RT_E_FORMAT, "%s: %s is longer than it says", a->name, path);
		rt_sink_write(content, part, (size_t)n);
		if (content->err)
			return rt_sink_end(content);
	}
	if (n < 0)
		return tar_error(a, tar);
	if (content->len != size)
		return rt_error_new(RT_E_TRUNCATED, "%s: %s ends early", a->name, path);
	return NULL;
}

/* Is the entry one that an archive may hold? Counts it against the limits. */
static struct rt_error *admit(const struct rt_archive *a, struct archive_entry *entry, uint64_t *files, uint64_t *total)
{
	const char *path = a->la.entry_pathname(entry);
	la_int64_t size = a->la.entry_size(entry);

	if (!path || a->la.entry_filetype(entry) != AE_IFREG || a->la.entry_hardlink(entry) ||
	    !rt_archive_path_ok(path))
		return rt_error_new(RT_E_FORMAT, "%s holds a link, a folder or a path that leads elsewhere", a->name);
	if (++*files > a->limits.files || size < 0 || (uint64_t)size > a->limits.bytes - *total)
		return rt_error_fix(rt_error_new(RT_E_LIMIT, "%s unpacks to more than %llu files or %llu bytes",
						 a->name, (unsigned long long)a->limits.files,
						 (unsigned long long)a->limits.bytes),
				    "if that is right: --max-size SIZE");
	*total += (uint64_t)size;
	return NULL;
}

typedef struct rt_error *step_fn(struct rt_archive *a, const char *path, struct rt_bytes bytes, void *arg);

static struct rt_error *each_entry(struct rt_archive *a, struct archive *tar, step_fn *step, void *arg)
{
	uint64_t total = 0, files = 0;

	if (a->la.read_open_memory(tar, a->bytes.data, a->bytes.size))
		return rt_error_new(RT_E_FORMAT, "%s is no archive of reftrace", a->name);
	for (;;) {
		_cleanup_(rt_sink_deinit) struct rt_sink content;
		struct archive_entry *entry;
		int status = a->la.read_next_header(tar, &entry);
		_cleanup_free_ char *path = NULL;

		rt_sink_init_memory(&content);
		if (status == ARCHIVE_EOF)
			return NULL;
		if (status < ARCHIVE_WARN)
			return tar_error(a, tar);
		RT_TRY(admit(a, entry, &files, &total));
		path = strdup(a->la.entry_pathname(entry));
		if (!path)
			return rt_error_nomem();
		RT_TRY(read_content(a, tar, path, (uint64_t)a->la.entry_size(entry), &content));
		RT_TRY(step(a, path, rt_bytes_make(content.buffer, content.len), arg));
	}
}

/* One pass: each file to step. */
static struct rt_error *pass(struct rt_archive *a, step_fn *step, void *arg)
{
	struct archive *tar = a->la.read_new();
	struct rt_error *err;

	if (!tar)
		return rt_error_nomem();
	a->la.read_support_format_tar(tar);
	a->la.read_support_filter_zstd(tar);
	err = each_entry(a, tar, step, arg);
	a->la.read_free(tar);
	return err;
}

static bool hex_bytes(const char *text, size_t len, uint8_t *ret, size_t size)
{
	if (len != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		uint64_t v;

		if (!rt_parse_u64(text + 2 * i, 2, 16, &v))
			return false;
		ret[i] = (uint8_t)v;
	}
	return true;
}

/* A build-id in hex, or "-". */
static bool id_ok(const char *text)
{
	size_t len = strspn(text, "0123456789abcdef");

	return !strcmp(text, "-") || (!text[len] && len && len <= 128 && len % 2 == 0);
}

/* The fields of a line, up to max; the last one goes to its end. Writes NULs into line. */
static size_t split(char *line, char **fields, size_t max)
{
	size_t n = 0;

	while (n < max) {
		char *blank = n + 1 < max ? strchr(line, ' ') : NULL;

		fields[n++] = line;
		if (!blank)
			break;
		*blank = 0;
		line = blank + 1;
	}
	return n;
}

static struct rt_error *bad_line(const struct rt_archive *a, size_t number)
{
	return rt_error_new(RT_E_FORMAT, "%s: line %zu of the manifest cannot be understood", a->name, number);
}

static struct rt_error *parse_line(struct rt_archive *a, char *line, size_t number)
{
	struct rt_archive_item *last = a->items.len ? &a->items.data[a->items.len - 1] : NULL, item = { 0 };
	char *f[5];
	uint64_t n;

	if (!strncmp(line, "item ", 5)) {
		if (split(line, f, 5) != 5 || !hex_bytes(f[1], strlen(f[1]), item.sha256, 32) ||
		    !rt_parse_u64(f[2], strlen(f[2]), 10, &n) || !id_ok(f[3]))
			return bad_line(a, number);
		item.bytes = n;
		item.build_id = strcmp(f[3], "-") ? f[3] : NULL;
		item.origin = f[4];
		return rt_vec_push(&a->items, item) ? NULL : rt_error_nomem();
	}
	if (!strncmp(line, "missing ", 8)) {
		if (split(line, f, 3) != 3 || !id_ok(f[1]))
			return bad_line(a, number);
		item.build_id = strcmp(f[1], "-") ? f[1] : NULL;
		item.origin = f[2];
		item.why = "";
		return rt_vec_push(&a->items, item) ? NULL : rt_error_nomem();
	}
	if (!strncmp(line, "path ", 5) && last && !last->why && !last->path && rt_archive_path_ok(line + 5)) {
		last->path = line + 5;
		return NULL;
	}
	if (!strncmp(line, "why ", 4) && last && last->why && !*last->why) {
		last->why = line + 4;
		return NULL;
	}
	return bad_line(a, number);
}

static struct rt_error *take_manifest(struct rt_archive *a, const char *path, struct rt_bytes bytes, void *arg)
{
	bool *found = arg;
	char *text, *line;
	size_t number = 1;

	if (strcmp(path, RT_ARCHIVE_MANIFEST) != 0)
		return NULL;
	if (*found || bytes.size > MANIFEST_MAX)
		return rt_error_new(RT_E_FORMAT, "%s has two manifests, or one that is too long", a->name);
	*found = true;
	text = rt_arena_strndup(&a->arena, (const char *)bytes.data, bytes.size);
	if (!text)
		return rt_error_nomem();
	line = strsep(&text, "\n");
	if (!line || strcmp(line, RT_ARCHIVE_VERSION) != 0)
		return rt_error_fix(rt_error_new(RT_E_UNSUPPORTED, "%s: the manifest is of another version", a->name),
				    "read it with the reftrace that made it");
	while ((line = strsep(&text, "\n"))) {
		number++;
		if (*line)
			RT_TRY(parse_line(a, line, number));
	}
	for (size_t i = 0; i < a->items.len; i++) {
		if (!a->items.data[i].path && !a->items.data[i].why)
			return bad_line(a, number);
	}
	return NULL;
}

static struct rt_archive_item *find(struct rt_archive *a, const char *path)
{
	for (size_t i = 0; i < a->items.len; i++) {
		if (a->items.data[i].path && !strcmp(a->items.data[i].path, path))
			return &a->items.data[i];
	}
	return NULL;
}

struct handing {
	struct rt_error *(*take)(void *arg, const struct rt_archive_item *item, struct rt_bytes bytes);
	void *arg;
};

static struct rt_error *check(struct rt_archive *a, const char *path, struct rt_bytes bytes, void *arg)
{
	const struct handing *h = arg;
	struct rt_archive_item *item;
	uint8_t hash[32];

	if (!strcmp(path, RT_ARCHIVE_MANIFEST))
		return NULL;
	item = find(a, path);
	if (!item || a->met.data[item - a->items.data])
		return rt_error_new(RT_E_FORMAT, "%s: %s is not in the manifest, or twice in the archive", a->name,
				    path);
	a->met.data[item - a->items.data] = 1;
	rt_archive_hash(bytes, hash);
	if (item->bytes != bytes.size || memcmp(hash, item->sha256, sizeof(hash)) != 0)
		return rt_error_new(RT_E_FORMAT, "%s: %s is damaged: its hash differs", a->name, path);
	return h->take ? h->take(h->arg, item, bytes) : NULL;
}

struct rt_error *rt_archive_each(struct rt_archive *a,
				 struct rt_error *(*take)(void *arg, const struct rt_archive_item *item,
							  struct rt_bytes bytes),
				 void *arg)
{
	struct handing h = { take, arg };

	if (a->met.len)
		memset(a->met.data, 0, a->met.len);
	RT_TRY(pass(a, check, &h));
	for (size_t i = 0; i < a->items.len; i++) {
		if (a->items.data[i].path && !a->met.data[i])
			return rt_error_new(RT_E_TRUNCATED, "%s: %s is in the manifest and not in the archive", a->name,
					    a->items.data[i].path);
	}
	return NULL;
}

struct rt_error *rt_archive_open(struct rt_bytes bytes, const char *name, const struct rt_archive_limits *limits,
				 struct rt_archive **ret)
{
	_cleanup_(rt_archive_closep) struct rt_archive *a = calloc(1, sizeof(*a));
	bool found = false;

	if (!a)
		return rt_error_nomem();
	RT_TRY(rt_archive_library_open(&a->la));
	a->bytes = bytes;
	a->name = name;
	if (limits)
		a->limits = *limits;
	a->limits.bytes = a->limits.bytes ?: BYTES_DEFAULT;
	a->limits.files = a->limits.files ?: FILES_DEFAULT;
	RT_TRY(pass(a, take_manifest, &found));
	if (!found)
		return rt_error_new(RT_E_FORMAT, "%s has no manifest: it is no archive of reftrace, or it is cut",
				    name);
	for (size_t i = 0; i < a->items.len; i++) {
		if (!rt_vec_push(&a->met, 0))
			return rt_error_nomem();
	}
	RT_TRY(rt_archive_each(a, NULL, NULL));
	*ret = rt_take(a);
	return NULL;
}

void rt_archive_close(struct rt_archive *a)
{
	if (!a)
		return;
	rt_arena_deinit(&a->arena);
	rt_vec_deinit(&a->items);
	rt_vec_deinit(&a->met);
	free(a);
}

const struct rt_archive_item *rt_archive_items(const struct rt_archive *a, size_t *ret_count)
{
	*ret_count = a->items.len;
	return a->items.data;
}
