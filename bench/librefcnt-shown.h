/* SPDX-License-Identifier: GPL-2.0-only */
/* What a program has once that is built with -DREFCNT_SHOW_COUNTS. */
#include <refcnt/refcnt.h>

REFCNT_SHOWN_COUNTS;
