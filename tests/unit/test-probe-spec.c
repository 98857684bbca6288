/* SPDX-License-Identifier: GPL-2.0-only */
/* The SPEC language: what it reads, what each error says, and that writing and reading agree. */
#include "probe/spec.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/sink.h"
#include "probe/near.h"
#include "probe/source_name.h"

#include "test.h"

static struct rt_error *parse(const char *text, struct rt_spec *spec)
{
	return rt_spec_parse(text, strlen(text), "-P", spec);
}

/* The error of text begins with this message; and nothing was added. */
static void assert_says(const char *text, const char *message)
{
	struct rt_spec spec = { 0 };
	struct rt_error *err = parse(text, &spec);

	assert_non_null(err);
	assert_string_equal(rt_code_text(err->code), rt_code_text(RT_E_SPEC));
	assert_string_equal(err->message, message);
	assert_int_equal(spec.types.len, 0);
	rt_error_free(err);
	rt_spec_deinit(&spec);
}

TEST(markers)
{
	struct rt_spec spec = { 0 };
	struct rt_spec_type *t;
	_cleanup_free_ char *text = NULL;

	assert_ok(parse("new=sdt:conn:open get=sdt:conn:get__ref@libc*.so:3 put=sdt:co?n:put*:*12", &spec));
	t = &spec.types.data[0];
	assert_string_equal(t->name, "object");
	assert_int_equal(t->functions.len, 3);
	assert_string_equal(t->functions.data[0].name, "sdt:conn:open");
	assert_int_equal(t->functions.data[0].place, RT_PLACE_ARG);
	assert_int_equal(t->functions.data[0].arg, 1);
	assert_string_equal(t->functions.data[1].name, "sdt:conn:get__ref");
	assert_string_equal(t->functions.data[1].dso, "libc*.so");
	assert_int_equal(t->functions.data[1].arg, 3);
	assert_string_equal(t->functions.data[2].name, "sdt:co?n:put*");
	assert_int_equal(t->functions.data[2].place, RT_PLACE_ARG_PTR);
	assert_int_equal(t->functions.data[2].arg, 12);
	assert_ok(rt_spec_write(&spec, &text));
	rt_spec_deinit(&spec);
	assert_string_equal(text, "[object]\nnew=sdt:conn:open:1\nget=sdt:conn:get__ref@libc*.so:3\n"
				  "put=sdt:co?n:put*:*12\n");
	assert_ok(parse("get=sdt:conn:get put=sdt:conn:put", &spec));
	assert_string_equal(spec.types.data[0].name, "conn");
	rt_spec_deinit(&spec);
}

/* Names of C++ and Rust: what is in brackets belongs to them, and "::" is no place. */
TEST(names_of_sources)
{
	static const char *const names[] = { "ns::Node::make",
					     "ns::Ref<ns::Node, int>::get",
					     "ns::put(ns::Node*, char const*)",
					     "ns::S::operator<<",
					     "ns::S::operator()(int)",
					     "ns::S::operator,",
					     "ns::Node::~Node",
					     "(anonymous namespace)::drop",
					     "<t::Node as core::clone::Clone>::clone",
					     "t::main::{closure#0}",
					     "sdt::get",
					     "ns::Node::operator\\ new",
					     "ns::*::ref" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		static const char *const behind[] = { ":2", "@libx.so:*3", ":2?ret<0", ":2,other::f:1", "" };

		for (size_t k = 0; k < sizeof(behind) / sizeof(behind[0]); k++) {
			_cleanup_free_ char *text = NULL, *written = NULL, *again = NULL;
			struct rt_spec spec = { 0 };
			const struct rt_spec_function *f;

			assert_true(asprintf(&text, "type=t get=%s%s put=f # get=g(", names[i], behind[k]) > 0);
			assert_ok(parse(text, &spec));
			f = &spec.types.data[0].functions.data[0];
			assert_string_equal(f->name, names[i]);
			assert_int_equal(f->arg, k == 1 ? 3 : k == 4 ? 1 : 2);
			assert_int_equal(f->condition, k == 2 ? RT_IF_NEGATIVE : RT_IF_ALWAYS);
			assert_int_equal(spec.types.data[0].functions.len, k == 3 ? 3 : 2);
			assert_ok(rt_spec_write(&spec, &written));
			rt_spec_deinit(&spec);
			assert_ok(parse(written, &spec));
			assert_ok(rt_spec_write(&spec, &again));
			assert_string_equal(written, again);
			rt_spec_deinit(&spec);
		}
	}
	assert_says("get=ns::f(int put=g", "-P: line 1, column 10: this bracket is not closed");
	assert_says("get=ns::f:1)", "-P: line 1, column 11: '1)' does not say where the object is, expected N, *N, "
				    "**N, ret, *ret or out*N");
	assert_says(
		"get=f::1",
		"-P: line 1, column 7: ':1' does not say where the object is, expected N, *N, **N, ret, *ret or out*N");
}

