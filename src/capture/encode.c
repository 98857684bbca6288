/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An event is a lane, a site, an object, a time and rarely more. The model guesses them all; what it cannot know goes
 * into the columns at once, so that closing a chunk is no more than packing columns.
 */
#include "capture/encode.h"

#include "capture/column.h"
#include "capture/model.h"

enum {
	OBJECT_SLOTS = 4 * RT_SPOOL_RECORDS_MAX, /* powers of two, larger than what they index */
	SMALL_SLOTS = 2 * RT_SPOOL_RECORDS_MAX,
};

struct rt_spool_encoder {
	struct rt_spool_model model;
	struct rt_spool_fill columns[RT_SPOOL_COLUMNS];
	struct rt_spool_packer *packer;
	uint16_t lane_of[RT_SPOOL_LANES_MAX]; /* producer -> lane; 0: none so far, as in all below */
	uint16_t object_slots[OBJECT_SLOTS];  /* hash of the address -> object */
	uint16_t site_slots[SMALL_SLOTS];
	uint16_t thread_slots[SMALL_SLOTS];
	uint64_t recent[RT_SPOOL_RECORDS_MAX + 1][RT_SPOOL_RECENT]; /* addresses of each thread's recent objects */
};

static uint64_t mix(uint64_t a)
{
	a *= UINT64_C(0x9e3779b97f4a7c15);
	return a ^ a >> 32;
}

static bool is_site(const struct rt_spool_site *s, const struct rt_wire_event *e)
{
	return s->stack == e->stack && s->point == e->point && s->delta == e->delta && s->flags == e->flags &&
	       s->op == e->head.op;
}

static uint16_t *find_site(struct rt_spool_encoder *w, const struct rt_wire_event *e)
{
	uint64_t hash = mix(((uint64_t)e->point << 32 | e->stack) +
			    mix((uint64_t)e->head.op << 32 | (uint32_t)(uint16_t)e->delta << 16 | e->flags));

	for (;; hash++) {
		uint16_t *slot = &w->site_slots[hash % SMALL_SLOTS];

		if (!*slot || is_site(&w->model.site[*slot], e))
			return slot;
	}
}

static uint16_t *find_thread(struct rt_spool_encoder *w, const struct rt_wire_event *e)
{
	uint64_t hash = mix((uint64_t)e->head.pid << 32 | e->head.tid);

	for (;; hash++) {
		uint16_t *slot = &w->thread_slots[hash % SMALL_SLOTS];
		const struct rt_spool_thread *t = &w->model.thread[*slot];

		if (!*slot || (t->pid == e->head.pid && t->tid == e->head.tid))
			return slot;
	}
}

static inline uint16_t *find_object(struct rt_spool_encoder *w, uint64_t address)
{
	uint64_t hash = mix(address);

	for (;; hash++) {
		uint16_t *slot = &w->object_slots[hash % OBJECT_SLOTS];

		if (!*slot || w->model.object[*slot].address == address)
			return slot;
	}
}

/* Another thread than before runs on the lane, or one of both is new. */
static __attribute__((noinline)) struct rt_spool_lane *switch_lane(struct rt_spool_encoder *w,
								   const struct rt_wire_event *e)
{
	struct rt_spool_fill *rare = &w->columns[RT_SPOOL_RARE];
	uint32_t producer = e->head.seq >> RT_SEQ_BITS;
	uint16_t *lane = &w->lane_of[producer], *thread = find_thread(w, e);

	rt_spool_put_u8(&w->columns[RT_SPOOL_LANE], RT_SPOOL_LANE_SWITCH);
	rt_spool_put_uleb(rare, *lane);
	if (!*lane) {
		rt_spool_put_uleb(rare, producer);
		rt_spool_add_lane(&w->model, producer);
		*lane = (uint16_t)w->model.lanes;
	}
	rt_spool_put_uleb(rare, *thread);
	if (!*thread) {
		rt_spool_put_uleb(rare, e->head.pid);
		rt_spool_put_uleb(rare, e->head.tid);
		rt_spool_add_thread(&w->model, e->head.pid, e->head.tid);
		*thread = (uint16_t)w->model.threads;
		memset(w->recent[*thread], 0, sizeof(w->recent[*thread]));
	}
	w->model.lane[*lane].thread = *thread;
	return &w->model.lane[*lane];
}

static inline struct rt_spool_lane *put_lane(struct rt_spool_encoder *w, const struct rt_wire_event *e)
{
	uint16_t number = w->lane_of[e->head.seq >> RT_SEQ_BITS];
	struct rt_spool_lane *lane = &w->model.lane[number];
	const struct rt_spool_thread *thread = &w->model.thread[lane->thread];

	if (!number || number > RT_SPOOL_LANE_LAST || thread->tid != e->head.tid || thread->pid != e->head.pid)
		return switch_lane(w, e);
	rt_spool_put_u8(&w->columns[RT_SPOOL_LANE], (uint8_t)number);
	return lane;
}

