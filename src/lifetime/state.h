/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of this module share: the tables that grow with the stream.
 *
 *   stack.c        frames and stacks by number; site.c: sites
 *   thread.c       which activation of a function an event lies in
 *   type.c         types, points, processes
 *   order.c        puts records into the order of time
 *   plain.c        the event that nearly all are, in one go; event.c: all others
 *   incarnation.c  one life of one object, and its ledger; audit.c: its counter
 *   index.c        which life is at an address; row.c: the living, and the graves
 *   packed.c       lives that nothing happens to, in few bytes
 *   range.c        what the kernel hands out; kept.c: what is kept of it for good
 *   counter.c      is what is read as the counter one?
 *   nest.c         events that tell of one operation twice
 *   pair.c         references that are closed beyond doubt
 *   watch.c        lives that are kept whole
 *   class.c        finer kinds of objects
 *   shape.c        dead objects by their pattern; model.c: which site closes which
 *   models_*.c     what was learnt of them, to and from other runs
 *   hand.c         who was handed a reference
 *   slot.c         which slot keeps which reference; noted.c, stored.c: what was stored there last
 *   several.c      runs that take several references to one object
 *   overwrite.c    whose store lost the last pointer
 *   given.c        who was given the object last
 *   ended.c        who was to end it; entry.c: the function that was given the object
 *   owner.c        whose business a reference is
 *   along.c        who gave back what was taken along with it
 *   leak.c         which references were left, and by whom; extra.c: puts nobody owed
 *   finding.c      groups and words; verdict.c, trust.c: the answer
 */
#pragma once

#include <string.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/slab.h"
#include "lifetime/inc.h"
#include "lifetime/index.h"
#include "lifetime/learnt.h"
#include "lifetime/lifetime.h"
#include "lifetime/packed.h"
#include "lifetime/point.h"
#include "lifetime/sample.h"
#include "lifetime/stored.h"
#include "lifetime/tally.h"

enum {
	LT_PATH = 8,               /* frames of a site that hands its reference up */
	LT_LEDGER = 512,           /* events kept of one life before it is folded */
	LT_NODES = 8,              /* nodes of two stacks that are compared at once */
	LT_ACTS = 16,              /* activations that are written at once: of most stacks all */
	LT_GRAVES = 1 << 14,       /* dead objects whose ledger is kept */
	LT_GRAVE_EVENTS = 1 << 21, /* and for how many events these have room: 96 MiB */
	LT_ROOMY_BYTES = 96 << 20, /* less than this is little memory */
	LT_WHOLE_BYTES = 8 << 20,  /* and less than this so little that lives are kept whole up to LT_LEDGER */
	LT_LEDGER_USUAL = 32,      /* events after which a life is folded otherwise, if that makes room */
	LT_SHAPES = 4096,          /* distinct shapes of one type */
	LT_UNITS = 24,             /* open references or puts of one shape that are matched */
	LT_FINALS = 16,            /* objects that a thread was seen to end last; a power of two */
	LT_SLOT_EVENTS = 64,       /* events around a store within which its get or put is looked for */
	LT_SLOTS = 1 << 20,        /* slots of which it is known what was stored there last */
	LT_WINDOW = 1 << 12,       /* records that wait for earlier ones */
	LT_WINDOW_NS = 5000000,    /* and how long, in time of the stream */
	LT_RACE_NS = 100000,       /* two threads this near may have read the counter in any order */
	LT_CLOCK_NS = 10000,       /* two CPUs may tell one moment as times this far apart */
	LT_FLIGHT_NS = 1000000000, /* an operation this old that its thread did nothing after may not have begun */
	LT_COUNT_SANE = 1 << 16,   /* a counter above this is not one */
};

/* One source-level function at one line: equal for all processes. */
struct lt_src {
	struct rt_frame frame; /* of the first pc that was seen */
	uint32_t function;     /* id of name and file */
	uint32_t name;         /* id of the bare name, or of the one that it was told by; 0 = unknown */
};

/* One machine frame of a stack. */
struct lt_machine {
	uint64_t pc;
	uint32_t cfa; /* minus sp of the event, 0 = unknown */
	/* lt_state.stack_srcs[src, src + srcs), innermost first; behind them stand LT_BEHIND_* */
	uint32_t src, srcs;
	uint32_t callee;   /* src id of the function that the call before pc goes to, 0 = not known */
	uint32_t function; /* of the symbol that has the CFA (lt_src.function), 0 = not named */
	bool is_site;
};

/*
 * Where these words lie behind the source frames of a machine frame in stack_srcs: its callee; where that is a PLT
 * stub, the stub's name, as of rt_lifetime.names; the function that the callee leaves to by its one jump; how many
 * source frames it has there, and these.
 */
enum { LT_BEHIND_CALLEE, LT_BEHIND_STUB, LT_BEHIND_NEXT, LT_BEHIND_LEFT, LT_BEHIND_LEFT_AT };

