/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An ELF file as bytes, either mapped from an fd or handed in. Everything else
 * that reads ELF (build_id, symtab, sdt, and dwarf/) starts from an image.
 * Hostile input is expected: every answer is bounds-checked, a damaged part
 * gives an error or an empty answer, never a fault.
 *
 * An image is immutable after opening, except that its debug companion may be
 * attached once; distinct images may be used by distinct threads.
 */
#pragma once

#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"
#include "elf/build_id.h"

typedef struct Elf Elf;

enum rt_machine { RT_MACHINE_OTHER = 0, RT_MACHINE_X86_64 = 62, RT_MACHINE_AARCH64 = 183 };

struct rt_segment {
	struct rt_elfaddr start, end; /* [start, end): p_vaddr .. p_vaddr + p_filesz */
	struct rt_foff offset;
	uint32_t flags; /* PF_R | PF_W | PF_X */
};

struct rt_image {
	char *name; /* for messages: a path; owned */
	struct rt_bytes bytes;
	bool mapped; /* bytes are ours to unmap */
	bool is_64, big_endian;
	uint16_t machine; /* enum rt_machine, or any EM_* */
	uint16_t type;    /* ET_EXEC, ET_DYN, ET_REL */
	struct rt_elfaddr entry;
	struct rt_segment *segments; /* PT_LOAD, in file order; owned */
	size_t segment_count;
	struct rt_bytes dynamic; /* PT_DYNAMIC, empty when there is none */
	uint8_t build_id[RT_BUILD_ID_WHOLE_MAX];
	uint8_t build_id_size;  /* 0 = the file has none */
	bool build_id_is_hash;  /* no note: build_id is a content hash made by us */
	Elf *elf;               /* libelf handle over bytes; owned */
	struct rt_image *debug; /* separate debug file (same build-id), or NULL; owned */
	int root_fd;            /* where more files of it are looked for, as rt_image_find_debug() was told; owned; -1:
				   nowhere */
};

/*
 * Opens the file behind fd (dup'ed; the caller keeps fd) under a name for
 * messages. RT_E_NOT_ELF, RT_E_FORMAT, RT_E_UNREADABLE. *ret is destroyed with
 * rt_image_destroy().
 */
RT_CHECK struct rt_error *rt_image_open_fd(int fd, const char *name, struct rt_image **ret);

/*
 * RT_E_TRUNCATED: somebody made the file, or its debug file, shorter since it was opened, and zeroes were read for the
 * rest: nothing that was concluded from it holds.
 */
RT_CHECK struct rt_error *rt_image_whole(const struct rt_image *image);

/*
 * Whether the file itself says that it is this build: its note holds these
 * bytes. False for a file without a note, and for an empty id.
 */
bool rt_image_is_build(const struct rt_image *image, const uint8_t *id, size_t id_size);

/* Opens by path (symbolic links followed). */
RT_CHECK struct rt_error *rt_image_open(const char *path, struct rt_image **ret);

/* An image over bytes that outlive it (not owned). */
RT_CHECK struct rt_error *rt_image_from_bytes(struct rt_bytes bytes, const char *name, struct rt_image **ret);

void rt_image_destroy(struct rt_image *image);
RT_CLEANUP(struct rt_image *, rt_image_destroy);

/*
 * Looks for the separate debug file and attaches it as image->debug when its
 * build-id (or, without one, its .gnu_debuglink CRC) fits: <root>/usr/lib/debug/.build-id/xx/yyy.debug,
 * .gnu_debuglink beside the file, in its .debug/ and below /usr/lib/debug.
 * root_fd: directory that stands for "/", AT_FDCWD for the real one. Not
 * finding one is success with image->debug == NULL. dwarf/ looks for split debug info (.dwo, .dwp) in the same root
 * later: image keeps an fd of its own.
 */
RT_CHECK struct rt_error *rt_image_find_debug(struct rt_image *image, int root_fd);

/* Attaches the file behind fd (the caller keeps it) as image->debug if it fits and there is none yet; else success. */
RT_CHECK struct rt_error *rt_image_give_debug(struct rt_image *image, int fd, const char *name);

/* File offset of an ELF address inside a PT_LOAD's file part; false when there is none. */
bool rt_image_offset(const struct rt_image *image, struct rt_elfaddr addr, struct rt_foff *ret);

/* ELF address that the file offset is loaded at; false when no PT_LOAD covers it. executable: only PF_X ones. */
bool rt_image_address(const struct rt_image *image, struct rt_foff offset, bool executable, struct rt_elfaddr *ret);
/* The address lies in an executable PT_LOAD, as far as the file has bytes for it. */
bool rt_image_is_code(const struct rt_image *image, struct rt_elfaddr addr);

/* At most max bytes of code or data at addr, up to the end of its segment's file part; empty when none. */
struct rt_bytes rt_image_at(const struct rt_image *image, struct rt_elfaddr addr, size_t max);

/*
 * Where the function around addr begins, or the nearest one before it, by the sorted table of .eh_frame_hdr: it is
 * there in stripped files, too. false: there is no such table, or it tells nothing of addr.
 */
bool rt_image_unwind_start(const struct rt_image *image, struct rt_elfaddr addr, struct rt_elfaddr *ret);
/* Where the section of code around addr begins. false: none is around it. */
bool rt_image_code_start(const struct rt_image *image, struct rt_elfaddr addr, struct rt_elfaddr *ret);

/* The section of this name ("." included), decompressed never; false when absent, NOBITS or out of bounds. */
bool rt_image_section(const struct rt_image *image, const char *name, struct rt_bytes *ret,
		      struct rt_elfaddr *ret_addr);

/* DT_NEEDED names in order, into *ret (array owned by the caller, strings owned by image). */
RT_CHECK struct rt_error *rt_image_needed(const struct rt_image *image, const char ***ret, size_t *ret_count);

/* Where it looks for them: DT_RUNPATH, else DT_RPATH, as written ("$ORIGIN/lib:/opt"); owned by image. NULL: nowhere.
 */
RT_CHECK struct rt_error *rt_image_search_path(const struct rt_image *image, const char **ret);

/*
 * Whether any of the names by which the dynamic linker knows what it has and asks for (DT_STRTAB) ends with `name`:
 * names that end alike share their bytes there, and cannot be told from each other.
 */
bool rt_image_has_name(const struct rt_image *image, const char *name);

/*
 * How the module comes by the function of this name (no version) that another has: never, by calls of its stub in the
 * PLT alone, or in other ways, too, as far as anybody knows. For x86-64.
 */
enum rt_import { RT_IMPORT_NONE, RT_IMPORT_CALLED, RT_IMPORT_TAKEN };
enum rt_import rt_image_import(const struct rt_image *image, const char *name);

/* Lower-case hex of a build-id into text (2 * size + 1 bytes at least). Returns text. */
char *rt_build_id_text(const uint8_t *id, size_t size, char *text);
