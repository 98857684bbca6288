/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PLT stubs have no symbols. Whatever the linker (GNU ld, gold, lld; .plt,
 * .plt.sec, .plt.got, .iplt; lazy or not), a stub is a jump through a GOT slot,
 * and a relocation of that slot names the function.
 */
#include <elf.h>
#include <string.h>

#include "elf/section.h"
#include "elf/symtab_build.h"

struct slot {
	uint64_t addr;
	const char *name; /* of the function; NULL: the one at resolver */
	uint64_t resolver;
};

struct slots {
	RT_VEC(struct slot) all;
	/* what may still be copied, read and searched: parts of a hostile file overlap */
	size_t name_budget, byte_budget;
	unsigned search_budget;
};

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

enum slot_kind { SLOT_NONE, SLOT_NAMED, SLOT_RESOLVED };

static enum slot_kind slot_kind(const struct rt_image *image, uint32_t type)
{
	bool x86 = image->machine == EM_X86_64;

	if (type == (x86 ? R_X86_64_JUMP_SLOT : R_AARCH64_JUMP_SLOT) ||
	    type == (x86 ? R_X86_64_GLOB_DAT : R_AARCH64_GLOB_DAT))
		return SLOT_NAMED;
	return type == (x86 ? R_X86_64_IRELATIVE : R_AARCH64_IRELATIVE) ? SLOT_RESOLVED : SLOT_NONE;
}

/* Name of symbol number index of the table, version stripped; copied into the arena. NULL in *ret: none. */
static struct rt_error *copy_name(struct rt_arena *arena, struct rt_bytes symbols, struct rt_bytes strings,
				  bool big_endian, uint32_t index, const char **ret)
{
	struct rt_bytes entry;
	struct rt_cursor c;
	const char *at;
	uint32_t offset;
	size_t len, left;

	*ret = NULL;
	if (!rt_bytes_sub(symbols, (uint64_t)index * 24, 24, &entry))
		return NULL;
	c = rt_cursor_make(entry, big_endian);
	if (!rt_cursor_u32(&c, &offset) || offset >= strings.size)
		return NULL;
	at = (const char *)strings.data + offset;
	left = strings.size - offset;
	/* PLT names are bounded like any other, and shorter: each is copied */
	len = strnlen(at, left < RT_SYMBOL_NAME_MAX ? left : RT_SYMBOL_NAME_MAX);
	if (!len || len == left || len == RT_SYMBOL_NAME_MAX)
		return NULL;
	at = rt_arena_strndup(arena, at, memchr(at, '@', len) ? (size_t)((char *)memchr(at, '@', len) - at) : len);
	if (!at)
		return rt_error_nomem();
	*ret = at;
	return NULL;
}

static struct rt_error *read_relocations(const struct rt_image *image, const struct rt_section *rela,
					 struct rt_symtab_build *build, struct slots *slots)
{
	struct rt_bytes bytes, symbols = { 0 }, strings = { 0 };
	struct rt_section table, names;
	struct rt_cursor c;
	uint64_t offset, info, addend;

	if (!rt_section_bytes(image, rela, &bytes) || bytes.size > slots->byte_budget)
		return NULL;
	slots->byte_budget -= bytes.size;
	if (rela->link && rt_section_bare(image, rela->link, &table) && rt_section_bytes(image, &table, &symbols) &&
	    rt_section_bare(image, table.link, &names))
		(void)rt_section_bytes(image, &names, &strings);
	c = rt_cursor_make(bytes, image->big_endian);
	while (rt_cursor_u64(&c, &offset) && rt_cursor_u64(&c, &info) && rt_cursor_u64(&c, &addend)) {
		enum slot_kind kind = slot_kind(image, (uint32_t)info);
		struct slot slot = { .addr = offset, .resolver = addend };

		if (kind == SLOT_NONE)
			continue;
		if (kind == SLOT_NAMED) {
			RT_TRY(copy_name(build->arena, symbols, strings, image->big_endian, (uint32_t)(info >> 32),
					 &slot.name));
			if (!slot.name || strlen(slot.name) > slots->name_budget)
				continue;
			slots->name_budget -= strlen(slot.name);
		}
		if (!rt_vec_push(&slots->all, slot))
			return rt_error_nomem();
	}
	return NULL;
}

static const struct slot *find_slot(const struct slots *slots, uint64_t addr)
{
	struct slot key = { .addr = addr };

	if (!slots->all.len)
		return NULL;
	return bsearch(&key, slots->all.data, slots->all.len, sizeof(key), compare_slots);
}

/* A function that starts at addr: what an IRELATIVE slot is called after. */
static const char *name_at(const struct rt_symtab_build *build, uint64_t addr)
{
	const struct rt_symbol *best = NULL;

	for (size_t i = 0; i < build->symbols.len; i++) {
		const struct rt_symbol *s = &build->symbols.data[i];

		if (s->addr.v != addr || !s->function || s->plt)
			continue;
		if (!best || (s->ifunc && !best->ifunc) ||
		    (s->ifunc == best->ifunc && strlen(s->name) < strlen(best->name)))
			best = s;
	}
	return best ? best->name : NULL;
}

static int32_t read_i32(struct rt_bytes code, size_t at)
{
	return (int32_t)((uint32_t)code.data[at] | (uint32_t)code.data[at + 1] << 8 |
			 (uint32_t)code.data[at + 2] << 16 | (uint32_t)code.data[at + 3] << 24);
}

