/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The analysis: events in, findings out. Pure: no I/O, no clock, no globals;
 * one user at a time. Works as a stream: a dead healthy incarnation is reduced
 * to its shape; memory grows with live objects, sites and distinct stacks and shapes.
 *
 *   record -> order -> incarnation -> pair -> shape -> model -> blame -> verdict
 */
#pragma once

#include "event/names.h"
#include "event/stream.h"

enum rt_finding_kind { RT_LEAK, RT_EXTRA_PUT, RT_USE_AFTER_PUT, RT_RACY_UPDATE };
enum rt_role { RT_ROLE_MISSING_PUT, RT_ROLE_EXTRA_GET, RT_ROLE_EXTRA_PUT, RT_ROLE_USE, RT_ROLE_RACY_UPDATE };

/* A named place. Strings belong to the verdict or the namer. */
struct rt_place_name {
	struct rt_frame frame; /* function etc. may be NULL: then module and address tell */
	double confidence;     /* for alternatives */
};

/* One event of an object's history, for the report. */
struct rt_history {
	uint64_t time_ns;
	uint32_t tid;
	uint8_t op; /* enum rt_op */
	int16_t delta;
	int64_t count_after;  /* running balance or counter; INT64_MIN = unknown */
	struct rt_frame site; /* the caller, innermost source function */
	const char *api;      /* the get/put function called */
	bool gap_before;      /* events between this and the one before are not kept */
};

/* One row of "balance by caller". */
struct rt_balance {
	struct rt_frame site;      /* source function that takes and gives (all its lines together) */
	uint32_t lines[6];         /* distinct source lines, ascending, 0-filled */
	uint64_t news, gets, puts; /* over objects of the finding's type */
	int64_t left;              /* references taken here and never closed */
	bool guilty;
};

struct rt_trace_stack {
	const char *label; /* "taken", "put", "freed by", "extra put", "use" : static */
	struct rt_frame *frames;
	size_t count;
};

/* One of the stacks that a finding's references came from (of puts and uses too many: where those were done). */
struct rt_origin {
	const char *api;             /* the function called there; NULL = unseen */
	struct rt_trace_stack stack; /* no frames: unseen */
	uint64_t references;
};

struct rt_finding {
	char id[9]; /* 8 hex digits: hash over kind, type, class and function names */
	enum rt_finding_kind kind;
	const char *type, *klass; /* klass NULL */
	uint64_t objects, of;     /* affected objects, of how many of the type */
	uint64_t lost;            /* of the affected objects, those that nobody points to any more; after a census */
	uint64_t references;      /* how many references too many */
	uint64_t bytes;           /* 0 = unknown */
	double confidence;        /* 0..1 */
	bool incomplete;          /* rests on history with gaps */
	enum rt_role role;
	struct rt_frame guilty;
	struct rt_frame taken_by;           /* where the reference came from; function NULL and address 0: not known */
	uint64_t taken_count, taken_closed; /* how often the taking site took, and how often that was closed */
	struct rt_place_name *alternatives;
	size_t alternative_count;
	struct rt_branch *skips; /* by which the guilty function can go past the puts that it does elsewhere */
	size_t skip_count;
	const char **evidence; /* sentences, lower case, without full stop */
	size_t evidence_count;
	uint64_t first_object; /* serial of the first affected object, 1.. per type */
	uint64_t first_address;
	uint64_t *serials; /* of the affected objects */
	size_t serial_count;
	uint64_t first_time_ns;
	struct rt_history *history; /* of the first affected object: first and last 8 events */
	size_t history_count;
	struct rt_balance *balance;
	size_t balance_count;
	struct rt_trace_stack *stacks;
	size_t stack_count;
	uint32_t *pids; /* as records have them: RT_PID_OF, RT_GEN_OF */
	size_t pid_count;
	struct rt_origin *origins; /* each other than the others */
	size_t origin_count;
	uint64_t origins_left_out; /* references whose stacks were too many for the list */
};

/* A leak whose evidence leaves it open who is guilty: less than "certain", or next to it. */
static inline bool rt_finding_is_thin(const struct rt_finding *f)
{
	return f->kind == RT_LEAK && f->confidence < 0.9;
}

struct rt_type_count {
	const char *name;
	uint64_t news, gets, puts, frees, uses, live;
	uint64_t incarnations; /* objects seen, whether or not their new was */
	uint64_t leaked;       /* objects in findings */
	uint64_t swept;        /* objects that ended with references open, with the pool that they lay in */
};

/* Of a type's objects, those of one class. */
struct rt_class_count {
	const char *type, *name;
	uint64_t incarnations, live;
};

/* Objects that are alive at the end and not accused. */
struct rt_alive {
	const char *type, *klass;
	uint64_t objects;
	const char *reason; /* "cache", "born before attach", "creation not seen", "killed", ...: static text */
};

