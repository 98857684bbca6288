/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the code of a process lies, and how to unwind it, in the memory that the agent reads. Rows of a module are
 * there once for a program and its forked children. The mappings of a process have two places, used by turns: a walk
 * that began with the old ones sees afterwards that there are new ones.
 */
#include "engine/agent_priv.h"

/* The rows of a module as they came, kept: other programs will need them. */
static struct rt_error *keep(struct rt_agent *a, const struct rt_engine_code *code, const struct rt_agent_rows **ret)
{
	bool fresh = false;
	uint64_t *known = rt_map_put(&a->rows, rt_key_make(code->module, 0), &fresh);
	struct rt_agent_rows *kept;

	if (!known)
		return rt_error_nomem();
	if (fresh) {
		*known = a->kept.len;
		kept = rt_vec_add(&a->kept);
		if (!kept) {
			(void)rt_map_remove(&a->rows, rt_key_make(code->module, 0), NULL);
			return rt_error_nomem();
		}
	}
	kept = &a->kept.data[*known];
	if (!kept->row && code->rows && code->rows->count) {
		kept->row = malloc(code->rows->count * sizeof(kept->row[0]));
		if (!kept->row)
			return rt_error_nomem();
		memcpy(kept->row, code->rows->row, code->rows->count * sizeof(kept->row[0]));
		kept->row_nr = (uint32_t)code->rows->count;
		kept->base = code->rows->base.v;
	}
	*ret = kept;
	return NULL;
}

/* Where the module's rows are in the pool. NULL without error: they do not fit. */
static struct rt_error *place(struct rt_agent_pool *pool, uint32_t module, const struct rt_agent_rows *rows,
			      const struct rt_agent_placed **ret)
{
	uint64_t *known = rt_map_put(&pool->rows, rt_key_make(module, 0), NULL);
	struct rt_agent_placed *placed;

	*ret = NULL;
	if (!known)
		return rt_error_nomem();
	if (!*known) {
		if (rows->row_nr > RT_AGENT_ROWS - pool->row_end)
			return NULL;
		placed = rt_vec_add(&pool->placed);
		if (!placed)
			return rt_error_nomem();
		*placed = (struct rt_agent_placed){ rows->base, pool->row_end, rows->row_nr };
		if (rows->row_nr)
			rt_agent_pool_write(pool, &rt_agent_shared(pool)->row[pool->row_end], rows->row,
					    rows->row_nr * sizeof(rows->row[0]));
		pool->row_end += rows->row_nr;
		*known = pool->placed.len;
	}
	*ret = &pool->placed.data[*known - 1];
	return NULL;
}

/* Room for count mappings that the agent does not read now. NULL: there is none. */
static struct rt_agent_span *span_for(struct rt_agent_task *task, size_t count)
{
	struct rt_agent_span *span = &task->span[task->turn ^= 1];
	struct rt_agent_pool *pool = task->pool;
	uint32_t room = (uint32_t)count * 2;

	if (span->room >= count)
		return span;
	if (room > RT_AGENT_MAPPINGS - pool->mapping_end)
		return NULL;
	*span = (struct rt_agent_span){ pool->mapping_end, room };
	pool->mapping_end += room;
	return span;
}

struct rt_error *rt_agent_tell_code(struct rt_agent *a, struct rt_agent_task *task, const struct rt_engine_code *list,
				    size_t count)
{
	struct rt_agent_process *process = rt_agent_process(task);
	struct rt_agent_span *span = count && count < 1u << RT_CODE_COUNT_BITS ? span_for(task, count) : NULL;
	struct rt_agent_shared *shared = rt_agent_shared(task->pool);
	bool full = false;

	if (!span) {
		__atomic_store_n(&process->code, 0, __ATOMIC_RELEASE);
		return rt_error_new(RT_E_LIMIT,
				    "stacks of process %u have one frame: its %zu mappings of code do not fit",
				    task->pid, count);
	}
	for (size_t i = 0; i < count; i++) {
		const struct rt_agent_placed *placed;
		const struct rt_agent_rows *rows = NULL;

		RT_TRY(keep(a, &list[i], &rows));
		RT_TRY(place(task->pool, list[i].module, rows, &placed));
		full |= !placed;
		shared->mapping[span->first + i] = (struct rt_probe_code){
			.start = list[i].start,
			.end = list[i].end,
			.base = list[i].bias + (placed ? placed->base : 0),
			.row = placed ? placed->row : 0,
			.row_nr = placed ? placed->row_nr : 0,
		};
	}
	__atomic_store_n(&process->code, RT_CODE_MAKE(task->pool->generation++, span->first, count), __ATOMIC_RELEASE);
	return full ? rt_error_new(RT_E_LIMIT, "stacks of process %u end in some modules: their unwind rows do not fit",
				   task->pid)
		    : NULL;
}
