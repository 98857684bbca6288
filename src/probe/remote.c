/* SPDX-License-Identifier: GPL-2.0-only */
#include "probe/remote.h"

#include <ctype.h>
#include <string.h>

#include "base/bytes.h"

static void probe_deinit(struct rt_remote_probe *p)
{
	free(p->event);
	free(p->place);
	free(p->args);
}

void rt_remote_deinit(struct rt_remote *r)
{
	for (size_t i = 0; i < r->probes.len; i++)
		probe_deinit(&r->probes.data[i]);
	rt_vec_deinit(&r->probes);
}

static size_t identifier(const char *text)
{
	size_t len = 0;

	if (!isalpha((unsigned char)*text) && *text != '_')
		return 0;
	while (isalnum((unsigned char)text[len]) || text[len] == '_')
		len++;
	return len;
}

/* Bytes of "0x10a9" at text; 0: it is none. */
static size_t hex_number(const char *text)
{
	size_t digits = strncmp(text, "0x", 2) ? 0 : strspn(text + 2, "0123456789abcdefABCDEF");

	return digits ? 2 + digits : 0;
}

/* "0x10a9", "0x10a9(0x3020)" and nothing else */
static bool is_place(const char *text, size_t len)
{
	size_t at = hex_number(text), more;

	if (!at || at == len)
		return at;
	if (text[at] != '(')
		return false;
	more = hex_number(text + at + 1);
	return more && at + 1 + more == len - 1 && text[len - 1] == ')';
}

/* The kernel ends a line at '#', and so does a newline; other control characters have no business there. */
static bool is_clean(const char *text)
{
	while (*text && *text != '#' && !iscntrl((unsigned char)*text))
		text++;
	return !*text;
}

/* The next " NAME=FETCH[:TYPE]" behind *at. false: there is none. */
static bool next_argument(const char **at, const char **name, size_t *name_len, const char **type, size_t *type_len)
{
	const char *colon = NULL;

	*at += strspn(*at, " ");
	if (!**at)
		return false;
	*name = *at;
	*name_len = strcspn(*at, " =");
	for (; **at && **at != ' '; ++*at)
		if (**at == ':')
			colon = *at + 1;
	*type = colon ?: *at;
	*type_len = (size_t)(*at - *type);
	return true;
}

static bool same_arguments(const char *a, const char *b)
{
	const char *name[2], *type[2];
	size_t name_len[2], type_len[2];

	for (;;) {
		bool some = next_argument(&a, &name[0], &name_len[0], &type[0], &type_len[0]);
		bool other = next_argument(&b, &name[1], &name_len[1], &type[1], &type_len[1]);

		if (!some || !other)
			return some == other;
		if (name_len[0] != name_len[1] || type_len[0] != type_len[1] ||
		    memcmp(name[0], name[1], name_len[0]) != 0 || memcmp(type[0], type[1], type_len[0]) != 0)
			return false;
	}
}

/* Can the probe be one more place of the event of its name? Else the name is another one's. */
static bool fits(const struct rt_remote *r, const struct rt_remote_probe *p)
{
	for (size_t i = 0; i < r->probes.len; i++) {
		const struct rt_remote_probe *other = &r->probes.data[i];

		if (!strcmp(other->event, p->event) &&
		    (other->type != p->type || !same_arguments(other->args, p->args)))
			return false;
	}
	return true;
}

static bool is_there(const struct rt_remote *r, const struct rt_remote_probe *p)
{
	for (size_t i = 0; i < r->probes.len; i++)
		if (!strcmp(r->probes.data[i].event, p->event) && !strcmp(r->probes.data[i].place, p->place))
			return true;
	return false;
}

/* *ret: strings owned by the caller, also on failure */
static struct rt_error *parse(const char *line, struct rt_remote_probe *ret)
{
	size_t group = line[0] && line[1] == ':' ? identifier(line + 2) : 0;
	const char *event = line + 2 + group + 1;
	size_t name = group && event[-1] == '/' ? identifier(event) : 0;
	const char *path = event + name + 1, *end, *colon;

