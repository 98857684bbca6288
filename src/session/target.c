/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Launching the program. The child waits on a pipe until it is seized, then
 * becomes the program: same process group, same terminal, the signal mask,
 * dispositions and limits that we were started with, and only its own fds (all
 * of ours close on exec).
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "session/internal.h"

extern char **environ;

unsigned long rt_session_ptrace_flags(const struct rt_session *s)
{
	/* SYSGOOD: for calls that an engine makes in the name of a tracee */
	unsigned long flags = PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_TRACESYSGOOD;

	/* what is written into a program is in its children, too, whether these are followed or not */
	if (s->options.no_follow && !s->ops->room && s->options.engine.semaphore != RT_SEMAPHORE_WRITE)
		return flags;
	return flags | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
}

static bool become(const struct rt_identity *id)
{
	if (!id->change)
		return true;
	return setgroups((size_t)id->group_count, id->groups) == 0 && setresgid(id->gid, id->gid, id->gid) == 0 &&
	       setresuid(id->uid, id->uid, id->uid) == 0;
}

/*
 * Becomes the program, found as execvp() finds it; but a file that the kernel does not take is no shell script:
 * execvp() would trace a shell that reads it. Returns with errno.
 */
static void become_program(const char *const *command)
{
	const char *name = command[0], *path = getenv("PATH") ?: "/usr/local/bin:/usr/bin:/bin";
	/* the list is the owner's; exec does not write to it */
	char *const *argv = (char *const *)(uintptr_t)command;
	int found = ENOENT;

	if (!name[0] || strchr(name, '/')) {
		execv(name, argv);
		return;
	}
	for (const char *at = path, *end; at; at = *end ? end + 1 : NULL) {
		char file[PATH_MAX];

		end = strchrnul(at, ':');
		if (snprintf(file, sizeof(file), "%.*s%s%s", (int)(end - at), at, end > at ? "/" : "./", name) >=
		    (int)sizeof(file))
			continue;
		execv(file, argv);
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
			return;
		found = errno == EACCES ? EACCES : found;
	}
	errno = found;
}

bool rt_target_await(int go)
{
	char byte;
	ssize_t n;

	do {
		n = read(go, &byte, 1);
	} while (n < 0 && errno == EINTR);
	return n == 1;
}

void rt_target_start(const struct rt_identity *id, char **env, const sigset_t *mask, const char *const *command,
		     int report)
{
	int errnum;

	if (become(id)) {
		environ = env;
		sigprocmask(SIG_SETMASK, mask, NULL);
		become_program(command);
	}
	errnum = errno;
	if (write(report, &errnum, sizeof(errnum)) < 0)
		_exit(125);
	_exit(errnum == ENOENT ? 127 : 126);
}

/* In the child, between fork and exec; never returns. */
static void child(struct rt_session *s, const struct rt_identity *id, char **env, int go, int report)
{
	if (!rt_target_await(go))
		_exit(125); /* we were killed before anything was started */
	sigaction(SIGCHLD, &s->old_chld, NULL);
	for (size_t i = 0; i < sizeof(s->old_limits) / sizeof(s->old_limits[0]); i++) {
		if (s->old_limits[i].known)
			setrlimit(s->old_limits[i].resource, &s->old_limits[i].limit);
	}
	rt_target_start(id, env, &s->old_mask, s->options.command, report);
}

struct pipes {
	int go[2], report[2];
};

static void pipes_close(struct pipes *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->go[i] >= 0)
			close(p->go[i]);
		if (p->report[i] >= 0)
			close(p->report[i]);
	}
}

static struct rt_error *seize_child(struct rt_session *s, pid_t pid)
{
	struct rt_process *p;

	if (ptrace(PTRACE_SEIZE, pid, 0, rt_session_ptrace_flags(s)) < 0)
		return rt_error_fix(rt_error_errno(RT_E_PRIVILEGE, errno, "cannot trace processes here"),
				    "a container or sandbox that forbids ptrace: allow CAP_SYS_PTRACE "
				    "(docker run --cap-add=SYS_PTRACE)");
	p = rt_process_add(s, (uint32_t)pid);
	if (!p || !rt_thread_add(s, p, (uint32_t)pid))
		return rt_error_nomem();
	return NULL;
}