/* At code[at]: jmp *slot(%rip), with bnd and endbr64 before it. Gives the stub's start; moves *end behind the jump. */
static bool x86_stub(struct rt_bytes code, size_t at, uint64_t base, size_t *start, size_t *end, uint64_t *slot)
{
	bool retpoline = at + 7 <= code.size && !memcmp(code.data + at, "\x4c\x8b\x1d", 3);
	size_t length = retpoline ? 7 : 6;

	/* mov slot(%rip),%r11 is lld's retpoline stub */
	if (!retpoline && (at + 6 > code.size || code.data[at] != 0xff || code.data[at + 1] != 0x25))
		return false;
	*end = at + length;
	*slot = base + *end + (uint64_t)(int64_t)read_i32(code, *end - 4);
	*start = at;
	if (*start && code.data[*start - 1] == 0xf2)
		--*start;
	if (*start >= 4 && !memcmp(code.data + *start - 4, "\xf3\x0f\x1e\xfa", 4))
		*start -= 4;
	return true;
}

/* At code[at]: adrp x16, page; ldr x17, [x16, #offset]. */
static bool a64_stub(struct rt_bytes code, size_t at, uint64_t base, size_t *start, size_t *end, uint64_t *slot)
{
	uint32_t adrp, ldr;
	int64_t page;

	if (at % 4 || at + 8 > code.size)
		return false;
	adrp = (uint32_t)read_i32(code, at);
	ldr = (uint32_t)read_i32(code, at + 4);
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return false;
	page = (int64_t)((uint64_t)((adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3)) << 43) >> 43;
	*slot = ((base + at) & ~(uint64_t)4095) + (uint64_t)page * 4096 + (ldr >> 10 & 4095) * 8;
	*start = at >= 4 && (uint32_t)read_i32(code, at - 4) == 0xd503245f ? at - 4 : at;
	*end = at + 16;
	return true;
}

static struct rt_error *read_stubs(const struct rt_image *image, const struct rt_section *section, struct slots *slots,
				   struct rt_symtab_build *build)
{
	struct rt_elfaddr limit = { section->addr.v + section->size };
	size_t first = build->symbols.len, end, start, entry;
	struct rt_bytes code;
	uint64_t slot_addr;

	if (!rt_section_bytes(image, section, &code) || section->size > UINT64_MAX - section->addr.v ||
	    code.size > slots->byte_budget)
		return NULL;
	slots->byte_budget -= code.size;
	for (size_t at = 0; at < code.size; at++) {
		struct rt_symbol symbol = { .function = true, .plt = true, .bind = RT_BIND_LOCAL };
		const struct slot *slot;
		bool found = image->machine == EM_X86_64
				     ? x86_stub(code, at, section->addr.v, &start, &end, &slot_addr)
				     : a64_stub(code, at, section->addr.v, &start, &end, &slot_addr);

		slot = found ? find_slot(slots, slot_addr) : NULL;
		if (!slot)
			continue;
		symbol.name = slot->name;
		if (!symbol.name && slots->search_budget && slots->search_budget--)
			symbol.name = name_at(build, slot->resolver);
		symbol.full = symbol.name;
		symbol.addr.v = section->addr.v + start;
		/* up to the next stub, else one entry */
		entry = end - at == 7 ? 32 : 16;
		symbol.size = code.size - start < entry ? code.size - start : entry;
		if (symbol.name) {
			struct rt_symbol *last =
				build->symbols.len > first ? &build->symbols.data[build->symbols.len - 1] : NULL;

			if (last && symbol.addr.v - last->addr.v < last->size)
				last->size = symbol.addr.v - last->addr.v;
			RT_TRY(rt_symtab_add(build, &symbol, limit));
		}
		at = end - 1;
	}
	return NULL;
}

static struct rt_error *read_all(const struct rt_image *image, struct rt_symtab_build *build, struct slots *slots)
{
	size_t n = rt_section_count(image);
	struct rt_section s;

	for (size_t i = 0; i < n && rt_section_bare(image, i, &s); i++) {
		if (s.type == SHT_RELA && (s.flags & SHF_ALLOC))
			RT_TRY(read_relocations(image, &s, build, slots));
	}
	if (!slots->all.len)
		return NULL;
	qsort(slots->all.data, slots->all.len, sizeof(*slots->all.data), compare_slots);
	for (size_t i = 0; i < n && rt_section_at(image, i, &s); i++) {
		if (s.type == SHT_PROGBITS && (s.flags & SHF_EXECINSTR) &&
		    (!strncmp(s.name, ".plt", 4) || !strcmp(s.name, ".iplt")))
			RT_TRY(read_stubs(image, &s, slots, build));
	}
	return NULL;
}

struct rt_error *rt_plt_read(const struct rt_image *image, struct rt_symtab_build *build)
{
	struct slots slots = { .name_budget = image->bytes.size * 2 + 4096,
			       .byte_budget = image->bytes.size,
			       .search_budget = 1024 };
	struct rt_error *err;

	if (!image->is_64 || image->big_endian || (image->machine != EM_X86_64 && image->machine != EM_AARCH64))
		return NULL;
	err = read_all(image, build, &slots);
	rt_vec_deinit(&slots.all);
	return err;
}
