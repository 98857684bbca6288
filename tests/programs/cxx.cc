/* SPDX-License-Identifier: GPL-2.0-only */
/* C++: the counting functions are methods, names are mangled. `scene::Painter::attach` forgets its unref. */
#include "truth.h"

namespace scene
{

class Node
{
      public:
	explicit Node(int n) : refs(1), number(n)
	{
	}
	virtual ~Node()
	{
	}
	static Node *create(int n);
	void ref();
	void unref();

	int refs;
	int number;
	char name[40];
};

NOINLINE Node *Node::create(int n)
{
	return new Node(n);
}

NOINLINE void Node::ref()
{
	refs++;
}

NOINLINE void Node::unref()
{
	if (--refs == 0)
		delete this;
}

class Painter
{
      public:
	int attach(Node *node);
	void draw(Node *node);

	bool healthy;
	long painted;
};

NOINLINE int Painter::attach(Node *node)
{
	node->ref();
	truth_add("scene::Painter::attach", "get");
	if (node->number % 6 == 4 && !healthy) {
		LOST();
		return -1;
	}
	painted++;
	node->unref();
	truth_add("scene::Painter::attach", "put");
	return 0;
}

NOINLINE void Painter::draw(Node *node)
{
	node->ref();
	truth_add("scene::Painter::draw", "get");
	if (attach(node) == 0)
		painted += 2;
	node->unref();
	truth_add("scene::Painter::draw", "put");
}

} // namespace scene

int main(int argc, char **argv)
{
	scene::Painter painter;

	painter.healthy = truth_healthy(argc, argv);
	painter.painted = 0;
	for (int i = 0; i < 60; i++) {
		scene::Node *node = scene::Node::create(i);

		truth_add("main", "new");
		painter.draw(node);
		node->unref();
		truth_add("main", "put");
	}
	/* methods are told by their linkage names */
	truth_print("type=Node new=_ZN5scene4Node6createEi get=_ZN5scene4Node3refEv put=_ZN5scene4Node5unrefEv",
		    "scene::Painter::attach", "leak");
	return 0;
}
