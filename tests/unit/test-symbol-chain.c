/* SPDX-License-Identifier: GPL-2.0-only */
#include <sys/time.h>

#include "built.h"
#include "elf/symtab.h"
#include "event/stream.h"
#include "symbol/chain.h"

static const char source[] = "#include <cstdio>\n"
			     "#include <cstdlib>\n"
			     "namespace ns { struct Obj { int refs; Obj *get(); }; }\n"
			     "inline ns::Obj *ns::Obj::get()\n"
			     "{\n"
			     "	if (refs > 99)\n"
			     "		abort();\n"
			     "	refs++;\n"
			     "	return this;\n"
			     "}\n"
			     "extern \"C\" __attribute__((noinline)) ns::Obj *hold(ns::Obj *o, int n)\n"
			     "{\n"
			     "	printf(\"%d\\n\", n);\n"
			     "	return o->get();\n"
			     "}\n"
			     "__attribute__((noinline, noreturn)) static void leave(int code)\n"
			     "{\n"
			     "	exit(code);\n"
			     "}\n"
			     "int main(int argc, char **)\n"
			     "{\n"
			     "	static ns::Obj o;\n"
			     "	hold(&o, argc);\n"
			     "	leave(o.refs - 1);\n"
			     "}\n";

#define BASE 0x500000000000ull
#define PID 42

/* A chain that knows the program `name` as module 1, mapped at BASE + ELF address. */
struct rig {
	struct rt_image *image;
	struct rt_maps *maps;
	struct rt_chain *chain;
	struct rt_namer *namer;
};

static void rig_close(struct rig *rig)
{
	rt_chain_destroy(rig->chain);
	rt_maps_destroy(rig->maps);
	rt_image_destroy(rig->image);
}

static void rig_open(struct rig *rig, const char *name, const char *recorded, const struct rt_chain_options *options,
		     bool wrong_id)
{
	_cleanup_free_ char *path = built_path(name);
	_cleanup_free_ struct rt_wire_module *module = rt_record_module(1, recorded ? recorded : path);

	assert_ok(rt_image_open(path, &rig->image));
	assert_ok(rt_maps_create(&rig->maps));
	assert_ok(rt_chain_create(rig->maps, options, &rig->chain));
	rig->namer = rt_chain_namer(rig->chain);
	module->build_id_size = rig->image->build_id_size;
	memcpy(module->build_id, rig->image->build_id, RT_BUILD_ID_MAX);
	module->content_hash = rig->image->build_id_is_hash;
	if (wrong_id)
		module->build_id[3] ^= 1;
	assert_ok(rt_chain_record(rig->chain, &module->head));
	for (size_t i = 0; i < rig->image->segment_count; i++) {
		const struct rt_segment *s = &rig->image->segments[i];
		struct rt_wire_map map = { .head = { .size = sizeof(map), .kind = RT_WIRE_MAP, .pid = PID },
					   .start = BASE + s->start.v,
					   .end = BASE + s->end.v,
					   .file_offset = s->offset.v,
					   .module = 1 };

		assert_ok(rt_maps_record(rig->maps, &map.head));
	}
}

static void build(const char *flags)
{
	free(built_write("p.cc", source));
	assert_true(built_run("g++ -Wl,--build-id %s p.cc -o p", flags));
}

static uint64_t address_of(const char *command)
{
	_cleanup_free_ char *text = built_output("%s", command);
	uint64_t address = strtoull(text, NULL, 16);

	assert_true(address != 0);
	return address;
}

TEST(where_a_call_goes)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	struct rt_frame frames[8];
	uint64_t hold, back;
	size_t n;

	build("-O0 -g");
	rig_open(&rig, "p", NULL, NULL, false);
	hold = address_of("nm p | sed -n 's/ T hold$//p'");
	/* the address behind the call of hold in main */
	back = address_of("objdump -d --no-show-raw-insn p | grep -A1 'call.*<hold>' | tail -1");
	for (int twice = 0; twice < 2; twice++) {
		n = rig.namer->name(rig.namer, PID, 5, BASE + back, true, frames, 8);
		assert_int_equal(n, 1);
		assert_string_equal(frames[0].function, "main");
		assert_int_equal(frames[0].callee, BASE + hold);
	}
	/* not asked as a return address; and no call before it */
	rig.namer->name(rig.namer, PID, 5, BASE + back, false, frames, 8);
	assert_int_equal(frames[0].callee, 0);
	rig.namer->name(rig.namer, PID, 5, BASE + hold + 1, true, frames, 8);
	assert_int_equal(frames[0].callee, 0);
}

