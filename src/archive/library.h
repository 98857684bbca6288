/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside of archive/: libarchive, opened when an archive is. It brings seven libraries with it (libxml2 and ICU are two
 * of them) that no other command shall load: they take as long as all of a short command (`./dev bench dwarf`).
 */
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"

#define RT_ARCHIVE_FUNCTIONS(F) \
	F(entry_filetype) \
	F(entry_free) \
	F(entry_hardlink) \
	F(entry_new) \
	F(entry_pathname) \
	F(entry_set_filetype) \
	F(entry_set_pathname) \
	F(entry_set_perm) \
	F(entry_set_size) \
	F(entry_size) \
	F(error_string) \
	F(read_data) \
	F(read_free) \
	F(read_new) \
	F(read_next_header) \
	F(read_open_memory) \
	F(read_support_filter_zstd) \
	F(read_support_format_tar) \
	F(write_add_filter_zstd) \
	F(write_close) \
	F(write_data) \
	F(write_fail) \
	F(write_free) \
	F(write_header) \
	F(write_new) \
	F(write_open) \
	F(write_set_bytes_per_block) \
	F(write_set_format_pax_restricted)

/* Its functions under their own names, less "archive_". */
struct rt_archive_library {
#define RT_ARCHIVE_FUNCTION(name) typeof(archive_##name) *name;
	RT_ARCHIVE_FUNCTIONS(RT_ARCHIVE_FUNCTION)
#undef RT_ARCHIVE_FUNCTION
};

/* Stays open until the process ends. RT_E_UNSUPPORTED where it is missing. */
RT_CHECK struct rt_error *rt_archive_library_open(struct rt_archive_library *ret);
