/* SPDX-License-Identifier: GPL-2.0-only */
/* Buckets that share their data: what is counted is the data's. */
#include <apr_buckets.h>
#include <apr_general.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
	apr_pool_t *pool;
	apr_bucket_alloc_t *list;

	if (apr_initialize() || apr_pool_create(&pool, NULL))
		return 1;
	list = apr_bucket_alloc_create(pool);
	for (int i = 0; i < 4; i++) {
		apr_bucket *a, *b, *c;

		a = apr_bucket_heap_create("0123456789", 10, NULL, list);
		if (apr_bucket_copy(a, &b) || apr_bucket_split(a, 5) || apr_bucket_copy(b, &c))
			return 1;
		apr_bucket_destroy(APR_BUCKET_NEXT(a));
		apr_bucket_destroy(a);
		apr_bucket_destroy(b);
		apr_bucket_destroy(c);
	}
	return 0;
}
