/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts that perf skips (ftrace events, kallsyms, printk formats, command
 * names) are there with size 0. header_page and header_event describe the
 * kernel's ring buffer; libtraceevent wants them, perf.data does not use them.
 */
#include "perfdata/tracing_write.h"

#include <ctype.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n"
				   "\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

static const char common_fields[] = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
				    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
				    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
				    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
				    "\n";

void rt_perf_raw_common(uint16_t id, int32_t pid, uint8_t ret[RT_PERF_RAW_COMMON])
{
	memset(ret, 0, RT_PERF_RAW_COMMON);
	memcpy(ret, &id, sizeof(id));
	memcpy(ret + 4, &pid, sizeof(pid));
}

static bool is_word(const char *text, const char *also)
{
	if (!text || !*text)
		return false;
	for (const char *p = text; *p; p++)
		if (!isascii(*p) || (!isalnum((unsigned char)*p) && *p != '_' && !strchr(also, *p)))
			return false;
	return true;
}

static struct rt_error *check(const struct rt_perf_format_spec *event)
{
	if (!is_word(event->group, "") || !is_word(event->name, ""))
		return rt_error_new(RT_E_FORMAT, "the name of event '%s:%s' has other characters than A-Z a-z 0-9 _",
				    event->group ? event->group : "", event->name ? event->name : "");
	for (size_t i = 0; i < event->field_count; i++)
		if (!is_word(event->fields[i].name, "") || !is_word(event->fields[i].type, " *"))
			return rt_error_new(RT_E_FORMAT, "field %zu of event %s has a name or type that is no C", i,
					    event->name);
	if (event->print && strchr(event->print, '\n'))
		return rt_error_new(RT_E_FORMAT, "the print format of event %s has a line break", event->name);
	return NULL;
}

static bool is_text(const struct rt_perf_field_spec *field)
{
	return strcmp(field->type, "char") == 0 && (field->array || field->data_loc);
}

/* The conversion of a field in a print format that nobody wrote by hand. */
static const char *conversion(const struct rt_perf_field_spec *field)
{
	if (is_text(field) || field->array || field->data_loc)
		return "%s";
	if (field->size == 8)
		return field->is_signed ? "%lld" : "%llu";
	if (!field->is_signed)
		return "%u";
	/* libtraceevent does not extend the sign by itself */
	return field->size == 1 ? "%hhd" : field->size == 2 ? "%hd" : "%d";
}

static void put_argument(struct rt_sink *out, const struct rt_perf_field_spec *field)
{
	if (is_text(field) && field->data_loc)
		rt_sink_printf(out, ", __get_str(%s)", field->name);
	else if (field->data_loc)
		rt_sink_printf(out, ", __print_hex(__get_dynamic_array(%s), __get_dynamic_array_len(%s))", field->name,
			       field->name);
	else if (field->array && !is_text(field))
		rt_sink_printf(out, ", __print_array(REC->%s, %u, %u)", field->name, field->array,
			       field->size / field->array);
	else
		rt_sink_printf(out, ", REC->%s", field->name);
}

static void put_print(struct rt_sink *out, const struct rt_perf_format_spec *event)
{
	rt_sink_puts(out, "\nprint fmt: ");
	if (event->print) {
		rt_sink_printf(out, "%s\n", event->print);
		return;
	}
	rt_sink_puts(out, "\"");
	for (size_t i = 0; i < event->field_count; i++)
		rt_sink_printf(out, "%s%s=%s", i ? " " : "", event->fields[i].name, conversion(&event->fields[i]));
	rt_sink_puts(out, "\"");
	for (size_t i = 0; i < event->field_count; i++)
		put_argument(out, &event->fields[i]);
	rt_sink_puts(out, "\n");
}

static void put_field(struct rt_sink *out, const struct rt_perf_field_spec *field)
{
	if (field->data_loc)
		rt_sink_printf(out, "\tfield:__data_loc %s[] %s;", field->type, field->name);
	else if (field->array)
		rt_sink_printf(out, "\tfield:%s %s[%u];", field->type, field->name, field->array);
	else
		rt_sink_printf(out, "\tfield:%s %s;", field->type, field->name);
	rt_sink_printf(out, "\toffset:%u;\tsize:%u;\tsigned:%d;\n", field->offset, field->size, field->is_signed);
}

/* u64 size and the format file of one event */
static struct rt_error *put_event(struct rt_sink *sink, const struct rt_perf_format_spec *event)
{
	_cleanup_(rt_sink_deinit) struct rt_sink text;
	uint64_t size;

	rt_sink_init_memory(&text);
	rt_sink_printf(&text, "name: %s\nID: %u\nformat:\n%s", event->name, event->id, common_fields);
	for (size_t i = 0; i < event->field_count; i++)
		put_field(&text, &event->fields[i]);
	put_print(&text, event);
	RT_TRY(rt_sink_end(&text));
	size = text.len;
	rt_sink_write(sink, &size, sizeof(size));
	rt_sink_write(sink, text.buffer, text.len);
	return NULL;
}

static bool first_of_system(const struct rt_perf_format_spec *events, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (strcmp(events[i].group, events[at].group) == 0)
			return false;
	return true;
}

static void put_u32(struct rt_sink *sink, uint32_t value)
{
	rt_sink_write(sink, &value, sizeof(value));
}

static void put_header(struct rt_sink *sink, const char *name, const char *text)
{
	uint64_t size = strlen(text);

	rt_sink_write(sink, name, strlen(name) + 1);
	rt_sink_write(sink, &size, sizeof(size));
	rt_sink_write(sink, text, strlen(text));
}

static struct rt_error *put_systems(struct rt_sink *sink, const struct rt_perf_format_spec *events, size_t count)
{
	uint32_t systems = 0;

	for (size_t i = 0; i < count; i++)
		systems += first_of_system(events, i);
	put_u32(sink, systems);
	for (size_t i = 0; i < count; i++) {
		uint32_t of_system = 0;

		if (!first_of_system(events, i))
			continue;
		for (size_t j = i; j < count; j++)
			of_system += strcmp(events[j].group, events[i].group) == 0;
		rt_sink_write(sink, events[i].group, strlen(events[i].group) + 1);
		put_u32(sink, of_system);
		for (size_t j = i; j < count; j++)
			if (strcmp(events[j].group, events[i].group) == 0)
				RT_TRY(put_event(sink, &events[j]));
	}
	return NULL;
}

struct rt_error *rt_perf_tracing_data_write(const struct rt_perf_format_spec *events, size_t count,
					    struct rt_sink *sink)
{
	static const uint8_t magic[] = { 23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g', '0', '.', '6', 0 };
	const uint8_t machine[] = { __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, sizeof(long) };
	uint64_t command_names = 0;

	for (size_t i = 0; i < count; i++)
		RT_TRY(check(&events[i]));
	rt_sink_write(sink, magic, sizeof(magic));
	rt_sink_write(sink, machine, sizeof(machine));
	put_u32(sink, PAGE_BYTES);
	put_header(sink, "header_page", header_page);
	put_header(sink, "header_event", header_event);
	put_u32(sink, 0); /* ftrace's own events */
	RT_TRY(put_systems(sink, events, count));
	put_u32(sink, 0); /* kallsyms */
	put_u32(sink, 0); /* printk formats */
	rt_sink_write(sink, &command_names, sizeof(command_names));
	return NULL;
}
