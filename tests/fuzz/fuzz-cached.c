/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any definition, names and probes file: the definition in perf's words is found under them and reads back to the same
 * words, what is set leaves the rest as it was, and a match is one that was let through. The first byte: which file is
 * asked about and what is allowed (enum mode). Then up to a byte 0 each the definition, a group and an event, and the
 * probes file of /opt/a; that of /opt/b is behind a byte 1 in it.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "input.h"
#include "probe/cached.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum mode { OWN = 1, HASHED = 2, AT_B = 4, UNVERIFIED = 8, MISMATCH = 16, NO_GROUP = 32 };

enum { ID_SIZE = 20 };

static const char *const paths[2] = { "/opt/a", "/opt/b" };

/* A cache of two files, made once: only their probes change. */
static struct {
	char root[128];
	struct rt_cache *cache;
	int probes[2];
} home;

static void id_of(unsigned file, uint8_t ret[ID_SIZE])
{
	memset(ret, 0xa0 + (int)file, ID_SIZE);
}

static void leave(void)
{
	uint8_t id[ID_SIZE];

	for (unsigned i = 0; i < 2; i++) {
		id_of(i, id);
		rt_error_free(rt_cache_remove(home.cache, id, ID_SIZE));
	}
	rt_cache_close(home.cache);
	(void)chdir(home.root);
	(void)rmdir(".build-id");
	(void)rmdir("opt");
	(void)rmdir(home.root);
}

