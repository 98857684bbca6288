/* SPDX-License-Identifier: GPL-2.0-only */
/* A library with a marker of its own and one that sdt-host has as well. */
#include <sys/sdt.h>

int plug(int number)
{
	DTRACE_PROBE1(plug, hit, number);
	DTRACE_PROBE1(shared, pass, number + 100);
	return number + 1;
}
