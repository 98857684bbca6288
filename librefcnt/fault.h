/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Says what a fault at an alias was; the program ends by it as it would have. */
#ifndef RC_FAULT_H
#define RC_FAULT_H

/* Takes SIGSEGV; who had it before gets it afterwards. A handler that the program sets later is alone with it. */
void rc_fault_watch(void);

#endif
