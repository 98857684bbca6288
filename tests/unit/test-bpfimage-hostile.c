/* SPDX-License-Identifier: GPL-2.0-only */
/* Entries and BTF made by hand: both byte orders, other sizes of the info, and everything that does not fit. */
#include <stddef.h>

#include "bpfimage/bpfimage.h"
#include "test.h"

struct maker {
	uint8_t bytes[4096];
	size_t size;
	bool big_endian;
};

static void put(struct maker *m, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		m->bytes[m->size++] = (uint8_t)(value >> 8 * (m->big_endian ? bytes - 1 - i : i));
}

static void poke(struct maker *m, size_t at, uint64_t value, unsigned bytes)
{
	size_t size = m->size;

	m->size = at;
	put(m, value, bytes);
	m->size = size;
}

/* int main_prog(void) and int helper(void), one line each; strings: 1 "main_prog", 11 "helper", 18 "a.c", 22 "x = 1;"
 */
static void make_btf(struct maker *m)
{
	static const char strings[] = "\0main_prog\0helper\0a.c\0x = 1;";

	put(m, 0xeb9f, 2);
	put(m, 1, 1);
	put(m, 0, 1);
	put(m, 24, 4);
	put(m, 0, 4);
	put(m, 48, 4);
	put(m, 48, 4);
	put(m, sizeof(strings), 4);
	put(m, 0, 4); /* 1: function prototype without parameters */
	put(m, 13u << 24, 4);
	put(m, 0, 4);
	put(m, 1, 4); /* 2: main_prog */
	put(m, 12u << 24 | 1, 4);
	put(m, 1, 4);
	put(m, 11, 4); /* 3: helper */
	put(m, 12u << 24 | 1, 4);
	put(m, 1, 4);
	put(m, 0, 4); /* 4: struct without name, no members */
	put(m, 4u << 24, 4);
	put(m, 0, 4);
	memcpy(m->bytes + m->size, strings, sizeof(strings));
	m->size += sizeof(strings);
}

enum { INFO_AT = 16, INFO_BYTES = 232 };
enum {
	JIT_AT = 0,
	KSYMS_AT = 16,
	LENS_AT = 32,
	FUNCS_AT = 40,
	LINES_AT = 56,
	JLINES_AT = 88,
	TAGS_AT = 104,
	DATA = 120
};

#define INFO(m, field, value, bytes) poke(m, INFO_AT + offsetof(struct bpf_prog_info, field), value, bytes)

/* Two functions of 10 and 6 bytes with a line each. */
static void make_entry(struct maker *m)
{
	put(m, INFO_BYTES, 4);
	put(m, DATA, 4);
	put(m, 0x1f9, 8);
	m->size += INFO_BYTES;
	INFO(m, type, 1, 4);
	INFO(m, id, 42, 4);
	memcpy(m->bytes + INFO_AT + offsetof(struct bpf_prog_info, tag), "\1\2\3\4\5\6\7\10", 8);
	memcpy(m->bytes + INFO_AT + offsetof(struct bpf_prog_info, name), "main_prog", 9);
	INFO(m, jited_prog_len, 16, 4);
	INFO(m, jited_prog_insns, JIT_AT, 8);
	INFO(m, xlated_prog_len, 64, 4);
	INFO(m, xlated_prog_insns, 0xdeadbeefdeadbeef, 8);
	INFO(m, nr_jited_ksyms, 2, 4);
	INFO(m, jited_ksyms, KSYMS_AT, 8);
	INFO(m, nr_jited_func_lens, 2, 4);
	INFO(m, jited_func_lens, LENS_AT, 8);
	INFO(m, func_info_rec_size, 8, 4);
	INFO(m, nr_func_info, 2, 4);
	INFO(m, func_info, FUNCS_AT, 8);
	INFO(m, line_info_rec_size, 16, 4);
	INFO(m, nr_line_info, 2, 4);
	INFO(m, line_info, LINES_AT, 8);
	INFO(m, jited_line_info_rec_size, 8, 4);
	INFO(m, nr_jited_line_info, 2, 4);
	INFO(m, jited_line_info, JLINES_AT, 8);
	INFO(m, nr_prog_tags, 2, 4);
	INFO(m, prog_tags, TAGS_AT, 8);
	INFO(m, attach_btf_id, 7, 4);
	for (unsigned i = 0; i < 16; i++)
		put(m, i, 1);
	put(m, 0xffffffffc0001000, 8);
	put(m, 0xffffffffc0002000, 8);
	put(m, 10, 4);
	put(m, 6, 4);
	put(m, 0, 4); /* function 0: type 2 at instruction 0 */
	put(m, 2, 4);
	put(m, 5, 4);
	put(m, 3, 4);
	put(m, 0, 4); /* a.c:3:7 */
	put(m, 18, 4);
	put(m, 22, 4);
	put(m, 3 << 10 | 7, 4);
	put(m, 6, 4); /* a.c:9:1, behind the start of helper */
	put(m, 18, 4);
	put(m, 22, 4);
	put(m, 9 << 10 | 1, 4);
	put(m, 0xffffffffc0001004, 8);
	put(m, 0xffffffffc0002002, 8);
	put(m, 0x1111111111111111, 8);
	put(m, 0x2222222222222222, 8);
}

