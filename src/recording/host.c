/* SPDX-License-Identifier: GPL-2.0-only */
/* The lines "key value" of a HOST blob, as fields of perf.data's header. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "recording/inventory.h"

/* "\n" and "\\" stand for a newline and a backslash. NULL: out of memory. */
static char *unescaped(const char *text, size_t len)
{
	char *out = malloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; out && i < len; i++) {
		if (text[i] == '\\' && i + 1 < len) {
			i++;
			out[n++] = text[i] == 'n' ? '\n' : text[i];
		} else {
			out[n++] = text[i];
		}
	}
	if (out)
		out[n] = 0;
	return out;
}

static struct rt_error *add_word(struct rt_perf_header *h, const char *text, size_t len)
{
	char **more = realloc(h->command, (h->command_count + 1) * sizeof(*more));

	if (!more)
		return rt_error_nomem();
	h->command = more;
	more[h->command_count] = unescaped(text, len);
	if (!more[h->command_count])
		return rt_error_nomem();
	h->command_count++;
	return NULL;
}

static bool is(const char *key, size_t len, const char *name)
{
	return strlen(name) == len && !memcmp(key, name, len);
}

static char **text_field(struct rt_perf_header *h, const char *key, size_t len)
{
	return is(key, len, "hostname")    ? &h->hostname
	       : is(key, len, "osrelease") ? &h->osrelease
	       : is(key, len, "version")   ? &h->version
	       : is(key, len, "arch")      ? &h->arch
	       : is(key, len, "cpudesc")   ? &h->cpudesc
	       : is(key, len, "cpuid")     ? &h->cpuid
					   : NULL;
}

static void number_field(struct rt_perf_header *h, const char *key, size_t len, uint64_t n)
{
	if (is(key, len, "nrcpus_online"))
		h->cpus_online = (uint32_t)n;
	else if (is(key, len, "nrcpus_available"))
		h->cpus_available = (uint32_t)n;
	else if (is(key, len, "total_mem_kib"))
		h->total_mem_kib = n;
	else if (is(key, len, "clockid"))
		h->clock_data_id = (uint32_t)n;
	else if (is(key, len, "wall_ns"))
		h->wall_clock_ns = n;
	else if (is(key, len, "monotonic_ns"))
		h->clockid_time_ns = n;
}

struct rt_error *rt_inventory_host(struct rt_perf_header *h, struct rt_bytes bytes)
{
	const char *at = (const char *)bytes.data, *end = at + bytes.size;

	/* said again in a later file of a switched output: the words would double */
	for (size_t i = 0; i < h->command_count; i++)
		free(h->command[i]);
	h->command_count = 0;
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at)), *value;
		uint64_t n;
		char **text;

		stop = stop ? stop : end;
		value = memchr(at, ' ', (size_t)(stop - at));
		if (value) {
			size_t key = (size_t)(value - at), len = (size_t)(stop - value - 1);

			text = text_field(h, at, key);
			if (text) {
				free(*text);
				*text = strndup(value + 1, len);
				if (!*text)
					return rt_error_nomem();
			} else if (is(at, key, "cmdline")) {
				RT_TRY(add_word(h, value + 1, len));
			} else if (rt_parse_u64(value + 1, len, 10, &n)) {
				number_field(h, at, key, n);
			}
		}
		at = stop + 1;
	}
	return NULL;
}
