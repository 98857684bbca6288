/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Split debug info. libdw opens .dwo files by itself, wherever a file tells it to, and knows no packages. So the parts
 * of a unit are found here and put together as a small ELF file of their own, which libdw then reads like any other:
 * its addresses (.debug_addr of the program, from the unit's base on) lie beside its own sections, all named as in a
 * .dwo file.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "dwarf/split_base.h"
#include "dwarf/unit.h"
#include "elf/unit_index.h"

#define RT_SPLIT_MISSING_MAX 100000
#define RT_SPLIT_SECTIONS 10

struct piece {
	const char *name;
	struct rt_bytes bytes;
	char *owned; /* bytes, when they were made here */
};

struct pieces {
	struct piece list[RT_SPLIT_SECTIONS];
	size_t count;
};

struct loading {
	struct rt_dwarf *dwarf;
	struct rt_unit *unit;
	uint64_t id;
	Dwarf_Half version;
	uint64_t base;           /* where the code of the unit begins; 0: its lists tell whole addresses */
	const char *name, *path; /* DW_AT_dwo_name; and with its folder */
	const char *why;         /* it cannot be had */
};

static void add_piece(struct pieces *pieces, const char *name, struct rt_bytes bytes)
{
	if (bytes.size && pieces->count < RT_SPLIT_SECTIONS)
		pieces->list[pieces->count++] = (struct piece){ .name = name, .bytes = bytes };
}

/* As add_piece(), for bytes that were made here and are freed with the pieces. */
static void give_piece(struct pieces *pieces, const char *name, char *data, size_t size)
{
	size_t count = pieces->count;

	add_piece(pieces, name, rt_bytes_make(data, size));
	if (pieces->count > count)
		pieces->list[count].owned = data;
	else
		free(data);
}

static void free_pieces(struct pieces *pieces)
{
	for (size_t i = 0; i < pieces->count; i++)
		free(pieces->list[i].owned);
	pieces->count = 0;
}

static size_t aligned(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

/* An ELF file that has only these sections; NULL: out of memory. */
static char *build(const struct rt_image *image, const struct pieces *pieces, size_t *ret_size)
{
	size_t names = 1 + sizeof(".shstrtab"), at = sizeof(Elf64_Ehdr), size, name_at = 1;
	Elf64_Ehdr head = { .e_type = ET_EXEC,
			    .e_machine = image->machine,
			    .e_version = EV_CURRENT,
			    .e_ehsize = sizeof(head),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = (uint16_t)(pieces->count + 2),
			    .e_shstrndx = (uint16_t)(pieces->count + 1) };
	Elf64_Shdr sections[RT_SPLIT_SECTIONS + 2] = { 0 };
	char *out;

	for (size_t i = 0; i < pieces->count; i++) {
		at += aligned(pieces->list[i].bytes.size);
		names += strlen(pieces->list[i].name) + 1;
	}
	size = at + aligned(names) + (pieces->count + 2) * sizeof(*sections);
	out = calloc(1, size);
	if (!out)
		return NULL;
	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
	head.e_shoff = at + aligned(names);
	memcpy(out, &head, sizeof(head));
	size_t place = sizeof(head);
	for (size_t i = 0; i < pieces->count; i++) {
		const struct piece *p = &pieces->list[i];

		memcpy(out + place, p->bytes.data, p->bytes.size);
		memcpy(out + at + name_at, p->name, strlen(p->name) + 1);
		sections[i + 1] = (Elf64_Shdr){ .sh_name = (uint32_t)name_at,
						.sh_type = SHT_PROGBITS,
						.sh_offset = place,
						.sh_size = p->bytes.size,
						.sh_addralign = 1 };
		name_at += strlen(p->name) + 1;
		place += aligned(p->bytes.size);
	}
	memcpy(out + at + name_at, ".shstrtab", sizeof(".shstrtab"));
	sections[pieces->count + 1] = (Elf64_Shdr){ .sh_name = (uint32_t)name_at,
						    .sh_type = SHT_STRTAB,
						    .sh_offset = at,
						    .sh_size = names,
						    .sh_addralign = 1 };
	memcpy(out + head.e_shoff, sections, (pieces->count + 2) * sizeof(*sections));
	*ret_size = size;
	return out;
}

/* Of the program: what the unit's numbers of addresses count in, and before DWARF 5 its ranges. */
static void add_program_parts(struct loading *l, struct pieces *pieces)
{
	struct rt_dwarf *dwarf = l->dwarf;
	bool own = dwarf->dw == dwarf->own.dw;
	const struct rt_image *image = own ? dwarf->image : dwarf->image->debug;
	const struct rt_dwarf_source *source = own ? &dwarf->own : &dwarf->companion;
	struct rt_bytes bytes, part;
	uint64_t base = 0;

	if (!rt_die_number(&l->unit->die, DW_AT_addr_base, &base))
		rt_die_number(&l->unit->die, DW_AT_GNU_addr_base, &base);
	if (rt_source_section(image, source, ".debug_addr", &bytes) && base <= bytes.size &&
	    rt_bytes_sub(bytes, base, bytes.size - base, &part))
		add_piece(pieces, ".debug_addr.dwo", part);
	base = 0;
	rt_die_number(&l->unit->die, DW_AT_GNU_ranges_base, &base);
	if (l->version < 5 && rt_source_section(image, source, ".debug_ranges", &bytes) && base <= bytes.size &&
	    rt_bytes_sub(bytes, base, bytes.size - base, &part)) {
		char *based = l->base ? rt_split_ranges(part, l->base) : NULL;

		if (based)
			give_piece(pieces, ".debug_ranges.dwo", based, part.size);
		else
			add_piece(pieces, ".debug_ranges.dwo", part);
	}
}

/* Lists of DWARF 5 count from where the unit's code begins. */
static void add_lists(struct loading *l, struct pieces *pieces, bool locations, struct rt_bytes bytes)
{
	const char *name = locations ? ".debug_loclists.dwo" : ".debug_rnglists.dwo";
	char *based;
	size_t size;

	if (!l->base)
		add_piece(pieces, name, bytes);
	else if (rt_split_lists(bytes, locations, l->base, &based, &size))
		give_piece(pieces, name, based, size);
	else
		l->why = "its lists of ranges or locations are damaged";
}

/* libdw over the pieces; the unit of the wanted id becomes the tree. */
static struct rt_error *read_pieces(struct loading *l, const struct pieces *pieces)
{
	struct rt_unit *unit = l->unit;
	struct rt_dwarf_source source = { 0 };
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	size_t size;

	source.copy = build(l->dwarf->image, pieces, &size);
	if (!source.copy)
		return rt_error_nomem();
	source.elf = elf_memory(source.copy, size);
	source.dw = source.elf ? dwarf_begin_elf(source.elf, DWARF_C_READ, NULL) : NULL;
	while (source.dw && dwarf_get_units(source.dw, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		uint64_t id = 0, *slot;

		if (dwarf_tag(&die) != DW_TAG_compile_unit ||
		    dwarf_cu_info(cu, NULL, NULL, NULL, NULL, &id, NULL, NULL) != 0 || id != l->id)
			continue;
		slot = rt_map_put(&l->dwarf->skeleton_by_cu, rt_key_make((uintptr_t)die.cu, 0), NULL);
		if (!slot) {
			rt_source_end(&source);
			return rt_error_nomem();
		}
		*slot = (uint64_t)(unit - l->dwarf->units.data) + 1;
		unit->split = source;
		unit->tree = die;
		return NULL;
	}
	rt_source_end(&source);
	l->why = "it is of another compilation: build again, or bring back the one that belongs to this program";
	return NULL;
}

static struct rt_error *read_dwo(struct loading *l, const struct rt_image *image)
{
	static const char *const names[] = { ".debug_info.dwo",        ".debug_abbrev.dwo", ".debug_str.dwo",
					     ".debug_str_offsets.dwo", ".debug_loc.dwo",    ".debug_types.dwo" };
	struct rt_dwarf_source source = { 0 };
	struct pieces pieces = { .count = 0 };
	struct rt_error *err = rt_source_open(image, &source);
	struct rt_bytes bytes;

	for (size_t i = 0; !err && i < sizeof(names) / sizeof(*names); i++) {
		if (rt_source_section(image, &source, names[i], &bytes))
			add_piece(&pieces, names[i], bytes);
	}
	if (!err && rt_source_section(image, &source, ".debug_loclists.dwo", &bytes))
		add_lists(l, &pieces, true, bytes);
	if (!err && rt_source_section(image, &source, ".debug_rnglists.dwo", &bytes))
		add_lists(l, &pieces, false, bytes);
	if (!err && !l->why) {
		add_program_parts(l, &pieces);
		err = read_pieces(l, &pieces);
	}
	free_pieces(&pieces);
	rt_source_end(&source);
	return err;
}

/* The strings of one unit out of those of a whole package, with the offsets that belong to them. */
static bool take_strings(struct rt_bytes offsets, struct rt_bytes strings, Dwarf_Half version, struct pieces *pieces)
{
	size_t head = version < 5 ? 0 : 8, len = 0, cap = 2 * strings.size + 4096;
	char *own_offsets = malloc(offsets.size + 1);
	struct rt_cursor c = rt_cursor_make(offsets, false);
	RT_VEC(char) text = { 0 };
	uint32_t first, at;

	/* the 64-bit form is for units of more than 4 GiB */
	if (!own_offsets || (head && (!rt_cursor_u32(&c, &first) || first == UINT32_MAX)) || head > offsets.size) {
		free(own_offsets);
		return false;
	}
	memcpy(own_offsets, offsets.data, offsets.size);
	c.pos = head;
	while (rt_cursor_u32(&c, &at)) {
		size_t n = at < strings.size ? strnlen((const char *)strings.data + at, strings.size - at) + 1 : 0;
		uint32_t here = (uint32_t)len;

		/* offsets of damaged tables may all lead to one long string */
		if (!n || at + n > strings.size || len + n > cap || !rt_vec_reserve(&text, len + n)) {
			free(own_offsets);
			rt_vec_deinit(&text);
			return false;
		}
		memcpy(text.data + len, strings.data + at, n);
		memcpy(own_offsets + c.pos - 4, &here, 4);
		len += n;
	}
	give_piece(pieces, ".debug_str_offsets.dwo", own_offsets, offsets.size);
	give_piece(pieces, ".debug_str.dwo", text.data, len);
	return true;
}

static bool slice(const struct rt_dwarf *dwarf, const char *section, const struct rt_unit_slice *where,
		  struct rt_bytes *ret)
{
	struct rt_bytes whole;

	return where->size && rt_source_section(dwarf->package, &dwarf->package_source, section, &whole) &&
	       rt_bytes_sub(whole, where->offset, where->size, ret);
}

/* The parts of the unit out of the package. false: it is not in there. */
static bool take_package(struct loading *l, struct pieces *pieces)
{
	const struct rt_dwarf *dwarf = l->dwarf;
	struct rt_bytes index, bytes, strings;
	struct rt_unit_slices slices;
	bool v5;

	if (!rt_source_section(dwarf->package, &dwarf->package_source, ".debug_cu_index", &index) ||
	    !rt_unit_index_find(index, false, l->id, &slices))
		return false;
	v5 = slices.version == 5;
	if (slice(dwarf, ".debug_info.dwo", &slices.parts[RT_UNIT_INFO], &bytes))
		add_piece(pieces, ".debug_info.dwo", bytes);
	if (slice(dwarf, ".debug_abbrev.dwo", &slices.parts[RT_UNIT_ABBREV], &bytes))
		add_piece(pieces, ".debug_abbrev.dwo", bytes);
	if (v5 && slice(dwarf, ".debug_loclists.dwo", &slices.parts[RT_UNIT_LOC], &bytes))
		add_lists(l, pieces, true, bytes);
	if (!v5 && slice(dwarf, ".debug_loc.dwo", &slices.parts[RT_UNIT_LOC], &bytes))
		add_piece(pieces, ".debug_loc.dwo", bytes);
	if (slice(dwarf, ".debug_rnglists.dwo", &slices.parts[RT_UNIT_RNGLISTS], &bytes))
		add_lists(l, pieces, false, bytes);
	if (slice(dwarf, ".debug_str_offsets.dwo", &slices.parts[RT_UNIT_STR_OFFSETS], &bytes) &&
	    rt_source_section(dwarf->package, &dwarf->package_source, ".debug_str.dwo", &strings) &&
	    !take_strings(bytes, strings, l->version, pieces))
		l->why = "the strings of the package are damaged";
	return true;
}

static struct rt_error *open_image(const struct rt_dwarf *dwarf, const char *path, struct rt_image **ret)
{
	_cleanup_close_ int fd = -1;

	RT_TRY(rt_fs_open_inside(dwarf->image->root_fd, path, &fd));
	return rt_image_open_fd(fd, path, ret);
}

/* FILE.dwp, beside the program or its debug file. */
static struct rt_error *open_package(struct rt_dwarf *dwarf)
{
	const struct rt_image *image = dwarf->image;
	_cleanup_free_ char *real = image->root_fd == AT_FDCWD ? realpath(image->name, NULL) : NULL;
	const char *const names[] = { image->name, real, image->debug ? image->debug->name : NULL };

	dwarf->package_tried = true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !dwarf->package; i++) {
		_cleanup_free_ char *path = NULL;

		if (!names[i])
			continue;
		if (asprintf(&path, "%s.dwp", names[i]) < 0) {
			path = NULL;
			return rt_error_nomem();
		}
		rt_error_free(open_image(dwarf, path, &dwarf->package));
	}
	return dwarf->package ? rt_source_open(dwarf->package, &dwarf->package_source) : NULL;
}

static struct rt_error *try_package(struct loading *l)
{
	struct rt_dwarf *dwarf = l->dwarf;
	struct pieces pieces = { .count = 0 };
	struct rt_error *err = NULL;

	if (!dwarf->package_tried && dwarf->image->root_fd != -1)
		RT_TRY(open_package(dwarf));
	if (!dwarf->package || !take_package(l, &pieces)) {
		free_pieces(&pieces);
		return NULL;
	}
	if (!l->why) {
		add_program_parts(l, &pieces);
		err = read_pieces(l, &pieces);
	}
	free_pieces(&pieces);
	return err;
}

static struct rt_error *try_path(struct loading *l, const char *path)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	struct rt_error *err;

	if (!path)
		return rt_error_nomem();
	err = open_image(l->dwarf, path, &image);
	if (rt_error_catch(&err, RT_E_NOT_FOUND))
		return NULL;
	if (err) {
		l->why = rt_dwarf_text(l->dwarf, err->message);
		rt_error_free(err);
		return NULL;
	}
	l->why = NULL;
	return read_dwo(l, image);
}

/* Where the compiler wrote it, then beside the program. */
static struct rt_error *try_files(struct loading *l)
{
	const struct rt_image *image = l->dwarf->image;
	const char *slash = strrchr(image->name, '/');
	const char *const tails[] = { l->name, rt_basename(l->name) };

	if (image->root_fd == -1)
		return NULL;
	RT_TRY(try_path(l, l->path));
	for (size_t i = 0; i < sizeof(tails) / sizeof(*tails) && !l->unit->split.dw; i++) {
		_cleanup_free_ char *path = NULL;

		if (tails[i][0] == '/')
			continue;
		if (asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - image->name) : 0, image->name, tails[i]) < 0) {
			path = NULL;
			return rt_error_nomem();
		}
		RT_TRY(try_path(l, path));
	}
	return NULL;
}

