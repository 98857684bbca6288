/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What perf's entry has no room for, as a blob: magic, version, program id, tag,
 * then items { u32 type, u32 size, payload }, all little-endian. Texts have no
 * NUL: they end with their payload.
 */
#include "base/sink.h"
#include "bpfimage/parts.h"

enum { MAGIC = 0x58425452, VERSION = 1 };

enum item {
	ITEM_LOADER = 1, /* u32 pid, text */
	ITEM_TIMES = 2,  /* u64 load, u64 unload */
	ITEM_MAP = 3,    /* u32 id, text */
	ITEM_ATTACHED = 4,
	ITEM_LOST = 5,
	ITEM_CALL_BASE = 6, /* u64 */
	ITEM_SYMBOL = 7,    /* u64 address, text */
};

static void put(struct rt_sink *sink, uint64_t value, unsigned bytes)
{
	uint8_t raw[8];

	for (unsigned i = 0; i < bytes; i++)
		raw[i] = (uint8_t)(value >> 8 * i);
	rt_sink_write(sink, raw, bytes);
}

/* An item of a number (bytes may be 0) and a text (may be NULL). */
static void put_item(struct rt_sink *sink, enum item item, uint64_t number, unsigned bytes, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	put(sink, item, 4);
	put(sink, bytes + len, 4);
	put(sink, number, bytes);
	rt_sink_write(sink, text ?: "", len);
}

static void put_all(struct rt_sink *sink, const struct rt_bpf_image *image)
{
	put(sink, MAGIC, 4);
	put(sink, VERSION, 4);
	put(sink, image->info.id, 4);
	rt_sink_write(sink, image->info.tag, sizeof(image->info.tag));
	if (image->loader || image->loader_pid)
		put_item(sink, ITEM_LOADER, image->loader_pid, 4, image->loader);
	if (image->load_ns || image->unload_ns) {
		put(sink, ITEM_TIMES, 4);
		put(sink, 16, 4);
		put(sink, image->load_ns, 8);
		put(sink, image->unload_ns, 8);
	}
	for (size_t i = 0; i < image->map_count; i++)
		put_item(sink, ITEM_MAP, image->map_ids[i], 4, image->map_names[i]);
	for (size_t i = 0; i < image->attached_count; i++)
		put_item(sink, ITEM_ATTACHED, 0, 0, image->attached[i]);
	if (image->lost)
		put_item(sink, ITEM_LOST, 0, 0, image->lost);
	if (image->call_base)
		put_item(sink, ITEM_CALL_BASE, image->call_base, 8, NULL);
	for (size_t i = 0; i < image->symbol_count; i++)
		put_item(sink, ITEM_SYMBOL, image->symbols[i].address, 8, image->symbols[i].name);
}

struct rt_error *rt_bpf_extra_encode(const struct rt_bpf_image *image, uint8_t **ret, size_t *ret_size)
{
	_cleanup_(rt_sink_deinit) struct rt_sink sink;

	rt_sink_init_memory(&sink);
	put_all(&sink, image);
	RT_TRY(rt_sink_end(&sink));
	*ret_size = sink.len;
	*ret = (uint8_t *)rt_take(sink.buffer);
	return NULL;
}

static struct rt_error *read_head(struct rt_cursor *c, uint32_t *ret_id, uint8_t *ret_tag)
{
	uint32_t magic, version;
	struct rt_bytes tag;

	if (!rt_cursor_u32(c, &magic) || magic != MAGIC || !rt_cursor_u32(c, &version))
		return rt_error_new(RT_E_FORMAT, "this is no note about a bpf program");
	if (version != VERSION)
		return rt_error_new(RT_E_FORMAT, "note about a bpf program has version %u, not %u", version, VERSION);
	if (!rt_cursor_u32(c, ret_id) || !rt_cursor_bytes(c, 8, &tag))
		return rt_error_new(RT_E_TRUNCATED, "note about a bpf program ends in its head");
	memcpy(ret_tag, tag.data, 8);
	return NULL;
}

struct rt_error *rt_bpf_extra_about(struct rt_bytes bytes, uint32_t *ret_id, uint8_t *ret_tag)
{
	struct rt_cursor c = rt_cursor_make(bytes, false);
	uint32_t id = 0;
	uint8_t tag[8] = { 0 };

	RT_TRY(read_head(&c, &id, tag));
	*ret_id = id;
	memcpy(ret_tag, tag, sizeof(tag));
	return NULL;
}

static struct rt_error *take_text(struct rt_bpf_image *image, uint32_t item, uint64_t number, struct rt_cursor *c)
{
	_cleanup_free_ char *text = strndup((const char *)c->bytes.data + c->pos, rt_cursor_left(c));

	if (!text)
		return rt_error_nomem();
	switch (item) {
	case ITEM_LOADER:
		return rt_bpf_image_set_loader(image, (uint32_t)number, *text ? text : NULL);
	case ITEM_MAP:
		return rt_bpf_image_set_map_name(image, (uint32_t)number, text);
	case ITEM_ATTACHED:
		return rt_bpf_image_add_attached(image, text);
	case ITEM_LOST:
		return rt_bpf_image_add_lost(image, text);
	default:
		return rt_bpf_image_add_symbol(image, number, text);
	}
}

/* Items that we do not know, and those too short for what they are, are skipped. */
static struct rt_error *take_item(struct rt_bpf_image *image, uint32_t item, struct rt_bytes payload)
{
	struct rt_cursor c = rt_cursor_make(payload, false);
	uint64_t number = 0, second;
	uint32_t small = 0;

	if (item == ITEM_LOADER || item == ITEM_MAP) {
		if (!rt_cursor_u32(&c, &small))
			return NULL;
		number = small;
	} else if (item == ITEM_TIMES || item == ITEM_CALL_BASE || item == ITEM_SYMBOL) {
		if (!rt_cursor_u64(&c, &number))
			return NULL;
	}
	if (item == ITEM_TIMES) {
		if (!rt_cursor_u64(&c, &second))
			return NULL;
		image->load_ns = number;
		image->unload_ns = second;
		return NULL;
	}
	if (item == ITEM_CALL_BASE) {
		image->call_base = number;
		return NULL;
	}
	if (item < ITEM_LOADER || item > ITEM_SYMBOL)
		return NULL;
	return take_text(image, item, number, &c);
}

struct rt_error *rt_bpf_extra_decode(struct rt_bytes bytes, struct rt_bpf_image *image)
{
	struct rt_cursor c = rt_cursor_make(bytes, false);
	uint32_t id = 0, item, size;
	uint8_t tag[8] = { 0 };

	RT_TRY(read_head(&c, &id, tag));
	if (id != image->info.id || memcmp(tag, image->info.tag, sizeof(tag)) != 0)
		return rt_error_new(RT_E_FORMAT, "note about bpf program %u does not belong to program %u", id,
				    image->info.id);
	while (rt_cursor_left(&c)) {
		struct rt_bytes payload;

		if (!rt_cursor_u32(&c, &item) || !rt_cursor_u32(&c, &size) || !rt_cursor_bytes(&c, size, &payload))
			return rt_error_new(RT_E_TRUNCATED, "note about bpf program %u is cut after %zu bytes", id,
					    c.pos);
		RT_TRY(take_item(image, item, payload));
	}
	return NULL;
}
