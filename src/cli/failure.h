/* SPDX-License-Identifier: GPL-2.0-only */
/* How a failure is shown, and which exit status it gives. */
#pragma once

#include "base/error.h"

/* Exit status for an error: 2, 125, 126 or 127. */
int rt_failure_status(const struct rt_error *err);

/*
 * Prints err on stderr as
 *     reftrace: E12 cannot read /opt/app: Permission denied
 *           fix: ...
 * frees it and returns its exit status.
 */
int rt_failure(struct rt_error *err);
