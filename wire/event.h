/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Everything that an engine can say.
 *
 * A stream is a sequence of records. Every record starts with struct
 * rt_wire_head, is a multiple of 8 bytes long and says its own length, so that
 * a reader can skip kinds that it does not know. The same bytes travel from the
 * BPF ring to the analysis and into the spool: nothing defines a second event.
 *
 * All values are in the byte order of the machine that recorded them; files
 * carry that order in their own header. Times are CLOCK_MONOTONIC nanoseconds.
 *
 * This header is shared with BPF programs and with the in-process agent: it
 * includes <stdint.h> at most, and no struct may change its layout (the
 * static asserts at the end hold every offset).
 */
#pragma once

#ifndef RT_WIRE_NO_STDINT
#include <stdint.h>
#endif

/* What a record is. The numbers are in files: never reuse one. */
enum rt_wire_kind {
	RT_WIRE_EVENT = 1,   /* struct rt_wire_event: one operation on one object */
	RT_WIRE_STACK = 2,   /* struct rt_wire_stack: a call stack, sent once */
	RT_WIRE_TYPE = 3,    /* struct rt_wire_type: a family of objects */
	RT_WIRE_POINT = 4,   /* struct rt_wire_point: a probe point */
	RT_WIRE_MODULE = 5,  /* struct rt_wire_module: an ELF image */
	RT_WIRE_MAP = 6,     /* struct rt_wire_map: a module mapped into a process */
	RT_WIRE_UNMAP = 7,   /* struct rt_wire_map: the range is gone */
	RT_WIRE_FORK = 8,    /* struct rt_wire_task: head is the parent, other = child pid */
	RT_WIRE_EXEC = 9,    /* struct rt_wire_task: head carries the NEW generation */
	RT_WIRE_EXIT = 10,   /* struct rt_wire_task: value = wait status */
	RT_WIRE_THREAD = 11, /* struct rt_wire_task: other = new tid; value = 1 when it ends */
	RT_WIRE_LOSS = 12,   /* struct rt_wire_loss: something is missing, and why */
	RT_WIRE_MARK = 13,   /* struct rt_wire_task: value = enum rt_mark */
	RT_WIRE_HELD = 14,   /* struct rt_wire_held: census: a pointer to a live object */
	RT_WIRE_COUNT = 15,  /* struct rt_wire_held: counter read from memory at a census */
	RT_WIRE_HITS = 16,   /* struct rt_wire_loss: a point's own hit counter (value); several are added */
	RT_WIRE_ATTR = 17,   /* struct rt_wire_attr: a perf event; before the first PERF that names it */
	RT_WIRE_PERF = 18,   /* struct rt_wire_perf: one record of perf_event_open(2), as the kernel wrote it */
	RT_WIRE_BLOB = 19,   /* struct rt_wire_blob: a part of something large that the recording keeps */
	RT_WIRE_PART = 20,   /* struct rt_wire_part: the stream lies in several files, and this is a seam */
	RT_WIRE_SAMPLE = 21, /* struct rt_wire_sample: from here on only some objects are traced */
	RT_WIRE_TALLY = 22,  /* struct rt_wire_tally: counting mode: an object that is not balanced */
	RT_WIRE_SITE = 23,   /* struct rt_wire_site: counting mode: what was done from one stack */
	RT_WIRE_CLASS =
		24, /* struct rt_wire_class: what objects of the process tell of their class; before the events */
	RT_WIRE_STAND = 25, /* struct rt_wire_stand: where a thread stood when its process ended; before its EXIT */
};

/* What happened to the object. */
enum rt_op {
	RT_OP_NONE = 0,
	RT_OP_NEW,   /* the object exists from here on */
	RT_OP_GET,   /* one more reference (delta says how many) */
	RT_OP_PUT,   /* one reference given back */
	RT_OP_FREE,  /* the memory goes away, whatever the count */
	RT_OP_SINK,  /* a floating creation reference is taken over */
	RT_OP_STEAL, /* the callee takes over the caller's reference (delta 0) */
	RT_OP_SWAP,  /* the slot drops one object and takes another (aux = slot) */
	RT_OP_MOVE,  /* a reference changes its holder (delta 0) */
	RT_OP_USE,   /* the object is used, its count does not change */
	RT_OP_NR
};

