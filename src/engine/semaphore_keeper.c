/* SPDX-License-Identifier: GPL-2.0-only */
/* The keeper of the semaphores that we raise: the books, and who writes. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/vec.h"
#include "engine/semaphore_priv.h"
#include "maps/maps.h"

enum { MAPS_MAX = 64 << 20, SWEEP_MIN = 64 };

/* A counter that is raised, and which mapping it was in. */
struct raised {
	uint64_t counter, offset, inode;
	uint32_t major, minor;
};

/* The memory of a process. */
struct space {
	uint32_t pid;
	int memory, maps;
	RT_VEC(struct raised) raised;
};

struct keeper {
	RT_VEC(struct space *) spaces;
	struct rt_map by_pid; /* pid -> struct space * */
	size_t sweep;         /* when there are so many, those that are gone are looked for */
};

static struct space *find(const struct keeper *k, uint32_t pid)
{
	uint64_t *slot = rt_map_get(&k->by_pid, rt_key_make(pid, 0));

	return slot ? (struct space *)(uintptr_t)*slot : NULL;
}

static void drop(struct keeper *k, struct space *space)
{
	for (size_t i = 0; i < k->spaces.len; i++) {
		if (k->spaces.data[i] == space) {
			k->spaces.data[i] = k->spaces.data[--k->spaces.len];
			break;
		}
	}
	rt_map_remove(&k->by_pid, rt_key_make(space->pid, 0), NULL);
	close(space->memory);
	close(space->maps);
	rt_vec_deinit(&space->raised);
	free(space);
}

static bool peek(const struct space *space, uint64_t at, uint16_t *ret)
{
	return pread(space->memory, ret, sizeof(*ret), (off_t)at) == sizeof(*ret);
}

static bool poke(const struct space *space, uint64_t at, uint16_t value)
{
	return pwrite(space->memory, &value, sizeof(value), (off_t)at) == sizeof(value);
}

/* Memory that nobody uses any more reads as an empty file. */
static bool is_gone(const struct space *space)
{
	uint8_t byte;

	return pread(space->memory, &byte, 1, 0) == 0;
}

/* The lines of what lies at two addresses; those that are not mapped have no end. false: it cannot be read. */
static bool read_lines(const struct space *space, const uint64_t at[2], struct rt_maps_line ret[2])
{
	_cleanup_error_ struct rt_error *err = NULL;
	_cleanup_free_ char *text = NULL;
	struct rt_maps_line line;
	char *cursor;

	ret[0] = ret[1] = (struct rt_maps_line){ 0 };
	if (lseek(space->maps, 0, SEEK_SET) < 0)
		return false;
	err = rt_fs_read_fd(space->maps, "maps", MAPS_MAX, &text, NULL);
	if (err || !*text)
		return false;
	cursor = text;
	while (rt_maps_parse_line(&cursor, &line)) {
		for (int i = 0; i < 2; i++) {
			if (at[i] >= line.start && at[i] < line.end)
				ret[i] = line;
		}
	}
	ret[0].path = ret[1].path = NULL; /* they pointed into text */
	return true;
}

/* A private mapping of a file, with this place of it at `at`. */
static bool holds(const struct rt_maps_line *line, uint64_t at, uint64_t offset)
{
	return line->inode && !line->shared && line->end - at >= sizeof(uint16_t) &&
	       line->offset + (at - line->start) == offset;
}

static bool same_file(const struct rt_maps_line *line, const struct raised *r)
{
	return line->inode == r->inode && line->dev_major == r->major && line->dev_minor == r->minor;
}

static struct raised *entry(const struct space *space, uint64_t counter)
{
	for (size_t i = 0; i < space->raised.len; i++)
		if (space->raised.data[i].counter == counter)
			return &space->raised.data[i];
	return NULL;
}

static void remove_entry(struct space *space, struct raised *r)
{
	*r = space->raised.data[--space->raised.len];
}

/* READY: ret says what an entry would be. One that is in the books and no more raised is not any more. */
static enum rt_semaphore_state look(struct space *space, const struct rt_semaphore_place *place, struct raised *ret)
{
	struct rt_maps_line line[2];
	struct raised *known = entry(space, place->counter);
	uint16_t value;

	if (is_gone(space) || !read_lines(space, (uint64_t[2]){ place->code, place->counter }, line))
		return RT_SEMAPHORE_GONE;
	*ret = (struct raised){ place->counter, place->offset, line[0].inode, line[0].dev_major, line[0].dev_minor };
	if (!line[0].inode || !line[1].writable || !holds(&line[1], place->counter, place->offset) ||
	    !same_file(&line[1], ret) || !peek(space, place->counter, &value))
		return RT_SEMAPHORE_NOT_YET;
	if (known && value && same_file(&line[1], known))
		return RT_SEMAPHORE_RAISED;
	if (known)
		remove_entry(space, known);
	return RT_SEMAPHORE_READY;
}

static uint32_t raise_counter(struct space *space, const struct rt_semaphore_place *place)
{
	struct raised fresh;
	enum rt_semaphore_state state = look(space, place, &fresh);
	uint16_t value;

	if (state != RT_SEMAPHORE_READY)
		return state;
	/* in the books first: what is lowered without need is looked at, and what is forgotten is not */
	if (!rt_vec_push(&space->raised, fresh))
		return RT_KEEPER_NOMEM;
	if (peek(space, place->counter, &value) && value < UINT16_MAX &&
	    poke(space, place->counter, (uint16_t)(value + 1)))
		return RT_SEMAPHORE_RAISED;
	space->raised.len--;
	return RT_SEMAPHORE_NOT_YET;
}

