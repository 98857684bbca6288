/* SPDX-License-Identifier: GPL-2.0-only */
/* Paths are followed with a work list; an address is entered at most once with each depth of calls. */
#include "probe/effect.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

enum {
	EFFECT_INSNS = 4000, /* all paths together */
	EFFECT_PATHS = 256,  /* waiting branches */
	EFFECT_CALLS = 1,    /* levels of direct calls and jumps to other functions */
};

struct path {
	struct rt_elfaddr at;
	unsigned depth;
	struct rt_track track;
};

struct walk {
	unsigned calls;              /* levels of calls that are followed */
	const struct rt_symbol *own; /* this function's code alone; NULL: jumps out of it are followed */
	const struct rt_image *image;
	const struct rt_symtab *symtab;
	struct rt_decoder *decoder;
	RT_VEC(struct path) waiting;
	struct rt_map entered; /* (address, depth) */
	unsigned insns;
	struct rt_effect *effect;
};

static void note_change(struct rt_effect *e, const struct rt_change *c)
{
	if (!c->known)
		return;
	for (unsigned i = 0; i < e->count; i++)
		if (e->fields[i].offset == c->offset && e->fields[i].size == c->size && e->fields[i].delta == c->delta)
			return;
	if (e->count == RT_EFFECT_FIELDS)
		e->cut = true;
	else
		e->fields[e->count++] = *c;
}

/* Goes on at `at` later, if nobody was there yet. */
static void branch(struct walk *w, uint64_t at, unsigned depth, const struct rt_track *track)
{
	struct path path = { .at = { at }, .depth = depth, .track = *track };
	bool made = false;

	if (!rt_map_put(&w->entered, rt_key_make(at, depth), &made)) {
		w->effect->cut = true;
		return;
	}
	if (!made)
		return;
	if (w->waiting.len == EFFECT_PATHS || !rt_vec_push(&w->waiting, path))
		w->effect->cut = true;
}

/* A stub of the PLT leads to the module's own function where it has one of that name. */
static uint64_t behind_plt(const struct walk *w, struct rt_elfaddr target)
{
	const struct rt_symbol *stub = w->symtab ? rt_symtab_at(w->symtab, target) : NULL, *own;

	if (!stub || !stub->plt)
		return target.v;
	own = rt_symtab_find(w->symtab, stub->name);
	return own && own->function && !own->ifunc && own->addr.v ? own->addr.v : target.v;
}

/* A call hands over what the argument registers hold; the callee's frame is its own. */
static void enter_call(struct walk *w, const struct rt_insn *insn, unsigned depth, const struct rt_track *track)
{
	struct rt_track inner;
	bool given = false;

	if (!insn->has_target || depth >= w->calls)
		return;
	rt_track_init(&inner, RT_REG_NONE);
	for (unsigned n = 1; n <= 6; n++) {
		enum rt_reg reg = rt_reg_argument(n);
		const struct rt_value *v;

		if ((unsigned)reg >= RT_TRACK_REGS)
			continue;
		v = &track->regs[reg];
		if (v->kind != RT_VALUE_OBJECT && v->kind != RT_VALUE_CONST)
			continue;
		inner.regs[reg] = *v;
		given |= v->kind == RT_VALUE_OBJECT;
	}
	if (given)
		branch(w, behind_plt(w, insn->target), depth + 1, &inner);
}

/* A tail call: the jump leads to the beginning of another function, and no cold part of this one. */
static bool leaves(const struct walk *w, uint64_t target)
{
	const struct rt_symbol *to = w->own ? rt_symtab_at(w->symtab, (struct rt_elfaddr){ target }) : NULL;
	size_t len;

	if (!to || to->addr.v != target || to->addr.v == w->own->addr.v)
		return false;
	len = strlen(w->own->name);
	return strncmp(to->name, w->own->name, len) != 0 || to->name[len] != '.';
}

