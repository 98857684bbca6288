/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* From the library's start to the program's end. */
#ifndef RC_LIFE_H
#define RC_LIFE_H

/* Called by every entry that may come before the constructor; cheap. */
void rc_init(void);

#endif
