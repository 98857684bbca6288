/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/semaphore.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/proc.h"
#include "base/vec.h"
#include "engine/semaphore_priv.h"

/* How long between two tries, which doubles each time. */
enum { WAIT_MIN_NS = 1000 * 1000, WAIT_MAX_NS = 500 * 1000 * 1000 };

struct pending {
	struct rt_semaphore_place place;
	uint64_t next_ns, wait_ns;
};

struct rt_semaphores {
	pid_t keeper;
	int socket;
	struct rt_map known;   /* pid -> 1: the keeper has its memory */
	struct rt_map lodgers; /* pid -> whose memory it shares */
	RT_VEC(struct pending) pending;
};

struct rt_error *rt_semaphores_create(struct rt_semaphores **ret)
{
	struct rt_semaphores *s = calloc(1, sizeof(*s));
	int pair[2];

	if (!s)
		return rt_error_nomem();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		free(s);
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot make a pair of sockets");
	}
	s->keeper = fork();
	if (s->keeper == 0) {
		rt_proc_stand_alone(pair[1], "reftrace-keeper");
		rt_keeper_run(0);
	}
	close(pair[1]);
	s->socket = pair[0];
	if (s->keeper < 0) {
		int errnum = errno;

		s->keeper = 0;
		rt_semaphores_destroy(s);
		return rt_error_errno(RT_E_SYSTEM, errnum, "cannot start the keeper of semaphores");
	}
	*ret = s;
	return NULL;
}