static const char handing[] =
	"struct obj { int refs; }; struct holder { int n; struct obj *obj; };\n"
	"#define FAR __attribute__((noinline, noclone, noipa))\n"
	"FAR void take(struct obj *o) { o->refs++; }\n"
	"FAR void touch(void) { __asm__ volatile(\"\"); }\n"
	"FAR struct obj *ref(struct obj *o) { take(o); touch(); return o; }\n"
	"FAR struct obj *lookup(struct holder *h) { struct obj *o = h->obj; take(o); touch(); return o; }\n"
	"FAR struct obj *find(struct holder *h)\n"
	"{ struct obj *o = lookup(h); if (!o || o->refs < 0) return 0; touch(); return o; }\n"
	"FAR struct obj *either(struct holder *h)\n"
	"{ struct obj *o = find(h), *old = h->obj; touch(); return h->n ? o : old; }\n"
	"FAR int count(struct holder *h) { struct obj *o = find(h); touch(); return o ? o->refs : 0; }\n"
	"FAR void *any(struct holder *h) { void *p = lookup(h); touch(); return p; }\n"
	/* the next one, or nothing; and out of one of two places */
	"FAR struct obj *next(struct holder *h)\n"
	"{ for (;;) { struct obj *o = lookup(h); touch(); if (o->refs > 3) return o; if (h->n++ > 9) return 0; } }\n"
	"FAR struct obj *one_of(struct holder *h)\n"
	"{ struct obj *o = lookup(h); if (o->refs > 3) return o; touch(); h->n++; return lookup(h + 1); }\n"
	"FAR struct obj *this_or_that(struct holder *h)\n"
	"{ struct obj *o = lookup(h); if (o->refs > 3) return o; touch(); return find(h); }\n"
	/* who looks into what he passes on, and who does not */
	"FAR void blind(int n, void *p) { if (p) take(p); touch(); }\n"
	"FAR int looks(struct obj *o) { int n = o->refs; take(o); touch(); return n; }\n"
	"FAR void has_it_looked_at(struct obj *o) { take(o); take(o); touch(); }\n"
	"FAR int mem_free(void *p) { int n = *(int *)p; take(p); touch(); return n; }\n"
	"FAR int obj_free(struct obj *o) { int n = o->refs; take(o); touch(); return n; }\n"
	"FAR void jumps(void *p) { take(p); }\n"
	"FAR void jumps_knowing(struct obj *o) { take(o); }\n"
	"FAR void jumps_seeing(struct obj *o) { o->refs--; take(o); }\n"
	"FAR void calls(struct obj *o) { jumps(o); touch(); jumps_seeing(o); touch(); }\n"
	"FAR void hands_on(struct obj *o) { jumps_knowing(o); touch(); }\n"
	"int main(int argc, char **argv)\n"
	"{ struct obj o = { argc }; struct holder h = { argc, &o }; any(&h); blind(1, &o); looks(&o); mem_free(&o); "
	"obj_free(&o); has_it_looked_at(&o); "
	"calls(&o); hands_on(&o); next(&h); one_of(&h); this_or_that(&h);\n"
	"  return ref(&o) == either(&h) ? count(&h) : 0; }\n";

/* the return address of the first call of `callee` in `function` */
static uint64_t behind(const char *function, const char *callee)
{
	_cleanup_free_ char *command = NULL;

	assert_true(asprintf(&command,
			     "objdump -d --no-show-raw-insn --disassemble=%s p | grep -A1 'call.*<%s>' | sed -n 2p",
			     function, callee) > 0);
	return BASE + address_of(command);
}

/* RT_HANDS_* of `function` for its first call of `callee` */
static unsigned hands(struct rig *rig, const char *function, const char *callee)
{
	return rig->namer->hands(rig->namer, PID, 5, behind(function, callee));
}

static unsigned returned(struct rig *rig, const char *function, const char *callee)
{
	return hands(rig, function, callee) & (RT_HANDS_RESULT | RT_HANDS_ARGUMENT | RT_HANDS_OWN | RT_HANDS_TAKEN);
}

/* without debug information the code says whether a function returns what it got */
TEST(what_it_got_it_returns)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 }, known = { 0 };

	free(built_write("h.c", handing));
	assert_true(built_run("gcc -Wl,--build-id -O2 -fcf-protection=none h.c -o p"));
	rig_open(&rig, "p", NULL, NULL, false);
	for (int twice = 0; twice < 2; twice++) {
		assert_int_equal(returned(&rig, "ref", "take"), RT_HANDS_ARGUMENT | RT_HANDS_OWN);
		assert_int_equal(returned(&rig, "ref", "touch"), 0);
		assert_int_equal(returned(&rig, "lookup", "take"), RT_HANDS_ARGUMENT);
		assert_int_equal(returned(&rig, "find", "lookup"), RT_HANDS_RESULT | RT_HANDS_OWN | RT_HANDS_TAKEN);
		assert_int_equal(returned(&rig, "either", "find"), RT_HANDS_OWN | RT_HANDS_TAKEN);
		assert_int_equal(returned(&rig, "next", "lookup"), RT_HANDS_RESULT | RT_HANDS_OWN | RT_HANDS_TAKEN);
		assert_int_equal(returned(&rig, "one_of", "lookup"), RT_HANDS_RESULT | RT_HANDS_OWN | RT_HANDS_TAKEN);
		/* what another one returns is another one's */
		assert_int_equal(returned(&rig, "this_or_that", "lookup") & RT_HANDS_RESULT, 0);
		assert_int_equal(returned(&rig, "count", "find"), RT_HANDS_OWN | RT_HANDS_TAKEN);
	}
	assert_int_equal(rig.namer->hands(rig.namer, PID, 5, 0), 0);
	assert_int_equal(rig.namer->hands(rig.namer, PID, 5, BASE + (1ull << 40)), 0);
	assert_true(built_run("gcc -g -Wl,--build-id -O2 h.c -o p"));
	rig_open(&known, "p", NULL, NULL, false);
	assert_int_equal(returned(&known, "find", "lookup"), RT_HANDS_TAKEN); /* its declaration says more */
	assert_int_equal(returned(&known, "any", "lookup"), RT_HANDS_RESULT | RT_HANDS_OWN | RT_HANDS_TAKEN);
}

