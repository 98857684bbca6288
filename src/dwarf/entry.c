/* SPDX-License-Identifier: GPL-2.0-only */
#include "dwarf/entry.h"

#include "dwarf/pointer.h"

bool rt_frame_entry_read(const struct rt_frame_section *s, size_t at, struct rt_frame_entry *ret)
{
	struct rt_cursor c = rt_cursor_make(s->bytes, s->big_endian);
	uint64_t length, id, none = s->eh ? 0 : UINT64_MAX;
	struct rt_frame_entry e = { .at = 0 };
	uint32_t u32;
	size_t id_at;
	bool wide;

	if (!rt_cursor_skip(&c, at) || !rt_cursor_u32(&c, &u32))
		return false;
	wide = u32 == UINT32_MAX;
	length = u32;
	if (wide && !rt_cursor_u64(&c, &length))
		return false;
	if (length > rt_cursor_left(&c))
		return false;
	e.next = c.pos + length;
	id_at = c.pos;
	*ret = (struct rt_frame_entry){ .next = e.next };
	if (!length) /* a terminator; linkers leave some in the middle */
		return true;
	if (wide && !s->eh) {
		if (!rt_cursor_u64(&c, &id))
			return false;
	} else {
		if (!rt_cursor_u32(&c, &u32))
			return false;
		id = !s->eh && u32 == UINT32_MAX ? UINT64_MAX : u32;
	}
	if (c.pos > e.next)
		return false;
	e.is_cie = id == none;
	e.cie = s->eh ? id_at - id : id;
	e.at = c.pos;
	e.body = rt_bytes_make(s->bytes.data + c.pos, e.next - c.pos);
	*ret = e;
	return true;
}

/* What the letters of a CIE announce. false: what follows cannot be told. */
static bool read_augmentation(struct rt_cursor *c, const char *letters, struct rt_frame_cie *cie)
{
	struct rt_bytes data;
	struct rt_cursor a;
	uint64_t size;
	uint8_t byte;

	cie->lsda_encoding = RT_PE_OMIT;
	if (!letters[0])
		return true;
	if (letters[0] != 'z' || !rt_cursor_uleb(c, &size) || !rt_cursor_bytes(c, size, &data))
		return false;
	cie->augmented = true;
	a = rt_cursor_make(data, c->big_endian);
	for (letters++; *letters; letters++) {
		switch (*letters) {
		case 'R':
			if (!rt_cursor_u8(&a, &cie->encoding))
				return false;
			break;
		case 'L':
			if (!rt_cursor_u8(&a, &cie->lsda_encoding))
				return false;
			break;
		case 'P':
			if (!rt_cursor_u8(&a, &byte) || !rt_pointer_skip(&a, byte))
				return false;
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':
			break;
		default:
			return false;
		}
	}
	return true;
}

bool rt_frame_cie_read(const struct rt_frame_section *s, uint64_t at, struct rt_frame_cie *ret)
{
	struct rt_frame_cie cie = { .encoding = 0 };
	uint8_t version, byte;
	const char *letters;
	struct rt_frame_entry e;
	struct rt_cursor c;

	if (at >= s->bytes.size || !rt_frame_entry_read(s, at, &e) || !e.body.data || !e.is_cie)
		return false;
	c = rt_cursor_make(e.body, s->big_endian);
	if (!rt_cursor_u8(&c, &version) || (version != 1 && version != 3 && version != 4) ||
	    !rt_cursor_string(&c, &letters))
		return false;
	/* 4: size of addresses and of segment selectors */
	if (version == 4 && (!rt_cursor_u8(&c, &byte) || byte != 8 || !rt_cursor_u8(&c, &byte) || byte))
		return false;
	if (!rt_cursor_uleb(&c, &cie.code_align) || !cie.code_align || !rt_cursor_sleb(&c, &cie.data_align))
		return false;
	if (version == 1) {
		if (!rt_cursor_u8(&c, &byte))
			return false;
		cie.ra = byte;
	} else if (!rt_cursor_uleb(&c, &cie.ra)) {
		return false;
	}
	if (!read_augmentation(&c, letters, &cie))
		return false;
	cie.program = rt_bytes_make(e.body.data + c.pos, rt_cursor_left(&c));
	*ret = cie;
	return true;
}

/* The augmentation data of an FDE. */
static bool read_lsda(struct rt_cursor *c, const struct rt_frame_cie *cie, bool *ret)
{
	struct rt_bytes data;
	struct rt_cursor a;
	uint64_t size, lsda;

	*ret = false;
	if (!cie->augmented)
		return true;
	if (!rt_cursor_uleb(c, &size) || !rt_cursor_bytes(c, size, &data))
		return false;
	a = rt_cursor_make(data, c->big_endian);
	/* written as 0 for functions without landing pads */
	if (size && cie->lsda_encoding != RT_PE_OMIT)
		*ret = rt_pointer_read(&a, cie->lsda_encoding, 0, true, &lsda) && lsda != 0;
	return true;
}

bool rt_frame_fde_read(const struct rt_frame_section *s, const struct rt_frame_entry *e, const struct rt_frame_cie *cie,
		       struct rt_frame_fde *ret)
{
	struct rt_cursor c = rt_cursor_make(e->body, s->big_endian);
	struct rt_frame_fde f;
	uint64_t length;

	if (!rt_pointer_read(&c, cie->encoding, s->address + e->at, false, &f.start) ||
	    !rt_pointer_read(&c, cie->encoding, 0, true, &length) || !read_lsda(&c, cie, &f.lsda) ||
	    __builtin_add_overflow(f.start, length, &f.end) || f.start >= f.end)
		return false;
	f.program_at = e->at + c.pos;
	f.program = rt_bytes_make(e->body.data + c.pos, rt_cursor_left(&c));
	*ret = f;
	return true;
}