static struct rt_error *decode(const struct maker *entry, const struct maker *btf, struct rt_bpf_image **ret)
{
	/* exactly as long as it is: reading beyond it is seen by ASan */
	uint8_t *a = malloc(entry->size + !entry->size), *b = malloc(btf ? btf->size : 1);
	struct rt_error *err;

	memcpy(a, entry->bytes, entry->size);
	if (btf)
		memcpy(b, btf->bytes, btf->size);
	err = rt_bpf_image_decode(rt_bytes_make(a, entry->size), rt_bytes_make(b, btf ? btf->size : 0),
				  entry->big_endian, ret);
	free(a);
	free(b);
	return err;
}

static void check_whole(const struct rt_bpf_image *image)
{
	assert_int_equal(image->info.id, 42);
	assert_int_equal(image->info.attach_btf_id, 7);
	assert_int_equal(image->function_count, 2);
	assert_string_equal(image->functions[0].name, "main_prog");
	assert_string_equal(image->functions[0].symbol, "bpf_prog_0102030405060708_main_prog");
	assert_string_equal(image->functions[1].symbol, "bpf_prog_2222222222222222_helper");
	assert_int_equal(image->functions[0].jit.size, 10);
	assert_int_equal(image->functions[1].jit.size, 6);
	assert_int_equal(image->functions[1].jit.data[0], 10);
	assert_int_equal(image->functions[1].address, 0xffffffffc0002000);
	assert_int_equal(image->functions[0].insns, 5);
	assert_int_equal(image->functions[1].insn, 5);
	assert_int_equal(image->functions[1].insns, 3);
	assert_int_equal(image->line_count, 2);
	assert_string_equal(image->lines[0].file, "a.c");
	assert_string_equal(image->lines[0].text, "x = 1;");
	assert_int_equal(image->lines[1].line, 9);
	assert_int_equal(image->lines[1].column, 1);
	assert_null(rt_bpf_line_at(image, 0xffffffffc0001003));
	assert_ptr_equal(rt_bpf_line_at(image, 0xffffffffc0001009), &image->lines[0]);
	assert_null(rt_bpf_line_at(image, 0xffffffffc0002001));
	assert_ptr_equal(rt_bpf_line_at(image, 0xffffffffc0002005), &image->lines[1]);
	assert_ptr_equal(rt_bpf_line_of_insn(image, 4), &image->lines[0]);
	assert_null(rt_bpf_line_of_insn(image, 5)); /* the line before is another function's */
	assert_ptr_equal(rt_bpf_line_of_insn(image, 7), &image->lines[1]);
	assert_null(image->lost);
}

TEST(both_byte_orders)
{
	for (unsigned big = 0; big < 2; big++) {
		struct maker entry = { .big_endian = big }, btf = { .big_endian = big };
		struct rt_bpf_image *image = NULL;

		make_entry(&entry);
		make_btf(&btf);
		assert_ok(decode(&entry, &btf, &image));
		check_whole(image);
		rt_bpf_image_destroy(image);
	}
}

/* A BTF tells its own byte order: the one of the entry does not matter. */
TEST(btf_of_the_other_order)
{
	struct maker entry = { 0 }, btf = { .big_endian = true };
	struct rt_bpf_image *image = NULL;

	make_entry(&entry);
	make_btf(&btf);
	assert_ok(decode(&entry, &btf, &image));
	check_whole(image);
	rt_bpf_image_destroy(image);
}

TEST(longer_info)
{
	struct maker entry = { 0 }, btf = { 0 };
	struct rt_bpf_image *image = NULL;

	make_entry(&entry);
	make_btf(&btf);
	poke(&entry, 0, INFO_BYTES + 24, 4);
	memmove(entry.bytes + INFO_AT + INFO_BYTES + 24, entry.bytes + INFO_AT + INFO_BYTES, DATA);
	memset(entry.bytes + INFO_AT + INFO_BYTES, 0xee, 24);
	entry.size += 24;
	assert_ok(decode(&entry, &btf, &image));
	check_whole(image);
	rt_bpf_image_destroy(image);
}