/* A stack of which each frame's CFA is known. */
struct lt_plain {
	uint16_t nr;        /* frames; 0: the stack is none of these */
	bool cut;           /* there are more frames: it lies over another one that begins with the same frame */
	uint32_t nodes;     /* lt_state.nodes, outermost first, in whole LT_NODES */
	uint32_t outer_cfa; /* of the outermost frame, minus sp */
};

struct lt_stack {
	uint32_t pid;
	uint32_t first, nr; /* lt_state.machines */
	struct lt_plain plain;
	bool cut; /* does not reach the outermost frame */
	bool named;
};

/*
 * A frame with all that are outside of it. Two plain stacks whose outermost
 * frames stand at one place share just the frames that have the same nodes.
 */
struct lt_node {
	uint32_t outer, function; /* node id; 0 = none */
	uint64_t caller_pc;
	uint64_t below; /* bytes below the outermost frame */
};

/* What an event's numbers were looked up to be, and what nearly each event asks of that. */
struct lt_known {
	uint32_t pid, wire_stack, wire_point; /* as the event has them; point 0 = empty */
	uint32_t use, type;                   /* indexes */
	struct lt_plain plain;                /* nr 0: its stack is not plain, or the function of frame 0 jumped on */
	uint8_t machine, up;                  /* as in lt_use; LT_GONE where it has no site */
	bool slot, classed;                   /* aux of its events is a slot; tells the class */
};

/*
 * Where a reference is taken or given: the innermost source function that is
 * not API of the type, and its callers as long as they only hand it up.
 */
struct lt_site {
	uint32_t src[LT_PATH]; /* path[0] is the innermost */
	uint32_t nr;           /* 0: no stack */
};

/* No machine frame of its own: it jumped to what it called last. LT_JUMPED: to the API, so its place is known. */
enum { LT_GONE = 255, LT_JUMPED = 254 };

enum { LT_SILENT = 4 /* lives of a place */, LT_SILENT_RULES = 2 };

/* One (stack, point): its site, where the site lies in the stack, and how often. */
struct lt_use {
	uint32_t stack, point; /* index */
	uint32_t site;
	uint32_t function;   /* of the innermost function of the site (lt_src.function), 0 = unknown */
	uint32_t jumped;     /* src id of the function that frame 0 called and that jumped to the API, 0 = none */
	uint8_t machine, up; /* machine frames of path[0] and of the last of the path; LT_GONE or LT_JUMPED */
	/* lives at addresses that were used again of which it is a silent fault, by each rule of silent.c */
	uint32_t silent[LT_SILENT_RULES];
	uint64_t events;
};

struct lt_watch_count {
	uint64_t events;
	int64_t references;
};

/* One unit of a life's references: the event, and its partner where that is beyond doubt. */
struct lt_unit {
	uint32_t site;
	int16_t mate; /* index of the unit, -1 = open */
	uint16_t ev;  /* index in the ledger, LT_NO_EVENT for what was there at first sight */
	bool opens;
};

enum { LT_NO_EVENT = 0xffff, LT_UNITS_MAX = 1024 };
#define LT_NOWHERE (UINT32_MAX - 1) /* site of a reference that was there at first sight, or that had no stack */

struct lt_units {
	unsigned nr;
	unsigned left; /* without a partner */
	bool cut;      /* there were more */
	unsigned openers;
	struct lt_unit u[LT_UNITS_MAX];
	uint16_t opener[LT_UNITS_MAX]; /* indexes of those that open */
};

/* What the counter of a type did, believed or not (counter.c). */
struct lt_counting {
	uint64_t agree, differ; /* steps from one count to the next of the same life */
	uint64_t raced;         /* that differ, and a race may be why */
	uint64_t crossed;       /* two that differ, of two threads, and together do not */
	uint64_t born_one, born_zero, born_more, born_odd;
	uint64_t more_died, more_rest; /* born with N > 1: ended at 0; at N - 1 */
	uint64_t zero_over;            /* born with 0, and put after the death */
	uint64_t first_zero;           /* first seen in a get that read 0 */
	uint64_t rose;                 /* taken up again when nothing was left */
	bool off;                      /* taken as not read for now */
	/* by the verdict: the count at birth is not proven for those born with more than 1; with 0 */
	bool more_unproven, zero_unproven;
};

/* Where references that a function took (or gave back) through whatever it called were given back (or taken). */
struct lt_owned {
	uint64_t own;    /* in the same run of the function */
	uint64_t up;     /* in a run of a function that called it */
	uint64_t next;   /* of these, in that of its very caller */
	uint64_t far;    /* elsewhere */
	uint32_t caller; /* of those that passed them up: the function that called it first */
	bool callers;    /* others did, too */
};

struct lt_owner {
	struct lt_owned gets, puts;
};

