/* SPDX-License-Identifier: GPL-2.0-only */
/* Engine K on tracefs. */
#pragma once

#include "engine/tracefs.h"
#include "engine/tracefs_own.h"
#include "engine/uprobe_priv.h"
