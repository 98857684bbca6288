/* SPDX-License-Identifier: GPL-2.0-only */
/* The probes file: what perf writes is kept, what we write perf reads, broken text costs nobody's entries. */
#include <sys/wait.h>

#include "cache/cache.h"
#include "elf/image.h"
#include "test.h"
#include "workdir.h"

static struct rt_bytes bytes(const char *s)
{
	return rt_bytes_make(s, strlen(s));
}

static char *written(const struct rt_probes *p)
{
	struct rt_sink sink;
	char *text;

	rt_sink_init_memory(&sink);
	rt_probes_write(p, &sink);
	assert_ok(rt_sink_end(&sink));
	text = strdup(sink.buffer ?: "");
	rt_sink_deinit(&sink);
	return text;
}

static void assert_becomes(const char *text, const char *want, size_t dropped)
{
	struct rt_probes p;
	char *got;

	assert_ok(rt_probes_parse(bytes(text), &p));
	assert_int_equal(p.dropped, dropped);
	got = written(&p);
	assert_string_equal(got, want);
	free(got);
	rt_probes_deinit(&p);
}

#define SDT "%sdt_semp:hit=hit\np:sdt_semp/hit /opt/w/sem:0x10a9(0x3020) arg1=%bx:s32 arg2=%ax:u64\n"
#define USER "#mygrp:myget=obj_get refcnt=o->refcnt:u32\np:mygrp/myget /opt/w/obj:0x1210 refcnt=+0(%di):u32\n"

TEST(text_of_perf_stays)
{
	assert_becomes(SDT USER, SDT USER, 0);
	assert_becomes("", "", 0);
	/* unnamed entries of perf, an entry without lines, an unknown line below an entry */
	assert_becomes("#@obj.c:9\n#obj_new%return ret=$retval\nx:what is this\n",
		       "#@obj.c:9\n#obj_new%return ret=$retval\nx:what is this\n", 0);
}

TEST(broken_text)
{
	assert_becomes("\n\n" SDT "\n" USER "\n", SDT USER, 0);
	assert_becomes("stray\n" SDT, SDT, 1);
	/* without its last newline; cut in the middle of a line: perf finds out when it uses it */
	assert_becomes("#a=b\np:a/b /x:0x1", "#a=b\np:a/b /x:0x1\n", 0);
	assert_becomes("%\n" SDT, SDT, 1);
	{
		char text[6000], *at = text;

		at += sprintf(at, "#a=b\np:");
		memset(at, 'y', 5000);
		strcpy(at + 5000, "\n" USER);
		assert_becomes(text, "#a=b\n" USER, 1);
	}
}

TEST(set_and_remove)
{
	static const char *const lines[] = { "p:g/e /x:0x20", "p:g/e /x:0x10", "p:g/e /x:0x20" };
	static const char *const bad[] = { "p:g/e /x\ny:0x10" };
	struct rt_probes p;
	char *got;

	assert_ok(rt_probes_parse(bytes("#g:e=f\np:g/e /x:0x1\n" SDT), &p));
	assert_ok(rt_probes_set(&p, false, "g:e=f", lines, 3));
	/* the other kind of entry may have the same words */
	assert_false(rt_probes_remove(&p, true, "g:e=f"));
	assert_code(rt_probes_set(&p, false, "g:e=f", bad, 1), RT_E_LIMIT);
	assert_code(rt_probes_set(&p, false, "", lines, 1), RT_E_LIMIT);
	got = written(&p);
	assert_string_equal(got, SDT "#g:e=f\np:g/e /x:0x10\np:g/e /x:0x20\n");
	free(got);
	assert_true(rt_probes_remove(&p, true, "sdt_semp:hit=hit"));
	assert_null(rt_probes_find(&p, true, "sdt_semp:hit=hit"));
	assert_non_null(rt_probes_find(&p, false, "g:e=f"));
	rt_probes_deinit(&p);
}

/* A name that stands twice: what was set is what is found, and nothing of it comes back. */
TEST(names_twice)
{
	static const char *const lines[] = { "p:g/e /x:0x20" };
	const char *text = "#g:e=f\np:g/e /x:0x1\n" SDT "#g:e=f\np:g/e /x:0x2\n";
	const struct rt_probes_entry *found;
	struct rt_probes p;

	assert_ok(rt_probes_parse(bytes(text), &p));
	assert_ok(rt_probes_set(&p, false, "g:e=f", lines, 1));
	found = rt_probes_find(&p, false, "g:e=f");
	assert_string_equal(found->lines.data[0], lines[0]);
	assert_int_equal(p.entries.len, 2);
	rt_probes_deinit(&p);
	assert_ok(rt_probes_parse(bytes(text), &p));
	assert_true(rt_probes_remove(&p, false, "g:e=f"));
	assert_null(rt_probes_find(&p, false, "g:e=f"));
	rt_probes_deinit(&p);
}

