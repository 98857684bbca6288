/* SPDX-License-Identifier: GPL-2.0-only */
/* Plans over compiled programs: names, clones, files, inlined instances, counters; and what is said about the rest. */
#include <inttypes.h>

#include "planned.h"

static const char program[] =
	"#include <stdlib.h>\n"
	"struct obj { long pad; int refs; char name[20]; };\n"
	"#define API __attribute__((noinline))\n"
	"API struct obj *obj_new(void) { struct obj *o = calloc(1, sizeof(*o)); if (o) o->refs = 1; return o; }\n"
	"API struct obj *obj_get(struct obj *o) { if (o) o->refs++; return o; }\n"
	"API void obj_put(struct obj *o) { if (o && --o->refs == 0) free(o); }\n"
	"API int obj_tryget(struct obj *o) { if (!o->refs) return 0; o->refs++; return 1; }\n"
	"API void obj_drop(struct obj **o) { obj_put(*o); *o = 0; }\n"
	"API int obj_open(int n, struct obj **out) { *out = obj_new(); return n; }\n"
	"struct obj *obj_alias(struct obj *o) __attribute__((alias(\"obj_get\")));\n"
	"static void *pick(void) { return obj_get; }\n"
	"void *obj_chosen(void) __attribute__((ifunc(\"pick\")));\n"
	"int main(void) { struct obj *o = obj_new(), *p; obj_get(o); obj_tryget(o); obj_put(o); obj_drop(&o);\n"
	"  obj_open(1, &p); return obj_chosen() != 0; }\n";

static void build(struct workdir *w, struct planned *p, const char *how)
{
	workdir_make(w);
	workdir_write(w, "prog.c", program);
	workdir_run(w, "%s -o prog prog.c", how);
	planned_open(p, workdir_path(w, "prog"));
}

static void finish(struct workdir *w, struct planned *p)
{
	planned_close(p);
	workdir_remove(w);
}

static uint64_t address_of(struct workdir *w, const char *name)
{
	_cleanup_free_ char *text = workdir_output(w, "nm prog | awk '$3 == \"%s\" { print $1 }'", name);
	uint64_t addr = 0;

	assert_int_equal(sscanf(text, "%" SCNx64, &addr), 1);
	return addr;
}

/* those that count: not where code implies that an object goes */
static size_t counting(const struct rt_plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->points.len; i++)
		n += !plan->points.data[i].guessed;
	return n;
}

static const char *const builds[] = {
	"gcc -O0",      "gcc -O2",     "gcc -O2 -fcf-protection=full", "gcc -O2 -fno-omit-frame-pointer",
	"clang-14 -O0", "clang-14 -O2"
};

TEST(every_compiler_and_level)
{
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct workdir w;
		struct planned p;
		const struct rt_point *point;

		print_message("%s\n", builds[i]);
		build(&w, &p, builds[i]);
		planned_make(&p,
			     "type=obj new=obj_new get=obj_get,obj_tryget:1?ret!=0 put=obj_put,obj_drop:*1 "
			     "hidden=obj_open:out*2?ret>0",
			     NULL);
		assert_int_equal(counting(p.plan), 6);
		assert_int_equal(p.plan->refused.len, 0);
		/* no debug info: read from the code */
		assert_int_equal(p.plan->types.data[0].counter_offset, 8);
		assert_int_equal(p.plan->types.data[0].counter_size, 4);
		assert_string_equal(p.plan->types.data[0].counter_from, "inferred");
		for (size_t k = 0; k < p.plan->points.len; k++) {
			point = &p.plan->points.data[k];
			if (point->guessed)
				continue;
			assert_int_equal(point->function.v, address_of(&w, point->name));
			assert_int_not_equal(point->cost, RT_COST_NEVER);
			assert_true(point->address.v - point->function.v < 64);
			assert_true(point->cfa_delta >= 8);
		}
		assert_int_equal(planned_point(&p, "obj_drop")->deref, 1);
		assert_int_equal(planned_point(&p, "obj_drop")->place, RT_PLACE_ARG_PTR);
		point = planned_point(&p, "obj_tryget");
		assert_int_equal(point->kind, RT_POINT_RETURN);
		assert_int_equal(point->cfa_delta, 8);
		assert_int_equal(point->condition, RT_IF_NONZERO);
		assert_int_equal(point->flags, RT_EV_AT_RETURN);
		point = planned_point(&p, "obj_open");
		assert_int_equal(point->reg, RT_REG_RSI);
		assert_int_equal(point->place, RT_PLACE_OUT);
		assert_int_equal(point->flags, RT_EV_AT_RETURN | RT_EV_HIDDEN);
		assert_int_equal(point->delta, 1);
		/* at return the get is over: the count is told as it is then */
		assert_int_equal(point->counter_offset, 8);
		assert_int_equal(point->counter_bias, 0);
		assert_int_equal(planned_point(&p, "obj_put")->delta, -1);
		finish(&w, &p);
	}
}

