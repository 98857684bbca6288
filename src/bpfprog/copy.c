// SPDX-License-Identifier: GPL-2.0-only
#include "bpfprog/copy.h"

void rt_bpf_copy_destroy(struct rt_bpf_copy *copy)
{
	if (!copy)
		return;
	for (size_t i = 0; i < RT_ARRAY_NR; i++)
		free(copy->array[i].data);
	rt_vec_deinit(&copy->functions);
	rt_vec_deinit(&copy->maps);
	free(copy);
}

static struct rt_bpf_copy *find(const struct rt_bpf_copies *copies, uint32_t id)
{
	uint64_t *value = rt_map_get(&copies->by_id, rt_key_make(id, 0));

	return value ? (struct rt_bpf_copy *)(uintptr_t)*value : NULL;
}

static uint64_t bytes_of(const struct rt_bpf_copy *copy)
{
	uint64_t bytes = sizeof(*copy) + copy->functions.cap * sizeof(copy->functions.data[0]) +
			 copy->maps.cap * sizeof(copy->maps.data[0]);

	for (size_t i = 0; i < RT_ARRAY_NR; i++)
		bytes += copy->array[i].size;
	return bytes;
}

struct rt_bpf_copy *rt_bpf_copies_end(struct rt_bpf_copies *copies, uint32_t id)
{
	struct rt_bpf_copy *copy = find(copies, id);
	uint64_t bytes;

	if (!copy)
		return NULL;
	rt_map_remove(&copies->by_id, rt_key_make(id, 0), NULL);
	bytes = bytes_of(copy);
	copies->bytes -= bytes < copies->bytes ? bytes : copies->bytes;
	return copy;
}

void rt_bpf_copies_deinit(struct rt_bpf_copies *copies)
{
	size_t pos = 0;

	for (struct rt_map_slot *s; (s = rt_map_next(&copies->by_id, &pos));)
		rt_bpf_copy_destroy((struct rt_bpf_copy *)(uintptr_t)s->value);
	rt_map_deinit(&copies->by_id);
	*copies = (struct rt_bpf_copies){ 0 };
}

static void take_start(struct rt_bpf_copies *copies, const struct rt_load_start *start)
{
	struct rt_bpf_copy *copy;
	uint64_t *value;

	/* an id comes back only when its program is gone: then the old load lost its end */
	rt_bpf_copy_destroy(rt_bpf_copies_end(copies, start->head.id));
	copy = calloc(1, sizeof(*copy));
	value = copy ? rt_map_put(&copies->by_id, rt_key_make(start->head.id, 0), NULL) : NULL;
	if (!value) {
		free(copy);
		return;
	}
	copy->start = *start;
	copies->bytes += sizeof(*copy);
	*value = (uint64_t)(uintptr_t)copy;
}

/* Room for size bytes in all. */
static bool grow(struct rt_bpf_copies *copies, struct rt_bpf_buffer *b, uint64_t size)
{
	uint8_t *data;

	if (size <= b->size)
		return true;
	if (size > RT_BPF_COPY_MAX || copies->bytes + (size - b->size) > RT_BPF_COPIES_MAX)
		return false;
	data = realloc(b->data, size);
	if (!data)
		return false;
	copies->bytes += size - b->size;
	b->data = data;
	b->size = (uint32_t)size;
	return true;
}

static void append(struct rt_bpf_copies *copies, struct rt_bpf_copy *copy, const struct rt_load_part *part)
{
	struct rt_bpf_buffer *b = &copy->array[part->array];
	bool jit = part->array == RT_ARRAY_JIT;
	uint64_t total;

	if (jit && part->offset == 0) {
		if (copy->jit_at != b->have)
			copy->lost |= 1u << RT_ARRAY_JIT;
		copy->jit_function = part->index;
		copy->jit_at = b->have;
	}
	/* parts of one array follow each other: what does not is the sign of one that is missing */
	if (part->offset + (jit ? copy->jit_at : 0) != b->have || (jit && part->index != copy->jit_function)) {
		copy->lost |= 1u << part->array;
		return;
	}
	total = (uint64_t)part->total + (b->have - part->offset);
	if (part->bytes > part->total - part->offset || !grow(copies, b, total)) {
		copy->lost |= 1u << part->array;
		return;
	}
	memcpy(b->data + b->have, part->data, part->bytes);
	b->have += part->bytes;
	if (jit && part->offset + part->bytes == part->total)
		copy->jit_at = b->have;
}

