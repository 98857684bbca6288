/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who the program runs as. Tracing needs root, the program does not: under
 * sudo it runs as the invoking user, with that user's home and name, so that it
 * behaves, and leaves files, as without us.
 */
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>

#include "base/text.h"
#include "session/internal.h"

extern char **environ;

static struct rt_error *from_passwd(const struct passwd *pw, gid_t gid, struct rt_identity *ret)
{
	struct rt_identity id = { .change = true, .uid = pw->pw_uid, .gid = gid };
	int count = 0;

	(void)getgrouplist(pw->pw_name, gid, NULL, &count);
	if (count < 1)
		count = 1;
	id.groups = calloc((size_t)count, sizeof(id.groups[0]));
	id.user = strdup(pw->pw_name);
	id.home = strdup(pw->pw_dir && pw->pw_dir[0] ? pw->pw_dir : "/");
	id.shell = strdup(pw->pw_shell && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh");
	if (!id.groups || !id.user || !id.home || !id.shell) {
		rt_identity_deinit(&id);
		return rt_error_nomem();
	}
	if (getgrouplist(pw->pw_name, gid, id.groups, &count) < 0) {
		/* somebody changed the groups meanwhile: the primary one alone is always right */
		id.groups[0] = gid;
		count = 1;
	}
	id.group_count = count;
	*ret = id;
	return NULL;
}

static struct rt_error *from_name(const char *name, struct rt_identity *ret)
{
	struct passwd pw, *found = NULL;
	char buffer[16384];
	int e = getpwnam_r(name, &pw, buffer, sizeof(buffer), &found);

	if (e)
		return rt_error_errno(RT_E_SYSTEM, e, "cannot look up the user %s", name);
	if (!found)
		return rt_error_new(RT_E_NOT_FOUND, "no user %s", name);
	if (geteuid() != 0 && found->pw_uid != getuid())
		return rt_error_fix(rt_error_new(RT_E_PRIVILEGE, "only root can run a program as user %s", name),
				    "sudo reftrace -u %s ...", name);
	if (geteuid() != 0)
		return NULL;
	return from_passwd(found, found->pw_gid, ret);
}

static bool env_id(const char *name, uint64_t *ret)
{
	const char *text = getenv(name);

	return text && rt_parse_u64(text, strlen(text), 10, ret) && *ret < UINT_MAX;
}

struct rt_error *rt_identity_find(const struct rt_session_options *options, struct rt_identity *ret)
{
	struct passwd pw, *found = NULL;
	char buffer[16384];
	uint64_t uid, gid;

	if (options->user)
		return from_name(options->user, ret);
	if (options->as_root || geteuid() != 0 || !env_id("SUDO_UID", &uid) || !env_id("SUDO_GID", &gid) || !uid ||
	    !getenv("SUDO_USER"))
		return NULL;
	if (getpwuid_r((uid_t)uid, &pw, buffer, sizeof(buffer), &found) || !found)
		return rt_error_fix(rt_error_new(RT_E_NOT_FOUND, "no user with id %u, which sudo names as the caller",
						 (unsigned)uid),
				    "reftrace --as-root ... runs the program as root");
	return from_passwd(found, (gid_t)gid, ret);
}

void rt_identity_deinit(struct rt_identity *id)
{
	free(id->groups);
	free(id->user);
	free(id->home);
	free(id->shell);
	*id = (struct rt_identity){ 0 };
}

/* ---- environment ---- */

struct env {
	RT_VEC(char *) list;
};

static bool names_same(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return len == strcspn(b, "=") && !strncmp(a, b, len);
}

/* Sets NAME=VALUE, or takes NAME away when value is NULL. */
static bool env_set(struct env *env, const char *name, const char *value)
{
	char *text = NULL;
	size_t i;

	for (i = 0; i < env->list.len && !names_same(env->list.data[i], name); i++)
		;
	if (value && asprintf(&text, "%s=%s", name, value) < 0)
		return false;
	if (i < env->list.len) {
		free(env->list.data[i]);
		if (text)
			env->list.data[i] = text;
		else
			env->list.data[i] = env->list.data[--env->list.len];
		return true;
	}
	if (text && !rt_vec_push(&env->list, text)) {
		free(text);
		return false;
	}
	return true;
}

static bool env_identity(struct env *env, const struct rt_identity *id)
{
	static const char *const sudo[] = { "SUDO_USER", "SUDO_UID", "SUDO_GID", "SUDO_COMMAND" };
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	bool ok = env_set(env, "HOME", id->home) && env_set(env, "USER", id->user) &&
		  env_set(env, "LOGNAME", id->user) && env_set(env, "SHELL", id->shell);

	for (size_t i = 0; i < sizeof(sudo) / sizeof(sudo[0]); i++)
		ok = ok && env_set(env, sudo[i], NULL);
	/* a directory of somebody else would be refused, or worse, used */
	if (runtime && (stat(runtime, &st) < 0 || st.st_uid != id->uid))
		ok = ok && env_set(env, "XDG_RUNTIME_DIR", NULL);
	return ok;
}

struct rt_error *rt_identity_environment(const struct rt_identity *id, const char *const *extra, char ***ret)
{
	struct env env = { 0 };
	bool ok = true;

	for (char **e = environ; ok && e && *e; e++) {
		char *copy = strdup(*e);

		ok = copy && rt_vec_push(&env.list, copy);
		if (!ok)
			free(copy);
	}
	if (ok && id->change)
		ok = env_identity(&env, id);
	for (size_t i = 0; ok && extra && extra[i]; i++) {
		_cleanup_free_ char *name = strdup(extra[i]);
		char *equals = name ? strchr(name, '=') : NULL;

		/* -E NAME without a value takes it away, as env -u does */
		if (equals)
			*equals = 0;
		ok = name && env_set(&env, name, equals ? equals + 1 : NULL);
	}
	ok = ok && rt_vec_push(&env.list, NULL);
	if (!ok) {
		for (size_t i = 0; i < env.list.len; i++)
			free(env.list.data[i]);
		rt_vec_deinit(&env.list);
		return rt_error_nomem();
	}
	*ret = env.list.data;
	return NULL;
}

void rt_environment_free(char **env)
{
	for (char **e = env; e && *e; e++)
		free(*e);
	free(env);
}
