/* SPDX-License-Identifier: GPL-2.0-only */
/* What a build-id cache holds, whether it is sound, and taking entries out of it; find(1) and readlink(1) say the
 * truth. */
#include <fcntl.h>
#include <sys/stat.h>

#include "cache/cache.h"
#include "workdir.h"

static const uint8_t id[20] = { 0xab, 0xcd, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17 };
#define HEX "abcdef0102030405060708090a0b0c0d0e0f1011"
#define REST "cdef0102030405060708090a0b0c0d0e0f1011"

/* A folder with a cache in it, and what was listed last. */
struct rig {
	struct workdir w;
	struct rt_cache *cache;
	struct rt_cache_item *items;
	size_t count;
};

static void rig_open(struct rig *rig)
{
	workdir_make(&rig->w);
	assert_ok(rt_cache_open(workdir_path(&rig->w, "cache"), true, &rig->cache));
}

static void rig_close(struct rig *rig)
{
	rt_cache_items_free(rig->items, rig->count);
	rt_cache_close(rig->cache);
	workdir_remove(&rig->w);
}

static void list(struct rig *rig, size_t want)
{
	rt_cache_items_free(rig->items, rig->count);
	rig->items = NULL;
	rig->count = 0;
	assert_ok(rt_cache_list(rig->cache, &rig->items, &rig->count));
	assert_int_equal(rig->count, want);
}

static const struct rt_cache_item *item_of(const struct rig *rig, size_t id_size)
{
	for (size_t i = 0; i < rig->count; i++)
		if (rig->items[i].id_size == id_size && !memcmp(rig->items[i].id, id, id_size))
			return &rig->items[i];
	fail_msg("no id of %zu bytes is listed", id_size);
	return NULL;
}

static void expect_verdict(const struct rig *rig, size_t id_size, const char *want)
{
	const char *got = rt_cache_check(rig->cache, item_of(rig, id_size));

	if (!want)
		assert_null(got);
	else if (!got || strcmp(got, want) != 0)
		fail_msg("%zu bytes of id: '%s', not '%s'", id_size, got ? got : "sound", want);
}

static void put(struct rig *rig, size_t id_size, const char *path, enum rt_cache_part part, const char *bytes)
{
	assert_ok(rt_cache_put(rig->cache, id, id_size, path, part, rt_bytes_make(bytes, strlen(bytes)), NULL));
}

/* A program that has the first id_size bytes of the id, put into the cache. */
static void put_program(struct rig *rig, size_t id_size, const char *path)
{
	_cleanup_close_ int fd = -1;

	workdir_run(&rig->w, "echo 'int main(void){return 0;}' >a.c && gcc -g -Wl,--build-id=0x%.*s a.c -o a.out",
		    (int)(2 * id_size), HEX);
	fd = open(workdir_path(&rig->w, "a.out"), O_RDONLY);
	assert_true(fd >= 0);
	assert_ok(rt_cache_put_fd(rig->cache, id, id_size, path, RT_CACHE_ELF, fd, NULL));
}

TEST(what_it_holds)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	const struct rt_cache_item *item;
	struct stat st;

	rig_open(&rig);
	list(&rig, 0);
	put_program(&rig, 8, "/opt/short one");
	put_program(&rig, 20, "/opt/long");
	put(&rig, 20, "/opt/long", RT_CACHE_PROBES, "%sdt_a:b=b\n");
	put(&rig, 3, "[kernel.kallsyms]", RT_CACHE_KALLSYMS, "0 T x\n");
	workdir_run(&rig.w, "touch -d @4000000000 cache/opt/long/%s/probes", HEX);
	list(&rig, 3);
	item = item_of(&rig, 8);
	assert_string_equal(item->path, "/opt/short one");
	assert_true(item->has[RT_CACHE_ELF]);
	assert_false(item->has[RT_CACHE_DEBUG] || item->has[RT_CACHE_PROBES] || item->has[RT_CACHE_KALLSYMS]);
	item = item_of(&rig, 20);
	assert_string_equal(item->path, "/opt/long");
	assert_true(item->has[RT_CACHE_ELF] && item->has[RT_CACHE_PROBES] && !item->has[RT_CACHE_DEBUG]);
	assert_int_equal(stat(workdir_path(&rig.w, "cache/opt/long/" HEX "/elf"), &st), 0);
	assert_int_equal(item->bytes, st.st_size + 11);
	assert_int_equal(item->used_s, 4000000000);
	item = item_of(&rig, 3);
	assert_string_equal(item->path, "[kernel.kallsyms]");
	assert_int_equal(item->bytes, 6);
	expect_verdict(&rig, 8, NULL);
	expect_verdict(&rig, 20, NULL);
	expect_verdict(&rig, 3, NULL);
}

