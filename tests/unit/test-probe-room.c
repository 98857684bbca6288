/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room for a jump on hand-written code: want_X labels the instruction that must be seen in f_X; functions without one
 * have no room, and must be refused. Each case is one way to write over what something else leads to.
 */
#include <inttypes.h>

#include "planned.h"

static const char assembly[] =
	".text\n"
	".macro FN name\n.globl f_\\name\n.type f_\\name,@function\nf_\\name:\n.endm\n"
	".macro END name\n.size f_\\name,.-f_\\name\n.balign 16\n.endm\n"
	"FN lock\nwant_lock: lock incl 8(%rdi)\n ret\nEND lock\n"
	"FN padded\nwant_padded: ret\nEND padded\n"
	/* the next function begins where the jump would end */
	"FN tight\n incl 8(%rdi)\n ret\n.size f_tight,.-f_tight\n.type other,@function\nother: ret\n.size "
	"other,.-other\n"
	".balign 16\n"
	"FN inside\n mov 8(%rdi),%eax\n1: dec %eax\n jne 1b\n ret\nEND inside\n"
	"FN behind\n mov 8(%rdi),%eax\n1: nop\n mov %rdi,%rbx\n mov %rbx,%rdx\n test %eax,%eax\n jne 1b\n "
	"ret\n"
	"END behind\n"
	"FN cold\n mov 8(%rdi),%eax\n1: nop\n nop\n ret\nEND cold\n"
	".type f_cold.cold,@function\nf_cold.cold: mov $3,%eax\n jmp 1b\n.size f_cold.cold,.-f_cold.cold\n.balign 16\n"
	"FN forward\nwant_forward: test %rdi,%rdi\n je 1f\n incl 8(%rdi)\n1: ret\nEND forward\n"
	/* a call returns to its old place */
	"FN calls\nwant_calls: nop\n call f_padded\n ret\nEND calls\n"
	"FN early\n call *%rax\n nop\n nop\n nop\n ret\nEND early\n"
	"FN loops\n 1: loop 1b\n nop\n nop\n nop\n ret\nEND loops\n"
	/* jump tables: one that leads elsewhere, one that leads into the window, and one that nobody finds */
	"FN table\nwant_table: mov %rdi,%rcx\n cmp $1,%esi\n ja 9f\n lea t1(%rip),%rdx\n movslq (%rdx,%rsi,4),%rax\n"
	" add %rdx,%rax\n jmp *%rax\n7: incl 8(%rcx)\n8: ret\n9: ret\nEND table\n"
	"FN back\n mov %rdi,%rcx\n6: cmp $1,%esi\n ja 9f\n lea t2(%rip),%rdx\n movslq (%rdx,%rsi,4),%rax\n add "
	"%rdx,%rax\n"
	" jmp *%rax\n9: ret\nEND back\n"
	"FN unknown\n mov %rdi,%rcx\n movslq (%rdx,%rsi,4),%rax\n add %rdx,%rax\n jmp *%rax\nEND unknown\n"
	/* no table: a tail call through a pointer */
	"FN pointer\nwant_pointer: mov 16(%rdi),%rax\n xor %esi,%esi\n jmp *%rax\nEND pointer\n"
	".section .rodata\n.balign 4\nt1: .long 7b-t1, 8b-t1\n.long 0x7fffffff\nt2: .long 6b-t2, 6b-t2\n.long "
	"0x7fffffff\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static const char *const names[] = { "lock",  "padded", "tight", "inside", "behind", "cold",    "forward",
				     "calls", "early",  "loops", "table",  "back",   "unknown", "pointer" };

/* Address of a label; false: there is none. */
static bool label(struct workdir *f, const char *prefix, const char *name, uint64_t *ret)
{
	_cleanup_free_ char *text = workdir_output(f, "nm code.so | awk '$3 == \"%s%s\" { print $1 }'", prefix, name);

	return sscanf(text, "%" SCNx64, ret) == 1;
}

TEST(room_for_a_jump)
{
	struct rt_plan_options options = { .room = 5, .return_points = true };
	struct workdir f;
	struct planned p;

	workdir_make(&f);
	workdir_write(&f, "code.s", assembly);
	workdir_run(&f, "gcc -c code.s -o code.o && gcc -shared -nostdlib code.o -o code.so");
	planned_open(&p, workdir_path(&f, "code.so"));
	planned_make(&p, "type=t get=f_*:1 counter=+8:4", &options);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct rt_point *point;
		uint64_t want;
		char name[64];

		snprintf(name, sizeof(name), "f_%s", names[i]);
		print_message("%s\n", name);
		point = planned_point(&p, name);
		if (!label(&f, "want_", names[i], &want)) {
			assert_null(point);
			assert_non_null(strstr(planned_why(&p, name), "room"));
			continue;
		}
		assert_non_null(point);
		assert_int_equal(point->address.v, want);
		assert_int_equal(point->before, 0);
	}
	planned_close(&p);
	workdir_remove(&f);
}

TEST_MAIN();
