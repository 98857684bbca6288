/* SPDX-License-Identifier: GPL-2.0-only */
/* CPython's objects: counted inline, and by functions for who cannot; some calls take a reference over. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* one by one: the compiler would join them */
static __attribute__((noinline)) void take(PyObject *o)
{
	Py_INCREF(o);
}

static __attribute__((noinline)) void give(PyObject *o)
{
	Py_DECREF(o);
}

static void held(PyObject *o)
{
	if (!o)
		abort();
	take(o);
	Py_IncRef(o);
	take(o);
	give(o);
	Py_DecRef(o);
	give(o);
	give(o);
}

static PyObject *seen(void)
{
	PyObject *o = PyList_New(0);

	take(o);
	return o;
}

int main(void)
{
	Py_Initialize();
	for (int i = 0; i < 4; i++) {
		PyObject *tuple = PyTuple_New(1), *list = PyList_New(1), *o;

		held(PyList_New(0));
		held(PyDict_New());
		held(PyTuple_New(2));
		held(PySet_New(NULL));
		held(PyUnicode_FromString("some text"));
		held(PyBytes_FromStringAndSize("some bytes", 10));
		held(PyByteArray_FromStringAndSize("some bytes", 10));
		held(PyLong_FromLong(123456789));
		held(PyFloat_FromDouble(1.5));
		held(Py_BuildValue("(ii)", 1, 2));
		o = seen();
		PyTuple_SetItem(tuple, 0, o);
		give(o);
		o = seen();
		PyList_SetItem(list, 0, o);
		give(o);
		Py_DECREF(tuple);
		Py_DECREF(list);
	}
	return 0;
}
