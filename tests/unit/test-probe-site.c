/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Site choice on hand-written code: want_X labels the instruction that must be
 * armed for f_X. Each case is one way to get it wrong.
 */
#include <inttypes.h>

#include "planned.h"

static const char assembly[] =
	".text\n"
	".macro FN name\n.globl f_\\name\n.type f_\\name,@function\nf_\\name:\n.endm\n"
	".macro END name\n.size f_\\name,.-f_\\name\n.balign 16\n.endm\n"
	"FN endbr\n endbr64\nwant_endbr: push %rbp\n mov %rsp,%rbp\n incl 8(%rdi)\n pop %rbp\n ret\nEND endbr\n"
	"FN test\n test %rdi,%rdi\nwant_test: je 1f\n incl 8(%rdi)\n1: ret\nEND test\n"
	/* a lock prefix never fires; behind it the counter has moved */
	"FN lock\n lock addl $1,8(%rdi)\nwant_lock: mov %rdi,%rax\n ret\nEND lock\n"
	"FN locksub\n lock subl $1,8(%rdi)\nwant_locksub: jne 1f\n nop\n1: ret\nEND locksub\n"
	"FN xadd\n mov $-1,%eax\n lock xadd %eax,8(%rdi)\nwant_xadd: nop\n ret\nEND xadd\n"
	"FN xaddreg\n lock xadd %esi,8(%rdi)\nwant_xaddreg: nop\n ret\nEND xaddreg\n"
	"FN store\n mov 8(%rdi),%eax\n lea 2(%rax),%edx\n mov %edx,8(%rdi)\nwant_store: nop\n ret\nEND store\n"
	"FN overwritten\n movl $1,8(%rdi)\nwant_overwritten: nop\n ret\nEND overwritten\n"
	"FN other\n decl 12(%rdi)\nwant_other: nop\n ret\nEND other\n"
	/* the object leaves its register */
	"FN gone\nwant_gone: mov 8(%rdi),%edi\n nop\n ret\nEND gone\n"
	"FN copy\n mov %rdi,%rbx\n xor %edi,%edi\nwant_copy: nop\n ret\nEND copy\n"
	"FN half\nwant_half: mov %edi,%ebx\n xor %edi,%edi\n nop\n ret\nEND half\n"
	"FN moved\nwant_moved: lea 8(%rdi),%rdi\n nop\n ret\nEND moved\n"
	/* places that do not run once per call */
	"FN loop\nwant_loop: mov 8(%rdi),%eax\n1: nop\n dec %eax\n jne 1b\n ret\nEND loop\n"
	"FN joined\nwant_joined: mov 8(%rdi),%eax\n1: nop\n test %eax,%eax\n je f_joined.cold\n ret\nEND joined\n"
	".type f_joined.cold,@function\nf_joined.cold: mov $3,%eax\n jmp 1b\n.size f_joined.cold,.-f_joined.cold\n"
	"FN branch\nwant_branch: mov 8(%rdi),%eax\n ret\n nop\nEND branch\n"
	"FN stuck\n lock incl 8(%rdi)\n1: nop\n jmp 1b\nEND stuck\n"
	/* frames */
	"FN frame\n sub $24,%rsp\nwant_frame: call f_test\n add $24,%rsp\n ret\nEND frame\n"
	"FN align\nwant_align: lea 8(%rsp),%r10\n and $-16,%rsp\n nop\n lea -8(%r10),%rsp\n ret\nEND align\n"
	"FN nop5\n .byte 0x0f,0x1f,0x44,0,0\nwant_nop5: nop\n ret\nEND nop5\n"
	"FN tail\nwant_tail: jmp f_test\nEND tail\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static const struct {
	const char *name;
	enum rt_probe_cost cost;
	uint8_t reg;
	int32_t cfa_delta;
	int bias; /* 99: the counter is unknown there */
} cases[] = {
	{ "endbr", RT_COST_EMULATED, RT_REG_RDI, 8, 0 },  { "test", RT_COST_EMULATED, RT_REG_RDI, 8, 0 },
	{ "lock", RT_COST_STEP, RT_REG_RDI, 8, -1 },      { "locksub", RT_COST_EMULATED, RT_REG_RDI, 8, 1 },
	{ "xadd", RT_COST_EMULATED, RT_REG_RDI, 8, 1 },   { "xaddreg", RT_COST_EMULATED, RT_REG_RDI, 8, 99 },
	{ "store", RT_COST_EMULATED, RT_REG_RDI, 8, -2 }, { "overwritten", RT_COST_EMULATED, RT_REG_RDI, 8, 99 },
	{ "other", RT_COST_EMULATED, RT_REG_RDI, 8, 0 },  { "gone", RT_COST_STEP, RT_REG_RDI, 8, 0 },
	{ "copy", RT_COST_EMULATED, RT_REG_RBX, 8, 0 },   { "half", RT_COST_STEP, RT_REG_RDI, 8, 0 },
	{ "moved", RT_COST_STEP, RT_REG_RDI, 8, 0 },      { "loop", RT_COST_STEP, RT_REG_RDI, 8, 0 },
	{ "joined", RT_COST_STEP, RT_REG_RDI, 8, 0 },     { "branch", RT_COST_STEP, RT_REG_RDI, 8, 0 },
	{ "frame", RT_COST_EMULATED, RT_REG_RDI, 32, 0 }, { "align", RT_COST_STEP, RT_REG_RDI, 8, 0 },
	{ "nop5", RT_COST_EMULATED, RT_REG_RDI, 8, 0 },   { "tail", RT_COST_EMULATED, RT_REG_RDI, 8, 0 },
};

