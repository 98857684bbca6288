/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

struct rt_control {
	struct rt_side_source source; /* first; its fd is the fifo of commands */
	struct rt_control_hooks hooks;
	int ack;
	char line[128];
	size_t len;
	bool overlong; /* the rest of a line that is no command */
};

static void acknowledge(struct rt_control *c)
{
	/* an answer that nobody reads must not stop the recording */
	if (c->ack >= 0 && write(c->ack, "ack\n", 4) < 0)
		errno = 0;
}

static struct rt_error *command(struct rt_control *c, const char *text)
{
	bool enable = !strcmp(text, "enable");

	if (!*text)
		return NULL;
	if ((enable || !strcmp(text, "disable")) && c->hooks.enable)
		RT_TRY(c->hooks.enable(c->hooks.arg, enable));
	else if (!strcmp(text, "snapshot") && c->hooks.snapshot)
		RT_TRY(c->hooks.snapshot(c->hooks.arg));
	else if (!strcmp(text, "stop") && c->hooks.stop)
		RT_TRY(c->hooks.stop(c->hooks.arg));
	else if (strcmp(text, "ping") != 0) {
		fprintf(stderr,
			"reftrace: --control: '%.*s' is no command here; there are: enable, disable, snapshot, "
			"stop, ping\n",
			(int)strspn(text, "abcdefghijklmnopqrstuvwxyz-_ 0123456789"), text);
		return NULL;
	}
	acknowledge(c);
	return NULL;
}

static struct rt_error *drain(struct rt_side_source *self, struct rt_event_sink *sink)
{
	struct rt_control *c = (struct rt_control *)(void *)self;
	char buffer[256];
	ssize_t n;

	while ((n = read(c->source.fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buffer[i] == '\n' || !buffer[i]) {
				c->line[c->len] = 0;
				c->len = 0;
				if (!c->overlong)
					RT_TRY(command(c, c->line));
				c->overlong = false;
			} else if (c->len < sizeof(c->line) - 1) {
				c->line[c->len++] = buffer[i];
			} else {
				c->overlong = true;
			}
		}
	}
	return NULL;
}

static struct rt_error *open_fifo(const char *path, int *ret)
{
	/* read and write: there is no end when a writer goes, and no waiting for one */
	_cleanup_close_ int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return rt_error_fix(rt_error_errno(errno == ENOENT ? RT_E_NOT_FOUND : RT_E_UNREADABLE, errno,
						   "--control: cannot open %s", path),
				    "make it before: mkfifo %s", path);
	if (fstat(fd, &st) || !S_ISFIFO(st.st_mode))
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--control: %s is no fifo", path), "mkfifo %s", path);
	*ret = rt_take_fd(&fd);
	return NULL;
}

static struct rt_error *take_fd(const char *text, int *ret)
{
	uint64_t fd;
	int copy;

	if (!rt_parse_u64(text, strlen(text), 10, &fd) || fd > INT32_MAX)
		return rt_error_new(RT_E_USAGE, "--control: '%s' is no file descriptor", text);
	copy = fcntl((int)fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return rt_error_errno(RT_E_USAGE, errno, "--control: file descriptor %s", text);
	fcntl(copy, F_SETFL, O_NONBLOCK);
	*ret = copy;
	return NULL;
}

struct rt_error *rt_control_open(const char *spec, const struct rt_control_hooks *hooks, struct rt_control **ret)
{
	bool fifo = !strncmp(spec, "fifo:", 5);
	_cleanup_free_ char *text = strdup(strchr(spec, ':') ? strchr(spec, ':') + 1 : "");
	_cleanup_(rt_control_closep) struct rt_control *c = calloc(1, sizeof(*c));
	char *comma;

	if (!text || !c)
		return rt_error_nomem();
	c->source.drain = drain;
	c->source.fd = c->ack = -1;
	c->hooks = *hooks;
	if ((!fifo && strncmp(spec, "fd:", 3) != 0) || !*text)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "--control=%s cannot be understood", spec),
				    "write --control=fifo:CTL,ACK; before: mkfifo CTL ACK");
	comma = strchr(text, ',');
	if (comma)
		*comma = 0;
	RT_TRY(fifo ? open_fifo(text, &c->source.fd) : take_fd(text, &c->source.fd));
	if (comma)
		RT_TRY(fifo ? open_fifo(comma + 1, &c->ack) : take_fd(comma + 1, &c->ack));
	*ret = rt_take(c);
	return NULL;
}

struct rt_side_source *rt_control_source(struct rt_control *control)
{
	return &control->source;
}

void rt_control_close(struct rt_control *control)
{
	if (control->source.fd >= 0)
		close(control->source.fd);
	if (control->ack >= 0)
		close(control->ack);
	free(control);
}
