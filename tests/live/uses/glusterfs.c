/* SPDX-License-Identifier: GPL-2.0-only */
/* libglusterfs: dictionaries, their values and I/O buffers. */
#include <glusterfs/api/glfs.h>
#include <stdint.h>
#include <stdlib.h>

/* of headers that are not installed in a form that compiles alone */
typedef struct dict dict_t;
typedef struct data data_t;
struct iobuf;
struct iobref;
dict_t *dict_new(void);
dict_t *dict_ref(dict_t *);
void dict_unref(dict_t *);
data_t *int_to_data(int64_t);
data_t *str_to_data(char *);
data_t *data_ref(data_t *);
void data_unref(data_t *);
struct iobref *iobref_new(void);
struct iobref *iobref_ref(struct iobref *);
void iobref_unref(struct iobref *);

int main(void)
{
	glfs_t *fs = glfs_new("none");
	static char text[] = "text";

	if (!fs)
		return 1;
	for (int i = 0; i < 4; i++) {
		dict_t *dict = dict_new();
		data_t *data = int_to_data(7);
		struct iobref *ref = iobref_new();

		if (!dict || !data || !ref)
			return 2;
		dict_ref(dict);
		dict_ref(dict);
		dict_unref(dict);
		dict_unref(dict);
		dict_unref(dict);
		/* a new one has no reference yet */
		data_ref(data);
		data_ref(data);
		data_unref(data);
		data_unref(data);
		data = str_to_data(text);
		data_ref(data);
		data_unref(data);
		iobref_ref(ref);
		iobref_ref(ref);
		iobref_unref(ref);
		iobref_unref(ref);
		iobref_unref(ref);
	}
	return 0;
}