/* what a function does not look into, its caller alone knows: with debug information or without, spilled or not */
TEST(what_it_does_not_look_into)
{
	static const char *const builds[] = { "-O2", "-O2 -g", "-O0 -g" };

	free(built_write("h.c", handing));
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
		_cleanup_free_ char *command = NULL;
		const unsigned bits = RT_HANDS_BLIND | RT_HANDS_JUMPED, jumped = i < 2 ? RT_HANDS_JUMPED : 0;

		assert_true(asprintf(&command, "gcc -Wl,--build-id %s -fcf-protection=none h.c -o p", builds[i]) > 0);
		assert_true(built_run(command));
		rig_open(&rig, "p", NULL, NULL, false);
		assert_int_equal(hands(&rig, "blind", "take") & bits, RT_HANDS_BLIND);
		assert_int_equal(hands(&rig, "looks", "take") & bits, 0);
		assert_int_equal(hands(&rig, "lookup", "take") & bits, 0);
		/* by the declaration, where there is one */
		assert_int_equal(hands(&rig, "mem_free", "take") & bits, i ? RT_HANDS_BLIND : 0);
		assert_int_equal(hands(&rig, "obj_free", "take") & bits, 0);
		/* the first of its calls; who is declared to be given a struct knows what that holds */
		assert_int_equal(hands(&rig, "has_it_looked_at", "take") & bits, i ? 0 : RT_HANDS_BLIND);
		assert_int_equal(hands(&rig, "calls", "jumps") & bits, (i ? 0 : RT_HANDS_BLIND) | jumped);
		assert_int_equal(hands(&rig, "hands_on", "jumps_knowing") & bits, i ? 0 : RT_HANDS_BLIND | jumped);
		assert_int_equal(hands(&rig, "calls", "jumps_seeing") & bits, 0);
	}
}

static const char going_on[] =
	"struct obj { int refs, n; struct obj *next; }; struct obj *global;\n"
	"#define FAR __attribute__((noinline, noclone, noipa))\n"
	"FAR int put(struct obj *o) { return --o->refs; }\n"
	"FAR void show(int n, struct obj *o) { __asm__ volatile(\"\" : : \"r\"(o), \"r\"(n) : \"memory\"); }\n"
	"FAR void log_it(int n, struct obj *o) { show(n, o); }\n"
	"FAR void list_remove(int n, struct obj *o) { show(n, o); }\n"
	"FAR void obj_log(struct obj *o) { show(0, o); }\n"
	"FAR void mem_free(struct obj *o) { show(0, o); }\n"
	"FAR void touch(void) { __asm__ volatile(\"\"); }\n"
	"FAR void get(struct obj **o) { *o = global; }\n"
	"FAR int looks(struct obj *o) { put(o); return o->n; }\n"
	"FAR void passes(struct obj *o) { put(o); touch(); show(1, o); touch(); }\n"
	"FAR void jumps(struct obj *o) { put(o); touch(); show(1, o); }\n"
	"FAR void frees(struct obj *o) { put(o); mem_free(o); touch(); }\n"
	"FAR void says(struct obj *o) { put(o); log_it(1, o); touch(); }\n"
	"FAR void unlists(struct obj *o) { put(o); list_remove(1, o); touch(); }\n"
	"FAR void has_it_said(struct obj *o) { put(o); obj_log(o); touch(); }\n"
	"FAR void fails(void) { touch(); __builtin_trap(); }\n"
	"FAR void gives_up(struct obj *o, int n) { touch(); if (n < 0) { show(2, o); put(o); fails(); } show(1, o); "
	"touch(); }\n"
	"FAR void asks(struct obj *o) { if (put(o)) show(1, o); touch(); }\n"
	"FAR void is_done(struct obj *o) { show(1, o); put(o); touch(); }\n"
	"FAR void compares(struct obj *o) { touch(); put(o); if (o == global) global = 0; touch(); }\n"
	"FAR void all(struct obj *o) { while (o) { struct obj *next = o->next; put(o); o = next; } touch(); }\n"
	"FAR void other(struct obj *o, struct obj *p) { put(o); show(1, p); touch(); }\n"
	"FAR void got(void) { struct obj *o; get(&o); put(o); show(1, o); touch(); }\n"
	"FAR void again(void) { struct obj *o; get(&o); put(o); get(&o); show(1, o); touch(); }\n"
	"FAR void either(struct obj *o, struct obj *p, int n)\n"
	"{ struct obj *q = n ? o : p; touch(); if (n > 1) { touch(); q = p; } put(q); touch(); show(1, p); touch(); }\n"
	"int main(int argc, char **argv)\n"
	"{ struct obj o = { 100, argc, 0 }; global = &o; looks(&o); passes(&o); jumps(&o); frees(&o); gives_up(&o, "
	"argc); says(&o); "
	"unlists(&o); has_it_said(&o); asks(&o);\n"
	"  is_done(&o); compares(&o); all(&o); other(&o, &o); got(); again(); either(&o, &o, argc); return 0; }\n";