TEST(debug_info_tells_size_and_counter)
{
	struct workdir w;
	struct planned p;

	build(&w, &p, "gcc -O1 -g");
	planned_make(&p, "type=obj get=obj_get put=obj_put,obj_tryget:1?ret!=0\n[two] get=obj_drop:*1 counter=obj.pad",
		     NULL);
	assert_int_equal(p.plan->types.data[0].counter_offset, 8);
	assert_string_equal(p.plan->types.data[0].counter_from, "debug info");
	assert_int_equal(p.plan->types.data[0].object_size, 32);
	assert_int_equal(p.plan->types.data[1].counter_offset, 0);
	assert_int_equal(p.plan->types.data[1].counter_size, 8);
	assert_string_equal(p.plan->types.data[1].counter_from, "told");
	assert_int_equal(planned_point(&p, "obj_tryget")->result_size, 4);
	finish(&w, &p);
}

TEST(a_counter_is_an_integer)
{
	struct workdir w;
	struct planned p;

	build(&w, &p, "gcc -O1 -g");
	planned_make(&p, "type=obj get=obj_get put=obj_put counter=obj.name", NULL);
	assert_int_equal(p.plan->types.data[0].counter_size, 0);
	assert_non_null(strstr(planned_why(&p, "obj.name"), "20 bytes"));
	finish(&w, &p);
}

TEST(aliases_globs_files_addresses)
{
	struct workdir w;
	struct planned p;
	char text[256];

	build(&w, &p, "gcc -O1");
	snprintf(text, sizeof(text), "type=a get=obj_g*,obj_alias,obj_get@prog put=obj_put@lib*,0x%" PRIx64 "@prog:1",
		 address_of(&w, "obj_drop"));
	planned_make(&p, text, NULL);
	/* obj_get and its alias are one place; obj_put is in no lib */
	assert_int_equal(p.plan->points.len, 2);
	assert_non_null(planned_point(&p, "obj_get"));
	assert_non_null(planned_point(&p, "obj_drop"));
	assert_int_equal(p.plan->refused.len, 0);
	finish(&w, &p);
}

TEST(a_function_counts_for_one_type)
{
	struct workdir w;
	struct planned p;

	build(&w, &p, "gcc -O1");
	planned_make(&p, "[a] get=obj_get put=obj_put [b] get=obj_alias free=obj_put", NULL);
	assert_int_equal(counting(p.plan), 3);
	assert_string_equal(planned_why(&p, "obj_alias"), "it is already counted for type a");
	finish(&w, &p);
}

TEST(ifuncs_are_refused)
{
	struct workdir w;
	struct planned p;

	build(&w, &p, "gcc -O1");
	planned_make(&p, "type=a get=obj_chosen put=obj_put", NULL);
	assert_null(planned_point(&p, "obj_chosen"));
	assert_non_null(strstr(planned_why(&p, "obj_chosen"), "IFUNC"));
	finish(&w, &p);
}