static struct rt_error *add_one(struct rt_probes *p, void *arg)
{
	char spec[32], line[64];
	const char *lines[] = { line };

	snprintf(spec, sizeof(spec), "g:e%d=f%d", *(int *)arg, *(int *)arg);
	snprintf(line, sizeof(line), "p:g/e%d /opt/x:0x%x", *(int *)arg, 0x10 * (*(int *)arg + 1));
	return rt_probes_set(p, false, spec, lines, 1);
}

/* Twelve writers at once: perf keeps one of twelve entries, and loses the marker's. */
TEST(parallel_writers)
{
	enum { WRITERS = 12 };
	static const uint8_t id[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	struct rt_probes p;
	struct workdir w;
	int status, go[2];
	char byte;

	workdir_make(&w);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	assert_ok(rt_cache_put(cache, id, 8, "/opt/x", RT_CACHE_PROBES, bytes(SDT), NULL));
	assert_int_equal(pipe(go), 0);
	for (int i = 0; i < WRITERS; i++) {
		if (fork())
			continue;
		close(go[1]);
		/* all begin when the other end is closed */
		(void)!read(go[0], &byte, 1);
		_exit(rt_cache_change_probes(cache, id, 8, "/opt/x", add_one, &i) != NULL);
	}
	close(go[0]);
	close(go[1]);
	for (int i = 0; i < WRITERS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_ok(rt_cache_read_probes(cache, id, 8, &p));
	assert_int_equal(p.entries.len, WRITERS + 1);
	assert_non_null(rt_probes_find(&p, true, "sdt_semp:hit=hit"));
	rt_probes_deinit(&p);
	workdir_remove(&w);
}

static struct rt_error *not_today(struct rt_probes *p, void *arg)
{
	return rt_error_new(RT_E_LIMIT, "not today");
}

/* A change that fails leaves nothing behind; links that somebody planted are not followed. */
TEST(nothing_is_half_done)
{
	static const uint8_t id[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	struct workdir w;
	int one = 1;

	workdir_make(&w);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	assert_code(rt_cache_change_probes(cache, id, 8, "/opt/x", not_today, NULL), RT_E_LIMIT);
	workdir_run(&w, "test -z \"$(find cache -type l -o -type f)\" && ! test -e cache/opt");
	assert_ok(rt_cache_change_probes(cache, id, 8, "/opt/x", add_one, &one));
	workdir_run(&w, "echo precious > target && cd cache/opt/x/* && rm probes && ln -s %s/target probes", w.dir);
	assert_code(rt_cache_change_probes(cache, id, 8, "/opt/x", add_one, &one), RT_E_UNWRITABLE);
	workdir_run(&w, "test \"$(cat target)\" = precious");
	workdir_remove(&w);
}

/* perf lists what we wrote, and we read what perf added. */
TEST(with_perf)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	const char *program;
	struct rt_probes p;
	struct workdir w;
	int seven = 7;

	if (system("perf --version > /dev/null 2>&1"))
		skip();
	workdir_make(&w);
	workdir_run(&w, "echo 'int f(int a) { return a; } int main(void) { return f(0); }' > p.c && "
			"cc -g -O0 -Wl,--build-id=sha1 -o prog p.c");
	program = workdir_path(&w, "prog");
	workdir_run(&w, "perf --buildid-dir %s/cache buildid-cache -a %s/prog", w.dir, w.dir);
	assert_ok(rt_image_open(program, &image));
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), false, &cache));
	assert_ok(rt_cache_change_probes(cache, image->build_id, image->build_id_size, program, add_one, &seven));
	workdir_run(&w, "perf --buildid-dir %s/cache probe --cache -l 2>&1 | grep -q g:e7=f7", w.dir);
	workdir_run(&w,
		    "perf --buildid-dir %s/cache probe -q --cache -x %s/prog 'rtcache:mine=f a' && perf probe -q -d "
		    "rtcache:mine",
		    w.dir, w.dir);
	assert_ok(rt_cache_read_probes(cache, image->build_id, image->build_id_size, &p));
	assert_non_null(rt_probes_find(&p, false, "g:e7=f7"));
	assert_int_equal(p.entries.len, 2);
	rt_probes_deinit(&p);
	workdir_remove(&w);
}

TEST_MAIN();