struct lt_type {
	uint32_t id;
	const char *name;
	const char *structure; /* what declarations call it, where that is another name; NULL */
	int32_t start;         /* references after new; RT_START_UNKNOWN until learnt */
	bool start_learnt;
	bool counter;
	uint32_t object_size, counter_size;
	int32_t counter_offset;
	uint32_t flags;
	struct rt_map api;     /* name -> LT_API*: functions that are points of the type */
	uint64_t op[RT_OP_NR]; /* events */
	uint64_t objects;      /* incarnations: the last serial */
	uint64_t outside;      /* of those, how many are not counted: they are not in the sample */
	uint64_t died, incomplete, forced;
	uint32_t lived;      /* events of a long life of late: what lives had, and less with each one that is shorter */
	uint64_t put_deaths; /* died of a put: a free of a living one is then not the usual end */
	uint64_t first_death_ns;
	int64_t max_count; /* highest counter that agreed with the balance */
	bool damaged;      /* events of the type are missing */
	bool miscounted;   /* what was read as its counter is none: as damaged */
	struct lt_counting counting;
	bool unarmed;           /* some function of the type is not probed: only the counter tells what it did */
	bool makers;            /* so is a constructor, armed or not */
	bool has_free;          /* the free function is probed, it was said */
	bool shared;            /* some object was worked on by more than one thread */
	struct rt_map owner_of; /* function -> index of owners */
	RT_VEC(struct lt_owner) owners;
	struct lt_learnt learnt; /* of objects that are of no class */
};

struct lt_process {
	uint32_t pid; /* RT_PID_MAKE */
	int status;
	bool ended, execed, forked, attached, census;
	uint32_t epoch; /* censuses that are complete */
	const char *exe;
	uint64_t end_ns;
	uint64_t left_ns; /* it was let go then and went on; 0 = not so */
};

struct lt_frame {
	uint64_t cfa, pc;
	uint32_t function;
};

/* A place in the ring of threads by their last events; older of the head is the newest. */
struct lt_turn {
	struct lt_turn *newer, *older;
};

/* A pointer that a thread stored to what was no object by then: constructors keep what they make in an index. */
struct lt_early {
	uint64_t object;
	struct lt_event store;
};

enum { LT_EARLY = 4 /* of a thread */ };

/* An object was given to what ends it, by its name. */
struct lt_final {
	uint64_t object;
	uint32_t use;
};

struct lt_thread {
	uint32_t pid, tid, nr;  /* nr: frames, outermost first */
	uint32_t stack, jumped; /* jumped: src id of the innermost frame, which is not in the stack; 0 = none */
	struct lt_plain plain;  /* of the stack; nr 0 where there is a jumped one, too */
	uint32_t outside;       /* frames outside of those of the plain stack: known from before it was cut */
	uint64_t sp;
	uint32_t process; /* index + 1, 0 = not looked up yet */
	uint32_t proven;  /* so many frames have a proven activation, outermost first */
	bool ended;       /* and its number was not given to another one since */
	bool told;        /* of something: last_ns is not that of its birth */
	bool stood;       /* frames are those, of what was seen, that it stood in when its process ended */
	bool struck;      /* and it was hit by the signal that ended the process */
	uint32_t stand;   /* the stack that it stood in then: index + 1, 0 = not known */
	uint64_t stand_sp;
	/* the run that had its frame, when last seen, where another function's stands now: it jumped there. 0: none did
	 */
	uint32_t left;
	bool stale;                 /* frames are those of the plain stack at sp, but were not written down */
	uint64_t from_ns, until_ns; /* what it does, it does in between */
	/* its last event: the operation itself may be still to come */
	uint64_t last_ns, last_object;
	uint32_t last_type; /* index */
	int16_t last_delta;
	struct lt_turn turn;
	struct lt_early early[LT_EARLY]; /* the last ones */
	uint8_t early_next;
	struct lt_final finals[LT_FINALS]; /* the last ones */
	uint8_t final_next;
	/* activations of the frames, outermost first, each less its index; room for as many behind them (thread.h) */
	uint32_t act[2 * RT_STACK_MAX];
	struct lt_frame frames[RT_STACK_MAX];
};

/* A program: the other modules are the namer's business. */
struct lt_module {
	uint32_t id;
	const char *path;
};

struct lt_holder {
	struct lt_inc *inc;
	uint64_t holder;
	uint32_t epoch;
	uint32_t pointers; /* of this holder */
};

struct lt_producer {
	uint32_t next;
	bool seen;
	uint64_t missing;
};

enum {
	LT_PRODUCERS = 1 << (32 - RT_SEQ_BITS),
	LT_KNOWN = 1 << 12,
	LT_THREADS_KNOWN = 1 << 8,
	LT_POINTS_KNOWN = 1 << 10
};

