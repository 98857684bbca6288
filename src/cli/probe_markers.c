/* SPDX-License-Identifier: GPL-2.0-only */
/* probe markers: the SDT markers of files. */
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/options.h"
#include "cli/probe_command.h"
#include "elf/sdt.h"
#include "probe/operand.h"
#include "report/json_writer.h"
#include "report/words.h"

static const struct argp_option own[] = {
	{ "json", RT_OPT_JSON, NULL, 0, "print JSON", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	(void)arg;
	if (key != RT_OPT_JSON)
		return ARGP_ERR_UNKNOWN;
	options->format = RT_FORMAT_JSON;
	return 0;
}

const struct argp rt_probe_markers_options = { own, parse };
static const struct argp_child children[] = { { &rt_probe_markers_options }, { &rt_common_argp }, { 0 } };
static const struct argp markers_argp = { NULL, rt_parse_operands, "markers FILE...",
					  "Lists the SDT markers of programs and libraries.", children };

struct listing {
	struct rt_sink out;
	struct rt_json json;
	struct rt_arena arena;
	bool is_json;
};

static void marker_text(struct listing *l, const struct rt_image *image, const struct rt_sdt_marker *m)
{
	const char *name =
		rt_format(&l->arena, "%s:%s", rt_clean(&l->arena, m->provider), rt_clean(&l->arena, m->name));
	const char *args = m->args, *why = rt_sdt_offsets(image, m, &(struct rt_foff){ 0 }, &(struct rt_foff){ 0 });
	struct rt_operand o;

	rt_sink_printf(&l->out, "  %-36s 0x%-10llx %-9s %s%s%s\n", name, (unsigned long long)m->location.v,
		       m->semaphore.v ? "semaphore" : "", rt_clean(&l->arena, m->args), m->type ? "  type " : "",
		       m->type ? rt_clean(&l->arena, m->type) : "");
	if (why)
		rt_sink_printf(&l->out, "  %-36s cannot be probed: %s\n", "", why);
	for (unsigned n = 1; rt_operand_next(&args, image->machine, &o); n++)
		if (o.kind == RT_OPERAND_UNKNOWN)
			rt_sink_printf(&l->out, "  %-36s argument %u cannot be read: %s\n", "", n, o.why);
}

static void marker_json(struct listing *l, const struct rt_image *image, const struct rt_sdt_marker *m)
{
	const char *args = m->args, *why = rt_sdt_offsets(image, m, &(struct rt_foff){ 0 }, &(struct rt_foff){ 0 });
	struct rt_operand o;

	rt_json_begin_object(&l->json, NULL);
	rt_json_string(&l->json, "provider", m->provider);
	rt_json_string(&l->json, "name", m->name);
	rt_json_hex(&l->json, "address", m->location.v);
	rt_json_hex(&l->json, "semaphore", m->semaphore.v);
	if (m->type)
		rt_json_string(&l->json, "type", m->type);
	if (why)
		rt_json_string(&l->json, "unusable", why);
	rt_json_begin_array(&l->json, "arguments");
	while (rt_operand_next(&args, image->machine, &o)) {
		rt_json_begin_object(&l->json, NULL);
		rt_json_string(&l->json, "operand", rt_format(&l->arena, "%.*s", (int)o.text_len, o.text));
		if (o.kind == RT_OPERAND_UNKNOWN)
			rt_json_string(&l->json, "unread", o.why);
		rt_json_end_object(&l->json);
	}
	rt_json_end_array(&l->json);
	rt_json_end_object(&l->json);
}

/* A damaged list is printed as far as it goes, and the error returned. */
static struct rt_error *list_file(struct listing *l, const char *path)
{
	_cleanup_(rt_image_destroyp) struct rt_image *image = NULL;
	_cleanup_free_ struct rt_sdt_marker *markers = NULL;
	_cleanup_close_ int fd = -1;
	struct rt_error *err;
	size_t count = 0;

	RT_TRY(rt_fs_open_file(AT_FDCWD, path, false, &fd));
	RT_TRY(rt_image_open_fd(fd, path, &image));
	err = rt_sdt_read(image, &markers, &count);
	if (err && err->code != RT_E_FORMAT)
		return err;
	if (l->is_json) {
		rt_json_begin_object(&l->json, NULL);
		rt_json_string(&l->json, "file", path);
		rt_json_begin_array(&l->json, "markers");
	} else {
		rt_sink_printf(&l->out, "%s  (%zu marker%s)\n", rt_clean(&l->arena, path), count, rt_plural(count));
	}
	for (size_t i = 0; i < count; i++)
		(l->is_json ? marker_json : marker_text)(l, image, &markers[i]);
	if (l->is_json) {
		rt_json_end_array(&l->json);
		rt_json_end_object(&l->json);
	}
	return err;
}

static struct rt_error *list(struct listing *l, const struct rt_options *options)
{
	struct rt_error *err = NULL, *ended;

	if (l->is_json) {
		rt_json_begin_object(&l->json, NULL);
		rt_json_begin_array(&l->json, "files");
	}
	for (size_t i = 0; !err && i < options->operands.len; i++)
		err = list_file(l, options->operands.data[i]);
	if (l->is_json) {
		rt_json_end_array(&l->json);
		rt_json_end_object(&l->json);
	}
	ended = rt_sink_end(&l->out);
	if (err) {
		rt_error_free(ended);
		return err;
	}
	return ended;
}

static struct rt_error *act(const struct rt_options *options)
{
	struct listing l = { .is_json = options->format == RT_FORMAT_JSON };
	struct rt_error *err;

	if (!options->operands.len)
		return rt_error_fix(rt_error_new(RT_E_USAGE, "probe: markers FILE is needed"), "reftrace help probe");
	rt_sink_init_fd(&l.out, STDOUT_FILENO, "standard output");
	rt_json_init(&l.json, &l.out);
	err = list(&l, options);
	rt_sink_deinit(&l.out);
	rt_arena_deinit(&l.arena);
	return err;
}

int rt_probe_markers(int argc, char **argv)
{
	struct rt_options options;
	struct rt_error *err = rt_options_parse(&markers_argp, argc, argv, &options);
	int status = RT_EXIT_OK;

	if (!err && options.help)
		rt_options_help(&markers_argp, "probe", stdout);
	else if (!err)
		err = act(&options);
	if (err)
		status = rt_failure(err);
	rt_options_deinit(&options);
	return status;
}
