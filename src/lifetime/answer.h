/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one verdict is made from. Everything here lives in lt->answer or in the
 * vectors of struct lt_answer, and is made anew for each verdict.
 */
#pragma once

#include "lifetime/model.h"
#include "lifetime/site.h"

/* One reference that was left open at the end, or one event that should not be. */
struct lt_ref {
	struct lt_inc *inc;
	uint32_t site;        /* where the reference came from */
	uint16_t ev;          /* ledger index: the get; LT_NO_EVENT */
	uint16_t bad;         /* ledger index: the extra put or the use; LT_NO_EVENT */
	uint32_t alternative; /* site that could have been left instead, 0 = none */
	double doubt;         /* how likely that is: 0..0.5 */
	uint32_t more;        /* references that it stands for besides (thin.h) */
	bool shown;           /* what one run did shows the fault, whatever else is not known of the object */
	bool death;           /* that the program died is all that speaks for the fault */
	bool invariant;       /* all objects of the type say that it is the one that is left (invariant.c) */
};

/* Who is accused of one reference. */
struct lt_blame {
	enum rt_finding_kind kind;
	enum rt_role role;
	uint32_t guilty;      /* src id */
	uint32_t alternative; /* src id, 0 = none */
	uint32_t owner;       /* src id of the function that took it through helpers, 0 = the site's own */
	bool learnt;          /* what healthy objects show says so, not code alone */
	double confidence, alternative_confidence;
	const char *why; /* one more sentence, static text; NULL */
	bool lost;       /* nobody points to the object */
	bool seen;       /* what lost it was seen: a store over the pointer */
	bool own;        /* the pointer was that of just this reference */
	bool passed;     /* it may have gone on to who asked for it: no more than a suspicion */
};

struct lt_member {
	struct lt_ref ref;
	double confidence;
};

struct lt_choice {
	uint32_t src;
	double weight;
};

/* All references that one function is accused of. */
struct lt_group {
	enum rt_finding_kind kind;
	enum rt_role role;
	uint32_t type, klass, guilty; /* index; index + 1, 0 = none; src id */
	bool suspect, shaky;          /* shaky: suspect because too few objects, of a doubtful past, say so */
	double confidence;            /* sum */
	uint64_t lost;                /* members that nobody points to */
	double seen_sum;              /* confidence of the members whose loss was seen */
	uint64_t seen;                /* and how many they are */
	const char *why;
	RT_VEC(struct lt_member) members; /* none: merged into another group */
	RT_VEC(struct lt_choice) choices;
	char id[9]; /* of its finding, "" = none */
};

/* A function that gave back what was taken along with references of a site. */
struct lt_along {
	uint32_t site, type, src;
	double refs;               /* of so many of these */
	const struct lt_ref *last; /* the one that was looked at last */
};

struct lt_alive {
	uint32_t type, klass;
	const char *reason;
	uint64_t objects;
};

/* of either kind as many as say it: three besides the function that is asked about; one besides it */
enum { LT_WORKERS = 4, LT_KEEPERS = 2 };

/* Functions that take references: who gives them back himself, and who does not. */
struct lt_workers {
	uint32_t worker[LT_WORKERS], keeper[LT_KEEPERS]; /* lt_src.function */
	unsigned workers, keepers;
};