TEST(clones)
{
	static const char code[] = ".text\n.macro FN name\n.type \\name,@function\n\\name: push %rbp\n pop %rbp\n ret\n"
				   ".size \\name,.-\\name\n.endm\nFN obj_get.isra.0\nFN obj_put.constprop.0\n"
				   "FN obj_put.part.0\nFN obj_get.cold\nFN obj_late.isra.0\nFN other.foo\n";
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "c.s", code);
	workdir_run(&w, "gcc -shared -nostdlib -o c.so c.s");
	planned_open(&p, workdir_path(&w, "c.so"));
	planned_make(&p, "type=a get=obj_get,obj_late:2,other put=obj_put [b] use=obj_put.part.0", NULL);
	assert_int_equal(p.plan->points.len, 3);
	assert_non_null(planned_point(&p, "obj_get"));
	assert_non_null(planned_point(&p, "obj_put"));
	assert_non_null(planned_point(&p, "obj_put.part.0"));
	assert_string_equal(planned_why(&p, "obj_late"), "compiled as obj_late.isra.0: argument 2 may be elsewhere");
	finish(&w, &p);
}

TEST(inlined_instances)
{
	static const char code[] =
		"struct obj { long pad; int refs; };\nvoid sink(struct obj *);\n"
		"static inline struct obj *obj_get(struct obj *o) { __atomic_add_fetch(&o->refs, 1, 5); return o; }\n"
		"static inline struct obj *obj_find(struct obj *o) { sink(o); return o; }\n"
		"void one(struct obj *o) { obj_get(o); sink(o); }\n"
		"void two(struct obj *o, struct obj *p) { sink(p); obj_get(o); sink(obj_find(p)); }\n"
		"void obj_put(struct obj *o) { __atomic_sub_fetch(&o->refs, 1, 5); }\n";
	struct workdir w;
	struct planned p;
	size_t inlined = 0;

	workdir_make(&w);
	workdir_write(&w, "i.c", code);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o i.so i.c");
	planned_open(&p, workdir_path(&w, "i.so"));
	planned_make(&p, "type=obj get=obj_get put=obj_put hidden=obj_find", NULL);
	for (size_t i = 0; i < p.plan->points.len; i++) {
		const struct rt_point *point = &p.plan->points.data[i];
		_cleanup_free_ char *insn = NULL;

		if (!(point->flags & RT_EV_INLINE))
			continue;
		inlined++;
		assert_int_equal(point->kind, RT_POINT_INSN);
		assert_string_equal(point->name, "obj_get");
		/* the instance is one locked add, which cannot be armed: the next instruction, the count put right */
		assert_true(point->address.v > point->function.v);
		assert_int_equal(point->counter_offset, 8);
		assert_int_equal(point->counter_bias, -1);
		assert_true(point->cfa_delta > 0 && point->cfa_delta % 8 == 0);
		insn = workdir_output(&w, "objdump -d --start-address=%" PRIu64 " --stop-address=%" PRIu64 " i.so",
				      point->function.v, point->address.v);
		assert_non_null(strstr(insn, "lock"));
	}
	assert_int_equal(inlined, 2);
	/* what a find takes inside its inlined instances is seen by itself */
	assert_null(planned_why(&p, "obj_find"));
	planned_close(&p);
	planned_open(&p, workdir_path(&w, "i.so"));
	planned_make(&p, "type=obj new=obj_find put=obj_put", NULL);
	assert_non_null(strstr(planned_why(&p, "obj_find"), "inlined at 1 place,"));
	planned_close(&p);
	planned_open(&p, workdir_path(&w, "i.so"));
	planned_make(&p, "type=obj get=obj_get put=obj_put", &(struct rt_plan_options){ .no_inline = true });
	assert_int_equal(p.plan->points.len, 1);
	finish(&w, &p);
}

