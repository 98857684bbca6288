/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Names of classes, kept for ever: a class lies in the program's data, which may be a library that is closed. */
#ifndef RC_CLASS_H
#define RC_CLASS_H

#include "refcnt/lib.h"

/* The same address for the same name, from whatever file the class is. Any thread. "?" where there is no memory. */
const char *rc_class_keep(const char *name);

/* For fork(2). */
void rc_class_lock(void);
void rc_class_unlock(void);

#endif