/* who gave an object to a call, and surely uses it behind that; compiled so that it lies in registers, or variables */
TEST(what_it_uses_again)
{
	static const char *const builds[] = { "-O2", "-O1 -g", "-O0 -g", "-O2 -fno-plt -fPIE -pie" };
	static const struct {
		const char *function;
		bool goes_on;
	} cases[] = { { "looks", true },     { "passes", true }, { "jumps", true },    { "frees", false },
		      { "gives_up", false }, { "says", false },  { "unlists", false }, { "has_it_said", true },
		      { "got", true },       { "asks", false },  { "is_done", false }, { "compares", false },
		      { "all", false },      { "other", false }, { "again", false },   { "either", false } };

	free(built_write("h.c", going_on));
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
		_cleanup_free_ char *command = NULL;

		assert_true(asprintf(&command, "gcc -Wl,--build-id %s -fcf-protection=none h.c -o p", builds[i]) > 0);
		assert_true(built_run(command));
		rig_open(&rig, "p", NULL, NULL, false);
		for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
			bool goes_on = hands(&rig, cases[k].function, "put") & RT_HANDS_AGAIN;

			if (goes_on != cases[k].goes_on)
				fail_msg("%s, built by %s", cases[k].function, builds[i]);
		}
	}
}

static const char waiting[] =
	"struct obj { int refs; };\n"
	"#define FAR __attribute__((noinline, noclone, noipa))\n"
	"typedef void fn(void *);\n"
	"FAR struct obj *ref(struct obj *o) { o->refs++; return o; }\n"
	"FAR struct obj *make(struct obj *from) { from->refs++; return from + 1; }\n"
	"FAR void use(struct obj *o) { o->refs--; }\n"
	"FAR int do_later(fn *f, void *p) { return f && p; }\n"
	"FAR int do_later_full(fn *f, void *p, fn *end) { return f && p && end; }\n"
	"FAR int on_line(int a, int b, int c, int d, int e, fn *f, void *p) { return a + b + c + d + e + (f && p); }\n"
	"FAR void done(void *p) { use(p); }\n"
	"FAR void failed(void *p) { use(p); }\n"
	"FAR void drop(void *p) { use(p); }\n"
	/* with what it gave */
	"FAR int asks(struct obj *o) { ref(o); return 1 + do_later(done, o); }\n"
	"FAR int asks_before(struct obj *o) { int n = do_later(done, o); ref(o); return n + 1; }\n"
	"FAR int asks_maybe(struct obj *o, int n) { ref(o); if (n > 1) return 1 + do_later(done, o); use(o); return 0; "
	"}\n"
	"FAR int asks_along(struct obj *o) { ref(o); return 1 + on_line(1, 2, 3, 4, 5, done, o); }\n"
	/* with what it got */
	"FAR int gets(struct obj *o) { struct obj *n = make(o); return 1 + do_later(done, n); }\n"
	"FAR int lends(struct obj *o) { struct obj *n = make(o); int r = do_later(done, n); use(n); return r; }\n"
	"FAR int of_another(struct obj *o) { struct obj *n = make(o); do_later(done, o); use(n); return 1; }\n"
	/* with nobody */
	"FAR int other(struct obj *o, struct obj *p) { ref(o); return 1 + do_later(done, p); }\n"
	"FAR int with_end(struct obj *o) { ref(o); return 1 + do_later_full(done, o, drop); }\n"
	"FAR int either(struct obj *o, int n) { ref(o); return n > 1 ? 1 + do_later(done, o) : 2 + do_later(failed, "
	"o); }\n"
	"FAR int unknown(struct obj *o, fn *f) { ref(o); return 1 + do_later(f, o); }\n"
	"int main(int argc, char **argv)\n"
	"{ static struct obj o[9]; return asks(o) + asks_before(o) + asks_maybe(o, argc) + asks_along(o) + gets(o) + "
	"lends(o) "
	"+ of_another(o) + other(o, o) + with_end(o) + either(o, argc) + unknown(o, done); }\n";

/* who takes a reference for a function that is called later, with the object */
TEST(who_is_called_later)
{
	static const char *const builds[] = { "-O2", "-O1 -g", "-O0 -g", "-O2 -fno-pie -no-pie",
					      "-O2 -fno-plt -fPIE -pie" };
	static const struct {
		const char *function, *callee;
		bool later, given;
	} cases[] = {
		{ "asks", "ref", true, true },        { "asks_before", "ref", true, true },
		{ "asks_maybe", "ref", true, true },  { "asks_along", "ref", true, true },
		{ "gets", "make", true, false },      { "lends", "make", false, false },
		{ "of_another", "make", true, true }, { "other", "ref", false, false },
		{ "with_end", "ref", false, false },  { "either", "ref", false, false },
		{ "unknown", "ref", false, false },
	};

	free(built_write("h.c", waiting));
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
		_cleanup_free_ char *command = NULL;
		uint64_t done;

		assert_true(asprintf(&command, "gcc -Wl,--build-id %s -fcf-protection=none h.c -o p", builds[i]) > 0);
		assert_true(built_run(command));
		rig_open(&rig, "p", NULL, NULL, false);
		done = BASE + address_of("nm p | sed -n 's/ T done$//p'");
		for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
			uint64_t pc = behind(cases[k].function, cases[k].callee);
			bool given = true;
			uint64_t later = rig.namer->callback(rig.namer, PID, 5, pc, &given);

			if (later != (cases[k].later ? done : 0) || (later && given != cases[k].given))
				fail_msg("%s, built by %s: 0x%llx%s", cases[k].function, builds[i],
					 (unsigned long long)later, given ? ", given" : "");
		}
	}
}

