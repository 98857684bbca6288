/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The mirror of encode.c. The columns that have a byte for each event were counted before the first one is read; all
 * others are checked at each value. The numbers that a hostile payload names are checked against those that it gave.
 */
#include "capture/decode.h"

#include "capture/column.h"
#include "capture/model.h"
#include "event/stream.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum { BLOCK = 256 };

/* Where the columns that have a byte for each event go on. */
struct dense {
	const uint8_t *lane, *site_lo, *site_hi, *control, *time_lo, *time_hi;
};

struct rt_spool_decoder {
	struct rt_spool_model model;
	struct rt_spool_unpacker *unpacker;
	struct rt_bytes
		columns[RT_SPOOL_COLUMNS]; /* what is left of each; the dense ones are read by record and event */
	size_t record, records;            /* next one, and how many */
	size_t event, object; /* read of the columns that have something for each event, or each known object */
	size_t verbatim;      /* bytes read */
	bool failed;          /* the event at `record` cannot be read: it may have used up half of its values */
	struct rt_wire_event block[BLOCK];
};

static bool take_uleb(struct rt_bytes *column, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned i = 0, shift = 0; i < column->size && shift < 64; i++, shift += 7) {
		uint8_t byte = column->data[i];

		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			column->data += i + 1;
			column->size -= i + 1;
			*ret = value;
			return true;
		}
	}
	return false;
}