struct rt_error *rt_unit_load(struct rt_dwarf *dwarf, struct rt_unit *unit)
{
	struct loading l = { .dwarf = dwarf, .unit = unit };
	Dwarf_Addr base;

	if (!unit->skeleton || unit->loaded)
		return NULL;
	unit->loaded = true;
	l.name = rt_die_string(&unit->die, DW_AT_dwo_name) ?: rt_die_string(&unit->die, DW_AT_GNU_dwo_name);
	if (!l.name || dwarf_cu_info(unit->die.cu, &l.version, NULL, NULL, NULL, &l.id, NULL, NULL) != 0)
		return NULL;
	if (dwarf_lowpc(&unit->die, &base) == 0)
		l.base = base;
	l.path = rt_dwarf_path(dwarf, &unit->die, l.name);
	if (!l.path)
		return rt_error_nomem();
	if (dwarf->image->big_endian)
		l.why = "split debug information of big-endian machines is not read";
	else
		RT_TRY(try_package(&l));
	if (!unit->split.dw && !dwarf->image->big_endian)
		RT_TRY(try_files(&l));
	if (!unit->split.dw && dwarf->missing.len < RT_SPLIT_MISSING_MAX &&
	    !rt_vec_push(&dwarf->missing, ((struct rt_dwarf_missing){ l.path, l.why ?: "it is not there" })))
		return rt_error_nomem();
	return NULL;
}

bool rt_unit_of_split(struct rt_dwarf *dwarf, struct Dwarf_CU *cu, Dwarf_Die *ret)
{
	uint64_t *slot = rt_map_get(&dwarf->skeleton_by_cu, rt_key_make((uintptr_t)cu, 0));

	if (slot)
		*ret = dwarf->units.data[*slot - 1].die;
	return slot != NULL;
}

size_t rt_dwarf_missing(const struct rt_dwarf *dwarf, const struct rt_dwarf_missing **ret, size_t *ret_units)
{
	size_t units = 0;

	for (size_t i = 0; i < dwarf->units.len; i++)
		units += dwarf->units.data[i].skeleton;
	if (ret_units)
		*ret_units = units;
	*ret = dwarf->missing.data;
	return dwarf->missing.len;
}
