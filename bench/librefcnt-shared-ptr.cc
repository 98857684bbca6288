/* SPDX-License-Identifier: GPL-2.0-only */
/* The same for std::shared_ptr: a copy and its end. With a thread, else libstdc++ counts without atomics. */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#define PARTS 200

int main(int argc, char **argv)
{
	long pairs = argc > 1 ? atol(argv[1]) : PARTS;
	auto thing = std::make_shared<int>(0);
	std::thread([] {}).join();
	double least = 0;

	for (int part = 0; part < PARTS; part++) {
		auto began = std::chrono::steady_clock::now();

		for (long i = 0; i < pairs / PARTS; i++) {
			std::shared_ptr<int> mine = thing;

			__asm__ volatile("" ::"r"(mine.get()) : "memory");
		}
		std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
		least = part && least < took.count() ? least : took.count();
	}
	printf("%.2f\n", least / (double)(pairs / PARTS));
	return 0;
}
