/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * argp parses; but its own messages are usage dumps, so argv is first looked
 * through by the same tables: an unknown option or a missing argument gets two
 * lines with the nearest option.
 */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/fs.h"
#include "cli/command.h"
#include "probe/near.h"

/* Calls visit for every option of argp and its children until it returns true. */
static bool each_option(const struct argp *argp, bool (*visit)(const struct argp_option *option, void *arg), void *arg)
{
	for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc); o++) {
		if ((o->name || o->key) && visit(o, arg))
			return true;
	}
	for (const struct argp_child *c = argp->children; c && c->argp; c++) {
		if (each_option(c->argp, visit, arg))
			return true;
	}
	return false;
}

struct search {
	const char *name; /* long name, not NUL-terminated */
	size_t len;
	int key;                         /* or a letter */
	const struct argp_option *found; /* exact, or the only one with this start */
	unsigned count;
	bool exact;
	struct rt_near near;
};

static bool match_long(const struct argp_option *o, void *arg)
{
	struct search *s = arg;

	if (!o->name || strncmp(o->name, s->name, s->len) != 0)
		return false;
	s->exact = !o->name[s->len];
	s->count++;
	s->found = o;
	return s->exact;
}

static bool match_letter(const struct argp_option *o, void *arg)
{
	struct search *s = arg;

	if (o->key != s->key || !isascii(o->key) || !isgraph(o->key))
		return false;
	s->found = o;
	return true;
}

static bool offer(const struct argp_option *o, void *arg)
{
	struct search *s = arg;

	if (o->name && !(o->flags & OPTION_HIDDEN))
		rt_near_offer(&s->near, o->name);
	return false;
}

static struct rt_error *unknown(const struct argp *argp, const char *verb, const char *text, const char *name,
				size_t len)
{
	_cleanup_free_ char *wanted = strndup(name, len);
	struct search s = { .near = { .wanted = wanted } };
	struct rt_error *err = rt_error_new(RT_E_USAGE, "%s: unknown option '%s'", verb, text);

	if (!wanted)
		return err;
	if (len > 1)
		each_option(argp, offer, &s);
	if (s.near.count)
		return rt_error_fix(err, "did you mean --%s? all options: reftrace help %s", s.near.names[0], verb);
	return rt_error_fix(err, "all options: reftrace help %s", verb);
}

static struct rt_error *missing_argument(const char *verb, const char *text, const struct argp_option *o)
{
	return rt_error_fix(rt_error_new(RT_E_USAGE, "%s: option '%s' needs an argument: %s", verb, text, o->arg),
			    "see: reftrace help %s", verb);
}

static struct rt_error *check_long(const struct argp *argp, const char *verb, int argc, char **argv, int *i)
{
	const char *text = argv[*i], *equals = strchr(text, '=');
	struct search s = { .name = text + 2, .len = equals ? (size_t)(equals - text - 2) : strlen(text + 2) };

	each_option(argp, match_long, &s);
	if (!s.exact && s.count != 1)
		return unknown(argp, verb, text, s.name, s.len);
	if (equals && !s.found->arg)
		return rt_error_fix(
			rt_error_new(RT_E_USAGE, "%s: option '--%s' takes no argument", verb, s.found->name),
			"see: reftrace help %s", verb);
	if (s.found->arg && !equals && !(s.found->flags & OPTION_ARG_OPTIONAL) && ++*i >= argc)
		return missing_argument(verb, text, s.found);
	return NULL;
}

static struct rt_error *check_letters(const struct argp *argp, const char *verb, int argc, char **argv, int *i)
{
	const char *text = argv[*i];

	for (const char *p = text + 1; *p; p++) {
		struct search s = { .key = (unsigned char)*p };

		each_option(argp, match_letter, &s);
		if (!s.found)
			return unknown(argp, verb, text, p, 1);
		if (!s.found->arg)
			continue;
		if (!p[1] && !(s.found->flags & OPTION_ARG_OPTIONAL) && ++*i >= argc)
			return missing_argument(verb, text, s.found);
		break;
	}
	return NULL;
}

static struct rt_error *check(const struct argp *argp, int argc, char **argv)
{
	bool program = argp->parser == rt_parse_program;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-' || !argv[i][1]) {
			if (program)
				break;
			continue;
		}
		if (!strcmp(argv[i], "--"))
			break;
		if (argv[i][1] == '-')
			RT_TRY(check_long(argp, argv[0], argc, argv, &i));
		else
			RT_TRY(check_letters(argp, argv[0], argc, argv, &i));
	}
	return NULL;
}

error_t rt_option_fault(struct rt_options *options, struct rt_error *err)
{
	if (!err)
		return 0;
	if (options->err)
		rt_error_free(err);
	else
		options->err = err;
	return EINVAL;
}

/* Hands the options on to all children. */
static void init_children(struct argp_state *state)
{
	for (size_t i = 0; state->root_argp->children && state->root_argp->children[i].argp; i++)
		state->child_inputs[i] = state->input;
}

error_t rt_parse_program(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		init_children(state);
		return 0;
	case ARGP_KEY_ARG:
		/* the program and its arguments: nothing behind it is ours */
		options->command = (const char *const *)(state->argv + state->next - 1);
		state->next = state->argc;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

error_t rt_parse_operands(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		init_children(state);
		return 0;
	case RT_OPT_BUILD_OPTIONS:
		options->build_options = true;
		return 0;
	case ARGP_KEY_ARG:
		return rt_vec_push(&options->operands, arg) ? 0 : rt_option_fault(options, rt_error_nomem());
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

struct rt_error *rt_options_parse(const struct argp *argp, int argc, char **argv, struct rt_options *ret)
{
	error_t failed;

	*ret = (struct rt_options){ .verb = argv[0] };
	RT_TRY(check(argp, argc, argv));
	failed = argp_parse(argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, ret);
	if (ret->err) {
		struct rt_error *err = ret->err;

		ret->err = NULL;
		return err->fix ? err : rt_error_fix(err, "see: reftrace help %s", argv[0]);
	}
	if (failed)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "%s: the arguments cannot be understood", argv[0]),
				    "see: reftrace help %s", argv[0]);
	return NULL;
}

void rt_options_deinit(struct rt_options *options)
{
	rt_error_free(options->err);
	rt_vec_deinit(&options->pids);
	rt_vec_deinit(&options->env);
	rt_vec_deinit(&options->types);
	rt_vec_deinit(&options->pairs);
	rt_vec_deinit(&options->operands);
	rt_vec_deinit(&options->more_inputs);
	rt_vec_deinit(&options->suppressions);
	rt_vec_deinit(&options->models);
	rt_vec_deinit(&options->events);
}

void rt_options_help(const struct argp *argp, const char *verb, FILE *out)
{
	char name[64];

	snprintf(name, sizeof(name), "reftrace %s", verb);
	argp_help(argp, out, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, name);
}