struct lt_answer {
	struct rt_lifetime *lt;
	struct rt_arena *arena; /* of the verdict */
	struct rt_map running;  /* activations that are not known to be over */
	struct rt_map standing; /* activations in which their thread stood when the process ended -> how far in, 1.. */
	struct rt_map runs;     /* (activation, type) -> references that it left open */
	struct rt_map left;     /* (type, function) -> open references */
	/* (function, type) -> pointers that it overwrote without a put: to objects that were left; to others */
	struct rt_map dropped_left, dropped_healthy;
	struct rt_map freed_left, freed_healthy; /* ... or freed the block to which the one reference went last */
	/* (function, type) -> gets of runs of it that took more than they gave back: of objects that were left; of
	 * others */
	struct rt_map several_left, several_healthy;
	double healthy_each; /* how many healthy objects each that is counted there stands for */
	/* objects of other types than lost_type (index + 1; 0: none yet) that are lost in lost_pid: as last asked */
	uint32_t lost_pid, lost_type;
	unsigned lost_others;
	struct lt_workers workers; /* of the type that is judged */
	struct rt_map taken_apart; /* (function, type) -> who puts what its blocks hold, as lt_overwriter() reads it */
	struct rt_map
		put_behind; /* (function, type) -> pointers that it cleared, to what its caller put right behind that */
	struct rt_map puts_made; /* (function that makes objects, one that puts them) -> healthy ones; lt_puts_made() */
	/* (name of a function, type) -> references that it was given, and passed on to another such function; did not
	 */
	struct rt_map given_on, given_kept;
	/* (who received a healthy object, or gave it, type) -> how often it was put or stored there; was not */
	struct rt_map received_acted, received_idle;
	/* (name of a function that ends things, type) -> objects that it was given: counted, or left alone */
	struct rt_map ended, left_alone;
	struct rt_map along_asked; /* (site, type) -> lost references that are asked what was taken along */
	RT_VEC(struct lt_ref) along_refs;
	RT_VEC(struct lt_along) along;
	struct rt_map kept_by; /* (type and site, pid) -> index of kept */
	RT_VEC(struct lt_keeping) kept;
	RT_VEC(struct lt_group) groups;
	RT_VEC(struct lt_alive) alive;
	struct rt_map left_here;  /* (pid, site) -> descriptors that were left open */
	struct rt_map owner_left; /* (function, type) -> references that it left open, taken through helpers */
	/* lost ones of these: (function, function that took them, type); (function that took, type) -> such functions
	 */
	struct rt_map owner_from, owners;
	struct rt_map group_of;  /* (kind and type and suspect, function) -> index */
	struct lt_learnt pooled; /* of a type with classes: what all of its objects teach */
	uint32_t pooled_type;    /* index + 1, 0 = of none yet */
	bool nomem;
};

/* reason of objects whose birth was not seen in a process that was seen from its start */
#define LT_UNBORN "creation not seen"
#define LT_CHILD "held through leaked objects"
/* reason of those that are lost, and whose reference is left nobody can tell */
#define LT_UNTOLD "lost, by whom is not known"
/* and of those that somebody points to, but not for all references that are left */
#define LT_CROWDED "held, by how many is not known"

/* leak.c, extra.c: judge the objects of one type that are of the class of the model */
void lt_leaks(struct lt_answer *a, uint32_t type, struct lt_model *m);
void lt_extras(struct lt_answer *a, uint32_t type, struct lt_model *m);
/*
 * owner.c: source id of the function around event ev whose business the
 * reference is, 0: the site's own. *ret_sure: helpers below it mostly pass on to their very callers.
 */
uint32_t lt_owner_of(const struct lt_answer *a, const struct lt_inc *inc, uint16_t ev, bool *ret_sure);
/* the same for a reference that was left open, further out than this level of the path of its site; 0: nobody is.
 * *ret_learnt: what healthy objects show says so, not code alone */
uint32_t lt_owner_beyond(const struct lt_answer *a, const struct lt_ref *ref, unsigned level, bool *ret_learnt);
/*
 * How many functions out from the site of a, and from that of b, lies the innermost run of a function in which both
 * were done? false: in none.
 */
bool lt_come_together(const struct rt_lifetime *lt, const struct lt_event *a, const struct lt_event *b, unsigned *ret_a,
		      unsigned *ret_b);
/* the function so many levels out from the site of e jumped to what did the later one: nothing is left of its run there
 */
bool lt_left_by(const struct rt_lifetime *lt, const struct lt_event *e, unsigned level, const struct lt_event *last);
/* a and b were done by what one call led to: of the innermost run in which both were, even where that jumped on. */
bool lt_in_one_call(const struct rt_lifetime *lt, const struct lt_event *a, const struct lt_event *b);
/* source id of the function so many out from the site of e; 0: there is none */
uint32_t lt_src_around(const struct rt_lifetime *lt, const struct lt_event *e, unsigned level);
/* leak.c: why it is alive, where nobody is accused of it */
const char *lt_alive_reason(const struct rt_lifetime *lt, const struct lt_inc *inc);
/* blame.c */
/* tells functions that take references to objects of the type, by whether they give them back themselves */
void lt_workers(struct lt_answer *a, uint32_t type, const struct lt_model *m);
struct lt_blame lt_blame_leak(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref);
/* true: the activation that took the reference is over; *ret_proven says whether events prove it */
bool lt_activation_over(const struct lt_answer *a, const struct lt_ref *ref, bool *ret_proven);
/* exit.c: of a process that has ended: by itself, and nothing of it went on by exec */
bool lt_ended_well(const struct rt_lifetime *lt, uint32_t pid);
/* it went on by exec, which took all memory with it */
bool lt_left_by_exec(const struct rt_lifetime *lt, uint32_t pid);
/* it was ended by a fault of its own; at_once: by one that touched memory, not one that it noticed itself */
bool lt_crashed(const struct rt_lifetime *lt, uint32_t pid, bool at_once);
/* counter.c: why what was read as the counter of the type is none, NULL: it is one */
const char *lt_counter_wrong(struct rt_lifetime *lt, uint32_t type, struct rt_arena *arena);
/* the counts of this life, at least, are doubtful; after lt_counter_wrong() */
bool lt_counter_vague(const struct rt_lifetime *lt, const struct lt_inc *inc);
/* many of the type's objects are taken up again when their count was 0: they may wait so for the next get */
bool lt_counter_rests(const struct lt_type *type);
/* what is known of the life leaves no room for more than a suspicion */
static inline bool lt_life_vague(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	return inc->incomplete || inc->attached || (!inc->has_new && !inc->known) || lt_counter_vague(lt, inc);
}