struct rt_lifetime {
	struct rt_namer *namer;
	struct rt_life_observer *observer; /* NULL = nobody looks */
	const char **only;                 /* types that make findings, NULL-terminated; NULL = all */
	uint32_t history;
	bool strict;
	const struct rt_watch *watch;
	struct lt_watched *watched;           /* newest first */
	uint64_t watched_events;              /* kept */
	RT_VEC(struct lt_watch_count) counts; /* by use */
	RT_VEC(int64_t) count_base;           /* by type */
	struct rt_arena arena;

	struct rt_intern names;     /* function names, files */
	struct rt_intern functions; /* name id and file id */
	struct rt_intern src_ids, stack_ids, site_ids, node_ids;
	RT_VEC(struct lt_src) srcs; /* by src id - 1 */
	RT_VEC(struct lt_machine) machines;
	RT_VEC(uint32_t) stack_srcs, nodes;
	RT_VEC(struct lt_stack) stacks; /* by stack id - 1 */
	RT_VEC(struct lt_site) sites;   /* by site id - 1 */
	RT_VEC(struct lt_use) uses;
	struct rt_map stack_by_wire, use_by_key, memo;
	struct rt_map
		told_name; /* name of a function in frames -> the name that it was told by, where that is another */

	RT_VEC(struct lt_type) types;
	RT_VEC(struct lt_class) classes;
	RT_VEC(struct lt_point) points;
	RT_VEC(struct lt_process) processes;
	RT_VEC(struct lt_module) modules;
	struct rt_intern builds;        /* build-ids */
	RT_VEC(uint32_t) build_modules; /* by id - 1: number of the module that has it */
	RT_VEC(struct rt_wire_loss *) losses;
	RT_VEC(const char *) limits; /* texts of those that are RT_LOSS_LIMIT */
	RT_VEC(struct lt_holder) holders;
	RT_VEC(struct lt_domain) domains;
	RT_VEC(struct lt_thread *) inside;          /* of a get or put, in the census that comes */
	struct rt_map class_by_name, class_by_word; /* (type, name); (word, pid and type) -> index */
	struct rt_map domain_by_key;                /* (pid, type) -> index */
	uint32_t domain;                            /* that was asked for last: index + 1 */
	struct rt_map type_by_id, point_by_id, process_by_pid, thread_by_id;
	struct lt_turn newest_turn; /* the head of the ring */
	uint32_t next_act;

	struct lt_window *window; /* made with the first record that has to wait */
	uint64_t newest_ns, first_ns, last_ns;

	struct lt_index by_object;   /* the last life at each address */
	struct rt_map ranges_by_key; /* (pid, type) -> index of ranges */
	RT_VEC(struct lt_ranges *) ranges;
	struct rt_map slots;       /* (slot, pid and type) -> object that a swap left there */
	struct lt_stored stored;   /* in which slot the pointer of which life was stored last */
	struct lt_strays *strays;  /* stray.c; NULL: none yet */
	const struct lt_inc *hint; /* of the event whose turn it is */
	struct lt_row live, graves;
	struct rt_slabs slabs; /* lives, packed or not */
	struct lt_packing packing;
	struct lt_inc *spare;         /* linked by before */
	RT_VEC(struct lt_inc *) incs; /* that were ever made: what is over is spare */
	size_t grave_events;          /* that their ledgers have room for */
	void *spare_ledger[10];       /* by size class */

	uint64_t events, inconsistent, lost, unbound_loss, blind;
	bool cut, untraced, gaps, given, by_rows;
	struct lt_sample sample;
	struct lt_tallies tallies;
	struct lt_spill spill;
	bool late_birth; /* an object was made before what had been done to it by then */
	bool lifeless;   /* events have times at which their thread or process did not live */
	bool nomem;
	bool began_earlier, goes_on; /* this is one file of several: what came before, or comes behind, is in others */
	uint32_t part;               /* number of the first file that was read, 0 = the only one */
	const char *earlier;         /* names of the files before it */
	struct lt_producer producers[LT_PRODUCERS];
	/* caches that each event asks first */
	struct lt_known known[LT_KNOWN];
	struct lt_thread *threads_known[LT_THREADS_KNOWN];
	uint32_t type_of_point[LT_POINTS_KNOWN]; /* by the point's id; index + 1 */
	struct rt_arena answer;                  /* the verdict */
	struct rt_verdict *verdict;
};

/* stack.c */
bool lt_stack_record(struct rt_lifetime *lt, const struct rt_wire_stack *r);
uint32_t lt_stack_find(struct rt_lifetime *lt, uint32_t pid, uint32_t wire_id); /* index + 1, 0 = unknown */
/* all frames of the stack have names from here on; false: out of memory */
bool lt_stack_named(struct rt_lifetime *lt, uint32_t stack, uint64_t time_ns);
/* number of the function and line of f; made when new. 0: out of memory */
uint32_t lt_src_make(struct rt_lifetime *lt, const struct rt_frame *f);
/* source id of the point's function, at no line, as far as frames tell of it; 0: out of memory */
uint32_t lt_src_named(struct rt_lifetime *lt, const struct lt_point *p);
const char *lt_src_text(const struct rt_lifetime *lt, uint32_t src); /* name of its function; "" unknown */
/*
 * source id of the function that the one which took the reference by e, or one that it was handed up to, has somebody
 * call later with the object; 0: none is known
 */
