/* SPDX-License-Identifier: GPL-2.0-only */
/* All of the API, in a file that has to compile without a warning as C11 and as C++17. */
#include <refcnt/refcnt.h>

struct conn {
	int fd;
	struct refcnt refs;
};

REFCNT_DECLARE(conn, struct conn);
static void conn_release(struct conn *c)
{
	conn_dealloc(c);
}
REFCNT_DEFINE(conn, struct conn, refs, conn_release);

#define BOX_FIELDS(field, array) field(box, int, width) field(box, const char *, title) array(box, char, name, 16)
REFCNT_STRUCT(box, BOX_FIELDS);
static void box_release(struct box *b)
{
	box_dealloc(b);
}
REFCNT_STRUCT_DEFINE(box, box_release);

REFCNT_SHOWN_COUNTS;

static struct conn *global;
static struct refcnt_dir dir = REFCNT_DIR("a cache");

static void tidy(void)
{
	conn_put_at(&global);
}
REFCNT_TEARDOWN(tidy);

static void see(const struct refcnt_holder *holder, void *arg)
{
	*(unsigned *)arg += holder->n_frames;
}

static struct conn *scoped(struct conn *shared)
{
	REFCNT_SCOPED(conn) struct conn *c = conn_get(shared), *none = conn_get_not_zero(shared);

	return none ? conn_steal(&c) : c;
}

int main(void)
{
	struct refcnt_tracker cookie = { 0 };
	struct conn own, *c = conn_alloc(), *d, *e;
	struct box *b = box_alloc_more(4), *other, *known;
	unsigned frames = 0;

	if (!c || !b)
		return 1;
	d = scoped(c);
	e = conn_get_tracked(c, &dir, &cookie);
	conn_swap(&c, &d);
	if (!refcnt_same(conn, c, e) || conn_count(c) != 3 || conn_home(c) != conn_home(e))
		return 2;
	(void)refcnt_holders(c, see, &frames);
	(void)refcnt_tracker_report(&dir);
	if (conn_put_tracked(e, &cookie) || conn_put(d))
		return 3;
	global = conn_steal(&c);
	other = box_get(b);
	box_set_width(other, 3);
	*box_width_at(b) += 1;
	box_name(b)[0] = 'x';
	if (box_width(b) != 4 || box_name(other)[0] != 'x' || box_title(b) || !box_same(b, other))
		return 4;
	/* a table that holds no reference */
	known = box_home(b);
	((char *)box_more(known))[3] = 'y';
	box_put(b);
	if (known != box_home(other) || !box_same(known, other) || box_width(known) != 4)
		return 6;
	b = box_get_not_zero(known);
	if (!b || box_count(known) != 2 || ((char *)box_more(b))[3] != 'y')
		return 7;
	box_put(other);
	if (!box_put(b))
		return 5;
	d = conn_init(&own);
	return d ? 0 : 6;
}
