/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A real program: what the kernel tells, through encode and decode, against
 * /proc/kallsyms and bpftool.
 */
#include <fcntl.h>

#include "base/fs.h"
#include "bpf_program.h"
#include "bpfimage/bpfimage.h"
#include "perfdata/reader.h"

static void decode_rig(const struct bpf_program_rig *rig, struct rt_bpf_image **ret)
{
	uint8_t *entry = NULL;
	size_t size = 0;

	assert_ok(rt_bpf_image_encode(&rig->info, &entry, &size));
	assert_ok(rt_bpf_image_decode(rt_bytes_make(entry, size), rt_bytes_make(rig->btf, rig->btf_size), false, ret));
	free(entry);
}

/* As the kernel lists it: address and name. Other loads of the same program have the same name elsewhere. */
static void check_symbol(struct bpf_program_rig *rig, const struct rt_bpf_function *f)
{
	char *line = workdir_output(&rig->work, "grep -w '%s' /proc/kallsyms | grep '^%016llx' || true", f->symbol,
				    (unsigned long long)f->address);

	assert_non_null(strstr(line, "[bpf]"));
	free(line);
}

TEST(functions_are_those_of_the_kernel)
{
	static const char *const names[] = { "main_prog", "mix_hash", "note_slot", "clamp_value" };
	struct bpf_program_rig rig;
	struct rt_bpf_image *image = NULL;
	const uint8_t *code;

	bpf_program_load(&rig);
	decode_rig(&rig, &image);
	assert_int_equal(image->function_count, 4);
	assert_int_equal(image->info.id, rig.info.id);
	assert_int_equal(image->info.jited_prog_insns, 0);
	assert_string_equal(image->info.name, "main_prog");
	code = (const uint8_t *)(uintptr_t)rig.info.jited_prog_insns;
	for (unsigned i = 0; i < 4; i++) {
		const struct rt_bpf_function *f = &image->functions[i];

		assert_string_equal(f->name, names[i]);
		check_symbol(&rig, f);
		assert_memory_equal(f->jit.data, code, f->jit.size);
		assert_int_equal(f->jit.size, f->size);
#ifdef __x86_64__
		/* code begins where the kernel says: with endbr64, the nop of fentry or the frame set-up */
		assert_true(f->jit.data[0] == 0xf3 || f->jit.data[0] == 0x0f || f->jit.data[0] == 0x55);
#endif
		code += f->jit.size;
		assert_ptr_equal(rt_bpf_function_at(image, f->address + f->size - 1), f);
		assert_ptr_equal(rt_bpf_function_find(image, f->symbol), f);
		assert_ptr_equal(rt_bpf_function_find(image, names[i]), f);
		assert_ptr_equal(rt_bpf_function_of_insn(image, f->insn + f->insns - 1), f);
	}
	assert_int_equal(code - (const uint8_t *)(uintptr_t)rig.info.jited_prog_insns, rig.info.jited_prog_len);
	assert_memory_not_equal(image->functions[0].tag, image->info.tag, 8);
	assert_null(rt_bpf_function_at(image, image->functions[0].address - 1));
	assert_null(rt_bpf_function_find(image, ""));
	rt_bpf_image_destroy(image);
	bpf_program_unload(&rig);
}

TEST(symbols_in_perfs_spelling_are_found_too)
{
	struct bpf_program_rig rig;
	struct rt_bpf_image *image = NULL;
	char name[64], *at = name;

	bpf_program_load(&rig);
	decode_rig(&rig, &image);
	at += sprintf(at, "bpf_prog_");
	for (unsigned i = 0; i < 8; i++)
		at += sprintf(at, "%02x", ((const uint8_t *)(uintptr_t)rig.info.prog_tags)[i]);
	strcpy(at, "_main_prog");
	assert_string_not_equal(name, image->functions[0].symbol);
	assert_ptr_equal(rt_bpf_function_find(image, name), &image->functions[0]);
	strcpy(at, "_other");
	assert_null(rt_bpf_function_find(image, name));
	rt_bpf_image_destroy(image);
	bpf_program_unload(&rig);
}