	ret->type = *line;
	if ((*line != 'p' && *line != 'r') || !name || path[-1] != ' ' || !is_clean(line))
		return rt_error_new(RT_E_FORMAT, "no definition of a uprobe: %s", line);
	end = path + strcspn(path, " ");
	colon = memrchr(path, ':', (size_t)(end - path));
	if (!colon || *path != '/' || !is_place(colon + 1, (size_t)(end - colon) - 1))
		return rt_error_new(RT_E_FORMAT, "no place in a file: %s", line);
	ret->event = strndup(line + 2, group + 1 + name);
	ret->place = strndup(colon + 1, (size_t)(end - colon) - 1);
	ret->args = strdup(end);
	return ret->event && ret->place && ret->args ? NULL : rt_error_nomem();
}

/* NAME_1, NAME_2, ... where the name is another event's. */
static struct rt_error *name_apart(const struct rt_remote *r, struct rt_remote_probe *p)
{
	_cleanup_free_ char *first = p->event ? strdup(p->event) : NULL;
	char *event;

	if (!first)
		return rt_error_nomem();
	for (unsigned n = 1; !fits(r, p); n++) {
		if (asprintf(&event, "%s_%u", first, n) < 0)
			return rt_error_nomem();
		free(p->event);
		p->event = event;
	}
	return NULL;
}

struct rt_error *rt_remote_add(struct rt_remote *r, const char *line)
{
	struct rt_remote_probe p = { 0 };
	struct rt_error *err = parse(line, &p);

	if (!err)
		err = name_apart(r, &p);
	/* it has a name then; clang-tidy does not see it */
	if (!err && p.event && !is_there(r, &p)) {
		if (rt_vec_push(&r->probes, p))
			return NULL;
		err = rt_error_nomem();
	}
	probe_deinit(&p);
	return err;
}

struct rt_error *rt_remote_lines(const struct rt_remote *r, const char *path, struct rt_sink *sink)
{
	if (*path != '/' || strpbrk(path, " \t") || !is_clean(path))
		return rt_error_fix(rt_error_new(RT_E_FORMAT, "a line for the kernel cannot hold the path '%s'", path),
				    "the script can: leave --lines out");
	for (size_t i = 0; i < r->probes.len; i++) {
		const struct rt_remote_probe *p = &r->probes.data[i];

		rt_sink_printf(sink, "%c:%s %s:%s%s\n", p->type, p->event, path, p->place, p->args);
	}
	return NULL;
}

/* A word that no shell looks into: '...' with '\'' for each quote. */
static void quote(struct rt_sink *sink, const char *text)
{
	rt_sink_puts(sink, "'");
	for (; *text; text++) {
		if (*text == '\'')
			rt_sink_puts(sink, "'\\''");
		else
			rt_sink_write(sink, text, 1);
	}
	rt_sink_puts(sink, "'");
}