/* Flags of struct rt_wire_event. */
enum {
	RT_EV_COUNT_READ = 1 << 0,  /* count was loaded at the probe: a bound */
	RT_EV_COUNT_EXACT = 1 << 1, /* count comes from the operation itself */
	RT_EV_HIDDEN = 1 << 2,      /* a find or lookup that hands out a reference */
	RT_EV_AT_RETURN = 1 << 3,   /* seen when the function returned */
	RT_EV_INLINE = 1 << 4,      /* seen at an inlined instance: frame 0 is the site itself */
	RT_EV_NO_OBJECT = 1 << 5,   /* the object could not be read (fault): object is 0 */
	RT_EV_COUNT_FAULT = 1 << 6, /* the counter could not be read */
	RT_EV_INHERITED = 1 << 7,   /* replayed for a forked child, not its own doing */
	RT_EV_OUTSIDE = 1 << 8,     /* of a new: this life is not in the sample, and nothing more is told of it */
	RT_EV_MAYBE = 1 << 9, /* it counts only where an object is known to live: the code does not say of what it is */
	RT_EV_FIRST = 1 << 10, /* of a point alone: its object is the first argument of what it stands for */
};

/*
 * Of an event, where the rate of the sample may change: the rank of its object's life, at most RT_RANK_MAX. Of all
 * lives one of 2^n has a rank of n or more, and those are traced while the rate is that.
 */
#define RT_RANK_SHIFT 12
#define RT_RANK_MAX 15u
#define RT_RANK_OF(flags) ((unsigned)(flags) >> RT_RANK_SHIFT & RT_RANK_MAX)

/* pid field: process id in the low 22 bits, exec generation above them. */
#define RT_PID_BITS 22
#define RT_PID_MASK ((1u << RT_PID_BITS) - 1)
#define RT_PID_OF(p) ((p)&RT_PID_MASK)
#define RT_GEN_OF(p) ((p) >> RT_PID_BITS)
#define RT_PID_MAKE(pid, gen) (((uint32_t)(gen) << RT_PID_BITS) | ((uint32_t)(pid)&RT_PID_MASK))

/* seq field: producer (CPU, or ring of a thread) in the top 12 bits, a counter modulo 2^20 below. */
#define RT_SEQ_BITS 20
#define RT_SEQ_MASK ((1u << RT_SEQ_BITS) - 1)

struct rt_wire_head {
	uint16_t size; /* bytes of the whole record, a multiple of 8 */
	uint8_t kind;  /* enum rt_wire_kind */
	uint8_t op;    /* enum rt_op for events, else 0 */
	uint32_t seq;  /* producer and counter; 0 for records that user space made */
	uint64_t time_ns;
	uint32_t pid; /* RT_PID_MAKE(): process and exec generation */
	uint32_t tid; /* thread, 0 where it has no meaning */
};

/* One operation on one object: one cache line. */
struct rt_wire_event {
	struct rt_wire_head head;
	uint64_t object; /* address of the object (or fd, id): the key of its life */
	uint64_t aux;    /* slot address (T **), second object, size or result: see the point */
	uint64_t sp;     /* CFA of the probed function: sp in its caller before the call pushed */
	uint32_t count; /* the counter BEFORE the operation, see RT_EV_COUNT_*; where the result is the object: AFTER it
			 */
	uint32_t point; /* id of the probe point, see struct rt_wire_point */
	uint32_t stack; /* id of the stack, 0 = none was kept */
	int16_t delta;  /* how the count changes: +1 get, -1 put, 0 use */
	uint16_t flags; /* RT_EV_* */
};

/* Why a stack ends where it ends. */
enum rt_stack_end {
	RT_STACK_ROOT = 0,      /* reached the outermost frame */
	RT_STACK_DEPTH = 1,     /* more frames than fit */
	RT_STACK_NO_FP = 2,     /* the frame-pointer chain leaves the stack here */
	RT_STACK_COPY = 3,      /* the copied part of the stack ends here */
	RT_STACK_FAULT = 4,     /* stack memory could not be read */
	RT_STACK_UNCHECKED = 5, /* cut at a frame whose caller could not be proven */
	RT_STACK_GIVEN = 6,     /* as given (text events) */
	RT_STACK_NO_ROW = 7,    /* no unwind information for the code of the last frame: JIT, hand-written */
	RT_STACK_NO_RULE = 8,   /* it has some, of a kind that is not followed */
	RT_STACK_OTHER = 9,     /* it goes on on another stack: a signal's own, a coroutine's */
};