/* "INSN FILE LINE COLUMN" of each instruction with a line of its own, as bpftool tells them. */
static const char linum_script[] = "import re,sys\n"
				   "line=None\n"
				   "for text in sys.stdin:\n"
				   "  m=re.match(r'; .*\\[file:(.*) line_num:(\\d+) line_col:(\\d+)\\]$',text)\n"
				   "  if m: line=m.groups()\n"
				   "  m=re.match(r'\\s+(\\d+): \\(',text)\n"
				   "  if m and line: print(m.group(1),*line); line=None\n";

static char *our_lines(const struct rt_bpf_image *image)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	for (size_t i = 0; i < image->line_count; i++) {
		const struct rt_bpf_line *l = &image->lines[i];

		fprintf(out, "%u %s %u %u\n", l->insn, l->file, l->line, l->column);
	}
	fclose(out);
	return text;
}

TEST(lines_are_those_of_bpftool)
{
	struct bpf_program_rig rig;
	struct rt_bpf_image *image = NULL;
	const struct rt_bpf_line *line;
	char *want, *have;

	bpf_program_load(&rig);
	decode_rig(&rig, &image);
	workdir_write(&rig.work, "linum.py", linum_script);
	want = workdir_output(&rig.work, "bpftool prog dump xlated id %u linum | python3 linum.py", rig.info.id);
	have = our_lines(image);
	/* bpftool leaves out lines of no file */
	assert_true(image->line_count >= 10);
	assert_string_equal(have, want);
	free(want);
	free(have);
	for (size_t i = 0; i < image->line_count; i++) {
		line = &image->lines[i];
		assert_true(line->address);
		assert_ptr_equal(rt_bpf_line_at(image, line->address), line);
		assert_ptr_equal(rt_bpf_line_of_insn(image, line->insn), line);
	}
	/* the multiplication of mix_hash, wherever its code is */
	line = NULL;
	for (size_t i = 0; i < image->line_count; i++) {
		if (image->lines[i].line == 13)
			line = &image->lines[i];
	}
	assert_non_null(line);
	assert_non_null(strstr(line->text, "h = h * 31 + i;"));
	assert_string_equal(rt_bpf_function_at(image, line->address)->name, "mix_hash");
	rt_bpf_image_destroy(image);
	bpf_program_unload(&rig);
}

