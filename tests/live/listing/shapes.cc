/* SPDX-License-Identifier: GPL-2.0-only */
#include <cstdio>
#include <memory>
#include <string>

namespace shape
{
class Square
{
	double side_;

    public:
	explicit Square(double side);
	double area() const
	{
		return side_ * side_;
	}
	double area(int factor) const;
};

Square::Square(double side) : side_(side)
{
}

__attribute__((noinline)) double Square::area(int factor) const
{
	double whole = area();

	return whole * factor;
}

template <typename T> __attribute__((noinline)) T twice(T value)
{
	return value + value;
}
}

int main(int argc, char **)
{
	auto shared = std::make_shared<shape::Square>(argc);
	std::shared_ptr<shape::Square> other = shared;

	std::printf("%f %d %s\n", other->area(argc), shape::twice(argc), shape::twice(std::string("x")).c_str());
	return 0;
}
