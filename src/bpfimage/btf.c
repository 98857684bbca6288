/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpfimage/btf.h"

#include "base/vec.h"

enum { BTF_MAGIC = 0xeb9f, BTF_VERSION = 1, HEADER_MIN = 24 };

struct rt_btf {
	uint8_t *copy;
	bool big_endian, whole;
	struct rt_bytes types, strings;
	RT_VEC(uint32_t) offsets; /* of type id in types: offsets.data[id - 1] */
};

/* Bytes behind the 12 that all types have. */
static bool tail_size(enum rt_btf_kind kind, uint16_t vlen, uint64_t *ret)
{
	static const uint8_t fixed[RT_BTF_KINDS] = {
		[RT_BTF_INT] = 4, [RT_BTF_ARRAY] = 12, [RT_BTF_VAR] = 4, [RT_BTF_DECL_TAG] = 4
	};
	static const uint8_t each[RT_BTF_KINDS] = {
		[RT_BTF_STRUCT] = 12,    [RT_BTF_UNION] = 12,   [RT_BTF_ENUM] = 8,
		[RT_BTF_FUNC_PROTO] = 8, [RT_BTF_DATASEC] = 12, [RT_BTF_ENUM64] = 12
	};

	if (kind <= RT_BTF_VOID || kind >= RT_BTF_KINDS)
		return false;
	*ret = fixed[kind] + (uint64_t)each[kind] * vlen;
	return true;
}

struct head {
	uint32_t name, info, size_or_type;
};

static bool read_head(struct rt_cursor *c, struct head *ret)
{
	return rt_cursor_u32(c, &ret->name) && rt_cursor_u32(c, &ret->info) && rt_cursor_u32(c, &ret->size_or_type);
}

static enum rt_btf_kind head_kind(const struct head *h)
{
	return (enum rt_btf_kind)(h->info >> 24 & 31);
}

static struct rt_error *index_types(struct rt_btf *btf)
{
	struct rt_cursor c = rt_cursor_make(btf->types, btf->big_endian);
	struct head h;
	uint64_t tail;

	while (rt_cursor_left(&c)) {
		size_t at = c.pos;

		if (!read_head(&c, &h) || !tail_size(head_kind(&h), (uint16_t)h.info, &tail) ||
		    !rt_cursor_skip(&c, tail))
			return NULL;
		if (!rt_vec_push(&btf->offsets, (uint32_t)at))
			return rt_error_nomem();
	}
	btf->whole = true;
	return NULL;
}

static struct rt_error *read_header(struct rt_btf *btf, struct rt_bytes all)
{
	struct rt_cursor c = rt_cursor_make(all, false);
	uint32_t len, type_off, type_len, str_off, str_len;
	uint16_t magic;
	uint8_t version, flags;
	struct rt_bytes body;

	if (all.size < HEADER_MIN)
		return rt_error_new(RT_E_FORMAT, "BTF of %zu bytes has no header", all.size);
	c.big_endian = all.data[0] == BTF_MAGIC >> 8;
	if (!rt_cursor_u16(&c, &magic) || magic != BTF_MAGIC)
		return rt_error_new(RT_E_FORMAT, "no BTF: it does not start with its magic number");
	if (!rt_cursor_u8(&c, &version) || !rt_cursor_u8(&c, &flags) || !rt_cursor_u32(&c, &len) ||
	    !rt_cursor_u32(&c, &type_off) || !rt_cursor_u32(&c, &type_len) || !rt_cursor_u32(&c, &str_off) ||
	    !rt_cursor_u32(&c, &str_len))
		return rt_error_new(RT_E_FORMAT, "BTF header is cut");
	if (version != BTF_VERSION)
		return rt_error_new(RT_E_FORMAT, "BTF version %u is not known", version);
	if (len < HEADER_MIN || len > all.size)
		return rt_error_new(RT_E_FORMAT, "BTF header says %u bytes of itself", len);
	body = rt_bytes_make(all.data + len, all.size - len);
	if (!rt_bytes_sub(body, type_off, type_len, &btf->types) ||
	    !rt_bytes_sub(body, str_off, str_len, &btf->strings))
		return rt_error_new(RT_E_FORMAT, "BTF header points behind its %zu bytes", all.size);
	btf->big_endian = c.big_endian;
	return NULL;
}

struct rt_error *rt_btf_create(struct rt_bytes bytes, struct rt_btf **ret)
{
	_cleanup_(rt_btf_destroyp) struct rt_btf *btf = calloc(1, sizeof(*btf));

	if (!btf)
		return rt_error_nomem();
	btf->copy = malloc(bytes.size ? bytes.size : 1);
	if (!btf->copy)
		return rt_error_nomem();
	if (bytes.size)
		memcpy(btf->copy, bytes.data, bytes.size);
	RT_TRY(read_header(btf, rt_bytes_make(btf->copy, bytes.size)));
	RT_TRY(index_types(btf));
	*ret = rt_take(btf);
	return NULL;
}

void rt_btf_destroy(struct rt_btf *btf)
{
	if (!btf)
		return;
	rt_vec_deinit(&btf->offsets);
	free(btf->copy);
	free(btf);
}

bool rt_btf_whole(const struct rt_btf *btf)
{
	return btf->whole;
}

