// SPDX-License-Identifier: GPL-2.0-only
/* A client of the sound server, first in a main loop of its own, then in a thread: streams, samples, questions, errors.
 */
#include <pulse/pulseaudio.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const pa_sample_spec spec = { PA_SAMPLE_S16LE, 8000, 1 };
static char silence[1600];
static unsigned answers;

static void until(pa_mainloop *loop, pa_operation *o)
{
	if (!o)
		return;
	while (pa_operation_get_state(o) == PA_OPERATION_RUNNING)
		pa_mainloop_iterate(loop, 1, NULL);
	pa_operation_unref(o);
}

static void success(pa_context *c, int ok, void *data)
{
	(void)c, (void)ok, (void)data;
	answers++;
}

static void stream_success(pa_stream *s, int ok, void *data)
{
	(void)s, (void)ok, (void)data;
	answers++;
}

static void sink(pa_context *c, const pa_sink_info *i, int end, void *data)
{
	(void)c, (void)i, (void)end, (void)data;
}

static void source(pa_context *c, const pa_source_info *i, int end, void *data)
{
	(void)c, (void)i, (void)end, (void)data;
}

static void input(pa_context *c, const pa_sink_input_info *i, int end, void *data)
{
	(void)c, (void)end;
	if (i)
		*(uint32_t *)data = i->index;
}

static void module(pa_context *c, const pa_module_info *i, int end, void *data)
{
	(void)c, (void)i, (void)end, (void)data;
}

static void client(pa_context *c, const pa_client_info *i, int end, void *data)
{
	(void)c, (void)i, (void)end, (void)data;
}

static void sample(pa_context *c, const pa_sample_info *i, int end, void *data)
{
	(void)c, (void)i, (void)end, (void)data;
}

static void loaded(pa_context *c, uint32_t index, void *data)
{
	(void)c;
	*(uint32_t *)data = index;
}

static void server(pa_context *c, const pa_server_info *i, void *data)
{
	(void)c, (void)i, (void)data;
}

static pa_context *connected(pa_mainloop *loop)
{
	pa_context *c = pa_context_new(pa_mainloop_get_api(loop), "work");

	if (pa_context_connect(c, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL) < 0)
		return c;
	while (PA_CONTEXT_IS_GOOD(pa_context_get_state(c)) && pa_context_get_state(c) != PA_CONTEXT_READY)
		pa_mainloop_iterate(loop, 1, NULL);
	return c;
}

static void wait_stream(pa_mainloop *loop, pa_stream *s)
{
	while (pa_stream_get_state(s) == PA_STREAM_CREATING)
		pa_mainloop_iterate(loop, 1, NULL);
}

static void play(pa_mainloop *loop, pa_context *c, const char *where)
{
	pa_stream *s = pa_stream_new(c, "play", &spec, NULL);
	uint32_t index = PA_INVALID_INDEX;

	pa_stream_connect_playback(s, where, NULL, PA_STREAM_INTERPOLATE_TIMING | PA_STREAM_AUTO_TIMING_UPDATE, NULL,
				   NULL);
	wait_stream(loop, s);
	if (pa_stream_get_state(s) == PA_STREAM_READY) {
		for (int i = 0; i < 3; i++)
			pa_stream_write(s, silence, sizeof(silence), NULL, 0, PA_SEEK_RELATIVE);
		until(loop, pa_stream_cork(s, 1, stream_success, NULL));
		until(loop, pa_stream_cork(s, 0, stream_success, NULL));
		until(loop, pa_context_get_sink_input_info_list(c, input, &index));
		until(loop, pa_context_set_sink_input_mute(c, pa_stream_get_index(s), 1, success, NULL));
		until(loop, pa_context_move_sink_input_by_name(c, pa_stream_get_index(s), "two", success, NULL));
		until(loop, pa_stream_set_name(s, "other", stream_success, NULL));
		until(loop, pa_stream_update_timing_info(s, stream_success, NULL));
		until(loop, pa_stream_flush(s, stream_success, NULL));
		pa_stream_write(s, silence, sizeof(silence), NULL, 0, PA_SEEK_RELATIVE);
		until(loop, pa_stream_drain(s, stream_success, NULL));
		pa_stream_disconnect(s);
	}
	pa_stream_unref(s);
}

