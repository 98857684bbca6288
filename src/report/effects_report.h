/* SPDX-License-Identifier: GPL-2.0-only */
/* What scan --verify found, as a table and as JSON. */
#pragma once

#include "base/sink.h"
#include "lifetime/effects.h"

/* "verified", "contradicted", "unclear", "not checked", "never ran". Static string. */
const char *rt_effect_word(enum rt_effect_verdict verdict);

/* One line for each function, by type; what contradicts says how. */
RT_CHECK struct rt_error *rt_effects_text(const struct rt_effect *effects, size_t count, struct rt_sink *sink);
/* An object with an array "functions". */
RT_CHECK struct rt_error *rt_effects_json(const struct rt_effect *effects, size_t count, struct rt_sink *sink);