/* pointers in lost objects stand for all its references */
static inline bool lt_held_by_lost(const struct lt_inc *inc)
{
	return inc->known && !inc->backwards && inc->balance <= (int64_t)inc->held[RT_HOLDER_OBJECT];
}
/* counts of its type start at 0, and its first get was seen: that is all the birth it has */
static inline bool lt_born_bare(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	return lt_inc_type(lt, inc)->start == 0 && inc->known && !inc->assumed && !inc->base && inc->nr;
}
/* census.c: who is reachable; and the live object that h tells of as a holder, NULL: it is none of ours */
void lt_census(struct rt_lifetime *lt);
struct lt_inc *lt_holder_of(const struct rt_lifetime *lt, const struct lt_holder *h);
/* the slot lies in a live object in which the census found a pointer to inc; or just behind one of unknown size */
bool lt_in_holder(const struct rt_lifetime *lt, const struct lt_inc *inc, uint64_t slot);
/* lost.c: which of the lost ones that others point to are faults of their own. false: out of memory. */
bool lt_lost(struct rt_lifetime *lt);
/*
 * hand.c: how many levels of the path of its site the reference was handed up, as far as returns are seen; else as the
 * types of the functions say. *ret_kept: the function at that level hands such objects out, but kept this one.
 */
unsigned lt_handed_up(const struct lt_answer *a, const struct lt_ref *ref, bool *ret_kept);
/*
 * died.c: when another thread ended the process, the one that did event number ev was still in the function of its
 * site, or of the site's outermost with up, at the same place of its stack: it had no say in that end
 */
bool lt_cut_short(const struct lt_answer *a, const struct lt_inc *inc, uint32_t ev, bool up);
/* the innermost function of its site was seen to hand it to its caller; surely: this one, not one of several */
bool lt_was_handed_up(const struct lt_answer *a, const struct lt_ref *ref, bool surely);
/* source id of the constructor around the one that made the object, which did not return it; 0: there is none */
uint32_t lt_kept_by_maker(const struct lt_answer *a, const struct lt_ref *ref);
/* overwrite.c: counts the pointers that were overwritten: to an object that was left, to a healthy one */
void lt_overwrites_left(struct lt_answer *a, const struct lt_inc *inc);
void lt_overwrites_healthy(struct lt_answer *a, const struct lt_inc *inc);
/* the function puts objects that are made as this one was, by the function that made it */
bool lt_puts_made(const struct lt_answer *a, const struct lt_inc *inc, uint32_t function);
/* when all objects of the type that were left are counted: whose business the blocks are that held pointers to them */
void lt_overwrites_settle(struct lt_answer *a, uint32_t type);
/* Whose store or free() lost the pointer that stood for the reference, and put nothing. */
struct lt_loser {
	uint32_t by;     /* source id; 0: none is known */
	uint32_t around; /* not 0: that one freed the block, and `by` is what it calls to put what such blocks hold */
	bool cleared;    /* it called what cleared the slot */
	bool ends;       /* ... and ends by its name what the slot is in, which what it called does not */
	bool freed;      /* it freed the block that held the pointer */
	bool thin;       /* it was seen to do so to this object only: the memory may have been used again */
	bool own;        /* the slot was that of just this reference */
	bool always;     /* it freed blocks with such pointers more than twice, none of them of a healthy object */
	uint32_t at;     /* the event by which it did so */
};
struct lt_loser lt_overwriter(const struct lt_answer *a, const struct lt_ref *ref);
/* each reference that the object has left stood in a slot that was overwritten: by who takes references to put there,
 * or where one was known to be */