static void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

struct rt_error *rt_session_launch(struct rt_session *s)
{
	_cleanup_(rt_identity_deinit) struct rt_identity id = { 0 };
	_cleanup_(pipes_close) struct pipes pipes = { { -1, -1 }, { -1, -1 } };
	struct rt_error *err;
	char **env = NULL;
	pid_t pid;

	RT_TRY(rt_identity_find(&s->options, &id));
	if (pipe2(pipes.go, O_CLOEXEC) < 0 || pipe2(pipes.report, O_CLOEXEC) < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot make a pipe");
	RT_TRY(rt_identity_environment(&id, s->options.env, &env));
	pid = fork();
	if (pid == 0) {
		close(pipes.go[1]);
		child(s, &id, env, pipes.go[0], pipes.report[1]);
	}
	rt_environment_free(env);
	if (pid < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot start a process");
	s->root = (uint32_t)pid;
	err = s->options.observe_only ? rt_sources_start(s, &s->root, 1, true) : seize_child(s, pid);
	if (err) {
		kill_child(pid);
		s->root_ended = true;
		return err;
	}
	/* a seized child that must not run is killed by the run */
	if (!s->options.observe_only)
		RT_TRY(rt_sources_start(s, &s->root, 1, true));
	if (write(pipes.go[1], "g", 1) < 0)
		return rt_error_errno(RT_E_SYSTEM, errno, "cannot start the program");
	fcntl(pipes.report[0], F_SETFL, O_NONBLOCK);
	s->exec_pipe = rt_take_fd(&pipes.report[0]);
	return NULL;
}

/* Machine of an ELF file, EM_NONE when it is not one. */
static uint16_t elf_machine(const char *path)
{
	_cleanup_close_ int fd = -1;
	uint8_t head[20];
	struct rt_error *err = rt_fs_open_file(AT_FDCWD, path, false, &fd);
	ssize_t n = err ? -1 : read(fd, head, sizeof(head));

	rt_error_free(err);
	if (n != sizeof(head) || memcmp(head, "\177ELF", 4) != 0)
		return EM_NONE;
	return head[5] == ELFDATA2MSB ? (uint16_t)(head[18] << 8 | head[19]) : (uint16_t)(head[19] << 8 | head[18]);
}

static const char *machine_name(uint16_t machine)
{
	switch (machine) {
	case EM_AARCH64:
		return "aarch64";
	case EM_ARM:
		return "arm";
	case EM_386:
		return "i386";
	case EM_RISCV:
		return "riscv";
	case EM_PPC64:
		return "ppc64";
	case EM_S390:
		return "s390x";
	default:
		return "foreign";
	}
}

struct rt_error *rt_session_exec_error(struct rt_session *s)
{
	const char *name = s->options.command[0];
	uint16_t machine;
	int errnum = 0;

	if (s->exec_pipe < 0 || read(s->exec_pipe, &errnum, sizeof(errnum)) != sizeof(errnum))
		return rt_error_new(RT_E_EXEC, "cannot start %s: it was killed before it ran", name);
	machine = errnum == ENOEXEC ? elf_machine(name) : EM_NONE;
	if (machine != EM_NONE && machine != EM_X86_64) {
		struct rt_error *err =
			rt_error_errno(RT_E_ARCH, errnum, "%s is an ELF file for %s, this machine is x86_64", name,
				       machine_name(machine));

		return rt_error_fix(err,
				    "trace it on its own machine: reftrace record -o FILE -- %s; "
				    "then here: reftrace report -i FILE",
				    name);
	}
	if (errnum == ENOEXEC)
		return rt_error_fix(rt_error_errno(RT_E_EXEC, errnum, "cannot start %s", name),
				    "a script needs its interpreter in the first line, or: reftrace run -- sh %s",
				    name);
	return rt_error_errno(RT_E_EXEC, errnum, "cannot start %s", name);
}
