/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What is said, where REFCNT_OUTPUT tells. Operations that are wrong are reported at once, the rest when asked. */
#ifndef RC_REPORT_H
#define RC_REPORT_H

#include "alias.h"
#include "ledger.h"

/* An operation that is refused or saturates; o is locked, and is shown with all its stacks. */
void rc_report_wrong(struct rc_object *o, const struct rc_call *c, const char *what, const char *why);
/* The count is not what the operations seen make it. */
void rc_report_count(struct rc_object *o, const struct rc_call *c, uint32_t now);
/* No object of ours is there. */
void rc_report_foreign(const struct rc_call *c, enum rc_kind kind);
/* An alias that was given back is used: by an instruction, or by a get or put. */
void rc_report_alias(const struct rc_alias *a, const void *p, const char *what, const char *how, uint32_t stack);
/* One line, at once. */
void rc_report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What is left. at_exit: nothing is said when nothing is. -> objects */
long rc_report_left(bool at_exit);
/* Faults that were reported so far. */
unsigned rc_report_faults(void);

#endif
