/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/image.h"

#include <elf.h>
#include <fcntl.h>
#include <libelf.h>
#include <string.h>

#include "base/fs.h"
#include "elf/note.h"
#include "elf/section.h"
#include "elf/sha1.h"

struct program_header {
	uint32_t type, flags;
	uint64_t offset, vaddr, filesz, align;
};

static struct rt_error *read_file_header(struct rt_image *image)
{
	struct rt_bytes b = image->bytes;
	struct rt_cursor c;
	uint32_t version;

	if (b.size < EI_NIDENT || memcmp(b.data, ELFMAG, SELFMAG) != 0)
		return rt_error_new(RT_E_NOT_ELF, "%s is not an ELF file", image->name);
	if ((b.data[EI_CLASS] != ELFCLASS32 && b.data[EI_CLASS] != ELFCLASS64) ||
	    (b.data[EI_DATA] != ELFDATA2LSB && b.data[EI_DATA] != ELFDATA2MSB))
		return rt_error_new(RT_E_FORMAT, "%s has a damaged ELF header", image->name);
	image->is_64 = b.data[EI_CLASS] == ELFCLASS64;
	image->big_endian = b.data[EI_DATA] == ELFDATA2MSB;
	c = rt_cursor_make(b, image->big_endian);
	if (b.size < (image->is_64 ? 64 : 52) || !rt_cursor_skip(&c, EI_NIDENT) || !rt_cursor_u16(&c, &image->type) ||
	    !rt_cursor_u16(&c, &image->machine) || !rt_cursor_u32(&c, &version) ||
	    !rt_elf_word(image, &c, &image->entry.v))
		return rt_error_new(RT_E_FORMAT, "%s ends inside its ELF header", image->name);
	return NULL;
}

/* Program headers that lie inside the file. */
static size_t program_header_count(const struct rt_image *image, uint64_t *ret_offset, uint64_t *ret_size)
{
	struct rt_cursor c = rt_cursor_make(image->bytes, image->big_endian);
	uint16_t entry_size, count;
	struct rt_section first;
	uint64_t offset, n;

	if (!rt_cursor_skip(&c, image->is_64 ? 32 : 28) || !rt_elf_word(image, &c, &offset))
		return 0;
	c.pos = image->is_64 ? 54 : 42;
	if (!rt_cursor_u16(&c, &entry_size) || !rt_cursor_u16(&c, &count))
		return 0;
	n = count;
	if (count == PN_XNUM && rt_section_at(image, 0, &first))
		n = first.info;
	if (!offset || offset >= image->bytes.size || entry_size < (image->is_64 ? 56 : 32))
		return 0;
	if (n > (image->bytes.size - offset) / entry_size)
		n = (image->bytes.size - offset) / entry_size;
	*ret_offset = offset;
	*ret_size = entry_size;
	return n;
}

static bool program_header_at(const struct rt_image *image, uint64_t offset, struct program_header *ret)
{
	struct rt_cursor c = rt_cursor_make(image->bytes, image->big_endian);
	uint64_t paddr, memsz;

	memset(ret, 0, sizeof(*ret));
	if (!rt_cursor_skip(&c, offset) || !rt_cursor_u32(&c, &ret->type))
		return false;
	if (image->is_64 && !rt_cursor_u32(&c, &ret->flags))
		return false;
	if (!rt_elf_word(image, &c, &ret->offset) || !rt_elf_word(image, &c, &ret->vaddr) ||
	    !rt_elf_word(image, &c, &paddr) || !rt_elf_word(image, &c, &ret->filesz) || !rt_elf_word(image, &c, &memsz))
		return false;
	if (!image->is_64 && !rt_cursor_u32(&c, &ret->flags))
		return false;
	return rt_elf_word(image, &c, &ret->align);
}

/* The file part of a program header, cut at the end of the file. */
static struct rt_bytes file_part(const struct rt_image *image, const struct program_header *ph)
{
	uint64_t size = ph->filesz;
	struct rt_bytes part;

	if (ph->offset >= image->bytes.size)
		return rt_bytes_make(NULL, 0);
	if (size > image->bytes.size - ph->offset)
		size = image->bytes.size - ph->offset;
	/* an address range never wraps */
	if (size > UINT64_MAX - ph->vaddr)
		size = UINT64_MAX - ph->vaddr;
	return rt_bytes_sub(image->bytes, ph->offset, size, &part) ? part : rt_bytes_make(NULL, 0);
}

static void take_build_id(struct rt_image *image, struct rt_bytes notes, uint64_t align, size_t *budget)
{
	struct rt_cursor c = rt_cursor_make(notes, image->big_endian);
	struct rt_note note;

	/* parts of a hostile file may overlap: all together are read once */
	if (notes.size > *budget)
		return;
	*budget -= notes.size;
	while (!image->build_id_size && rt_note_next(&c, align == 8 ? 8 : 4, &note)) {
		if (!rt_note_is(&note, "GNU", NT_GNU_BUILD_ID) || !note.desc.size ||
		    note.desc.size > sizeof(image->build_id))
			continue;
		memcpy(image->build_id, note.desc.data, note.desc.size);
		image->build_id_size = (uint8_t)note.desc.size;
	}
}

static struct rt_error *read_program_headers(struct rt_image *image)
{
	uint64_t offset = 0, entry_size = 0;
	size_t n = program_header_count(image, &offset, &entry_size);
	size_t budget = image->bytes.size;
	struct program_header ph;

