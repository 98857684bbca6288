/* SPDX-License-Identifier: GPL-2.0-only */
/* Mapped files that somebody cuts. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "built.h"

enum { PAGE = 4096, PAGES = 16, SIZE = PAGES * PAGE + 100 };

static int file(const char *name)
{
	char *path = built_path(name), bytes[SIZE];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	free(path);
	return fd;
}

static size_t count(struct rt_bytes bytes, uint8_t what)
{
	const volatile uint8_t *data = bytes.data;
	size_t n = 0;

	for (size_t i = 0; i < bytes.size; i++)
		n += data[i] == what;
	return n;
}

/* How a child ends that does this. */
static int status_of(void (*what)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		/* cmocka has a handler of its own */
		signal(SIGBUS, SIG_DFL);
		what();
		_exit(7);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void read_cut(void)
{
	struct rt_bytes bytes;
	int fd = file("cut");

	assert_ok(rt_fs_map(fd, "cut", &bytes));
	assert_int_equal(ftruncate(fd, PAGE), 0);
	count(bytes, 0);
}

static void survive_and_read_cut(void)
{
	rt_fs_survive_cuts();
	read_cut();
}

/* Memory that is not of rt_fs_map() */
static void read_other(void)
{
	int fd = file("other");
	const volatile char *p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);

	rt_fs_survive_cuts();
	assert_int_equal(ftruncate(fd, 0), 0);
	(void)p[PAGE];
}

static void be_sent_one(void)
{
	rt_fs_survive_cuts();
	raise(SIGBUS);
}

TEST(other_bus_errors)
{
	int status;

	/* what happens without it: the test would notice if the machine did not */
	status = status_of(read_cut);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	status = status_of(survive_and_read_cut);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	status = status_of(read_other);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	status = status_of(be_sent_one);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

static void *count_zeroes(void *arg)
{
	const struct rt_bytes *bytes = arg;

	return (void *)(uintptr_t)count(*bytes, 0);
}

static void check_threads(void)
{
	for (unsigned round = 0; round < 50; round++) {
		pthread_t threads[4];
		struct rt_bytes bytes;
		void *zeroes;
		int fd = file("shared");

		assert_ok(rt_fs_map(fd, "shared", &bytes));
		assert_int_equal(ftruncate(fd, PAGE), 0);
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, count_zeroes, &bytes), 0);
		for (size_t i = 0; i < 4; i++) {
			assert_int_equal(pthread_join(threads[i], &zeroes), 0);
			assert_int_equal((uintptr_t)zeroes, SIZE - PAGE);
		}
		rt_fs_unmap(bytes);
		close(fd);
	}
}

/* What was cut first is known for the rest of the process: all of it in one test. */
TEST(cut)
{
	struct rt_bytes one, two, again;
	int fd = file("one"), other = file("two");
	struct rt_error *err;

	rt_fs_survive_cuts();
	assert_ok(rt_fs_map(fd, "the first", &one));
	assert_ok(rt_fs_map(other, "the second", &two));
	assert_int_equal(count(one, 'x'), SIZE);
	assert_ok(rt_fs_whole(one));
	assert_ok(rt_fs_all_whole());
	assert_int_equal(ftruncate(fd, 3 * PAGE), 0);
	/* nobody has read what is gone */
	assert_ok(rt_fs_whole(one));
	assert_int_equal(count(one, 'x'), 3 * PAGE);
	assert_int_equal(count(one, 0), SIZE - 3 * PAGE);
	err = rt_fs_whole(one);
	assert_non_null(err);
	assert_non_null(strstr(err->message, "the first became shorter"));
	rt_error_free(err);
	assert_ok(rt_fs_whole(two));
	assert_int_equal(count(two, 'x'), SIZE);
	/* what comes back is not what it was */
	assert_int_equal(ftruncate(fd, SIZE), 0);
	assert_int_equal(pwrite(fd, "yyyy", 4, 5 * PAGE), 4);
	assert_int_equal(count(one, 'y'), 0);
	/* in pieces, and another one meanwhile */
	assert_int_equal(ftruncate(other, 9 * PAGE), 0);
	assert_int_equal(two.data[12 * PAGE], 0);
	assert_int_equal(ftruncate(other, 0), 0);
	assert_int_equal(two.data[0], 0);
	assert_code(rt_fs_whole(two), RT_E_TRUNCATED);
	rt_fs_unmap(one);
	rt_fs_unmap(two);
	/* new files in their places */
	assert_ok(rt_fs_map(other = file("two"), "the third", &again));
	assert_ok(rt_fs_whole(again));
	assert_int_equal(count(again, 'x'), SIZE);
	rt_fs_unmap(again);
	check_threads();
	/* the process has read one that was cut, and this is the first */
	err = rt_fs_all_whole();
	assert_non_null(err);
	assert_non_null(strstr(err->message, "the first"));
	rt_error_free(err);
}

TEST_MAIN();
