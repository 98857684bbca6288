/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An entry of perf's BPF_PROG_INFO feature. The pointers of the info are byte
 * offsets into its data; elements have the sizes that the info tells.
 */
#include "bpfimage/parts.h"

bool rt_bpf_array_at(const struct rt_bpf_array *array, uint32_t index, bool big_endian, struct rt_cursor *ret)
{
	struct rt_bytes element;

	if (index >= array->count ||
	    !rt_bytes_sub(array->bytes, (uint64_t)index * array->element, array->element, &element))
		return false;
	*ret = rt_cursor_make(element, big_endian);
	return true;
}

static struct rt_error *read_part(const struct bpf_prog_info *info, uint64_t arrays, struct rt_bytes data,
				  enum rt_bpf_part part, struct rt_bpf_array *ret)
{
	struct rt_bpf_array a = { .count = rt_bpf_part_count(info, part), .element = rt_bpf_part_element(info, part) };
	const char *name = rt_bpf_part_name(part);

	if (!(arrays >> part & 1) || !a.count) {
		*ret = (struct rt_bpf_array){ 0 };
		return NULL;
	}
	if (a.element < rt_bpf_part_least(part))
		return rt_error_new(RT_E_FORMAT, "bpf program %u: elements of %s have %u bytes, not %u or more",
				    info->id, name, a.element, rt_bpf_part_least(part));
	if (!rt_bytes_sub(data, rt_bpf_part_pointer(info, part), (uint64_t)a.count * a.element, &a.bytes))
		return rt_error_new(
			RT_E_FORMAT, "bpf program %u: %s of %u elements at %llu lies outside of its %zu bytes of data",
			info->id, name, a.count, (unsigned long long)rt_bpf_part_pointer(info, part), data.size);
	*ret = a;
	return NULL;
}

static struct rt_error *read_maps(struct rt_bpf_image *image, const struct rt_bpf_array *ids)
{
	struct rt_cursor c;

	if (ids->count > RT_BPF_MAPS_MAX)
		return rt_error_new(RT_E_LIMIT, "bpf program %u has %u maps", image->info.id, ids->count);
	for (uint32_t i = 0; i < ids->count; i++) {
		uint32_t id = 0;

		if (rt_bpf_array_at(ids, i, image->big_endian, &c) && rt_cursor_u32(&c, &id))
			RT_TRY(rt_bpf_image_set_map_name(image, id, ""));
	}
	return NULL;
}

static struct rt_error *copy_bytes(struct rt_bpf_storage *storage, struct rt_bytes from, struct rt_bytes *ret)
{
	uint8_t *copy;

	if (!from.size) {
		*ret = rt_bytes_make(NULL, 0);
		return NULL;
	}
	copy = rt_arena_alloc(&storage->arena, from.size);
	if (!copy)
		return rt_error_nomem();
	memcpy(copy, from.data, from.size);
	*ret = rt_bytes_make(copy, from.size);
	return NULL;
}

/* Damaged BTF costs the names, nothing else. */
static struct rt_error *open_btf(struct rt_bpf_image *image)
{
	struct rt_bpf_storage *storage = image->storage;
	struct rt_error *err;

	if (!image->btf.size)
		return NULL;
	err = rt_btf_create(image->btf, &storage->btf);
	if (!err || err->code == RT_E_NOMEM)
		return err;
	rt_error_free(err);
	return rt_bpf_image_add_lost(image, "its BTF is damaged: no names and lines");
}

static struct rt_error *fill(struct rt_bpf_image *image, uint64_t arrays, struct rt_bytes data)
{
	struct rt_bpf_array parts[RT_BPF_PARTS];

	for (int p = 0; p < RT_BPF_PARTS; p++) {
		RT_TRY(read_part(&image->info, arrays, data, p, &parts[p]));
		rt_bpf_part_set_pointer(&image->info, p, 0);
	}
	image->jit = parts[RT_BPF_JITED_INSNS].bytes;
	image->xlated = parts[RT_BPF_XLATED_INSNS].bytes;
	RT_TRY(open_btf(image));
	RT_TRY(read_maps(image, &parts[RT_BPF_MAP_IDS]));
	RT_TRY(rt_bpf_functions_make(image, parts));
	return rt_bpf_lines_make(image, parts);
}

struct rt_error *rt_bpf_image_decode(struct rt_bytes bytes, struct rt_bytes btf, bool big_endian,
				     struct rt_bpf_image **ret)
{
	_cleanup_(rt_bpf_image_destroyp) struct rt_bpf_image *image = calloc(1, sizeof(*image));
	struct rt_cursor c = rt_cursor_make(bytes, big_endian);
	struct rt_bytes info, data;
	uint32_t info_len, data_len;
	uint64_t arrays;

	if (!image)
		return rt_error_nomem();
	image->storage = calloc(1, sizeof(struct rt_bpf_storage));
	if (!image->storage)
		return rt_error_nomem();
	if (!rt_cursor_u32(&c, &info_len) || !rt_cursor_u32(&c, &data_len) || !rt_cursor_u64(&c, &arrays))
		return rt_error_new(RT_E_TRUNCATED, "entry of a bpf program has only %zu bytes", bytes.size);
	if (data_len > RT_BPF_DATA_MAX)
		return rt_error_new(RT_E_LIMIT, "entry of a bpf program says %u bytes of data", data_len);
	if (!rt_cursor_bytes(&c, info_len, &info) || !rt_cursor_bytes(&c, data_len, &data))
		return rt_error_new(RT_E_TRUNCATED, "entry of a bpf program says %u and %u bytes, %zu are left",
				    info_len, data_len, rt_cursor_left(&c));
	image->big_endian = big_endian;
	rt_bpf_info_read(info, big_endian, &image->info);
	RT_TRY(copy_bytes(image->storage, data, &data));
	RT_TRY(copy_bytes(image->storage, btf, &image->btf));
	RT_TRY(fill(image, arrays, data));
	*ret = rt_take(image);
	return NULL;
}
