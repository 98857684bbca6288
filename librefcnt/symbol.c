/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol.h"

struct module {
	uintptr_t pc;
	uintptr_t base;
	char path[4096];
};

/* a file's bytes, and the best symbol for an address in it */
struct lookup {
	const char *data;
	size_t size;
	uint64_t address;
	uint64_t start;
	char name[256];
};

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct module *m = arg;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || m->pc - info->dlpi_addr - p->p_vaddr >= p->p_memsz)
			continue;
		m->base = info->dlpi_addr;
		snprintf(m->path, sizeof(m->path), "%s", info->dlpi_name);
		return 1;
	}
	return 0;
}

/* All of the file is input: nothing is read beyond its end. */
static void scan_table(struct lookup *l, const ElfW(Shdr) * table, const ElfW(Shdr) * strings)
{
	if (table->sh_offset > l->size || table->sh_size > l->size - table->sh_offset || strings->sh_offset > l->size ||
	    strings->sh_size > l->size - strings->sh_offset || !strings->sh_size)
		return;
	for (size_t at = 0; at + sizeof(ElfW(Sym)) <= table->sh_size; at += sizeof(ElfW(Sym))) {
		const char *names = l->data + strings->sh_offset;
		ElfW(Sym) s;

		memcpy(&s, l->data + table->sh_offset + at, sizeof(s));
		if ((s.st_info & 15) != STT_FUNC || !s.st_value || s.st_name >= strings->sh_size ||
		    l->address < s.st_value || l->address - s.st_value >= (s.st_size ? s.st_size : 1))
			continue;
		if (*l->name && s.st_value <= l->start)
			continue;
		l->start = s.st_value;
		snprintf(l->name, sizeof(l->name), "%.*s",
			 (int)(strings->sh_size - s.st_name < 255 ? strings->sh_size - s.st_name : 255),
			 names + s.st_name);
	}
}

static void scan_file(struct lookup *l)
{
	ElfW(Ehdr) header;

	if (l->size < sizeof(header))
		return;
	memcpy(&header, l->data, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof(ElfW(Shdr)) ||
	    header.e_shoff > l->size || (l->size - header.e_shoff) / sizeof(ElfW(Shdr)) < header.e_shnum)
		return;
	for (unsigned i = 0; i < header.e_shnum; i++) {
		ElfW(Shdr) table, strings;

		memcpy(&table, l->data + header.e_shoff + i * sizeof(table), sizeof(table));
		if ((table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) || table.sh_link >= header.e_shnum)
			continue;
		memcpy(&strings, l->data + header.e_shoff + table.sh_link * sizeof(strings), sizeof(strings));
		scan_table(l, &table, &strings);
	}
}

static void name_of(const char *path, struct lookup *l)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size > 0) {
		l->size = (size_t)st.st_size;
		data = mmap(NULL, l->size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data != MAP_FAILED) {
			l->data = data;
			scan_file(l);
			munmap(data, l->size);
		}
	}
	close(fd);
}

/* -> is it main? What called that is the same in each program. */
static bool print_frame(struct rc_text *t, unsigned number, uintptr_t address, bool is_return)
{
	struct module m = { .pc = address - is_return }; /* the call, which may be the function's last instruction */
	struct lookup l = { 0 };
	char self[4096];
	const char *file;

	if (!dl_iterate_phdr(visit, &m)) {
		rc_text_add(t, "    #%u %#lx\n", number, (unsigned long)address);
		return false;
	}
	if (!*m.path) {
		ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

		self[n < 0 ? 0 : n] = 0;
		snprintf(m.path, sizeof(m.path), "%s", self);
		l.address = m.pc - m.base;
		name_of("/proc/self/exe", &l); /* whatever its path is by now */
	} else {
		l.address = m.pc - m.base;
		name_of(m.path, &l);
	}
	file = strrchr(m.path, '/') ? strrchr(m.path, '/') + 1 : m.path;
	if (*l.name)
		rc_text_add(t, "    #%u %s+%#lx (%s+%#lx)\n", number, l.name,
			    (unsigned long)(address - m.base - l.start), file, (unsigned long)(address - m.base));
	else
		rc_text_add(t, "    #%u (%s+%#lx)\n", number, file, (unsigned long)(address - m.base));
	return !strcmp(l.name, "main");
}

void rc_symbol_print(struct rc_text *t, uint32_t stack)
{
	const struct rc_stack *s = rc_stack_of(stack);

	if (!s)
		rc_text_add(t, "    (stack not kept: memory limit)\n");
	for (unsigned i = 0; s && i < s->n; i++)
		if (print_frame(t, i, (uintptr_t)s->frames[i], i > 0 || s->kind != RC_STACK_AT_FAULT))
			return;
	if (s && s->cut)
		rc_text_add(t, "    ...\n");
}
