/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where in bytes any of several words, or a text, is: at whatever place, aligned or not. Little-endian only. Any number
 * of threads may search for the same words at a time.
 */
#pragma once

#include "base/bytes.h"
#include "base/vec.h"

/* Positions, rising. */
struct rt_places {
	RT_VEC(uint32_t) v;
};

enum { RT_WORDS_FEW = 8 }; /* that are compared one by one */

struct rt_words {
	const char *text; /* NULL: none; borrowed */
	size_t size;      /* of it, with its end */
	RT_VEC(uint32_t) list;
	uint64_t fits[1 << 10]; /* a bit for each hash of a word */
	/* Two bytes that follow each other in each word, and in the text: what is looked for first */
	struct {
		uint8_t low, high;
	} pairs[RT_WORDS_FEW + 1];
	size_t pair_count; /* 0: each byte is looked at */
	unsigned shift;    /* where in a word the pairs are */
};

/* All zeroes but for the text is empty. */
void rt_words_deinit(struct rt_words *words);
/* false: wider than 32 bits, too many, or no memory */
bool rt_words_add(struct rt_words *words, uint64_t word);
void rt_words_clear(struct rt_words *words);
/* After the last rt_words_add() and before rt_words_find(). */
void rt_words_ready(struct rt_words *words);
/* Sets *ret to where they are. false: too many, or no memory */
bool rt_words_find(const struct rt_words *words, struct rt_bytes bytes, struct rt_places *ret);
