/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Suppressions: rules that say which findings are known. Three formats, which one file may mix:
 *
 *     # comment                          leak:PATTERN                  {
 *     {                                  (LeakSanitizer: * ^ $)           name
 *        name                                                             Memcheck:Leak
 *        RefTrace:Leak                                                    match-leak-kinds: definite
 *        type:obj                                                         fun:malloc
 *        guilty:parse_*                                                   ...
 *        site:leak.c:29                                                   obj:*libfoo.so*
 *        max:20                                                        }
 *        fun:main                                                      (valgrind: * ?)
 *     }
 *
 * man/reftrace.suppressions.5.scd says what each line means. A finding stands for objects with several stacks: a rule
 * with frames takes it only when it fits all of them.
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "report/report.h"

enum rt_rule_frame_kind { RT_RULE_FUN, RT_RULE_OBJ, RT_RULE_SRC, RT_RULE_ANY };

struct rt_rule_frame {
	enum rt_rule_frame_kind kind;
	char *glob; /* for rt_glob_match(); owned; NULL: ANY */
};

struct rt_rule {
	char *name;                           /* as written, or the rule itself where it has none; owned */
	char *file;                           /* owned */
	size_t line;                          /* 1.. of its first line */
	unsigned kinds;                       /* bits 1 << enum rt_finding_kind; 0: of a tool that finds other things */
	char *type, *klass, *guilty, *site;   /* globs; owned; NULL: any */
	char *any;                            /* glob for any place of the finding (leak:); owned; NULL: none asked */
	RT_VEC(struct rt_rule_frame) frames;  /* from the innermost one; more frames may follow */
	uint64_t max;                         /* objects; UINT64_MAX: any number */
	uint64_t findings, suspects, objects; /* what it took */
	uint64_t partly; /* findings that it fits, but for some of their stacks, or with more than max objects */
};

struct rt_suppressions {
	RT_VEC(struct rt_rule) rules;
};

/*
 * Appends the rules of text (not NUL-terminated). file is what messages and rules call it. RT_E_SUPPRESSION with line,
 * fault and fix; *ret is then as before. Nothing in it is no fault.
 */
RT_CHECK struct rt_error *rt_suppressions_parse(const char *text, size_t size, const char *file,
						struct rt_suppressions *ret);
void rt_suppressions_deinit(struct rt_suppressions *suppressions);

struct rt_suppressed {
	const struct rt_finding *finding;
	const struct rt_rule *rule;
	bool suspect;
};

/* A verdict without what is suppressed. Everything that it points to is the verdict's. */
struct rt_suppression_result {
	struct rt_verdict verdict; /* findings, suspects and types are ours */
	struct rt_suppressed *suppressed;
	size_t count;
};

/*
 * Parts verdict by the rules and counts anew what each took (the first rule that fits). result lives as long as the
 * verdict and the rules; deinit it also after a failure.
 */
RT_CHECK struct rt_error *rt_suppress(struct rt_suppressions *suppressions, const struct rt_verdict *verdict,
				      struct rt_suppression_result *ret);
void rt_suppression_result_deinit(struct rt_suppression_result *result);

/* A rule that takes this finding, and others by the same function of the same type. Ends in a newline. Arena's. */
const char *rt_suppression_for(struct rt_arena *arena, const struct rt_finding *finding);
