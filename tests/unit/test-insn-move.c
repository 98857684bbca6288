/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moved instructions are run: what they do in their new place is what they do in the old one. Here all of a snippet up
 * to `bytes` is moved, and the rest is reached by a jump, as the engine does it.
 */
#include <string.h>
#include <sys/mman.h>

#include "elf/image.h"
#include "insn/move.h"
#include "test.h"

enum { PAGE = 4096, HELPER = 256, WORD = 320 };

typedef uint64_t (*snippet)(uint64_t argument);

static struct {
	uint8_t *old, *new; /* pages; old also holds what snippets refer to */
	struct rt_decoder *decoder;
} rig;

static void begin(void)
{
	/* mov (%rsp), %rax; ret: tells where it would return to */
	static const uint8_t helper[] = { 0x48, 0x8b, 0x04, 0x24, 0xc3 };
	uint64_t address;

	rig.old = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(rig.old != MAP_FAILED);
	rig.new = rig.old + 63 * PAGE;
	memcpy(rig.old + HELPER, helper, sizeof(helper));
	address = (uint64_t)(uintptr_t)rig.old + HELPER;
	memcpy(rig.old + WORD, &address, sizeof(address));
	assert_ok(rt_decoder_create(RT_MACHINE_X86_64, &rig.decoder));
}

static void end(void)
{
	munmap(rig.old, 64 * PAGE);
	rt_decoder_destroy(rig.decoder);
}

static bool move(struct rt_bytes rest, uint64_t from, uint64_t to, uint8_t *out, size_t *ret, size_t *ret_length)
{
	struct rt_insn insn;

	/* the ELF address is another one than that in the process */
	if (!rt_decode(rig.decoder, rest, (struct rt_elfaddr){ from - 0x1000 }, &insn))
		return false;
	*ret_length = insn.length;
	assert_int_equal(rt_insn_moves(rest, &insn), rt_insn_move(rest, &insn, from, to, out, ret));
	return rt_insn_moves(rest, &insn);
}

/* Moves the first `bytes` of code, and gives both. */
static void place(const uint8_t *code, size_t size, size_t bytes, snippet *ret_old, snippet *ret_new)
{
	uint64_t old = (uint64_t)(uintptr_t)rig.old, new = (uint64_t)(uintptr_t)rig.new;
	size_t done = 0, n = 0, length = 0, moved = 0;

	memcpy(rig.old, code, size);
	while (done < bytes) {
		assert_true(move(rt_bytes_make(rig.old + done, size - done), old + done, new + n, rig.new + n, &moved,
				 &length));
		assert_true(moved <= RT_MOVE_MAX);
		done += length;
		n += moved;
	}
	assert_int_equal(done, bytes);
	rt_insn_jump(old + done, rig.new + n);
	*ret_old = (snippet)(uintptr_t)rig.old;
	*ret_new = (snippet)(uintptr_t)rig.new;
}

static void check(const uint8_t *code, size_t size, size_t bytes, const uint64_t *arguments, size_t count,
		  uint64_t want_differ)
{
	snippet old, new;
	uint64_t first = 0;

	place(code, size, bytes, &old, &new);
	for (size_t i = 0; i < count; i++) {
		uint64_t want = old(arguments[i]);

		assert_int_equal(new (arguments[i]), want);
		if (!i)
			first = want;
		else if (want_differ)
			assert_int_not_equal(want, first);
	}
}

#define CHECK(bytes, differ, arguments, ...) \
	do { \
		static const uint8_t code_[] = { __VA_ARGS__ }; \
		const uint64_t arguments_[] = arguments; \
		check(code_, sizeof(code_), bytes, arguments_, sizeof(arguments_) / sizeof(arguments_[0]), differ); \
	} while (0)
#define ARG(...) \
	{ \
		__VA_ARGS__ \
	}
#define REL(target, end) (uint8_t)((target) - (end)), (uint8_t)(((target) - (end)) >> 8), 0, 0