static __attribute__((noinline)) uint16_t new_site(struct rt_spool_encoder *w, const struct rt_wire_event *e)
{
	struct rt_spool_fill *rare = &w->columns[RT_SPOOL_RARE];
	struct rt_spool_site what = {
		.point = e->point, .stack = e->stack, .delta = e->delta, .flags = e->flags, .op = e->head.op
	};

	rt_spool_add_site(&w->model, what);
	rt_spool_put_uleb(rare, e->point);
	rt_spool_put_uleb(rare, e->stack);
	rt_spool_put_uleb(rare, (uint16_t)e->delta);
	rt_spool_put_uleb(rare, e->flags);
	rt_spool_put_uleb(rare, e->head.op);
	return (uint16_t)w->model.sites;
}

/* Number of the event's site. */
static inline uint16_t put_site(struct rt_spool_encoder *w, struct rt_spool_thread *thread,
				const struct rt_wire_event *e)
{
	uint16_t *next = &w->model.site[thread->site].next, *slot;
	uint16_t number = *next, code = 0;

	if (!number || !is_site(&w->model.site[number], e)) {
		slot = find_site(w, e);
		code = *slot ? *slot : RT_SPOOL_SITE_NEW;
		if (!*slot)
			*slot = new_site(w, e);
		number = *slot;
	}
	rt_spool_put_u8(&w->columns[RT_SPOOL_SITE_LO], (uint8_t)code);
	rt_spool_put_u8(&w->columns[RT_SPOOL_SITE_HI], (uint8_t)(code >> 8));
	*next = number;
	thread->site = number;
	return number;
}

static inline void put_time(struct rt_spool_encoder *w, struct rt_spool_lane *lane, struct rt_spool_site *site,
			    uint64_t time_ns)
{
	uint64_t wrong = time_ns - rt_spool_guess_time(lane, site);
	uint64_t folded = rt_spool_fold(wrong);

	if (folded >> 8 < RT_SPOOL_TIME_ESCAPE) {
		rt_spool_put_u8(&w->columns[RT_SPOOL_TIME_LO], (uint8_t)folded);
		rt_spool_put_u8(&w->columns[RT_SPOOL_TIME_HI], (uint8_t)(folded >> 8));
		rt_spool_learn_time(site, (int32_t)wrong);
	} else {
		rt_spool_put_u8(&w->columns[RT_SPOOL_TIME_LO], 0);
		rt_spool_put_u8(&w->columns[RT_SPOOL_TIME_HI], RT_SPOOL_TIME_ESCAPE);
		rt_spool_put_uleb(&w->columns[RT_SPOOL_TIME_FAR], folded);
	}
	lane->time_ns = w->model.time_ns = time_ns;
}

/* How many events of the thread ago it had the object; RT_SPOOL_RECENT: more than that. */
static inline unsigned find_recent(const uint64_t *recent, unsigned events, uint64_t address)
{
	unsigned found = 0;

	for (unsigned i = 0; i < RT_SPOOL_RECENT; i++)
		found |= (unsigned)(recent[i] == address) << i;
	/* the oldest one in bit 0, the newest one in bit 7 */
	found = (found | found << RT_SPOOL_RECENT) >> events % RT_SPOOL_RECENT & ((1u << RT_SPOOL_RECENT) - 1);
	return found ? (unsigned)__builtin_clz(found) - (32 - RT_SPOOL_RECENT) : RT_SPOOL_RECENT;
}

/* The code of the object; *ret is its number. */
static inline unsigned put_object(struct rt_spool_encoder *w, uint32_t thread_number, uint64_t address, uint16_t *ret)
{
	const struct rt_spool_thread *thread = &w->model.thread[thread_number];
	uint64_t *recent = w->recent[thread_number], before = w->model.address;
	unsigned code = find_recent(recent, thread->events, address);
	uint16_t none = 0, *slot;

	recent[thread->events % RT_SPOOL_RECENT] = address;
	if (code < RT_SPOOL_RECENT) {
		*ret = rt_spool_recent(thread, code);
		return code;
	}
	slot = address ? find_object(w, address) : &none;
	if (address && !*slot) {
		rt_spool_add_object(&w->model, address);
		*ret = *slot = (uint16_t)w->model.objects;
		rt_spool_put_uleb(&w->columns[RT_SPOOL_ADDRESS], rt_spool_fold(address - before));
		return RT_SPOOL_OBJECT_NEW;
	}
	*ret = *slot;
	rt_spool_put_u8(&w->columns[RT_SPOOL_OBJECT_LO], (uint8_t)*slot);
	rt_spool_put_u8(&w->columns[RT_SPOOL_OBJECT_HI], (uint8_t)(*slot >> 8));
	return RT_SPOOL_OBJECT_KNOWN;
}

static inline void put_difference(struct rt_spool_encoder *w, enum rt_spool_column column, uint64_t difference)
{
	rt_spool_put_uleb(&w->columns[column], rt_spool_fold(difference));
}

