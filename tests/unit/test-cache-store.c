/* SPDX-License-Identifier: GPL-2.0-only */
/* The build-id cache: what perf sees of it, and what a hostile tree or path cannot do. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cache/cache.h"
#include "test.h"
#include "workdir.h"

static const uint8_t id[20] = { 0xab, 0xcd, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17 };
#define HEX "abcdef0102030405060708090a0b0c0d0e0f1011"

static struct rt_bytes text(const char *s)
{
	return rt_bytes_make(s, strlen(s));
}

static void expect(const struct rt_cache *cache, size_t id_size, enum rt_cache_part part, const char *want)
{
	char got[64] = "";
	int fd;

	assert_ok(rt_cache_get(cache, id, id_size, part, &fd));
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, want);
}

TEST(put_and_get)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	_cleanup_free_ char *origin = NULL;
	struct workdir w;
	bool made;
	int fd;

	workdir_make(&w);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	assert_code(rt_cache_get(cache, id, 20, RT_CACHE_ELF, &fd), RT_E_NOT_FOUND);
	assert_ok(rt_cache_put(cache, id, 20, "/opt/a program", RT_CACHE_ELF, text("first"), &made));
	assert_true(made);
	/* what lies under an id never changes; its other parts stay beside it wherever they were seen */
	assert_ok(rt_cache_put(cache, id, 20, "/other/copy", RT_CACHE_ELF, text("second"), &made));
	assert_false(made);
	assert_ok(rt_cache_put(cache, id, 20, "/other/copy", RT_CACHE_DEBUG, text("debug"), &made));
	assert_true(made);
	expect(cache, 20, RT_CACHE_ELF, "first");
	expect(cache, 20, RT_CACHE_DEBUG, "debug");
	assert_ok(rt_cache_origin(cache, id, 20, &origin));
	assert_string_equal(origin, "/opt/a program");
	workdir_run(&w, "test \"$(readlink cache/.build-id/ab/%s)\" = '../../opt/a program/%s'", &HEX[2], HEX);
	workdir_run(&w, "test -f 'cache/opt/a program/%s/debug' && ! test -e cache/other", HEX);
	/* ids of other lengths: lld's 8 bytes, a long hash */
	assert_ok(rt_cache_put(cache, id, 8, "/opt/short", RT_CACHE_ELF, text("short"), NULL));
	expect(cache, 8, RT_CACHE_ELF, "short");
	assert_code(rt_cache_put(cache, id, 0, "/opt/none", RT_CACHE_ELF, text("x"), NULL), RT_E_FORMAT);
	/* the link of one byte would have no name: it is refused before anything is made */
	assert_ok(rt_cache_put(cache, id, 2, "/opt/two", RT_CACHE_ELF, text("two"), NULL));
	expect(cache, 2, RT_CACHE_ELF, "two");
	assert_code(rt_cache_put(cache, id, 1, "/opt/one", RT_CACHE_ELF, text("x"), NULL), RT_E_FORMAT);
	assert_code(rt_cache_put(cache, id, 65, "/opt/long", RT_CACHE_ELF, text("x"), NULL), RT_E_FORMAT);
	assert_code(rt_cache_get(cache, id, 1, RT_CACHE_ELF, &fd), RT_E_NOT_FOUND);
	assert_code(rt_cache_remove(cache, id, 1), RT_E_NOT_FOUND);
	workdir_run(&w, "! test -e cache/opt/one && ! test -e cache/opt/long");
	workdir_remove(&w);
}

/* The kernel gives up on a ".." while anything is renamed anywhere: each link of the cache has two. */
TEST(found_while_others_rename)
{
	struct rt_cache *cache;
	struct workdir w;
	int fd, ready[2];
	pid_t child;
	char byte;

	workdir_make(&w);
	assert_int_equal(pipe(ready), 0);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	assert_ok(rt_cache_put(cache, id, 20, "/opt/app", RT_CACHE_ELF, text("app"), NULL));
	workdir_write(&w, "a", "");
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		char a[4096], b[4096];

		snprintf(a, sizeof(a), "%s", workdir_path(&w, "a"));
		snprintf(b, sizeof(b), "%s", workdir_path(&w, "b"));
		for (unsigned i = 0;; i++)
			if (rename(a, b) || rename(b, a) || (i == 1000 && write(ready[1], "", 1) != 1))
				_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	for (unsigned i = 0; i < 3000; i++) {
		assert_ok(rt_cache_get(cache, id, 20, RT_CACHE_ELF, &fd));
		close(fd);
	}
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	rt_cache_close(cache);
	workdir_remove(&w);
}

