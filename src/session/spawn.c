// SPDX-License-Identifier: GPL-2.0-only
#include "session/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "session/internal.h"

static void pipe_close(int (*fds)[2])
{
	for (int i = 0; i < 2; i++) {
		if ((*fds)[i] >= 0)
			close((*fds)[i]);
	}
}

static struct rt_error *start(const struct rt_spawn_options *options, const struct rt_identity *id,
			      struct rt_spawn *ret)
{
	_cleanup_(pipe_close) int go[2] = { -1, -1 };
	_cleanup_(pipe_close) int report[2] = { -1, -1 };
	char **env = NULL;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot make a pipe");
	RT_TRY(rt_identity_environment(id, options->env, &env));
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (!rt_target_await(go[0]))
			_exit(127); /* our parent gave up */
		rt_target_start(id, env, &options->mask, options->command, report[1]);
	}
	rt_environment_free(env);
	if (pid < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot start a process");
	*ret = (struct rt_spawn){
		.pid = pid, .go = rt_take_fd(&go[1]), .report = rt_take_fd(&report[0]), .name = options->command[0]
	};
	return NULL;
}

struct rt_error *rt_spawn_start(const struct rt_spawn_options *options, struct rt_spawn *ret)
{
	struct rt_session_options session = { .user = options->user, .as_root = options->as_root };
	_cleanup_(rt_identity_deinit) struct rt_identity id = { 0 };

	RT_TRY(rt_identity_find(&session, &id));
	return start(options, &id, ret);
}

static void reap(struct rt_spawn *spawn)
{
	while (waitpid(spawn->pid, NULL, 0) < 0 && errno == EINTR)
		;
	spawn->pid = 0;
}

struct rt_error *rt_spawn_go(struct rt_spawn *spawn)
{
	int errnum = 0;
	ssize_t n;

	if (write(spawn->go, "g", 1) < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot start the program");
	/* the other end is closed when exec succeeds */
	do {
		n = read(spawn->report, &errnum, sizeof(errnum));
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(errnum))
		return NULL;
	reap(spawn);
	if (errnum == ENOEXEC)
		return rt_error_fix(rt_error_errno(RT_E_EXEC, errnum, "cannot start %s", spawn->name),
				    "a script needs its interpreter in the first line, or start it with: sh %s",
				    spawn->name);
	return rt_error_errno(RT_E_EXEC, errnum, "cannot start %s", spawn->name);
}

void rt_spawn_deinit(struct rt_spawn *spawn)
{
	if (spawn->go >= 0)
		close(spawn->go);
	if (spawn->report >= 0)
		close(spawn->report);
	spawn->go = spawn->report = -1;
}
