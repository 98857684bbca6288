// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a recording says about the machine: RT_BLOB_HOST, lines "key value":
 *
 *     hostname osrelease version arch cpudesc cpuid      text
 *     nrcpus_online nrcpus_available total_mem_kib       numbers
 *     clockid                                            of the records' times (1 = CLOCK_MONOTONIC)
 *     wall_ns monotonic_ns                               one moment on both clocks
 *     cmdline WORD                                       our own file, then one line per word; \n and \\ stand for
 * newline, backslash
 *
 * and RT_BLOB_TRACING_DATA: the formats of the tracepoints, in the layout of perf's feature of that name.
 */
#include <fcntl.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/fs.h"
#include "base/sink.h"
#include "engine/sampler_priv.h"
#include "event/blob.h"

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Value of the first line "key : value" of a text like /proc/cpuinfo; "" when there is none. Caller frees. */
static char *value_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *p;

		line += *line == '\n';
		if (strncmp(line, key, len) != 0)
			continue;
		p = line + len + strspn(line + len, " \t");
		if (*p != ':')
			continue;
		p += 1 + strspn(p + 1, " \t");
		return strndup(p, strcspn(p, "\n"));
	}
	return strdup("");
}

static struct rt_error *put_cpu(struct rt_sink *out, const char *cpuinfo)
{
	_cleanup_free_ char *model = value_of(cpuinfo, "model name"), *vendor = value_of(cpuinfo, "vendor_id"),
			    *family = value_of(cpuinfo, "cpu family"), *number = value_of(cpuinfo, "model"),
			    *stepping = value_of(cpuinfo, "stepping");

	if (!model || !vendor || !family || !number || !stepping)
		return rt_error_nomem();
	if (*model)
		rt_sink_printf(out, "cpudesc %s\n", model);
	if (*vendor)
		rt_sink_printf(out, "cpuid %s,%s,%s,%s\n", vendor, family, number, stepping);
	return NULL;
}

static void put_word(struct rt_sink *out, const char *word)
{
	rt_sink_puts(out, "cmdline ");
	for (; *word; word++) {
		if (*word == '\n' || *word == '\\')
			rt_sink_puts(out, *word == '\n' ? "\\n" : "\\\\");
		else
			rt_sink_write(out, word, 1);
	}
	rt_sink_puts(out, "\n");
}

static struct rt_error *put_machine(struct rt_sink *out)
{
	_cleanup_free_ char *cpuinfo = NULL, *meminfo = NULL, *total = NULL;
	struct utsname u;

	if (!uname(&u))
		rt_sink_printf(out, "hostname %s\nosrelease %s\narch %s\n", u.nodename, u.release, u.machine);
	rt_error_free(rt_fs_read(AT_FDCWD, "/proc/cpuinfo", 1 << 24, &cpuinfo, NULL));
	rt_error_free(rt_fs_read(AT_FDCWD, "/proc/meminfo", 1 << 20, &meminfo, NULL));
	if (cpuinfo)
		RT_TRY(put_cpu(out, cpuinfo));
	total = meminfo ? value_of(meminfo, "MemTotal") : NULL;
	if (total && *total)
		rt_sink_printf(out, "total_mem_kib %.*s\n", (int)strspn(total, "0123456789"), total);
	return NULL;
}

struct rt_error *rt_sampler_host(const char *const *command_line, const char *version, struct rt_event_sink *sink)
{
	_cleanup_(rt_sink_deinit) struct rt_sink out;
	char exe[4096];
	ssize_t len;

	rt_sink_init_memory(&out);
	RT_TRY(put_machine(&out));
	if (version)
		rt_sink_printf(&out, "version %s\n", version);
	rt_sink_printf(&out, "nrcpus_online %ld\nnrcpus_available %ld\n", sysconf(_SC_NPROCESSORS_ONLN),
		       sysconf(_SC_NPROCESSORS_CONF));
	rt_sink_printf(&out, "clockid %d\nwall_ns %llu\nmonotonic_ns %llu\n", CLOCK_MONOTONIC,
		       (unsigned long long)now_ns(CLOCK_REALTIME), (unsigned long long)now_ns(CLOCK_MONOTONIC));
	len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (len > 0) {
		exe[len] = 0;
		put_word(&out, exe);
	}
	for (const char *const *word = command_line; word && *word; word++)
		put_word(&out, *word);
	RT_TRY(rt_sink_end(&out));
	return rt_blob_emit(sink, RT_BLOB_HOST, 0, rt_bytes_make(out.buffer, out.len));
}

static void put_u32(struct rt_sink *out, uint32_t v)
{
	rt_sink_write(out, &v, sizeof(v));
}

