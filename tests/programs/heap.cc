/* SPDX-License-Identifier: GPL-2.0-only */
/* The heap in the ways of C++ and of C; use() loses one node in seven, if asked to: heap ok|bug */
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct alignas(64) Wide {
	char c[128];
};

struct Node {
	std::string name;
	Node *next = nullptr;
};

static bool bug;

__attribute__((noinline)) static int use(int i)
{
	Node *node = new Node{ std::string(200, 'x') };
	auto wide = std::make_unique<Wide>();
	std::vector<int> numbers(i + 1);
	int *array = new (std::nothrow) int[10];
	void *block = malloc(10), *other = reallocarray(nullptr, 10, 10), *aligned = nullptr;
	char *copy = strdup("copied by the C library");

	block = realloc(block, 4000);
	if (posix_memalign(&aligned, 64, 100))
		return 1;
	free(aligned);
	free(other);
	free(block);
	free(copy);
	delete[] array;
	if (bug && i % 7 == 3)
		return 1; /* node is lost */
	delete node;
	return numbers.size() > 1000;
}

int main(int argc, char **argv)
{
	int sum = 0;

	bug = argc > 1 && !strcmp(argv[1], "bug");
	for (int i = 0; i < 70; i++)
		sum += use(i);
	return sum == (bug ? 10 : 0) ? 0 : 1;
}
