/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One record at a time, without allocating. With several events the id says whose record it is, and its place
 * depends on the event: each of the places that occur is tried, and counts when the event found there has it there.
 */
#include "perfdata/decoder.h"

#include <string.h>

/* Bits of sample_type that records other than samples carry behind them, in this order. */
static const uint64_t trailer_bits = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
				     PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

static int count_bits(uint64_t bits)
{
	return __builtin_popcountll(bits);
}

static struct rt_perf_place place_of(uint64_t type)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		return (struct rt_perf_place){ 0, 1 };
	if (!(type & PERF_SAMPLE_ID))
		return (struct rt_perf_place){ -1, -1 };
	return (struct rt_perf_place){ count_bits(type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
							  PERF_SAMPLE_ADDR)),
				       1 + count_bits(type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU)) };
}

static bool same_layout(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	return a->sample_type == b->sample_type && a->read_format == b->read_format &&
	       a->branch_sample_type == b->branch_sample_type && a->sample_regs_user == b->sample_regs_user &&
	       a->sample_regs_intr == b->sample_regs_intr;
}

/* Takes one more event into the tables. */
static struct rt_error *learn(struct rt_perf_decoder *d, const struct rt_perf_event *event, size_t index)
{
	struct rt_perf_place place = place_of(event->attr.sample_type);
	uint32_t number = 0;

	while (number < d->places.len && (d->places.data[number].from_body != place.from_body ||
					  d->places.data[number].from_end != place.from_end))
		number++;
	if (number == d->places.len && !rt_vec_push(&d->places, place))
		return rt_error_nomem();
	if (!rt_vec_push(&d->place_of, number))
		return rt_error_nomem();
	for (size_t i = 0; i < event->id_count; i++) {
		uint64_t *slot = rt_map_put(&d->by_id, rt_key_make(event->ids[i], 0), NULL);

		if (!slot)
			return rt_error_nomem();
		*slot = index;
	}
	return NULL;
}

struct rt_error *rt_perf_decoder_events(struct rt_perf_decoder *d, const struct rt_perf_event *events, size_t count)
{
	d->events = events;
	d->has_last = false;
	for (size_t i = d->place_of.len; i < count; i++) {
		RT_TRY(learn(d, &events[i], i));
		d->uniform = d->uniform && same_layout(&events[0].attr, &events[i].attr);
		d->count = i + 1;
	}
	return NULL;
}

struct rt_error *rt_perf_decoder_create(const struct rt_perf_event *events, size_t count, bool big_endian,
					struct rt_perf_decoder **ret)
{
	_cleanup_(rt_perf_decoder_destroyp) struct rt_perf_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return rt_error_nomem();
	d->big_endian = big_endian;
	d->uniform = true;
	d->words = malloc(RT_PERF_RECORD_WORDS * sizeof(*d->words));
	if (!d->words)
		return rt_error_nomem();
	RT_TRY(rt_perf_decoder_events(d, events, count));
	*ret = rt_take(d);
	return NULL;
}

void rt_perf_decoder_destroy(struct rt_perf_decoder *d)
{
	if (!d)
		return;
	rt_map_deinit(&d->by_id);
	rt_vec_deinit(&d->places);
	rt_vec_deinit(&d->place_of);
	free(d->words);
	free(d);
}

bool rt_perf_decoder_find(struct rt_perf_decoder *d, uint64_t id, unsigned *ret)
{
	uint64_t *slot;

	if (!d->has_last || d->last_id != id) {
		slot = rt_map_get(&d->by_id, rt_key_make(id, 0));
		if (!slot)
			return false;
		d->last_id = id;
		d->last_event = (unsigned)*slot;
		d->has_last = true;
	}
	*ret = d->last_event;
	return true;
}

/* The word of the record (header included) where place says that an id is; false: there is none. */
static bool id_at(struct rt_bytes record, bool big_endian, bool sample, struct rt_perf_place place, uint64_t *ret)
{
	struct rt_cursor c = rt_cursor_make(record, big_endian);
	size_t words = record.size / 8, from = (size_t)(sample ? place.from_body : place.from_end);

	if (place.from_body < 0 || from >= words)
		return false;
	return rt_cursor_skip(&c, sample ? 8 + 8 * from : record.size - 8 * from) && rt_cursor_u64(&c, ret);
}

/* Which event's record it is. Records that perf makes up have id 0: the first event's layout, as perf has it. */
static struct rt_error *choose(struct rt_perf_decoder *d, struct rt_bytes record, bool sample, unsigned *ret)
{
	bool asked = false;
	uint64_t id, first = 0; /* what stands at the first event's place */