TEST(extra_part_travels)
{
	struct bpf_program_rig rig;
	struct rt_bpf_image *image = NULL, *other = NULL;
	uint8_t *blob = NULL, tag[8];
	size_t size = 0, count = 0;
	uint64_t *calls = NULL;
	uint32_t id = 0;
	char *base;

	bpf_program_load(&rig);
	decode_rig(&rig, &image);
	base = workdir_output(&rig.work, "grep -w __bpf_call_base /proc/kallsyms || true");
	image->call_base = strtoull(base, NULL, 16);
	free(base);
	assert_int_equal(image->map_count, 1);
	assert_null(rt_bpf_map_name(image, image->map_ids[0]));
	assert_ok(rt_bpf_image_set_map_name(image, image->map_ids[0], "counts"));
	assert_ok(rt_bpf_image_set_loader(image, 77, "test"));
	assert_ok(rt_bpf_image_add_attached(image, "socket 3"));
	assert_ok(rt_bpf_image_add_attached(image, "link 12"));
	assert_ok(rt_bpf_image_add_lost(image, "first"));
	assert_ok(rt_bpf_image_add_lost(image, "second"));
	image->load_ns = 5;
	image->unload_ns = 0x100000000;
	assert_ok(rt_bpf_image_calls(image, &calls, &count));
	if (image->call_base)
		assert_true(count >= 2);
	for (size_t i = count; i-- > 0;) {
		char *line = workdir_output(&rig.work, "grep -i '^%llx ' /proc/kallsyms | head -1",
					    (unsigned long long)calls[i]);
		char *name = strrchr(line, ' ');

		assert_non_null(name);
		name[strcspn(name, "\n\t")] = 0;
		assert_int_equal(strncmp(name + 1, "bpf_", 4), 0);
		assert_ok(rt_bpf_image_add_symbol(image, calls[i], name + 1));
		free(line);
	}
	assert_ok(rt_bpf_extra_encode(image, &blob, &size));
	assert_ok(rt_bpf_extra_about(rt_bytes_make(blob, size), &id, tag));
	assert_int_equal(id, rig.info.id);
	assert_memory_equal(tag, rig.info.tag, 8);
	decode_rig(&rig, &other);
	assert_ok(rt_bpf_extra_decode(rt_bytes_make(blob, size), other));
	assert_string_equal(other->loader, "test");
	assert_int_equal(other->loader_pid, 77);
	assert_int_equal(other->load_ns, 5);
	assert_int_equal(other->unload_ns, 0x100000000);
	assert_int_equal(other->attached_count, 2);
	assert_string_equal(other->attached[1], "link 12");
	assert_string_equal(other->lost, "first; second");
	assert_string_equal(rt_bpf_map_name(other, image->map_ids[0]), "counts");
	assert_int_equal(other->symbol_count, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(rt_bpf_symbol_at(other, calls[i]), rt_bpf_symbol_at(image, calls[i]));
	other->info.id++;
	assert_code(rt_bpf_extra_decode(rt_bytes_make(blob, size), other), RT_E_FORMAT);
	free(calls);
	free(blob);
	rt_bpf_image_destroy(other);
	rt_bpf_image_destroy(image);
	bpf_program_unload(&rig);
}

/* What perf itself stored about the program, beside what the kernel told us. */
TEST(entry_written_by_perf)
{
	struct bpf_program_rig rig;
	struct rt_perf_reader *reader = NULL;
	struct rt_bpf_image *image = NULL, *ours = NULL;
	const struct rt_perf_header *header;
	char *data = NULL, *status;
	size_t size = 0;

	bpf_program_load(&rig);
	status = workdir_output(&rig.work, "perf record -q -e cpu-clock -o perf.data true >perf.log 2>&1; echo $?");
	if (strcmp(status, "0\n") != 0) {
		print_message("skipped: perf does not record here\n");
		free(status);
		bpf_program_unload(&rig);
		skip();
	}
	free(status);
	assert_ok(rt_fs_read(AT_FDCWD, workdir_path(&rig.work, "perf.data"), 64u << 20, &data, &size));
	assert_ok(rt_perf_reader_create(rt_bytes_make(data, size), "perf.data", &reader));
	header = rt_perf_reader_header(reader);
	for (size_t i = 0; i < header->bpf_prog_count && !image; i++) {
		struct rt_bytes btf = { 0 };

		for (size_t b = 0; b < header->btf_count; b++) {
			if (header->btfs[b].id == rig.info.btf_id)
				btf = header->btfs[b].bytes;
		}
		assert_ok(rt_bpf_image_decode(header->bpf_progs[i].bytes, btf, header->big_endian, &image));
		if (image->info.id != rig.info.id) {
			rt_bpf_image_destroy(image);
			image = NULL;
		}
	}
	assert_non_null(image);
	decode_rig(&rig, &ours);
	assert_int_equal(image->function_count, ours->function_count);
	assert_int_equal(image->line_count, ours->line_count);
	assert_int_equal(image->xlated.size, 0); /* perf does not keep them */
	for (size_t i = 0; i < image->function_count; i++) {
		const struct rt_bpf_function *a = &image->functions[i], *b = &ours->functions[i];

		assert_string_equal(a->symbol, b->symbol);
		assert_int_equal(a->address, b->address);
		assert_int_equal(a->jit.size, b->jit.size);
		assert_memory_equal(a->jit.data, b->jit.data, b->jit.size);
		assert_int_equal(a->insns, b->insns);
	}
	rt_bpf_image_destroy(ours);
	rt_bpf_image_destroy(image);
	rt_perf_reader_destroy(reader);
	free(data);
	bpf_program_unload(&rig);
}

TEST_MAIN();