static uint32_t note(struct space *space, const struct rt_semaphore_place *place, bool raised)
{
	struct raised fresh, *known;
	enum rt_semaphore_state state = look(space, place, &fresh);

	known = entry(space, place->counter);
	if (!raised && known)
		remove_entry(space, known);
	if (!raised || known || state != RT_SEMAPHORE_READY)
		return state;
	return rt_vec_push(&space->raised, fresh) ? RT_SEMAPHORE_RAISED : RT_KEEPER_NOMEM;
}

/* Only what is still the mapping that was written into. */
static void lower(const struct space *space)
{
	for (size_t i = 0; i < space->raised.len; i++) {
		const struct raised *r = &space->raised.data[i];
		struct rt_maps_line line[2];
		uint16_t value;

		if (read_lines(space, (uint64_t[2]){ r->counter, 0 }, line) && holds(&line[0], r->counter, r->offset) &&
		    same_file(&line[0], r) && peek(space, r->counter, &value) && value)
			(void)poke(space, r->counter, (uint16_t)(value - 1));
	}
}

/* A copy of the parent's memory, made before or after the parent's counter was raised. */
static uint32_t inherit(struct keeper *k, struct space *child, uint32_t parent)
{
	const struct space *from = find(k, parent);

	for (size_t i = 0; from && i < from->raised.len; i++) {
		const struct raised *r = &from->raised.data[i];
		struct rt_maps_line line[2];
		uint16_t value;

		if (entry(child, r->counter) || !read_lines(child, (uint64_t[2]){ r->counter, 0 }, line) ||
		    !holds(&line[0], r->counter, r->offset) || !same_file(&line[0], r) ||
		    !peek(child, r->counter, &value))
			continue;
		if (!value && !poke(child, r->counter, 1))
			continue;
		if (!rt_vec_push(&child->raised, *r))
			return RT_KEEPER_NOMEM;
	}
	return RT_SEMAPHORE_RAISED;
}

static void sweep(struct keeper *k)
{
	if (k->spaces.len < k->sweep)
		return;
	for (size_t i = k->spaces.len; i-- > 0;)
		if (is_gone(k->spaces.data[i]))
			drop(k, k->spaces.data[i]);
	k->sweep = 2 * k->spaces.len > SWEEP_MIN ? 2 * k->spaces.len : SWEEP_MIN;
}

/* Takes both descriptors. NULL: out of memory. */
static struct space *add(struct keeper *k, uint32_t pid, const int fd[2])
{
	struct space *old = find(k, pid), *space;
	uint64_t *slot;

	if (old)
		drop(k, old);
	sweep(k);
	space = calloc(1, sizeof(*space));
	slot = space && rt_vec_push(&k->spaces, space) ? rt_map_put(&k->by_pid, rt_key_make(pid, 0), NULL) : NULL;
	if (!slot) {
		if (space && k->spaces.len && k->spaces.data[k->spaces.len - 1] == space)
			k->spaces.len--;
		free(space);
		close(fd[0]);
		close(fd[1]);
		return NULL;
	}
	*slot = (uint64_t)(uintptr_t)space;
	space->pid = pid;
	space->memory = fd[0];
	space->maps = fd[1];
	return space;
}

static uint32_t answer(struct keeper *k, const struct rt_keeper_request *r, const int fd[2])
{
	struct space *space = find(k, r->place.pid);
	struct raised ignored;
	uint32_t state;

	if (fd[0] >= 0) {
		space = add(k, r->place.pid, fd);
		if (!space)
			return RT_KEEPER_NOMEM;
	}
	if (r->op == RT_KEEPER_FORGET) {
		if (space)
			drop(k, space);
		return RT_SEMAPHORE_GONE;
	}
	/* an exec took the memory away that is known */
	if (!space || (fd[0] < 0 && is_gone(space)))
		return RT_KEEPER_UNKNOWN;
	switch ((enum rt_keeper_op)r->op) {
	case RT_KEEPER_RAISE:
		return raise_counter(space, &r->place);
	case RT_KEEPER_NOTE_RAISED:
	case RT_KEEPER_NOTE_LOWERED:
		return note(space, &r->place, r->op == RT_KEEPER_NOTE_RAISED);
	case RT_KEEPER_FORK:
		return inherit(k, space, r->other);
	case RT_KEEPER_LEAVE:
		state = inherit(k, space, r->other);
		lower(space);
		drop(k, space);
		return state;
	default:
		return look(space, &r->place, &ignored);
	}
}

/* false: the other end is closed. */
static bool receive(int socket, struct rt_keeper_request *ret, int fd[2])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec part = { ret, sizeof(*ret) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	const struct cmsghdr *head;
	ssize_t n;

	do {
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	fd[0] = fd[1] = -1;
	if (n != sizeof(*ret))
		return false;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(2 * sizeof(int)))
		memcpy(fd, CMSG_DATA(head), 2 * sizeof(int));
	return true;
}

void rt_keeper_run(int socket)
{
	struct keeper k = { .sweep = SWEEP_MIN };
	struct rt_keeper_request request;
	int fd[2];

	while (receive(socket, &request, fd)) {
		struct rt_keeper_answer said = { answer(&k, &request, fd) };

		if (send(socket, &said, sizeof(said), MSG_NOSIGNAL) != sizeof(said))
			break;
	}
	for (size_t i = 0; i < k.spaces.len; i++)
		lower(k.spaces.data[i]);
	_exit(0);
}
