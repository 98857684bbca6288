/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/kcore.h"

#include <elf.h>
#include <string.h>

#include "base/text.h"
#include "elf/kallsyms.h"

/* What the names say: 0 is "not told". */
struct names {
	uint64_t stext, etext;
	uint64_t first, last; /* function of the kernel itself */
	uint64_t module, module_last;
};

static bool is_named(const struct rt_kallsym *k, const char *name)
{
	return k->len == strlen(name) && !memcmp(k->name, name, k->len);
}

static void extend(uint64_t *first, uint64_t *last, uint64_t address)
{
	if (!*first || address < *first)
		*first = address;
	if (address > *last)
		*last = address;
}

static void read_kallsyms(struct rt_bytes text, struct names *n)
{
	struct rt_kallsym k;
	size_t pos = 0;

	while (rt_kallsyms_next(text, &pos, &k)) {
		if (!strchr("tTwW", k.type) || !k.address)
			continue;
		if (k.module) {
			extend(&n->module, &n->module_last, k.address);
			continue;
		}
		extend(&n->first, &n->last, k.address);
		if (is_named(&k, "_stext"))
			n->stext = k.address;
		else if (is_named(&k, "_etext"))
			n->etext = k.address;
	}
}

/* A line of /proc/modules: "name size users by state 0xaddress ...". */
struct module {
	const char *name;
	size_t len;
	uint64_t address;
};

/* false: the end. Lines that cannot be read are skipped. */
static bool next_module(struct rt_bytes text, size_t *pos, struct module *ret)
{
	while (*pos < text.size) {
		const char *line = (const char *)text.data + *pos, *at;
		size_t left = text.size - *pos, len, digits;
		const char *end = memchr(line, '\n', left);

		len = end ? (size_t)(end - line) : left;
		*pos += len + !!end;
		at = memmem(line, len, " 0x", 3);
		ret->name = line;
		ret->len = (size_t)((const char *)(memchr(line, ' ', len) ?: line) - line);
		if (!at || !ret->len)
			continue;
		at += 3;
		for (digits = 0; at + digits < line + len && at[digits] != ' ';)
			digits++;
		if (rt_parse_u64(at, digits, 16, &ret->address))
			return true;
	}
	return false;
}

static struct rt_error *find_code(struct rt_bytes kallsyms, struct rt_bytes modules, uint64_t page, struct names *ret)
{
	struct names n = { 0 };
	struct module m;
	size_t pos = 0;

	read_kallsyms(kallsyms, &n);
	if (!n.first)
		return rt_error_new(RT_E_PRIVILEGE, "the kernel does not show its addresses");
	while (next_module(modules, &pos, &m))
		if (m.address && (!n.module || m.address < n.module))
			n.module = m.address;
	if (n.last > UINT64_MAX - 2 * page || n.module_last > UINT64_MAX - 2 * page || n.etext > UINT64_MAX - page)
		return rt_error_new(RT_E_FORMAT, "code of the kernel cannot end where kallsyms say");
	n.stext = (n.stext ? n.stext : n.first) & ~(page - 1);
	n.etext = n.etext ? (n.etext + page - 1) & ~(page - 1) : ((n.last + page - 1) & ~(page - 1)) + page;
	n.module &= ~(page - 1);
	/* one page more holds the function whose start is the last that is told, one hopes */
	if (n.module_last)
		n.module_last = ((n.module_last + page - 1) & ~(page - 1)) + page;
	if (n.module && !n.module_last)
		return rt_error_new(RT_E_FORMAT, "kallsyms name no function of the modules");
	*ret = n;
	return NULL;
}

static struct rt_error *foreign(void)
{
	return rt_error_new(RT_E_FORMAT, "this is no kcore of 64 bits and this machine's byte order");
}

/* The part of [start, end) that this segment holds, if it holds where that starts. false: too many, or damaged. */
static bool add_piece(struct rt_kcore *k, const Elf64_Phdr *p, uint64_t start, uint64_t end)
{
	struct rt_kcore_piece piece = { .start = { start } };
	uint64_t limit;

	if (__builtin_add_overflow(p->p_vaddr, p->p_filesz, &limit) || start < p->p_vaddr || start >= limit ||
	    start >= end)
		return true;
	piece.size = (end < limit ? end : limit) - start;
	if (k->count == RT_KCORE_PIECES_MAX || __builtin_add_overflow(p->p_offset, start - p->p_vaddr, &piece.from.v) ||
	    piece.from.v > INT64_MAX - piece.size)
		return false;
	k->pieces[k->count++] = piece;
	return true;
}