uint32_t lt_callback(struct rt_lifetime *lt, const struct lt_event *e);

/* site.c: what the event's numbers stand for, by asking the tables; NULL: no such point, or out of memory */
const struct lt_known *lt_known_find(struct rt_lifetime *lt, const struct rt_wire_event *e);
/* ... were it one of this point (index); false: out of memory */
bool lt_known_make(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t point, struct lt_known *ret);
/*
 * maybe.c: the event is of a point that may count something else: what it means for the object that lives at its
 * address, which may be of another type than the point's. false: none lives there
 */
bool lt_maybe(struct rt_lifetime *lt, const struct rt_wire_event *e, struct lt_known *known);

/* thread.c */
struct lt_thread *lt_thread_find(struct rt_lifetime *lt, uint32_t pid, uint32_t tid); /* made when new; or NULL */
/* It runs from now on, and its number may be a used one; it has ended. */
void lt_thread_begin(struct rt_lifetime *lt, uint32_t pid, uint32_t tid, uint64_t time_ns);
/* t stands in this stack (index + 1) and ends there: of its frames those stay that are in it */
void lt_thread_stand(struct rt_lifetime *lt, struct lt_thread *t, uint32_t stack, uint64_t sp);
void lt_thread_end(struct rt_lifetime *lt, uint32_t pid, uint32_t tid, uint64_t time_ns);
/* t is at the stack of use now; plain: what is known of it */
void lt_thread_see(struct rt_lifetime *lt, struct lt_thread *t, const struct lt_use *use, const struct lt_plain *plain,
		   uint64_t sp);
/*
 * What operations of other threads, told before e, may not have done yet when e read the counter:
 * with them missing it is lower by at most *ret_less, or higher by at most *ret_more.
 */
void lt_thread_flight(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct rt_wire_event *e,
		      int64_t *ret_less, int64_t *ret_more);
/* threads of the process of inc that told of something (else: that were born and have not) in the last LT_FLIGHT_NS,
 * but of nothing since since_ns; at most max */
uint64_t lt_thread_silent(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct rt_wire_event *e,
			  uint64_t since_ns, bool told, uint64_t max);
/* type.c */
bool lt_type_record(struct rt_lifetime *lt, const struct rt_wire_type *r);
bool lt_point_record(struct rt_lifetime *lt, const struct rt_wire_point *r);
bool lt_module_record(struct rt_lifetime *lt, const struct rt_wire_module *r);
void lt_map_record(struct rt_lifetime *lt, const struct rt_wire_map *r); /* learns which program a process runs */
/* the name (in names) that the function of this name was told by, where frames call it something else; else name */
uint32_t lt_told_name(const struct rt_lifetime *lt, uint32_t name);
struct lt_point *lt_point(struct rt_lifetime *lt, uint32_t id);
struct lt_process *lt_process(struct rt_lifetime *lt, uint32_t pid); /* made when new; NULL: out of memory */
uint32_t lt_domain_find(struct rt_lifetime *lt, uint32_t pid, uint32_t type);
/*
 * 0, or LT_API for get, put and the like, LT_API_NEW for constructors, LT_API_FINDS for finders, LT_API_GETS beside
 * LT_API for gets; LT_API_HANDS says that the returns of a function show what it hands out: it is nobody's API for
 * that.
 */
enum { LT_API = 1, LT_API_NEW = 2, LT_API_FINDS = 4, LT_API_HANDS = 8, LT_API_GETS = 16 };
unsigned lt_is_api(const struct rt_lifetime *lt, const struct lt_type *type, const struct lt_src *src);
/* by its declaration the function hands one up: it returns a pointer to the type, or to what begins with it */
bool lt_returns_object(const struct lt_type *type, const struct rt_frame *f);
/* by its declaration the function returns a pointer to what is none of the types, and no text */
bool lt_returns_stranger(const struct rt_lifetime *lt, const struct rt_frame *f);
/* the program, or a thread of it, begins with the function: whoever called it is the C library */
bool lt_starts_with(const struct rt_lifetime *lt, const struct lt_use *use, uint32_t function);
/* the function was seen to put an object of the type with its own hands */
bool lt_puts_itself(const struct rt_lifetime *lt, uint32_t function, uint32_t type);
/* the function is the C library's, or the dynamic linker's */
bool lt_is_c_library(const struct lt_src *src);
int32_t lt_type_start(const struct lt_type *type);