TEST(perf_finds_it)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	_cleanup_close_ int fd = -1;
	struct workdir w;
	static char bytes[1 << 20];
	ssize_t n;

	workdir_make(&w);
	workdir_run(&w, "echo 'int main(void){return 0;}' >a.c && gcc -Wl,--build-id=0x%s a.c -o a.out", HEX);
	fd = open(workdir_path(&w, "a.out"), O_RDONLY);
	n = read(fd, bytes, sizeof(bytes));
	assert_true(n > 0);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	assert_ok(rt_cache_put(cache, id, 20, workdir_path(&w, "a.out"), RT_CACHE_ELF, rt_bytes_make(bytes, (size_t)n),
			       NULL));
	/* perf lists what is still where it was */
	workdir_run(&w, "perf --buildid-dir $PWD/cache buildid-cache -l | grep -q \"%s $PWD/a.out\"", HEX);
	/* and we find what perf keeps */
	workdir_run(&w, "rm -rf cache && perf --buildid-dir $PWD/cache buildid-cache -a a.out 2>/dev/null");
	rt_cache_close(rt_take(cache));
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), false, &cache));
	fd = (close(rt_take_fd(&fd)), -1);
	assert_ok(rt_cache_get(cache, id, 20, RT_CACHE_ELF, &fd));
	workdir_remove(&w);
}

static int open_file(struct workdir *w, const char *name)
{
	int fd = open(workdir_path(w, name), O_RDONLY);

	assert_true(fd >= 0);
	return fd;
}

TEST(put_open_file)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	_cleanup_close_ int fd = -1, other = -1;
	struct workdir w;
	bool made;

	workdir_make(&w);
	workdir_run(&w,
		    "echo 'int main(void){return 0;}' >a.c && gcc -g -Wl,--build-id=0x%s a.c -o a.out && "
		    "gcc -g -O1 -Wl,--build-id=0x00%s a.c -o b.out && objcopy --only-keep-debug a.out a.debug",
		    HEX, &HEX[2]);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	fd = open_file(&w, "a.out");
	other = open_file(&w, "b.out");
	/* another file never lands under the id, and leaves nothing behind */
	assert_false(rt_cache_holds(cache, id, 20));
	assert_code(rt_cache_put_fd(cache, id, 20, "/opt/a", RT_CACHE_ELF, other, NULL), RT_E_BUILD_ID);
	workdir_run(&w, "test -z \"$(find cache -type f -o -type l)\" && ! test -e cache/opt");
	/* wherever the fd stands */
	assert_true(lseek(fd, 100, SEEK_SET) == 100);
	assert_ok(rt_cache_put_fd(cache, id, 20, "/opt/a", RT_CACHE_ELF, fd, &made));
	assert_true(made && rt_cache_holds(cache, id, 20));
	workdir_run(&w, "cmp a.out cache/.build-id/ab/%s/elf && test -x cache/opt/a/%s/elf", &HEX[2], HEX);
	assert_ok(rt_cache_put_fd(cache, id, 20, "/opt/a", RT_CACHE_ELF, fd, &made));
	assert_false(made);
	/* what an older tool linked and somebody overwrote is replaced */
	workdir_run(&w, "cp b.out cache/opt/a/%s/elf", HEX);
	assert_false(rt_cache_holds(cache, id, 20));
	assert_ok(rt_cache_put_fd(cache, id, 20, "/opt/a", RT_CACHE_ELF, fd, &made));
	assert_true(made);
	workdir_run(&w, "cmp a.out cache/.build-id/ab/%s/elf && test -z \"$(find cache -name '*.tmp')\"", &HEX[2]);
	/* its debug file, and one of another program */
	assert_code(rt_cache_put_fd(cache, id, 20, "/opt/a", RT_CACHE_DEBUG, other, NULL), RT_E_BUILD_ID);
	close(other);
	other = open_file(&w, "a.debug");
	assert_ok(rt_cache_put_fd(cache, id, 20, "/opt/a", RT_CACHE_DEBUG, other, NULL));
	workdir_run(&w, "cmp a.debug cache/.build-id/ab/%s/debug", &HEX[2]);
	workdir_remove(&w);
}