/* An old kernel's info ends before the lines: the rest is as if it were 0. */
TEST(shorter_info)
{
	enum { SHORT = offsetof(struct bpf_prog_info, btf_id) };
	struct maker entry = { 0 }, btf = { 0 };
	struct rt_bpf_image *image = NULL;

	make_entry(&entry);
	make_btf(&btf);
	poke(&entry, 0, SHORT, 4);
	memmove(entry.bytes + INFO_AT + SHORT, entry.bytes + INFO_AT + INFO_BYTES, DATA);
	entry.size -= INFO_BYTES - SHORT;
	assert_ok(decode(&entry, &btf, &image));
	assert_int_equal(image->function_count, 2);
	assert_int_equal(image->line_count, 0);
	assert_string_equal(image->functions[0].name, "main_prog");
	assert_string_equal(image->functions[1].symbol, "bpf_prog_0102030405060708_F");
	assert_int_equal(image->functions[1].jit.data[0], 10);
	rt_bpf_image_destroy(image);
}

TEST(what_lies_outside_is_refused)
{
	static const struct {
		size_t at;
		unsigned bytes;
	} fields[] = {
#define F(f) { offsetof(struct bpf_prog_info, f), sizeof(((struct bpf_prog_info *)0)->f) }
		F(jited_prog_insns),   F(jited_prog_len),     F(jited_ksyms),  F(nr_jited_ksyms), F(jited_func_lens),
		F(nr_jited_func_lens), F(func_info),          F(nr_func_info), F(line_info),      F(nr_line_info),
		F(jited_line_info),    F(nr_jited_line_info), F(prog_tags),    F(nr_prog_tags),   F(line_info_rec_size),
	};
	static const uint64_t values[] = { DATA + 1, 0x7fffffff, UINT64_MAX, UINT64_MAX - 7 };

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++) {
			struct maker entry = { 0 };
			struct rt_bpf_image *image = NULL;
			struct rt_error *err;

			make_entry(&entry);
			poke(&entry, INFO_AT + fields[i].at, values[v], fields[i].bytes);
			err = decode(&entry, NULL, &image);
			assert_non_null(err);
			assert_int_equal(err->code, RT_E_FORMAT);
			assert_null(image);
			rt_error_free(err);
		}
	}
}

TEST(elements_that_are_too_small)
{
	struct maker entry = { 0 };
	struct rt_bpf_image *image = NULL;

	make_entry(&entry);
	INFO(&entry, line_info_rec_size, 12, 4);
	assert_code(decode(&entry, NULL, &image), RT_E_FORMAT);
	INFO(&entry, line_info_rec_size, 0, 4);
	assert_code(decode(&entry, NULL, &image), RT_E_FORMAT);
}

/* A newer kernel's records are longer: what we know of them is at their start. */
TEST(elements_that_are_longer)
{
	struct maker entry = { 0 }, btf = { 0 };
	struct rt_bpf_image *image = NULL;

	make_entry(&entry);
	make_btf(&btf);
	INFO(&entry, line_info_rec_size, 32, 4);
	INFO(&entry, nr_line_info, 1, 4);
	assert_ok(decode(&entry, &btf, &image));
	assert_int_equal(image->line_count, 1);
	assert_int_equal(image->lines[0].line, 3);
	rt_bpf_image_destroy(image);
}

TEST(function_lengths_beyond_the_code)
{
	struct maker entry = { 0 };
	struct rt_bpf_image *image = NULL;

	make_entry(&entry);
	poke(&entry, INFO_AT + INFO_BYTES + LENS_AT + 4, 7, 4);
	assert_code(decode(&entry, NULL, &image), RT_E_FORMAT);
	poke(&entry, INFO_AT + INFO_BYTES + LENS_AT, UINT32_MAX, 4);
	assert_code(decode(&entry, NULL, &image), RT_E_FORMAT);
}

/* Arrays whose bit is not set are not there, whatever the info says about them. */
TEST(only_kept_arrays_are_read)
{
	struct maker entry = { 0 };
	struct rt_bpf_image *image = NULL;

	make_entry(&entry);
	poke(&entry, 8, 1 << 8, 8);
	INFO(&entry, line_info, UINT64_MAX, 8);
	assert_ok(decode(&entry, NULL, &image));
	assert_int_equal(image->jit.size, 0);
	assert_int_equal(image->line_count, 0);
	assert_int_equal(image->info.jited_prog_len, 16);
	assert_int_equal(image->functions[1].address, 0);
	rt_bpf_image_destroy(image);
}

TEST(every_cut_is_an_error)
{
	struct maker entry = { 0 };

	make_entry(&entry);
	for (size_t size = 0, whole = entry.size; size < whole; size++) {
		struct rt_bpf_image *image = NULL;

		entry.size = size;
		assert_code(decode(&entry, NULL, &image), RT_E_TRUNCATED);
		assert_null(image);
	}
}

