// SPDX-License-Identifier: GPL-2.0-only
/* The library of gone.c. */
static volatile unsigned long lib_work;

void lib_hot(void)
{
	for (unsigned i = 0; i < 1000000; i++)
		lib_work += i;
}
