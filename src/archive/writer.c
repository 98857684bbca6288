/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "archive/archive.h"
#include "archive/library.h"
#include "archive/path.h"
#include "base/intern.h"

struct rt_archive_writer {
	struct rt_archive_library la;
	struct archive *tar;
	struct rt_sink *sink;
	struct rt_sink manifest;
	struct rt_intern paths;
};

static struct rt_error *failed(struct rt_archive_writer *w)
{
	/* the sink knows better what went wrong below the tar */
	if (w->sink->err)
		return rt_sink_end(w->sink);
	return rt_error_new(RT_E_UNWRITABLE, "cannot write the archive: %s", w->la.error_string(w->tar) ?: "?");
}

static la_ssize_t give(struct archive *tar, void *arg, const void *data, size_t size)
{
	struct rt_archive_writer *w = arg;

	rt_sink_write(w->sink, data, size);
	return w->sink->err ? -1 : (la_ssize_t)size;
}

struct rt_error *rt_archive_writer_create(struct rt_sink *sink, struct rt_archive_writer **ret)
{
	_cleanup_(rt_archive_writer_destroyp) struct rt_archive_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return rt_error_nomem();
	w->sink = sink;
	rt_sink_init_memory(&w->manifest);
	rt_sink_puts(&w->manifest, RT_ARCHIVE_VERSION "\n");
	RT_TRY(rt_archive_library_open(&w->la));
	w->tar = w->la.write_new();
	if (!w->tar)
		return rt_error_nomem();
	if (w->la.write_set_format_pax_restricted(w->tar) || w->la.write_add_filter_zstd(w->tar) ||
	    w->la.write_set_bytes_per_block(w->tar, 0) || w->la.write_open(w->tar, w, NULL, give, NULL))
		return failed(w);
	*ret = rt_take(w);
	return NULL;
}

void rt_archive_writer_destroy(struct rt_archive_writer *w)
{
	if (!w)
		return;
	if (w->tar) {
		/* what was not ended shall not be completed now */
		w->la.write_fail(w->tar);
		w->la.write_free(w->tar);
	}
	rt_sink_deinit(&w->manifest);
	rt_intern_deinit(&w->paths);
	free(w);
}

static struct rt_error *put(struct rt_archive_writer *w, const char *path, struct rt_bytes bytes)
{
	struct archive_entry *entry = w->la.entry_new();
	struct rt_error *err = NULL;

	if (!entry)
		return rt_error_nomem();
	w->la.entry_set_pathname(entry, path);
	w->la.entry_set_size(entry, (la_int64_t)bytes.size);
	w->la.entry_set_filetype(entry, AE_IFREG);
	w->la.entry_set_perm(entry, 0644);
	if (w->la.write_header(w->tar, entry) < ARCHIVE_WARN)
		err = failed(w);
	while (!err && bytes.size) {
		size_t n = bytes.size < 1u << 20 ? bytes.size : 1u << 20;

		if (w->la.write_data(w->tar, bytes.data, n) != (la_ssize_t)n)
			err = failed(w);
		bytes.data += n;
		bytes.size -= n;
	}
	w->la.entry_free(entry);
	return err;
}

/* A newline would end the line: what has one is not a file that anybody can name here. */
static const char *one_line(const char *text)
{
	return text && *text && !strpbrk(text, "\n\r") ? text : "?";
}

struct rt_error *rt_archive_add(struct rt_archive_writer *w, const char *path, const char *build_id, const char *origin,
				struct rt_bytes bytes)
{
	size_t known = w->paths.items.len;
	uint8_t hash[32];
	char hex[65];

	if (!rt_archive_path_ok(path) || !strcmp(path, RT_ARCHIVE_MANIFEST))
		return rt_error_new(RT_E_FORMAT, "%s is no path for an archive", path);
	if (!rt_intern_string(&w->paths, path))
		return rt_error_nomem();
	if (w->paths.items.len == known)
		return NULL;
	rt_archive_hash(bytes, hash);
	rt_archive_hash_text(hash, hex);
	RT_TRY(put(w, path, bytes));
	rt_sink_printf(&w->manifest, "item %s %zu %s %s\npath %s\n", hex, bytes.size, build_id ?: "-", one_line(origin),
		       path);
	return NULL;
}

struct rt_error *rt_archive_miss(struct rt_archive_writer *w, const char *build_id, const char *origin, const char *why)
{
	rt_sink_printf(&w->manifest, "missing %s %s\nwhy %s\n", build_id ?: "-", one_line(origin), one_line(why));
	return NULL;
}

struct rt_error *rt_archive_end(struct rt_archive_writer *w)
{
	RT_TRY(rt_sink_end(&w->manifest));
	RT_TRY(put(w, RT_ARCHIVE_MANIFEST, rt_bytes_make(w->manifest.buffer, w->manifest.len)));
	if (w->la.write_close(w->tar))
		return failed(w);
	w->la.write_free(w->tar);
	w->tar = NULL;
	return NULL;
}