/* Nothing worse than an error, and what was read can be asked. */
TEST(every_byte_changed)
{
	for (unsigned big = 0; big < 2; big++) {
		struct maker entry = { .big_endian = big }, btf = { .big_endian = big };

		make_entry(&entry);
		make_btf(&btf);
		for (size_t at = 0; at < entry.size + btf.size; at++) {
			uint8_t *byte = at < entry.size ? &entry.bytes[at] : &btf.bytes[at - entry.size];

			for (unsigned bit = 0; bit < 8; bit++) {
				struct rt_bpf_image *image = NULL;
				struct rt_error *err;

				*byte ^= (uint8_t)(1 << bit);
				err = decode(&entry, &btf, &image);
				*byte ^= (uint8_t)(1 << bit);
				assert_true(!err == (image && image->function_count));
				if (image)
					rt_bpf_line_at(image, image->functions[0].address + 4);
				rt_bpf_image_destroy(image);
				rt_error_free(err);
			}
		}
	}
}

TEST(damaged_btf_costs_only_names)
{
	struct maker entry = { 0 }, btf = { 0 };
	struct rt_bpf_image *image = NULL;

	make_entry(&entry);
	make_btf(&btf);
	poke(&btf, 0, 0x1234, 2);
	assert_ok(decode(&entry, &btf, &image));
	assert_non_null(strstr(image->lost, "BTF"));
	assert_string_equal(image->functions[1].symbol, "bpf_prog_2222222222222222_F");
	assert_string_equal(image->lines[0].file, "");
	assert_int_equal(image->lines[0].line, 3);
	rt_bpf_image_destroy(image);
}

TEST(btf_headers)
{
	struct maker good = { 0 };
	struct rt_btf *btf = NULL;
	struct rt_btf_type type;

	make_btf(&good);
	for (size_t size = 0; size < good.size; size++)
		assert_code(rt_btf_create(rt_bytes_make(good.bytes, size), &btf), RT_E_FORMAT);
	assert_ok(rt_btf_create(rt_bytes_make(good.bytes, good.size), &btf));
	assert_true(rt_btf_whole(btf));
	assert_int_equal(rt_btf_count(btf), 4);
	assert_int_equal(rt_btf_find(btf, RT_BTF_FUNC, "helper"), 3);
	assert_null(rt_btf_function(btf, 1));
	assert_null(rt_btf_function(btf, 5));
	assert_null(rt_btf_function(btf, UINT32_MAX));
	assert_false(rt_btf_type(btf, 5, &type));
	assert_null(rt_btf_string(btf, 1000));
	assert_null(rt_btf_string(btf, UINT32_MAX));
	rt_btf_destroy(btf);
	/* offsets that wrap, or point behind the end */
	for (unsigned at = 8; at < 24; at += 4) {
		struct maker bad = good;

		poke(&bad, at, UINT32_MAX, 4);
		assert_code(rt_btf_create(rt_bytes_make(bad.bytes, bad.size), &btf), RT_E_FORMAT);
	}
	/* a kind that we do not know ends the types, not the strings */
	poke(&good, 24 + 24 + 4, 31u << 24, 4);
	assert_ok(rt_btf_create(rt_bytes_make(good.bytes, good.size), &btf));
	assert_false(rt_btf_whole(btf));
	assert_int_equal(rt_btf_count(btf), 2);
	assert_string_equal(rt_btf_string(btf, 11), "helper");
	rt_btf_destroy(btf);
}

TEST(extra_parts_that_do_not_fit)
{
	struct maker entry = { 0 };
	struct rt_bpf_image *image = NULL;
	uint8_t *blob = NULL;
	size_t size = 0;

	make_entry(&entry);
	assert_ok(decode(&entry, NULL, &image));
	assert_ok(rt_bpf_image_set_loader(image, 1, "loader"));
	assert_ok(rt_bpf_image_set_map_name(image, 9, "late"));
	assert_ok(rt_bpf_extra_encode(image, &blob, &size));
	for (size_t cut = 0; cut < size; cut++) {
		uint8_t *copy = malloc(cut + !cut);
		struct rt_error *err;

		memcpy(copy, blob, cut);
		err = rt_bpf_extra_decode(rt_bytes_make(copy, cut), image);
		/* between two items nothing is missing */
		assert_true(!err || err->code == RT_E_TRUNCATED || err->code == RT_E_FORMAT);
		assert_true(err || cut >= 20);
		rt_error_free(err);
		free(copy);
	}
	memset(blob + 20, 0xff, 4); /* an item from the future */
	assert_ok(rt_bpf_extra_decode(rt_bytes_make(blob, size), image));
	assert_string_equal(rt_bpf_map_name(image, 9), "late");
	blob[4]++;
	assert_code(rt_bpf_extra_decode(rt_bytes_make(blob, size), image), RT_E_FORMAT);
	free(blob);
	rt_bpf_image_destroy(image);
}

TEST_MAIN();
