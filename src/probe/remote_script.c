/* SPDX-License-Identifier: GPL-2.0-only */
/* The script itself: what all have, what is a file's and what is a kernel's. */
#include <string.h>

#include "probe/remote.h"

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

static const char file_first[] =
	"#!/bin/sh\n"
	"# Probes of a file, written by reftrace. Arguments: install, list, remove or check, and FILE; none: install.\n"
	"# Nothing is written before the build-id was found to be the right one.\n";

static const char kernel_first[] =
	"#!/bin/sh\n"
	"# Probes of a kernel, written by reftrace. Arguments: install, list, remove or check; none: install.\n"
	"# Nothing is written before the build-id was found to be the right one.\n";

/* Numbers and notes of ELF by od (System V gABI), one number a call; then tracefs. */
static const char all[] =
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
	"tracefs() {\n"
	"\tfor events in /sys/kernel/tracing/$control /sys/kernel/debug/tracing/$control; do\n"
	"\t\ttracing=${events%/*}\n"
	"\t\t[ -w \"$events\" ] && return\n"
	"\tdone\n"
	"\tfail \"no tracefs with $control that we may write to; as root: mount -t tracefs tracefs "
	"/sys/kernel/tracing\"\n"
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
	"show() {\n"
	"\twhile IFS= read -r line; do\n"
	"\t\tcase $line in\n"
	"\t\t[pr]*:\"$1 \"*) printf '%s\\n' \"$line\" ;;\n"
	"\t\tesac\n"
	"\tdone <\"$events\"\n"
	"}\n"
	"\n"
	"install() {\n"
	"\tcheck\n"
	"\ttracefs\n"
	"\tfor event in $names; do\n"
	"\t\t[ ! -e \"$tracing/events/$event\" ] || fail \"$event is there already: remove it first; nothing was "
	"done\"\n"
	"\tdone\n"
	"\tadd_all\n"
	"\tverify\n"
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
	"\n";

static const char file_part[] = "# the build-id of the open file, into $id\n"
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
				"\t[ \"$id\" = \"$want\" ] || fail \"$file has the build-id ${id:-(none)}, the probes "
				"are for $want: nothing was done\"\n"
				"\t# words of the kernel's end at blanks and #: such a path is told by the open file\n"
				"\tcase $file in\n"
				"\t*[!A-Za-z0-9_./+@,=~:-]*) at_path=/proc/self/fd/9 ;;\n"
				"\t*) at_path=$file ;;\n"
				"\tesac\n"
				"}\n"
				"\n"
				"# add TYPE EVENT PLACE ARGUMENTS\n"
				"add() {\n"
				"\t{ printf '%s\\n' \"$1:$2 $at_path:$3$4\" >>\"$events\"; } 2>/dev/null && return\n"
				"\tremove >/dev/null\n"
				"\tfail \"the kernel does not take $1:$2 $file:$3$4: nothing stays\"\n"
				"}\n"
				"\n"
				"control=uprobe_events\n";

static const char kernel_part[] =
	"# the build-id of the running kernel, whose notes are those of its image, in its byte order\n"
	"check() {\n"
	"\texec 9<\"$file\" || fail \"cannot read $file: is sysfs mounted?\"\n"
	"\t[ -e /proc/self/fd/9 ] || fail 'there is no /proc'\n"
	"\tid=\n"
	"\torder=$(echo $(printf '\\001\\000' | od -An -v -tu2))\n"
	"\tset -- $(od -An -v -tx1 /proc/self/fd/9)\n"
	"\tnotes 0 \"$#\"\n"
	"\t[ \"$id\" = \"$want\" ] || fail \"this kernel has the build-id ${id:-(none)}, the probes are for $want: "
	"nothing was done\"\n"
	"}\n"
	"\n"
	"# add TYPE EVENT PLACE ARGUMENTS FUNCTION\n"
	"add() {\n"
	"\t{ printf '%s\\n' \"$1:$2 $3$4\" >>\"$events\"; } 2>/dev/null && return\n"
	"\tremove >/dev/null\n"
	"\twhy=' (it may keep this function from being traced: notrace)'\n"
	"\t# a shell alone would read the list byte by byte, for a minute on a slow machine\n"
	"\tif [ -r \"$tracing/available_filter_functions\" ] && command -v grep >/dev/null; then\n"
	"\t\twhy=' (it keeps this function from being traced: notrace)'\n"
	"\t\tgrep -qxF -e \"$5\" \"$tracing/available_filter_functions\" && why=\n"
	"\tfi\n"
	"\tfail \"the kernel does not take $5, $1:$2 $3$4$why: nothing stays\"\n"
	"}\n"
	"\n"
	"verify() {\n"
	"\t:\n"
	"}\n"
	"\n"
	"file=/sys/kernel/notes\n"
	"control=kprobe_events\n";

static const char file_last[] = "\n"
				"# the file may have been replaced while its lines were added\n"
				"verify() {\n"
				"\t[ \"$file\" -ef /proc/self/fd/9 ] && return\n"
				"\tremove >/dev/null\n"
				"\tfail \"$file was replaced meanwhile: nothing stays\"\n"
				"}\n"
				"\n"
				"file=${2:-$file}\n"
				"case $file in\n"
				"/*) ;;\n"
				"*) file=$PWD/$file ;;\n"
				"esac\n";

static const char last[] = "case ${1:-install} in\n"
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

	rt_sink_puts(sink, r->kernel ? kernel_first : file_first);
	rt_sink_puts(sink, all);
	rt_sink_puts(sink, r->kernel ? kernel_part : file_part);
	if (!r->kernel) {
		rt_sink_puts(sink, "file=");
		quote(sink, path);
		rt_sink_puts(sink, "\n");
	}
	rt_sink_puts(sink, "want=");
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
		if (r->kernel) {
			rt_sink_puts(sink, " ");
			quote(sink, p->function ? p->function : p->place);
		}
		rt_sink_puts(sink, "\n");
	}
	if (!r->probes.len)
		rt_sink_puts(sink, "\t:\n");
	rt_sink_puts(sink, "}\n");
	if (!r->kernel)
		rt_sink_puts(sink, file_last);
	rt_sink_puts(sink, last);
}