TEST(stash)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	_cleanup_close_ int fd = -1, copy = -1;
	struct workdir w;

	workdir_make(&w);
	workdir_run(&w,
		    "echo 'int main(void){return 0;}' >a.c && gcc -Wl,--build-id=0x%s a.c -o a.out && cp a.out b.out",
		    HEX);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	fd = open_file(&w, "a.out");
	assert_ok(rt_cache_stash(cache, fd, &copy));
	workdir_run(&w, "test -z \"$(ls -A cache)\" && : >a.out");
	assert_code(rt_cache_put_fd(cache, id, 20, "/opt/a", RT_CACHE_ELF, fd, NULL), RT_E_BUILD_ID);
	assert_ok(rt_cache_put_fd(cache, id, 20, "/opt/a", RT_CACHE_ELF, copy, NULL));
	workdir_run(&w, "cmp b.out cache/opt/a/%s/elf", HEX);
	/* from another file system, where the kernel does not copy by itself */
	workdir_run(&w, "rm -r cache/opt cache/.build-id");
	close(rt_take_fd(&copy));
	copy = memfd_create("binary", MFD_CLOEXEC);
	workdir_run(&w, "cat b.out >/proc/%d/fd/%d", getpid(), copy);
	assert_ok(rt_cache_put_fd(cache, id, 20, "/memfd:binary", RT_CACHE_ELF, copy, NULL));
	workdir_run(&w, "cmp b.out cache/.build-id/ab/%s/elf", &HEX[2]);
	workdir_remove(&w);
}

TEST(nothing_leads_outside)
{
	static const char *const paths[] = { "/opt/../../etc/x", "opt/x", "/..", "/./x", "", "/a/.." };
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	struct workdir w;
	int fd;

	workdir_make(&w);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		assert_code(rt_cache_put(cache, id, 20, paths[i], RT_CACHE_ELF, text("x"), NULL), RT_E_FORMAT);
	/* a folder that somebody made a link of */
	workdir_run(&w, "mkdir outside && ln -s ../outside cache/opt");
	assert_code(rt_cache_put(cache, id, 20, "/opt/x", RT_CACHE_ELF, text("x"), NULL), RT_E_UNWRITABLE);
	workdir_run(&w, "test -z \"$(ls outside)\"");
	/* a link of an id that leads out */
	workdir_run(&w,
		    "mkdir -p outside/x cache/.build-id/ab && echo secret >outside/x/elf && "
		    "ln -s ../../../outside/x cache/.build-id/ab/%s",
		    &HEX[2]);
	assert_code(rt_cache_get(cache, id, 20, RT_CACHE_ELF, &fd), RT_E_UNREADABLE);
	workdir_remove(&w);
}

static void expect_paths(const struct rt_cache *cache, const char *want)
{
	struct rt_cache_item *items;
	char got[4096] = "";
	size_t count;

	assert_ok(rt_cache_list(cache, &items, &count));
	for (size_t i = 0; i < count; i++) {
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s", items[i].path);
		for (size_t k = 0; k < items[i].others.len; k++)
			snprintf(got + strlen(got), sizeof(got) - strlen(got), " %s", items[i].others.data[k]);
	}
	rt_cache_items_free(items, count);
	assert_string_equal(got, want);
}

TEST(several_paths)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	struct workdir w;

	workdir_make(&w);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	for (const char *const *path = (const char *const[]){ "/opt/a b", "/b", "/opt/a b", "/b", "/opt/c", NULL };
	     *path; path++)
		assert_ok(rt_cache_put(cache, id, 20, *path, RT_CACHE_ELF, text("one"), NULL));
	expect_paths(cache, "/opt/a b /b /opt/c");
	/* a file with such a name would be two lines */
	assert_ok(rt_cache_put(cache, id, 20, "/x\n/y", RT_CACHE_ELF, text("one"), NULL));
	expect_paths(cache, "/opt/a b /b /opt/c");
	assert_code(rt_cache_remove_path(cache, id, 20, "/opt"), RT_E_NOT_FOUND);
	assert_ok(rt_cache_remove_path(cache, id, 20, "/opt/a b"));
	expect_paths(cache, "/b /opt/c");
	workdir_run(&w, "test \"$(readlink cache/.build-id/ab/%s)\" = ../../b/%s && ! test -e cache/opt", &HEX[2], HEX);
	assert_ok(rt_cache_remove_path(cache, id, 20, "/opt/c"));
	expect_paths(cache, "/b");
	/* the last is the id's own */
	assert_code(rt_cache_remove_path(cache, id, 20, "/b"), RT_E_NOT_FOUND);
	expect(cache, 20, RT_CACHE_ELF, "one");
	workdir_run(&w,
		    "test \"$(find cache -type f -o -type l | sort | tr '\\n' ' ')\" = "
		    "'cache/.build-id/ab/%s cache/b/%s/elf '",
		    &HEX[2], HEX);
	workdir_remove(&w);
}

