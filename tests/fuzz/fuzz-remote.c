/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any text as definitions for another host, of a file or of a kernel: what is taken is within what its control file
 * may be given, says the same when it is read again, and stands in the script as words that the shell does not look
 * into. The first byte's lowest bit: of a kernel. Then a path and a build-id, each up to a byte 0, and lines; behind a
 * tab of one is the function.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "input.h"
#include "probe/remote.h"
#include "remote_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* "GROUP/EVENT", both names of C */
static bool is_event(const char *text)
{
	for (unsigned part = 0; part < 2; part++) {
		if (!isalpha((unsigned char)*text) && *text != '_')
			return false;
		while (isalnum((unsigned char)*text) || *text == '_')
			text++;
		if (*text++ != (part ? '\0' : '/'))
			return false;
	}
	return true;
}

static void check_probe(const struct rt_remote *remote, const struct rt_remote_probe *p)
{
	if ((p->type != 'p' && p->type != 'r') || !is_event(p->event) || !*p->place || strpbrk(p->place, " \t\n#'/") ||
	    strncmp(p->place, remote->kernel ? "_text+" : "0x", 2) != 0 || (*p->args && *p->args != ' '))
		abort();
	for (const char *c = p->args; *c; c++)
		if (*c == '#' || iscntrl((unsigned char)*c))
			abort();
}

/* What the shell makes of the word at *at, which moves behind it; as sh(1) has quotation, not as quote() writes it. */
static char *shell_word(const char **at)
{
	char *word = malloc(strlen(*at) + 1), *out = word;
	bool quoted = false;

	if (!word)
		abort();
	for (; **at && (quoted || (**at != ' ' && **at != '\n')); ++*at) {
		if (**at == '\'')
			quoted = !quoted;
		else if (quoted)
			*out++ = **at;
		else if (**at == '\\' && (*at)[1])
			*out++ = *++*at;
		else if (isalnum((unsigned char)**at) || strchr("_+/", **at))
			*out++ = **at;
		else
			abort(); /* what it may look into */
	}
	if (quoted)
		abort();
	*out = '\0';
	return word;
}

static void expect_word(const char **at, const char *wanted)
{
	char *word = shell_word(at);

	if (strcmp(word, wanted) != 0)
		abort();
	free(word);
	*at += **at == ' ';
}

static const char *behind(const char *text, const char *begin)
{
	const char *at = strstr(text, begin);

	if (!at)
		abort();
	return at + strlen(begin);
}

static void check_script(const struct rt_remote *remote, const char *path, const char *build_id)
{
	struct rt_sink sink;
	const char *at;

	rt_sink_init_memory(&sink);
	rt_remote_script(remote, remote->kernel ? NULL : path, build_id, &sink);
	if (rt_sink_end(&sink) || strlen(sink.buffer) != sink.len)
		abort();
	at = sink.buffer;
	if (!remote->kernel) {
		at = behind(at, "control=uprobe_events\nfile=");
		expect_word(&at, path);
	} else {
		at = behind(at, "control=kprobe_events\n");
		at--;
	}
	if (strncmp(at, "\nwant=", 6) != 0)
		abort();
	at += 6;
	expect_word(&at, build_id);
	at = behind(at, "\nadd_all() {\n");
	for (size_t i = 0; i < remote->probes.len; i++) {
		const struct rt_remote_probe *p = &remote->probes.data[i];
		char type[] = { p->type, '\0' };

		if (*at++ != '\t')
			abort();
		expect_word(&at, "add");
		expect_word(&at, type);
		expect_word(&at, p->event);
		expect_word(&at, p->place);
		expect_word(&at, p->args);
		if (remote->kernel)
			expect_word(&at, p->function ?: p->place);
		if (*at++ != '\n')
			abort();
	}
	if (strncmp(at, remote->probes.len ? "}\n" : "\t:\n}\n", remote->probes.len ? 2 : 5) != 0)
		abort();
	rt_sink_deinit(&sink);
}

/* Read again: the same, under the same names. */
static void check_again(const struct rt_remote *remote)
{
	struct rt_remote again = { .kernel = remote->kernel };
	_cleanup_free_ char *text = remote_lines(remote), *copy = strdup(text), *same = NULL;
	char *rest = copy, *line;

	while (rest && (line = strsep(&rest, "\n")))
		if (*line && rt_remote_add(&again, line, NULL))
			abort();
	same = remote_lines(&again);
	if (strcmp(text, same) != 0)
		abort();
	rt_remote_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rt_bytes input = rt_bytes_make(data, size);
	struct rt_remote remote = { .kernel = size && data[0] & 1 };
	_cleanup_free_ char *path = NULL, *build_id = NULL, *lines = NULL;
	struct rt_sink sink;
	char *rest, *line;

	if (!size)
		return 0;
	input = rt_bytes_make(data + 1, size - 1);
	path = take_text(&input);
	build_id = take_text(&input);
	rest = lines = take_text(&input);
	while ((line = strsep(&rest, "\n"))) {
		char *function = line;
		/* exactly as long as it is: reading beyond its end is seen by ASan */
		_cleanup_free_ char *own = strdup(strsep(&function, "\t"));

		if (!own)
			abort();
		rt_error_free(rt_remote_add(&remote, own, function));
	}
	for (size_t i = 0; i < remote.probes.len; i++)
		check_probe(&remote, &remote.probes.data[i]);
	check_again(&remote);
	check_script(&remote, path, build_id);
	rt_sink_init_memory(&sink);
	rt_error_free(rt_remote_lines(&remote, path, &sink));
	rt_error_free(rt_sink_end(&sink));
	rt_sink_deinit(&sink);
	rt_remote_deinit(&remote);
	return 0;
}
