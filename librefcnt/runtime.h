/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What programs built as REFCNT_SHARED are run as. librefcnt-track.so has another answer, and comes first by
 * LD_PRELOAD. */
#ifndef RC_RUNTIME_H
#define RC_RUNTIME_H

unsigned refcnt_runtime_mode(void);

#endif
