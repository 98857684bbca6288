/* SPDX-License-Identifier: GPL-2.0-only */
/* eBPF as text: instructions made by hand, and those of really loaded programs against bpftool. */
#include "bpf_program.h"
#include "bpfimage/bpfimage.h"
#include "insn/bpf.h"

struct given {
	uint8_t code, dst, src;
	int16_t off;
	int32_t imm;
	const char *text;
};

static void put_insn(const struct given *g, bool big, uint8_t *to)
{
	uint16_t off = (uint16_t)g->off;
	uint32_t imm = (uint32_t)g->imm;

	to[0] = g->code;
	to[1] = big ? (uint8_t)(g->dst << 4 | g->src) : (uint8_t)(g->src << 4 | g->dst);
	for (unsigned i = 0; i < 2; i++)
		to[2 + i] = (uint8_t)(off >> 8 * (big ? 1 - i : i));
	for (unsigned i = 0; i < 4; i++)
		to[4 + i] = (uint8_t)(imm >> 8 * (big ? 3 - i : i));
}

TEST(instructions)
{
	static const struct given cases[] = {
		{ 0xbf, 6, 1, 0, 0, "r6 = r1" },
		{ 0xbc, 6, 1, 0, 0, "w6 = w1" },
		{ 0xbf, 1, 2, 8, 0, "r1 = (s8)r2" },
		{ 0xbf, 1, 2, 32, 0, "r1 = (s32)r2" },
		{ 0xbc, 1, 2, 16, 0, "w1 = (s16)w2" },
		{ 0xbf, 1, 2, 1, 0x10002, "r1 = addr_space_cast(r2, 1, 2)" },
		{ 0xbf, 1, 2, -1, 0, "r1 = &(void __percpu *)(r2)" },
		{ 0xb7, 2, 0, 0, -1, "r2 = -1" },
		{ 0xb4, 2, 0, 0, 40, "w2 = 40" },
		{ 0x07, 2, 0, 0, -4, "r2 += -4" },
		{ 0x0f, 2, 3, 0, 0, "r2 += r3" },
		{ 0x1c, 2, 3, 0, 0, "w2 -= w3" },
		{ 0x3f, 2, 3, 0, 0, "r2 /= r3" },
		{ 0x3f, 2, 3, 1, 0, "r2 s/= r3" },
		{ 0x94, 2, 0, 1, 7, "w2 s%= 7" },
		{ 0x97, 2, 0, 0, 7, "r2 %= 7" },
		{ 0xc7, 2, 0, 0, 63, "r2 s>>= 63" },
		{ 0x87, 3, 0, 0, 0, "r3 = -r3" },
		{ 0x84, 3, 0, 0, 0, "w3 = -w3" },
		{ 0xdc, 3, 0, 0, 16, "r3 = be16 r3" },
		{ 0xd4, 3, 0, 0, 64, "r3 = le64 r3" },
		{ 0xd7, 3, 0, 0, 32, "r3 = bswap32 r3" },
		{ 0xe7, 3, 0, 0, 0, "unknown (0xe7)" },
		{ 0x79, 1, 6, 8, 0, "r1 = *(u64 *)(r6 + 8)" },
		{ 0x71, 1, 10, -3, 0, "r1 = *(u8 *)(r10 - 3)" },
		{ 0x69, 1, 10, -32768, 0, "r1 = *(u16 *)(r10 - 32768)" },
		{ 0x81, 1, 6, 0, 0, "r1 = *(s32 *)(r6 + 0)" },
		{ 0x91, 1, 6, 0, 0, "r1 = *(s8 *)(r6 + 0)" },
		{ 0x39, 1, 6, 0, 0, "r1 = *(u64 *)(r6 + 0)" }, /* the kernel's own mark: may fault */
		{ 0x63, 10, 1, -4, 0, "*(u32 *)(r10 - 4) = r1" },
		{ 0x7a, 10, 0, -8, -5, "*(u64 *)(r10 - 8) = -5" },
		{ 0xc2, 0, 0, 0, 0, "nospec" },
		{ 0xdb, 0, 1, 0, 0, "lock *(u64 *)(r0 + 0) += r1" },
		{ 0xc3, 0, 1, 4, 0xa0, "lock *(u32 *)(r0 + 4) ^= r1" },
		{ 0xdb, 0, 1, 0, 0x01, "r1 = atomic64_fetch_add((u64 *)(r0 + 0), r1)" },
		{ 0xc3, 0, 1, -8, 0x51, "r1 = atomic_fetch_and((u32 *)(r0 - 8), r1)" },
		{ 0xdb, 0, 1, 0, 0xe1, "r1 = atomic64_xchg((u64 *)(r0 + 0), r1)" },
		{ 0xdb, 2, 1, 0, 0xf1, "r0 = atomic64_cmpxchg((u64 *)(r2 + 0), r0, r1)" },
		{ 0xdb, 1, 2, 8, 0x100, "r1 = load_acquire((u64 *)(r2 + 8))" },
		{ 0xcb, 1, 2, 8, 0x110, "store_release((u16 *)(r1 + 8), r2)" },
		{ 0xdb, 1, 2, 8, 0x77, "unknown atomic (0xdb, 0x77)" },
		{ 0x20, 0, 0, 0, 14, "r0 = *(u32 *)skb[14]" },
		{ 0x48, 0, 7, 0, 2, "r0 = *(u16 *)skb[r7 + 2]" },
		{ 0x05, 0, 0, -9, 0, "goto pc-9" },
		{ 0x06, 0, 0, 0, 70000, "gotol pc+70000" },
		{ 0x0d, 4, 0, 0, 0, "gotox r4" },
		{ 0xe5, 0, 0, 3, 0, "may_goto pc+3" },
		{ 0x25, 1, 0, 3, 5, "if r1 > 0x5 goto pc+3" },
		{ 0x15, 1, 0, 3, -1, "if r1 == 0xffffffff goto pc+3" },
		{ 0x6e, 1, 2, -3, 0, "if w1 s> w2 goto pc-3" },
		{ 0xdd, 1, 2, 1, 0, "if r1 s<= r2 goto pc+1" },
		{ 0x46, 1, 0, 1, 4, "if w1 & 0x4 goto pc+1" },
		{ 0x85, 0, 0, 0, 1, "call bpf_map_lookup_elem" },
		{ 0x85, 0, 0, 0, 211, "call bpf_cgrp_storage_delete" },
		{ 0x85, 0, 0, 0, 212, "call unknown#212" },
		{ 0x85, 0, 0, 0, -5, "call unknown#-5" },
		{ 0x85, 0, 2, 0, 77, "call kernel-function#77" },
		{ 0x85, 0, 1, 0, 20, "call pc+20" },
		{ 0x85, 0, 1, -7, 2, "call pc-7" },
		{ 0xf5, 0, 0, 0, 0, "call bpf_tail_call" },
		{ 0x95, 0, 0, 0, 0, "exit" },
		{ 0x18, 1, 0, 0, 5, "unknown (0x18)" }, /* its second half is missing */
		{ 0xff, 0, 0, 0, 0, "unknown (0xff)" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (unsigned big = 0; big < 2; big++) {
			uint8_t bytes[8];
			struct rt_bpf_insn insn;
			char text[128];

			put_insn(&cases[i], big, bytes);
			assert_true(rt_bpf_decode(rt_bytes_make(bytes, 8), big, 0, &insn));
			assert_int_equal(rt_bpf_text(&insn, 0, NULL, text, sizeof(text)), strlen(cases[i].text));
			assert_string_equal(text, cases[i].text);
			assert_false(rt_bpf_decode(rt_bytes_make(bytes, 7), big, 0, &insn));
			assert_false(rt_bpf_decode(rt_bytes_make(bytes, 8), big, 1, &insn));
		}
	}
}

static const char *name_map(void *arg, uint32_t id)
{
	return id == 5 ? "counts" : NULL;
}

static const char *name_function(void *arg, int32_t number, int64_t position)
{
	return number == 2 && position == 31 ? "mix" : NULL;
}

static const char *name_helper(void *arg, int32_t imm)
{
	return imm == 22592 ? "bpf_user_rnd_u32" : NULL;
}

TEST(names_and_constants)
{
	static const struct rt_bpf_naming naming = { NULL, name_map, name_helper, name_function };
	static const struct {
		struct given low;
		int32_t high;
		const char *text;
	} cases[] = {
		{ { 0x18, 1, 0, 0, 5, NULL }, 1, "r1 = 0x100000005" },
		{ { 0x18, 1, 0, 0, -1, NULL }, -1, "r1 = 0xffffffffffffffff" },
		{ { 0x18, 1, 1, 0, 5, NULL }, 0, "r1 = map[id:5] <counts>" },
		{ { 0x18, 1, 1, 0, 6, NULL }, 0, "r1 = map[id:6]" },
		{ { 0x18, 1, 2, 0, 5, NULL }, 24, "r1 = map[id:5][0]+24 <counts>" },
		{ { 0x18, 1, 5, 0, 5, NULL }, 0, "r1 = map[idx:5]" },
		{ { 0x18, 1, 4, 0, 9, NULL }, 0, "r1 = subprog[+9]" },
		{ { 0x85, 0, 1, 9, 2, NULL }, 0, "call pc+9#mix" },
		{ { 0x85, 0, 0, 0, 22592, NULL }, 0, "call bpf_user_rnd_u32" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t bytes[16] = { 0 };
		struct given high = { .imm = cases[i].high };
		struct rt_bpf_insn insn;
		char text[128];

		put_insn(&cases[i].low, false, bytes);
		put_insn(&high, false, bytes + 8);
		assert_true(rt_bpf_decode(rt_bytes_make(bytes, 16), false, 0, &insn));
		assert_int_equal(insn.wide, cases[i].low.code == 0x18);
		rt_bpf_text(&insn, 21, &naming, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
		/* cut where the room ends */
		assert_int_equal(rt_bpf_text(&insn, 21, &naming, text, 5), 4);
		assert_int_equal(strncmp(text, cases[i].text, 4), 0);
		assert_int_equal(text[4], 0);
	}
}

TEST(targets)
{
	static const struct {
		struct given insn;
		bool has;
		int64_t target;
	} cases[] = {
		{ { 0x05, 0, 0, -9, 0, NULL }, true, 2 }, { { 0x06, 0, 0, 0, 70000, NULL }, true, 70011 },
		{ { 0xe5, 0, 0, 3, 0, NULL }, true, 14 }, { { 0x25, 1, 0, -20, 5, NULL }, true, -9 },
		{ { 0x85, 0, 1, 9, 2, NULL }, true, 20 }, { { 0x85, 0, 1, 0, -3, NULL }, true, 8 },
		{ { 0x85, 0, 0, 0, 1, NULL }, false, 0 }, { { 0x95, 0, 0, 0, 0, NULL }, false, 0 },
		{ { 0x0d, 4, 0, 0, 0, NULL }, false, 0 }, { { 0x07, 1, 0, 3, 3, NULL }, false, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t bytes[8];
		struct rt_bpf_insn insn;
		int64_t target = 0;

		put_insn(&cases[i].insn, false, bytes);
		assert_true(rt_bpf_decode(rt_bytes_make(bytes, 8), false, 0, &insn));
		assert_int_equal(rt_bpf_target(&insn, 10, &target), cases[i].has);
		assert_int_equal(target, cases[i].target);
	}
}

/* bpftool's dump as "POSITION TEXT" without blanks, tags and helper numbers. */
static const char dump_script[] = "import re,sys\n"
				  "for text in sys.stdin:\n"
				  "  m=re.match(r'\\s*(\\d+): \\([0-9a-f]{2}\\) (.*)',text)\n"
				  "  if not m: continue\n"
				  "  body=re.sub(r'\\(r(\\d+) ([+-])(\\d+)\\)',r'(r\\1 \\2 \\3)',m.group(2))\n"
				  "  body=re.sub(r'#bpf_prog_[0-9a-f]{16}_','#',body)\n"
				  "  body=re.sub(r'^(call [a-z_]\\w*)#-?\\d+$',r'\\1',body)\n"
				  "  print(m.group(1),body)\n";

static const char *image_function(void *arg, int32_t number, int64_t position)
{
	const struct rt_bpf_image *image = arg;

	return number >= 0 && (size_t)number < image->function_count ? image->functions[number].name : NULL;
}

static const char *image_helper(void *arg, int32_t imm)
{
	const struct rt_bpf_image *image = arg;

	return rt_bpf_symbol_at(image, image->call_base + (uint64_t)(int64_t)imm);
}

static void name_calls(struct workdir *work, struct rt_bpf_image *image)
{
	char *base = workdir_output(work, "grep -w __bpf_call_base /proc/kallsyms || true");
	uint64_t *calls = NULL;
	size_t count = 0;

	image->call_base = strtoull(base, NULL, 16);
	free(base);
	assert_ok(rt_bpf_image_calls(image, &calls, &count));
	for (size_t i = 0; i < count; i++) {
		char name[128] = "", *line;

		line = workdir_output(work, "grep -i '^%016llx ' /proc/kallsyms | tail -1 || true",
				      (unsigned long long)calls[i]);
		if (sscanf(line, "%*s %*s %127s", name) == 1)
			assert_ok(rt_bpf_image_add_symbol(image, calls[i], name));
		free(line);
	}
	free(calls);
}

/* All instructions of a loaded program against bpftool. Returns how many were compared. */
static unsigned compare(struct workdir *work, const struct bpf_prog_info *info, struct rt_bytes btf)
{
	struct rt_bpf_image *image = NULL;
	struct rt_bpf_naming naming = { .helper = image_helper, .function = image_function };
	struct rt_bpf_insn insn;
	uint8_t *entry = NULL;
	size_t size = 0;
	unsigned count = 0;
	char *want, *at;

	assert_ok(rt_bpf_image_encode(info, &entry, &size));
	assert_ok(rt_bpf_image_decode(rt_bytes_make(entry, size), btf, false, &image));
	naming.arg = image;
	name_calls(work, image);
	workdir_write(work, "dump.py", dump_script);
	want = at = workdir_output(work, "bpftool prog dump xlated id %u | python3 dump.py", info->id);
	for (size_t i = 0; rt_bpf_decode(image->xlated, false, i, &insn); i += insn.wide ? 2 : 1) {
		char text[256], line[300];
		size_t len = strcspn(at, "\n");

		rt_bpf_text(&insn, i, &naming, text, sizeof(text));
		/* bpftool of Debian 12 is older than the move that adds this CPU's offset */
		if (insn.code == 0xbf && insn.off == -1)
			snprintf(text, sizeof(text), "r%u = r%u", insn.dst, insn.src);
		snprintf(line, sizeof(line), "%zu %s", i, text);
		if (len != strlen(line) || strncmp(line, at, len) != 0)
			fail_msg("bpftool: %.*s\nours: %s", (int)len, at, line);
		at += len + (at[len] == '\n');
		count++;
	}
	assert_int_equal(*at, 0);
	free(want);
	free(entry);
	rt_bpf_image_destroy(image);
	return count;
}

TEST(loaded_program_reads_as_in_bpftool)
{
	struct bpf_program_rig rig;

	bpf_program_load(&rig);
	assert_true(compare(&rig.work, &rig.info, rt_bytes_make(rig.btf, rig.btf_size)) >= 30);
	bpf_program_unload(&rig);
}

/* Our own programs are larger: loaded, not attached. */
TEST(our_programs_read_as_in_bpftool)
{
	const char *root = getenv("RT_BUILD_ROOT");
	struct bpf_program_rig rig;
	struct bpf_object *object;
	struct bpf_program *program;
	unsigned count = 0;
	char path[512];

	snprintf(path, sizeof(path), "%s/bpf/reftrace.bpf.o", root ?: ".");
	bpf_program_load(&rig);
	object = access(path, R_OK) == 0 ? bpf_object__open_file(path, NULL) : NULL;
	if (!object || bpf_object__load(object) != 0) {
		bpf_object__close(object);
		bpf_program_unload(&rig);
		print_message("skipped: %s cannot be loaded\n", path);
		skip();
	}
	bpf_object__for_each_program(program, object)
	{
		struct bpf_program_rig own = { .fd = bpf_program__fd(program) };

		if (own.fd < 0)
			continue;
		bpf_program_ask(&own);
		count += compare(&rig.work, &own.info, rt_bytes_make(own.btf, own.btf_size));
		for (unsigned i = 0; i < 9; i++)
			free(own.buffers[i]);
		free(own.btf);
	}
	print_message("%u instructions\n", count);
	assert_true(count > 100);
	bpf_object__close(object);
	bpf_program_unload(&rig);
}

TEST_MAIN();
