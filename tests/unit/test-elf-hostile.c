/* SPDX-License-Identifier: GPL-2.0-only */
/* Damaged files: whatever is asked of them, there is an answer or an error, never a fault. */
#include <elf.h>
#include <time.h>

#include "base/fs.h"
#include "elf/pointed.h"
#include "elf/sdt.h"
#include "elf/symtab.h"
#include "workdir.h"

static const char program[] = "#include <sys/sdt.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
			      "int main(int c, char **v) { DTRACE_PROBE1(app, start, c); free(malloc(3));\n"
			      "return puts(v[0]); }\n";

static uint64_t seed;

static uint32_t next_random(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33);
}

static void ask_symbols(const struct rt_image *image)
{
	struct rt_symtab *t = NULL;

	assert_ok(rt_symtab_create(image, &t));
	for (size_t i = 0; i < t->count; i += 7) {
		(void)rt_symtab_at(t, t->symbols[i].addr);
		(void)rt_symtab_find(t, t->symbols[i].name);
	}
	rt_symtab_destroy(t);
}

/* Asks everything; the bytes stand at the very end of their allocation, so that ASan sees each overrun. */
static void ask_all(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct rt_sdt_marker *markers = NULL;
	struct rt_pointed pointed = { 0 };
	struct rt_image *image = NULL;
	const char **names = NULL;
	struct rt_error *err;
	struct rt_bytes bytes;
	size_t n;

	memcpy(copy, data, size);
	err = rt_image_from_bytes(rt_bytes_make(copy, size), "damaged", &image);
	if (!err) {
		ask_symbols(image);
		rt_error_free(rt_sdt_read(image, &markers, &n));
		rt_error_free(rt_image_needed(image, &names, &n));
		assert_ok(rt_pointed_read(image, &pointed));
		if (rt_image_section(image, ".text", &bytes, NULL) && bytes.size)
			assert_in_range((uintptr_t)bytes.data, (uintptr_t)copy, (uintptr_t)copy + size - 1);
		for (size_t i = 0; i < image->segment_count; i++) {
			bytes = rt_image_at(image, image->segments[i].start, 64);
			if (bytes.size)
				assert_in_range((uintptr_t)bytes.data, (uintptr_t)copy, (uintptr_t)copy + size - 1);
		}
	}
	rt_error_free(err);
	free(markers);
	free(names);
	rt_pointed_deinit(&pointed);
	rt_image_destroy(image);
	free(copy);
}

static uint8_t *load(struct workdir *f, const char *name, size_t *size)
{
	char *data = NULL;

	assert_ok(rt_fs_read(-100, workdir_path(f, name), 64 << 20, &data, size));
	return (uint8_t *)data;
}

static const char *const kinds[] = { "gcc -g p.c -o p", "gcc p.c -o p -fuse-ld=lld && strip p",
				     ("gcc p.c -o q && xz -kf q && strip q -o p && "
				      "objcopy --add-section .gnu_debugdata=q.xz p") };

TEST(cut_everywhere)
{
	struct workdir f;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		uint8_t *data;
		size_t size;

		workdir_run(&f, "%s", kinds[k]);
		data = load(&f, "p", &size);
		for (size_t cut = 0; cut <= size; cut += 64)
			ask_all(data, cut);
		for (size_t cut = 0; cut < 300; cut++)
			ask_all(data, cut);
		free(data);
	}
	workdir_remove(&f);
}

/* flips anywhere, and flips where structure is: file header, program headers, section headers */
TEST(flipped_bytes)
{
	struct workdir f;

	workdir_make(&f);
	workdir_write(&f, "p.c", program);
	seed = 1;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		uint8_t *data, *copy;
		size_t size, headers;

		workdir_run(&f, "%s", kinds[k]);
		data = load(&f, "p", &size);
		copy = malloc(size);
		memcpy(&headers, data + offsetof(Elf64_Ehdr, e_shoff), 8);
		for (unsigned i = 0; i < 1500; i++) {
			unsigned flips = 1 + next_random() % 8;

			memcpy(copy, data, size);
			while (flips--) {
				size_t where = i % 3 == 0   ? next_random() % size
					       : i % 3 == 1 ? next_random() % 1000
							    : headers + next_random() % (size - headers);

				copy[where] = i % 5 ? (uint8_t)next_random() : 0xff;
			}
			ask_all(copy, size);
		}
		free(copy);
		free(data);
	}
	workdir_remove(&f);
}

/* Many symbols that share one endless name, many sections that overlap: the work stays in proportion to the file. */
TEST(work_is_bounded)
{
	enum { SIZE = 8 << 20, SECTIONS = 60000 };
	uint8_t *data = calloc(1, SIZE);
	Elf64_Ehdr *eh = (Elf64_Ehdr *)data;
	Elf64_Shdr *sh = (Elf64_Shdr *)(data + 64);
	size_t tables = 64 + SECTIONS * sizeof(*sh);
	static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM, SHT_RELA, SHT_NOTE, SHT_PROGBITS };
	clock_t before = clock();

	memset(data + tables, 'a', SIZE - tables);
	for (size_t at = tables; at + 24 <= SIZE / 2; at += 24) {
		Elf64_Sym sym = { .st_name = (uint32_t)at,
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				  .st_shndx = 5,
				  .st_value = (uint64_t)at << 32 | R_X86_64_IRELATIVE };

		memcpy(data + at, &sym, sizeof(sym));
	}
	/* each symbol is a relocation as well; the section name lies at the very end */
	memcpy(data + SIZE - 5, ".plt", 5);
	memcpy(eh->e_ident, ELFMAG "\2\1\1", 7);
	eh->e_type = ET_DYN;
	eh->e_machine = EM_X86_64;
	eh->e_ehsize = eh->e_shoff = 64;
	eh->e_shentsize = sizeof(*sh);
	eh->e_shnum = SECTIONS;
	eh->e_shstrndx = 1;
	for (unsigned i = 1; i < SECTIONS; i++) {
		sh[i].sh_type = types[i % 5];
		sh[i].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
		sh[i].sh_offset = i == 1 ? 0 : tables;
		sh[i].sh_size = i == 1 ? SIZE : SIZE - tables;
		if (types[i % 5] == SHT_RELA || types[i % 5] == SHT_PROGBITS)
			sh[i].sh_size = 1 << 20;
		sh[i].sh_name = types[i % 5] == SHT_PROGBITS ? SIZE - 5 : (uint32_t)tables;
		sh[i].sh_link = 1;
	}
	ask_all(data, SIZE);
	/* seconds, not hours; generous for a loaded machine under ASan */
	assert_true((clock() - before) / CLOCKS_PER_SEC < 30);
	free(data);
}

TEST_MAIN();
