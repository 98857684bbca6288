/* SPDX-License-Identifier: GPL-2.0-only */
#include "dwarf/pointer.h"

bool rt_pointer_skip(struct rt_cursor *c, uint8_t encoding)
{
	uint64_t u;
	int64_t s;

	switch (encoding & RT_PE_FORMAT) {
	case 0x00: /* absptr */
	case 0x04: /* udata8 */
	case 0x0c:
		return rt_cursor_skip(c, 8);
	case 0x01:
		return rt_cursor_uleb(c, &u);
	case 0x02:
	case 0x0a:
		return rt_cursor_skip(c, 2);
	case 0x03:
	case 0x0b:
		return rt_cursor_skip(c, 4);
	case 0x09:
		return rt_cursor_sleb(c, &s);
	default:
		return false;
	}
}

bool rt_pointer_read(struct rt_cursor *c, uint8_t encoding, uint64_t here, bool plain, uint64_t *ret)
{
	uint16_t u16;
	uint32_t u32;
	int64_t s;
	uint64_t v;
	bool ok;

	switch (encoding & RT_PE_FORMAT) {
	case 0x00:
	case 0x04:
	case 0x0c:
		ok = rt_cursor_u64(c, &v);
		break;
	case 0x01:
		ok = rt_cursor_uleb(c, &v);
		break;
	case 0x02:
	case 0x0a:
		ok = rt_cursor_u16(c, &u16);
		v = ok ? ((encoding & 0x08) && !plain ? (uint64_t)(int16_t)u16 : u16) : 0;
		break;
	case 0x03:
	case 0x0b:
		ok = rt_cursor_u32(c, &u32);
		v = ok ? ((encoding & 0x08) && !plain ? (uint64_t)(int32_t)u32 : u32) : 0;
		break;
	case 0x09:
		ok = rt_cursor_sleb(c, &s);
		v = ok ? (uint64_t)s : 0;
		break;
	default:
		return false;
	}
	if (!ok || (!plain && (encoding & RT_PE_INDIRECT)))
		return false;
	if (!plain && (encoding & RT_PE_APPLICATION) == RT_PE_PCREL)
		v += here;
	else if (!plain && (encoding & RT_PE_APPLICATION))
		return false;
	*ret = v;
	return true;
}
