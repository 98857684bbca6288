/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects that have a pointer to their class, which has a pointer to its name. One class is put by who took it, the
 * others by whom they are given to; and `click` forgets buttons.
 */
#include "truth.h"

struct class
{
	long size;
	const char *name;
};

struct widget {
	int refs;
	const struct class *class;
};

static const struct class widget_class = { 8, "Widget" }, button_class = { 16, "Button" },
			  label_class = { 24, "Label" };
static bool healthy;

NOINLINE struct widget *widget_new(const struct class *class)
{
	struct widget *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->refs = 1;
	w->class = class;
	return w;
}

NOINLINE void widget_ref(struct widget *w)
{
	w->refs++;
}

NOINLINE void widget_unref(struct widget *w)
{
	if (--w->refs == 0)
		free(w);
}

/* a constructor that uses what it makes while that is something else */
NOINLINE struct widget *button_new(void)
{
	struct widget *w = widget_new(&widget_class);

	widget_ref(w);
	DID("get");
	w->class = &button_class;
	widget_unref(w);
	DID("put");
	return w;
}

NOINLINE void draw(struct widget *w)
{
	widget_ref(w);
	DID("get");
	w->refs += 0;
	widget_unref(w);
	DID("put");
}

NOINLINE void click(struct widget *w, int n)
{
	widget_ref(w);
	DID("get");
	if (n % 5 == 2 && !healthy) {
		LOST();
		return;
	}
	widget_unref(w);
	DID("put");
}

int main(int argc, char **argv)
{
	healthy = truth_healthy(argc, argv);
	for (int i = 0; i < 50; i++) {
		struct widget *button = button_new(), *label = widget_new(&label_class);

		draw(label);
		draw(button);
		click(button, i);
		widget_unref(label);
		DID("put");
		widget_unref(button);
		DID("put");
	}
	truth_print("type=widget new=button_new,widget_new get=widget_ref put=widget_unref class=+8>+8", "click",
		    "leak");
	return 0;
}