static uint64_t label(struct workdir *f, const char *prefix, const char *name)
{
	_cleanup_free_ char *text = workdir_output(f, "nm code.o | awk '$3 == \"%s%s\" { print $1 }'", prefix, name);
	uint64_t addr;

	assert_int_equal(sscanf(text, "%" SCNx64, &addr), 1);
	return addr;
}

static void setup(struct workdir *f, struct planned *p)
{
	workdir_make(f);
	workdir_write(f, "code.s", assembly);
	workdir_run(f, "gcc -c code.s -o code.o && gcc -shared -nostdlib code.o -o code.so && cp code.so code.o");
	planned_open(p, workdir_path(f, "code.so"));
}

TEST(entry_points)
{
	struct workdir f;
	struct planned p;

	setup(&f, &p);
	planned_make(&p, "type=t get=f_*:1 counter=+8:4", NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[64];
		const struct rt_point *point;

		snprintf(name, sizeof(name), "f_%s", cases[i].name);
		print_message("%s\n", name);
		point = planned_point(&p, name);
		assert_non_null(point);
		assert_int_equal(point->address.v, label(&f, "want_", cases[i].name));
		assert_int_equal(point->function.v, label(&f, "f_", cases[i].name));
		assert_int_equal(point->cost, cases[i].cost);
		assert_int_equal(point->reg, cases[i].reg);
		assert_int_equal(point->cfa_delta, cases[i].cfa_delta);
		assert_int_equal(point->kind, RT_POINT_ENTRY);
		if (cases[i].bias == 99) {
			assert_int_equal(point->counter_offset, RT_COUNTER_UNKNOWN);
		} else {
			assert_int_equal(point->counter_offset, 8);
			assert_int_equal(point->counter_bias, cases[i].bias);
		}
	}
	assert_null(planned_point(&p, "f_stuck"));
	assert_non_null(strstr(planned_why(&p, "f_stuck"), "lock prefix"));
	assert_null(planned_point(&p, "f_joined.cold"));
	planned_close(&p);
	workdir_remove(&f);
}

/* sp must still point to the return address, and no object is read */
TEST(return_points)
{
	struct workdir f;
	struct planned p;

	setup(&f, &p);
	planned_make(&p, "type=t new=f_endbr,f_frame,f_gone put=f_lock:1?ret!=0,f_stuck:1?ret==0", NULL);
	assert_int_equal(planned_point(&p, "f_endbr")->address.v, label(&f, "want_", "endbr"));
	assert_int_equal(planned_point(&p, "f_endbr")->kind, RT_POINT_RETURN);
	assert_int_equal(planned_point(&p, "f_endbr")->reg, RT_REG_NONE);
	/* the call in the frame is cheap, but sp has moved */
	assert_int_equal(planned_point(&p, "f_frame")->address.v, label(&f, "f_", "frame"));
	assert_int_equal(planned_point(&p, "f_gone")->cfa_delta, 8);
	assert_int_equal(planned_point(&p, "f_lock")->address.v, label(&f, "want_", "lock"));
	assert_int_equal(planned_point(&p, "f_lock")->reg, RT_REG_RDI);
	assert_non_null(planned_why(&p, "f_stuck"));
	planned_close(&p);
	workdir_remove(&f);
}

TEST(first_instruction_when_asked)
{
	static const struct rt_plan_options options = { .first_insn = true };
	struct workdir f;
	struct planned p;

	setup(&f, &p);
	planned_make(&p, "type=t get=f_endbr,f_lock new=f_test", &options);
	assert_int_equal(planned_point(&p, "f_endbr")->address.v, label(&f, "f_", "endbr"));
	assert_null(planned_point(&p, "f_lock"));
	assert_string_equal(planned_why(&p, "f_test"), "its result is needed, and this engine does not see results");
	planned_close(&p);
	workdir_remove(&f);
}

TEST(nop5_is_taken_where_it_is_safe)
{
	static const struct rt_plan_options options = { .avoid_nop5 = false };
	struct workdir f;
	struct planned p;

	setup(&f, &p);
	planned_make(&p, "type=t get=f_nop5", &options);
	assert_int_equal(planned_point(&p, "f_nop5")->address.v, label(&f, "f_", "nop5"));
	assert_int_equal(planned_point(&p, "f_nop5")->cost, RT_COST_AVOID);
	planned_close(&p);
	workdir_remove(&f);
}

TEST_MAIN();