/* Counts of one probe point: must equal what the program did. */
struct rt_point_count {
	uint32_t point;
	const char *type, *function;
	uint8_t op;
	uint64_t events;  /* records seen */
	uint64_t hits;    /* the engine's own counter; UINT64_MAX = not told */
	uint64_t dropped; /* losses bound to this point */
};
/* Counts of one call site of a point (innermost source function). */
struct rt_site_count {
	struct rt_frame site;
	const char *type, *api;
	uint8_t op;
	uint64_t events;
};

/* Not all objects were traced. What is said of those that were holds; counts are those of the sample. */
struct rt_sampling {
	bool on;
	bool partial;                 /* something was left out */
	bool governed;                /* the rate followed the cost */
	double rate, lowest;          /* at the end; at any time. 1 = all */
	uint64_t passed;              /* hits at objects that were not in the sample */
	uint64_t left;                /* objects that were in it for a part of their life, and are not counted */
	double limit, cost;           /* governed: of the target's own CPU time; cost 0 = not known */
	uint32_t event_ns, passed_ns; /* governed: calibrated costs of a hit with and without its event */
};

struct rt_trust {
	bool complete;     /* no note of any kind takes anything away from the answer */
	bool nothing_seen; /* no event at all */
	uint64_t events, lost;
	uint64_t points, points_hit;
	const char **unarmed; /* functions that could not be armed, with the reason */
	size_t unarmed_count;
	const char **notes; /* sentences: what is missing and why */
	size_t note_count;
	const char **limits; /* sentences: what was too much to be looked at; no count needs it */
	size_t limit_count;
	const char *unwind;          /* "unwind tables", "frame pointers", "given": static text */
	uint64_t incomplete_objects; /* incarnations with unseen operations */
	struct rt_sampling sampling;
};

struct rt_process_end {
	uint32_t pid;    /* as in rt_finding.pids */
	const char *exe; /* "" unknown */
	int status;      /* wait status */
	bool ended;
};

enum rt_watched_end { RT_WATCHED_LIVE, RT_WATCHED_DEAD, RT_WATCHED_LOST };
enum rt_watched_mark { RT_WATCHED_PLAIN, RT_WATCHED_OPEN, RT_WATCHED_FAULT };

/* One event of a life that is watched. */
struct rt_watched_event {
	struct rt_history history;   /* gap_before: some are not kept */
	struct rt_trace_stack stack; /* from the site on; label is unused */
	int32_t mate; /* index of the event that closes this reference, or whose it closes; -1 = not certain */
	enum rt_watched_mark
		mark; /* a finding names it: OPEN: nobody gives this reference back; FAULT: a put or use too many */
};

/* One life with its whole ledger. */
struct rt_watched {
	const char *type;
	uint64_t serial, object;
	uint32_t pid;                     /* RT_PID_OF */
	uint64_t birth_ns, end_ns;        /* end_ns: of a dead one */
	enum rt_watched_end end;          /* LOST: its memory began a new life, how this one ended was not seen */
	int64_t references;               /* now; INT64_MIN = unknown */
	int32_t at_first_sight;           /* references that were there before the first event */
	bool has_new;                     /* its creation was seen */
	bool attached, inherited;         /* not seen because: born before the attach; before the fork */
	bool earlier;                     /* with attached: born before this file of several, which says it all again */
	bool incomplete, forced;          /* operations were not seen; freed with open references */
	const struct rt_finding *finding; /* the first one that names it, also a suspicion; NULL = none */
	bool suspected;
	const char *reason; /* why it is alive without being accused: as rt_alive; NULL */
	struct rt_watched_event *events;
	size_t event_count;
	uint64_t left_out; /* events beyond the limit of what is kept */
};

/* What was done from one stack to the watched lives of one type. */
struct rt_path {
	const char *type, *api; /* api NULL: references that were there at first sight */
	uint8_t op;
	uint64_t events;
	int64_t references; /* taken (> 0) or given back */
	struct rt_trace_stack stack;
};

/* Of objects that are not balanced: what one place did to them; in all: to any object of the type. */
struct rt_tally_row {
	struct rt_frame site;
	const char *api;
	uint8_t op;
	uint64_t events, in_all;
};

/* Counting mode: objects to which the same places did the same, as often. */
struct rt_tally_group {
	const char *type;
	uint64_t objects;
	int64_t balance; /* of each */
	bool made;       /* their new was seen */
	bool several;    /* perhaps several lives: new was seen again while references were open */
	uint64_t others; /* operations at places that there was no room for */
	uint64_t first_address, first_ns, last_ns;
	struct rt_tally_row *rows;
	size_t row_count;
};

