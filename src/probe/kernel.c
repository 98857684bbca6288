/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/kernel.h"

#include <string.h>

enum { EXPORT_NAME_MAX = 512 };

static const struct {
	const char *start, *end, *why;
} closed[] = {
	{ "_sinittext", "_einittext", "it runs while the kernel starts, and its code is gone then (__init)" },
	{ "__noinstr_text_start", "__noinstr_text_end", "the kernel keeps probes out of it (noinstr)" },
	{ "__kprobes_text_start", "__kprobes_text_end", "the kernel keeps probes out of it (__kprobes)" },
	{ "__entry_text_start", "__entry_text_end", "the kernel keeps probes out of its entry code" },
};

struct rt_error *rt_kernel_init(const struct rt_symtab *symtab, const struct rt_btf *btf, struct rt_kernel *ret)
{
	const struct rt_symbol *text = rt_symtab_find(symtab, "_text");

	if (!text)
		return rt_error_new(RT_E_NOT_FOUND, "there is no symbol _text, which a kernel has");
	*ret = (struct rt_kernel){ .symtab = symtab, .btf = btf, .text = text->addr };
	return NULL;
}

bool rt_kernel_offset(const struct rt_kernel *kernel, const char *symbol, uint64_t *ret)
{
	const struct rt_symbol *s = rt_symtab_find(kernel->symtab, symbol);

	if (!s || s->addr.v < kernel->text.v)
		return false;
	*ret = s->addr.v - kernel->text.v;
	return true;
}

/* Name at an ELF address; NULL: none that ends. */
static const char *name_at(const struct rt_image *image, struct rt_elfaddr addr)
{
	struct rt_cursor c = rt_cursor_make(rt_image_at(image, addr, EXPORT_NAME_MAX), false);
	const char *name;

	return rt_cursor_string(&c, &name) ? name : NULL;
}

bool rt_kernel_is_of(const struct rt_kernel *kernel, const struct rt_image *image, size_t *ret_compared)
{
	static const char *const sections[] = { "__ksymtab", "__ksymtab_gpl" };
	uint64_t base = image->segment_count ? image->segments[0].start.v : 0, told;
	size_t same = 0, compared = 0;
	struct rt_elfaddr addr;
	struct rt_bytes bytes;

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		struct rt_cursor c;
		uint32_t value, name, space;

		if (!rt_image_section(image, sections[i], &bytes, &addr))
			continue;
		/* struct kernel_symbol: distances from the fields themselves, to what is exported, its name, its
		 * namespace */
		c = rt_cursor_make(bytes, image->big_endian);
		for (; rt_cursor_u32(&c, &value) && rt_cursor_u32(&c, &name) && rt_cursor_u32(&c, &space);
		     addr.v += 3 * sizeof(value)) {
			const char *text = name_at(image, (struct rt_elfaddr){ addr.v + 4 + (uint64_t)(int32_t)name });

			if (!text || !rt_kernel_offset(kernel, text, &told))
				continue;
			compared++;
			same += told == addr.v + (uint64_t)(int32_t)value - base;
		}
	}
	*ret_compared = compared;
	/* a few have namesakes that are not exported */
	return same >= compared - compared / 10;
}

static bool is_between(const struct rt_kernel *kernel, const char *start, const char *end, struct rt_elfaddr addr)
{
	const struct rt_symbol *s = rt_symtab_find(kernel->symtab, start), *e = rt_symtab_find(kernel->symtab, end);

	return s && e && addr.v >= s->addr.v && addr.v < e->addr.v;
}

const char *rt_kernel_refuses(const struct rt_kernel *kernel, struct rt_elfaddr addr)
{
	const struct rt_symbol *end = rt_symtab_find(kernel->symtab, "_etext");

	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		if (is_between(kernel, closed[i].start, closed[i].end, addr))
			return closed[i].why;
	if (addr.v < kernel->text.v || (end && addr.v >= end->addr.v))
		return "it is not in the kernel's own code";
	return NULL;
}

const char *rt_kernel_data(const struct rt_kernel *kernel, struct rt_elfaddr addr, uint64_t *ret)
{
	const struct rt_symbol *end = rt_symtab_find(kernel->symtab, "_end");

	if (is_between(kernel, "__per_cpu_start", "__per_cpu_end", addr) || addr.v < kernel->text.v)
		return "each CPU has its own of it, elsewhere";
	if (end && addr.v >= end->addr.v)
		return "it lies outside of the kernel's image";
	*ret = addr.v - kernel->text.v;
	return NULL;
}