/* through a stub it goes to what another module defines */
static const char leaving[] =
	"struct obj { int refs; }; int other;\n"
	"#define FAR __attribute__((noinline, noclone, noipa))\n"
	"#define INLINE static inline __attribute__((always_inline))\n"
	"FAR int put(struct obj *o) { return --o->refs; }\n"
	"FAR int note(struct obj *o) { return other += o->refs; }\n"
	"INLINE int give_back(struct obj *o) { return put(o); }\n"
	"FAR int done(struct obj *o) { other++; return give_back(o); }\n"
	"FAR int either(struct obj *o, int k) { if (k > 3) return put(o); other += k; return note(o); }\n"
	"FAR int check_fail_warning(const char *why) { return other += why[0]; }\n"
	"FAR int checks(struct obj *o) { if (!o) return check_fail_warning(\"o\"); other++; return put(o); }\n"
	"FAR int comes_back(struct obj *o) { return put(o) + other; }\n"
	"FAR int by_pointer(struct obj *o, int (*f)(struct obj *)) { other++; return f(o); }\n"
	"FAR int round(struct obj *o, int k) { int n = 0; while (k--) n += note(o); return n; }\n"
	"int main(int argc, char **argv) { struct obj o = { 9 }; return done(&o) + checks(&o) + either(&o, argc) + "
	"comes_back(&o) + "
	"by_pointer(&o, put) + round(&o, argc); }\n";

/* the one place by which a function goes to another one for good, and what is inlined there */
TEST(where_a_function_leaves)
{
	static const char *const builds[] = { "gcc -O2 -g", "gcc -O2 -g -fno-pie -no-pie",
					      "clang-14 -O2 -g -Dnoipa= -Dnoclone= -w" };
	static const char *const stay[] = { "either", "comes_back", "by_pointer", "round", "put" };

	free(built_write("h.c", leaving));
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
		struct rt_frame frames[4];
		uint64_t at;

		assert_true(built_run("%s -Wl,--build-id -fcf-protection=none h.c -o p", builds[i]));
		rig_open(&rig, "p", NULL, NULL, false);
		at = rig.namer->leaves(rig.namer, PID, 5, BASE + address_of("nm p | sed -n 's/ T done$//p'"));
		assert_true(at);
		assert_int_equal(rig.namer->name(rig.namer, PID, 5, at, false, frames, 4), 2);
		assert_string_equal(frames[0].function, "give_back");
		assert_true(frames[0].inlined);
		assert_string_equal(frames[1].function, "done");
		assert_int_equal(frames[1].callee, BASE + address_of("nm p | sed -n 's/ T put$//p'"));
		/* what only complains is no way out */
		at = rig.namer->leaves(rig.namer, PID, 5, BASE + address_of("nm p | sed -n 's/ T checks$//p'"));
		assert_true(at);
		assert_int_equal(rig.namer->name(rig.namer, PID, 5, at, false, frames, 4), 1);
		assert_int_equal(frames[0].callee, BASE + address_of("nm p | sed -n 's/ T put$//p'"));
		for (size_t k = 0; k < sizeof(stay) / sizeof(stay[0]); k++) {
			char command[64];

			snprintf(command, sizeof(command), "nm p | sed -n 's/ T %s$//p'", stay[k]);
			at = rig.namer->leaves(rig.namer, PID, 5, BASE + address_of(command));
			if (at)
				fail_msg("%s leaves at 0x%llx, built by %s", stay[k], (unsigned long long)at,
					 builds[i]);
		}
		/* not where a function begins */
		assert_int_equal(
			rig.namer->leaves(rig.namer, PID, 5, 1 + BASE + address_of("nm p | sed -n 's/ T done$//p'")),
			0);
	}
}

static const char skipping[] = "struct obj { int refs, kind; }; int other;\n"
			       "#define FAR __attribute__((noinline, noclone, noipa))\n"
			       "FAR struct obj *get(struct obj *o) { o->refs++; return o; }\n"
			       "FAR void put(struct obj *o) { o->refs--; }\n"
			       "FAR int look(struct obj *o) { return o->kind + other; }\n"
			       "FAR int one(struct obj *in)\n"
			       "{\n"
			       "	struct obj *o = get(in);\n"
			       "	int n;\n"
			       "	if (!o)\n"
			       "		return -1;\n"
			       "	n = look(o);\n"
			       "	if (n > 7)\n" /* 13 */
			       "		return n;\n"
			       "	if (n < 3)\n"
			       "		look(o);\n"
			       "	put(o);\n" /* 17 */
			       "	return 0;\n"
			       "}\n"
			       "FAR int two(struct obj *in)\n"
			       "{\n"
			       "	struct obj *o = get(in);\n"
			       "	if (look(o) == 5)\n" /* 23 */
			       "		return 5;\n"
			       "	if (look(o) > 9) {\n"
			       "		put(o);\n"
			       "		return 3;\n"
			       "	}\n"
			       "	while (look(o)) { if (look(o) == 6) return 6; }\n" /* 29 */
			       "	put(o);\n"
			       "	return 0;\n"
			       "}\n"
			       "FAR int none(struct obj *in, int k)\n"
			       "{\n"
			       "	struct obj *o = get(in);\n"
			       "	if (look(o) == 5)\n"
			       "		k++;\n"
			       "	if (o)\n"
			       "		put(o);\n"
			       "	return k;\n"
			       "}\n"
			       "FAR int apart(struct obj *in, int (*f)(struct obj *), int k)\n"
			       "{\n"
			       "	struct obj *o = get(in);\n"
			       "	if (k)\n"
			       "		return f(o);\n" /* may put it */
			       "	look(o);\n"
			       "	put(o);\n"
			       "	return 0;\n"
			       "}\n"
			       "int main(void) { struct obj o = { 9, 1 }; return one(&o) + two(&o) + none(&o, 1) + "
			       "apart(&o, look, 1); }\n";

