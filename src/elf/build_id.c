// SPDX-License-Identifier: GPL-2.0-only
/* Build-ids without opening a whole image: a few reads of its notes. */
#include <elf.h>
#include <fcntl.h>

#include "base/bytes.h"
#include "base/fs.h"
#include "elf/build_id.h"

enum { NOTES_MAX = 64 * 1024, SEGMENTS_MAX = 256 };

static bool find_note(struct rt_bytes notes, size_t align, struct rt_build_id *ret)
{
	struct rt_cursor c = rt_cursor_make(notes, false);
	uint32_t name_size, desc_size, type;

	while (rt_cursor_u32(&c, &name_size) && rt_cursor_u32(&c, &desc_size) && rt_cursor_u32(&c, &type)) {
		struct rt_bytes name, desc;

		if (!rt_cursor_bytes(&c, name_size, &name) || !rt_cursor_align(&c, align) ||
		    !rt_cursor_bytes(&c, desc_size, &desc))
			return false;
		if (type == NT_GNU_BUILD_ID && name.size == 4 && !memcmp(name.data, "GNU", 4) && desc.size &&
		    desc.size <= sizeof(ret->id)) {
			ret->size = (uint8_t)desc.size;
			memcpy(ret->id, desc.data, ret->size);
			return true;
		}
		if (!rt_cursor_align(&c, align))
			return false;
	}
	return false;
}

static bool read_notes(int fd, uint64_t offset, uint64_t size, uint64_t align, struct rt_build_id *ret)
{
	_cleanup_free_ uint8_t *notes = NULL;
	ssize_t n;

	if (!size || size > NOTES_MAX || offset > INT64_MAX)
		return false;
	notes = malloc(size);
	n = notes ? pread(fd, notes, size, (off_t)offset) : -1;
	return n > 0 && find_note(rt_bytes_make(notes, (size_t)n), align == 8 ? 8 : 4, ret);
}

bool rt_build_id_of_file(int fd, struct rt_build_id *ret)
{
	static const uint8_t order = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;
	union {
		uint8_t ident[EI_NIDENT];
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} head;
	bool wide;
	size_t count;

	if (pread(fd, &head, sizeof(head), 0) < (ssize_t)sizeof(head.narrow) ||
	    memcmp(head.ident, ELFMAG, SELFMAG) != 0 || head.ident[EI_DATA] != order)
		return false;
	wide = head.ident[EI_CLASS] == ELFCLASS64;
	count = wide ? head.wide.e_phnum : head.narrow.e_phnum;
	for (size_t i = 0; i < count && i < SEGMENTS_MAX; i++) {
		uint64_t at = wide ? head.wide.e_phoff : head.narrow.e_phoff;
		Elf64_Phdr w;
		Elf32_Phdr n;

		at += i * (wide ? sizeof(w) : sizeof(n));
		if (at > INT64_MAX)
			return false;
		if (wide && pread(fd, &w, sizeof(w), (off_t)at) == sizeof(w)) {
			if (w.p_type == PT_NOTE && read_notes(fd, w.p_offset, w.p_filesz, w.p_align, ret))
				return true;
		} else if (!wide && pread(fd, &n, sizeof(n), (off_t)at) == sizeof(n)) {
			if (n.p_type == PT_NOTE && read_notes(fd, n.p_offset, n.p_filesz, n.p_align, ret))
				return true;
		} else {
			return false;
		}
	}
	return false;
}

bool rt_build_id_fits(const uint8_t *file, size_t file_size, const uint8_t *recorded, size_t recorded_size)
{
	bool cut = recorded_size == RT_BUILD_ID_MAX && file_size > recorded_size;

	return recorded_size && (cut || file_size == recorded_size) && !memcmp(file, recorded, recorded_size);
}

bool rt_build_id_of_notes(const char *path, struct rt_build_id *ret)
{
	_cleanup_free_ char *notes = NULL;
	size_t size = 0;
	struct rt_error *err = rt_fs_read(AT_FDCWD, path, NOTES_MAX, &notes, &size);

	if (err) {
		rt_error_free(err);
		return false;
	}
	return find_note(rt_bytes_make(notes, size), 4, ret);
}