enum {
	RT_FRAME_SITE = 1 << 0,  /* pc is the operation itself, not a return address */
	RT_FRAME_TRAMP = 1 << 1, /* pc was a return trampoline, put right */
	RT_FRAME_ROWS = 1 << 2, /* of frame[0]: the whole stack was walked by unwind rows, and needs no further proof */
};

#define RT_STACK_MAX 256 /* frames in one record */

struct rt_wire_frame {
	uint64_t pc;  /* return address (innermost first), unless RT_FRAME_SITE */
	uint32_t cfa; /* CFA of the frame that pc lies in, minus the event's sp; 0 = unknown */
	uint32_t flags;
};

/* frame[0] is the get/put site: the return address read from [sp - 8]. */
struct rt_wire_stack {
	struct rt_wire_head head;
	uint32_t id; /* as named by events of the same pid */
	uint16_t nr;
	uint16_t end; /* enum rt_stack_end */
	struct rt_wire_frame frame[];
};

#define RT_START_UNKNOWN (-1)
#define RT_COUNTER_UNKNOWN (-1)

struct rt_wire_type {
	struct rt_wire_head head;
	uint32_t id;            /* 1.. */
	int32_t start;          /* count after new, or RT_START_UNKNOWN */
	int32_t counter_offset; /* bytes from the object, or RT_COUNTER_UNKNOWN */
	uint32_t counter_size;  /* bytes: 1, 2, 4 or 8 */
	uint32_t object_size;   /* bytes, 0 = unknown */
	uint32_t flags;         /* RT_TYPE_* */
	/* name, and where debug information calls the struct something else, that: each NUL-terminated; padded to 8
	 * with zeroes */
	char name[];
};

enum {
	RT_TYPE_FLOATING = 1 << 0,   /* new makes a floating reference that a sink takes over */
	RT_TYPE_HEAP_ONLY = 1 << 1,  /* new/free only: no counting */
	RT_TYPE_FREE_KNOWN = 1 << 2, /* the free function is probed: death is seen */
	RT_TYPE_KERNEL = 1 << 3,     /* the kernel's: objects are ranges, and a new one ends what was there */
	RT_TYPE_DESCRIPTOR = 1 << 4, /* objects are file descriptors, each plus 1 */
	RT_TYPE_SAMPLED = 1 << 5,    /* only some of its objects are traced, each for its whole life */
	RT_TYPE_OWNED = 1 << 6, /* found, not told: nothing counts its objects, and more may end them than is probed */
};

/* The word by which objects of a type say in process head.pid of what class they are, and how that is called. */
struct rt_wire_class {
	struct rt_wire_head head;
	uint32_t type; /* struct rt_wire_type.id */
	uint32_t pad;
	uint64_t word;
	char name[]; /* NUL-terminated, padded to 8 */
};

struct rt_wire_point {
	struct rt_wire_head head; /* head.op = enum rt_op */
	uint32_t id;              /* 1.., as named by events */
	uint32_t type;            /* struct rt_wire_type.id */
	uint32_t module;          /* struct rt_wire_module.id */
	int32_t delta;
	uint64_t address;  /* ELF address of the armed instruction */
	uint64_t function; /* ELF address of the function (or inlined instance) that it stands for */
	uint32_t flags;    /* RT_EV_HIDDEN, RT_EV_AT_RETURN, RT_EV_INLINE, RT_EV_FIRST */
	uint32_t aux;      /* enum rt_aux */
	/*
	 * function name, and where debug information calls the same code something else, that; behind the name of a
	 * block that is freed (RT_AUX_BLOCK), that of the function, inlined there or called before, which ends the part
	 * of it that the slot lies in: each NUL-terminated; padded to 8 with zeroes
	 */
	char name[];
};

enum rt_aux {
	RT_AUX_NONE = 0,
	RT_AUX_SLOT = 1,
	RT_AUX_OBJECT = 2,
	RT_AUX_SIZE = 3,
	RT_AUX_RESULT = 4,
	RT_AUX_BLOCK = 5,  /* slot in a block that is freed right here */
	RT_AUX_CLASS = 6,  /* word of the object that tells its class, see struct rt_wire_class; 0 = not read */
	RT_AUX_STORED = 7, /* slot that a pointer to the object is stored in right here */
};

#define RT_BUILD_ID_MAX 20 /* bytes of a build-id in records, as in the kernel's; of a longer one, the first */

