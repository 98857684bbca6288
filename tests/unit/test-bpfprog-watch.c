// SPDX-License-Identifier: GPL-2.0-only
/*
 * A child loads a BPF object and closes it at once, many times, and prints digests of
 * what the kernel itself told it about each program (tests/programs/bpf-loop.c). What the
 * watch kept must be the same, byte for byte, or be declared lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "bpfimage/bpfimage.h"
#include "bpfprog/bpfprog.h"
#include "event/blob.h"
#include "workdir.h"

/* What the loader printed of one program. */
struct told {
	uint32_t id, btf;
	uint64_t digest[9], btf_digest;
};
enum { JIT, XLATED, LINES, JITED_LINES, FUNC_INFO, KSYMS, LENS, TAGS, MAPS };

struct kept {
	uint32_t id;
	enum rt_blob what;
	uint8_t *data;
	size_t size;
};

struct keeper {
	struct rt_event_sink sink;
	struct rt_blob_join join;
	RT_VEC(struct kept) blobs;
};

static struct workdir work;

__attribute__((constructor)) static void need_root(void)
{
	if (!geteuid())
		return;
	fputs("watching BPF programs needs root\n", stderr);
	_exit(77);
}

static uint64_t digest(const void *data, size_t size)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < size; i++)
		h = (h ^ ((const uint8_t *)data)[i]) * 0x100000001b3ull;
	return h;
}

static struct rt_error *keep(struct rt_event_sink *sink, const struct rt_wire_head *record)
{
	struct keeper *k = (struct keeper *)(void *)sink;
	bool torn;

	assert_int_equal(record->kind, RT_WIRE_BLOB);
	assert_true(rt_record_valid(record, record->size));
	if (rt_blob_join(&k->join, (const void *)record, 1 << 28, &torn)) {
		struct kept blob = { k->join.id, k->join.what, malloc(k->join.size + 1), k->join.size };

		assert_non_null(blob.data);
		memcpy(blob.data, k->join.data, blob.size);
		assert_true(rt_vec_push(&k->blobs, blob));
	}
	assert_false(torn);
	return NULL;
}

static void keeper_deinit(struct keeper *k)
{
	for (size_t i = 0; i < k->blobs.len; i++)
		free(k->blobs.data[i].data);
	rt_vec_deinit(&k->blobs);
	rt_blob_join_deinit(&k->join);
}

/* The last blob of this kind; NULL: none. */
static const struct kept *find(const struct keeper *k, enum rt_blob what, uint32_t id)
{
	for (size_t i = k->blobs.len; i-- > 0;) {
		if (k->blobs.data[i].what == what && k->blobs.data[i].id == id)
			return &k->blobs.data[i];
	}
	return NULL;
}

static void compile(void)
{
	const char *root = getenv("RT_SOURCE_ROOT") ?: ".";

	if (work.dir[0])
		return;
	workdir_make(&work);
	workdir_run(&work, "clang-14 -target bpf -g -O2 -c %s/tests/programs/bpf-loop.bpf.c -o loop.o", root);
	workdir_run(&work, "gcc -O1 -w -pthread -D_GNU_SOURCE %s/tests/programs/bpf-loop.c -o loop -lbpf", root);
}

struct loader {
	pid_t pid;
	int go;
};

