/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One module's functions by name: symbols under their source names (compiler
 * suffixes taken off), and what debug information declares. Made once for a
 * module, because presets ask for hundreds of names.
 */
#pragma once

#include "base/intern.h"
#include "base/vec.h"
#include "probe/clone.h"
#include "probe/plan.h"

struct rt_survey_symbol {
	const struct rt_symbol *symbol;
	uint8_t clone; /* enum rt_clone */
	uint32_t name; /* id of the source name */
	uint32_t next; /* index + 1 of the next symbol of this source name */
};

/* As struct rt_signature, kept. Strings belong to the rt_dwarf. */
struct rt_survey_function {
	const char *name, *linkage, *file; /* linkage: or NULL */
	uint32_t line;
	bool external, has_body, has_inlined;
	struct rt_elfaddr addr;
	const struct rt_symbol *code; /* no symbol tells of it: inferred.c; NULL: one does, if any */
	struct rt_param returns;
	size_t first_param, param_count; /* in survey->params */
	uint32_t name_id;
	uint32_t next; /* index + 1 */
};

struct rt_survey {
	const struct rt_plan_module *module;
	struct rt_intern names;
	RT_VEC(struct rt_survey_symbol) symbols; /* functions with code; no PLT stubs */
	RT_VEC(struct rt_survey_function) functions;
	RT_VEC(struct rt_param) params;
	struct {                           /* by name id - 1 */
		uint32_t symbol, function; /* index + 1 of the first */
	} * heads;
	uint32_t head_count;
};

/* RT_E_ARCH for modules whose code is not x86-64 (plan.c). */
RT_CHECK struct rt_error *rt_plan_check_machine(const struct rt_plan_module *module);

RT_CHECK struct rt_error *rt_survey_init(const struct rt_plan_module *module, struct rt_survey *survey);
void rt_survey_deinit(struct rt_survey *survey);

/* The next symbol of this source name after prev (NULL: the first); NULL at the end. */
const struct rt_survey_symbol *rt_survey_symbol(struct rt_survey *survey, const char *name,
						const struct rt_survey_symbol *prev);
/* The same for what debug information declares. */
const struct rt_survey_function *rt_survey_function(struct rt_survey *survey, const char *name,
						    const struct rt_survey_function *prev);
/*
 * The declaration of the function whose code starts at addr, or else any with its name, or else under which other name
 * debug information knows that code; NULL.
 */
const struct rt_survey_function *rt_survey_declaration(struct rt_survey *survey, const char *name,
						       struct rt_elfaddr addr);
/* What debug information says of the function whose code starts at addr, whatever it calls it; NULL: nothing. */
const struct rt_survey_function *rt_survey_at(const struct rt_survey *survey, struct rt_elfaddr addr);
/*
 * A function may have several symbols, of which debug information knows one: the name that it has there; NULL: debug
 * information knows name itself, or nothing.
 */
const char *rt_survey_alias(struct rt_survey *survey, const char *name);
/* The symbol whose code is that of the function, from its first to its last instruction; NULL: none is. */
const struct rt_symbol *rt_survey_code(const struct rt_survey *survey, const struct rt_survey_function *function);
/* Parameter n from 1, or NULL. */
const struct rt_param *rt_survey_param(const struct rt_survey *survey, const struct rt_survey_function *function,
				       unsigned n);

/* [*start, *end) of the function at addr: from its symbol, else from unwind tables; false: unknown. */
bool rt_survey_range(const struct rt_survey *survey, struct rt_elfaddr addr, struct rt_elfaddr *start,
		     struct rt_elfaddr *end);
/* The .cold part of the function of this symbol; false: none. */
bool rt_survey_cold(struct rt_survey *survey, const struct rt_symbol *symbol, struct rt_elfaddr *start,
		    struct rt_elfaddr *end);