/* class.c */
bool lt_class_record(struct rt_lifetime *lt, const struct rt_wire_class *r);
/* e was taken in, and tells of what class its object is */
void lt_class_seen(struct rt_lifetime *lt, const struct rt_wire_event *e, uint32_t type);
/* healthy objects of the type, whatever their class */
uint64_t lt_type_healthy(const struct rt_lifetime *lt, uint32_t type);
/* what the objects of one kind have taught: of the class (index + 1), or of those of the type that are of none */
static inline struct lt_learnt *lt_learnt(struct rt_lifetime *lt, uint32_t type, uint32_t klass)
{
	return klass ? &lt->classes.data[klass - 1].learnt : &lt->types.data[type].learnt;
}
/* incarnation.c */
void lt_incarnation_event(struct rt_lifetime *lt, const struct rt_wire_event *e);
/* the last life at the address; one that is packed is unpacked */
struct lt_inc *lt_inc_find(const struct rt_lifetime *lt, uint32_t pid, uint32_t type, uint64_t object);
/* memory for a life, with anything in it; NULL: out of memory. And back, with its ledger. */
struct lt_inc *lt_inc_take(struct rt_lifetime *lt);
void lt_inc_spare(struct rt_lifetime *lt, struct lt_inc *inc);

/* range.c */
void lt_ranges_free(struct rt_lifetime *lt);
/* an exec left a descriptor open, which is pid's now: of the generation before all others have ended */
void lt_range_goes_on(struct rt_lifetime *lt, uint32_t pid, uint64_t object);
/* Bytes from where the object begins to where its first part ends; 0: nothing of that is left. */
uint32_t lt_range_size(const struct rt_lifetime *lt, const struct lt_inc *inc);
void lt_range_execed(struct rt_lifetime *lt, uint32_t pid);

/* observer.c: ev is about to be, or was, put into the ledger of inc; old is told at the place of outer from now on */
void lt_observe_step(struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev);
void lt_observe_moved(struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *old,
		      const struct lt_event *outer);
void lt_observe_end(struct rt_lifetime *lt, const struct lt_inc *inc);

/* row.c */
void lt_row_add(struct rt_lifetime *lt, struct lt_row *row, struct lt_inc *inc); /* sets lt->nomem */
void lt_row_remove(struct lt_row *row, struct lt_inc *inc);
/* the next life at or after *pos (0: the oldest), NULL at the end; it may be removed meanwhile */
struct lt_inc *lt_row_newer(const struct lt_row *row, uint32_t *pos);
/* the next one before *pos (UINT32_MAX: the newest), NULL at the end */
struct lt_inc *lt_row_older(const struct lt_row *row, uint32_t *pos);

/* ledger.c */
/*
 * Makes room for as many events as the life had that was at this address before, or, while memory is plenty, as the
 * lives of its type have: one that has to grow is copied.
 */
void lt_ledger_begin(struct rt_lifetime *lt, struct lt_inc *inc, uint32_t past);
/* one more event finds a place; false: out of memory */
bool lt_ledger_room(struct rt_lifetime *lt, struct lt_inc *inc);
struct lt_event *lt_ledger_add(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev);
/* ... of what is no operation: none is looked for in it. false: no room */
bool lt_ledger_add_silent(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev);
bool lt_ledger_insert_front(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev);
/* an empty ledger for cap (a power of two) events; false: out of memory */
bool lt_ledger_make(struct rt_lifetime *lt, struct lt_inc *inc, uint32_t cap);
void lt_ledger_free(struct rt_lifetime *lt, struct lt_inc *inc);

/* nest.c */
/* inner was made while the function of outer ran, on the same thread */
bool lt_nested(const struct rt_lifetime *lt, const struct lt_event *inner, const struct lt_event *outer);
/* one function jumped to the other: two points, one call */
bool lt_tail_called(const struct rt_lifetime *lt, const struct lt_event *a, const struct lt_event *b);
/* the function of out jumped to the one that e was done in, which stands in its place */
bool lt_jumped_to(const struct rt_lifetime *lt, const struct lt_event *e, const struct lt_event *out);
/* inner was done by the function that outer tells the entry or the return of, or by what that calls or jumps to */
bool lt_inside(const struct rt_lifetime *lt, const struct lt_event *inner, const struct lt_event *outer);
/* the stack of ev leads past where the function of outer was called from: it returned, be it to what calls from there
 * next */
bool lt_has_returned(const struct rt_lifetime *lt, const struct lt_event *outer, const struct lt_event *ev);
/* true: ev tells of an operation that the ledger has already; the ledger was put right */
bool lt_nest_merge(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev);
/* the get that a hidden get at return hands out, or NULL */
struct lt_event *lt_nest_hidden(struct rt_lifetime *lt, struct lt_inc *inc, const struct lt_event *ev);