const char *rt_btf_string(const struct rt_btf *btf, uint32_t offset)
{
	struct rt_cursor c = rt_cursor_make(btf->strings, btf->big_endian);
	const char *text;

	return rt_cursor_skip(&c, offset) && rt_cursor_string(&c, &text) ? text : NULL;
}

uint32_t rt_btf_count(const struct rt_btf *btf)
{
	return (uint32_t)btf->offsets.len;
}

/* Places the cursor behind the head of type id. */
static bool find_head(const struct rt_btf *btf, uint32_t id, struct rt_cursor *ret_tail, struct head *ret)
{
	if (!id || id > btf->offsets.len)
		return false;
	*ret_tail = rt_cursor_make(btf->types, btf->big_endian);
	return rt_cursor_skip(ret_tail, btf->offsets.data[id - 1]) && read_head(ret_tail, ret);
}

static bool has_size(enum rt_btf_kind kind)
{
	return kind == RT_BTF_INT || kind == RT_BTF_STRUCT || kind == RT_BTF_UNION || kind == RT_BTF_ENUM ||
	       kind == RT_BTF_ENUM64 || kind == RT_BTF_DATASEC || kind == RT_BTF_FLOAT;
}

bool rt_btf_type(const struct rt_btf *btf, uint32_t id, struct rt_btf_type *ret)
{
	struct rt_btf_type t = { .kind = RT_BTF_VOID, .name = "" };
	struct rt_cursor c;
	struct head h;
	uint32_t index_type, number;

	if (!id) {
		*ret = t;
		return true;
	}
	if (!find_head(btf, id, &c, &h))
		return false;
	t.kind = head_kind(&h);
	t.name = rt_btf_string(btf, h.name) ?: "";
	t.vlen = (uint16_t)h.info;
	t.kind_flag = h.info >> 31;
	if (has_size(t.kind))
		t.size = h.size_or_type;
	else if (t.kind != RT_BTF_ARRAY && t.kind != RT_BTF_FWD)
		t.type = h.size_or_type;
	if (t.kind == RT_BTF_ARRAY &&
	    (!rt_cursor_u32(&c, &t.type) || !rt_cursor_u32(&c, &index_type) || !rt_cursor_u32(&c, &t.elements)))
		return false;
	if (t.kind == RT_BTF_INT) {
		if (!rt_cursor_u32(&c, &number))
			return false;
		t.encoding = number >> 24 & 15;
	}
	*ret = t;
	return true;
}

static bool read_enumerator(const struct rt_btf *btf, const struct head *h, uint32_t low, uint32_t high,
			    struct rt_btf_member *ret)
{
	bool is_signed = h->info >> 31;

	if (head_kind(h) == RT_BTF_ENUM64)
		ret->value = (uint64_t)high << 32 | low;
	else
		ret->value = is_signed ? (uint64_t)(int64_t)(int32_t)low : low;
	return true;
}

bool rt_btf_member(const struct rt_btf *btf, uint32_t id, uint32_t index, struct rt_btf_member *ret)
{
	struct rt_btf_member m = { 0 };
	struct rt_btf_type var;
	struct rt_cursor c;
	struct head h;
	uint32_t v[3] = { 0 };
	uint64_t tail;
	enum rt_btf_kind kind;

	if (!find_head(btf, id, &c, &h) || index >= (uint16_t)h.info)
		return false;
	kind = head_kind(&h);
	/* what one more element adds to the tail is the element's size; kinds without elements have none */
	if (!tail_size(kind, 1, &tail) || kind == RT_BTF_INT || kind == RT_BTF_ARRAY || kind == RT_BTF_VAR ||
	    kind == RT_BTF_DECL_TAG || !tail || !rt_cursor_skip(&c, tail * index))
		return false;
	for (unsigned i = 0; i < tail / 4; i++) {
		if (!rt_cursor_u32(&c, &v[i]))
			return false;
	}
	m.name = rt_btf_string(btf, v[0]) ?: "";
	if (kind == RT_BTF_ENUM || kind == RT_BTF_ENUM64) {
		read_enumerator(btf, &h, v[1], v[2], &m);
	} else if (kind == RT_BTF_DATASEC) {
		m.type = v[0];
		m.offset = v[1];
		m.size = v[2];
		m.name = rt_btf_type(btf, v[0], &var) ? var.name : "";
	} else {
		m.type = v[1];
		m.offset = h.info >> 31 ? v[2] & 0xffffff : v[2];
		m.size = h.info >> 31 ? v[2] >> 24 : 0;
	}
	*ret = m;
	return true;
}

const char *rt_btf_function(const struct rt_btf *btf, uint32_t id)
{
	struct rt_btf_type t;

	return id && rt_btf_type(btf, id, &t) && t.kind == RT_BTF_FUNC && *t.name ? t.name : NULL;
}

uint32_t rt_btf_find(const struct rt_btf *btf, enum rt_btf_kind kind, const char *name)
{
	struct rt_btf_type t;

	for (uint32_t id = 1; id <= btf->offsets.len; id++) {
		if (rt_btf_type(btf, id, &t) && t.kind == kind && !strcmp(t.name, name))
			return id;
	}
	return 0;
}