/* What stands before the data: numbers and notes of ELF by od (System V gABI), one number a call. */
static const char head[] =
	"#!/bin/sh\n"
	"# Probes of a file, written by reftrace. Arguments: install, list, remove or check, and FILE; none: install.\n"
	"# Nothing is written before the build-id of the file was found to be the right one.\n"
	"set -u\n"
	"LC_ALL=C\n"
	"export LC_ALL\n"
	"unset IFS\n"
	"set -f\n"
	"\n"
	"fail() {\n"
	"\tprintf 'reftrace: %s\\n' \"$*\" >&2\n"
	"\texit 1\n"
	"}\n"
	"\n"
	"# number OFFSET BYTES: in the file's byte order, into $n\n"
	"number() {\n"
	"\tn=0\n"
	"\tunit=1\n"
	"\tcount=0\n"
	"\tfor byte in $(od -An -v -tu1 -j \"$1\" -N \"$2\" /proc/self/fd/9); do\n"
	"\t\tcount=$((count + 1))\n"
	"\t\tif [ \"$order\" = 1 ]; then\n"
	"\t\t\tn=$((n + byte * unit))\n"
	"\t\t\tunit=$((unit * 256))\n"
	"\t\telse\n"
	"\t\t\tn=$((n * 256 + byte))\n"
	"\t\tfi\n"
	"\tdone\n"
	"\t[ \"$count\" = \"$2\" ] || fail \"$file is cut, or no ELF file\"\n"
	"\t[ \"$n\" -ge 0 ] || fail \"$file is damaged\"\n"
	"}\n"
	"\n"
	"# notes OFFSET END: the build-id among them, into $id\n"
	"notes() {\n"
	"\tat=$1\n"
	"\tlimit=0\n"
	"\twhile [ $((at + 12)) -le \"$2\" ] && [ \"$limit\" -lt 64 ]; do\n"
	"\t\tlimit=$((limit + 1))\n"
	"\t\tnumber \"$at\" 4\n"
	"\t\tname=$n\n"
	"\t\tnumber $((at + 4)) 4\n"
	"\t\tsize=$n\n"
	"\t\tnumber $((at + 8)) 4\n"
	"\t\tdata=$((at + 12 + (name + 3) / 4 * 4))\n"
	"\t\tif [ \"$n\" = 3 ] && [ \"$name\" = 4 ] && [ $((data + size)) -le \"$2\" ] && [ \"$size\" -le 64 ] &&\n"
	"\t\t\t[ \"$(echo $(od -An -v -tx1 -j $((at + 12)) -N 4 /proc/self/fd/9))\" = '47 4e 55 00' ]; then\n"
	"\t\t\tfor byte in $(od -An -v -tx1 -j \"$data\" -N \"$size\" /proc/self/fd/9); do\n"
	"\t\t\t\tid=$id$byte\n"
	"\t\t\tdone\n"
	"\t\t\treturn\n"
	"\t\tfi\n"
	"\t\tat=$((data + (size + 3) / 4 * 4))\n"
	"\tdone\n"
	"}\n"
	"\n"
	"# the build-id of the open file, into $id\n"
	"build_id() {\n"
	"\tid=\n"
	"\torder=1\n"
	"\tset -- $(od -An -v -tu1 -N 6 /proc/self/fd/9)\n"
	"\t[ \"${1-} ${2-} ${3-} ${4-}\" = '127 69 76 70' ] || fail \"$file is no ELF file\"\n"
	"\torder=$6\n"
	"\tif [ \"$5\" = 2 ]; then\n"
	"\t\tword=8 table=32 counts=54 where=8 length=32\n"
	"\telse\n"
	"\t\tword=4 table=28 counts=42 where=4 length=16\n"
	"\tfi\n"
	"\tnumber \"$table\" \"$word\"\n"
	"\tentry=$n\n"
	"\tnumber \"$counts\" 2\n"
	"\tentry_size=$n\n"
	"\tnumber $((counts + 2)) 2\n"
	"\tentries=$n\n"
	"\twhile [ \"$entries\" -gt 0 ] && [ -z \"$id\" ]; do\n"
	"\t\tnumber \"$entry\" 4\n"
	"\t\tif [ \"$n\" = 4 ]; then\n"
	"\t\t\tnumber $((entry + where)) \"$word\"\n"
	"\t\t\tstart=$n\n"
	"\t\t\tnumber $((entry + length)) \"$word\"\n"
	"\t\t\tnotes \"$start\" $((start + n))\n"
	"\t\tfi\n"
	"\t\tentry=$((entry + entry_size))\n"
	"\t\tentries=$((entries - 1))\n"
	"\tdone\n"
	"}\n"
	"\n"
	"check() {\n"
	"\texec 9<\"$file\" || fail \"cannot read $file\"\n"
	"\t[ -e /proc/self/fd/9 ] || fail 'there is no /proc'\n"
	"\tbuild_id\n"
	"\t[ \"$id\" = \"$want\" ] || fail \"$file has the build-id ${id:-(none)}, the probes are for $want: nothing "
	"was done\"\n"
	"}\n"
	"\n"
	"tracefs() {\n"
	"\tfor events in /sys/kernel/tracing/uprobe_events /sys/kernel/debug/tracing/uprobe_events; do\n"
	"\t\ttracing=${events%/uprobe_events}\n"
	"\t\t[ -w \"$events\" ] && return\n"
	"\tdone\n"
	"\tfail 'no tracefs with uprobe_events that we may write to; as root: mount -t tracefs tracefs "
	"/sys/kernel/tracing'\n"
	"}\n"
	"\n"
	"remove_one() {\n"
	"\t[ -e \"$tracing/events/$1\" ] || return 0\n"
	"\t{ echo 0 >\"$tracing/events/$1/enable\"; } 2>/dev/null\n"
	"\t{ printf '%s\\n' \"-:$1\" >>\"$events\"; } 2>/dev/null && return\n"
	"\tprintf 'reftrace: %s is in use: end who records it\\n' \"$1\" >&2\n"
	"\treturn 1\n"
	"}\n"
	"\n"
	"# add TYPE EVENT PLACE ARGUMENTS\n"
	"add() {\n"
	"\t{ printf '%s\\n' \"$1:$2 $at_path:$3$4\" >>\"$events\"; } 2>/dev/null && return\n"
	"\tremove >/dev/null\n"
	"\tfail \"the kernel does not take $1:$2 $file:$3$4: nothing stays\"\n"
	"}\n"
	"\n"
	"show() {\n"
	"\twhile IFS= read -r line; do\n"
	"\t\tcase $line in\n"
	"\t\t[pr]:\"$1 \"*) printf '%s\\n' \"$line\" ;;\n"
	"\t\tesac\n"
	"\tdone <\"$events\"\n"
	"}\n"
	"\n";