/* owner.c: a dead object shows whose business its references were */
void lt_owners_learn(struct rt_lifetime *lt, const struct lt_inc *inc);

/*
 * silent.c: the life is over, its address is used again, and there was a fault in it that nobody met: evidence that is
 * to stay. So of each place LT_SILENT lives are; the others are only counted.
 */
bool lt_silent_fault(struct rt_lifetime *lt, const struct lt_inc *inc);

/* pair.c: what can be paired for sure; and where more is left than can be matched, what is likely, too */
void lt_pair_certain(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *ret);
void lt_pair(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *ret);
/* That frame of the stack of the event is left: what did the later one stands in its place, called from where it was.
 */
bool lt_frame_left(const struct rt_lifetime *lt, const struct lt_event *e, uint32_t machine,
		   const struct lt_event *last);
/* The run that took the reference did the put as the last thing, by jumping to it: the put looks like its caller's. */
bool lt_put_by_jump(const struct rt_lifetime *lt, const struct lt_event *taken, const struct lt_event *put);
/*
 * twice.c: x and y were done by one run of one function at two places of its code; and: event number ev was done twice
 * in a row there, in one line or the next, with nothing between
 */
bool lt_twice_in_run(const struct rt_lifetime *lt, const struct lt_event *x, const struct lt_event *y);
bool lt_twice_in_row(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev);
/* the run that put the last reference does so again by ev, in its line or the next */
bool lt_put_again(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev);
/*
 * The put that ended the object comes once more in its line, by ev, and reads the count that it had read: what ends
 * such objects frees them, and does not write the count before.
 */
bool lt_put_unwritten(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_event *ev);
/* as lt_twice_in_row(), in just one line */
bool lt_twice_in_line(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev);
/*
 * ... done twice in a row by a helper that one run of a function called twice in one line, or the second time by a jump
 * that left the function: its source (lt_src), 0: not so
 */
uint32_t lt_twice_by_helper(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev);
/* the number of the first of those two, of which ev is the second; LT_NO_EVENT: it is not */
uint16_t lt_first_by_helper(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev);
/* the number of the operation before ev that does the same in one line with it, or ev */
uint16_t lt_first_of_two(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev);
/* what a run did in one go with event number ev, right before or behind it: the same, as the last thing, by a jump */
bool lt_jumped_again(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev);
/* the put number ev gives back what the event right before it took, in the same run and in its line or the one before
 */
bool lt_back_at_once(const struct rt_lifetime *lt, const struct lt_inc *inc, uint16_t ev);
/* takes the partners from puts that one run did twice in a row: one may be too many, whatever it seems to end */
void lt_pair_doubt_rows(const struct rt_lifetime *lt, const struct lt_inc *inc, struct lt_units *units);
/*
 * hand.c: the reference that a function handed out when it returned, which event number out tells: of those taken
 * inside of it the last one that was not given back there, and that no slot is known to keep. Its number; LT_NO_EVENT:
 * none.
 */
uint32_t lt_handed_by(const struct rt_lifetime *lt, const struct lt_inc *inc, uint32_t out);
/* the units without a partner as marks; returns how many, more than LT_UNITS: too many, ret holds none.
 * unit_of[] (may be NULL) tells which unit a mark is */
unsigned lt_marks(const struct rt_lifetime *lt, const struct lt_inc *inc, const struct lt_units *units,
		  struct lt_mark ret[LT_UNITS], uint16_t unit_of[LT_UNITS]);

static inline const struct lt_src *lt_src(const struct rt_lifetime *lt, uint32_t id)
{
	static const struct lt_src nothing;

	return id && id <= lt->srcs.len ? &lt->srcs.data[id - 1] : &nothing;
}

/* the point's function, by its name or, where it has none, by where it begins */
static inline bool lt_point_is(const struct lt_point *p, const struct lt_src *src)
{
	if (src->name)
		return p->name == src->name;
	return src->frame.entry && p->function == src->frame.entry && p->module == src->frame.module_id;
}

static inline const struct lt_site *lt_site(const struct rt_lifetime *lt, uint32_t id)
{
	static const struct lt_site nothing;

	return id && id <= lt->sites.len ? &lt->sites.data[id - 1] : &nothing;
}

/* of path[0] */
static inline uint32_t lt_site_function(const struct rt_lifetime *lt, uint32_t site)
{
	const struct lt_site *s = lt_site(lt, site);

	return s->nr ? lt_src(lt, s->src[0])->function : 0;
}

/* of the site that e was done at */
static inline uint32_t lt_event_function(const struct rt_lifetime *lt, const struct lt_event *e)
{
	return lt_site_function(lt, lt->uses.data[e->use].site);
}

/* source id of the innermost function of the site of e */
static inline uint32_t lt_event_src(const struct rt_lifetime *lt, const struct lt_event *e)
{
	return lt_site(lt, lt->uses.data[e->use].site)->src[0];
}

