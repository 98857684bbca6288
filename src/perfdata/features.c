/* SPDX-License-Identifier: GPL-2.0-only */
#include "perfdata/feature.h"

#include <string.h>

#include "perfdata/attr.h"

static struct rt_error *cut(void)
{
	return rt_error_new(RT_E_TRUNCATED, "its contents do not fit into its size");
}

#define TAKE(ok) \
	do { \
		if (!(ok)) \
			return cut(); \
	} while (0)

/* Room for one more element behind count; grows at powers of two. */
static bool grow(void *array, size_t count, size_t size)
{
	void *old, *wider;

	if (count & (count - 1))
		return true;
	memcpy(&old, array, sizeof(old));
	wider = realloc(old, (count ? 2 * count : 1) * size);
	if (!wider)
		return false;
	memcpy(array, &wider, sizeof(wider));
	return true;
}

/* u32 length, then that many bytes with the string and its padding. */
static struct rt_error *take_string(struct rt_cursor *c, char **ret)
{
	struct rt_bytes bytes;
	uint32_t size;
	char *text;

	TAKE(rt_cursor_u32(c, &size) && rt_cursor_bytes(c, size, &bytes));
	text = strndup(size ? (const char *)bytes.data : "", size);
	if (!text)
		return rt_error_nomem();
	free(*ret);
	*ret = text;
	return NULL;
}

static void free_command(struct rt_perf_header *header)
{
	for (size_t i = 0; i < header->command_count; i++)
		free(header->command[i]);
	free(header->command);
	header->command = NULL;
	header->command_count = 0;
}

static struct rt_error *take_command(struct rt_cursor *c, struct rt_perf_header *header)
{
	uint32_t nr;

	TAKE(rt_cursor_u32(c, &nr));
	free_command(header);
	for (uint32_t i = 0; i < nr; i++) {
		char *word = NULL;

		RT_TRY(take_string(c, &word));
		if (!grow(&header->command, header->command_count, sizeof(*header->command))) {
			free(word);
			return rt_error_nomem();
		}
		header->command[header->command_count++] = word;
	}
	return NULL;
}

struct rt_error *rt_perf_event_ids(struct rt_perf_event *event, struct rt_cursor *c, uint64_t count)
{
	if (count > rt_cursor_left(c) / 8)
		return rt_error_new(RT_E_TRUNCATED, "%llu event ids are not there", (unsigned long long)count);
	free(event->ids);
	event->id_count = 0;
	event->ids = calloc(count ? count : 1, sizeof(*event->ids));
	if (!event->ids)
		return rt_error_nomem();
	while (event->id_count < count && rt_cursor_u64(c, &event->ids[event->id_count]))
		event->id_count++;
	return NULL;
}

void rt_perf_events_deinit(struct rt_perf_events *events)
{
	for (size_t i = 0; i < events->list.len; i++) {
		free(events->list.data[i].ids);
		free(events->list.data[i].name);
	}
	rt_vec_deinit(&events->list);
}

static struct rt_perf_event *by_number(struct rt_perf_events *events, size_t number)
{
	return number < events->list.len ? &events->list.data[number] : NULL;
}

static struct rt_perf_event *by_id(struct rt_perf_decoder *d, struct rt_perf_events *events, uint64_t id)
{
	unsigned number;

	return rt_perf_decoder_find(d, id, &number) ? by_number(events, number) : NULL;
}

static struct rt_error *take_event_desc(struct rt_cursor *c, struct rt_perf_decoder *d, struct rt_perf_events *events)
{
	uint32_t nr, attr_size, ids;

	TAKE(rt_cursor_u32(c, &nr) && rt_cursor_u32(c, &attr_size) && (!nr || attr_size >= RT_PERF_ATTR_MIN));
	for (uint32_t i = 0; i < nr; i++) {
		_cleanup_free_ char *name = NULL;
		struct rt_perf_event *event;
		struct rt_cursor list;
		uint64_t id = 0;

		TAKE(rt_cursor_skip(c, attr_size) && rt_cursor_u32(c, &ids));
		RT_TRY(take_string(c, &name));
		list = *c;
		TAKE(rt_cursor_skip(c, (uint64_t)ids * 8));
		event = ids && rt_cursor_u64(&list, &id) ? by_id(d, events, id) : by_number(events, i);
		if (!event || !*name)
			continue;
		free(event->name);
		event->name = rt_take(name);
	}
	return NULL;
}

struct rt_error *rt_perf_build_id_read(struct rt_bytes record, bool big_endian, struct rt_perf_header *header)
{
	struct rt_cursor c = rt_cursor_make(record, big_endian);
	struct rt_perf_build_id entry = { .size = sizeof(entry.id) };
	struct rt_bytes id;
	const char *path;
	uint8_t size;

	TAKE(rt_cursor_skip(&c, 4) && rt_cursor_u16(&c, &entry.misc) && rt_cursor_skip(&c, 2) &&
	     rt_cursor_u32(&c, &entry.pid) && rt_cursor_bytes(&c, sizeof(entry.id), &id) && rt_cursor_u8(&c, &size) &&
	     rt_cursor_skip(&c, 3) && rt_cursor_string(&c, &path));
	if ((entry.misc & RT_PERF_MISC_BUILD_ID_SIZE) && size <= sizeof(entry.id))
		entry.size = size;
	memcpy(entry.id, id.data, entry.size);
	entry.path = strdup(path);
	if (!entry.path)
		return rt_error_nomem();
	if (!grow(&header->build_ids, header->build_id_count, sizeof(*header->build_ids))) {
		free(entry.path);
		return rt_error_nomem();
	}
	header->build_ids[header->build_id_count++] = entry;
	return NULL;
}