bool lt_overwritten_all(const struct lt_answer *a, const struct lt_ref *ref);
/* entry.c: e tells that its object was given to a function. What that function does is counted by this */
struct rt_key lt_entry_key(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e);
/* source id of the function; 0: out of memory */
uint32_t lt_entry_source(const struct lt_answer *a, const struct lt_event *e);
/*
 * invariant.c: the function (a lt_src.function) that took, of each lost object of the type and class, as many
 * references as it has left, and none of those that ended well; 0: none, several, or too few objects to say so. After a
 * census.
 */
uint32_t lt_invariant(const struct rt_lifetime *lt, uint32_t type, uint32_t klass);
/* The references that are left of inc, by that; returns how many: 0: it does not say so of inc. */
unsigned lt_invariant_refs(const struct rt_lifetime *lt, struct lt_inc *inc, uint32_t function,
			   struct lt_ref ret[LT_UNITS]);
/*
 * own_use.c: source id of the function that had put the object before, and in a run of which event number bad, the
 * first one after its end, was done; 0: it is nobody's own.
 */
uint32_t lt_own_use(const struct lt_answer *a, const struct lt_inc *inc, uint16_t bad);
/* several.c: counts gets of runs that took several references to an object that was left, to a healthy one */
void lt_several_left(struct lt_answer *a, const struct lt_inc *inc);
void lt_several_healthy(struct lt_answer *a, const struct lt_inc *inc);
/* more gets than puts in the very activation that took this one, at more than one place; healthy ones have it not */
bool lt_took_twice(const struct lt_answer *a, const struct lt_ref *ref);
/* ... who had a helper take two in one line, where healthy ones have that not (lt_src); 0: nobody had */
uint32_t lt_took_twice_by_helper(const struct lt_answer *a, const struct lt_ref *ref);
/* given.c: wherever the pointer was stored since the reference was taken, another reference was taken for that */
bool lt_stored_for_others(const struct lt_answer *a, const struct lt_ref *ref);
/* given.c: counts what functions do with a healthy object that they are given */
void lt_given_healthy(struct lt_answer *a, const struct lt_inc *inc);
/* source id of the function that was given the reference, passes on what it is given, and did not; 0: none is known */
uint32_t lt_given_to(const struct lt_answer *a, const struct lt_ref *ref);
/*
 * received.c: counts what functions do with a healthy object that they receive, if it has one reference, or all that
 * were taken beside its first one are given back for sure
 */
void lt_received_healthy(struct lt_answer *a, const struct lt_inc *inc);
/*
 * What tells who it was: it puts or stores other objects; others in its place do; it emptied the slot of this one;
 * others put theirs who give such to the same function, which takes a reference of its own; and just by the stacks,
 * others who call it, or who call what puts another one.
 */
enum lt_by { LT_BY_ITSELF, LT_BY_KIN, LT_BY_SLOT, LT_BY_SHARERS, LT_BY_CALLERS, LT_BY_PUTTERS };
/* Who had the object last, and lost its reference. */
struct lt_receiver {
	uint32_t src; /* source id; 0: nobody is known */
	enum lt_by by;
};
struct lt_receiver lt_received_last(const struct lt_answer *a, const struct lt_ref *ref);
/*
 * The first reference is left. Whoever has such an object and calls what takes a reference of its own puts his one
 * afterwards, as healthy objects show; the last one who did so here has not. His source id, or that of whom he called
 * to end it; 0: nobody.
 */
uint32_t lt_received_forgot(const struct lt_answer *a, const struct lt_ref *ref);
/* Who received the object between these two events just looks at such objects, as healthy ones show. */
bool lt_received_to_look(const struct lt_answer *a, const struct lt_inc *inc, uint32_t from, uint32_t to);
/* Event number i takes the object out of a slot, for others to put: healthy ones tell, or what the function returns. */
bool lt_received_passed_on(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i);
/*
 * The object had been handed to somebody since it was stored last, by who hands such to others that put or store them:
 * its one reference went with it, and the pointer that event number i finds in a slot was just left there.
 */
bool lt_received_before(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i);
/* ended.c: counts what functions that end things do with a healthy object */
void lt_ends_healthy(struct lt_answer *a, const struct lt_inc *inc);
/* Who was to end it. */
struct lt_ender {
	uint32_t src; /* source id; 0: nobody is known */
	bool does;    /* it does so with other objects */
};
struct lt_ender lt_ender_of(const struct lt_answer *a, const struct lt_ref *ref);
/*
 * Source id of the function that the run so many frames around event number i gave the object to afterwards, which by
 * its name ends what it is given, and put nothing there; 0: none, or it leaves healthy objects alone.
 */