/* true when function (a lt_src.function) is on the path of site */
static inline bool lt_site_passes(const struct rt_lifetime *lt, uint32_t site, uint32_t function)
{
	const struct lt_site *s = lt_site(lt, site);

	for (uint32_t i = 0; function && i < s->nr; i++) {
		if (lt_src(lt, s->src[i])->function == function)
			return true;
	}
	return false;
}

/* where the thread is remembered, for the next event; LT_THREADS_KNOWN is 2^8 */
static inline struct lt_thread **lt_thread_known(struct rt_lifetime *lt, uint32_t pid, uint32_t tid)
{
	return &lt->threads_known[(tid * 0x9e3779b1u ^ pid) >> 24];
}

static inline bool lt_thread_is(const struct lt_thread *t, uint32_t pid, uint32_t tid)
{
	return t->tid == tid && t->pid == pid;
}

/* made when new; NULL: out of memory */
static inline struct lt_thread *lt_thread(struct rt_lifetime *lt, uint32_t pid, uint32_t tid)
{
	struct lt_thread *t = *lt_thread_known(lt, pid, tid);

	return t && lt_thread_is(t, pid, tid) ? t : lt_thread_find(lt, pid, tid);
}

/* activation of frame number m from the innermost one on, 0 = there is none, or it is not proven */
static inline uint32_t lt_thread_act_at(const struct lt_thread *t, unsigned m)
{
	uint32_t at = t->nr - 1 - m; /* huge where there is none */

	return (t->act[at % RT_STACK_MAX] + at) & (0u - (at < t->proven));
}

/* activation of machine frame number m (or LT_JUMPED, LT_GONE) of the stack that was seen last, 0 = not proven */
static inline uint32_t lt_thread_act(const struct lt_thread *t, unsigned m)
{
	if (m == LT_JUMPED)
		m = t->jumped ? 0 : LT_GONE;
	else if (t->jumped)
		m++;
	return t->stack ? lt_thread_act_at(t, m) : 0;
}

/*
 * Where what is known of such events is remembered. Numbers of stacks follow each other, and so do their places: they
 * share cache lines and pages.
 */
static inline struct lt_known *lt_known_place(struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	uint32_t from = (e->point * 0x85ebca6bu ^ e->head.pid * 0xc2b2ae35u) >> 16;

	return &lt->known[(from + e->stack) % LT_KNOWN];
}

static inline bool lt_known_is(const struct lt_known *k, const struct rt_wire_event *e)
{
	return k->wire_point == e->point && k->wire_stack == e->stack && k->pid == e->head.pid && e->point;
}

static inline const struct lt_known *lt_known(struct rt_lifetime *lt, const struct rt_wire_event *e)
{
	const struct lt_known *k = lt_known_place(lt, e);

	if (lt_known_is(k, e))
		return k;
	return lt_known_find(lt, e);
}

static inline const struct lt_point *lt_event_point(const struct rt_lifetime *lt, const struct lt_event *e)
{
	return &lt->points.data[lt->uses.data[e->use].point];
}

/* e counts nothing */
static inline bool lt_event_silent(const struct rt_lifetime *lt, const struct lt_event *e)
{
	return e->op == RT_OP_MOVE && lt_point_silent(lt_event_point(lt, e));
}

/* e took a reference */
static inline bool lt_event_takes(const struct lt_event *e)
{
	return e->op == RT_OP_NEW || e->delta > 0;
}

/* a get or put of more than one reference: of two additions in a row compilers make one of 2 */
static inline bool lt_event_several(const struct lt_event *e)
{
	return (e->op == RT_OP_GET && e->delta > 1) || (e->op == RT_OP_PUT && e->delta < -1);
}

/* lives that are counted */
static inline uint64_t lt_type_objects(const struct lt_type *t)
{
	return t->objects - t->outside;
}

/* index + 1 of the domain, made when new; 0: out of memory */
static inline uint32_t lt_domain(struct rt_lifetime *lt, uint32_t pid, uint32_t type)
{
	const struct lt_domain *d = lt->domain ? &lt->domains.data[lt->domain - 1] : NULL;

	return d && d->pid == pid && d->type == type ? lt->domain : lt_domain_find(lt, pid, type);
}

/* the object of a life by its number, and whose it is */
static inline uint64_t lt_life_key(const struct rt_lifetime *lt, uint32_t ref, struct lt_domain *ret)
{
	const void *life = rt_slab_at(&lt->slabs, ref & ~LT_PACKED);
	const struct lt_inc *inc = life;

	if (ref & LT_PACKED) {
		*ret = lt->domains.data[lt_packed_domain(life) - 1];
		return ((const struct lt_packed *)life)->object;
	}
	*ret = (struct lt_domain){ inc->pid, inc->type };
	return inc->object;
}

static inline struct lt_type *lt_inc_type(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	return &lt->types.data[inc->type];
}
