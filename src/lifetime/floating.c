/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First references that float: nobody's, until a sink takes one over. A sink that finds none takes a reference of its
 * own.
 */
#include <string.h>

#include "lifetime/life.h"

void lt_floating_sink(struct lt_inc *inc, struct lt_seen *seen)
{
	if (inc->floating) {
		inc->floating = false;
		seen->ev.delta = 0;
		seen->ev.flags |= LT_EV_TRANSFER;
	} else {
		seen->ev.delta = seen->ev.delta ? seen->ev.delta : 1;
	}
}

/* the object's last operation, where that takes a reference only if there is no floating one; NULL: it is another */
static struct lt_event *last_sink(const struct rt_lifetime *lt, const struct lt_inc *inc)
{
	static const char word[] = "ref_sink";
	struct lt_event *e = NULL;
	const char *name;
	size_t n;

	for (uint32_t i = inc->nr; i-- > 0 && !e;)
		e = inc->ledger[i].op == RT_OP_MOVE && !inc->ledger[i].delta ? NULL : &inc->ledger[i];
	if (!e || e->delta != 1 || (e->op != RT_OP_SINK && e->op != RT_OP_GET))
		return NULL;
	name = rt_intern_text(&lt->names, lt_event_point(lt, e)->name);
	n = strlen(name);
	return e->op == RT_OP_SINK || (n >= strlen(word) && !strcmp(name + n - strlen(word), word)) ? e : NULL;
}

/*
 * Whether an object has a floating reference is known where its making was seen, and told of its type. Where not, the
 * counter tells behind the sink: that took the floating one over, if it did not move.
 */
void lt_floating_settle(const struct rt_lifetime *lt, struct lt_inc *inc, int32_t count)
{
	struct lt_event *e = NULL;

	if (inc->counts && inc->moved == 1 && count != INT32_MIN && (int64_t)count + 1 == inc->due)
		e = last_sink(lt, inc);
	if (!e || e->count != count)
		return;
	e->op = RT_OP_SINK;
	e->delta = 0;
	e->flags |= LT_EV_TRANSFER;
	inc->balance--;
	inc->due--;
	inc->moved = 0;
	inc->floating = false;
}
