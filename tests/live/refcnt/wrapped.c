/* SPDX-License-Identifier: GPL-2.0-only */
/* A library whose own ref and unref are functions around librefcnt's, and two users of it, of which one forgets. */
#include <refcnt/refcnt.h>

#define NOINLINE __attribute__((noinline))
#define END() __asm__ volatile("" ::: "memory") /* no tail call: the function stays in its callees' stacks */

struct widget {
	int uses;
	struct refcnt refs;
};

REFCNT_DECLARE(widget, struct widget);
static void widget_release(struct widget *w)
{
	widget_dealloc(w);
}
REFCNT_DEFINE(widget, struct widget, refs, widget_release);

/* with more on its stack than a copy of that holds */
NOINLINE static struct widget *widget_new(void)
{
	char path[9000];
	struct widget *w;

	__asm__ volatile("" ::"r"(path) : "memory");
	w = widget_alloc();
	__asm__ volatile("" ::"r"(path) : "memory");
	return w;
}

NOINLINE static struct widget *widget_ref(struct widget *w)
{
	return w ? widget_get(w) : w;
}

NOINLINE static void widget_unref(struct widget *w)
{
	if (w)
		widget_put(w);
	END();
}

NOINLINE static void careful(struct widget *w)
{
	struct widget *mine = widget_ref(w);

	mine->uses++;
	widget_unref(mine);
	END();
}

NOINLINE static void careless(struct widget *w)
{
	struct widget *mine = widget_ref(w);

	if (mine->uses++ % 2)
		widget_unref(mine);
	END();
}

int main(void)
{
	for (int i = 0; i < 4; i++) {
		struct widget *w = widget_new();

		if (!w)
			return 1;
		careful(w);
		w->uses = i;
		careless(w);
		widget_unref(w);
	}
	return 0;
}
