/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/sdt.h"

#include <elf.h>

#include "base/map.h"
#include "base/vec.h"
#include "elf/note.h"
#include "elf/section.h"

#define NT_STAPSDT 3
#define NT_REFCNT_TYPE 1 /* include/refcnt/mark.h */

struct notes {
	const struct rt_image *image;
	struct rt_section base;
	bool has_base;
	RT_VEC(struct rt_sdt_marker) markers;
	struct rt_map by_location; /* address -> index in markers */
};

/* What became of a note: read, damaged, or out of memory. */
enum outcome { TAKEN, DAMAGED, NO_MEMORY };

/* prelink moves the sections but not the addresses inside the notes */
static void move(const struct notes *n, struct rt_elfaddr base, struct rt_elfaddr *address)
{
	if (n->has_base && base.v && address->v)
		address->v += n->base.addr.v - base.v;
}

static enum outcome take_marker(struct notes *n, struct rt_bytes desc)
{
	struct rt_cursor c = rt_cursor_make(desc, n->image->big_endian);
	struct rt_sdt_marker m = { 0 };
	struct rt_elfaddr base;

	if (!rt_elf_word(n->image, &c, &m.location.v) || !rt_elf_word(n->image, &c, &base.v) ||
	    !rt_elf_word(n->image, &c, &m.semaphore.v) || !rt_cursor_string(&c, &m.provider) ||
	    !rt_cursor_string(&c, &m.name) || !rt_cursor_string(&c, &m.args))
		return DAMAGED;
	move(n, base, &m.location);
	move(n, base, &m.semaphore);
	return rt_vec_push(&n->markers, m) ? TAKEN : NO_MEMORY;
}

static enum outcome take_type(struct notes *n, struct rt_bytes desc)
{
	struct rt_cursor c = rt_cursor_make(desc, n->image->big_endian);
	struct rt_elfaddr location, base;
	const char *type;
	uint64_t *index;

	if (!rt_elf_word(n->image, &c, &location.v) || !rt_elf_word(n->image, &c, &base.v) ||
	    !rt_cursor_string(&c, &type))
		return DAMAGED;
	move(n, base, &location);
	index = rt_map_get(&n->by_location, rt_key_make(location.v, 0));
	if (index)
		n->markers.data[*index].type = type;
	return TAKEN;
}

/* The notes of one owner and type in all sections of a name. */
static enum outcome take_sections(struct notes *n, const char *section, const char *owner, uint32_t type,
				  enum outcome (*take)(struct notes *n, struct rt_bytes desc))
{
	/* sections of a hostile file may overlap: all together are read once */
	size_t at = 0, budget = n->image->bytes.size;
	struct rt_section s;

	while (rt_section_find(n->image, section, &at, &s)) {
		struct rt_bytes bytes;
		struct rt_note note;
		struct rt_cursor c;

		if (s.type != SHT_NOTE || (s.flags & SHF_COMPRESSED))
			continue;
		if (!rt_section_bytes(n->image, &s, &bytes) || bytes.size > budget)
			return DAMAGED;
		budget -= bytes.size;
		c = rt_cursor_make(bytes, n->image->big_endian);
		while (rt_note_next(&c, 4, &note)) {
			enum outcome outcome = rt_note_is(&note, owner, type) ? take(n, note.desc) : TAKEN;

			if (outcome != TAKEN)
				return outcome;
		}
		if (rt_cursor_left(&c))
			return DAMAGED;
	}
	return TAKEN;
}

static bool index_markers(struct notes *n)
{
	for (size_t i = 0; i < n->markers.len; i++) {
		uint64_t *index = rt_map_put(&n->by_location, rt_key_make(n->markers.data[i].location.v, 0), NULL);

		if (!index)
			return false;
		*index = i;
	}
	return true;
}

struct rt_error *rt_sdt_read(const struct rt_image *image, struct rt_sdt_marker **ret, size_t *ret_count)
{
	struct notes n = { .image = image };
	enum outcome markers, types = TAKEN;
	size_t at = 0;

	n.has_base = rt_section_find(image, ".stapsdt.base", &at, &n.base);
	markers = take_sections(&n, ".note.stapsdt", "stapsdt", NT_STAPSDT, take_marker);
	if (markers != NO_MEMORY && n.markers.len)
		types = index_markers(&n) ? take_sections(&n, ".note.refcnt", "refcnt", NT_REFCNT_TYPE, take_type)
					  : NO_MEMORY;
	rt_map_deinit(&n.by_location);
	if (markers == NO_MEMORY || types == NO_MEMORY) {
		rt_vec_deinit(&n.markers);
		return rt_error_nomem();
	}
	*ret = n.markers.data;
	*ret_count = n.markers.len;
	if (markers == TAKEN && types == TAKEN)
		return NULL;
	return rt_error_new(RT_E_FORMAT, "%s has damaged SDT notes", image->name);
}

/* The segment whose file part holds the address. */
static const struct rt_segment *segment_of(const struct rt_image *image, struct rt_elfaddr at)
{
	for (size_t i = 0; i < image->segment_count; i++)
		if (at.v >= image->segments[i].start.v && at.v < image->segments[i].end.v)
			return &image->segments[i];
	return NULL;
}

const char *rt_sdt_offsets(const struct rt_image *image, const struct rt_sdt_marker *m, struct rt_foff *ret_location,
			   struct rt_foff *ret_semaphore)
{
	const struct rt_segment *code = segment_of(image, m->location);
	struct rt_foff location, semaphore = { 0 };

	if (!code || !(code->flags & PF_X) || !rt_image_offset(image, m->location, &location))
		return "there is no code at its place";
	if (m->semaphore.v) {
		const struct rt_segment *data = segment_of(image, m->semaphore);

		if (!data || !rt_image_offset(image, m->semaphore, &semaphore))
			return "its semaphore is not in the file";
		/* the kernel counts only where the program could */
		if (!(data->flags & PF_W))
			return "its semaphore is not in writable memory";
	}
	*ret_location = location;
	*ret_semaphore = semaphore;
	return NULL;
}