	image->segments = calloc(n ? n : 1, sizeof(*image->segments));
	if (!image->segments)
		return rt_error_nomem();
	for (size_t i = 0; i < n && program_header_at(image, offset + i * entry_size, &ph); i++) {
		struct rt_bytes part = file_part(image, &ph);

		if (ph.type == PT_NOTE)
			take_build_id(image, part, ph.align, &budget);
		if (ph.type == PT_DYNAMIC)
			image->dynamic = part;
		if (ph.type != PT_LOAD)
			continue;
		image->segments[image->segment_count++] =
			(struct rt_segment){ { ph.vaddr }, { ph.vaddr + part.size }, { ph.offset }, ph.flags };
	}
	return NULL;
}

/* A separate debug file's program headers describe the stripped file: its own notes are found by section. */
static void find_build_id(struct rt_image *image)
{
	struct rt_section s;
	struct rt_bytes notes;
	size_t at = 0, budget = image->bytes.size;

	while (!image->build_id_size && rt_section_find(image, ".note.gnu.build-id", &at, &s)) {
		if (s.type == SHT_NOTE && !(s.flags & SHF_COMPRESSED) && rt_section_bytes(image, &s, &notes))
			take_build_id(image, notes, 4, &budget);
	}
	if (image->build_id_size)
		return;
	rt_sha1(image->bytes, image->build_id);
	image->build_id_size = RT_SHA1_SIZE;
	image->build_id_is_hash = true;
}

/* Takes over mapped bytes (when mapped is set) in success and in failure. */
static struct rt_error *make_image(struct rt_bytes bytes, bool mapped, const char *name, struct rt_image **ret)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = calloc(1, sizeof(*image));

	if (!image) {
		if (mapped)
			rt_fs_unmap(bytes);
		return rt_error_nomem();
	}
	image->bytes = bytes;
	image->mapped = mapped;
	image->root_fd = -1;
	image->name = strdup(name);
	if (!image->name)
		return rt_error_nomem();
	RT_TRY(read_file_header(image));
	RT_TRY(read_program_headers(image));
	find_build_id(image);
	elf_version(EV_CURRENT);
	/* libelf only reads: the handle is never opened for writing */
	image->elf = elf_memory((char *)(uintptr_t)bytes.data, bytes.size);
	if (!image->elf)
		return rt_error_new(RT_E_FORMAT, "%s has damaged ELF headers: %s", name, elf_errmsg(-1));
	*ret = rt_take(image);
	return NULL;
}

struct rt_error *rt_image_open_fd(int fd, const char *name, struct rt_image **ret)
{
	struct rt_bytes bytes;

	RT_TRY(rt_fs_map(fd, name, &bytes));
	return make_image(bytes, true, name, ret);
}

struct rt_error *rt_image_whole(const struct rt_image *image)
{
	if (image->mapped)
		RT_TRY(rt_fs_whole(image->bytes));
	return image->debug ? rt_image_whole(image->debug) : NULL;
}

bool rt_image_is_build(const struct rt_image *image, const uint8_t *id, size_t id_size)
{
	return id_size && !image->build_id_is_hash && image->build_id_size == id_size &&
	       !memcmp(image->build_id, id, id_size);
}

struct rt_error *rt_image_open(const char *path, struct rt_image **ret)
{
	_cleanup_close_ int fd = -1;

	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	return rt_image_open_fd(fd, path, ret);
}

struct rt_error *rt_image_from_bytes(struct rt_bytes bytes, const char *name, struct rt_image **ret)
{
	return make_image(bytes, false, name, ret);
}

void rt_image_destroy(struct rt_image *image)
{
	if (!image)
		return;
	rt_image_destroy(image->debug);
	rt_closep(&image->root_fd);
	if (image->elf)
		elf_end(image->elf);
	if (image->mapped)
		rt_fs_unmap(image->bytes);
	free(image->segments);
	free(image->name);
	free(image);
}

bool rt_image_offset(const struct rt_image *image, struct rt_elfaddr addr, struct rt_foff *ret)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rt_segment *s = &image->segments[i];

		if (addr.v >= s->start.v && addr.v < s->end.v) {
			ret->v = s->offset.v + (addr.v - s->start.v);
			return true;
		}
	}
	return false;
}

bool rt_image_address(const struct rt_image *image, struct rt_foff offset, bool executable, struct rt_elfaddr *ret)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rt_segment *s = &image->segments[i];

		if (executable && !(s->flags & PF_X))
			continue;
		if (offset.v >= s->offset.v && offset.v - s->offset.v < s->end.v - s->start.v) {
			ret->v = s->start.v + (offset.v - s->offset.v);
			return true;
		}
	}
	return false;
}

bool rt_image_is_code(const struct rt_image *image, struct rt_elfaddr addr)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rt_segment *s = &image->segments[i];

		if ((s->flags & PF_X) && addr.v >= s->start.v && addr.v < s->end.v)
			return true;
	}
	return false;
}

struct rt_bytes rt_image_at(const struct rt_image *image, struct rt_elfaddr addr, size_t max)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rt_segment *s = &image->segments[i];
		struct rt_bytes part;
		uint64_t size;

		if (addr.v < s->start.v || addr.v >= s->end.v)
			continue;
		size = s->end.v - addr.v;
		if (rt_bytes_sub(image->bytes, s->offset.v + (addr.v - s->start.v), size < max ? size : max, &part))
			return part;
	}
	return rt_bytes_make(NULL, 0);
}

bool rt_image_section(const struct rt_image *image, const char *name, struct rt_bytes *ret, struct rt_elfaddr *ret_addr)
{
	struct rt_section s;
	size_t at = 0;

	while (rt_section_find(image, name, &at, &s)) {
		if (!rt_section_bytes(image, &s, ret))
			continue;
		if (ret_addr)
			*ret_addr = s.addr;
		return true;
	}
	return false;
}

char *rt_build_id_text(const uint8_t *id, size_t size, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		text[2 * i] = digits[id[i] >> 4];
		text[2 * i + 1] = digits[id[i] & 15];
	}
	text[2 * size] = 0;
	return text;
}
