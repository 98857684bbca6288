/* SPDX-License-Identifier: GPL-2.0-only */
#include "recording/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "perfdata/writer.h"
#include "wire/event.h"

enum {
	TYPES_MAX = 1 << 16,
	ATTRS_MAX = 1 << 10,
	BLOB_MAX = 1 << 28,
	KERNEL_MAX = 1 << 22, /* distinct kernel addresses whose names are kept */
};

static const char *const kind_names[] = {
	[RT_WIRE_STACK] = "stack", [RT_WIRE_TYPE] = "type",     [RT_WIRE_POINT] = "point", [RT_WIRE_MODULE] = "module",
	[RT_WIRE_MAP] = "map",     [RT_WIRE_UNMAP] = "unmap",   [RT_WIRE_FORK] = "fork",   [RT_WIRE_EXEC] = "exec",
	[RT_WIRE_EXIT] = "exit",   [RT_WIRE_THREAD] = "thread", [RT_WIRE_LOSS] = "loss",   [RT_WIRE_MARK] = "mark",
	[RT_WIRE_HELD] = "held",   [RT_WIRE_COUNT] = "count",   [RT_WIRE_HITS] = "hits",   [RT_WIRE_BLOB] = "blob",
	[RT_WIRE_PART] = "part",   [RT_WIRE_SAMPLE] = "sample", [RT_WIRE_TALLY] = "tally", [RT_WIRE_SITE] = "site",
	[RT_WIRE_CLASS] = "class", [RT_WIRE_STAND] = "stand",
};

static struct rt_error *need_ours(struct rt_inventory *s)
{
	return s->ours ? NULL : rt_reftrace_events_create(&s->ours);
}

static struct rt_error *meta_event(struct rt_inventory *s, uint8_t kind)
{
	const char *name = kind < sizeof(kind_names) / sizeof(*kind_names) ? kind_names[kind] : NULL;
	unsigned index;

	if (s->meta[kind])
		return NULL;
	RT_TRY(need_ours(s));
	RT_TRY(rt_reftrace_events_meta(s->ours, name ? name : "other", &index));
	s->meta[kind] = index + 1;
	return NULL;
}

static struct rt_error *take_type(struct rt_inventory *s, const struct rt_wire_type *type)
{
	if (type->id >= TYPES_MAX)
		return rt_error_new(RT_E_LIMIT, "type %u: more than %d types", type->id, TYPES_MAX);
	if (!rt_vec_extend(&s->types, type->id + 1))
		return rt_error_nomem();
	free(s->types.data[type->id]);
	s->types.data[type->id] = strdup(type->name);
	return s->types.data[type->id] ? NULL : rt_error_nomem();
}

static struct rt_error *op_event(struct rt_inventory *s, struct rt_inventory_point *point, uint8_t op)
{
	const char *type = point->type < s->types.len ? s->types.data[point->type] : NULL;
	unsigned index;

	if (op == RT_OP_NONE || op >= RT_OP_NR || point->event[op])
		return NULL;
	RT_TRY(need_ours(s));
	RT_TRY(rt_reftrace_events_op(s->ours, type ? type : "object", op, &index));
	point->event[op] = index + 1;
	return NULL;
}

static struct rt_inventory_point *find_point(const struct rt_inventory *s, uint32_t id)
{
	const uint64_t *slot = rt_map_get(&s->point_by_id, rt_key_make(id, 0));

	return slot ? &s->points.data[*slot - 1] : NULL;
}

static struct rt_error *take_point(struct rt_inventory *s, const struct rt_wire_point *point)
{
	uint64_t *slot = rt_map_put(&s->point_by_id, rt_key_make(point->id, 0), NULL);

	if (!slot)
		return rt_error_nomem();
	if (!*slot) {
		/* without memory nobody asks for it: the conversion ends */
		if (!rt_vec_add(&s->points))
			return rt_error_nomem();
		*slot = s->points.len;
	}
	s->points.data[*slot - 1].type = point->type;
	return op_event(s, &s->points.data[*slot - 1], point->head.op);
}

/* A point may see other operations than its own (a slot that is swapped). */
static struct rt_error *take_event(struct rt_inventory *s, const struct rt_wire_event *event)
{
	struct rt_inventory_point *point = find_point(s, event->point);

	s->events++;
	s->has_wire = true;
	return point ? op_event(s, point, event->head.op) : NULL;
}

bool rt_inventory_op_event(const struct rt_inventory *s, uint32_t point, uint8_t op, unsigned *ret)
{
	const struct rt_inventory_point *p = find_point(s, point);

	if (!p || op >= RT_OP_NR || !p->event[op])
		return false;
	*ret = p->event[op] - 1;
	return true;
}

/* Further records of one ATTR add ids to it. */
static struct rt_error *take_attr(struct rt_inventory *s, const struct rt_wire_attr *attr)
{
	const uint8_t *ids = attr->data + attr->attr_bytes;
	struct rt_perf_event *event;
	uint64_t *more;

