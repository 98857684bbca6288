/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "option.h"
#include "text.h"
#include "thread.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char buffer[RC_TEXT_SIZE];

void rc_text_lock(void)
{
	pthread_mutex_lock(&lock);
}

void rc_text_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static bool take_lock(void)
{
	bool have = false;

	if (rc_thread.writing)
		return false;
	rc_thread.writing = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!rc_cut_off)
		have = !pthread_mutex_lock(&lock);
	else
		have = !pthread_mutex_trylock(&lock);
	if (!have)
		rc_thread.writing = false;
	return have;
}

bool rc_text_begin(struct rc_text *t)
{
	t->error = errno;
	t->alone = !take_lock();
	t->data = t->alone ? t->own : buffer;
	t->size = t->alone ? sizeof(t->own) : sizeof(buffer);
	t->len = 0;
	return t->alone;
}

static int open_output(void)
{
	const char *path = rc_option()->output;
	int fd = *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : STDERR_FILENO;

	return fd < 0 ? STDERR_FILENO : fd;
}

static void flush(struct rc_text *t)
{
	int fd = open_output();

	for (size_t done = 0; done < t->len;) {
		ssize_t n = write(fd, t->data + done, t->len - done);

		if (n < 0 && errno != EINTR)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd != STDERR_FILENO)
		close(fd);
	t->len = 0;
}

void rc_text_add(struct rc_text *t, const char *format, ...)
{
	char line[RC_TEXT_OWN];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(line))
		n = sizeof(line) - 1;
	if (t->len + (size_t)n > t->size)
		flush(t);
	for (int i = 0; i < n; i++)
		t->data[t->len++] = line[i];
}

void rc_text_write(struct rc_text *t)
{
	flush(t);
	if (!t->alone) {
		rc_text_unlock();
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		rc_thread.writing = false;
	}
	errno = t->error;
}