struct rt_verdict {
	struct rt_finding *findings, *suspects;
	size_t finding_count, suspect_count; /* findings: confidence >= 0.5, best first */
	struct rt_type_count *types;
	size_t type_count;
	struct rt_class_count *classes; /* by their first objects */
	size_t class_count;
	struct rt_alive *alive;
	size_t alive_count;
	struct rt_point_count *points;
	size_t point_count;
	struct rt_site_count *sites;
	size_t site_count;
	struct rt_process_end *processes;
	size_t process_count;
	struct rt_trust trust;
	struct rt_watched *watched; /* the lives that options.watch wanted, by type and serial */
	size_t watched_count;
	struct rt_path *paths; /* with watch->counts: what was done to those lives, by stack */
	size_t path_count;
	bool counted; /* counting mode: no event was told, only these; nobody is accused */
	struct rt_tally_group *tallies;
	size_t tally_count;
	uint64_t start_ns, end_ns; /* times of the first and last record */
};

/* Lives that are kept whole. They are asked for at their start, in the order of the stream. */
struct rt_watch {
	bool (*wants)(void *arg, const char *type, uint64_t serial, uint64_t object);
	void *arg;
	bool counts; /* rt_verdict.paths instead of rt_verdict.watched: memory does not grow with events */
};

struct rt_lifetime_options {
	const char *const *types;     /* only these types and classes make findings, as globs; NULL-terminated, NULL =
					 all */
	uint32_t history;             /* events kept at each end of a life; 0 = 8 */
	bool strict;                  /* objects that a cache holds are reported too */
	const struct rt_watch *watch; /* outlives the lifetime; NULL = none */
};

struct rt_lifetime;

/* namer must outlive the analysis and its verdict. options may be NULL. */
RT_CHECK struct rt_error *rt_lifetime_create(const struct rt_lifetime_options *options, struct rt_namer *namer,
					     struct rt_lifetime **ret);
void rt_lifetime_destroy(struct rt_lifetime *lifetime);
RT_CLEANUP(struct rt_lifetime *, rt_lifetime_destroy);

/* Takes one record of the stream; unknown kinds are ignored, inconsistent ones are counted in trust. */
RT_CHECK struct rt_error *rt_lifetime_record(struct rt_lifetime *lifetime, const struct rt_wire_head *record);
/* Takes n records of kind EVENT that lie one behind the other, as rt_lifetime_record() does. */
RT_CHECK struct rt_error *rt_lifetime_events(struct rt_lifetime *lifetime, const struct rt_wire_event *events,
					     size_t n);

/* A live object, for the census at the end. */
struct rt_live {
	uint64_t object;
	uint32_t type;
	int32_t counter_offset; /* RT_COUNTER_UNKNOWN: do not read */
	uint32_t counter_size;
	uint32_t object_size; /* 0 = unknown */
	uint64_t serial;
	const char *type_name;
	uint32_t type_flags; /* RT_TYPE_* */
};
/* Calls visit for every object of pid (RT_PID_MAKE; 0 = of all) that is alive now; any order. Stops when it returns
 * false. */
void rt_lifetime_live(struct rt_lifetime *lifetime, uint32_t pid, bool (*visit)(const struct rt_live *live, void *arg),
		      void *arg);

/*
 * One step of a life as the analysis counts it, in the order that it found: an
 * operation that two probes told is one step, a swap is two.
 */
struct rt_life_step {
	uint64_t object, serial; /* serial: 1.. per type */
	uint32_t pid, tid;       /* RT_PID_MAKE; thread */
	uint32_t type, point;    /* as the stream names them */
	uint32_t place;          /* for rt_lifetime_frames(); 0 = no stack */
	uint32_t act;            /* activation of the function that did it; 0 = not proven */
	uint64_t time_ns, slot;  /* slot: where the reference is kept, 0 = not told */
	uint32_t opens, closes;  /* references */
	uint8_t op;
	bool after_end; /* the object was dead */
};

/* Sees all lives while the stream is read. Lives are known by type and serial. */
struct rt_life_observer {
	/* the first step of a life begins it; one that comes after its end, without after_end, goes on with it */
	void (*step)(struct rt_life_observer *self, const struct rt_life_step *step);
	/* a step was a part of an outer operation: its place is that of the outer one */
	void (*moved)(struct rt_life_observer *self, const struct rt_life_step *from, const struct rt_life_step *to);
	/* after its last step. died: it was seen to end; else its address was found in use by another one */
	void (*end)(struct rt_life_observer *self, uint32_t type, uint64_t serial, uint64_t time_ns, bool died);
};
/* To be called before the first record. observer outlives the analysis; NULL: nobody. */
void rt_lifetime_observe(struct rt_lifetime *lifetime, struct rt_life_observer *observer);
/* Source frames of a place, innermost first; at most max. Strings live as long as the namer. */
size_t rt_lifetime_frames(const struct rt_lifetime *lifetime, uint32_t place, struct rt_frame *ret, size_t max);

/*
 * Ends the stream and gives the verdict; may be called again after more
 * records (a snapshot). The verdict is owned by the lifetime and valid until the next
 * call of it or its destroy.
 */
RT_CHECK struct rt_error *rt_lifetime_verdict(struct rt_lifetime *lifetime, const struct rt_verdict **ret);
