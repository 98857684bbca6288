/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any bytes as the probes file of a cache entry: what was read is written and read again to the same entries; and an
 * entry of any text is set and removed there. Up to the first byte 0 is its spec, up to the second its lines, the rest
 * is the file. The lines are exported, too: what was taken apart says the same again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cache/probes.h"
#include "probe/remote.h"
#include "remote_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES = 4 };

/* An entry to set; its strings are owned. */
struct wish {
	bool sdt;
	char *spec;
	char *lines[LINES];
	size_t count;
};

/* Takes the bytes up to the next 0, and it, off input. NULL: out of memory. */
static char *take_string(struct rt_bytes *input)
{
	const uint8_t *end = input->size ? memchr(input->data, 0, input->size) : NULL;
	size_t len = end ? (size_t)(end - input->data) : input->size, used = len + (end != NULL);
	char *text = calloc(1, len + 1);

	if (text && len)
		memcpy(text, input->data, len);
	*input = rt_bytes_make(used ? input->data + used : input->data, input->size - used);
	return text;
}

/* Lines end at a byte 1: a newline in one must be refused. */
static void make_wish(struct rt_bytes *input, struct wish *wish)
{
	_cleanup_free_ char *lines = NULL;
	char *rest, *line;

	wish->sdt = input->size & 1;
	wish->spec = take_string(input);
	rest = lines = take_string(input);
	while (wish->spec && rest && *rest && wish->count < LINES && (line = strsep(&rest, "\1")))
		wish->lines[wish->count++] = strdup(line);
}

static char *written(const struct rt_probes *probes)
{
	struct rt_sink sink;
	char *text;

	rt_sink_init_memory(&sink);
	rt_probes_write(probes, &sink);
	if (rt_sink_end(&sink))
		abort();
	text = strdup(sink.buffer ? sink.buffer : "");
	rt_sink_deinit(&sink);
	if (!text)
		abort();
	return text;
}

static void same(const struct rt_probes *a, const struct rt_probes *b)
{
	if (a->entries.len != b->entries.len)
		abort();
	for (size_t i = 0; i < a->entries.len; i++) {
		const struct rt_probes_entry *x = &a->entries.data[i], *y = &b->entries.data[i];

		if (x->sdt != y->sdt || strcmp(x->spec, y->spec) != 0 || x->lines.len != y->lines.len)
			abort();
		for (size_t n = 0; n < x->lines.len; n++)
			if (strcmp(x->lines.data[n], y->lines.data[n]) != 0 ||
			    (n && strcmp(x->lines.data[n - 1], x->lines.data[n]) >= 0))
				abort();
		if (!rt_probes_find(a, x->sdt, x->spec))
			abort();
	}
}

/* Written and read again: the same entries, nothing dropped, nothing that perf could not read. */
static void round_trip(const struct rt_probes *probes)
{
	_cleanup_free_ char *text = written(probes);
	struct rt_probes again = { 0 };

	for (const char *at = text, *end; *at; at = end + 1) {
		end = strchr(at, '\n');
		if (!end || end == at || end - at > RT_PROBES_LINE_MAX || (at == text && *at != '%' && *at != '#'))
			abort();
	}
	if (rt_probes_parse(rt_bytes_make(text, strlen(text)), &again))
		abort();
	if (again.dropped)
		abort();
	same(probes, &again);
	rt_probes_deinit(&again);
}

static void check_set(struct rt_probes *probes, const struct wish *wish)
{
	_cleanup_free_ char *before = written(probes);
	struct rt_error *err =
		rt_probes_set(probes, wish->sdt, wish->spec, (const char *const *)wish->lines, wish->count);
	const struct rt_probes_entry *entry = rt_probes_find(probes, wish->sdt, wish->spec);

	if (err) {
		_cleanup_free_ char *after = written(probes);

		if (err->code != RT_E_LIMIT || strcmp(before, after) != 0)
			abort();
		rt_error_free(err);
		return;
	}
	/* the last one, and the only one of its name */
	if (!entry || entry != &probes->entries.data[probes->entries.len - 1] || entry->lines.len > wish->count)
		abort();
	for (size_t i = 0; i < wish->count; i++) {
		size_t n = 0;

		while (n < entry->lines.len && strcmp(entry->lines.data[n], wish->lines[i]) != 0)
			n++;
		if (n == entry->lines.len)
			abort();
	}
}

/* What was taken apart for another host says the same again. */
static void export_all(const struct rt_probes *probes)
{
	struct rt_remote remote = { 0 }, again = { 0 };
	_cleanup_free_ char *text = NULL, *copy = NULL, *same_text = NULL;
	struct rt_sink script;
	char *rest, *line;

	for (size_t i = 0; i < probes->entries.len; i++)
		for (size_t n = 0; n < probes->entries.data[i].lines.len; n++)
			rt_error_free(rt_remote_add(&remote, probes->entries.data[i].lines.data[n], NULL));
	text = remote_lines(&remote);
	rest = copy = strdup(text);
	while (rest && (line = strsep(&rest, "\n")))
		if (*line && rt_remote_add(&again, line, NULL))
			abort();
	same_text = remote_lines(&again);
	if (strcmp(text, same_text) != 0)
		abort();
	rt_sink_init_memory(&script);
	rt_remote_script(&remote, "/x", "00", &script);
	if (rt_sink_end(&script))
		abort();
	rt_sink_deinit(&script);
	rt_remote_deinit(&remote);
	rt_remote_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_bytes input = rt_bytes_make(data, size);
	struct rt_probes probes = { 0 };
	struct wish wish = { 0 };

	make_wish(&input, &wish);
	if (rt_probes_parse(input, &probes))
		abort();
	round_trip(&probes);
	export_all(&probes);
	if (wish.spec) {
		check_set(&probes, &wish);
		round_trip(&probes);
		(void)rt_probes_remove(&probes, wish.sdt, wish.spec);
		if (rt_probes_find(&probes, wish.sdt, wish.spec) || rt_probes_remove(&probes, wish.sdt, wish.spec))
			abort();
		round_trip(&probes);
	}
	rt_probes_deinit(&probes);
	free(wish.spec);
	for (size_t i = 0; i < wish.count; i++)
		free(wish.lines[i]);
	return 0;
}