static const char tail[] = "\n"
			   "install() {\n"
			   "\tcheck\n"
			   "\ttracefs\n"
			   "\tfor event in $names; do\n"
			   "\t\t[ ! -e \"$tracing/events/$event\" ] || fail \"$event is there already: remove it "
			   "first; nothing was done\"\n"
			   "\tdone\n"
			   "\t# words of the kernel's end at blanks and #: such a path is told by the open file\n"
			   "\tcase $file in\n"
			   "\t*[!A-Za-z0-9_./+@,=~:-]*) at_path=/proc/self/fd/9 ;;\n"
			   "\t*) at_path=$file ;;\n"
			   "\tesac\n"
			   "\tadd_all\n"
			   "\t[ \"$file\" -ef /proc/self/fd/9 ] || {\n"
			   "\t\tremove >/dev/null\n"
			   "\t\tfail \"$file was replaced meanwhile: nothing stays\"\n"
			   "\t}\n"
			   "\tlist\n"
			   "}\n"
			   "\n"
			   "list() {\n"
			   "\ttracefs\n"
			   "\tfor event in $names; do\n"
			   "\t\tshow \"$event\"\n"
			   "\tdone\n"
			   "}\n"
			   "\n"
			   "remove() {\n"
			   "\ttracefs\n"
			   "\tleft=0\n"
			   "\tfor event in $names; do\n"
			   "\t\tremove_one \"$event\" || left=1\n"
			   "\tdone\n"
			   "\treturn \"$left\"\n"
			   "}\n"
			   "\n"
			   "file=${2:-$file}\n"
			   "case $file in\n"
			   "/*) ;;\n"
			   "*) file=$PWD/$file ;;\n"
			   "esac\n"
			   "case ${1:-install} in\n"
			   "install) install ;;\n"
			   "list) list ;;\n"
			   "remove) remove ;;\n"
			   "check) check && printf '%s has the build-id %s\\n' \"$file\" \"$id\" ;;\n"
			   "*) fail \"no command '$1': install, list, remove or check\" ;;\n"
			   "esac\n";

static bool is_first(const struct rt_remote *r, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (!strcmp(r->probes.data[i].event, r->probes.data[index].event))
			return false;
	return true;
}

void rt_remote_script(const struct rt_remote *r, const char *path, const char *build_id, struct rt_sink *sink)
{
	bool some = false;

	rt_sink_puts(sink, head);
	rt_sink_puts(sink, "file=");
	quote(sink, path);
	rt_sink_puts(sink, "\nwant=");
	quote(sink, build_id);
	rt_sink_puts(sink, "\n# identifiers alone: the shell takes them apart at blanks\nnames='");
	for (size_t i = 0; i < r->probes.len; i++) {
		if (!is_first(r, i))
			continue;
		rt_sink_printf(sink, "%s%s", some ? " " : "", r->probes.data[i].event);
		some = true;
	}
	rt_sink_puts(sink, "'\n\nadd_all() {\n");
	for (size_t i = 0; i < r->probes.len; i++) {
		const struct rt_remote_probe *p = &r->probes.data[i];

		rt_sink_printf(sink, "\tadd %c %s '%s' ", p->type, p->event, p->place);
		quote(sink, p->args);
		rt_sink_puts(sink, "\n");
	}
	if (!r->probes.len)
		rt_sink_puts(sink, "\t:\n");
	rt_sink_puts(sink, "}\n");
	rt_sink_puts(sink, tail);
}