/* where the function's first call of the other one returns to */
static uint64_t behind_call(const char *function, const char *callee)
{
	char command[160];

	snprintf(command, sizeof(command),
		 "objdump -d --no-show-raw-insn --disassemble=%s p | grep -A1 'call.*<%s>' | sed -n 2p", function,
		 callee);
	return address_of(command);
}

/* The branches by which a function goes past its put, not those that ask whether there is an object. */
TEST(which_branches_skip_the_put)
{
	static const char *const builds[] = { "gcc -O0 -g", "gcc -O2 -g", "gcc -O2 -g -fno-pie -no-pie",
					      "clang-14 -O1 -g -Dnoipa= -Dnoclone= -w" };
	static const struct {
		const char *function;
		uint32_t lines[3];
	} wanted[] = { { "one", { 13 } }, { "two", { 23, 29 } }, { "none", { 0 } }, { "apart", { 0 } } };

	free(built_write("s.c", skipping));
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		__attribute__((cleanup(rig_close))) struct rig rig = { 0 };

		assert_true(built_run("%s -Wl,--build-id -fcf-protection=none s.c -o p", builds[i]));
		rig_open(&rig, "p", NULL, NULL, false);
		for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++) {
			const uint64_t back = behind_call(wanted[k].function, "get"),
				       puts[] = { behind_call(wanted[k].function, "put") };
			struct rt_branch branches[4];
			struct rt_frame frames[4];
			size_t n, lines = 0;

			assert_int_equal(rig.namer->name(rig.namer, PID, 5, BASE + back, true, frames, 4), 1);
			assert_string_equal(frames[0].function, wanted[k].function);
			n = rig.namer->skips(rig.namer, &frames[0], puts, 1, branches, 4);
			while (wanted[k].lines[lines])
				lines++;
			if (n != lines)
				fail_msg("%s: %s: %zu branches, not %zu", builds[i], wanted[k].function, n, lines);
			for (size_t l = 0; l < n; l++)
				assert_int_equal(branches[l].line, wanted[k].lines[l]);
			/* a place that is none of the function's own: nothing is known */
			assert_int_equal(rig.namer->skips(rig.namer, &frames[0], NULL, 0, branches, 4), 0);
			assert_int_equal(rig.namer->skips(rig.namer, &frames[0], (uint64_t[]){ 1 }, 1, branches, 4), 0);
		}
	}
}

TEST(where_a_call_through_a_stub_goes)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 }, other = { 0 };
	static const uint64_t far = 0x100000000ull;
	_cleanup_free_ char *path = NULL;
	_cleanup_free_ struct rt_wire_module *module = NULL;
	struct rt_frame frames[8];
	uint64_t end, back;

	free(built_write("lib.c", "int far_end(int n) { return n + 1; }\nint other(void) { return 2; }\n"));
	free(built_write("use.c", "int far_end(int);\nint main(int c, char **v) { return far_end(c) + 1; }\n"));
	assert_true(built_run("gcc -O1 -shared -fPIC -Wl,--build-id lib.c -o libfar.so"));
	assert_true(built_run("gcc -O1 -Wl,--build-id use.c -o use -L. -lfar"));
	rig_open(&rig, "use", NULL, NULL, false);
	end = address_of("nm libfar.so | sed -n 's/ T far_end$//p'");
	back = address_of("objdump -d --no-show-raw-insn use | grep -A1 'call.*<far_end@plt>' | tail -1");
	/* as long as nobody looked into the library, the stub is all that is known */
	rig.namer->name(rig.namer, PID, 5, BASE + back, true, frames, 8);
	assert_string_equal(frames[0].function, "main");
	assert_int_not_equal(frames[0].callee, 0);
	assert_int_not_equal(frames[0].callee, BASE + far + end);
	path = built_path("libfar.so");
	module = rt_record_module(2, path);
	assert_ok(rt_image_open(path, &other.image));
	assert_ok(rt_chain_record(rig.chain, &module->head));
	for (size_t i = 0; i < other.image->segment_count; i++) {
		const struct rt_segment *s = &other.image->segments[i];
		struct rt_wire_map map = { .head = { .size = sizeof(map), .kind = RT_WIRE_MAP, .pid = PID },
					   .start = BASE + far + s->start.v,
					   .end = BASE + far + s->end.v,
					   .file_offset = s->offset.v,
					   .module = 2 };

		assert_ok(rt_maps_record(rig.maps, &map.head));
	}
	rig.namer->name(rig.namer, PID, 5, BASE + far + end, false, frames, 8);
	assert_string_equal(frames[0].function, "far_end");
	rig.namer->name(rig.namer, PID, 5, BASE + back, true, frames, 8);
	assert_int_equal(frames[0].callee, BASE + far + end);
}