/* the compiler may put the counting instruction before the place where the instance is said to begin */
TEST(inlined_counting_that_moved_ahead)
{
	static const char code[] =
		"struct obj { long pad; int refs; };\nint use(struct obj *);\nvoid gone(struct obj *);\n"
		"static inline void obj_put(struct obj *o) { if (--o->refs == 0) gone(o); }\n"
		"int one(struct obj *o) { int r = use(o); obj_put(o); return r; }\n";
	struct workdir w;
	struct planned p;
	const struct rt_point *point;
	_cleanup_free_ char *code_at = NULL;

	workdir_make(&w);
	workdir_write(&w, "i.c", code);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o i.so i.c");
	planned_open(&p, workdir_path(&w, "i.so"));
	planned_make(&p, "type=obj put=obj_put", NULL);
	assert_int_equal(p.plan->points.len, 1);
	point = &p.plan->points.data[0];
	assert_int_equal(point->counter_offset, 8);
	/* the oracle: does the subtraction still lie ahead of us? */
	code_at = workdir_output(&w, "objdump -d --start-address=%" PRIu64 " --stop-address=%" PRIu64 " i.so",
				 point->address.v, point->address.v + 8);
	assert_int_equal(point->counter_bias, strstr(code_at, "sub") ? 0 : 1);
	finish(&w, &p);
}

/* how many locked instructions lie in [from, to) of i.so */
static int locked_in(struct workdir *w, uint64_t from, uint64_t to)
{
	_cleanup_free_ char *code = NULL;
	int n = 0;

	if (from >= to)
		return 0;
	code = workdir_output(w, "objdump -d --start-address=%" PRIu64 " --stop-address=%" PRIu64 " i.so", from, to);
	for (const char *at = code; (at = strstr(at, "lock ")); at++)
		n++;
	return n;
}

/* two locked instances, one after the other: the probe of the second one may stand before both */
TEST(inlined_instances_in_a_row)
{
	static const char code[] =
		"struct obj { long pad[16]; int refs; };\nlong make(long);\nvoid gone(struct obj *);\n"
		"static inline void obj_get(struct obj *o) { __atomic_add_fetch(&o->refs, 1, 5); }\n"
		"static inline void obj_end(struct obj *o) { if (!__atomic_sub_fetch(&o->refs, 1, 5)) gone(o); }\n"
		"long one(struct obj *o) { long n; if (!o) return 0; obj_get(o); obj_get(o); n = make(o->pad[2]); "
		"obj_end(o); "
		"return n; }\n"
		"void obj_put(struct obj *o) { obj_end(o); }\n";
	struct workdir w;
	struct planned p;
	int inlined = 0, before = 0;

	workdir_make(&w);
	workdir_write(&w, "i.c", code);
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o i.so i.c");
	planned_open(&p, workdir_path(&w, "i.so"));
	planned_make(&p, "type=obj get=obj_get put=obj_put", NULL);
	for (size_t i = 0; i < p.plan->points.len; i++) {
		const struct rt_point *point = &p.plan->points.data[i];
		int between = locked_in(&w, point->address.v, point->function.v);

		if (!(point->flags & RT_EV_INLINE) || strcmp(point->name, "obj_get") != 0)
			continue;
		inlined++;
		before += between > 0;
		assert_int_equal(point->counter_bias, between - locked_in(&w, point->function.v, point->address.v));
	}
	assert_int_equal(inlined, 2);
	print_message("%d of the probes stand before both\n", before);
	finish(&w, &p);
}