static void take_part(struct rt_bpf_copies *copies, const struct rt_load_part *part, size_t size)
{
	struct rt_bpf_copy *copy = find(copies, part->head.id);
	uint64_t before;
	bool kept = true;

	if (!copy || part->array >= RT_ARRAY_NR || part->offset > part->total || part->bytes > size - sizeof(*part))
		return;
	if (part->fault) {
		copy->lost |= 1u << part->array;
		return;
	}
	before = bytes_of(copy);
	switch (part->array) {
	case RT_ARRAY_FUNCTIONS: {
		struct rt_load_function f;

		if (part->bytes == sizeof(f) && part->index == copy->functions.len) {
			memcpy(&f, part->data, sizeof(f));
			kept = rt_vec_push(&copy->functions, f);
		} else {
			kept = false;
		}
		copies->bytes += bytes_of(copy) - before;
		break;
	}
	case RT_ARRAY_MAPS: {
		struct rt_load_map m;

		if (part->bytes == sizeof(m) && part->index == copy->maps.len) {
			memcpy(&m, part->data, sizeof(m));
			kept = rt_vec_push(&copy->maps, m);
		} else {
			kept = false;
		}
		copies->bytes += bytes_of(copy) - before;
		break;
	}
	default:
		append(copies, copy, part);
	}
	if (!kept)
		copy->lost |= 1u << part->array;
}

/* What did not come, beside what the program in the kernel said. */
static void check(struct rt_bpf_copy *c)
{
	const struct rt_load_start *s = &c->start;
	uint64_t want[RT_ARRAY_NR] = { 0 };

	want[RT_ARRAY_XLATED] = (uint64_t)s->insns * 8;
	want[RT_ARRAY_FUNC_INFO] = (uint64_t)s->func_infos * 8;
	want[RT_ARRAY_LINE_INFO] = (uint64_t)s->line_infos * 16;
	if (s->flags & RT_LOAD_JITED_LINES)
		want[RT_ARRAY_JITED_LINE] = (uint64_t)s->line_infos * 8;
	want[RT_ARRAY_JIT] = s->functions ? 0 : s->flags & RT_LOAD_JITED ? s->jited_bytes : 0;
	for (size_t i = 0; i < c->functions.len; i++)
		want[RT_ARRAY_JIT] += c->functions.data[i].bytes;
	/* BTF is sent with one program only of those that share it */
	want[RT_ARRAY_BTF] = c->array[RT_ARRAY_BTF].have ? s->btf_bytes : 0;
	for (uint32_t i = 0; i < RT_ARRAY_NR; i++) {
		if (c->array[i].have != want[i])
			c->lost |= 1u << i;
	}
	if (c->functions.len != s->functions)
		c->lost |= 1u << RT_ARRAY_FUNCTIONS | 1u << RT_ARRAY_JIT;
	if (c->maps.len != s->maps)
		c->lost |= 1u << RT_ARRAY_MAPS;
}

void rt_bpf_copies_take(struct rt_bpf_copies *copies, const void *record, size_t size, struct rt_bpf_copy **ret)
{
	struct rt_bpf_copy *copy = NULL;
	struct rt_load_head head;

	*ret = NULL;
	if (size < sizeof(head))
		return;
	memcpy(&head, record, sizeof(head));
	if (head.kind == RT_LOAD_START && size >= sizeof(struct rt_load_start)) {
		take_start(copies, record);
	} else if (head.kind == RT_LOAD_PART && size >= sizeof(struct rt_load_part)) {
		take_part(copies, record, size);
	} else if (head.kind == RT_LOAD_END && size >= sizeof(struct rt_load_end)) {
		const struct rt_load_end *end = record;

		copy = rt_bpf_copies_end(copies, head.id);
		if (copy) {
			copy->lost |= end->lost;
			check(copy);
		}
		*ret = copy;
	}
}
