/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A real BPF program: compiled by the test, loaded into this kernel, and what the kernel tells about it with every
 * array. Where loading is not permitted the test is skipped, and says so.
 */
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "workdir.h"

/* Three functions beside the main one; mix_hash loops, note_slot has a map, an atomic and helpers. */
static const char bpf_program_source[] =
	"#define SEC(n) __attribute__((section(n), used))\n"
	"#define __noinline __attribute__((noinline))\n"
	"static void *(*map_lookup)(void *map, const void *key) = (void *)1;\n"
	"static unsigned long long (*ktime_get_ns)(void) = (void *)5;\n"
	"static unsigned (*get_prandom_u32)(void) = (void *)7;\n"
	"struct { int (*type)[2]; int (*max_entries)[4]; unsigned *key; unsigned long long *value; } counts"
	" SEC(\".maps\");\n"
	"__noinline int mix_hash(unsigned seed, unsigned rounds)\n" /* line 7 */
	"{\n"
	"	unsigned h = seed;\n"
	"	for (unsigned i = 0; i < 64; i++) {\n"
	"		if (i >= rounds)\n"
	"			break;\n"
	"		h = h * 31 + i;\n" /* line 13 */
	"		h ^= h >> 7;\n"
	"	}\n"
	"	return h;\n"
	"}\n"
	"__noinline int note_slot(unsigned slot)\n" /* line 18 */
	"{\n"
	"	unsigned key = slot & 3;\n"
	"	unsigned long long *n = map_lookup(&counts, &key);\n"
	"	if (!n)\n"
	"		return 0;\n"
	"	__sync_fetch_and_add(n, 1);\n" /* line 24 */
	"	return (int)key;\n"
	"}\n"
	"__noinline int clamp_value(int v, int most)\n" /* line 27 */
	"{\n"
	"	if (v > most)\n"
	"		return most;\n"
	"	return v < -most ? -most : v;\n"
	"}\n"
	"SEC(\"socket\") int main_prog(void *skb)\n" /* line 33 */
	"{\n"
	"	unsigned r = get_prandom_u32();\n"
	"	int h = mix_hash(r, 40);\n"
	"	int s = note_slot((unsigned)h);\n"
	"	return clamp_value(s + (int)ktime_get_ns(), 100);\n"
	"}\n"
	"char LICENSE[] SEC(\"license\") = \"GPL\";\n";

struct bpf_program_rig {
	struct workdir work;
	struct bpf_object *object;
	int fd;
	struct bpf_prog_info info; /* pointers are those of buffers */
	void *buffers[9];
	void *btf;
	size_t btf_size;
	int map_id;
};

static inline int bpf_program_quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

static inline uint64_t bpf_program_buffer(struct bpf_program_rig *rig, unsigned index, size_t size)
{
	rig->buffers[index] = calloc(1, size + 1);
	assert_non_null(rig->buffers[index]);
	return size ? (uintptr_t)rig->buffers[index] : 0;
}

static inline void bpf_program_ask(struct bpf_program_rig *rig)
{
	struct bpf_prog_info counts = { 0 }, *info = &rig->info;
	struct bpf_btf_info btf = { 0 };
	__u32 len = sizeof(counts);
	int fd;

	assert_int_equal(bpf_obj_get_info_by_fd(rig->fd, &counts, &len), 0);
	memset(info, 0, sizeof(*info));
	info->jited_prog_len = counts.jited_prog_len;
	info->xlated_prog_len = counts.xlated_prog_len;
	info->nr_map_ids = counts.nr_map_ids;
	info->nr_jited_ksyms = counts.nr_jited_ksyms;
	info->nr_jited_func_lens = counts.nr_jited_func_lens;
	info->nr_func_info = counts.nr_func_info;
	info->func_info_rec_size = counts.func_info_rec_size;
	info->nr_line_info = counts.nr_line_info;
	info->line_info_rec_size = counts.line_info_rec_size;
	info->nr_jited_line_info = counts.nr_jited_line_info;
	info->jited_line_info_rec_size = counts.jited_line_info_rec_size;
	info->nr_prog_tags = counts.nr_prog_tags;
	info->jited_prog_insns = bpf_program_buffer(rig, 0, info->jited_prog_len);
	info->xlated_prog_insns = bpf_program_buffer(rig, 1, info->xlated_prog_len);
	info->map_ids = bpf_program_buffer(rig, 2, 4ul * info->nr_map_ids);
	info->jited_ksyms = bpf_program_buffer(rig, 3, 8ul * info->nr_jited_ksyms);
	info->jited_func_lens = bpf_program_buffer(rig, 4, 4ul * info->nr_jited_func_lens);
	info->func_info = bpf_program_buffer(rig, 5, (size_t)info->nr_func_info * info->func_info_rec_size);
	info->line_info = bpf_program_buffer(rig, 6, (size_t)info->nr_line_info * info->line_info_rec_size);
	info->jited_line_info =
		bpf_program_buffer(rig, 7, (size_t)info->nr_jited_line_info * info->jited_line_info_rec_size);
	info->prog_tags = bpf_program_buffer(rig, 8, 8ul * info->nr_prog_tags);
	len = sizeof(*info);
	assert_int_equal(bpf_obj_get_info_by_fd(rig->fd, info, &len), 0);

	fd = bpf_btf_get_fd_by_id(info->btf_id);
	assert_true(fd >= 0);
	len = sizeof(btf);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &btf, &len), 0);
	rig->btf_size = btf.btf_size;
	rig->btf = calloc(1, rig->btf_size + 1);
	btf = (struct bpf_btf_info){ .btf = (uintptr_t)rig->btf, .btf_size = (__u32)rig->btf_size };
	len = sizeof(btf);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &btf, &len), 0);
	close(fd);
}

static inline void bpf_program_unload(struct bpf_program_rig *rig)
{
	bpf_object__close(rig->object);
	for (unsigned i = 0; i < 9; i++)
		free(rig->buffers[i]);
	free(rig->btf);
	workdir_remove(&rig->work);
	memset(rig, 0, sizeof(*rig));
}

/* Compiles and loads; skips the test where this kernel or user does not permit it. */
static inline void bpf_program_load(struct bpf_program_rig *rig)
{
	struct bpf_program *program;
	int err;

	memset(rig, 0, sizeof(*rig));
	workdir_make(&rig->work);
	workdir_write(&rig->work, "prog.bpf.c", bpf_program_source);
	if (geteuid() != 0) {
		print_message("skipped: loading a BPF program needs root\n");
		workdir_remove(&rig->work);
		skip();
	}
	workdir_run(&rig->work, "clang-14 -target bpf -g -O2 -mcpu=v3 -c prog.bpf.c -o prog.o");
	libbpf_set_print(bpf_program_quiet);
	rig->object = bpf_object__open_file(workdir_path(&rig->work, "prog.o"), NULL);
	assert_non_null(rig->object);
	err = bpf_object__load(rig->object);
	if (err == -EPERM || err == -ENOSYS || err == -EOPNOTSUPP) {
		print_message("skipped: this kernel does not let us load a BPF program: %s\n", strerror(-err));
		bpf_program_unload(rig);
		skip();
	}
	assert_int_equal(err, 0);
	program = bpf_object__find_program_by_name(rig->object, "main_prog");
	assert_non_null(program);
	rig->fd = bpf_program__fd(program);
	bpf_program_ask(rig);
}