TEST(foreign_names_are_no_entries)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };

	rig_open(&rig);
	put(&rig, 20, "/opt/x", RT_CACHE_PROBES, "#g:e=f\n");
	/* too short, too long, odd, not hexadecimal, capitals, a file for a folder, hidden */
	workdir_run(&rig.w,
		    "cd cache/.build-id && mkdir a abc zz AB .hidden && touch 12 && ln -s x ab/123 && ln -s x ab/xy && "
		    "ln -s x ab/.12 && ln -s x ab/EF && ln -s x zz/12 && ln -s x AB/12 && ln -s x a/12 && "
		    "ln -s x abc/12 && ln -s x ab/$(printf %%0128d 0) && mkdir ../.build-id.old && touch ab/README");
	list(&rig, 1);
	assert_int_equal(rig.items[0].id_size, 20);
	/* the longest id is one */
	workdir_run(&rig.w, "ln -s x cache/.build-id/ab/$(printf %%0126d 0)");
	list(&rig, 2);
	assert_int_equal(rig.items[0].id_size + rig.items[1].id_size, 84);
}

TEST(a_link_that_leads_nowhere)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };

	rig_open(&rig);
	put(&rig, 20, "/opt/x", RT_CACHE_PROBES, "#g:e=f\n");
	workdir_run(&rig.w, "rm -r cache/opt");
	list(&rig, 1);
	assert_null(rig.items[0].path);
	assert_int_equal(rig.items[0].bytes, 0);
	expect_verdict(&rig, 20, "its link leads nowhere");
	assert_ok(rt_cache_remove(rig.cache, id, 20));
	workdir_run(&rig.w, "! test -L cache/.build-id/ab/%s", REST);
	assert_code(rt_cache_remove(rig.cache, id, 20), RT_E_NOT_FOUND);
	/* out of the cache: neither listed with what is there, nor emptied */
	workdir_run(&rig.w,
		    "mkdir -p outside/%s cache/.build-id/ab && echo secret >outside/%s/elf && "
		    "ln -s ../../../outside/%s cache/.build-id/ab/%s",
		    HEX, HEX, HEX, REST);
	list(&rig, 1);
	assert_null(rig.items[0].path);
	assert_false(rig.items[0].has[RT_CACHE_ELF]);
	expect_verdict(&rig, 20, "its link leads nowhere");
	assert_ok(rt_cache_remove(rig.cache, id, 20));
	workdir_run(&rig.w, "test -f outside/%s/elf && ! test -L cache/.build-id/ab/%s", HEX, REST);
}

TEST(files_that_changed)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };

	rig_open(&rig);
	put_program(&rig, 8, "/opt/short");
	put_program(&rig, 20, "/opt/long");
	/* the eight bytes are the first of the twenty: a comparison of less than all would take it */
	workdir_run(&rig.w,
		    "cp cache/opt/short/%.16s/elf short && cp cache/opt/long/%s/elf long && "
		    "cat short >cache/opt/long/%s/elf && cat long >cache/opt/short/%.16s/elf",
		    HEX, HEX, HEX, HEX);
	list(&rig, 2);
	expect_verdict(&rig, 8, "its elf file has another build-id");
	expect_verdict(&rig, 20, "its elf file has another build-id");
	workdir_run(&rig.w,
		    "cat long >cache/opt/long/%s/elf && cp short cache/opt/long/%s/debug && "
		    "head -c 100 short >cache/opt/short/%.16s/elf",
		    HEX, HEX, HEX);
	list(&rig, 2);
	expect_verdict(&rig, 20, "its debug file has another build-id");
	expect_verdict(&rig, 8, "its elf file has another build-id");
	/* changed since it was listed */
	workdir_run(&rig.w, "cat short >cache/opt/short/%.16s/elf && cp long cache/opt/long/%s/debug", HEX, HEX);
	expect_verdict(&rig, 8, NULL);
	expect_verdict(&rig, 20, NULL);
	/* a link to a good file is no file of the entry */
	workdir_run(&rig.w,
		    "rm cache/opt/long/%s/* && ln -s ../../../../long cache/opt/long/%s/elf && "
		    "mkdir cache/opt/long/%s/debug",
		    HEX, HEX, HEX);
	list(&rig, 2);
	expect_verdict(&rig, 20, "it has no file");
}