static inline void add_event(struct rt_spool_encoder *w, const struct rt_wire_event *e)
{
	struct rt_spool_lane *lane = put_lane(w, e);
	struct rt_spool_thread *thread = &w->model.thread[lane->thread];
	uint16_t site_number = put_site(w, thread, e), object_number;
	struct rt_spool_site *site = &w->model.site[site_number];
	unsigned code = put_object(w, lane->thread, e->object, &object_number), control = code ^ site->code;
	struct rt_spool_object *object = &w->model.object[object_number];
	bool fresh = (code == RT_SPOOL_OBJECT_NEW) | (site->op == RT_OP_NEW);
	uint64_t sp = rt_spool_guess_sp(thread, site);
	uint32_t seq = rt_spool_guess_seq(lane), count = rt_spool_guess_count(site, object, fresh);

	put_time(w, lane, site, e->head.time_ns);
	if (e->head.seq != seq) {
		control |= RT_SPOOL_X_SEQ;
		put_difference(w, RT_SPOOL_SEQ, (uint64_t)e->head.seq - seq);
	}
	if (e->sp != sp) {
		control |= RT_SPOOL_X_SP;
		put_difference(w, RT_SPOOL_SP, e->sp - sp);
		rt_spool_learn_sp(thread, site, e->sp);
	}
	if (e->count != count) {
		control |= RT_SPOOL_X_COUNT;
		put_difference(w, RT_SPOOL_COUNT, (uint64_t)(int64_t)(int32_t)(e->count - count));
	}
	if (e->aux != site->aux) {
		control |= RT_SPOOL_X_AUX;
		put_difference(w, RT_SPOOL_AUX, e->aux - site->aux);
	}
	rt_spool_put_u8(&w->columns[RT_SPOOL_CONTROL], (uint8_t)control);
	lane->seq = e->head.seq;
	thread->strayed = e->sp != sp;
	site->aux = e->aux;
	site->code = (uint8_t)code;
	rt_spool_learn_count(site, object, fresh, e->count);
	rt_spool_remember(thread, object_number);
}

bool rt_spool_encoder_add(struct rt_spool_encoder *encoder, const struct rt_wire_head *record)
{
	struct rt_spool_fill *lanes = &encoder->columns[RT_SPOOL_LANE],
			     *verbatim = &encoder->columns[RT_SPOOL_VERBATIM];

	if (lanes->len == RT_SPOOL_RECORDS_MAX)
		return false;
	if (record->kind == RT_WIRE_EVENT && record->size == sizeof(struct rt_wire_event)) {
		add_event(encoder, (const struct rt_wire_event *)(const void *)record);
		return true;
	}
	if (record->size > RT_SPOOL_VERBATIM_MAX - verbatim->len)
		return false;
	rt_spool_put_u8(lanes, RT_SPOOL_LANE_VERBATIM);
	memcpy(verbatim->data + verbatim->len, record, record->size);
	verbatim->len += record->size;
	return true;
}

static void reset(struct rt_spool_encoder *w)
{
	for (int i = 0; i < RT_SPOOL_COLUMNS; i++)
		w->columns[i].len = 0;
	rt_spool_model_reset(&w->model);
	memset(w->lane_of, 0, sizeof(w->lane_of));
	memset(w->object_slots, 0, sizeof(w->object_slots));
	memset(w->site_slots, 0, sizeof(w->site_slots));
	memset(w->thread_slots, 0, sizeof(w->thread_slots));
}

struct rt_error *rt_spool_encoder_finish(struct rt_spool_encoder *encoder, struct rt_bytes *ret)
{
	RT_TRY(rt_spool_pack(encoder->packer, encoder->columns, ret));
	reset(encoder);
	return NULL;
}

struct rt_error *rt_spool_encoder_create(struct rt_spool_encoder **ret)
{
	_cleanup_(rt_spool_encoder_destroyp) struct rt_spool_encoder *w = calloc(1, sizeof(*w));

	if (!w)
		return rt_error_nomem();
	for (int i = 0; i < RT_SPOOL_COLUMNS; i++) {
		w->columns[i].data = malloc(rt_spool_column_limit(i));
		if (!w->columns[i].data)
			return rt_error_nomem();
	}
	if (!rt_spool_model_make_room(&w->model, RT_SPOOL_RECORDS_MAX))
		return rt_error_nomem();
	RT_TRY(rt_spool_packer_create(&w->packer));
	*ret = rt_take(w);
	return NULL;
}

void rt_spool_encoder_destroy(struct rt_spool_encoder *encoder)
{
	if (!encoder)
		return;
	for (int i = 0; i < RT_SPOOL_COLUMNS; i++)
		free(encoder->columns[i].data);
	rt_spool_packer_destroy(encoder->packer);
	rt_spool_model_deinit(&encoder->model);
	free(encoder);
}