	*ret = 0;
	if (d->count < 2)
		return NULL;
	for (uint32_t i = 0; i < d->places.len; i++) {
		unsigned event;

		if (!id_at(record, d->big_endian, sample, d->places.data[i], &id))
			continue;
		if (!asked)
			first = id;
		asked = true;
		if (rt_perf_decoder_find(d, id, &event) && d->place_of.data[event] == i) {
			*ret = event;
			return NULL;
		}
	}
	if (!sample || (asked && !first) || (!asked && d->uniform))
		return NULL;
	if (!asked)
		return rt_error_new(RT_E_FORMAT,
				    "sample without an id, but the events have samples of different layout");
	return rt_error_new(RT_E_FORMAT, "sample has the id %llu, which no event has", (unsigned long long)first);
}

/* What stands behind a record that is no sample; cuts it off bytes. */
static struct rt_error *take_trailer(const struct perf_event_attr *attr, bool big_endian, struct rt_bytes *bytes,
				     struct rt_perf_id *id)
{
	uint64_t type = attr->sample_type & trailer_bits;
	size_t size = 8 * (size_t)count_bits(type);
	struct rt_cursor c = rt_cursor_make(*bytes, big_endian);
	bool ok = true;

	if (!attr->sample_id_all || !size)
		return NULL;
	if (bytes->size < 8 + size)
		return rt_error_new(RT_E_FORMAT, "no room for the %zu bytes of sample id behind it", size);
	bytes->size -= size;
	c.pos = bytes->size;
	if (type & PERF_SAMPLE_TID)
		ok = ok && rt_cursor_u32(&c, &id->pid) && rt_cursor_u32(&c, &id->tid);
	if (type & PERF_SAMPLE_TIME)
		ok = ok && rt_cursor_u64(&c, &id->time_ns);
	if (type & PERF_SAMPLE_ID)
		ok = ok && rt_cursor_u64(&c, &id->id);
	if (type & PERF_SAMPLE_STREAM_ID)
		ok = ok && rt_cursor_u64(&c, &id->stream);
	if (type & PERF_SAMPLE_CPU)
		ok = ok && rt_cursor_u32(&c, &id->cpu) && rt_cursor_skip(&c, 4);
	if (type & PERF_SAMPLE_IDENTIFIER)
		ok = ok && rt_cursor_u64(&c, &id->id);
	id->has_time = type & PERF_SAMPLE_TIME;
	return ok ? NULL : rt_error_new(RT_E_FORMAT, "its sample id is cut");
}

/* A build-id, or the file's numbers: {u8 size, u8 0, u16 0, id[20] filled up with zeros} or {maj, min, ino,
 * generation}. */
enum { FILE_SIZE = 24, BUILD_ID_AT = 4, BUILD_ID_LONG = 16 };

/*
 * Is the flag for a build-id true? Where two recorders see a mapping, Linux (6.18) passes the flag on from the one that
 * asked for build-ids to the other one's record (perf_event_mmap_output() leaves it in the header that they share).
 */
static bool is_build_id(struct rt_bytes file)
{
	const uint8_t size = file.data[0];

	if (!size || size > FILE_SIZE - BUILD_ID_AT || file.data[1] || file.data[2] || file.data[3])
		return false;
	if (size >= BUILD_ID_LONG)
		return true;
	/* or the device's major number: then the minor one is small, and behind that size are inode and generation */
	for (size_t i = BUILD_ID_AT + (size_t)size; i < FILE_SIZE; i++) {
		if (file.data[i])
			return false;
	}
	return file.data[BUILD_ID_AT + 1] || file.data[BUILD_ID_AT + 2] || file.data[BUILD_ID_AT + 3];
}

static bool take_mmap(struct rt_cursor *c, struct rt_perf_record *r)
{
	struct rt_perf_mmap *m = &r->mmap;
	struct rt_bytes file;
	bool ok = rt_cursor_u32(c, &m->pid) && rt_cursor_u32(c, &m->tid) && rt_cursor_u64(c, &m->addr) &&
		  rt_cursor_u64(c, &m->len) && rt_cursor_u64(c, &m->pgoff);

	if (ok && r->type == RT_PERF_MMAP2) {
		if (r->misc & RT_PERF_MISC_MMAP_BUILD_ID && rt_bytes_sub(c->bytes, c->pos, FILE_SIZE, &file) &&
		    is_build_id(file)) {
			m->build_id_size = file.data[0];
			memcpy(m->build_id, file.data + BUILD_ID_AT, m->build_id_size);
			ok = rt_cursor_skip(c, FILE_SIZE);
		} else {
			ok = rt_cursor_u32(c, &m->maj) && rt_cursor_u32(c, &m->min) && rt_cursor_u64(c, &m->ino) &&
			     rt_cursor_u64(c, &m->ino_gen);
		}
		ok = ok && rt_cursor_u32(c, &m->prot) && rt_cursor_u32(c, &m->flags);
	}
	return ok && rt_cursor_string(c, &m->filename);
}

static bool take_task(struct rt_cursor *c, struct rt_perf_task *t)
{
	return rt_cursor_u32(c, &t->pid) && rt_cursor_u32(c, &t->ppid) && rt_cursor_u32(c, &t->tid) &&
	       rt_cursor_u32(c, &t->ptid) && rt_cursor_u64(c, &t->time_ns);
}

