/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/lives.h"

#include <string.h>

#include "cli/command.h"
#include "report/words.h"

struct taker {
	struct rt_recording_sink sink;
	struct rt_event_sink *to;
	bool lifetimes;
};

static struct rt_error *take_wire(struct rt_recording_sink *self, const struct rt_wire_head *record)
{
	struct taker *t = (struct taker *)(void *)self;

	t->lifetimes |= record->kind == RT_WIRE_TYPE || record->kind == RT_WIRE_EVENT;
	return t->to->record(t->to, record);
}

static struct rt_error *drain(struct rt_lives *lives, struct rt_event_sink *sink)
{
	struct taker t = { .sink = { .wire = take_wire }, .to = sink };

	if (lives->input.text) {
		rt_text_rewind(lives->input.text);
		return rt_source_drain(rt_text_source(lives->input.text), sink);
	}
	RT_TRY(rt_input_drain(&lives->input, &t.sink));
	if (t.lifetimes || rt_input_damage(&lives->input))
		return NULL;
	return rt_error_fix(rt_error_new(RT_E_NO_EVENT, "%s holds no lifetimes of objects", lives->path),
			    "record them: reftrace record PROG ARGS; what was sampled: reftrace report -i %s",
			    lives->path);
}

struct rt_error *rt_lives_read(const struct rt_options *options, const struct rt_watch *watch, struct rt_lives *lives,
			       const struct rt_verdict **ret)
{
	struct rt_pipeline_options how = { .lifetime = { .watch = watch, .strict = options->strict },
					   .symfs = options->symfs };

	lives->pipeline.fd = -1;
	RT_TRY(rt_input_open_all(options, &lives->input));
	lives->path = lives->input.path;
	how.input = lives->path;
	how.namer = lives->input.text ? rt_text_namer(lives->input.text) : NULL;
	RT_TRY(rt_pipeline_init(&lives->pipeline, &how));
	RT_TRY(drain(lives, &lives->pipeline.sink));
	return rt_pipeline_verdict(&lives->pipeline, ret);
}

struct again {
	struct rt_event_sink sink;
	struct rt_lifetime *lifetime;
};

static struct rt_error *record(struct rt_event_sink *self, const struct rt_wire_head *record)
{
	struct again *a = (struct again *)(void *)self;

	return rt_lifetime_record(a->lifetime, record);
}

struct rt_error *rt_lives_read_again(struct rt_lives *lives, const struct rt_watch *watch,
				     const struct rt_verdict **ret)
{
	const struct rt_lifetime_options options = { .watch = watch };
	struct again a = { .sink = { record } };

	/* mappings and modules are known from the first reading */
	rt_lifetime_destroyp(&lives->again);
	RT_TRY(rt_lifetime_create(&options, lives->pipeline.namer, &lives->again));
	a.lifetime = lives->again;
	RT_TRY(drain(lives, &a.sink));
	return rt_lifetime_verdict(lives->again, ret);
}

void rt_lives_close(struct rt_lives *lives)
{
	rt_lifetime_destroyp(&lives->again);
	rt_pipeline_deinit(&lives->pipeline);
	rt_input_close(&lives->input);
}

int rt_lives_status(const struct rt_lives *lives, const struct rt_verdict *verdict)
{
	const struct rt_trust *trust = &verdict->trust;
	struct rt_arena arena = { 0 };

	if (lives->pipeline.cut)
		fprintf(stderr, "reftrace: %s %s: %s; the answer covers what came before\n",
			rt_code_text(RT_E_TRUNCATED), lives->path,
			rt_clean(&arena, *lives->pipeline.cut ? lives->pipeline.cut : "the input ends early"));
	rt_arena_deinit(&arena);
	return trust->complete && !trust->nothing_seen && !trust->lost ? RT_EXIT_OK : RT_EXIT_TRUST;
}

struct rt_view_head rt_lives_head(const struct rt_lives *lives)
{
	struct rt_view_head head = { NULL };

	if (lives->input.recording)
		head.command = rt_recording_info(lives->input.recording).command;
	return head;
}

static struct rt_error *print_to(const struct rt_options *options, enum rt_format format,
				 const struct rt_lives_view *view, int fd, const char *name)
{
	const struct rt_view_options how = {
		.width = rt_output_width(fd),
		.color = rt_output_color(options->color, fd),
		.stacks = options->view.stacks,
		.inverted = options->view.inverted,
	};
	struct rt_error *err;
	struct rt_sink sink;

	rt_sink_init_fd(&sink, fd, name);
	err = view->print(view, format, &how, &sink);
	rt_sink_deinit(&sink);
	return err;
}

struct rt_error *rt_lives_print(const struct rt_options *options, const struct rt_lives_view *view)
{
	struct rt_output output = { .file_fd = -1, .json_fd = -1 };
	struct rt_error *err = rt_output_open(options, STDOUT_FILENO, &output);

	if (!err && output.json_fd >= 0)
		err = print_to(options, RT_FORMAT_JSON, view, output.json_fd, options->json);
	if (!err)
		err = print_to(options, options->format, view, output.file_fd >= 0 ? output.file_fd : output.fd,
			       options->output ?: "standard output");
	rt_output_close(&output);
	return err;
}

error_t rt_lives_parse(int key, char *arg, struct argp_state *state)
{
	struct rt_options *options = state->input;

	if (key != 'i')
		return rt_output_argp.parser(key, arg, state);
	return rt_input_name(options, arg);
}
