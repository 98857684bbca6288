/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions of a loaded BPF program: each shows its own code and lines. */
#include <elf.h>

#include "bpf_program.h"
#include "bpfimage/bpfimage.h"
#include "report/annotate.h"

static const char *const cycles[] = { "cycles" };

#ifdef __aarch64__
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static void make_image(const struct bpf_program_rig *rig, const struct bpf_prog_info *info, struct rt_bpf_image **ret)
{
	uint8_t *entry = NULL;
	size_t size = 0;

	assert_ok(rt_bpf_image_encode(info, &entry, &size));
	assert_ok(rt_bpf_image_decode(rt_bytes_make(entry, size), rt_bytes_make(rig->btf, rig->btf_size), false, ret));
	free(entry);
}

static char *render(const struct rt_annotation *a)
{
	struct rt_sink sink;
	char *text;

	rt_sink_init_memory(&sink);
	assert_ok(rt_annotate_text(a, NULL, &sink));
	assert_ok(rt_sink_end(&sink));
	text = strdup(sink.buffer);
	rt_sink_deinit(&sink);
	if (getenv("RT_SHOW"))
		puts(text);
	return text;
}

/* JITed address of the first line record of this source line. */
static uint64_t address_of(const struct rt_bpf_image *image, uint32_t line)
{
	for (size_t i = 0; i < image->line_count; i++) {
		if (image->lines[i].line == line)
			return image->lines[i].address;
	}
	fail_msg("no code of line %u", line);
	return 0;
}

TEST(each_function_shows_its_own_code)
{
	struct rt_annotate_hit hit = { .count = 40 };
	struct rt_annotate_hits hits = { .events = cycles, .event_count = 1, .hits = &hit, .count = 1 };
	struct rt_annotate_bpf what = { .machine = MACHINE };
	struct rt_bpf_image *image = NULL;
	struct bpf_program_rig rig;

	bpf_program_load(&rig);
	make_image(&rig, &rig.info, &image);
	what.image = image;
	hit.address = address_of(image, 13);
	for (size_t i = 0; i < image->function_count; i++) {
		const struct rt_bpf_function *f = &image->functions[i];
		struct rt_annotation *a = NULL;
		uint64_t end = f->address;

		what.function = f->symbol;
		assert_ok(rt_annotate_bpf(&what, &hits, &a));
		assert_string_equal(a->function, f->name);
		assert_int_equal(a->hits[0], !strcmp(f->name, "mix_hash") ? 40 : 0);
		assert_int_equal(a->totals[0], 40);
		for (size_t l = 0; l < a->line_count; l++) {
			assert_int_equal(a->lines[l].address, end);
			assert_memory_equal(a->lines[l].bytes.data, f->jit.data + (end - f->address),
					    a->lines[l].bytes.size);
			end += a->lines[l].bytes.size;
			if (a->lines[l].line == 36 && a->lines[l].target_name)
				assert_string_equal(a->lines[l].target_name, "mix_hash");
		}
		assert_int_equal(end, f->address + f->size);
		rt_annotation_destroy(a);
	}
	rt_bpf_image_destroy(image);
	bpf_program_unload(&rig);
}

TEST(both_views_of_a_loop)
{
	struct rt_annotate_hit given[2];
	struct rt_annotate_hits hits = { .events = cycles, .event_count = 1, .hits = given, .count = 2 };
	struct rt_annotate_bpf what = { .machine = MACHINE, .function = "mix_hash" };
	struct rt_annotation *a = NULL;
	struct rt_bpf_image *image = NULL;
	struct bpf_program_rig rig;
	char *text;

	bpf_program_load(&rig);
	make_image(&rig, &rig.info, &image);
	what.image = image;
	given[0] = (struct rt_annotate_hit){ address_of(image, 13), 30, 0 };
	given[1] = (struct rt_annotate_hit){ address_of(image, 7), 10, 0 };
	assert_ok(rt_annotate_bpf(&what, &hits, &a));
	text = render(a);
	assert_non_null(strstr(text, "mix_hash in bpf program"));
	assert_non_null(strstr(text, "       30  75.0 %     13          h = h * 31 + i;\n"));
	assert_non_null(strstr(text, "L1:"));
	free(text);
	rt_annotation_destroy(a);

	what.xlated = true;
	assert_ok(rt_annotate_bpf(&what, &hits, &a));
	text = render(a);
	assert_non_null(strstr(text, "eBPF instructions"));
	assert_non_null(strstr(text, "       30  75.0 %     13          h = h * 31 + i;\n"));
	assert_non_null(strstr(text, "w0 *= 31\n"));
	assert_non_null(strstr(text, "  -> L1\n"));
	assert_non_null(strstr(text, "(of no source line)\n"));
	free(text);
	rt_annotation_destroy(a);

	what.function = "note_slot";
	assert_ok(rt_bpf_image_set_map_name(image, image->map_ids[0], "counts"));
	assert_ok(rt_annotate_bpf(&what, &hits, &a));
	text = render(a);
	assert_non_null(strstr(text, "<counts>\n"));
	assert_non_null(strstr(text, "lock *(u64 *)(r0 + 0) += r1\n"));
	free(text);
	rt_annotation_destroy(a);
	rt_bpf_image_destroy(image);
	bpf_program_unload(&rig);
}

TEST(failures_say_what_to_do)
{
	struct rt_annotate_hits hits = { .events = cycles, .event_count = 1 };
	struct rt_annotate_bpf what = { .machine = MACHINE, .function = "nothing" };
	struct rt_annotation *a = NULL;
	struct rt_bpf_image *image = NULL;
	struct bpf_program_rig rig;
	struct bpf_prog_info info;
	struct rt_error *err;

	bpf_program_load(&rig);
	make_image(&rig, &rig.info, &image);
	what.image = image;
	err = rt_annotate_bpf(&what, &hits, &a);
	assert_int_equal(err->code, RT_E_NO_FUNCTION);
	assert_string_equal(err->fix, "it has: main_prog, mix_hash, note_slot, clamp_value");
	rt_error_free(err);
	what.function = "mix_hash";
	what.machine = EM_S390;
	assert_code(rt_annotate_bpf(&what, &hits, &a), RT_E_UNSUPPORTED);
	rt_bpf_image_destroy(image);

	/* as perf keeps it: without eBPF instructions; and without machine code */
	info = rig.info;
	info.xlated_prog_insns = 0;
	make_image(&rig, &info, &image);
	what = (struct rt_annotate_bpf){ .image = image, .machine = MACHINE, .function = "mix_hash", .xlated = true };
	err = rt_annotate_bpf(&what, &hits, &a);
	assert_int_equal(err->code, RT_E_NOT_FOUND);
	assert_non_null(strstr(err->fix, "other view"));
	rt_error_free(err);
	rt_bpf_image_destroy(image);

	info.jited_prog_insns = 0;
	make_image(&rig, &info, &image);
	assert_ok(rt_bpf_image_add_lost(image, "unloaded too early"));
	what.image = image;
	what.xlated = false;
	err = rt_annotate_bpf(&what, &hits, &a);
	assert_int_equal(err->code, RT_E_NOT_FOUND);
	assert_non_null(strstr(err->message, "unloaded too early"));
	assert_non_null(strstr(err->fix, "root"));
	rt_error_free(err);
	rt_bpf_image_destroy(image);
	assert_null(a);
	bpf_program_unload(&rig);
}

TEST_MAIN();
