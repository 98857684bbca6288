/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "runtime.h"
#include "refcnt/mode.h"

unsigned refcnt_runtime_mode(void)
{
	return REFCNT_SHARED;
}