static void record(pa_mainloop *loop, pa_context *c)
{
	pa_stream *s = pa_stream_new(c, "record", &spec, NULL);
	const void *data;
	size_t n;

	pa_stream_connect_record(s, "one.monitor", NULL, 0);
	wait_stream(loop, s);
	for (int got = 0; got < 2 && pa_stream_get_state(s) == PA_STREAM_READY;) {
		pa_mainloop_iterate(loop, 1, NULL);
		if (pa_stream_readable_size(s) > 0 && !pa_stream_peek(s, &data, &n) && n) {
			pa_stream_drop(s);
			got++;
		}
	}
	pa_stream_disconnect(s);
	pa_stream_unref(s);
}

static void samples(pa_mainloop *loop, pa_context *c)
{
	pa_stream *s = pa_stream_new(c, "sample", &spec, NULL);

	pa_stream_connect_upload(s, sizeof(silence));
	wait_stream(loop, s);
	if (pa_stream_get_state(s) == PA_STREAM_READY) {
		pa_stream_write(s, silence, sizeof(silence), NULL, 0, PA_SEEK_RELATIVE);
		pa_stream_finish_upload(s);
	}
	while (pa_stream_get_state(s) == PA_STREAM_READY)
		pa_mainloop_iterate(loop, 1, NULL);
	pa_stream_unref(s);
	until(loop, pa_context_get_sample_info_list(c, sample, NULL));
	until(loop, pa_context_play_sample(c, "sample", "one", PA_VOLUME_NORM, success, NULL));
	until(loop, pa_context_remove_sample(c, "sample", success, NULL));
	until(loop, pa_context_remove_sample(c, "none", success, NULL));
}

static void questions(pa_mainloop *loop, pa_context *c)
{
	uint32_t index = PA_INVALID_INDEX;
	pa_operation *cancelled;

	until(loop, pa_context_get_server_info(c, server, NULL));
	until(loop, pa_context_get_sink_info_list(c, sink, NULL));
	until(loop, pa_context_get_source_info_list(c, source, NULL));
	until(loop, pa_context_get_module_info_list(c, module, NULL));
	until(loop, pa_context_get_client_info_list(c, client, NULL));
	until(loop, pa_context_subscribe(c, PA_SUBSCRIPTION_MASK_ALL, success, NULL));
	cancelled = pa_context_get_sink_info_list(c, sink, NULL);
	pa_operation_cancel(cancelled);
	pa_operation_unref(cancelled);
	until(loop, pa_context_load_module(c, "module-null-sink", "sink_name=three", loaded, &index));
	until(loop, pa_context_set_default_sink(c, "three", success, NULL));
	until(loop, pa_context_suspend_sink_by_name(c, "three", 1, success, NULL));
	play(loop, c, "three");
	until(loop, pa_context_unload_module(c, index, success, NULL));
	until(loop, pa_context_load_module(c, "module-remap-sink", "master=two", loaded, &index));
	play(loop, c, NULL);
	until(loop, pa_context_unload_module(c, index, success, NULL));
	until(loop, pa_context_load_module(c, "module-none", "", loaded, &index));
}

static void state(pa_context *c, void *loop)
{
	(void)c;
	pa_threaded_mainloop_signal(loop, 0);
}

static void in_a_thread(void)
{
	pa_threaded_mainloop *loop = pa_threaded_mainloop_new();
	pa_context *c = pa_context_new(pa_threaded_mainloop_get_api(loop), "thread");
	pa_context_state_t now;

	pa_context_set_state_callback(c, state, loop);
	pa_threaded_mainloop_lock(loop);
	pa_context_connect(c, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL);
	pa_threaded_mainloop_start(loop);
	while (now = pa_context_get_state(c), PA_CONTEXT_IS_GOOD(now) && now != PA_CONTEXT_READY)
		pa_threaded_mainloop_wait(loop);
	pa_context_disconnect(c);
	pa_context_unref(c);
	pa_threaded_mainloop_unlock(loop);
	pa_threaded_mainloop_stop(loop);
	pa_threaded_mainloop_free(loop);
}

int main(void)
{
	pa_mainloop *loop = pa_mainloop_new();
	pa_context *c = connected(loop);

	if (pa_context_get_state(c) == PA_CONTEXT_READY) {
		play(loop, c, "one");
		play(loop, c, "none");
		record(loop, c);
		samples(loop, c);
		questions(loop, c);
		in_a_thread();
		until(loop, pa_context_exit_daemon(c, success, NULL));
	}
	pa_context_disconnect(c);
	pa_context_unref(c);
	pa_mainloop_free(loop);
	return 0;
}