static void write_head(struct rt_kcore *k, const Elf64_Ehdr *source, uint64_t page)
{
	Elf64_Ehdr eh = { .e_type = ET_CORE,
			  .e_machine = source->e_machine,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_flags = source->e_flags,
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = (Elf64_Half)k->count };
	uint64_t at = page;

	memcpy(eh.e_ident, source->e_ident, EI_NIDENT);
	memcpy(k->head, &eh, sizeof(eh));
	for (size_t i = 0; i < k->count; i++) {
		struct rt_kcore_piece *p = &k->pieces[i];
		const Elf64_Phdr ph = { .p_type = PT_LOAD,
					.p_flags = PF_R | PF_W | PF_X,
					.p_offset = at,
					.p_vaddr = p->start.v,
					.p_filesz = p->size,
					.p_memsz = p->size,
					.p_align = page };

		memcpy(k->head + sizeof(eh) + i * sizeof(ph), &ph, sizeof(ph));
		p->to.v = at;
		at += p->size;
	}
	k->head_size = sizeof(eh) + k->count * sizeof(Elf64_Phdr);
}

struct rt_error *rt_kcore_plan(struct rt_bytes head, struct rt_bytes kallsyms, struct rt_bytes modules, uint64_t page,
			       struct rt_kcore *ret)
{
	struct rt_kcore k = { .count = 0 };
	bool text = false;
	struct names n = { 0 };
	Elf64_Ehdr eh;
	Elf64_Phdr p;

	if (head.size < sizeof(eh))
		return foreign();
	memcpy(&eh, head.data, sizeof(eh));
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_ident[EI_DATA] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) ||
	    eh.e_type != ET_CORE || eh.e_phentsize != sizeof(p) || eh.e_phoff > head.size ||
	    (head.size - eh.e_phoff) / sizeof(p) < eh.e_phnum)
		return foreign();
	RT_TRY(find_code(kallsyms, modules, page, &n));
	for (size_t i = 0; i < eh.e_phnum; i++) {
		memcpy(&p, head.data + eh.e_phoff + i * sizeof(p), sizeof(p));
		if (p.p_type != PT_LOAD)
			continue;
		text |= n.stext - p.p_vaddr < p.p_filesz;
		if (!add_piece(&k, &p, n.stext, n.etext) || !add_piece(&k, &p, n.module, n.module_last))
			return foreign();
	}
	if (!text)
		return rt_error_new(RT_E_FORMAT, "the kcore does not hold the kernel's text, which kallsyms tell");
	write_head(&k, &eh, page);
	*ret = k;
	return NULL;
}

/* Each module of the first text stands in the second at the same address. */
static bool are_among(struct rt_bytes modules, struct rt_bytes others, size_t *ret_count)
{
	struct module m, other;
	size_t pos = 0, at;
	bool found;

	for (*ret_count = 0; next_module(modules, &pos, &m); ++*ret_count) {
		for (at = 0, found = false; !found && next_module(others, &at, &other);)
			found = m.address == other.address && m.len == other.len && !memcmp(m.name, other.name, m.len);
		if (!found)
			return false;
	}
	return true;
}

static uint64_t place(struct rt_bytes kallsyms)
{
	struct rt_kallsym k;
	size_t pos = 0;

	while (rt_kallsyms_next(kallsyms, &pos, &k))
		if (is_named(&k, "_text") || is_named(&k, "_stext"))
			return k.address;
	return 0;
}

bool rt_kcore_is_same(struct rt_bytes kallsyms, struct rt_bytes modules, struct rt_bytes other_kallsyms,
		      struct rt_bytes other_modules)
{
	uint64_t at = place(kallsyms);
	size_t count, others;

	return at && at == place(other_kallsyms) && are_among(modules, other_modules, &count) &&
	       are_among(other_modules, modules, &others) && count == others;
}