/* a library gives back through the function that its public one jumps to */
TEST(wrappers_that_end_in_a_jump)
{
	static const char code[] =
		"#include <stdio.h>\nstruct obj { long pad; int refs; };\nvoid gone(struct obj *, int);\n"
		"static __attribute__((noinline)) void inner(struct obj *o, int how) { if (--o->refs == 0) gone(o, "
		"how); }\n"
		"void obj_put(struct obj *o) { if (!o) { puts(\"null\"); return; } inner(o, 0); }\n"
		"void obj_put2(struct obj *o) { if (!o) { puts(\"null\"); return; } obj_put(o); }\n"
		"void obj_put3(struct obj *o) { if (o->pad) inner(o, 2); else gone(o, 3); }\n"
		"void obj_get(struct obj *o) { o->refs++; }\n"
		"void all_put(struct obj **o) { for (; *o; o++) inner(*o, 1); }\n";
	struct workdir w;
	struct planned p;
	_cleanup_free_ char *inner = NULL;

	workdir_make(&w);
	workdir_write(&w, "t.c", code);
	workdir_run(&w,
		    "gcc -O2 -fPIC -shared -fno-semantic-interposition -Wl,-Bsymbolic -fno-inline -o full.so t.c && "
		    "strip -o t.so full.so");
	inner = workdir_output(&w, "nm full.so | awk '$3 ~ /^inner/ { print $1 }'");
	planned_open(&p, workdir_path(&w, "t.so"));
	planned_make(&p, "type=obj get=obj_get put=obj_put:1:tail counter=+8:4", NULL);
	assert_int_equal(planned_point(&p, "obj_put")->function.v, strtoull(inner, NULL, 16));
	assert_int_equal(planned_point(&p, "obj_put")->counter_offset, 8);
	planned_close(&p);
	/* not asked for; a jump to what others can call; several */
	for (int i = 0; i < 3; i++) {
		static const char *const specs[] = { "type=obj get=obj_get put=obj_put",
						     "type=obj get=obj_get put=obj_put2:tail",
						     "type=obj get=obj_get:tail put=obj_put" };

		planned_open(&p, workdir_path(&w, "t.so"));
		planned_make(&p, specs[i], NULL);
		for (size_t k = 0; k < p.plan->points.len; k++)
			assert_int_not_equal(p.plan->points.data[k].function.v, strtoull(inner, NULL, 16));
		planned_close(&p);
	}
	workdir_remove(&w);
}

/* T **: behind a store the slot may be cleared, or its object changed */
TEST(counting_behind_a_slot)
{
	struct workdir w;
	struct planned p;
	const struct rt_point *point;

	workdir_make(&w);
	workdir_write(
		&w, "s.s",
		".text\n.globl s_put\n.type s_put,@function\ns_put: mov (%rdi),%rax\n lock subl $1,8(%rax)\n je 1f\n"
		"1: ret\n.size s_put,.-s_put\n.globl s_ref\n.type s_ref,@function\ns_ref: mov (%rdi),%rax\n"
		" test %rax,%rax\n je 1f\n lock addl $1,8(%rax)\n1: ret\n.size s_ref,.-s_ref\n"
		".globl s_clear\n.type s_clear,@function\ns_clear: mov (%rdi),%rax\n movq $0,(%rdi)\n test %rax,%rax\n"
		" je 1f\n subl $1,8(%rax)\n1: ret\n.size s_clear,.-s_clear\n");
	workdir_run(&w, "gcc -shared -nostdlib -o s.so s.s");
	planned_open(&p, workdir_path(&w, "s.so"));
	planned_make(&p, "type=s get=s_ref:*1 put=s_put:*1,s_clear:*1 counter=+8:4", NULL);
	point = planned_point(&p, "s_put");
	assert_int_equal(point->address.v, point->function.v);
	assert_int_equal(point->counter_offset, 8);
	point = planned_point(&p, "s_clear");
	assert_true(point->address.v <= point->function.v + 3);
	assert_int_equal(point->counter_offset, 8);
	assert_int_equal(planned_point(&p, "s_ref")->counter_offset, 8);
	assert_int_equal(planned_point(&p, "s_ref")->cost, RT_COST_EMULATED);
	finish(&w, &p);
}

TEST(a_swap_is_a_get_and_a_put)
{
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(
		&w, "s.c",
		"struct t { int refs; };\nvoid t_replace(struct t **s, struct t *n) { n->refs++; (*s)->refs--; *s = n; "
		"}\nvoid t_put(struct t *t) { t->refs--; }\n");
	workdir_run(&w, "gcc -O2 -g -fPIC -shared -o s.so s.c");
	planned_open(&p, workdir_path(&w, "s.so"));
	planned_make(&p, "type=t put=t_put swap=t_replace:*1", NULL);
	assert_int_equal(p.plan->points.len, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct rt_point *point = &p.plan->points.data[i];

		if (strcmp(point->name, "t_replace") != 0)
			continue;
		assert_int_equal(point->delta, point->op == RT_OP_GET ? 1 : -1);
		assert_int_equal(point->place, point->op == RT_OP_GET ? RT_PLACE_ARG : RT_PLACE_ARG_PTR);
		assert_int_equal(point->reg, point->op == RT_OP_GET ? RT_REG_RSI : RT_REG_RDI);
	}
	finish(&w, &p);
}

