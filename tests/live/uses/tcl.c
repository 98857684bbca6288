/* SPDX-License-Identifier: GPL-2.0-only */
/* Tcl's values: they start at 0, and are counted inline, or by functions where memory is debugged. */
#include <stdlib.h>
#include <tcl.h>

/* one by one: the compiler would join them */
static __attribute__((noinline)) void take(Tcl_Obj *o)
{
	Tcl_IncrRefCount(o);
}

static __attribute__((noinline)) void give(Tcl_Obj *o)
{
	Tcl_DecrRefCount(o);
}

static void held(Tcl_Obj *o)
{
	take(o);
	Tcl_DbIncrRefCount(o, "file", 1);
	take(o);
	Tcl_DbDecrRefCount(o, "file", 2);
	give(o);
	give(o);
}

int main(int argc, char **argv)
{
	Tcl_FindExecutable(argv[0]);
	for (int i = 0; i < 4; i++) {
		Tcl_Obj *one = Tcl_NewStringObj("one", -1), *list = Tcl_NewListObj(1, &one);

		held(Tcl_NewObj());
		held(Tcl_NewStringObj("x", -1));
		held(Tcl_NewIntObj(7));
		held(Tcl_NewLongObj(7));
		held(Tcl_NewWideIntObj(7));
		held(Tcl_NewDoubleObj(1.5));
		held(Tcl_NewByteArrayObj((const unsigned char *)"x", 1));
		held(Tcl_NewListObj(0, NULL));
		held(Tcl_NewDictObj());
		held(Tcl_DuplicateObj(list));
		held(list);
	}
	return 0;
}
