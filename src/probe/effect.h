/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a whole function may do to the object that it is given: the changes to
 * the object's fields on any path, over branches and one level of calls.
 */
#pragma once

#include "elf/symtab.h"
#include "probe/track.h"

enum { RT_EFFECT_FIELDS = 24 };

struct rt_effect {
	struct rt_change fields[RT_EFFECT_FIELDS]; /* each (offset, size, delta) once; known ones only */
	unsigned count;
	bool cut; /* the function is too large, or code could not be decoded */
};

/*
 * The object is in reg at entry. symtab (may be NULL) tells which calls through the PLT come
 * back to this module. Bounded work: a few thousand instructions.
 */
void rt_effect_of(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		  struct rt_elfaddr entry, uint8_t reg, struct rt_effect *ret);

/* The same without what functions do that it calls. */
void rt_effect_own(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		   struct rt_elfaddr entry, uint8_t reg, struct rt_effect *ret);

/* ... nor what those do that it jumps to at its end. */
void rt_effect_inside(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		      struct rt_elfaddr entry, uint8_t reg, struct rt_effect *ret);

/* The one field that the function changes, and that it grows by 1: what an _up_ref() alone tells. false: not so. */
bool rt_effect_single(const struct rt_effect *get, int32_t *ret_offset, uint32_t *ret_size);

/* The one field that a's function grows by 1 and b's shrinks by 1. false: none, or more than one. */
bool rt_effect_counter(const struct rt_effect *get, const struct rt_effect *put, int32_t *ret_offset,
		       uint32_t *ret_size);