/* fd[0] < 0: without descriptors */
static struct rt_error *ask(const struct rt_semaphores *s, struct rt_keeper_request *request, const int fd[2],
			    uint32_t *ret)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { 0 };
	struct iovec part = { request, sizeof(*request) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct rt_keeper_answer said;
	ssize_t n;

	if (fd[0] >= 0) {
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fd, 2 * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	do {
		n = sendmsg(s->socket, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	do {
		n = n < 0 ? n : recv(s->socket, &said, sizeof(said), 0);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(said))
		return rt_error_fix(rt_error_new(RT_E_SYSTEM, "the keeper of semaphores has ended: what it had raised "
							      "may stay raised"),
				    "leave the process reftrace-keeper alone");
	if (said.state == RT_KEEPER_NOMEM)
		return rt_error_nomem();
	*ret = said.state;
	return NULL;
}

/* false: it is gone, or not ours to write into. */
static bool open_space(uint32_t pid, int fd[2])
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	fd[0] = open(path, O_RDWR | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	fd[1] = fd[0] < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	return fd[1] >= 0;
}

/* With the process's descriptors where the keeper lacks them. */
static struct rt_error *ask_of(struct rt_semaphores *s, struct rt_keeper_request *request, uint32_t *ret)
{
	const struct rt_key key = rt_key_make(request->place.pid, 0);
	int fd[2] = { -1, -1 };
	struct rt_error *err = NULL;

	*ret = RT_KEEPER_UNKNOWN;
	if (rt_map_get(&s->known, key))
		RT_TRY(ask(s, request, fd, ret));
	if (*ret != RT_KEEPER_UNKNOWN)
		return NULL;
	rt_map_remove(&s->known, key, NULL);
	*ret = RT_SEMAPHORE_GONE;
	if (open_space(request->place.pid, fd)) {
		err = ask(s, request, fd, ret);
		if (!err && !rt_map_put(&s->known, key, NULL))
			err = rt_error_nomem();
	}
	if (fd[0] >= 0)
		close(fd[0]);
	if (fd[1] >= 0)
		close(fd[1]);
	return err;
}

/* Does it live in another's memory still? Until its exec. */
static bool is_lodger(struct rt_semaphores *s, uint32_t pid)
{
	const uint64_t *host = rt_map_get(&s->lodgers, rt_key_make(pid, 0));

	if (!host)
		return false;
	if (rt_proc_same_memory((uint32_t)*host, pid))
		return true;
	rt_map_remove(&s->lodgers, rt_key_make(pid, 0), NULL);
	return false;
}

static struct rt_error *try(struct rt_semaphores *s, const struct rt_semaphore_place *place, uint32_t *ret)
{
	struct rt_keeper_request request = { .op = RT_KEEPER_RAISE, .place = *place };

	*ret = RT_SEMAPHORE_RAISED;
	return is_lodger(s, place->pid) ? NULL : ask_of(s, &request, ret);
}

struct rt_error *rt_semaphores_raise(struct rt_semaphores *s, const struct rt_semaphore_place *place)
{
	uint32_t state = 0;

	RT_TRY(try(s, place, &state));
	if (state != RT_SEMAPHORE_NOT_YET)
		return NULL;
	for (size_t i = 0; i < s->pending.len; i++)
		if (s->pending.data[i].place.pid == place->pid && s->pending.data[i].place.counter == place->counter)
			return NULL;
	return rt_vec_push(&s->pending, ((struct pending){ *place, rt_now_ns() + WAIT_MIN_NS, WAIT_MIN_NS }))
		       ? NULL
		       : rt_error_nomem();
}

struct rt_error *rt_semaphores_settle(struct rt_semaphores *s)
{
	uint64_t now = s->pending.len ? rt_now_ns() : 0;

	for (size_t i = s->pending.len; i-- > 0;) {
		struct pending *p = &s->pending.data[i];
		uint32_t state = 0;

		if (p->next_ns > now)
			continue;
		RT_TRY(try(s, &p->place, &state));
		if (state != RT_SEMAPHORE_NOT_YET) {
			*p = s->pending.data[--s->pending.len];
			continue;
		}
		p->wait_ns = p->wait_ns < WAIT_MAX_NS ? 2 * p->wait_ns : p->wait_ns;
		p->next_ns = now + p->wait_ns;
	}
	return NULL;
}

struct rt_error *rt_semaphores_look(struct rt_semaphores *s, const struct rt_semaphore_place *place,
				    enum rt_semaphore_state *ret)
{
	struct rt_keeper_request request = { .op = RT_KEEPER_LOOK, .place = *place };
	uint32_t state = 0;

	RT_TRY(ask_of(s, &request, &state));
	*ret = (enum rt_semaphore_state)state;
	return NULL;
}

struct rt_error *rt_semaphores_note(struct rt_semaphores *s, const struct rt_semaphore_place *place, bool raised)
{
	struct rt_keeper_request request = { .op = raised ? RT_KEEPER_NOTE_RAISED : RT_KEEPER_NOTE_LOWERED,
					     .place = *place };
	uint32_t state;

	return ask_of(s, &request, &state);
}

struct rt_error *rt_semaphores_fork(struct rt_semaphores *s, uint32_t parent, uint32_t child)
{
	struct rt_keeper_request request = { .op = RT_KEEPER_FORK, .other = parent, .place = { .pid = child } };
	const uint64_t *host = rt_map_get(&s->lodgers, rt_key_make(parent, 0));
	uint32_t state;

	/* told before */
	if (rt_map_get(&s->known, rt_key_make(child, 0)))
		return NULL;
	if (rt_proc_same_memory(parent, child)) {
		uint64_t *slot = rt_map_put(&s->lodgers, rt_key_make(child, 0), NULL);

		if (!slot)
			return rt_error_nomem();
		*slot = parent;
		return NULL;
	}
	request.other = host ? (uint32_t)*host : parent;
	return ask_of(s, &request, &state);
}

struct rt_error *rt_semaphores_leave(struct rt_semaphores *s, uint32_t parent, uint32_t child)
{
	struct rt_keeper_request request = { .op = RT_KEEPER_LEAVE, .other = parent, .place = { .pid = child } };
	const uint64_t *host = rt_map_get(&s->lodgers, rt_key_make(parent, 0));
	uint32_t state;

	/* of a vfork, what is there is the parent's */
	if (rt_proc_same_memory(parent, child))
		return NULL;
	request.other = host ? (uint32_t)*host : parent;
	RT_TRY(ask_of(s, &request, &state));
	rt_map_remove(&s->known, rt_key_make(child, 0), NULL);
	return NULL;
}

struct rt_error *rt_semaphores_forget(struct rt_semaphores *s, uint32_t pid)
{
	struct rt_keeper_request request = { .op = RT_KEEPER_FORGET, .place = { .pid = pid } };
	uint32_t state;

	for (size_t i = s->pending.len; i-- > 0;)
		if (s->pending.data[i].place.pid == pid)
			s->pending.data[i] = s->pending.data[--s->pending.len];
	rt_map_remove(&s->lodgers, rt_key_make(pid, 0), NULL);
	if (!rt_map_remove(&s->known, rt_key_make(pid, 0), NULL))
		return NULL;
	return ask(s, &request, (int[2]){ -1, -1 }, &state);
}

void rt_semaphores_missing(const struct rt_semaphores *s,
			   void (*tell)(const struct rt_semaphore_place *place, void *arg), void *arg)
{
	for (size_t i = 0; i < s->pending.len; i++)
		tell(&s->pending.data[i].place, arg);
}

void rt_semaphores_destroy(struct rt_semaphores *s)
{
	close(s->socket);
	/* it may have been waited for by who waits for every child */
	while (s->keeper > 0 && waitpid(s->keeper, NULL, 0) < 0 && errno == EINTR)
		;
	rt_map_deinit(&s->known);
	rt_map_deinit(&s->lodgers);
	rt_vec_deinit(&s->pending);
	free(s);
}
