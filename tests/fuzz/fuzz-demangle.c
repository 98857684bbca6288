/* SPDX-License-Identifier: GPL-2.0-only */
/* Any bytes as a mangled name: what is read has a bounded length and is a text; a name without parameters is no longer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *name = strndup((const char *)data, size), *whole = NULL, *bare = NULL, *rust = NULL;

	if (!name)
		return 0;
	whole = rt_demangle(name);
	bare = rt_demangle_name(name);
	rust = rt_demangle_rust(name);
	if (!whole != !bare || (whole && !*whole) || (rust && (!*rust || strlen(rust) > (1u << 16))))
		abort();
	return 0;
}