static void make_home(void)
{
	static const char text[] = "#g:e=f\n";
	const char *tmp = getenv("TMPDIR");
	char path[256];

	if (home.cache)
		return;
	snprintf(home.root, sizeof(home.root), "%s/reftrace-fuzz-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(home.root) || rt_cache_open(home.root, true, &home.cache))
		abort();
	for (unsigned i = 0; i < 2; i++) {
		char hex[2 * ID_SIZE + 1];
		uint8_t id[ID_SIZE];

		id_of(i, id);
		if (rt_cache_put(home.cache, id, ID_SIZE, paths[i], RT_CACHE_PROBES,
				 rt_bytes_make(text, sizeof(text) - 1), NULL))
			abort();
		snprintf(path, sizeof(path), "%s%s/%s/probes", home.root, paths[i], rt_build_id_text(id, ID_SIZE, hex));
		home.probes[i] = open(path, O_RDWR | O_CLOEXEC);
		if (home.probes[i] < 0)
			abort();
	}
	atexit(leave);
}

static void check_line(const char *line)
{
	struct rt_cached_line l;
	const char *colon;

	if (!rt_cached_read(line, &l))
		return;
	if (!*l.group || !*l.event || strpbrk(l.group, " /:#") || strpbrk(l.event, " /:#"))
		abort();
	if (l.arguments < line || l.arguments > line + strlen(line) || (*l.arguments && *l.arguments != ' '))
		abort();
	/* as the kernel reads it: the number behind the last colon of the place */
	colon = memrchr(line, ':', (size_t)(l.arguments - line));
	if (!colon || strtoull(colon + 1, NULL, 16) != l.offset.v)
		abort();
}

/*
 * Written and read again, it has the same words. "@FILE:LINE" is a form that perf alone has, and perf's words for a
 * place behind a name with a dot or slash are those of a file; it knows neither brackets, which we
 * close, nor quotation marks. No function is called 0x.
 */
static void check_words(const struct rt_request *r, const char *spec)
{
	struct rt_request again;
	struct rt_sink sink;

	if (strpbrk(spec, "\n\t") || (r->event && strncmp(strchr(spec, ':') + 1, r->event, strlen(r->event)) != 0))
		abort();
	if (r->kind != RT_REQUEST_FUNCTION || *r->function == '0' || strpbrk(r->function, "./<({[]})>") ||
	    (r->file && strpbrk(r->file, "<({[]})>")) || (r->pattern && strpbrk(r->pattern, "\\\"<({[]})>")))
		return;
	rt_sink_init_memory(&sink);
	if (rt_request_parse(spec, &again) || again.kind != r->kind || again.offset != r->offset ||
	    again.at_return != r->at_return || again.line != r->line || again.arguments.len != r->arguments.len ||
	    rt_request_write(&again, "g", &sink) || rt_sink_end(&sink) || strcmp(sink.buffer, spec) != 0)
		abort();
	rt_sink_deinit(&sink);
	rt_request_deinit(&again);
}

static size_t count_sdt(const struct rt_probes *probes)
{
	size_t count = 0;

	for (size_t i = 0; i < probes->entries.len; i++)
		count += probes->entries.data[i].sdt;
	return count;
}

static void check_set(struct rt_probes *probes, const struct rt_request *r)
{
	static const char *const lines[] = { "p:g/e /x:0x10", "p:g/e /x:0x20" };
	const struct rt_probes_entry *entry = NULL;
	size_t markers = count_sdt(probes);
	struct rt_sink spec;
	struct rt_error *err = rt_cached_set(probes, r, "g", lines, 2);

	if (rt_cached_find(probes, r, "g", &entry))
		abort();
	if (err) {
		if (err->code != RT_E_UNSUPPORTED && err->code != RT_E_LIMIT)
			abort();
		rt_error_free(err);
		return;
	}
	if (!entry || entry->sdt || entry->lines.len != 2 || !rt_cached_fits(entry, NULL, "*") ||
	    !rt_cached_fits(entry, "g", "e") || count_sdt(probes) != markers)
		abort();
	rt_sink_init_memory(&spec);
	if (rt_request_write(r, "g", &spec) || rt_sink_end(&spec) || strcmp(spec.buffer, entry->spec) != 0)
		abort();
	check_words(r, spec.buffer);
	for (size_t i = 0; r->event && i < probes->entries.len; i++) {
		const struct rt_probes_entry *other = &probes->entries.data[i];

		/* the name is this one's alone */
		if (other != entry && !other->sdt && !strncmp(other->spec, spec.buffer, strcspn(spec.buffer, "=") + 1))
			abort();
	}
	rt_sink_deinit(&spec);
}

static void check_match(uint8_t mode, const char *group, const char *event)
{
	const struct rt_cached_allow allow = { mode & UNVERIFIED, mode & MISMATCH };
	struct rt_image image = { .build_id_size = ID_SIZE, .build_id_is_hash = mode & HASHED };
	struct rt_cached_match match;
	struct rt_error *err;
	bool fits = false;

	id_of(mode & OWN ? 0 : 2, image.build_id);
	err = rt_cached_match(home.cache, &image, paths[!!(mode & AT_B)], group, event, &allow, &match);
	if (err && err->code != RT_E_NOT_FOUND && err->code != RT_E_BUILD_ID)
		abort();
	if (!err) {
		for (size_t i = 0; i < match.probes.entries.len; i++)
			fits |= rt_cached_fits(&match.probes.entries.data[i], group, event);
		if (!fits || (match.trust == RT_CACHED_SAME) != !match.why ||
		    (match.trust == RT_CACHED_SAME && !(mode & OWN)) ||
		    (match.trust == RT_CACHED_UNVERIFIED && (!(mode & UNVERIFIED) || !(mode & HASHED))) ||
		    (match.trust == RT_CACHED_MISMATCH && (!(mode & MISMATCH) || mode & HASHED)))
			abort();
	}
	rt_error_free(err);
	rt_cached_match_deinit(&match);
}

static void keep(unsigned file, struct rt_bytes text)
{
	if (ftruncate(home.probes[file], 0) ||
	    (text.size && pwrite(home.probes[file], text.data, text.size, 0) != (ssize_t)text.size))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_bytes input;
	_cleanup_free_ char *text = NULL, *group = NULL, *event = NULL;
	struct rt_probes probes = { 0 };
	struct rt_request r;
	const uint8_t *split;
	struct rt_error *err;

	if (!size)
		return 0;
	make_home();
	input = rt_bytes_make(data + 1, size - 1);
	text = take_text(&input);
	group = take_text(&input);
	event = take_text(&input);
	split = input.size ? memchr(input.data, 1, input.size) : NULL;
	keep(0, rt_bytes_make(input.data, split ? (size_t)(split - input.data) : input.size));
	keep(1,
	     split ? rt_bytes_make(split + 1, input.size - (size_t)(split + 1 - input.data)) : (struct rt_bytes){ 0 });
	check_match(data[0], data[0] & NO_GROUP ? NULL : group, event);
	(void)rt_cached_marked(group);
	if (rt_probes_parse(input, &probes))
		abort();
	for (size_t i = 0; i < probes.entries.len; i++)
		for (size_t n = 0; n < probes.entries.data[i].lines.len; n++)
			check_line(probes.entries.data[i].lines.data[n]);
	err = rt_request_parse(text, &r);
	if (!err)
		check_set(&probes, &r);
	rt_error_free(err);
	rt_request_deinit(&r);
	rt_probes_deinit(&probes);
	return 0;
}