static bool take_u32(struct rt_bytes *column, uint32_t *ret)
{
	uint64_t value;

	if (!take_uleb(column, &value) || value > UINT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

static inline bool take_difference(struct rt_spool_decoder *r, enum rt_spool_column column, uint64_t *ret)
{
	uint64_t folded;

	if (!take_uleb(&r->columns[column], &folded))
		return false;
	*ret = rt_spool_unfold(folded);
	return true;
}

static __attribute__((noinline)) struct rt_spool_lane *switch_lane(struct rt_spool_decoder *r)
{
	struct rt_bytes *rare = &r->columns[RT_SPOOL_RARE];
	struct rt_spool_model *m = &r->model;
	uint32_t lane, thread, producer, pid, tid;

	if (!take_u32(rare, &lane) || lane > m->lanes)
		return NULL;
	if (!lane) {
		if (!take_u32(rare, &producer) || producer >= RT_SPOOL_LANES_MAX || !rt_spool_add_lane(m, producer))
			return NULL;
		lane = m->lanes;
	}
	if (!take_u32(rare, &thread) || thread > m->threads)
		return NULL;
	if (!thread) {
		if (!take_u32(rare, &pid) || !take_u32(rare, &tid) || !rt_spool_add_thread(m, pid, tid))
			return NULL;
		thread = m->threads;
	}
	m->lane[lane].thread = thread;
	return &m->lane[lane];
}

static inline struct rt_spool_lane *take_lane(struct rt_spool_decoder *r, uint8_t lane)
{
	if (lane > RT_SPOOL_LANE_LAST)
		return lane == RT_SPOOL_LANE_SWITCH ? switch_lane(r) : NULL;
	return lane <= r->model.lanes ? &r->model.lane[lane] : NULL;
}

/* Number of the new site; 0: damaged. */
static __attribute__((noinline)) uint16_t new_site(struct rt_spool_decoder *r)
{
	struct rt_bytes *rare = &r->columns[RT_SPOOL_RARE];
	struct rt_spool_site what = { 0 };
	uint32_t delta, flags, op;

	if (!take_u32(rare, &what.point) || !take_u32(rare, &what.stack) || !take_u32(rare, &delta) ||
	    !take_u32(rare, &flags) || !take_u32(rare, &op) || delta > UINT16_MAX || flags > UINT16_MAX ||
	    op > UINT8_MAX)
		return 0;
	what.delta = (int16_t)delta;
	what.flags = (uint16_t)flags;
	what.op = (uint8_t)op;
	return rt_spool_add_site(&r->model, what) ? (uint16_t)r->model.sites : 0;
}

/* Number of the event's site; 0: damaged. */
static inline uint16_t take_site(struct rt_spool_decoder *r, const struct dense *dense, size_t n,
				 struct rt_spool_thread *thread)
{
	uint16_t *next = &r->model.site[thread->site].next;
	uint16_t code = (uint16_t)(dense->site_lo[n] | dense->site_hi[n] << 8), number = *next;

	number = (uint16_t)rt_spool_choose(!code, number, code);
	if (unlikely(code > r->model.sites))
		number = code == RT_SPOOL_SITE_NEW ? new_site(r) : 0;
	*next = number;
	thread->site = number;
	return number;
}

static inline bool take_time(struct rt_spool_decoder *r, const struct dense *dense, size_t n,
			     struct rt_spool_lane *lane, struct rt_spool_site *site)
{
	uint64_t folded = dense->time_lo[n], high = dense->time_hi[n], wrong;
	uint64_t guess = rt_spool_guess_time(lane, site);

	if (likely(high != RT_SPOOL_TIME_ESCAPE)) {
		wrong = rt_spool_unfold(folded | high << 8);
		rt_spool_learn_time(site, (int32_t)wrong);
	} else if (!take_difference(r, RT_SPOOL_TIME_FAR, &wrong)) {
		return false;
	}
	lane->time_ns = r->model.time_ns = guess + wrong;
	return true;
}

/* Number of the object that the code means. No branch between the two usual ones: nobody could predict it. */
static inline bool take_object(struct rt_spool_decoder *r, const struct rt_spool_thread *thread, unsigned code,
			       uint16_t *ret)
{
	struct rt_bytes *low = &r->columns[RT_SPOOL_OBJECT_LO];
	size_t at = r->object, known = code == RT_SPOOL_OBJECT_KNOWN;
	uint16_t number = (uint16_t)(low->data[at] | r->columns[RT_SPOOL_OBJECT_HI].data[at] << 8);
	uint16_t recent = rt_spool_recent(thread, code);
	uint64_t difference;

	if (code == RT_SPOOL_OBJECT_NEW) {
		if (!take_difference(r, RT_SPOOL_ADDRESS, &difference) ||
		    !rt_spool_add_object(&r->model, r->model.address + difference))
			return false;
		*ret = (uint16_t)r->model.objects;
		return true;
	}
	r->object = at + known;
	number = (uint16_t)rt_spool_choose(known, number, recent);
	*ret = number;
	return likely(r->object <= low->size && number <= r->model.objects &&
		      code - RT_SPOOL_RECENT >= RT_SPOOL_OBJECT_KNOWN - RT_SPOOL_RECENT);
}

/* What CONTROL says to differ from the guesses in e. */
static bool take_differences(struct rt_spool_decoder *r, unsigned control, struct rt_wire_event *e)
{
	uint64_t difference;

	if (control & RT_SPOOL_X_SEQ) {
		if (!take_difference(r, RT_SPOOL_SEQ, &difference))
			return false;
		e->head.seq += (uint32_t)difference;
	}
	if (control & RT_SPOOL_X_SP) {
		if (!take_difference(r, RT_SPOOL_SP, &difference))
			return false;
		e->sp += difference;
	}
	if (control & RT_SPOOL_X_COUNT) {
		if (!take_difference(r, RT_SPOOL_COUNT, &difference))
			return false;
		e->count += (uint32_t)difference;
	}
	if (control & RT_SPOOL_X_AUX) {
		if (!take_difference(r, RT_SPOOL_AUX, &difference))
			return false;
		e->aux += difference;
	}
	return true;
}

/* false: damaged */
static inline bool take_event(struct rt_spool_decoder *r, const struct dense *dense, size_t n, struct rt_wire_event *e)
{
	struct rt_spool_lane *lane = take_lane(r, dense->lane[n]);
	struct rt_spool_thread *thread = lane ? &r->model.thread[lane->thread] : NULL;
	uint16_t site_number = thread ? take_site(r, dense, n, thread) : 0, object_number;
	struct rt_spool_site *site = &r->model.site[site_number];
	unsigned control = dense->control[n];
	unsigned code = (control & RT_SPOOL_OBJECT_CODE) ^ site->code;
	struct rt_spool_object *object;
	bool fresh = (code == RT_SPOOL_OBJECT_NEW) | (site->op == RT_OP_NEW);

	if (!site_number || !take_time(r, dense, n, lane, site) || !take_object(r, thread, code, &object_number))
		return false;
	object = &r->model.object[object_number];
	e->head.size = sizeof(*e);
	e->head.kind = RT_WIRE_EVENT;
	e->head.op = site->op;
	e->head.seq = rt_spool_guess_seq(lane);
	e->head.time_ns = lane->time_ns;
	e->head.pid = thread->pid;
	e->head.tid = thread->tid;
	e->object = object->address;
	e->aux = site->aux;
	e->sp = rt_spool_guess_sp(thread, site);
	e->count = rt_spool_guess_count(site, object, fresh);
	e->point = site->point;
	e->stack = site->stack;
	e->delta = site->delta;
	e->flags = site->flags;
	if (unlikely(control & ~RT_SPOOL_OBJECT_CODE) && !take_differences(r, control, e))
		return false;
	lane->seq = e->head.seq;
	if (control & RT_SPOOL_X_SP)
		rt_spool_learn_sp(thread, site, e->sp);
	thread->strayed = control & RT_SPOOL_X_SP;
	site->aux = e->aux;
	site->code = (uint8_t)code;
	rt_spool_learn_count(site, object, fresh, e->count);
	rt_spool_remember(thread, object_number);
	return true;
}

static bool take_verbatim(struct rt_spool_decoder *r, const struct rt_wire_head **ret)
{
	struct rt_bytes column = r->columns[RT_SPOOL_VERBATIM];
	/* the columns are 8-aligned, and so is each record after valid ones */
	const void *at = column.data + r->verbatim;

	if (!rt_record_valid(at, column.size - r->verbatim))
		return false;
	*ret = at;
	r->verbatim += (*ret)->size;
	return true;
}

static size_t fault(struct rt_spool_decoder *r, const char *text, const char **ret_fault)
{
	r->records = r->record; /* nothing behind it is trusted */
	*ret_fault = text;
	return 0;
}

/* Decodes events up to the next record of another kind; how many. */
static size_t next_events(struct rt_spool_decoder *r, size_t most)
{
	const struct dense dense = {
		.lane = r->columns[RT_SPOOL_LANE].data + r->record,
		.site_lo = r->columns[RT_SPOOL_SITE_LO].data + r->event,
		.site_hi = r->columns[RT_SPOOL_SITE_HI].data + r->event,
		.control = r->columns[RT_SPOOL_CONTROL].data + r->event,
		.time_lo = r->columns[RT_SPOOL_TIME_LO].data + r->event,
		.time_hi = r->columns[RT_SPOOL_TIME_HI].data + r->event,
	};
	size_t n = 0;

	while (n < most && dense.lane[n] != RT_SPOOL_LANE_VERBATIM && take_event(r, &dense, n, &r->block[n]))
		n++;
	r->failed = n < most && dense.lane[n] != RT_SPOOL_LANE_VERBATIM;
	r->event += n;
	r->record += n;
	return n;
}

size_t rt_spool_decoder_next(struct rt_spool_decoder *decoder, const struct rt_wire_head **ret, const char **ret_fault)
{
	size_t left = decoder->records - decoder->record, n;

	*ret_fault = NULL;
	if (!left)
		return decoder->verbatim < decoder->columns[RT_SPOOL_VERBATIM].size
			       ? fault(decoder, "bytes behind its records", ret_fault)
			       : 0;
	/* an event that failed must not be tried again: it would read behind the columns */
	n = decoder->failed ? 0 : next_events(decoder, left < BLOCK ? left : BLOCK);
	if (n) {
		*ret = &decoder->block[0].head;
		return n;
	}
	if (decoder->columns[RT_SPOOL_LANE].data[decoder->record] != RT_SPOOL_LANE_VERBATIM ||
	    !take_verbatim(decoder, ret))
		return fault(decoder, "a record is malformed", ret_fault);
	decoder->record++;
	return 1;
}

/* What is wrong with the lengths of the columns, or NULL. */
static const char *count_columns(const struct rt_spool_decoder *r, uint32_t records)
{
	static const enum rt_spool_column by_event[] = { RT_SPOOL_SITE_LO, RT_SPOOL_SITE_HI, RT_SPOOL_CONTROL,
							 RT_SPOOL_TIME_LO, RT_SPOOL_TIME_HI };
	struct rt_bytes lanes = r->columns[RT_SPOOL_LANE];
	size_t events = 0;

	if (lanes.size != records)
		return "records are missing";
	for (size_t i = 0; i < lanes.size; i++)
		events += lanes.data[i] != RT_SPOOL_LANE_VERBATIM;
	if (r->columns[RT_SPOOL_OBJECT_LO].size != r->columns[RT_SPOOL_OBJECT_HI].size)
		return "objects are missing";
	for (size_t i = 0; i < sizeof(by_event) / sizeof(by_event[0]); i++) {
		if (r->columns[by_event[i]].size != events)
			return "events are missing";
	}
	return NULL;
}

struct rt_error *rt_spool_decoder_begin(struct rt_spool_decoder *decoder, struct rt_bytes payload, uint32_t records,
					const char **ret_fault)
{
	decoder->record = decoder->records = decoder->event = decoder->object = decoder->verbatim = 0;
	decoder->failed = false;
	memset(decoder->columns, 0, sizeof(decoder->columns));
	RT_TRY(rt_spool_unpack(decoder->unpacker, payload, decoder->columns, ret_fault));
	if (!*ret_fault)
		*ret_fault = count_columns(decoder, records);
	if (*ret_fault)
		return NULL;
	/* the records were counted: they are no more than a chunk has */
	if (!rt_spool_model_make_room(&decoder->model, records))
		return rt_error_nomem();
	rt_spool_model_reset(&decoder->model);
	decoder->records = records;
	return NULL;
}

struct rt_error *rt_spool_decoder_create(struct rt_spool_decoder **ret)
{
	_cleanup_(rt_spool_decoder_destroyp) struct rt_spool_decoder *r = calloc(1, sizeof(*r));

	if (!r)
		return rt_error_nomem();
	RT_TRY(rt_spool_unpacker_create(&r->unpacker));
	*ret = rt_take(r);
	return NULL;
}

void rt_spool_decoder_destroy(struct rt_spool_decoder *decoder)
{
	if (!decoder)
		return;
	rt_spool_unpacker_destroy(decoder->unpacker);
	rt_spool_model_deinit(&decoder->model);
	free(decoder);
}