static void run_path(struct walk *w, struct path *path)
{
	struct rt_elfaddr at = path->at;

	for (;;) {
		struct rt_bytes code = rt_image_at(w->image, at, 16);
		struct rt_insn insn;
		unsigned before = path->track.change_count;
		bool made = true;

		if (++w->insns > EFFECT_INSNS || !rt_decode(w->decoder, code, at, &insn)) {
			w->effect->cut = true;
			return;
		}
		if (insn.call)
			enter_call(w, &insn, path->depth, &path->track);
		rt_track_step(&path->track, &insn);
		for (unsigned i = before; i < path->track.change_count; i++)
			note_change(w->effect, &path->track.changes[i]);
		path->track.change_count = 0;
		if (insn.ret)
			return;
		if (insn.jump) {
			if (insn.has_target && !leaves(w, insn.target.v))
				branch(w, insn.conditional ? insn.target.v : behind_plt(w, insn.target), path->depth,
				       &path->track);
			if (!insn.conditional)
				return;
		}
		at.v += insn.length;
		/* where paths meet again the first one has gone on */
		if (insn.jump && (!rt_map_put(&w->entered, rt_key_make(at.v, path->depth), &made) || !made))
			return;
	}
}

static void effect_of(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		      struct rt_elfaddr entry, uint8_t reg, unsigned calls, bool inside, struct rt_effect *ret)
{
	struct rt_effect effect = { .count = 0 };
	struct walk w = { .image = image,
			  .symtab = symtab,
			  .decoder = decoder,
			  .calls = calls,
			  .own = inside && symtab ? rt_symtab_at(symtab, entry) : NULL,
			  .effect = &effect };
	struct rt_track track;

	rt_track_init(&track, reg);
	branch(&w, entry.v, 0, &track);
	while (w.waiting.len && w.insns <= EFFECT_INSNS) {
		struct path path = w.waiting.data[--w.waiting.len];

		run_path(&w, &path);
	}
	rt_vec_deinit(&w.waiting);
	rt_map_deinit(&w.entered);
	*ret = effect;
}

void rt_effect_of(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		  struct rt_elfaddr entry, uint8_t reg, struct rt_effect *ret)
{
	effect_of(image, symtab, decoder, entry, reg, EFFECT_CALLS, false, ret);
}

void rt_effect_own(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		   struct rt_elfaddr entry, uint8_t reg, struct rt_effect *ret)
{
	effect_of(image, symtab, decoder, entry, reg, 0, false, ret);
}

void rt_effect_inside(const struct rt_image *image, const struct rt_symtab *symtab, struct rt_decoder *decoder,
		      struct rt_elfaddr entry, uint8_t reg, struct rt_effect *ret)
{
	effect_of(image, symtab, decoder, entry, reg, 0, true, ret);
}

static bool has(const struct rt_effect *e, int64_t offset, uint8_t size, int64_t delta)
{
	for (unsigned i = 0; i < e->count; i++)
		if (e->fields[i].offset == offset && e->fields[i].size == size && e->fields[i].delta == delta)
			return true;
	return false;
}

bool rt_effect_counter(const struct rt_effect *get, const struct rt_effect *put, int32_t *ret_offset,
		       uint32_t *ret_size)
{
	unsigned found = 0;
	int32_t offset = 0;
	uint32_t size = 0;

	for (unsigned i = 0; i < get->count; i++) {
		const struct rt_change *c = &get->fields[i];

		if (c->delta != 1 || c->offset < 0 || c->offset > INT32_MAX || !has(put, c->offset, c->size, -1))
			continue;
		found++;
		offset = (int32_t)c->offset;
		size = c->size;
	}
	if (found != 1)
		return false;
	*ret_offset = offset;
	*ret_size = size;
	return true;
}

bool rt_effect_single(const struct rt_effect *get, int32_t *ret_offset, uint32_t *ret_size)
{
	const struct rt_change *c = &get->fields[0];

	if (get->cut || get->count != 1 || c->delta != 1 || c->offset < 0 || c->offset > INT32_MAX)
		return false;
	*ret_offset = (int32_t)c->offset;
	*ret_size = c->size;
	return true;
}