struct rt_wire_module {
	struct rt_wire_head head;
	uint32_t id;           /* 1.. */
	uint8_t build_id_size; /* 0 = none */
	uint8_t content_hash;  /* 1: build_id is a hash of the contents */
	uint16_t flags;        /* RT_MODULE_* */
	uint8_t build_id[RT_BUILD_ID_MAX];
	uint32_t pad;
	char path[]; /* where it was seen, NUL-terminated, padded to 8 */
};

enum { RT_MODULE_MAIN = 1 << 0, RT_MODULE_DELETED = 1 << 1 };

/* [start, end) in process head.pid shows the file bytes from file_offset on. */
struct rt_wire_map {
	struct rt_wire_head head;
	uint64_t start, end;
	uint64_t file_offset;
	uint32_t module; /* 0 for UNMAP */
	uint32_t pad;
};

enum rt_mark {
	RT_MARK_ATTACH = 1,
	RT_MARK_CENSUS = 2,
	RT_MARK_DETACH = 3,
	RT_MARK_CENSUS_SKIPPED = 4,
	RT_MARK_EXECED = 5, /* behind EXEC: all that lives on was told (RT_HOLDER_EXEC); what else the kernel had handed
			       out before has ended */
	RT_MARK_INSIDE = 6, /* before the COUNTs of a census: thread head.tid stands in the get or put that was its last
			       event, and may have counted yet or not */
};

/*
 * The end of a thread is later than each of its events, and so is that of a process; a tid is told again before the
 * first event of a thread that gets a used one. The end of the first thread is told where others go on. Threads that
 * are killed, by the end of the process or by its exec, are not told one by one: they stood in the middle of something.
 */
struct rt_wire_task {
	struct rt_wire_head head;
	uint32_t other; /* child pid (RT_PID_MAKE), new tid */
	int32_t value;
};

/*
 * Where a thread stood when its process ended: behind all of its events. What functions on that stack still owed was
 * not forgotten by them. The stack is one of STACK records, walked by unwind rows; cfa is relative to sp here.
 */
struct rt_wire_stand {
	struct rt_wire_head head;
	uint64_t sp;     /* of the thread */
	uint32_t stack;  /* id of the stack */
	uint32_t signal; /* that hit this thread and ended the process by it; 0 = none did */
};

/* Something that did not arrive. point 0 = not bound to a point. */
enum rt_loss {
	RT_LOSS_RING = 1,     /* ring full: events dropped */
	RT_LOSS_STACKMAP = 2, /* stack table full: event kept, stack resent */
	RT_LOSS_FAULT = 3,    /* object, slot or stack memory could not be read */
	RT_LOSS_RETURNS = 4,  /* entries whose return was never seen (nesting) */
	RT_LOSS_UNARMED = 5,  /* the point could not be armed; text says why */
	RT_LOSS_CUT = 6,      /* the input ends early, or bytes were damaged */
	RT_LOSS_UNTRACED = 7, /* a process could not be followed; text says why */
	RT_LOSS_BALANCE = 8,  /* hits != records + drops */
	RT_LOSS_REFUSED = 9,  /* a function of the spec that cannot be probed; text says why */
	RT_LOSS_DOUBT = 10,   /* a definition that may hit wrong places, as the user allowed; text says why */
	RT_LOSS_PASSED = 11,  /* nothing is missing: hits at objects that are not in the sample */
	RT_LOSS_RIGHTS = 12,  /* a process ran without the rights of its file; text says which */
	RT_LOSS_LIMIT =
		13, /* nothing is missing of what counts: places were too many to be looked at; text says which */
	RT_LOSS_NR
};

struct rt_wire_loss {
	struct rt_wire_head head;
	uint32_t cause; /* enum rt_loss */
	uint32_t point;
	uint64_t value; /* how many; 0 = unknown. RT_LOSS_REFUSED: of which type, by its id; 0 = the text has to tell */
	char text[];    /* NUL-terminated, padded to 8; may be empty */
};

/* A census finds who still points to an object; and what its counter says. */
enum rt_holder {
	RT_HOLDER_NONE = 0,   /* nothing reachable points to it */
	RT_HOLDER_GLOBAL = 1, /* .data/.bss/TLS of a module, slot tells where */
	RT_HOLDER_STACK = 2,  /* a thread's stack or registers */
	RT_HOLDER_HEAP = 3,   /* memory that is itself reachable from a root */
	RT_HOLDER_OBJECT = 4, /* inside another traced live object: holder */
	RT_HOLDER_FREED = 5,  /* the allocator has the object's memory back: who points there does not matter */
	RT_HOLDER_EXEC = 6,   /* no pointer: a descriptor that an exec left open; head carries the new generation */
};

