/* SPDX-License-Identifier: GPL-2.0-only */
/* The words of an identifier: "obj_put_all", "FcValueDestroy", "ns::Box::~Box". Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A part of a name that the caller owns: not NUL-terminated. */
struct rt_word {
	const char *s;
	size_t len;
};

/*
 * The first words of name, at most max: parts between '_' and other signs, and what begins with a capital letter
 * behind a small one, or before one ("FcVStackPop": Fc V Stack Pop). Returns how many.
 */
unsigned rt_words(const char *name, struct rt_word *ret, unsigned max);
/* Compares without case. */
bool rt_word_is(struct rt_word word, const char *text);
bool rt_word_in(struct rt_word word, const char *const *texts, size_t n);
bool rt_word_same(struct rt_word a, struct rt_word b);
/* Its letters are somewhere in text, one behind the other, without case. */
bool rt_word_spelled(struct rt_word word, const char *text);

/* The last words of both names are the same, without case: "obj_ref" and "base_ref". A name without words has none. */
bool rt_words_same_end(const char *a, const char *b);
/* One of the words of name is one of these texts. */
bool rt_words_have(const char *name, const char *const *texts, size_t n);
/* One of the words says that what it is given is over there: free, destroy, unref, clear ... */
bool rt_words_destroy(const char *name);
/* ... or that something else ends: put, close, pop, stop ... */
bool rt_words_end(const char *name);
/* The name is that of a free(): "xfree", "mem_dealloc". What it frees its parameters say. */
bool rt_words_free(const char *name);
/* The word is such a one: of rt_words_destroy() or rt_words_end(). */
bool rt_word_ends(struct rt_word word);