/* What a type is called that has no name of its own. */
TEST(types_of_sources)
{
	static const char *const texts[][2] = { { "get=ns::Node::ref put=ns::Node::unref", "ns::Node" },
						{ "get=Ref<ns::Node>::ref put=Ref<ns::Node>::unref", "Ref.ns::Node" },
						{ "get=<t::Node>::ref put=<t::Node>::unref", "t::Node" } };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct rt_spec spec = { 0 };

		assert_ok(parse(texts[i][0], &spec));
		assert_string_equal(spec.types.data[0].name, texts[i][1]);
		rt_spec_deinit(&spec);
	}
}

/* Whether a name of a spec means a symbol; the symbols are g++'s and rustc's. */
TEST(what_names_of_sources_mean)
{
	static const struct {
		const char *spec, *linkage;
		bool means;
	} table[] = {
		{ "ns::Node::ref", "_ZN2ns4Node3refEv", true },
		{ "Node::ref", "_ZN2ns4Node3refEv", true },
		{ "ode::ref", "_ZN2ns4Node3refEv", false },
		{ "ns::Node::re", "_ZN2ns4Node3refEv", false },
		{ "ns::*::ref", "_ZN2ns4Node3refEv", true },
		{ "ns::f(ns::Node*)", "_ZN2ns1fEPNS_4NodeE", true },
		{ "ns::f(ns::Node*)", "_ZN2ns1fEPKNS_4NodeE", false },
		{ "ns::f(ns::Node const*)", "_ZN2ns1fEPKNS_4NodeE", true },
		{ "ns::f(*)", "_ZN2ns1fEPKNS_4NodeE", true },
		{ "ns::f(int, *)", "_ZN2ns1fEil", true },
		{ "ns::f(int, *)", "_ZN2ns1fEli", false },
		{ "ns::f", "_ZN2ns1fEPKNS_4NodeE", true },
		/* of the parameters, nothing is a name */
		{ "Node*", "_ZN2ns1fEPNS_4NodeE", false },
		{ "ns::Ref<ns::Node>::take", "_ZN2ns3RefINS_4NodeEE4takeEPS1_", true },
		{ "ns::Ref<*>::take", "_ZN2ns3RefINS_4NodeEE4takeEPS1_", true },
		{ "ns::Ref<ns::Leaf>::take", "_ZN2ns3RefINS_4NodeEE4takeEPS1_", false },
		{ "Node::*", "_ZN2ns3RefINS_4Node1XEE4takeEv", false },
		{ "ns::plus<int>(int)", "_ZN2ns4plusIiEEiT_", true },
		{ "ns::Node::Node", "_ZN2ns4NodeC1Ev", true },
		{ "ns::Node::~Node", "_ZN2ns4NodeD2Ev", true },
		{ "ns::op::operator<<", "_ZN2ns2oplsEi", true },
		{ "ns::op::operator*", "_ZN2ns2opmlEi", true },
		{ "ns::op::operator*", "_ZN2ns2oplsEi", false },
		{ "ns::op::operator\\ new", "_ZN2ns2opnwEm", true },
		{ "(anonymous namespace)::make", "_ZN2ns12_GLOBAL__N_14makeEil", true },
		/* Rust: both schemes, traits and instances may be left out */
		{ "foo::bar", "_ZN3foo3bar17h0123456789abcdefE", true },
		{ "123foo::bar", "_RNvC6_123foo3bar", true },
		{ "<arrayvec::ArrayVec<u8, 123>>::new", "_RNvMC0INtC8arrayvec8ArrayVechKj7b_E3new", true },
		{ "arrayvec::ArrayVec<u8, 123>::new", "_RNvMC0INtC8arrayvec8ArrayVechKj7b_E3new", true },
		{ "t::gen", "_RINvC1t3genhE", true },
		{ "t::gen::<u8>", "_RINvC1t3genhE", true },
		{ "t::gen::<u16>", "_RINvC1t3genhE", false },
		{ "t::Node::clone", "_RNvXC0NtC1t4NodeNtC4core5Clone5clone", true },
		{ "<t::Node as core::Clone>::clone", "_RNvXC0NtC1t4NodeNtC4core5Clone5clone", true },
		{ "core::Clone::clone", "_RNvXC0NtC1t4NodeNtC4core5Clone5clone", false },
		/* a plain name is that of C, or of C++ outside of all namespaces */
		{ "get", "get", true },
		{ "get", "_Z3getP3obj", true },
		{ "get", "_ZL3getP3obj", true },
		{ "get", "_ZN2ns3getEv", false },
		{ "ge", "_Z3getP3obj", false },
		{ "obj", "_Z3getP3obj", false },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (rt_spec_means(table[i].spec, table[i].linkage, true) != table[i].means)
			fail_msg("%s, %s", table[i].spec, table[i].linkage);
	assert_false(rt_spec_means("get", "_Z3getP3obj", false));
	assert_true(rt_spec_is_glob("ns::*::f"));
	assert_false(rt_spec_is_glob("ns::f(char*, int (*)(long))"));
}

TEST(system_calls)
{
	static const char words[] = "[fd]\nnew=sys:openat:ret\nnew=sys:pipe:out*1+4\nnew=sys:fcntl.dupfd:ret?ret>0\n"
				    "free=sys:close:1\nfree=sys:close_range:1-2\n\n"
				    "[map]\nnew=sys:mmap:ret[2]\nfree=sys:munmap:1[2]\n";
	struct rt_spec spec = { 0 };
	_cleanup_free_ char *text = NULL;
	const struct rt_spec_function *f;

	assert_ok(parse(words, &spec));
	assert_ok(rt_spec_write(&spec, &text));
	assert_string_equal(text, words);
	f = spec.types.data[0].functions.data;
	assert_int_equal(f[0].place, RT_PLACE_RET);
	assert_int_equal(f[1].place, RT_PLACE_OUT);
	assert_int_equal(f[1].behind, 4);
	assert_int_equal(f[4].size_arg, 2);
	assert_true(f[4].to);
	assert_int_equal(spec.types.data[1].functions.data[1].size_arg, 2);
	assert_false(spec.types.data[1].functions.data[1].to);
	rt_spec_deinit(&spec);
	/* a function that is called sys, and its places */
	assert_ok(parse("new=sys:ret get=sys:1 put=sys:out*2", &spec));
	assert_string_equal(spec.types.data[0].functions.data[0].name, "sys");
	rt_spec_deinit(&spec);
	assert_says("new=sys:opennat free=sys:close",
		    "-P: line 1, column 9: opennat is no system call that hands out or takes back descriptors or "
		    "mappings");
	assert_says("new=sys:openat free=my_close",
		    "-P: line 1, column 21: one type cannot have sys:openat and my_close: its objects are of one kind, "
		    "expected a type= of its own");
	assert_says("new=sys:openat free=sys:munmap:1[2]",
		    "-P: line 1, column 21: one type cannot have sys:openat and sys:munmap: its objects are of one "
		    "kind, expected a type= of its own");
	/* nor one that two places make: the same text, or two -P */
	assert_says("[m] new=sys:dup:ret\n[m] new=sys:mmap:ret[2]",
		    "type m cannot have sys:dup and sys:mmap: its objects are of one kind");
	assert_ok(parse("[m] new=sys:dup:ret", &spec));
	assert_code(parse("[n] get=f\n[m] put=my_close", &spec), RT_E_SPEC);
	assert_int_equal(spec.types.len, 1);
	assert_int_equal(spec.types.data[0].functions.len, 1);
	assert_ok(parse("[m] free=sys:close", &spec));
	assert_int_equal(spec.types.data[0].functions.len, 2);
	rt_spec_deinit(&spec);
	assert_says("get=sys:dup free=sys:close",
		    "-P: line 1, column 5: a system call can stand in new= and free= only");
	assert_says("new=sys:mmap:ret[2 free=sys:munmap:1[2]",
		    "-P: line 1, column 17: this '[' is not closed, expected [N]: argument N says how many bytes");
	assert_says("new=sys:mmap:ret[7] free=sys:munmap:1[2]", "-P: line 1, column 18: '7' is no number from 1 to 6");
	assert_says("new=sys:openat@libc.so free=sys:close",
		    "-P: line 1, column 5: expected sys:NAME[:N, :N[M], :N-M, :ret, :ret[M] or :out*N+BYTES]");
}

TEST(cached_definitions)
{
	struct rt_spec spec = { 0 };
	struct rt_spec_type *t;
	_cleanup_free_ char *text = NULL;

	assert_ok(parse("new=%conn:open get=%conn:get@libc*.so:3 put=%co?n:put*:*12", &spec));
	t = &spec.types.data[0];
	assert_string_equal(t->functions.data[0].name, "%conn:open");
	assert_int_equal(t->functions.data[0].place, RT_PLACE_ARG);
	assert_string_equal(t->functions.data[1].dso, "libc*.so");
	assert_int_equal(t->functions.data[2].place, RT_PLACE_ARG_PTR);
	assert_ok(rt_spec_write(&spec, &text));
	rt_spec_deinit(&spec);
	assert_string_equal(text, "[object]\nnew=%conn:open:1\nget=%conn:get@libc*.so:3\nput=%co?n:put*:*12\n");
	assert_says("get=%a:b:ret", "-P: line 1, column 5: a cached definition has its own arguments only, expected "
				    "%GROUP:EVENT[@FILE][:N or :*N]");
	/* a group is told: names of events are others' as well */
	assert_says("get=%b", "-P: line 1, column 5: a function name is missing before '%b'");
	assert_says("get=%:b", "-P: line 1, column 5: a function name is missing before '%:b'");
}

TEST(markers_have_no_results)
{
	static const char expected[] = "a marker has arguments only, expected sdt:PROVIDER:NAME[@FILE][:N or :*N]";
	static const char *const texts[] = { "get=sdt:a:b:ret", "get=sdt:a:b:out*1", "get=sdt:a:b:1?ret>0",
					     "get=sdt:a:b:1:tail", "get=sdt:a:b:*1+8" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char message[160];

		snprintf(message, sizeof(message), "-P: line 1, column 5: %s", expected);
		assert_says(texts[i], message);
	}
	assert_says("get=sdt:a:b:13", "-P: line 1, column 13: argument 13 cannot be seen, expected 1 to 12");
}

TEST(whole_language)
{
	struct rt_spec spec = { 0 };
	struct rt_spec_type *t;

	assert_ok(
		parse("type=obj new=obj_new get=obj_get:1,obj_ref@libo.so:3?ret>0 put=obj_put,obj_drop:*2\n"
		      "\tfree=obj_free:1 hidden=obj_find,obj_look:out*4?ret==0 start=2 counter=obj.refs.n class=+8>-4\n"
		      "sink=s* steal=a?b:2 swap=w:*1 move=m use=u:6 new=n:*ret # get=comment:9\n",
		      &spec));
	assert_int_equal(spec.types.len, 1);
	t = &spec.types.data[0];
	assert_string_equal(t->name, "obj");
	assert_string_equal(t->origin, "-P");
	assert_int_equal(t->functions.len, 14);
	assert_int_equal(t->functions.data[0].place, RT_PLACE_RET);
	assert_int_equal(t->functions.data[1].arg, 1);
	assert_null(t->functions.data[1].dso);
	assert_string_equal(t->functions.data[2].name, "obj_ref");
	assert_string_equal(t->functions.data[2].dso, "libo.so");
	assert_int_equal(t->functions.data[2].arg, 3);
	assert_int_equal(t->functions.data[2].condition, RT_IF_POSITIVE);
	assert_int_equal(t->functions.data[4].place, RT_PLACE_ARG_PTR);
	assert_int_equal(t->functions.data[4].arg, 2);
	assert_true(t->functions.data[6].hidden);
	assert_int_equal(t->functions.data[6].op, RT_OP_GET);
	assert_int_equal(t->functions.data[6].place, RT_PLACE_RET);
	assert_int_equal(t->functions.data[7].place, RT_PLACE_OUT);
	assert_int_equal(t->functions.data[7].condition, RT_IF_ZERO);
	assert_string_equal(t->functions.data[9].name, "a?b");
	assert_int_equal(t->functions.data[13].place, RT_PLACE_RET_PTR);
	assert_int_equal(t->start, 2);
	assert_string_equal(t->counter_struct, "obj");
	assert_string_equal(t->counter_member, "refs.n");
	assert_string_equal(t->klass, "+8>-4");
	assert_int_equal(t->path.steps, 2);
	assert_int_equal(t->path.step[1], -4);
	rt_spec_deinit(&spec);
}

TEST(types_from_headers_words_and_prefixes)
{
	struct rt_spec spec = { 0 };

	assert_ok(parse("[a]\nget=a_get\nput=a_put\n[b]\nget=b_get counter=+16:8\ntype=c get=c_get", &spec));
	assert_int_equal(spec.types.len, 3);
	assert_int_equal(spec.types.data[1].counter_offset, 16);
	assert_int_equal(spec.types.data[1].counter_size, 8);
	assert_string_equal(spec.types.data[2].name, "c");
	/* type= after its functions; no type= at all; nothing in common */
	assert_ok(parse("new=foo_new get=foo_get type=late start=floating", &spec));
	assert_ok(parse("get=thing_get put=thing_put,thing_gone", &spec));
	assert_ok(parse("get=hold put=drop", &spec));
	assert_int_equal(spec.types.len, 6);
	assert_string_equal(spec.types.data[3].name, "late");
	assert_true(spec.types.data[3].floating);
	assert_string_equal(spec.types.data[4].name, "thing");
	assert_string_equal(spec.types.data[5].name, "object");
	rt_spec_deinit(&spec);
}

TEST(types_of_one_name_are_joined)
{
	struct rt_spec spec = { 0 };

	assert_ok(parse("[a] get=x put=y start=1 [b] get=z [a] get=x get=w start=0 [b] put=q", &spec));
	assert_int_equal(spec.types.len, 2);
	assert_int_equal(spec.types.data[0].functions.len, 3);
	assert_int_equal(spec.types.data[0].start, 0);
	assert_ok(parse("type=b get=z put=q free=f counter=b.n", &spec));
	assert_int_equal(spec.types.len, 2);
	assert_int_equal(spec.types.data[1].functions.len, 3);
	assert_string_equal(spec.types.data[1].counter_member, "n");
	rt_spec_deinit(&spec);
}

TEST(only_the_types_asked_for)
{
	static const char text[] = "[a]\nget=a_get\n[b]\nget=b_get\nput=b_put\n[c]\nget=c_get\n";
	static const char *const names[] = { "c", "b", "d" };
	struct rt_spec spec = { 0 };

	assert_ok(rt_spec_parse(text, strlen(text), "t", &spec));
	rt_spec_keep(&spec, names, 3);
	assert_int_equal(spec.types.len, 2);
	assert_string_equal(spec.types.data[0].name, "b");
	assert_int_equal(spec.types.data[0].functions.len, 2);
	assert_string_equal(spec.types.data[1].name, "c");
	rt_spec_keep(&spec, names + 2, 1);
	assert_int_equal(spec.types.len, 0);
	rt_spec_deinit(&spec);
}

TEST(writing_and_reading_agree)
{
	static const char text[] =
		"[obj]\nnew=obj_new:ret\nnew=obj_make:*ret?ret!=0\nget=obj_get@lib*.so:1\nget=g:out*2?ret>=0\n"
		"hidden=obj_find:ret\nput=obj_put:*3+40?ret<0\nfree=0x1f0@prog:1\nstart=floating\n"
		"counter=+8:4\n\n[two]\nget=two_get:1\nput=two_put:**2\nstart=3\ncounter=two.a.b\nclass=+8>-16>+0:look@"
		"lib.so\nunverified="
		"two_get\n\n"
		"[three]\nfree=three_free:1\ncounter=-32:4\n";
	_cleanup_free_ char *written = NULL;
	struct rt_spec spec = { 0 };

	assert_ok(parse(text, &spec));
	assert_ok(rt_spec_write(&spec, &written));
	assert_string_equal(written, text);
	rt_spec_deinit(&spec);
}

TEST(what_nobody_verified)
{
	struct rt_spec spec = { 0 };
	struct rt_spec_type *t;

	assert_ok(parse("type=a unverified=a_find,a_new new=a_new,a_make get=a_get put=a_put hidden=a_find "
			"type=b unverified=* get=b_get put=b_put type=c get=c_get put=c_put,c_drop unverified=c_drop",
			&spec));
	t = &spec.types.data[0];
	assert_true(rt_spec_verified(t));
	assert_int_equal(t->functions.len, 3);
	assert_string_equal(t->functions.data[0].name, "a_make");
	assert_false(rt_spec_verified(&spec.types.data[1]));
	/* what is put by c_drop would look lost */
	assert_false(rt_spec_verified(&spec.types.data[2]));
	rt_spec_deinit(&spec);
	assert_says("get=a_get unverified=a_put",
		    "-P: line 1, column 22: 'a_put' is no function of the type, expected the name of one, or *");
}

TEST(every_error_says_where_and_what_is_expected)
{
	assert_says("", "-P: line 1, column 1: nothing is named, expected words like get=FN:1 put=FN:1");
	assert_says("type=a get=x\n  gett=y", "-P: line 2, column 3: unknown key 'gett', expected one of type new get "
					      "put free sink steal swap move use "
					      "hidden start counter class unverified preset");
	assert_says("get", "-P: line 1, column 1: 'get' is no KEY=VALUE word");
	assert_says("get= put=x", "-P: line 1, column 5: nothing after 'get='");
	assert_says("get=:1", "-P: line 1, column 5: a function name is missing before ':1'");
	assert_says("get=a,,b", "-P: line 1, column 7: a function name is missing");
	assert_says("get=a:0", "-P: line 1, column 7: argument 0 cannot be seen, expected 1 to 6");
	assert_says("get=a:**7", "-P: line 1, column 9: argument 7 cannot be seen, expected 1 to 6");
	assert_says("get=a:**1+8", "-P: line 1, column 7: '**1+8' is too much, expected *N+BYTES");
	assert_says("get=a:*1+x", "-P: line 1, column 10: 'x' is no number from 1 to 255");
	assert_says("get=a:1+8",
		    "-P: line 1, column 7: '1+8' does not say where the object is, expected N, *N, **N, ret, "
		    "*ret or out*N");
	assert_says("get=a class=button", "-P: line 1, column 13: class='button' is not understood here, expected "
					  "+N[>+N...][:FN] or vtable");
	assert_says("get=a class=+8>", "-P: line 1, column 16: class='+8>' is not understood here, expected "
				       "+N[>+N...][:FN] or vtable");
	assert_says("get=a class=-8>+8", "-P: line 1, column 13: class='-8>+8' is not understood here, expected "
					 "+N[>+N...][:FN] or vtable");
	assert_says("get=a class=+8:f", "-P: line 1, column 15: class='+8:f' is not understood here, expected "
					"+N[>+N...][:FN] or vtable");
	assert_says("get=a class=+0>+0>+0>+0>+0>+0>+0", "-P: line 1, column 31: class='+0>+0>+0>+0>+0>+0>+0' is not "
							"understood here, expected +N[>+N...][:FN] or vtable");
	assert_says("get=a counter=-3:4", "-P: line 1, column 15: counter='-3:4' does not end before the object");
	assert_says("get=a:*7", "-P: line 1, column 8: argument 7 cannot be seen, expected 1 to 6");
	assert_says("get=a:return",
		    "-P: line 1, column 7: 'return' does not say where the object is, expected N, *N, **N, ret, "
		    "*ret or out*N");
	assert_says("get=a:1?ret=1",
		    "-P: line 1, column 9: unknown condition 'ret=1', expected ret!=0, ret==0, ret>0, ret<0 or "
		    "ret>=0");
	assert_says("get=a@:1", "-P: line 1, column 7: no file name after '@', expected one like libfoo.so.1");
	assert_says("get=a/b",
		    "-P: line 1, column 6: unexpected '/b' after the function name, expected @FILE, :PLACE or ?ret");
	assert_says("get=0x12:1", "-P: line 1, column 9: address 0x12 needs its file, expected 0x12@FILE");
	assert_says("get=0xyz@f", "-P: line 1, column 5: '0xyz' is no address, expected 0x and hexadecimal digits");
	assert_says("get=a start=-1",
		    "-P: line 1, column 13: start='-1' is no count, expected 0, 1, another number, or floating");
	assert_says("get=a counter=refs",
		    "-P: line 1, column 15: counter='refs' names no field, expected STRUCT.MEMBER, "
		    "+OFFSET[:BYTES] or -OFFSET[:BYTES]");
	assert_says("get=a counter=+x",
		    "-P: line 1, column 15: counter='+x' is no offset, expected +BYTES, -BYTES or +BYTES:SIZE");
	assert_says("get=a counter=+8:3", "-P: line 1, column 18: a counter has 1, 2, 4 or 8 bytes, not '3'");
	assert_says("type=a",
		    "-P: line 1, column 6: type a names no function, expected new=, get=, put= or free=, or counter=");
	assert_says("type=a/b get=c",
		    "-P: line 1, column 7: 'a/b' is no type name, expected letters, digits, '_', '-', '.' and "
		    "':'");
	assert_says("[a get=b", "-P: line 1, column 1: '[a' is no type header, expected [name]");
	assert_says("get=a\x01",
		    "-P: line 1, column 6: unexpected '?' after the function name, expected @FILE, :PLACE or ?ret");
}

TEST(a_near_key_is_named)
{
	struct rt_spec spec = { 0 };
	struct rt_error *err = parse("puts=x", &spec);

	assert_non_null(err);
	assert_string_equal(err->fix, "did you mean put=?");
	rt_error_free(err);
}

TEST(a_failed_parse_changes_nothing)
{
	struct rt_spec spec = { 0 };
	_cleanup_free_ char *before = NULL, *after = NULL;

	assert_ok(parse("[a] get=x put=y start=1", &spec));
	assert_ok(rt_spec_write(&spec, &before));
	assert_code(parse("[a] get=z start=0 [b] get=q oops", &spec), RT_E_SPEC);
	assert_ok(rt_spec_write(&spec, &after));
	assert_string_equal(before, after);
	rt_spec_deinit(&spec);
}

TEST(lines_and_lists_may_be_long)
{
	struct rt_spec spec = { 0 };
	struct rt_sink text;

	rt_sink_init_memory(&text);
	rt_sink_puts(&text, "[long] get=");
	for (int i = 0; i < 2000; i++)
		rt_sink_printf(&text, "a_rather_long_function_name_number_%d%s", i, i < 1999 ? "," : "\n");
	assert_ok(rt_spec_parse(text.buffer, text.len, "x", &spec));
	assert_int_equal(spec.types.data[0].functions.len, 2000);
	rt_spec_deinit(&spec);
	rt_sink_deinit(&text);
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

TEST(arguments_are_specs_files_or_presets)
{
	char dir[] = "/tmp/reftrace-spec-XXXXXX", path[256];
	const char *dirs[] = { "/nonexistent", NULL, NULL };
	struct rt_spec spec = { 0 };
	struct rt_error *err;

	assert_non_null(mkdtemp(dir));
	dirs[1] = dir;
	write_file(dir, "gobject", "[GObject]\nget=g_object_ref\nput=g_object_unref\n");
	write_file(dir, "glib", "[GBytes] get=g_bytes_ref\nputt=x\n");
	assert_ok(rt_spec_argument("gobject", dirs, &spec));
	assert_string_equal(spec.types.data[0].origin, "presets/gobject");
	assert_ok(rt_spec_argument("get=a put=b type=t", dirs, &spec));
	snprintf(path, sizeof(path), "%s/gobject", dir);
	assert_ok(rt_spec_argument(path, dirs, &spec));
	assert_int_equal(spec.types.len, 2);
	err = rt_spec_argument("glib", dirs, &spec);
	assert_non_null(err);
	assert_non_null(strstr(err->message, "presets/glib: line 2, column 1: unknown key 'putt'"));
	rt_error_free(err);
	err = rt_spec_argument("gobjekt", dirs, &spec);
	assert_non_null(err);
	assert_string_equal(rt_code_text(err->code), rt_code_text(RT_E_NOT_FOUND));
	assert_string_equal(err->message, "no preset 'gobjekt'");
	assert_string_equal(err->fix,
			    "did you mean: gobject?\npresets: glib, gobject\n"
			    "a file is named with its folder (./gobjekt), a spec holds '=' (get=FN:1 put=FN:1)");
	rt_error_free(err);
	snprintf(path, sizeof(path), "%s/none", dir);
	assert_code(rt_spec_argument(path, dirs, &spec), RT_E_NOT_FOUND);
	assert_code(rt_spec_argument("..", dirs, &spec), RT_E_NOT_FOUND);
	rt_spec_deinit(&spec);
	snprintf(path, sizeof(path), "%s/gobject", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/glib", dir);
	unlink(path);
	rmdir(dir);
}

/* preset= takes in the types of other presets, each once, in circles too */
TEST(presets_include_presets)
{
	char dir[] = "/tmp/reftrace-spec-XXXXXX", path[256];
	static const char *const files[] = { "all", "some", "more", "lost" };
	const char *dirs[] = { NULL, NULL };
	struct rt_spec spec = { 0 };
	struct rt_error *err;

	assert_non_null(mkdtemp(dir));
	dirs[0] = dir;
	write_file(dir, "all", "preset=some,more\n[A]\nget=a_get put=a_put\n");
	write_file(dir, "some", "[B]\nget=b_get put=b_put\npreset=more\n");
	write_file(dir, "more", "preset=all\n[C]\nget=c_get put=c_put\n");
	write_file(dir, "lost", "preset=morf\n[D]\nget=d_get put=d_put\n");
	assert_ok(rt_spec_argument("all", dirs, &spec));
	assert_int_equal(spec.types.len, 3);
	assert_string_equal(spec.types.data[0].name, "A");
	assert_string_equal(spec.types.data[1].name, "B");
	assert_string_equal(spec.types.data[1].origin, "presets/some");
	assert_int_equal(spec.types.data[1].functions.len, 2);
	rt_spec_deinit(&spec);
	assert_ok(rt_spec_argument("preset=more type=e get=e_get put=e_put", dirs, &spec));
	assert_int_equal(spec.types.len, 4);
	rt_spec_deinit(&spec);
	assert_ok(rt_spec_argument("preset=some", dirs, &spec));
	assert_int_equal(spec.types.len, 3);
	/* a failure leaves nothing behind */
	err = rt_spec_argument("lost", dirs, &spec);
	assert_non_null(err);
	assert_string_equal(err->message, "no preset 'morf'");
	assert_non_null(strstr(err->fix, "did you mean: more?"));
	rt_error_free(err);
	assert_int_equal(spec.types.len, 3);
	rt_spec_deinit(&spec);
	assert_says("preset=glib", "-P: line 1, column 8: preset= is not understood here");
	assert_code(rt_spec_argument("preset=../x", dirs, &spec), RT_E_SPEC);
	assert_code(rt_spec_argument("preset=a,", dirs, &spec), RT_E_SPEC);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
}

TEST(tails)
{
	struct rt_spec spec = { 0 };
	const struct rt_spec_function *f;
	_cleanup_free_ char *text = NULL;

	assert_ok(parse("type=t get=a:2:tail put=b:tail,c:1", &spec));
	f = spec.types.data[0].functions.data;
	assert_true(f[0].tail && f[1].tail && !f[2].tail);
	assert_int_equal(f[0].arg, 2);
	assert_int_equal(f[1].arg, 1);
	assert_ok(rt_spec_write(&spec, &text));
	assert_non_null(strstr(text, "get=a:2:tail\nput=b:1:tail\nput=c:1\n"));
	rt_spec_deinit(&spec);
	assert_says("get=a:ret:tail put=b",
		    "-P: line 1, column 7: :tail is for objects that are an argument, expected N:tail");
	assert_says("get=a:*1:tail put=b",
		    "-P: line 1, column 7: :tail is for objects that are an argument, expected N:tail");
	assert_says("get=a:1:tial put=b", "-P: line 1, column 7: '1:tial' does not say where the object is, expected "
					  "N, *N, **N, ret, *ret or out*N");
}

TEST(globs)
{
	assert_true(rt_glob_match("*", ""));
	assert_true(rt_glob_match("a*b*c", "aXXbYYbZc"));
	assert_true(rt_glob_match("?_get", "x_get"));
	assert_true(rt_glob_match("**x", "yyx"));
	assert_false(rt_glob_match("a*b", "acbd"));
	assert_false(rt_glob_match("?", ""));
	assert_false(rt_glob_match("abc", "ab"));
	/* classes as perf has them: the first one is a member, whatever it is */
	assert_true(rt_glob_match("obj_[gp]et", "obj_get"));
	assert_false(rt_glob_match("obj_[gp]et", "obj_set"));
	assert_true(rt_glob_match("*[0-9]", "f12"));
	assert_false(rt_glob_match("*[0-9]", "f1x"));
	assert_true(rt_glob_match("[!0-9]*", "f1"));
	assert_false(rt_glob_match("[!0-9]*", "1f"));
	assert_true(rt_glob_match("a[]x]b", "a]b"));
	assert_true(rt_glob_match("a[!]x]b", "ayb"));
	assert_false(rt_glob_match("a[!]x]b", "a]b"));
	assert_true(rt_glob_match("[a-]", "-"));
	assert_true(rt_glob_match("[a-]", "a"));
	assert_false(rt_glob_match("[a-]", "b"));
	assert_true(rt_glob_match("x[a-cq-s]y", "xry"));
	assert_false(rt_glob_match("x[c-a]y", "xby"));
	assert_false(rt_glob_match("[ab]", ""));
	/* what means itself */
	assert_true(rt_glob_match("a\\*b", "a*b"));
	assert_false(rt_glob_match("a\\*b", "axb"));
	assert_true(rt_glob_match("*\\[i\\]++*", "a[i]++;"));
	assert_false(rt_glob_match("*[i]++*", "a[i]++;"));
	assert_true(rt_glob_match("\\?", "?"));
	assert_false(rt_glob_match("\\?", "x"));
	assert_true(rt_glob_match("\\\\*", "\\x"));
	/* names with brackets fit themselves, and a class without an end is none */
	assert_true(rt_glob_match("operator[]", "operator[]"));
	assert_true(rt_glob_match("<[T]>::len", "<[T]>::len"));
	assert_true(rt_glob_match("x[", "x["));
	assert_true(rt_glob_match("*[", "y["));
	assert_int_equal(rt_glob_class("[]]x"), 3);
	assert_int_equal(rt_glob_class("[!]"), 0);
	assert_int_equal(rt_glob_class("[]"), 0);
	assert_int_equal(rt_glob_class("a[b]"), 0);
	/* no exponential time */
	assert_false(rt_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
				   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

TEST(slips_of_the_finger)
{
	struct rt_near near = { .wanted = "obj_gett" };

	assert_int_equal(rt_edit_distance("abc", "abc", 3), 0);
	assert_int_equal(rt_edit_distance("abc", "acb", 3), 1);
	assert_int_equal(rt_edit_distance("kitten", "sitting", 3), 3);
	assert_int_equal(rt_edit_distance("kitten", "sitting", 2), 3);
	assert_int_equal(rt_edit_distance("", "xy", 2), 2);
	rt_near_offer(&near, "obj_put");
	rt_near_offer(&near, "obj_get");
	rt_near_offer(&near, "obj_get");
	rt_near_offer(&near, "unrelated");
	assert_int_equal(near.count, 1);
	assert_string_equal(near.names[0], "obj_get");
}

TEST_MAIN();
