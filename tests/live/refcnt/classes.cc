/* SPDX-License-Identifier: GPL-2.0-only */
/* C++: a class with a constructor, a destructor and a virtual table, in a namespace; its references in a unique_ptr. No
 * cast of C's may be in what the macros make.
 */
#include <cstdio>
#include <memory>
#include <new>
#include <refcnt/refcnt.h>
#include <string>
#include <vector>

namespace net
{
class conn
{
      public:
	explicit conn(std::string name) : name_(std::move(name))
	{
	}
	virtual ~conn() = default;
	const std::string &name() const
	{
		return name_;
	}
	refcnt refs{};

      private:
	std::string name_;
};

inline void destroy(conn *c)
{
	delete c;
}

REFCNT_DEFINE(conn, conn, refs, destroy);

struct put {
	void operator()(conn *c) const
	{
		(void)conn_put(c);
	}
};
using holder = std::unique_ptr<conn, put>;
} // namespace net

#define BOX_FIELDS(field, array) field(box, int, width) array(box, char, name, 16)
REFCNT_STRUCT(box, BOX_FIELDS);
static void box_release(struct box *b)
{
	box_dealloc(b);
}
REFCNT_STRUCT_DEFINE(box, box_release);

static refcnt_dir dir = REFCNT_DIR("a cache");

static bool boxes()
{
	refcnt_tracker cookie = {};
	box *b = box_alloc_more(8), *known, *other, *third;

	if (!b)
		return false;
	known = box_home(b);
	other = box_get_tracked(b, &dir, &cookie);
	third = box_get_not_zero(known);
	box_set_width(other, 3);
	*box_width_at(b) += static_cast<char *>(box_more(known))[7];
	box_swap(&b, &other);
	if (!third || box_width(third) != 3 || !box_same(b, known) || box_name(b)[0] || box_count(b) != 3)
		return false;
	box_put(third);
	box_put(other);
	return box_put_tracked(box_steal(&b), &cookie) && !b;
}

int main()
{
	std::vector<net::holder> all;
	net::holder first(net::conn_init(new net::conn("one")));
	for (int i = 0; i < 3; i++)
		all.emplace_back(net::conn_get(first.get()));
	using net::conn_put_at;
	REFCNT_SCOPED(conn) net::conn *c = net::conn_get(first.get());
	std::printf("%s %u\n", c->name().c_str(), net::conn_count(c));
	return boxes() ? 0 : 1;
}