	if (!attr->id || attr->id > ATTRS_MAX)
		return rt_error_new(RT_E_LIMIT, "event %u: more than %d events", attr->id, ATTRS_MAX);
	if (!rt_vec_extend(&s->attrs, attr->id))
		return rt_error_nomem();
	event = &s->attrs.data[attr->id - 1];
	if (!event->name) {
		size_t size = attr->attr_bytes < sizeof(event->attr) ? attr->attr_bytes : sizeof(event->attr);

		memcpy(&event->attr, attr->data, size);
		event->name = strdup((const char *)ids + 8ull * attr->ids);
		if (!event->name)
			return rt_error_nomem();
	}
	more = realloc(event->ids, (event->id_count + attr->ids + 1) * sizeof(*more));
	if (!more)
		return rt_error_nomem();
	event->ids = more;
	memcpy(event->ids + event->id_count, ids, 8ull * attr->ids);
	event->id_count += attr->ids;
	s->has_perf = true;
	return s->decoder ? rt_perf_decoder_events(s->decoder, s->attrs.data, s->attrs.len)
			  : rt_perf_decoder_create(s->attrs.data, s->attrs.len, false, &s->decoder);
}

static struct rt_error *take_kernel(struct rt_inventory *s, uint64_t ip)
{
	if (!(ip >> 63) || ip >= (uint64_t)PERF_CONTEXT_MAX || s->kernel.len >= KERNEL_MAX)
		return NULL;
	return rt_map_put(&s->kernel, rt_key_make(ip, 0), NULL) ? NULL : rt_error_nomem();
}

static struct rt_error *add_build_id(struct rt_inventory *s, const char *path, const uint8_t *id, size_t size)
{
	struct rt_perf_header *h = &s->header;
	struct rt_perf_build_id *more;
	bool made;

	/* perf keeps 20 bytes; a longer id would be another one there */
	if (!size || size > sizeof(more->id))
		return NULL;
	if (!rt_map_put(&s->paths, rt_key_text(path), &made))
		return rt_error_nomem();
	if (!made)
		return NULL;
	more = realloc(h->build_ids, (h->build_id_count + 1) * sizeof(*more));
	if (!more)
		return rt_error_nomem();
	h->build_ids = more;
	more += h->build_id_count;
	*more = (struct rt_perf_build_id){ .pid = UINT32_MAX, .misc = RT_PERF_USER, .size = (uint8_t)size };
	memcpy(more->id, id, size);
	more->path = strdup(path);
	if (!more->path)
		return rt_error_nomem();
	h->build_id_count++;
	return NULL;
}

static struct rt_error *take_perf(struct rt_inventory *s, const struct rt_wire_perf *wire)
{
	struct rt_bytes bytes = { wire->data, wire->head.size - sizeof(*wire) };
	struct rt_perf_record r;

	if (!s->decoder)
		return rt_error_new(RT_E_FORMAT, "a perf record comes before its event");
	RT_TRY(rt_perf_decode(s->decoder, bytes, &r));
	switch (r.type) {
	case RT_PERF_SAMPLE:
		s->samples++;
		RT_TRY(take_kernel(s, r.sample.ip));
		for (uint64_t i = 0; i < r.sample.chain_count; i++)
			RT_TRY(take_kernel(s, r.sample.chain[i]));
		return NULL;
	case RT_PERF_LOST:
	case RT_PERF_LOST_SAMPLES:
		s->lost += r.lost.count;
		return NULL;
	case RT_PERF_MMAP2:
		return r.mmap.pid == UINT32_MAX
			       ? NULL
			       : add_build_id(s, r.mmap.filename, r.mmap.build_id, r.mmap.build_id_size);
	default:
		return NULL;
	}
}

static struct rt_error *keep_blob(struct rt_map *by_id, struct rt_perf_blob **blobs, size_t *count, uint32_t id,
				  struct rt_bytes bytes)
{
	uint64_t *slot = rt_map_put(by_id, rt_key_make(id, 0), NULL);
	uint8_t *copy = malloc(bytes.size + 1);
	struct rt_perf_blob *more;

	if (!slot || !copy) {
		free(copy);
		return rt_error_nomem();
	}
	memcpy(copy, bytes.data, bytes.size);
	if (!*slot) {
		more = realloc(*blobs, (*count + 1) * sizeof(*more));
		if (!more) {
			free(copy);
			return rt_error_nomem();
		}
		*blobs = more;
		more[*count] = (struct rt_perf_blob){ .id = id };
		*slot = ++*count;
	}
	free((void *)(uintptr_t)(*blobs)[*slot - 1].bytes.data);
	(*blobs)[*slot - 1].bytes = rt_bytes_make(copy, bytes.size);
	return NULL;
}

