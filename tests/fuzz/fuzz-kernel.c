/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any bytes as what a kernel tells of itself: the text of /proc/kallsyms up to the first byte 0, behind it 2 bytes with
 * the size of its BTF (little-endian), the BTF, and its image. Each question about its functions is answered within the
 * limits of what an answer can hold, or refused with a reason.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf/kallsyms.h"
#include "probe/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUNCTIONS = 10, PARAMETERS = 4, MEMBERS = 3, NAMES = 8, REGISTERS = 16 };

struct asked {
	const struct rt_kernel *kernel;
	struct rt_arena arena;
	const char *function;
	const char *members[MEMBERS];
	size_t member_count, left; /* parameters */
};

static void check(const char *why, const struct rt_datum *d)
{
	if (why) {
		if (!*why)
			abort();
		return;
	}
	if (d->where.deref_count > RT_LOCATION_DEREFS_MAX ||
	    (d->where.base == RT_LOCATION_REG && d->where.reg >= REGISTERS) || (d->where.is_value && d->where.offset) ||
	    (d->bits && d->bits + d->shift > d->size * 8))
		abort();
}

static void ask_way(struct asked *a, const char *name, const struct rt_trail *way, size_t count)
{
	struct rt_datum d;

	check(rt_kernel_datum(a->kernel, &a->arena, a->function, name, way, count, &d), &d);
}

/* The parameter, each member of any name by each way, and members and elements of that. */
static void ask_parameter(const char *name, void *arg)
{
	static const struct rt_trail elements[] = { { .kind = RT_TRAIL_INDEX, .index = 1 },
						    { .kind = RT_TRAIL_INDEX, .index = INT64_MAX },
						    { .kind = RT_TRAIL_INDEX, .index = INT64_MAX / 12 },
						    { .kind = RT_TRAIL_INDEX, .index = INT64_MIN } };
	struct asked *a = arg;

	if (!a->left)
		return;
	a->left--;
	ask_way(a, name, NULL, 0);
	for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++) {
		struct rt_trail way[] = { elements[i], { .kind = RT_TRAIL_DOT } };

		ask_way(a, name, way, 1);
		for (size_t n = 0; n < a->member_count; n++) {
			way[1].name = a->members[n];
			ask_way(a, name, way, 2);
		}
	}
	for (size_t i = 0; i < a->member_count * a->member_count; i++) {
		const char *first = a->members[i / a->member_count], *second = a->members[i % a->member_count];
		struct rt_trail way[] = { { .kind = i & 1 ? RT_TRAIL_DOT : RT_TRAIL_ARROW, .name = first },
					  { .kind = i & 2 ? RT_TRAIL_DOT : RT_TRAIL_ARROW, .name = second },
					  { .kind = RT_TRAIL_INDEX, .index = (int64_t)(i % 3) },
					  { .kind = i & 4 ? RT_TRAIL_DOT : RT_TRAIL_ARROW, .name = first } };

		for (size_t count = 1; count <= sizeof(way) / sizeof(*way); count++)
			ask_way(a, name, way, count);
		way[0] = elements[i % 2];
		ask_way(a, name, way, 3);
	}
}

static void find_members(const struct rt_btf *btf, struct asked *a)
{
	struct rt_btf_type t;
	struct rt_btf_member m;

	for (uint32_t id = 1; id <= rt_btf_count(btf); id++) {
		if (!rt_btf_type(btf, id, &t) || (t.kind != RT_BTF_STRUCT && t.kind != RT_BTF_UNION))
			continue;
		for (uint32_t i = 0; a->member_count < MEMBERS && rt_btf_member(btf, id, i, &m); i++)
			if (*m.name)
				a->members[a->member_count++] = m.name;
	}
}

static void ask_functions(const struct rt_kernel *kernel)
{
	struct asked a = { .kernel = kernel };
	uint32_t asked = 0;

	find_members(kernel->btf, &a);
	for (uint32_t id = 1; id <= rt_btf_count(kernel->btf) && asked < FUNCTIONS; id++) {
		struct rt_datum d;
		bool is_void;
		const char *why;

		a.function = rt_btf_function(kernel->btf, id);
		if (!a.function)
			continue;
		asked++;
		a.left = PARAMETERS;
		ask_way(&a, "no such parameter", NULL, 0);
		why = rt_kernel_parameters(kernel, a.function, ask_parameter, &a);
		if (why && a.left < PARAMETERS)
			abort();
		why = rt_kernel_returns(kernel, &a.arena, a.function, &d, &is_void);
		if (why || !is_void)
			check(why, &d);
	}
	rt_arena_deinit(&a.arena);
}

static void ask_symbols(const struct rt_kernel *kernel)
{
	const struct rt_symtab *symtab = kernel->symtab;
	uint64_t distance;

	for (size_t i = 0; i < symtab->count && i < NAMES; i++) {
		const struct rt_symbol *s = &symtab->symbols[i];

		/* a name that stands twice is found once */
		if (rt_kernel_offset(kernel, s->name, &distance)) {
			if (!rt_symtab_find(symtab, s->name) ||
			    rt_symtab_find(symtab, s->name)->addr.v != kernel->text.v + distance)
				abort();
		}
		if (!rt_kernel_data(kernel, s->addr, &distance) && distance != s->addr.v - kernel->text.v)
			abort();
		if (!rt_kernel_refuses(kernel, s->addr) && s->addr.v < kernel->text.v)
			abort();
	}
}

static void ask_image(const struct rt_kernel *kernel, struct rt_bytes bytes)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	struct rt_error *err = rt_image_from_bytes(bytes, "fuzz", &image);
	size_t compared;

	if (!err)
		rt_kernel_is_of(kernel, image, &compared);
	rt_error_free(err);
}

/* Lines lie in the text, one behind the other. */
static void check_kallsyms(struct rt_bytes text)
{
	const char *end = (const char *)text.data + text.size;
	size_t pos = 0, before = 0;
	struct rt_kallsym k;

	for (; rt_kallsyms_next(text, &pos, &k); before = pos) {
		if (pos <= before || pos > text.size || !k.len || k.len > 511 ||
		    k.name < (const char *)text.data + before || k.name + k.len > end || memchr(k.name, '\n', k.len) ||
		    (k.module && (k.module < k.name + k.len || k.module + k.module_len > end)))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(rt_symtab_destroyp) struct rt_symtab *symtab = NULL;
	_cleanup_(rt_btf_destroyp) struct rt_btf *btf = NULL;
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	struct rt_bytes text = rt_bytes_make(data, end ? (size_t)(end - data) : size), rest = { 0 };
	_cleanup_error_ struct rt_error *err = NULL;
	struct rt_kernel kernel;
	size_t btf_size = 0;

	check_kallsyms(text);
	if (rt_symtab_of_kallsyms(text, &symtab))
		abort();
	if (end && size - text.size >= 3) {
		btf_size = (size_t)end[1] | (size_t)end[2] << 8;
		rest = rt_bytes_make(end + 3, size - text.size - 3);
		btf_size = btf_size < rest.size ? btf_size : rest.size;
		rt_error_free(rt_btf_create(rt_bytes_make(rest.data, btf_size), &btf));
	}
	err = rt_kernel_init(symtab, btf, &kernel);
	if (err)
		return 0;
	ask_symbols(&kernel);
	if (btf)
		ask_functions(&kernel);
	if (rest.size > btf_size)
		ask_image(&kernel, rt_bytes_make(rest.data + btf_size, rest.size - btf_size));
	return 0;
}
