/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Burns CPU time in functions whose names are the hard ones of C++: templates with a type that they return, members
 * of const objects, operators, lambdas, a namespace without a name, the standard library's own.
 *
 *     hot-cxx MS
 */
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

static volatile unsigned long sum;

__attribute__((noinline)) static unsigned long burn(unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++)
		sum = sum + i;
	return sum;
}

namespace scene
{
template <class T> struct Node {
	T value;
	__attribute__((noinline)) T work(unsigned long rounds) const;
	__attribute__((noinline)) Node &operator+=(unsigned long rounds)
	{
		for (unsigned long i = 0; i < rounds; i++)
			sum = sum + i;
		return *this;
	}
};

template <class T> T Node<T>::work(unsigned long rounds) const
{
	for (unsigned long i = 0; i < rounds; i++)
		sum = sum + i;
	return value;
}

template <class T> __attribute__((noinline)) T twice(const T &value, unsigned long rounds)
{
	Node<T> node{ value };

	node += rounds;
	return node.work(rounds) + node.work(rounds);
}
} // namespace scene

namespace
{
__attribute__((noinline)) void hidden(unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++)
		sum = sum + i;
}
} // namespace

int main(int argc, char **argv)
{
	clock_t end = (clock_t)((argc > 1 ? atof(argv[1]) : 100) * (CLOCKS_PER_SEC / 1000));
	std::vector<std::string> words;
	auto lambda = [](unsigned long rounds) __attribute__((noinline))
	{
		for (unsigned long i = 0; i < rounds; i++)
			sum = sum + i;
	};

	while (clock() < end) {
		scene::twice<int>(3, 50000);
		scene::twice<double>(2, 50000);
		hidden(50000);
		lambda(50000);
		burn(50000);
		for (unsigned i = 0; i < 300; i++)
			words.push_back(std::to_string(i * 7919 % 1000));
		std::sort(words.begin(), words.end());
		words.clear();
	}
	return 0;
}