static struct rt_error *take_blob(struct rt_inventory *s, const struct rt_wire_blob *part)
{
	struct rt_perf_header *h = &s->header;
	struct rt_bytes bytes;
	bool torn, whole = rt_blob_join(&s->join, part, BLOB_MAX, &torn);

	s->torn |= torn;
	if (!whole)
		return NULL;
	bytes = rt_bytes_make(s->join.data, s->join.size);
	switch (s->join.what) {
	case RT_BLOB_BPF_PROG:
		s->has_perf = true;
		if (!rt_perf_bpf_entry_is_whole(bytes)) {
			s->bpf_lost++;
			return rt_vec_push(&s->bpf_cut, s->join.id) ? NULL : rt_error_nomem();
		}
		return keep_blob(&s->bpf_by_id, &h->bpf_progs, &h->bpf_prog_count, s->join.id, bytes);
	case RT_BLOB_BTF:
		return keep_blob(&s->btf_by_id, &h->btfs, &h->btf_count, s->join.id, bytes);
	case RT_BLOB_TRACING_DATA: {
		uint8_t *copy = malloc(bytes.size + 1);

		if (!copy)
			return rt_error_nomem();
		memcpy(copy, bytes.data, bytes.size);
		free((void *)(uintptr_t)h->tracing_data.data);
		h->tracing_data = rt_bytes_make(copy, bytes.size);
		return NULL;
	}
	case RT_BLOB_HOST:
		return rt_inventory_host(h, bytes);
	case RT_BLOB_BPF_LOST:
		s->bpf_lost++;
		return NULL;
	default:
		return NULL;
	}
}

struct rt_error *rt_inventory_record(struct rt_inventory *s, const struct rt_wire_head *record)
{
	const void *r = record;

	if (record->time_ns) {
		if (!s->header.first_ns || record->time_ns < s->header.first_ns)
			s->header.first_ns = record->time_ns;
		if (record->time_ns > s->header.last_ns)
			s->header.last_ns = record->time_ns;
	}
	switch (record->kind) {
	case RT_WIRE_EVENT:
		return take_event(s, r);
	case RT_WIRE_ATTR:
		return take_attr(s, r);
	case RT_WIRE_PERF:
		return take_perf(s, r);
	case RT_WIRE_BLOB:
		RT_TRY(take_blob(s, r));
		break;
	case RT_WIRE_TYPE:
		s->has_wire = true;
		RT_TRY(take_type(s, r));
		break;
	case RT_WIRE_POINT:
		RT_TRY(take_point(s, r));
		break;
	case RT_WIRE_MODULE: {
		const struct rt_wire_module *module = r;

		if (!module->content_hash)
			RT_TRY(add_build_id(s, module->path, module->build_id, module->build_id_size));
		break;
	}
	case RT_WIRE_LOSS: {
		const struct rt_wire_loss *loss = r;

		if (loss->cause == RT_LOSS_RING)
			s->lost += loss->value ? loss->value : 1;
		break;
	}
	default:
		break;
	}
	return meta_event(s, record->kind);
}

static void free_blobs(struct rt_perf_blob *blobs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((void *)(uintptr_t)blobs[i].bytes.data);
	free(blobs);
}

static void free_header(struct rt_perf_header *h)
{
	free(h->hostname);
	free(h->osrelease);
	free(h->version);
	free(h->arch);
	free(h->cpudesc);
	free(h->cpuid);
	for (size_t i = 0; i < h->command_count; i++)
		free(h->command[i]);
	free(h->command);
	for (size_t i = 0; i < h->build_id_count; i++)
		free(h->build_ids[i].path);
	free(h->build_ids);
	free_blobs(h->bpf_progs, h->bpf_prog_count);
	free_blobs(h->btfs, h->btf_count);
	free((void *)(uintptr_t)h->tracing_data.data);
}

void rt_inventory_deinit(struct rt_inventory *s)
{
	for (size_t i = 0; i < s->attrs.len; i++) {
		free(s->attrs.data[i].name);
		free(s->attrs.data[i].ids);
	}
	for (size_t i = 0; i < s->types.len; i++)
		free(s->types.data[i]);
	rt_vec_deinit(&s->attrs);
	rt_vec_deinit(&s->types);
	rt_vec_deinit(&s->points);
	rt_map_deinit(&s->point_by_id);
	rt_reftrace_events_destroy(s->ours);
	rt_perf_decoder_destroy(s->decoder);
	free_header(&s->header);
	rt_vec_deinit(&s->bpf_cut);
	rt_blob_join_deinit(&s->join);
	rt_map_deinit(&s->bpf_by_id);
	rt_map_deinit(&s->btf_by_id);
	rt_map_deinit(&s->paths);
	rt_map_deinit(&s->kernel);
	*s = (struct rt_inventory){ 0 };
}