uint32_t lt_ender_called(const struct lt_answer *a, const struct lt_inc *inc, uint32_t i, unsigned level);
/*
 * Source id of the function that the run of event number `freed` gave the object to before, which by its name destroys
 * what it is given, and put nothing there; 0: there is none, or it leaves healthy objects alone.
 */
uint32_t lt_destroyer_before(const struct lt_answer *a, const struct lt_ref *ref, uint32_t freed);
/* along.c: the reference is lost, and will be asked; all that are asked are looked at */
void lt_along_ask(struct lt_answer *a, const struct lt_ref *ref);
void lt_along_settle(struct lt_answer *a);
/* source id of the function that gave back what was taken along with such references, and forgot these; 0: none */
uint32_t lt_along_forgot(const struct lt_answer *a, const struct lt_ref *ref);
/* kept.c: counts what was left; the site leaves it for good; it is a mapping that the C library made for itself */
void lt_kept_count(struct lt_answer *a, const struct lt_ref *ref);
bool lt_kept(const struct lt_answer *a, const struct lt_ref *ref);
bool lt_kept_by_library(const struct rt_lifetime *lt, const struct lt_inc *inc);
/* holder.c: the type that function, by the id of its name, makes objects of; NULL: none, or type itself */
const struct lt_type *lt_made_by(const struct rt_lifetime *lt, uint32_t name, uint32_t type);
/* source id of what should have put the reference with the object that it was taken for; 0: not known */
uint32_t lt_holder_end(struct rt_lifetime *lt, const struct lt_model *m, const struct lt_ref *ref);
/* group.c */
void lt_accuse(struct lt_answer *a, const struct lt_ref *ref, const struct lt_blame *blame);
/* when all are accused: what rests on one or two objects whose address has a doubtful past is a suspicion */
void lt_settle(struct lt_answer *a);
/* the confidence of the finding that the group, which has members, makes: (0, 1] */
double lt_group_claims(const struct lt_group *g);
void lt_count_alive(struct lt_answer *a, const struct lt_inc *inc);
/* finding.c: g as the report wants it */
bool lt_finding(struct lt_answer *a, const struct lt_group *g, struct rt_finding *ret);
/* e as an entry of a story: balance is the number of references after it */
void lt_history_entry(const struct lt_answer *a, const struct lt_inc *inc, const struct lt_event *e, int64_t balance,
		      struct rt_history *ret);
/* the frames from the site of use on */
bool lt_use_stack(const struct lt_answer *a, const struct lt_use *use, struct rt_trace_stack *ret);
/* watch.c, after the findings: rt_verdict.watched and .paths */
bool lt_watch_fill(struct lt_answer *a, struct rt_verdict *v);
/* trust.c */
bool lt_trust(struct rt_lifetime *lt, struct rt_trust *ret);
/* after judging: adds what the objects that are alive take away from the answer */
bool lt_trust_alive(struct lt_answer *a, struct rt_trust *trust);
char *lt_printf(struct rt_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Objects end that were taken, or that nobody saw begin, and nothing was ever seen given back: it happens unseen. */
bool lt_puts_unseen(const struct lt_type *type);
/* pointed.c: more references are open than there are pointers to the object; after a census */
bool lt_has_more(const struct lt_inc *inc);
/* references of the site whose objects ended all the same, nobody knows by whom */
double lt_end_unseen(const struct lt_model *m, uint32_t site);
/*
 * Somebody points to the object: how sure is it that the reference is lost all the same, 0 to 1. twins: the function
 * gives such references back itself, and the run that took this one is over.
 */
double lt_pointed(const struct lt_answer *a, const struct lt_model *m, const struct lt_ref *ref, bool twins);
/* events of the type are missing: what is not local evidence is a suspicion at most */
bool lt_damaged(const struct rt_lifetime *lt, const struct lt_type *type);
/* origin.c: fills f->origins. false: out of memory */
bool lt_origins(const struct lt_answer *a, const struct lt_group *g, struct rt_finding *f);

/* One more of key. Without memory it is not counted: then findings are only less sure. */
static inline void lt_count(struct rt_map *counts, struct rt_key key, uint64_t more)
{
	uint64_t *n = rt_map_put(counts, key, NULL);

	if (n)
		*n += more;
}

static inline void lt_count_one(struct rt_map *counts, struct rt_key key)
{
	lt_count(counts, key, 1);
}

static inline double lt_counted(const struct rt_map *counts, struct rt_key key)
{
	const uint64_t *n = rt_map_get(counts, key);

	return n ? (double)*n : 0;
}