/* Starts the loader, which waits for loader_go(). */
static struct loader loader_start(const char *loads, const char *threads)
{
	struct loader l;
	int fds[2];
	char byte;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	l.pid = fork();
	if (!l.pid) {
		int out = open(workdir_path(&work, "told"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

		close(fds[1]);
		if (out < 0 || dup2(out, 1) < 0 || read(fds[0], &byte, 1) != 1)
			_exit(3);
		setenv("EVERY", "1", 1);
		execl(workdir_path(&work, "loop"), "loop", workdir_path(&work, "loop.o"), loads, threads, NULL);
		_exit(4);
	}
	close(fds[0]);
	l.go = fds[1];
	return l;
}

static void loader_go(struct loader *l)
{
	assert_int_equal(write(l->go, "g", 1), 1);
	close(l->go);
}

static bool loader_ended(struct loader *l, int flags)
{
	int status;

	if (waitpid(l->pid, &status, flags) <= 0)
		return false;
	assert_int_equal(status, 0);
	return true;
}

static bool read_told(FILE *file, struct told *t)
{
	char line[512];

	while (fgets(line, sizeof(line), file)) {
		unsigned long long d[10];

		if (sscanf(line, "prog %u %*s %llx %llx %llx %llx %llx %llx %llx %llx %llx %u %llx", &t->id, &d[0],
			   &d[1], &d[2], &d[3], &d[4], &d[5], &d[6], &d[7], &d[8], &t->btf, &d[9]) != 12)
			continue;
		for (size_t i = 0; i < 9; i++)
			t->digest[i] = d[i];
		t->btf_digest = d[9];
		return true;
	}
	return false;
}

/* The arrays of an entry of perf's feature, as the kernel's own digests name them. */
static void check_arrays(const struct kept *blob, const struct told *t)
{
	static const size_t element[] = { 1, 1, 4, 8, 4, 8, 16, 8, 8 };
	static const int which[] = { JIT, XLATED, MAPS, KSYMS, LENS, FUNC_INFO, LINES, JITED_LINES, TAGS };
	struct rt_cursor c = rt_cursor_make(rt_bytes_make(blob->data, blob->size), false);
	struct bpf_prog_info info = { 0 };
	struct rt_bytes part, array;
	uint32_t info_len = 0, data_len = 0;
	uint64_t arrays = 0;

	assert_true(rt_cursor_u32(&c, &info_len) && rt_cursor_u32(&c, &data_len) && rt_cursor_u64(&c, &arrays));
	assert_int_equal(info_len, 232);
	assert_true(rt_cursor_bytes(&c, info_len, &part));
	memcpy(&info, part.data, sizeof(info) < info_len ? sizeof(info) : info_len);
	assert_true(rt_cursor_bytes(&c, data_len, &part));
	const uint64_t offset[] = { info.jited_prog_insns, info.xlated_prog_insns, info.map_ids,
				    info.jited_ksyms,      info.jited_func_lens,   info.func_info,
				    info.line_info,        info.jited_line_info,   info.prog_tags };
	const uint32_t count[] = { info.jited_prog_len, info.xlated_prog_len,    info.nr_map_ids,
				   info.nr_jited_ksyms, info.nr_jited_func_lens, info.nr_func_info,
				   info.nr_line_info,   info.nr_jited_line_info, info.nr_prog_tags };
	assert_int_equal(arrays, 0x1ff);
	for (size_t i = 0; i < 9; i++) {
		assert_true(rt_bytes_sub(part, offset[i], count[i] * element[i], &array));
		if (digest(array.data, array.size) != t->digest[which[i]])
			fail_msg("program %u: array %zu is not what the kernel told", t->id, i);
	}
	assert_int_equal(info.nr_jited_ksyms, 4);
	assert_int_equal(info.btf_id, t->btf);
}

static void check_extra(const struct keeper *k, const struct told *t, const struct kept *prog, const struct kept *btf)
{
	const struct kept *extra = find(k, RT_BLOB_BPF_EXTRA, t->id);
	_cleanup_(rt_bpf_image_destroyp) struct rt_bpf_image *image = NULL;

	assert_non_null(extra);
	assert_ok(rt_bpf_image_decode(rt_bytes_make(prog->data, prog->size), rt_bytes_make(btf->data, btf->size), false,
				      &image));
	assert_ok(rt_bpf_extra_decode(rt_bytes_make(extra->data, extra->size), image));
	assert_string_equal(image->loader, "loop");
	assert_true(image->load_ns && image->load_ns < image->unload_ns);
	assert_string_equal(image->functions[0].name, "a_program_with_a_long_name");
	assert_int_equal(image->function_count, 4);
	assert_int_equal(image->map_count, 2);
	assert_true(!strcmp(image->map_names[0], "loop_counts") || !strcmp(image->map_names[1], "loop_counts"));
	assert_null(image->lost);
}

/* Compares with what the loader printed; returns how many were kept. lost: how many were declared lost. */
static size_t check_told(const struct keeper *k, struct rt_bpf_catalog *catalog, size_t *lost)
{
	FILE *file = fopen(workdir_path(&work, "told"), "r");
	size_t kept = 0;
	struct told t;

	assert_non_null(file);
	*lost = 0;
	while (read_told(file, &t)) {
		const struct rt_bpf_entry *e = rt_bpf_catalog_find(catalog, t.id);
		const struct kept *prog = find(k, RT_BLOB_BPF_PROG, t.id), *btf = find(k, RT_BLOB_BTF, t.btf);

		assert_non_null(e);
		if (e->lost) {
			assert_non_null(e->lost_text);
			assert_non_null(find(k, RT_BLOB_BPF_LOST, t.id));
			++*lost;
			continue;
		}
		assert_non_null(prog);
		assert_non_null(btf);
		check_arrays(prog, &t);
		assert_int_equal(digest(btf->data, btf->size), t.btf_digest);
		check_extra(k, &t, prog, btf);
		kept++;
	}
	fclose(file);
	return kept;
}

static size_t watch(const char *loads, const char *threads, size_t ring, bool drain, size_t *lost)
{
	_cleanup_(rt_bpf_watch_destroyp) struct rt_bpf_watch *watch = NULL;
	struct rt_bpf_watch_options options = { .ring_bytes = ring };
	struct keeper k = { .sink.record = keep };
	struct loader loader;
	size_t kept;

	compile();
	assert_ok(rt_bpf_watch_create(&options, &watch));
	assert_null(rt_bpf_watch_limit(watch));
	loader = loader_start(loads, threads);
	assert_ok(rt_bpf_watch_follow(watch, (uint32_t)loader.pid));
	loader_go(&loader);
	while (drain && !loader_ended(&loader, WNOHANG))
		assert_ok(rt_bpf_watch_drain(watch, &k.sink));
	if (!drain)
		assert_true(loader_ended(&loader, 0));
	assert_ok(rt_bpf_watch_finish(watch, &k.sink));
	kept = check_told(&k, rt_bpf_watch_catalog(watch), lost);
	assert_int_equal(rt_bpf_watch_catalog(watch)->lost_unnamed, 0);
	keeper_deinit(&k);
	return kept;
}

TEST(every_one_of_500_is_kept_as_the_kernel_told_it)
{
	size_t lost;

	assert_int_equal(watch("500", "1", 0, true, &lost), 500);
	assert_int_equal(lost, 0);
}

TEST(eight_loaders_at_once)
{
	size_t lost;

	assert_int_equal(watch("40", "8", 0, true, &lost), 320);
	assert_int_equal(lost, 0);
}

/* Nobody drains until the end: most programs find no room, and each of them is named. */
TEST(a_full_ring_is_told_program_by_program)
{
	size_t lost, kept = watch("100", "2", 65536, false, &lost);

	assert_true(kept > 0);
	assert_true(lost > 0);
	assert_int_equal(kept + lost, 200);
}

/* A program that was there before is asked for. */
TEST(existing_programs)
{
	_cleanup_(rt_bpf_watch_destroyp) struct rt_bpf_watch *watch = NULL;
	struct rt_bpf_watch_options options = { 0 };
	struct keeper k = { .sink.record = keep };
	_cleanup_free_ char *text = NULL;
	struct rt_bpf_entry *e = NULL;
	char *child;
	pid_t pid;

	compile();
	text = workdir_output(&work, "EVERY=1 ./loop loop.o 1 1 fd");
	child = strstr(text, "child ");
	assert_non_null(child);
	pid = (pid_t)strtoul(child + 6, NULL, 10);
	workdir_write(&work, "told", text);
	assert_ok(rt_bpf_watch_create(&options, &watch));
	assert_ok(rt_bpf_watch_existing(watch, &k.sink));
	assert_ok(rt_bpf_catalog_refresh(rt_bpf_watch_catalog(watch)));
	for (size_t i = 0; i < rt_bpf_watch_catalog(watch)->entries.len; i++) {
		struct rt_bpf_entry *at = rt_bpf_watch_catalog(watch)->entries.data[i];

		for (size_t n = 0; n < at->holders.len; n++)
			e = at->holders.data[n].pid == (uint32_t)pid ? at : e;
	}
	kill(pid, SIGKILL);
	assert_non_null(e);
	assert_true(e->before && !e->gone && !e->lost);
	assert_string_equal(rt_bpf_entry_name(e), "a_program_with_a_long_name");
	{
		FILE *file = fopen(workdir_path(&work, "told"), "r");
		const struct kept *prog = find(&k, RT_BLOB_BPF_PROG, e->id);
		struct told t;

		assert_non_null(file);
		assert_true(read_told(file, &t));
		fclose(file);
		assert_int_equal(t.id, e->id);
		assert_non_null(prog);
		check_arrays(prog, &t);
	}
	keeper_deinit(&k);
}

/* Our own loads are not followed, and a process that was not named is not either. */
TEST(others_are_left_alone)
{
	_cleanup_(rt_bpf_watch_destroyp) struct rt_bpf_watch *watch = NULL;
	struct rt_bpf_watch_options options = { 0 };
	struct loader loader;

	compile();
	assert_ok(rt_bpf_watch_create(&options, &watch));
	loader = loader_start("3", "1");
	loader_go(&loader);
	assert_true(loader_ended(&loader, 0));
	assert_ok(rt_bpf_watch_finish(watch, NULL));
	assert_int_equal(rt_bpf_watch_catalog(watch)->entries.len, 0);
}

static void remove_files(void) __attribute__((destructor));
static void remove_files(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", work.dir);
	if (work.dir[0] && system(command))
		fputs("cannot remove the files of the test\n", stderr);
}

TEST_MAIN();