/* Lines that somebody wrote into our file, and what a move would have to pass. */
TEST(several_paths_lead_nowhere_else)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	struct workdir w;

	workdir_make(&w);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	assert_ok(rt_cache_put(cache, id, 20, "/opt/a", RT_CACHE_ELF, text("one"), NULL));
	workdir_run(&w,
		    "mkdir outside && printf '/../outside\\n\\nno path\\n/a/../../outside/x\\n' >cache/opt/a/%s/paths",
		    HEX);
	expect_paths(cache, "/opt/a");
	assert_code(rt_cache_remove_path(cache, id, 20, "/opt/a"), RT_E_NOT_FOUND);
	/* a link in the way of the move, at either end */
	assert_ok(rt_cache_put(cache, id, 20, "/to/b", RT_CACHE_ELF, text("one"), NULL));
	workdir_run(&w, "ln -s ../outside cache/to");
	assert_code(rt_cache_remove_path(cache, id, 20, "/opt/a"), RT_E_UNWRITABLE);
	expect(cache, 20, RT_CACHE_ELF, "one");
	expect_paths(cache, "/opt/a /to/b");
	workdir_run(&w, "rm cache/to && mv cache/opt cache/real && ln -s real cache/opt");
	assert_code(rt_cache_remove_path(cache, id, 20, "/opt/a"), RT_E_UNWRITABLE);
	expect(cache, 20, RT_CACHE_ELF, "one");
	workdir_run(&w, "test -z \"$(ls outside)\" && test -L cache/opt");
	/* nor is the list itself written through one */
	workdir_run(&w,
		    "rm cache/opt && mv cache/real cache/opt && cd cache/opt/a/%s && rm paths && ln -s "
		    "../../../../outside/paths paths",
		    HEX);
	assert_ok(rt_cache_put(cache, id, 20, "/c", RT_CACHE_ELF, text("one"), NULL));
	expect_paths(cache, "/opt/a /c");
	workdir_run(&w, "test -z \"$(ls outside)\"");
	workdir_remove(&w);
}

/* Readers take no lock: while an entry moves it is found all the same. */
TEST(found_while_it_moves)
{
	static const char *const paths[] = { "/opt/a", "/opt/deep/er/b" };
	struct rt_cache *cache;
	struct workdir w;
	pid_t child;
	int fd, status;

	workdir_make(&w);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	assert_ok(rt_cache_put(cache, id, 20, paths[0], RT_CACHE_ELF, text("app"), NULL));
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		bool fine = true;

		for (unsigned i = 1; i <= 500 && fine; i++)
			fine = !rt_cache_put(cache, id, 20, paths[i & 1], RT_CACHE_ELF, text("app"), NULL) &&
			       !rt_cache_remove_path(cache, id, 20, paths[!(i & 1)]);
		_exit(!fine);
	}
	do {
		assert_ok(rt_cache_get(cache, id, 20, RT_CACHE_ELF, &fd));
		close(fd);
	} while (!waitpid(child, &status, WNOHANG));
	assert_int_equal(status, 0);
	expect_paths(cache, paths[0]);
	rt_cache_close(cache);
	workdir_remove(&w);
}

TEST(missing_root_is_empty)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	struct workdir w;
	int fd;

	workdir_make(&w);
	assert_ok(rt_cache_open(workdir_path(&w, "none"), false, &cache));
	assert_code(rt_cache_get(cache, id, 20, RT_CACHE_ELF, &fd), RT_E_NOT_FOUND);
	assert_code(rt_cache_put(cache, id, 20, "/x", RT_CACHE_ELF, text("x"), NULL), RT_E_UNWRITABLE);
	workdir_run(&w, "! test -e none");
	workdir_remove(&w);
}

TEST(many_writers_at_once)
{
	_cleanup_(rt_cache_closep) struct rt_cache *cache = NULL;
	struct workdir w;
	int status;

	workdir_make(&w);
	assert_ok(rt_cache_open(workdir_path(&w, "cache"), true, &cache));
	for (int i = 0; i < 12; i++) {
		if (!fork()) {
			uint8_t own[20] = { (uint8_t)i };
			bool ok = true;

			for (int k = 0; k < 50; k++) {
				own[1] = (uint8_t)k;
				ok &= !rt_cache_put(cache, own, 20, "/opt/x", RT_CACHE_ELF, text("own"), NULL);
				ok &= !rt_cache_put(cache, id, 20, "/opt/x", RT_CACHE_ELF, text("shared"), NULL);
			}
			_exit(!ok);
		}
	}
	for (int i = 0; i < 12; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	expect(cache, 20, RT_CACHE_ELF, "shared");
	workdir_run(&w, "test $(find cache/opt -name elf | wc -l) = 601 && test -z \"$(find cache -name '*.tmp')\"");
	workdir_remove(&w);
}

TEST_MAIN();