/* u64 size, then the bytes of a file below tracefs */
static struct rt_error *put_file(struct rt_sink *out, const struct rt_sampler *s, const char *path)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	uint64_t size64;

	RT_TRY(rt_fs_read(s->tracefs, path, 1 << 20, &text, &size));
	size64 = size;
	rt_sink_write(out, &size64, sizeof(size64));
	rt_sink_write(out, text, size);
	return NULL;
}

/* true when no earlier event has the same system (or, with the name, is the same tracepoint) */
static bool is_first(const struct rt_event_list *names, size_t index, bool with_name)
{
	const struct rt_event_desc *desc = &names->data[index];

	if (desc->kind != RT_EVENT_TRACEPOINT)
		return false;
	for (size_t i = 0; i < index; i++) {
		const struct rt_event_desc *other = &names->data[i];

		/* of one name there may be several: markers whose arguments differ */
		if (other->kind == RT_EVENT_TRACEPOINT && !strcmp(other->group, desc->group) &&
		    (!with_name || other->config == desc->config))
			return false;
	}
	return true;
}

/* The format of an event; one that we defined under another name gets its own: "name: m0" */
static struct rt_error *put_format(struct rt_sink *out, const struct rt_sampler *s, const struct rt_event_desc *desc)
{
	_cleanup_free_ char *text = NULL;
	const char *rest;
	uint64_t size64;
	char path[320];

	if (!desc->folder) {
		snprintf(path, sizeof(path), "events/%s/%s/format", desc->group, desc->tracepoint);
		return put_file(out, s, path);
	}
	snprintf(path, sizeof(path), "events/%s/format", desc->folder);
	RT_TRY(rt_fs_read(s->tracefs, path, 1 << 20, &text, NULL));
	rest = strchr(text, '\n');
	if (strncmp(text, "name: ", 6) != 0 || !rest)
		return rt_error_new(RT_E_FORMAT, "%s does not begin with a name", path);
	size64 = 6 + strlen(desc->tracepoint) + strlen(rest);
	rt_sink_write(out, &size64, sizeof(size64));
	rt_sink_printf(out, "name: %s%s", desc->tracepoint, rest);
	return NULL;
}

static struct rt_error *put_system(struct rt_sink *out, const struct rt_sampler *s, const struct rt_event_list *names,
				   const char *group)
{
	uint32_t count = 0;

	rt_sink_write(out, group, strlen(group) + 1);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < names->len; i++) {
			const struct rt_event_desc *desc = &names->data[i];

			if (!is_first(names, i, true) || strcmp(desc->group, group) != 0)
				continue;
			if (pass)
				RT_TRY(put_format(out, s, desc));
			else
				count++;
		}
		if (!pass)
			put_u32(out, count);
	}
	return NULL;
}

static struct rt_error *put_formats(struct rt_sink *out, const struct rt_sampler *s, uint32_t systems)
{
	static const uint8_t magic[] = { 23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g', '0', '.', '6', 0 };
	uint8_t machine[2] = { __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, sizeof(long) };
	uint64_t none = 0;

	rt_sink_write(out, magic, sizeof(magic));
	rt_sink_write(out, machine, sizeof(machine));
	put_u32(out, (uint32_t)sysconf(_SC_PAGESIZE));
	rt_sink_write(out, "header_page", 12);
	RT_TRY(put_file(out, s, "events/header_page"));
	rt_sink_write(out, "header_event", 13);
	RT_TRY(put_file(out, s, "events/header_event"));
	put_u32(out, 0); /* formats of ftrace's own events */
	put_u32(out, systems);
	for (size_t i = 0; i < s->names.len; i++) {
		if (is_first(&s->names, i, false))
			RT_TRY(put_system(out, s, &s->names, s->names.data[i].group));
	}
	if (s->module_names.len)
		RT_TRY(put_system(out, s, &s->module_names, s->module_names.data[0].group));
	put_u32(out, 0);                         /* kernel symbols */
	put_u32(out, 0);                         /* printk formats */
	rt_sink_write(out, &none, sizeof(none)); /* saved command lines */
	return rt_sink_end(out);
}

struct rt_error *rt_sampler_read_formats(struct rt_sampler *s)
{
	uint32_t systems = s->module_names.len != 0;

	for (size_t i = 0; i < s->names.len; i++)
		systems += is_first(&s->names, i, false);
	rt_sink_init_memory(&s->formats);
	return systems ? rt_error_wrap(put_formats(&s->formats, s, systems), "the formats of the tracepoints") : NULL;
}

struct rt_error *rt_sampler_emit_formats(struct rt_sampler *s, struct rt_event_sink *sink)
{
	if (!s->formats.len)
		return NULL;
	return rt_blob_emit(sink, RT_BLOB_TRACING_DATA, 0, rt_bytes_make(s->formats.buffer, s->formats.len));
}