TEST(results_of_cxx_functions_are_refused)
{
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "x.cc",
		      "struct T { ~T(); }; void f();\nT *make() { T t; f(); return 0; }\n"
		      "extern \"C\" T *plain() { T t; f(); return 0; }\nextern \"C\" int *leaf() { return 0; }\n");
	workdir_run(&w, "g++ -O1 -fPIC -shared -o x.so x.cc");
	planned_open(&p, workdir_path(&w, "x.so"));
	planned_make(&p, "type=t new=_Z4makev,plain,leaf", NULL);
	assert_int_equal(p.plan->points.len, 1);
	assert_non_null(planned_point(&p, "leaf"));
	assert_non_null(strstr(planned_why(&p, "_Z4makev"), "C++"));
	assert_non_null(strstr(planned_why(&p, "plain"), "exception"));
	planned_close(&p);
	planned_open(&p, workdir_path(&w, "x.so"));
	planned_make(&p, "type=t new=_Z4makev,plain,leaf",
		     &(struct rt_plan_options){ .return_points = true, .force_returns = true });
	assert_int_equal(p.plan->points.len, 3);
	finish(&w, &p);
}

/* the instruction behind each call: only where no other way leads there, and every caller is known */
TEST(results_behind_calls)
{
	static const char code[] =
		"struct T { int refs; } pool[9], *next = pool;\nvoid f(); void use(T *, int);\n#define N "
		"__attribute__((noinline))\n"
		"N T *make() { f(); return next++; }\nN T *jumped() { f(); return next++; "
		"}\n"
		"N T *taken() { f(); return next++; }\nN T *pointed() { f(); return next++; }\n"
		"int one() { T *t = make(); use(t, 1); t = make(); use(t, 2); return t->refs; }\n"
		"T *two() { return jumped(); }\nint three() { return jumped()->refs + taken()->refs + pointed()->refs; "
		"}\n"
		"void *four() { return (void *)taken; }\nT *(*table[])() = { pointed };\n"
		"void f() { __asm__ volatile(\"\"); }\nvoid use(T *t, int n) { t->refs += n; f(); }\n"
		"int main() { return one() + three() + (two() == four()); }\n";
	static const char *const compilers[] = { "g++ -O2 -g", "g++ -O2 -fno-pie -no-pie", "clang++-14 -O2" };

	for (size_t i = 0; i < 3; i++) {
		_cleanup_free_ char *calls = NULL;
		struct workdir w;
		struct planned p;
		unsigned points = 0;

		workdir_make(&w);
		workdir_write(&w, "x.cc", code);
		workdir_run(&w, "%s -fno-inline -o x x.cc", compilers[i]);
		planned_open(&p, workdir_path(&w, "x"));
		planned_make(&p, "type=t new=_Z4makev,_Z6jumpedv,_Z5takenv,_Z7pointedv counter=+0:4", NULL);
		/* the oracle: the line behind "call ... <_Z4makev>" */
		calls = workdir_output(&w, "objdump -d x | grep -A1 'call.*<_Z4makev>' | grep -v call");
		for (size_t k = 0; k < p.plan->points.len; k++) {
			const struct rt_point *point = &p.plan->points.data[k];
			char address[32];

			/* "next" is a variable that holds such objects: its stores are looked at */
			if (point->op == RT_OP_MOVE)
				continue;
			assert_string_equal(point->name, "_Z4makev");
			assert_int_equal(point->kind, RT_POINT_INSN);
			assert_int_equal(point->reg, RT_REG_RAX);
			assert_int_equal(point->flags, RT_EV_AT_RETURN);
			assert_int_equal(point->counter_offset, 0);
			assert_int_equal(point->counter_bias, 0);
			snprintf(address, sizeof(address), "%" PRIx64 ":", point->address.v);
			assert_non_null(strstr(calls, address));
			points++;
		}
		assert_int_equal(points, 2);
		assert_null(planned_why(&p, "_Z4makev"));
		assert_non_null(strstr(planned_why(&p, "_Z6jumpedv"), "some callers are not known"));
		assert_non_null(strstr(planned_why(&p, "_Z5takenv"), "some callers are not known"));
		assert_non_null(strstr(planned_why(&p, "_Z7pointedv"), "some callers are not known"));
		finish(&w, &p);
	}
}