/* a library calls what it exports itself through a stub as well */
TEST(where_a_call_through_a_stub_of_its_own_goes)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	struct rt_frame frames[8];
	uint64_t end, back;

	free(built_write("own.c", "__attribute__((noinline)) int own_end(int n) { return n * 3; }\n"
				  "int own_call(int n) { return own_end(n) + 1; }\n"));
	assert_true(built_run("gcc -O1 -shared -fPIC -Wl,--build-id own.c -o libown.so"));
	rig_open(&rig, "libown.so", NULL, NULL, false);
	end = address_of("nm libown.so | sed -n 's/ T own_end$//p'");
	back = address_of("objdump -d --no-show-raw-insn libown.so | grep -A1 'call.*<own_end@plt>' | tail -1");
	rig.namer->name(rig.namer, PID, 5, BASE + back, true, frames, 8);
	assert_string_equal(frames[0].function, "own_call");
	assert_int_equal(frames[0].callee, BASE + end);
}

TEST(inlined_and_demangled)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	struct rt_frame frames[8], again[8], one;
	uint64_t hold, at = 0;
	size_t n = 0;

	build("-O2 -g");
	rig_open(&rig, "p", NULL, NULL, false);
	hold = address_of("nm p | sed -n 's/ T hold$//p'");
	for (at = hold; at < hold + 64 && n < 2; at++)
		n = rig.namer->name(rig.namer, PID, 5, BASE + at, false, frames, 8);
	at--;
	assert_int_equal(n, 2);
	assert_string_equal(frames[0].function, "ns::Obj::get");
	assert_string_equal(frames[0].linkage, "_ZN2ns3Obj3getEv");
	assert_string_equal(frames[0].returns, "struct Obj *");
	assert_true(frames[0].inlined && !frames[1].inlined);
	assert_string_equal(frames[1].function, "hold");
	assert_int_equal(frames[1].line, 14);
	assert_int_equal(frames[1].entry, hold);
	assert_int_equal(frames[0].address, at);
	assert_int_equal(frames[1].module_id, 1);
	assert_non_null(strstr(frames[1].file, "/p.cc"));
	assert_int_equal(frames[1].build_id_size, rig.image->build_id_size);
	/* kept: the same strings */
	assert_int_equal(rig.namer->name(rig.namer, PID, 9, BASE + at, false, again, 8), 2);
	assert_memory_equal(frames, again, 2 * sizeof(*frames));
	assert_int_equal(rig.namer->name(rig.namer, PID, 9, BASE + at, false, &one, 1), 1);
	assert_ptr_equal(one.function, frames[0].function);
	assert_int_equal(rig.namer->name(rig.namer, PID, 9, BASE + at, false, &one, 0), 0);
	/* nothing is there: a frame without names */
	assert_int_equal(rig.namer->name(rig.namer, PID, 9, 0x1234, false, &one, 1), 1);
	assert_true(!one.function && !one.module && one.address == 0x1234);
	assert_int_equal(rig.namer->name(rig.namer, PID + 1, 9, BASE + at, false, &one, 1), 1);
	assert_null(one.function);
}

TEST(return_address_behind_the_last_instruction)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	struct rt_frame frames[8];
	uint64_t end, start;
	size_t n;

	build("-O1 -g");
	rig_open(&rig, "p", NULL, NULL, false);
	start = address_of("nm -S p | awk '$4 ~ /leave/ { print $1; exit }'");
	end = start + address_of("nm -S p | awk '$4 ~ /leave/ { print $2; exit }'");
	/* exit() does not return: the address behind the call lies in the next function */
	n = rig.namer->name(rig.namer, PID, 5, BASE + end, true, frames, 8);
	assert_int_equal(n, 1);
	assert_string_equal(frames[0].function, "leave");
	assert_int_equal(frames[0].line, 18);
	assert_int_equal(frames[0].address, end);
	rig.namer->name(rig.namer, PID, 5, BASE + end, false, frames, 8);
	assert_true(!frames[0].function || strcmp(frames[0].function, "leave") != 0);
}

TEST(symbols_only)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	struct rt_frame frame;
	uint64_t start, plt;

	build("-O1 -fcf-protection=none");
	rig_open(&rig, "p", NULL, NULL, false);
	start = address_of("nm p | awk '$3 ~ /leave/ { print $1; exit }'");
	assert_int_equal(rig.namer->name(rig.namer, PID, 5, BASE + start + 1, false, &frame, 1), 1);
	assert_string_equal(frame.function, "leave");
	assert_string_equal(frame.linkage, "_ZL5leavei");
	assert_int_equal(frame.entry, start);
	assert_null(frame.file);
	plt = address_of("objdump -d -j .plt p | sed -n 's/^\\([0-9a-f]*\\) <exit@plt>.*/\\1/p'");
	assert_int_equal(rig.namer->name(rig.namer, PID, 5, BASE + plt, false, &frame, 1), 1);
	assert_string_equal(frame.function, "exit@plt");
}

