/* SPDX-License-Identifier: GPL-2.0-only */
/* --models, --save-models, --no-models, and those that are found by build-id. */
#pragma once

#include "cli/options.h"
#include "lifetime/lifetime.h"

/*
 * Before the first verdict: takes in the files of --models, and what models folders have for the modules of the stream.
 * A file that was named and is not understood is an error; one that was found is left out with a warning.
 */
RT_CHECK struct rt_error *rt_models_load(const struct rt_options *options, struct rt_lifetime *lifetime);

/* After the last verdict: writes --save-models, if that was asked for. */
RT_CHECK struct rt_error *rt_models_save(const struct rt_options *options, struct rt_lifetime *lifetime);