/* a function of a library is seen where others call it */
TEST(results_of_imported_functions)
{
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "lib.cc", "struct T { int refs; };\nT *make() { return new T{1}; }\n");
	workdir_write(
		&w, "x.cc",
		"struct T { int refs; };\nT *make();\nint main() { T *t = make(); return t->refs - make()->refs; }\n");
	workdir_run(&w, "g++ -O2 -fPIC -shared -o libx.so lib.cc");
	workdir_run(&w, "g++ -O2 -o x x.cc ./libx.so");
	planned_open(&p, workdir_path(&w, "x"));
	planned_make(&p, "type=t new=_Z4makev", NULL);
	assert_int_equal(p.plan->points.len, 2);
	assert_int_equal(p.plan->refused.len, 0);
	finish(&w, &p);
}

/* "t = p ? make() : 0": both ways meet behind the call */
TEST(a_place_that_others_jump_to_sees_no_result)
{
	struct workdir w;
	struct planned p;

	workdir_make(&w);
	workdir_write(&w, "s.s",
		      ".text\nnop\n.globl _start\n.type _Zm,@function\n_Zm: mov $8,%eax\n ret\n.size _Zm,.-_Zm\n"
		      ".type _start,@function\n_start: xor %eax,%eax\n test %edi,%edi\n je 1f\n call _Zm\n"
		      "1: mov %rax,%rbx\n call _Zm\n mov %rax,%rcx\n ret\n.size _start,.-_start\n");
	workdir_run(&w, "gcc -nostdlib -static -o s s.s");
	planned_open(&p, workdir_path(&w, "s"));
	planned_make(&p, "type=t new=_Zm", NULL);
	assert_int_equal(p.plan->points.len, 1);
	assert_non_null(strstr(planned_why(&p, "_Zm"), "behind the call in _start"));
	finish(&w, &p);
}

static void assert_missing(struct planned *p, const char *spec, enum rt_code code, const char *message, const char *fix)
{
	struct rt_error *err;

	planned_make(p, spec, NULL);
	err = rt_plan_missing(p->plan, &p->module, 1);
	if (!message) {
		assert_null(err);
	} else {
		assert_non_null(err);
		assert_string_equal(rt_code_text(err->code), rt_code_text(code));
		if (!strstr(err->message, message) || (fix && (!err->fix || !strstr(err->fix, fix))))
			fail_msg("%s / %s", err->message, err->fix ? err->fix : "-");
	}
	rt_error_free(err);
	rt_plan_destroy(p->plan);
	p->plan = NULL;
	rt_spec_deinit(&p->spec);
}

static const char cxx[] =
	"#include <stdlib.h>\n"
	"struct obj { int refs; };\n"
	"#define API __attribute__((noinline))\n"
	"API obj *obj_get(obj *o) { o->refs++; asm volatile(\"\"); return o; }\n"
	"API void obj_put(obj *o) { if (--o->refs == 0) free(o); }\n"
	"namespace ns {\n"
	"struct Node { int pad, refs;\n"
	"	API void ref() { refs++; asm volatile(\"\"); }\n"
	"	API void unref() { if (--refs == 0) delete this; }\n"
	"	inline void grab() { refs++; asm volatile(\"\" ::: \"memory\"); } };\n"
	"struct Leaf { int refs; API void ref() { refs++; asm volatile(\"\"); } API void unref() { refs--; asm "
	"volatile(\"\"); }\n"
	"	inline void grab() { refs += 1; asm volatile(\"\" ::: \"memory\"); } };\n"
	"}\n"
	"int main(int c, char **v) { ns::Node *n = new ns::Node(); ns::Leaf l{1}; obj *o = (obj *)calloc(1, 8);\n"
	"	n->ref(); n->unref(); n->grab(); l.ref(); l.grab(); l.unref(); obj_get(o); obj_put(o); return n->refs; "
	"}\n";