/* Records without a type of their own. */
static struct rt_error *take_build_ids(struct rt_cursor *c, struct rt_perf_header *header)
{
	while (rt_cursor_left(c)) {
		struct rt_cursor head = *c;
		struct rt_bytes record;
		uint16_t size;

		TAKE(rt_cursor_skip(&head, 6) && rt_cursor_u16(&head, &size) && size >= 8 &&
		     rt_cursor_bytes(c, size, &record));
		RT_TRY(rt_perf_build_id_read(record, c->big_endian, header));
	}
	return NULL;
}

static struct rt_error *add_blob(struct rt_perf_blob **list, size_t *count, struct rt_perf_blob blob)
{
	if (!grow(list, *count, sizeof(**list)))
		return rt_error_nomem();
	(*list)[(*count)++] = blob;
	return NULL;
}

/* Each whole: {info_len, data_len, arrays, info, data}. */
static struct rt_error *take_bpf_progs(struct rt_cursor *c, struct rt_perf_header *header)
{
	uint32_t nr, info_len, data_len;

	TAKE(rt_cursor_u32(c, &nr));
	for (uint32_t i = 0; i < nr; i++) {
		struct rt_cursor head = *c;
		struct rt_perf_blob blob = { 0 };

		TAKE(rt_cursor_u32(&head, &info_len) && rt_cursor_u32(&head, &data_len) &&
		     rt_cursor_bytes(c, (uint64_t)16 + info_len + data_len, &blob.bytes));
		RT_TRY(add_blob(&header->bpf_progs, &header->bpf_prog_count, blob));
	}
	return NULL;
}

static struct rt_error *take_btfs(struct rt_cursor *c, struct rt_perf_header *header)
{
	uint32_t nr, size;

	TAKE(rt_cursor_u32(c, &nr));
	for (uint32_t i = 0; i < nr; i++) {
		struct rt_perf_blob blob = { 0 };

		TAKE(rt_cursor_u32(c, &blob.id) && rt_cursor_u32(c, &size) && rt_cursor_bytes(c, size, &blob.bytes));
		RT_TRY(add_blob(&header->btfs, &header->btf_count, blob));
	}
	return NULL;
}

static struct rt_error *take_clock_data(struct rt_cursor *c, struct rt_perf_header *header)
{
	uint32_t version, id;
	uint64_t wall, clock;

	TAKE(rt_cursor_u32(c, &version) && rt_cursor_u32(c, &id) && rt_cursor_u64(c, &wall) &&
	     rt_cursor_u64(c, &clock));
	header->clock_data_id = id;
	header->wall_clock_ns = wall;
	header->clockid_time_ns = clock;
	return NULL;
}

static struct rt_error *take_numbers(unsigned feature, struct rt_cursor *c, struct rt_perf_header *header)
{
	if (feature == RT_PERF_FEAT_NRCPUS)
		TAKE(rt_cursor_u32(c, &header->cpus_available) && rt_cursor_u32(c, &header->cpus_online));
	if (feature == RT_PERF_FEAT_TOTAL_MEM)
		TAKE(rt_cursor_u64(c, &header->total_mem_kib));
	if (feature == RT_PERF_FEAT_SAMPLE_TIME)
		TAKE(rt_cursor_u64(c, &header->first_ns) && rt_cursor_u64(c, &header->last_ns));
	if (feature == RT_PERF_FEAT_CLOCKID) {
		TAKE(rt_cursor_u64(c, &header->clockid));
		header->has_clockid = true;
	}
	return NULL;
}

struct rt_error *rt_perf_feature_read(unsigned feature, struct rt_cursor *c, struct rt_perf_decoder *decoder,
				      struct rt_perf_events *events, struct rt_perf_header *header)
{
	switch (feature) {
	case RT_PERF_FEAT_TRACING_DATA:
		TAKE(rt_cursor_bytes(c, rt_cursor_left(c), &header->tracing_data));
		return NULL;
	case RT_PERF_FEAT_BUILD_ID:
		return take_build_ids(c, header);
	case RT_PERF_FEAT_HOSTNAME:
		return take_string(c, &header->hostname);
	case RT_PERF_FEAT_OSRELEASE:
		return take_string(c, &header->osrelease);
	case RT_PERF_FEAT_VERSION:
		return take_string(c, &header->version);
	case RT_PERF_FEAT_ARCH:
		return take_string(c, &header->arch);
	case RT_PERF_FEAT_CPUDESC:
		return take_string(c, &header->cpudesc);
	case RT_PERF_FEAT_CPUID:
		return take_string(c, &header->cpuid);
	case RT_PERF_FEAT_CMDLINE:
		return take_command(c, header);
	case RT_PERF_FEAT_EVENT_DESC:
		return take_event_desc(c, decoder, events);
	case RT_PERF_FEAT_BPF_PROG_INFO:
		return take_bpf_progs(c, header);
	case RT_PERF_FEAT_BPF_BTF:
		return take_btfs(c, header);
	case RT_PERF_FEAT_COMPRESSED:
		header->compressed = true;
		return NULL;
	case RT_PERF_FEAT_CLOCK_DATA:
		return take_clock_data(c, header);
	default:
		return take_numbers(feature, c, header);
	}
}

void rt_perf_header_deinit(struct rt_perf_header *header)
{
	char *strings[] = { header->hostname, header->osrelease, header->version,
			    header->arch,     header->cpudesc,   header->cpuid };

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		free(strings[i]);
	free_command(header);
	for (size_t i = 0; i < header->build_id_count; i++)
		free(header->build_ids[i].path);
	free(header->build_ids);
	free(header->bpf_progs);
	free(header->btfs);
	memset(header, 0, sizeof(*header));
}
