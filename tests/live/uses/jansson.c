/* SPDX-License-Identifier: GPL-2.0-only */
/* jansson: references that are taken and given back inline, and those that containers take over. */
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>

static void held(json_t *o)
{
	if (!o)
		abort();
	json_incref(o);
	json_incref(o);
	json_decref(o);
	json_decref(o);
	json_decref(o);
}

/* what takes it over leaves the count as it is */
static json_t *seen(json_t *o)
{
	json_incref(o);
	return o;
}

int main(void)
{
	json_error_t error;

	for (int i = 0; i < 4; i++) {
		json_t *object = json_object(), *array = json_array(), *value;

		held(json_object());
		held(json_array());
		held(json_string("x"));
		held(json_stringn("x", 1));
		held(json_string_nocheck("x"));
		held(json_integer(7));
		held(json_real(1.5));
		held(json_loads("[1, {}]", 0, &error));
		held(json_loadb("[1]", 3, 0, &error));
		held(json_pack("{s:i}", "a", 1));
		held(json_copy(object));
		held(json_deep_copy(array));
		value = seen(json_integer(1));
		json_object_set_new(object, "a", value);
		json_decref(value);
		value = seen(json_integer(2));
		json_object_set_new_nocheck(object, "b", value);
		json_decref(value);
		value = seen(json_integer(3));
		json_array_append_new(array, value);
		json_decref(value);
		value = seen(json_integer(4));
		json_array_insert_new(array, 0, value);
		json_decref(value);
		value = seen(json_integer(5));
		json_array_set_new(array, 0, value);
		json_decref(value);
		json_object_set(object, "c", array);
		json_decref(array);
		json_decref(object);
	}
	return 0;
}