TEST(relative_to_rip)
{
	begin();
	CHECK(7, 0, ARG(1), 0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xc3); /* lea 0x10(%rip), %rax */
	CHECK(7, 0, ARG(1), 0x48, 0x8b, 0x05, REL(WORD, 7), 0xc3);  /* mov WORD(%rip), %rax */
	CHECK(11, 0, ARG(1), 0x48, 0xc7, 0x05, REL(WORD + 8, 11), 7, 0, 0, 0, 0x48, 0x8b, 0x05, REL(WORD + 8, 18),
	      0xc3); /* movq $7, WORD+8(%rip): immediate behind */
	CHECK(8, 0, ARG(1), 0xf3, 0x0f, 0x7e, 0x05, REL(WORD, 8), 0x66, 0x48, 0x0f, 0x7e, 0xc0,
	      0xc3); /* movq WORD(%rip), %xmm0 */
	end();
}

TEST(calls_return_behind_their_old_place)
{
	uint64_t helper;

	begin();
	helper = (uint64_t)(uintptr_t)rig.old + HELPER;
	CHECK(5, 0, ARG(1), 0xe8, REL(HELPER, 5), 0xc3);                              /* call helper */
	CHECK(2, 0, ARG(helper), 0xff, 0xd7, 0xc3);                                   /* call *%rdi */
	CHECK(6, 0, ARG(1), 0xff, 0x15, REL(WORD, 6), 0xc3);                          /* call *WORD(%rip) */
	CHECK(6, 0, ARG(helper - 16 + WORD - HELPER), 0xff, 0x97, 16, 0, 0, 0, 0xc3); /* call *16(%rdi) */
	CHECK(6, 0, ARG(helper), 0x49, 0x89, 0xfb, 0x41, 0xff, 0xd3, 0xc3);           /* mov %rdi, %r11; call *%r11 */
	end();
}

TEST(branches)
{
	begin();
	/* test %edi, %edi; je; mov $1; ret; mov $2; ret */
	CHECK(4, 1, ARG(1, 0), 0x85, 0xff, 0x74, 6, 0xb8, 1, 0, 0, 0, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3);
	CHECK(8, 1, ARG(1, 0), 0x85, 0xff, 0x0f, 0x84, 6, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3);
	CHECK(4, 1, ARG(1, 0), 0x85, 0xff, 0x7f, 6, 0xb8, 1, 0, 0, 0, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3);
	/* jmp over a mov */
	CHECK(2, 0, ARG(1), 0xeb, 6, 0xb8, 1, 0, 0, 0, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3);
	CHECK(5, 0, ARG(1), 0xe9, 6, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3);
	/* add $1, %rdi; mov %rdi, %rax: as they are */
	CHECK(7, 1, ARG(5, 9), 0x48, 0x83, 0xc7, 1, 0x48, 0x89, 0xf8, 0xc3);
	end();
}

#define REFUSED(...) \
	do { \
		static const uint8_t code_[] = { __VA_ARGS__ }; \
		uint8_t out_[RT_MOVE_MAX]; \
		size_t n_, length_; \
		assert_false(move(rt_bytes_make(code_, sizeof(code_)), 0x10000, 0x20000, out_, &n_, &length_)); \
	} while (0)

TEST(what_cannot_be_moved)
{
	struct rt_insn insn;
	uint8_t out[RT_MOVE_MAX];
	static const uint8_t lea[] = { 0x48, 0x8d, 0x05, 0x10, 0, 0, 0 };
	size_t n;

	begin();
	REFUSED(0xe2, 0xfe);             /* loop */
	REFUSED(0xe3, 0x02);             /* jrcxz */
	REFUSED(0xff, 0x14, 0x24);       /* call *(%rsp): read behind the push */
	REFUSED(0xff, 0xd4);             /* call *%rsp */
	REFUSED(0xc7, 0xf8, 0, 0, 0, 0); /* xbegin */
	REFUSED(0xe8, 0, 0);             /* cut */
	/* too far away */
	assert_true(rt_decode(rig.decoder, rt_bytes_make(lea, sizeof(lea)), (struct rt_elfaddr){ 0x1000 }, &insn));
	assert_true(rt_insn_moves(rt_bytes_make(lea, sizeof(lea)), &insn));
	assert_false(rt_insn_move(rt_bytes_make(lea, sizeof(lea)), &insn, 0x1000, 0x200000000, out, &n));
	end();
}

TEST_MAIN();