/* Names of C++: stripped of debug information, and with it; inlined instances of the one class only. */
TEST(names_of_cxx)
{
	static const char *const how[] = { "g++ -O2 -g", "g++ -O2", "clang++ -O2 -g" };

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		const bool debug = strstr(how[i], "-g") != NULL;
		size_t inlined = 0;
		struct workdir w;
		struct planned p;

		workdir_make(&w);
		workdir_write(&w, "prog.cc", cxx);
		workdir_run(&w, "%s -o prog prog.cc", how[i]);
		planned_open(&p, workdir_path(&w, "prog"));
		planned_make(&p,
			     "type=node get=ns::Node::ref,Node::grab put=ns::Node::unref "
			     "type=obj get=obj_get put=obj_put(obj*)",
			     NULL);
		assert_int_equal(planned_point(&p, "_ZN2ns4Node3refEv")->function.v,
				 address_of(&w, "_ZN2ns4Node3refEv"));
		assert_non_null(planned_point(&p, "_ZN2ns4Node5unrefEv"));
		assert_non_null(planned_point(&p, "_Z7obj_putP3obj"));
		assert_non_null(planned_point(&p, "_Z7obj_getP3obj"));
		assert_null(planned_point(&p, "_ZN2ns4Leaf3refEv"));
		for (size_t k = 0; k < p.plan->points.len; k++)
			inlined += p.plan->points.data[k].flags & RT_EV_INLINE &&
				   !strcmp(p.plan->points.data[k].name, "_ZN2ns4Node4grabEv");
		assert_int_equal(inlined, debug);
		assert_int_equal(p.plan->types.data[0].counter_offset, 4);
		finish(&w, &p);
	}
}

TEST(what_is_missing_is_said)
{
	struct workdir w;
	struct planned p;
	char *near;

	build(&w, &p, "gcc -O1 -g");
	assert_missing(&p, "get=obj_get put=obj_put", RT_E_NR, NULL, NULL);
	/* one of two spellings is enough */
	assert_missing(&p, "get=obj_get,obj_ref put=obj_put", RT_E_NR, NULL, NULL);
	assert_missing(&p, "get=obj_gett put=obj_put", RT_E_NO_FUNCTION, "no function 'obj_gett' in ",
		       "did you mean: obj_get (prog.c:5)");
	assert_missing(&p, "new=obj_new get=nothing_like_it put=obj_put", RT_E_NO_FUNCTION, "symbols read)",
		       "list: reftrace scan ");
	assert_missing(&p, "get=obj_get@libfoo.so put=obj_put", RT_E_NO_FUNCTION,
		       "no function 'obj_get' in a file called libfoo.so", "obj_get@prog");
	assert_missing(&p, "get=obj_chosen put=obj_put", RT_E_UNARMED, "'obj_chosen' is there but cannot be probed",
		       NULL);
	assert_ok(rt_plan_near(&p.module, 1, "obj_gett", &near));
	assert_string_equal(near, "did you mean: obj_get (prog.c:5)?");
	free(near);
	assert_ok(rt_plan_near(&p.module, 1, "nothing_like_it", &near));
	assert_string_equal(near, "");
	free(near);
	planned_close(&p);
	workdir_run(&w, "strip prog");
	planned_open(&p, workdir_path(&w, "prog"));
	assert_missing(&p, "get=obj_get put=obj_put", RT_E_STRIPPED, "has no symbol table (stripped)",
		       "-P 'get=0xADDRESS@prog:1");
	finish(&w, &p);
}

TEST_MAIN();
