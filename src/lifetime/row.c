/* SPDX-License-Identifier: GPL-2.0-only */
/* Lives in a row: one that leaves touches nobody else. */
#include <stdlib.h>
#include <string.h>

#include "lifetime/state.h"

enum { ROOM_FIRST = 1024, ROOM_SPARE = 4 }; /* a row that is mostly holes is closed up, any other one grows */

static void set_place(const struct lt_row *row, uint32_t ref, uint32_t place)
{
	void *life = rt_slab_at(&row->lt->slabs, ref & ~LT_PACKED);

	if (ref & LT_PACKED)
		((struct lt_packed *)life)->place = place;
	else
		((struct lt_inc *)life)->place = place;
}

/* a packed one is unpacked */
static struct lt_inc *life_at(const struct lt_row *row, uint32_t place)
{
	uint32_t ref = row->lives[place];

	return ref & LT_PACKED ? lt_unpack(row->lt, ref) : rt_slab_at(&row->lt->slabs, ref);
}

/* all move to the front */
static void close_up(struct lt_row *row)
{
	uint32_t to = 0;

	for (uint32_t i = row->first; i < row->end; i++) {
		if (!row->lives[i])
			continue;
		row->lives[to] = row->lives[i];
		set_place(row, row->lives[to], to);
		to++;
	}
	row->first = 0;
	row->end = to;
}

static bool make_room(struct lt_row *row)
{
	uint32_t room = row->room ? row->room * 2 : ROOM_FIRST;
	uint32_t *more;

	if (row->nr && row->nr <= row->room / ROOM_SPARE) {
		close_up(row);
		return true;
	}
	more = room > row->room ? reallocarray(row->lives, room, sizeof(*more)) : NULL;
	if (!more)
		return false;
	row->lives = more;
	row->room = room;
	return true;
}

void lt_row_add(struct rt_lifetime *lt, struct lt_row *row, struct lt_inc *inc)
{
	if (!row->nr)
		row->first = row->end = 0;
	if (row->end == row->room && !make_room(row)) {
		lt->nomem = true;
		inc->place = UINT32_MAX;
		return;
	}
	inc->place = row->end;
	row->lt = lt;
	row->lives[row->end++] = rt_slab_ref(inc);
	row->nr++;
}

void lt_row_remove(struct lt_row *row, struct lt_inc *inc)
{
	if (inc->place == UINT32_MAX)
		return; /* there was no memory to add it */
	row->lives[inc->place] = 0;
	row->nr--;
	while (row->first < row->end && !row->lives[row->first])
		row->first++;
}

struct lt_inc *lt_row_newer(const struct lt_row *row, uint32_t *pos)
{
	uint32_t i = *pos < row->first ? row->first : *pos;

	while (i < row->end && !row->lives[i])
		i++;
	*pos = i + 1;
	return i < row->end ? life_at(row, i) : NULL;
}

struct lt_inc *lt_row_older(const struct lt_row *row, uint32_t *pos)
{
	uint32_t i = *pos < row->end ? *pos : row->end;

	while (i > row->first && !row->lives[i - 1])
		i--;
	if (i <= row->first)
		return NULL;
	*pos = i - 1;
	return life_at(row, i - 1);
}
