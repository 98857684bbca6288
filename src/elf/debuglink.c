/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the separate debug file of an image is: by build-id, else by the name and CRC in .gnu_debuglink. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fs.h"
#include "elf/section.h"

struct wanted {
	struct rt_image *image;
	int root_fd;
	bool has_crc;
	uint32_t crc;
};

static uint32_t file_crc(struct rt_bytes bytes)
{
	uLong crc = crc32(0, NULL, 0);

	for (size_t at = 0; at < bytes.size;) {
		size_t n = bytes.size - at < (1u << 30) ? bytes.size - at : 1u << 30;

		crc = crc32(crc, bytes.data + at, (uInt)n);
		at += n;
	}
	return (uint32_t)crc;
}

static bool has_debug_content(const struct rt_image *image)
{
	static const char *const names[] = { ".symtab", ".debug_info", ".zdebug_info" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct rt_bytes bytes;

		if (rt_image_section(image, names[i], &bytes, NULL))
			return true;
	}
	return false;
}

static bool fits(const struct wanted *wanted, const struct rt_image *debug)
{
	const struct rt_image *image = wanted->image;

	if (debug->is_64 != image->is_64 || debug->machine != image->machine || !has_debug_content(debug))
		return false;
	/* the name in .gnu_debuglink may lead back to the file itself */
	if (debug->bytes.size == image->bytes.size && !memcmp(debug->bytes.data, image->bytes.data, image->bytes.size))
		return false;
	if (!image->build_id_is_hash)
		return rt_image_is_build(debug, image->build_id, image->build_id_size);
	return wanted->has_crc && file_crc(debug->bytes) == wanted->crc;
}

/* Attaches the file at path if it fits. A file that is none or does not fit is passed over. */
static struct rt_error *try_path(const struct wanted *wanted, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static struct rt_error *try_path(const struct wanted *wanted, const char *format, ...)
{
	_cleanup_(rt_image_destroyp) struct rt_image *debug = NULL;
	_cleanup_error_ struct rt_error *err = NULL;
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	va_list args;
	int n;

	if (wanted->image->debug)
		return NULL;
	va_start(args, format);
	n = vasprintf(&path, format, args);
	va_end(args);
	if (n < 0) {
		path = NULL;
		return rt_error_nomem();
	}
	err = rt_fs_open_inside(wanted->root_fd, path, &fd);
	if (!err)
		err = rt_image_open_fd(fd, path, &debug);
	if (!err && fits(wanted, debug))
		wanted->image->debug = rt_take(debug);
	return NULL;
}

struct rt_error *rt_image_give_debug(struct rt_image *image, int fd, const char *name)
{
	_cleanup_(rt_image_destroyp) struct rt_image *debug = NULL;
	const struct wanted wanted = { .image = image, .root_fd = AT_FDCWD };

	if (image->debug)
		return NULL;
	RT_TRY(rt_image_open_fd(fd, name, &debug));
	if (fits(&wanted, debug))
		image->debug = rt_take(debug);
	return NULL;
}

static struct rt_error *try_build_id(const struct wanted *wanted)
{
	const struct rt_image *image = wanted->image;
	char text[2 * RT_BUILD_ID_WHOLE_MAX + 1];

	if (image->build_id_is_hash || image->build_id_size < 2)
		return NULL;
	rt_build_id_text(image->build_id, image->build_id_size, text);
	return try_path(wanted, "/usr/lib/debug/.build-id/%.2s/%s.debug", text, text + 2);
}

/* The directory of the image, without a slash at its end; links resolved where the name is one of this root. */
static struct rt_error *image_directory(const struct wanted *wanted, char **ret)
{
	_cleanup_free_ char *real = NULL;
	const char *name = wanted->image->name, *slash;

	if (wanted->root_fd == AT_FDCWD)
		real = realpath(name, NULL);
	/* relative to another root is below it */
	else if (wanted->root_fd != AT_FDCWD && name[0] != '/' && asprintf(&real, "/%s", name) < 0)
		return rt_error_nomem();
	if (real)
		name = real;
	slash = strrchr(name, '/');
	*ret = slash ? strndup(name, (size_t)(slash - name)) : strdup(".");
	return *ret ? NULL : rt_error_nomem();
}

static struct rt_error *try_debuglink(struct wanted *wanted)
{
	struct rt_image *image = wanted->image;
	_cleanup_free_ char *dir = NULL;
	struct rt_bytes link;
	struct rt_cursor c;
	const char *name;

	if (!rt_image_section(image, ".gnu_debuglink", &link, NULL))
		return NULL;
	c = rt_cursor_make(link, image->big_endian);
	if (!rt_cursor_string(&c, &name) || !*name || strlen(name) > NAME_MAX || strchr(name, '/') ||
	    !strcmp(name, ".") || !strcmp(name, ".."))
		return NULL;
	wanted->has_crc = rt_cursor_align(&c, 4) && rt_cursor_u32(&c, &wanted->crc);
	RT_TRY(image_directory(wanted, &dir));
	RT_TRY(try_path(wanted, "%s/%s", dir, name));
	RT_TRY(try_path(wanted, "%s/.debug/%s", dir, name));
	if (*dir == '/' || !*dir)
		RT_TRY(try_path(wanted, "/usr/lib/debug%s/%s", dir, name));
	return NULL;
}

struct rt_error *rt_image_find_debug(struct rt_image *image, int root_fd)
{
	struct wanted wanted = { .image = image, .root_fd = root_fd };
	struct rt_bytes bytes;

	if (image->root_fd == -1)
		image->root_fd = root_fd == AT_FDCWD ? AT_FDCWD : fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	/* a file with all of it needs none */
	if (image->debug ||
	    (rt_image_section(image, ".symtab", &bytes, NULL) && rt_image_section(image, ".debug_info", &bytes, NULL)))
		return NULL;
	RT_TRY(try_build_id(&wanted));
	return try_debuglink(&wanted);
}
