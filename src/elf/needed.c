/* SPDX-License-Identifier: GPL-2.0-only */
/* What a module asks the dynamic linker for: DT_NEEDED and names, found by program header so that missing sections do
 * not matter. */
#include <elf.h>
#include <string.h>

#include "base/vec.h"
#include "elf/section.h"

/* The dynamic section's bytes: libelf's view is not needed, one section or segment of that type is enough. */
static struct rt_bytes dynamic_bytes(const struct rt_image *image)
{
	size_t n = rt_section_count(image);
	struct rt_bytes bytes = { 0 };
	struct rt_section s;

	if (image->dynamic.size)
		return image->dynamic;
	for (size_t i = 0; i < n && rt_section_at(image, i, &s); i++) {
		if (s.type == SHT_DYNAMIC && rt_section_bytes(image, &s, &bytes))
			break;
	}
	return bytes;
}

static bool next_tag(const struct rt_image *image, struct rt_cursor *c, uint64_t *tag, uint64_t *value)
{
	return rt_elf_word(image, c, tag) && rt_elf_word(image, c, value) && *tag != DT_NULL;
}

/* DT_STRTAB. */
static struct rt_bytes dynamic_strings(const struct rt_image *image)
{
	struct rt_cursor c = rt_cursor_make(dynamic_bytes(image), image->big_endian);
	uint64_t tag, value, at = 0, size = UINT64_MAX;

	while (next_tag(image, &c, &tag, &value)) {
		at = tag == DT_STRTAB ? value : at;
		size = tag == DT_STRSZ ? value : size;
	}
	return at ? rt_image_at(image, (struct rt_elfaddr){ at }, size) : (struct rt_bytes){ 0 };
}

/* The strings of one tag, in order. */
static struct rt_error *strings_of(const struct rt_image *image, uint64_t wanted, const char ***ret, size_t *ret_count)
{
	struct rt_cursor c = rt_cursor_make(dynamic_bytes(image), image->big_endian);
	struct rt_bytes strings = dynamic_strings(image);
	RT_VEC(const char *) names = { 0 };
	uint64_t tag, value;
	const char *name;

	while (next_tag(image, &c, &tag, &value)) {
		if (tag != wanted || !rt_elf_string(strings, value, &name))
			continue;
		if (!rt_vec_push(&names, name)) {
			rt_vec_deinit(&names);
			return rt_error_nomem();
		}
	}
	*ret = names.data;
	*ret_count = names.len;
	return NULL;
}

struct rt_error *rt_image_needed(const struct rt_image *image, const char ***ret, size_t *ret_count)
{
	return strings_of(image, DT_NEEDED, ret, ret_count);
}

struct rt_error *rt_image_search_path(const struct rt_image *image, const char **ret)
{
	static const uint64_t tags[] = { DT_RUNPATH, DT_RPATH };
	const char *found = NULL;

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]) && !found; i++) {
		_cleanup_free_ const char **texts = NULL;
		size_t count = 0;

		RT_TRY(strings_of(image, tags[i], &texts, &count));
		found = count ? texts[0] : NULL;
	}
	*ret = found;
	return NULL;
}

bool rt_image_has_name(const struct rt_image *image, const char *name)
{
	struct rt_bytes strings = dynamic_strings(image);

	/* with the zero behind it */
	return strings.size && memmem(strings.data, strings.size, name, strlen(name) + 1);
}