TEST(other_build_is_not_used)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	const char *const *notes;
	struct rt_frame frame;

	build("-O2 -g");
	rig_open(&rig, "p", NULL, NULL, true);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rig.namer->name(rig.namer, PID, 5, BASE + rig.image->entry.v + i, false, &frame, 1),
				 1);
		assert_null(frame.function);
		assert_non_null(strstr(frame.module, "/p"));
		assert_int_equal(frame.module_id, 1);
	}
	assert_int_equal(rt_chain_notes(rig.chain, &notes), 1);
	assert_non_null(strstr(notes[0], "build-id differs"));
}

TEST(missing_file_and_given_image)
{
	__attribute__((cleanup(rig_close))) struct rig gone = { 0 };
	__attribute__((cleanup(rig_close))) struct rig given = { 0 };
	const char *const *notes;
	struct rt_frame frame;

	build("-O2 -g");
	rig_open(&gone, "p", "/nowhere/p", NULL, false);
	gone.namer->name(gone.namer, PID, 5, BASE + gone.image->entry.v, false, &frame, 1);
	assert_null(frame.function);
	assert_string_equal(frame.module, "/nowhere/p");
	assert_int_equal(rt_chain_notes(gone.chain, &notes), 1);
	rig_open(&given, "p", "/nowhere/p", NULL, false);
	assert_ok(rt_chain_give_image(given.chain, 1, given.image));
	given.namer->name(given.namer, PID, 5, BASE + given.image->entry.v, false, &frame, 1);
	assert_string_equal(frame.function, "_start");
	assert_int_equal(rt_chain_notes(given.chain, &notes), 0);
}

TEST(stripped_is_noted)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	const char *const *notes;
	struct rt_frame frame;

	build("-O2 -s");
	rig_open(&rig, "p", NULL, NULL, false);
	rig.namer->name(rig.namer, PID, 5, BASE + rig.image->entry.v, false, &frame, 1);
	assert_int_equal(rt_chain_hints(rig.chain, &notes), 1);
	assert_non_null(strstr(notes[0], "no symbols"));
}

static void set_time(const char *name, time_t when)
{
	_cleanup_free_ char *path = built_path(name);
	struct timeval times[2] = { { .tv_sec = when }, { .tv_sec = when } };

	assert_int_equal(utimes(path, times), 0);
}

TEST(source_lines)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	_cleanup_free_ char *file = built_path("p.cc"), *crlf = built_write("crlf.c", "one\r\n\r\nlast");
	_cleanup_free_ char *fifo = built_path("fifo"), *big = built_path("big"), *late = built_write("late.c", "x\n");
	struct rt_namer *n;
	bool stale = true;

	build("-O2 -g");
	assert_true(built_run("rm -f fifo big && mkfifo fifo && truncate -s 17M big"));
	set_time("p", 2000);
	set_time("p.cc", 1000);
	set_time("crlf.c", 2000);
	set_time("late.c", 2001);
	rig_open(&rig, "p", NULL, NULL, false);
	n = rig.namer;
	assert_string_equal(n->source_line(n, 1, file, 13, &stale), "\tprintf(\"%d\\n\", n);");
	assert_false(stale);
	assert_string_equal(n->source_line(n, 1, crlf, 1, NULL), "one");
	assert_string_equal(n->source_line(n, 1, crlf, 2, NULL), "");
	assert_string_equal(n->source_line(n, 1, crlf, 3, NULL), "last");
	assert_null(n->source_line(n, 1, crlf, 4, NULL));
	assert_null(n->source_line(n, 1, crlf, 0, NULL));
	assert_null(n->source_line(n, 1, late, 1, &stale));
	assert_true(stale);
	alarm(20);
	assert_null(n->source_line(n, 1, fifo, 1, &stale));
	assert_false(stale);
	assert_null(n->source_line(n, 1, big, 1, NULL));
	assert_null(n->source_line(n, 1, "/dev/zero", 1, NULL));
	assert_null(n->source_line(n, 1, "p.cc", 1, NULL));
	assert_null(n->source_line(n, 1, "/nowhere/x.c", 1, NULL));
	alarm(0);
}

TEST(below_another_root)
{
	__attribute__((cleanup(rig_close))) struct rig rig = { 0 };
	__attribute__((cleanup(rig_close))) struct rig without = { 0 };
	_cleanup_free_ char *root = built_path("root/");
	struct rt_chain_options options = { .symfs = root, .no_demangle = true };
	struct rt_frame frame;
	uint64_t start;

	build("-O1");
	assert_true(built_run("mkdir -p root/opt && cp -p p root/opt/prog && echo text > root/opt/s.c"));
	rig_open(&rig, "p", "/opt/prog", &options, false);
	start = address_of("nm p | awk '$3 ~ /leave/ { print $1; exit }'");
	rig.namer->name(rig.namer, PID, 5, BASE + start, false, &frame, 1);
	assert_string_equal(frame.function, "_ZL5leavei");
	assert_string_equal(frame.module, "/opt/prog");
	set_time("root/opt/s.c", 1000);
	assert_string_equal(rig.namer->source_line(rig.namer, 1, "/opt/s.c", 1, NULL), "text");
	options.no_source = true;
	rig_open(&without, "p", "/opt/prog", &options, false);
	assert_null(without.namer->source_line(without.namer, 1, "/opt/s.c", 1, NULL));
}

TEST_MAIN();