/* What a removal finds in an entry is taken away as it is; where a link leads stays. */
TEST(removal_follows_no_link)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };

	rig_open(&rig);
	put(&rig, 20, "/opt/x", RT_CACHE_PROBES, "#g:e=f\n");
	put(&rig, 8, "/opt/y", RT_CACHE_PROBES, "#g:e=f\n");
	workdir_run(&rig.w,
		    "mkdir -p outside/deep cache/opt/x/%s/kcore/sub && echo keep >outside/file && "
		    "echo keep >outside/deep/file && cd cache/opt/x/%s && ln -s $OLDPWD/outside/file elf && "
		    "ln -s $OLDPWD/outside folder && ln -s ../../../../../outside relative && "
		    "ln -s $OLDPWD/outside kcore/folder && ln -s / kcore/sub/root && ln -s ../../y y && "
		    "ln -s . itself && mkfifo fifo && touch 'odd name' -- -rf kcore/kallsyms .hidden",
		    HEX, HEX);
	assert_ok(rt_cache_remove(rig.cache, id, 20));
	workdir_run(&rig.w,
		    "test \"$(cat outside/file outside/deep/file | sort -u)\" = keep && "
		    "! test -e cache/opt/x && ! test -L cache/.build-id/ab/%s && "
		    "test -f cache/opt/y/%.16s/probes",
		    REST, HEX);
	list(&rig, 1);
	expect_verdict(&rig, 8, NULL);
}

TEST(empty_folders_go)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };

	rig_open(&rig);
	put(&rig, 20, "/opt/deep/below/x", RT_CACHE_PROBES, "#g:e=f\n");
	put(&rig, 8, "/opt/deep/below/x", RT_CACHE_PROBES, "#g:e=f\n");
	put(&rig, 7, "/opt/other", RT_CACHE_PROBES, "#g:e=f\n");
	/* its folder is that of another version, too */
	assert_ok(rt_cache_remove(rig.cache, id, 20));
	workdir_run(&rig.w, "test \"$(ls cache/opt/deep/below/x)\" = %.16s", HEX);
	assert_ok(rt_cache_remove(rig.cache, id, 8));
	workdir_run(&rig.w, "test \"$(ls cache/opt)\" = other");
	assert_ok(rt_cache_remove(rig.cache, id, 7));
	workdir_run(&rig.w, "test -z \"$(find cache -mindepth 1 ! -path '*/.build-id*')\" && test -d cache");
	list(&rig, 0);
	/* what is gone comes again */
	put(&rig, 20, "/opt/deep/below/x", RT_CACHE_PROBES, "#g:e=f\n");
	list(&rig, 1);
	expect_verdict(&rig, 20, NULL);
}

/* Folders of folders that no tool makes: said, not walked for ever. */
TEST(what_is_too_deep_stays)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };

	rig_open(&rig);
	put(&rig, 20, "/opt/x", RT_CACHE_PROBES, "#g:e=f\n");
	workdir_run(&rig.w, "mkdir -p cache/opt/x/%s/1/2/3/4/5/6/7/8", HEX);
	assert_code(rt_cache_remove(rig.cache, id, 20), RT_E_UNWRITABLE);
	/* it is still there to be seen */
	list(&rig, 1);
}

TEST(no_cache)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	struct rt_cache_item *items = NULL;
	struct workdir w;
	size_t count = 1;

	workdir_make(&w);
	assert_ok(rt_cache_open(workdir_path(&w, "none"), false, &cache));
	assert_ok(rt_cache_list(cache, &items, &count));
	assert_int_equal(count, 0);
	assert_code(rt_cache_remove(cache, id, 20), RT_E_NOT_FOUND);
	rt_cache_items_free(items, count);
	workdir_remove(&w);
}

TEST_MAIN();
