/* SPDX-License-Identifier: GPL-2.0-only */
/* Objects of C++ classes with virtual functions: `paint` forgets circles. */
#include "truth.h"

namespace shape
{

class Shape
{
      public:
	virtual ~Shape()
	{
	}
	virtual int corners() const = 0;
	void ref();
	void unref();

	int refs = 1;
};

class Circle : public Shape
{
	int corners() const override
	{
		return 0;
	}
};

class Square : public Shape
{
	int corners() const override
	{
		return 4;
	}
};

NOINLINE void Shape::ref()
{
	refs++;
}

NOINLINE void Shape::unref()
{
	if (--refs == 0)
		delete this;
}

}

NOINLINE shape::Shape *make(bool round)
{
	if (round)
		return new shape::Circle;
	return new shape::Square;
}

NOINLINE void paint(shape::Shape *s, int n)
{
	s->ref();
	if (!s->corners() && n % 3 == 1)
		return;
	s->unref();
	truth_add("paint", "put");
}

int main()
{
	for (int i = 0; i < 30; i++) {
		shape::Shape *circle = make(true), *square = make(false);

		paint(circle, i);
		paint(square, i);
		circle->unref();
		square->unref();
	}
	return 0;
}