struct rt_wire_held {
	struct rt_wire_head head;
	uint64_t object;
	uint64_t slot;   /* where the pointer is; 0 for COUNT */
	uint64_t holder; /* traced object that contains the slot, else 0 */
	uint32_t where;  /* enum rt_holder (HELD); bytes of the counter (COUNT) */
	uint32_t value;  /* HELD: number of pointers of this kind; COUNT: the counter */
};

/* A perf event: perf_event_attr and what it is called. */
struct rt_wire_attr {
	struct rt_wire_head head;
	uint32_t id;         /* 1.., as named by PERF records */
	uint32_t attr_bytes; /* of struct perf_event_attr that follows, a multiple of 8 */
	uint32_t ids;        /* number of u64 event ids behind the attr (one per CPU or thread) */
	uint32_t name_bytes; /* of the name behind the ids, NUL-terminated, padded to 8 */
	uint8_t data[];
};

/*
 * A record of the perf ring: struct perf_event_header and what follows it,
 * without change. head.time_ns is the record's own time where it has one.
 */
struct rt_wire_perf {
	struct rt_wire_head head;
	uint32_t attr; /* struct rt_wire_attr.id whose layout it has */
	uint32_t pad;
	uint8_t data[];
};

enum rt_blob {
	RT_BLOB_BPF_PROG = 1,     /* struct rt_bpf_image, encoded (src/bpfimage); id = program id */
	RT_BLOB_BTF = 2,          /* raw BTF; id = BTF id */
	RT_BLOB_TRACING_DATA = 3, /* formats of raw fields, as perf.data keeps them (src/perfdata) */
	RT_BLOB_KSYMS = 4,        /* lines "address type name" of kernel symbols that samples need */
	RT_BLOB_HOST = 5,         /* lines "key value" about the machine (src/perfdata) */
	RT_BLOB_BPF_LOST = 6,     /* text: what of a BPF program could not be kept, and why; id = program id */
	RT_BLOB_BPF_EXTRA = 7, /* rt_bpf_extra_encode() (src/bpfimage): who loaded a program, when, map names; the last
				  one counts; id = program id */
};

/* Bytes [offset, offset + bytes) of a blob of total bytes. The parts of one blob follow each other in order. */
struct rt_wire_blob {
	struct rt_wire_head head;
	uint32_t what; /* enum rt_blob */
	uint32_t id;
	uint32_t total, offset, bytes;
	uint32_t pad;
	uint8_t data[]; /* padded to 8 */
};

/*
 * A stream in several files. BEGIN is the first record of each file but the first; from there to STATED the file says
 * again what it needs to be read alone (types, points, modules, mappings; processes by MARK_ATTACH), and a stack again
 * before the first event that names it. END stands in each file but the last; behind it the processes are left
 * (MARK_DETACH). Who reads the files one after the other drops what is between BEGIN and STATED, and all behind END.
 */
enum rt_part { RT_PART_BEGIN = 1, RT_PART_STATED = 2, RT_PART_END = 3 };

struct rt_wire_part {
	struct rt_wire_head head;
	uint64_t recording; /* the same in all files of it */
	uint32_t number;    /* of this file: 1.. */
	uint32_t where;     /* enum rt_part */
	char text[];        /* BEGIN: names of the earlier files; NUL-terminated, padded to 8 */
};

/* Of struct rt_wire_sample. */
enum {
	RT_SAMPLE_GOVERNED = 1 << 0, /* the rate follows the cost: it is 2^-n, and each event says its rank */
	RT_SAMPLE_TOTAL = 1 << 1, /* the end of it: cost_ppm is that of the whole run, and the rate does not change */
};

/*
 * From here on those lives are traced whose hash is below `rate`. Who lives across a change to fewer and is not among
 * them any more is told no further; who lives across a change to more and was not among them before is told from the
 * middle of its life on.
 */
