/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finding get/put families in a module without being told: by name stems
 * (X_get/X_put, X_ref/X_unref, X_retain/X_release, X_hold/X_rele, X_acquire/X_release,
 * X_incref/X_decref, X_addref/X_release, X_up_ref/X_free, X_reference/X_destroy,
 * X_grab/X_drop ... with X__ too), confirmed where possible by parameter type (debug
 * info) or by code (both change one field of their argument by +1 and -1), and
 * completed by constructors (X_new, X_create, X_alloc returning T *) and
 * destructors (X_free, X_delete, X_destroy, X_finalize called by the put). With debug
 * info constructors need no such name: they return T *, allocate and store the first count.
 * A put that counts down and frees is a family without a get when there is such a
 * constructor. What nothing counts, but is made and freed, has one owner and is a family of that (owned). C++
 * methods (ref/unref, AddRef/Release ...) are told from mangled names.
 */
#pragma once

#include "probe/plan.h"

struct rt_scan_options {
	const char *const *types; /* -t names: only families whose type or stem has one of these names; NULL-terminated,
				     NULL = all */
};

/*
 * Appends the families found in module to *spec (functions marked guessed).
 * With types given, a family is taken when its stem, struct tag or type name equals one of them
 * ("thread" finds thread__get/thread__put, struct thread).
 */
RT_CHECK struct rt_error *rt_scan_module(const struct rt_plan_module *module, const struct rt_scan_options *options,
					 struct rt_spec *spec);

/*
 * What to say when -t names a type that neither told text nor a scan of the modules has: RT_E_NO_PAIRS with the
 * families of a like name. Never NULL.
 */
struct rt_error *rt_scan_unknown(const struct rt_plan_module *modules, size_t count, const char *type);

/*
 * Where the counter of a get/put pair lies, inferred from code: the get adds 1 to
 * and the put subtracts 1 from the same field of its argument. false: not clear.
 */
bool rt_scan_counter(const struct rt_plan_module *module, struct rt_elfaddr get, uint8_t get_reg, struct rt_elfaddr put,
		     uint8_t put_reg, int32_t *ret_offset, uint32_t *ret_size);
