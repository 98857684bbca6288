/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Closing models across runs, as text: reftrace.models(5). What healthy objects did is kept by functions and lines of
 * modules that build-ids name, and means something only where modules of the same build-ids are.
 */
#pragma once

#include "base/sink.h"
#include "lifetime/lifetime.h"

/* The build-id of module number i of those that have one, as text. false: there are no more. */
bool rt_models_build(const struct rt_lifetime *lifetime, size_t i, char ret[2 * RT_BUILD_ID_MAX + 1]);
/* That of the first program. false: it has none. */
bool rt_models_program(const struct rt_lifetime *lifetime, char ret[2 * RT_BUILD_ID_MAX + 1]);

/* What was learnt of all types so far, what was taken in included; after rt_lifetime_verdict(). */
RT_CHECK struct rt_error *rt_models_write(struct rt_lifetime *lifetime, struct rt_sink *sink);

/*
 * Adds what another run has learnt, for the verdicts to come; after the stream, as far as it is known by then. Types,
 * classes and modules that are not here say nothing. RT_E_FORMAT with the line: nothing was added. name is what errors
 * call text. *ret_used: how many healthy objects are behind what was added.
 */
RT_CHECK struct rt_error *rt_models_read(struct rt_lifetime *lifetime, const char *text, size_t len, const char *name,
					 uint64_t *ret_used);
