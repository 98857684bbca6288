/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of C++ and Rust: vectors of RFC 2603 and of rustc's own symbols, what is no name, and names made to take long.
 */
#include "elf/demangle.h"

#include "test.h"

struct vector {
	const char *mangled, *name;
};

static const struct vector vectors[] = {
	{ "_RNvC6_123foo3bar", "123foo::bar" },
	{ "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
	  "utf8_idents::საჭმელად_გემრიელი_სადილი" },
	{ "_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}" },
	{ "_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator9rpositionNCNgNpB9_"
	  "6memchr"
	  "7memrchrs_0E0Bb_",
	  "<core::slice::Iter<u8> as core::iter::iterator::Iterator>::rposition::<core::slice::memchr::memrchr::"
	  "{closure#1}>::{closure#0}" },
	{ "_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_ECs1iopQbuBiw2_3std",
	  "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>" },
	{ "_RMC0INtC8arrayvec8ArrayVechKj7b_E", "<arrayvec::ArrayVec<u8, 123>>" },
	{ "_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc2202_E", "<const_generic::Char<'∂'>>" },
	{ "_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc27_E", "<const_generic::Char<'\\''>>" },
	{ "_RMCs4fqI2P2rA04_13const_genericINtB0_4BoolKb1_E", "<const_generic::Bool<true>>" },
	{ "_RMCs4fqI2P2rA04_13const_genericINtB0_3IntKln5_E", "<const_generic::Int<-5>>" },
	{ "_RNvC9backtrace3foo.llvm.A5310EB9", "backtrace::foo" },
	{ "_RNvC3foo3bar.cold", "foo::bar.cold" },
	/* types: references, pointers, slices, tuples, functions, trait objects, lifetimes of binders */
	{ "_RINvC1t3genRShQShPhOhThETEE", "t::gen::<&[u8], &mut [u8], *const u8, *mut u8, (u8,), ()>" },
	{ "_RINvC1t3genFKCUhEbE", NULL },
	{ "_RINvC1t3genFUKChsEbE", "t::gen::<unsafe extern \"C\" fn(u8, i16) -> bool>" },
	{ "_RINvC1t3genFK9fast_callEuE", "t::gen::<extern \"fast-call\" fn()>" },
	{ "_RINvC1t3genFG0_RL1_hRL0_tEzE", "t::gen::<for<'a, 'b> fn(&'a u8, &'b u16) -> !>" },
	{ "_RINvC1t3genAhj10_E", "t::gen::<[u8; 16]>" },
	{ "_RNSNvC1t4main6vtable", "t::main::{shim:vtable#0}" },
	{ "_ZN2ns3Obj3getEv", "ns::Obj::get()" },
	{ "_ZN3foo3bar17h0123456789abcdefE", "foo::bar" },
	{ "_ZN3foo3bar17h0123456789abcdefE.llvm.12", "foo::bar" },
	{ "_ZN54_$LT$$RF$T$u20$as$u20$core..fmt..Debug$u2b$$BP$$C$$GT$3fmt17h0123456789abcdefE",
	  "<&T as core::fmt::Debug+*,>::fmt" },
	{ "obj_get", NULL },
	{ "", NULL },
	{ "_R", NULL },
	{ "_Z", NULL },
	{ "_R1C3foo", NULL },
	{ "_RC9foo", NULL },
	{ "_RNvC3foo", NULL },
	{ "_RB_", NULL },
	{ "_RMC0B_", NULL },
	{ "_RNvC3foou3!!!", NULL },
	{ "_RMC0Ahjfffffffffffffffffffffffffffffffffffffffff", NULL },
	{ "_RINvC1t3genKcd800_E", NULL },
};

TEST(names)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		_cleanup_free_ char *name = rt_demangle(vectors[i].mangled);

		if (!name || !vectors[i].name)
			assert_ptr_equal(name, vectors[i].name);
		else
			assert_string_equal(name, vectors[i].name);
	}
}

TEST(names_without_parameters)
{
	_cleanup_free_ char *method = rt_demangle_name("_ZNK2ns3Obj3getEil"), *rust = rt_demangle_name("_RNvC3foo3bar");

	assert_string_equal(method, "ns::Obj::get");
	assert_string_equal(rust, "foo::bar");
}

/* Every beginning of a name is one, or none; nothing is read behind it (ASan). */
TEST(cut_names)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		for (size_t n = 0; n < strlen(vectors[i].mangled); n++) {
			_cleanup_free_ char *cut = strndup(vectors[i].mangled, n), *name = rt_demangle(cut);

			assert_true(!name || *name);
		}
}

/* prefix, then count times what, then suffix */
static char *many(const char *prefix, const char *what, size_t count, const char *suffix)
{
	char *text = calloc(1, strlen(prefix) + count * strlen(what) + strlen(suffix) + 1), *at;

	assert_non_null(text);
	at = stpcpy(text, prefix);
	while (count--)
		at = stpcpy(at, what);
	strcpy(at, suffix);
	return text;
}

TEST(deep_and_long)
{
	_cleanup_free_ char *fits = many("_RMC0", "R", 100, "h"), *deep = many("_RMC0", "R", 3000, "h");
	_cleanup_free_ char *legacy = many("_ZN", "1a", 2500, "17h0123456789abcdefE");
	_cleanup_free_ char *name = rt_demangle(fits), *none = rt_demangle(deep), *longer = rt_demangle(legacy);
	char twice[2048] = "_RMC0TThhE", *at = twice + strlen(twice);
	_cleanup_free_ char *doubled = NULL;

	assert_non_null(name);
	assert_int_equal(strlen(name), strlen("<u8>") + 100);
	assert_null(none);
	/* beyond the length that is read at all */
	assert_null(longer);
	/* each pair names the one before it twice: 2^30 parts in a few hundred bytes */
	for (unsigned i = 0, last = 4; i < 30; i++) {
		unsigned here = (unsigned)(at - twice) - 2;
		char back[8] = "";

		/* base 62 of last - 1, where last is below 62 * 62 */
		if (last - 1 < 62)
			snprintf(back, sizeof(back), "%c",
				 "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[last - 1]);
		else
			snprintf(back, sizeof(back), "%c%c",
				 "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[(last - 1) / 62],
				 "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[(last - 1) % 62]);
		at += sprintf(at, "TB%s_B%s_E", back, back);
		last = here;
	}
	strcpy(at, "E");
	doubled = rt_demangle(twice);
	assert_null(doubled);
}

TEST_MAIN();