static bool take_ksymbol(struct rt_cursor *c, struct rt_perf_ksymbol *k)
{
	uint16_t flags;

	if (!rt_cursor_u64(c, &k->addr) || !rt_cursor_u32(c, &k->len) || !rt_cursor_u16(c, &k->type) ||
	    !rt_cursor_u16(c, &flags))
		return false;
	k->unregister = flags & 1;
	return rt_cursor_string(c, &k->name);
}

static bool take_bpf(struct rt_cursor *c, struct rt_perf_bpf_event *b)
{
	struct rt_bytes tag;

	if (!rt_cursor_u16(c, &b->type) || !rt_cursor_u16(c, &b->flags) || !rt_cursor_u32(c, &b->id) ||
	    !rt_cursor_bytes(c, sizeof(b->tag), &tag))
		return false;
	memcpy(b->tag, tag.data, sizeof(b->tag));
	return true;
}

static bool take_poke(struct rt_cursor *c, struct rt_perf_text_poke *p)
{
	uint16_t old_len, new_len;

	return rt_cursor_u64(c, &p->addr) && rt_cursor_u16(c, &old_len) && rt_cursor_u16(c, &new_len) &&
	       rt_cursor_bytes(c, old_len, &p->old) && rt_cursor_bytes(c, new_len, &p->new);
}

static bool take_comm(struct rt_cursor *c, struct rt_perf_record *r)
{
	r->comm.exec = r->misc & RT_PERF_MISC_COMM_EXEC;
	return rt_cursor_u32(c, &r->comm.pid) && rt_cursor_u32(c, &r->comm.tid) && rt_cursor_string(c, &r->comm.comm);
}

/* The fields of a kernel record other than samples. false: too short, or a string without end. */
static bool take_fields(struct rt_cursor *c, struct rt_perf_record *r)
{
	switch (r->type) {
	case RT_PERF_MMAP:
	case RT_PERF_MMAP2:
		return take_mmap(c, r);
	case RT_PERF_COMM:
		return take_comm(c, r);
	case RT_PERF_FORK:
	case RT_PERF_EXIT:
		return take_task(c, &r->task);
	case RT_PERF_LOST:
		return rt_cursor_u64(c, &r->lost.id) && rt_cursor_u64(c, &r->lost.count);
	case RT_PERF_LOST_SAMPLES:
		return rt_cursor_u64(c, &r->lost.count);
	case RT_PERF_KSYMBOL:
		return take_ksymbol(c, &r->ksymbol);
	case RT_PERF_BPF_EVENT:
		return take_bpf(c, &r->bpf);
	case RT_PERF_TEXT_POKE:
		return take_poke(c, &r->poke);
	default:
		return true;
	}
}

static struct rt_error *decode_kernel(struct rt_perf_decoder *d, struct rt_perf_record *r)
{
	struct rt_bytes body = r->bytes;
	struct rt_cursor c = rt_cursor_make(body, d->big_endian);

	if (r->type == RT_PERF_SAMPLE && !d->count)
		return rt_error_new(RT_E_FORMAT, "sample of an event that was not declared");
	if (!d->count) {
		c.pos = 8;
	} else {
		const struct perf_event_attr *attr;

		RT_TRY(choose(d, r->bytes, r->type == RT_PERF_SAMPLE, &r->event));
		attr = &d->events[r->event].attr;
		c.pos = 8;
		if (r->type == RT_PERF_SAMPLE)
			return rt_perf_sample_decode(d, attr, &c, r);
		RT_TRY(take_trailer(attr, d->big_endian, &c.bytes, &r->id));
	}
	if (!take_fields(&c, r))
		return rt_error_new(RT_E_FORMAT, "its %zu bytes do not hold its fields", r->bytes.size);
	return NULL;
}

struct rt_error *rt_perf_decode(struct rt_perf_decoder *d, struct rt_bytes bytes, struct rt_perf_record *ret)
{
	struct rt_cursor c = rt_cursor_make(bytes, d->big_endian);
	struct rt_perf_record r = { 0 };
	uint16_t size;

	if (!rt_cursor_u32(&c, &r.type) || !rt_cursor_u16(&c, &r.misc) || !rt_cursor_u16(&c, &size))
		return rt_error_new(RT_E_FORMAT, "a record header has 8 bytes, %zu are left", bytes.size);
	if (size < 8)
		return rt_error_new(RT_E_FORMAT, "a record says %u bytes, less than its header", size);
	if (!rt_bytes_sub(bytes, 0, size, &r.bytes))
		return rt_error_new(RT_E_FORMAT, "a record says %u bytes, %zu are left", size, bytes.size);
	d->words_used = 0;
	if (r.type < RT_PERF_USER_FIRST)
		RT_TRY(rt_error_wrap(decode_kernel(d, &r), "%s record", rt_perf_type_name(r.type)));
	*ret = r;
	return NULL;
}