struct rt_wire_sample {
	struct rt_wire_head head;
	uint32_t rate;  /* of 2^32; 0 = all */
	uint32_t flags; /* RT_SAMPLE_* */
	/* where it is governed */
	uint32_t limit_ppm; /* what hooks may cost of the program's own time, in millionths */
	uint32_t cost_ppm;  /* what they did cost since the record before; 0 = not known */
	uint32_t event_ns;  /* the calibrated cost of an event, */
	uint32_t passed_ns; /* and of a hit of which nothing is told */
};

/* Operations from one stack, in counting mode. */
struct rt_wire_counted {
	uint32_t stack, point;
	uint64_t n;
};

/* An object whose references do not come to 0, with all that was counted of its life; of no order. */
struct rt_wire_tally {
	struct rt_wire_head head;
	uint64_t object;
	uint64_t first_ns, last_ns; /* of its operations */
	int64_t balance;            /* references that are open, where its new was seen; else taken less given back */
	uint32_t type;
	uint32_t news, gets, puts;
	uint32_t others; /* operations from stacks that there was no room for */
	uint32_t nr;
	struct rt_wire_counted site[];
};

/* Of all objects of the process, balanced or not. */
struct rt_wire_site {
	struct rt_wire_head head;
	struct rt_wire_counted all;
	uint32_t what; /* enum rt_counted_what */
	uint32_t pad;
};

enum rt_counted_what {
	RT_SITE_ALL = 0,
	RT_SITE_STRAY =
		1, /* only what gave back references that were none, at addresses where objects were made since */
};

/* Largest part: the size field of a record has 16 bits. */
#define RT_BLOB_PART 61440

#define RT_WIRE_ALIGN(n) (((n) + 7u) & ~7u)

#define RT_WIRE_AT(type, member, offset) \
	_Static_assert(__builtin_offsetof(struct type, member) == (offset), #type "." #member)
_Static_assert(sizeof(struct rt_wire_head) == 24, "head");
_Static_assert(sizeof(struct rt_wire_event) == 64, "one cache line");
RT_WIRE_AT(rt_wire_head, size, 0);
RT_WIRE_AT(rt_wire_head, kind, 2);
RT_WIRE_AT(rt_wire_head, op, 3);
RT_WIRE_AT(rt_wire_head, seq, 4);
RT_WIRE_AT(rt_wire_head, time_ns, 8);
RT_WIRE_AT(rt_wire_head, pid, 16);
RT_WIRE_AT(rt_wire_head, tid, 20);
RT_WIRE_AT(rt_wire_event, object, 24);
RT_WIRE_AT(rt_wire_event, aux, 32);
RT_WIRE_AT(rt_wire_event, sp, 40);
RT_WIRE_AT(rt_wire_event, count, 48);
RT_WIRE_AT(rt_wire_event, point, 52);
RT_WIRE_AT(rt_wire_event, stack, 56);
RT_WIRE_AT(rt_wire_event, delta, 60);
RT_WIRE_AT(rt_wire_event, flags, 62);
RT_WIRE_AT(rt_wire_stack, id, 24);
RT_WIRE_AT(rt_wire_stack, frame, 32);
RT_WIRE_AT(rt_wire_type, name, 48);
RT_WIRE_AT(rt_wire_point, address, 40);
RT_WIRE_AT(rt_wire_point, name, 64);
RT_WIRE_AT(rt_wire_module, build_id, 32);
RT_WIRE_AT(rt_wire_module, path, 56);
RT_WIRE_AT(rt_wire_map, start, 24);
RT_WIRE_AT(rt_wire_map, module, 48);
RT_WIRE_AT(rt_wire_task, other, 24);
RT_WIRE_AT(rt_wire_loss, value, 32);
RT_WIRE_AT(rt_wire_loss, text, 40);
RT_WIRE_AT(rt_wire_held, object, 24);
RT_WIRE_AT(rt_wire_attr, data, 40);
RT_WIRE_AT(rt_wire_perf, data, 32);
RT_WIRE_AT(rt_wire_blob, data, 48);
RT_WIRE_AT(rt_wire_held, where, 48);
RT_WIRE_AT(rt_wire_part, text, 40);
_Static_assert(sizeof(struct rt_wire_map) == 56, "map");
_Static_assert(sizeof(struct rt_wire_task) == 32, "task");
_Static_assert(sizeof(struct rt_wire_held) == 56, "held");
_Static_assert(sizeof(struct rt_wire_sample) == 48, "sample");
_Static_assert(sizeof(struct rt_wire_tally) == 80, "tally");
_Static_assert(sizeof(struct rt_wire_site) == 48, "site");
