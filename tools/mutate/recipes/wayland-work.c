// SPDX-License-Identifier: GPL-2.0-only
/* A small compositor in a thread and its clients in another: surfaces, callbacks, buffers, queues, errors. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <wayland-client-core.h>
#include <wayland-server-core.h>

#include "client.h"
#include "server.h"

struct surface {
	struct wl_resource *resource, *buffer, *frame;
	struct wl_event_source *blink;
};

static void frame_gone(struct wl_resource *resource)
{
	struct surface *s = wl_resource_get_user_data(resource);

	if (s)
		s->frame = NULL;
}

static void drop_frame(struct surface *s)
{
	if (!s->frame)
		return;
	wl_callback_send_done(s->frame, 1);
	wl_resource_destroy(s->frame);
}

static void surface_gone(struct wl_resource *resource)
{
	struct surface *s = wl_resource_get_user_data(resource);

	if (s->frame)
		wl_resource_set_user_data(s->frame, NULL);
	if (s->blink)
		wl_event_source_remove(s->blink);
	free(s);
}

static int blink(void *data)
{
	struct surface *s = data;

	wl_event_source_remove(s->blink);
	s->blink = NULL;
	drop_frame(s);
	return 0;
}

static void surface_destroy(struct wl_client *client, struct wl_resource *resource)
{
	(void)client;
	wl_resource_destroy(resource);
}

static void surface_attach(struct wl_client *client, struct wl_resource *resource, struct wl_resource *buffer,
			   int32_t x, int32_t y)
{
	struct surface *s = wl_resource_get_user_data(resource);

	(void)client, (void)x, (void)y;
	s->buffer = buffer;
}

static void surface_damage(struct wl_client *client, struct wl_resource *resource, int32_t x, int32_t y, int32_t w,
			   int32_t h)
{
	(void)client, (void)resource, (void)x, (void)y, (void)w, (void)h;
}

static void surface_frame(struct wl_client *client, struct wl_resource *resource, uint32_t id)
{
	struct surface *s = wl_resource_get_user_data(resource);

	drop_frame(s);
	s->frame = wl_resource_create(client, &wl_callback_interface, 1, id);
	wl_resource_set_implementation(s->frame, NULL, s, frame_gone);
}

static void surface_region(struct wl_client *client, struct wl_resource *resource, struct wl_resource *region)
{
	(void)client, (void)resource, (void)region;
}

static void surface_commit(struct wl_client *client, struct wl_resource *resource)
{
	struct surface *s = wl_resource_get_user_data(resource);
	struct wl_shm_buffer *buffer = s->buffer ? wl_shm_buffer_get(s->buffer) : NULL;
	struct wl_event_loop *loop = wl_display_get_event_loop(wl_client_get_display(client));
	struct wl_shm_pool *pool;

	if (buffer) {
		pool = wl_shm_buffer_ref_pool(buffer);
		wl_shm_buffer_begin_access(buffer);
		memset(wl_shm_buffer_get_data(buffer), 1, 16);
		wl_shm_buffer_end_access(buffer);
		wl_shm_pool_unref(pool);
		wl_buffer_send_release(s->buffer);
	}
	if (s->blink)
		wl_event_source_remove(s->blink);
	s->blink = wl_event_loop_add_timer(loop, blink, s);
	wl_event_source_timer_update(s->blink, 1);
}

static const struct wl_surface_interface surface_calls = {
	.destroy = surface_destroy,
	.attach = surface_attach,
	.damage = surface_damage,
	.frame = surface_frame,
	.set_opaque_region = surface_region,
	.set_input_region = surface_region,
	.commit = surface_commit,
};

static void create_surface(struct wl_client *client, struct wl_resource *resource, uint32_t id)
{
	struct surface *s = calloc(1, sizeof(*s));

	(void)resource;
	s->resource = wl_resource_create(client, &wl_surface_interface, 1, id);
	wl_resource_set_implementation(s->resource, &surface_calls, s, surface_gone);
}

static void region_rectangle(struct wl_client *client, struct wl_resource *resource, int32_t x, int32_t y, int32_t w,
			     int32_t h)
{
	(void)client, (void)resource, (void)x, (void)y, (void)w, (void)h;
}

static const struct wl_region_interface region_calls = { surface_destroy, region_rectangle, region_rectangle };

static void create_region(struct wl_client *client, struct wl_resource *resource, uint32_t id)
{
	struct wl_resource *region = wl_resource_create(client, &wl_region_interface, 1, id);

	(void)resource;
	wl_resource_set_implementation(region, &region_calls, NULL, NULL);
}

static const struct wl_compositor_interface compositor_calls = { create_surface, create_region };

static void bind_compositor(struct wl_client *client, void *data, uint32_t version, uint32_t id)
{
	struct wl_resource *resource = wl_resource_create(client, &wl_compositor_interface, (int)version, id);

	wl_resource_set_implementation(resource, &compositor_calls, data, NULL);
}

static void bind_output(struct wl_client *client, void *data, uint32_t version, uint32_t id)
{
	struct wl_resource *resource = wl_resource_create(client, &wl_output_interface, (int)version, id);

	(void)data;
	wl_resource_set_implementation(resource, NULL, NULL, NULL);
	wl_output_send_geometry(resource, 0, 0, 1, 1, 0, "make", "model", 0);
}

static unsigned idles;

static void idle(void *data)
{
	++*(unsigned *)data;
}

static int server_fds[3];
static pthread_barrier_t up;

static int stop(int fd, uint32_t mask, void *display)
{
	char c;

	(void)mask;
	if (read(fd, &c, 1) <= 0 || c == 'q')
		wl_display_terminate(display);
	return 0;
}

static void client_gone(struct wl_listener *listener, void *data)
{
	(void)data;
	free(listener);
}

static void *serve(void *stop_fd)
{
	struct wl_display *display = wl_display_create();
	struct wl_event_loop *loop = wl_display_get_event_loop(display);
	struct wl_global *compositor = wl_global_create(display, &wl_compositor_interface, 1, NULL, bind_compositor);
	struct wl_global *output[2];
	struct wl_event_source *source, *later;

	wl_display_init_shm(display);
	wl_display_add_shm_format(display, WL_SHM_FORMAT_RGB565);
	for (int i = 0; i < 2; i++)
		output[i] = wl_global_create(display, &wl_output_interface, 1, NULL, bind_output);
	source = wl_event_loop_add_fd(loop, *(int *)stop_fd, WL_EVENT_READABLE, stop, display);
	wl_event_loop_add_idle(loop, idle, &idles);
	later = wl_event_loop_add_idle(loop, idle, &idles);
	wl_event_source_remove(later);
	for (int i = 0; i < 3; i++) {
		struct wl_client *client = wl_client_create(display, server_fds[i]);
		struct wl_listener *gone = calloc(1, sizeof(*gone));

		gone->notify = client_gone;
		wl_client_add_destroy_listener(client, gone);
	}
	pthread_barrier_wait(&up);
	wl_display_run(display);
	wl_global_remove(output[0]);
	wl_display_flush_clients(display);
	wl_global_destroy(output[0]);
	wl_global_destroy(output[1]);
	wl_global_destroy(compositor);
	wl_event_source_remove(source);
	wl_display_destroy_clients(display);
	wl_display_destroy(display);
	return NULL;
}

struct client {
	struct wl_compositor *compositor;
	struct wl_shm *shm;
	struct wl_output *output;
	unsigned frames;
};

static void global(void *data, struct wl_registry *registry, uint32_t name, const char *interface, uint32_t version)
{
	struct client *c = data;

	if (!strcmp(interface, "wl_compositor"))
		c->compositor = wl_registry_bind(registry, name, &wl_compositor_interface, version);
	else if (!strcmp(interface, "wl_shm"))
		c->shm = wl_registry_bind(registry, name, &wl_shm_interface, 1);
	else if (!strcmp(interface, "wl_output") && !c->output)
		c->output = wl_registry_bind(registry, name, &wl_output_interface, version);
}

static void global_remove(void *data, struct wl_registry *registry, uint32_t name)
{
	(void)data, (void)registry, (void)name;
}

static void frame_done(void *data, struct wl_callback *callback, uint32_t time)
{
	(void)time;
	++*(unsigned *)data;
	wl_callback_destroy(callback);
}

static void picture(struct client *c, struct wl_display *display, struct wl_event_queue *queue)
{
	static const struct wl_callback_listener listener = { frame_done };
	struct wl_surface *surface = wl_compositor_create_surface(c->compositor);
	struct wl_region *region = wl_compositor_create_region(c->compositor);
	struct wl_display *wrapped = wl_proxy_create_wrapper(display);
	int fd = memfd_create("pool", MFD_CLOEXEC);
	struct wl_buffer *buffer[2];
	struct wl_callback *callback;
	struct wl_shm_pool *pool;

	if (ftruncate(fd, 8192))
		abort();
	pool = wl_shm_create_pool(c->shm, fd, 4096);
	for (int i = 0; i < 2; i++)
		buffer[i] = wl_shm_pool_create_buffer(pool, i * 1024, 16, 16, 64, WL_SHM_FORMAT_ARGB8888);
	wl_shm_pool_resize(pool, 8192);
	wl_shm_pool_destroy(pool);
	close(fd);
	wl_surface_set_opaque_region(surface, region);
	wl_region_destroy(region);
	for (unsigned i = 0; i < 4; i++) {
		unsigned seen = c->frames;

		callback = wl_surface_frame(surface);
		wl_callback_add_listener(callback, &listener, &c->frames);
		wl_surface_attach(surface, buffer[i % 2], 0, 0);
		wl_surface_commit(surface);
		while (c->frames == seen && wl_display_dispatch(display) >= 0)
			;
	}
	wl_proxy_set_queue((struct wl_proxy *)wrapped, queue);
	callback = wl_display_sync(wrapped);
	wl_proxy_wrapper_destroy(wrapped);
	wl_callback_add_listener(callback, &listener, &c->frames);
	wl_display_dispatch_queue(display, queue);
	callback = wl_surface_frame(surface);
	wl_buffer_destroy(buffer[0]);
	wl_surface_destroy(surface);
	wl_callback_destroy(callback);
	wl_buffer_destroy(buffer[1]);
}

static void *client(void *fd)
{
	static const struct wl_registry_listener listener = { global, global_remove };
	struct wl_display *display = wl_display_connect_to_fd(*(int *)fd);
	struct wl_event_queue *queue = wl_display_create_queue(display);
	struct wl_registry *registry = wl_display_get_registry(display);
	struct client c = { NULL };

	wl_registry_add_listener(registry, &listener, &c);
	wl_display_roundtrip(display);
	for (int i = 0; i < 3; i++)
		picture(&c, display, queue);
	wl_display_roundtrip_queue(display, queue);
	wl_compositor_destroy(c.compositor);
	wl_shm_destroy(c.shm);
	wl_output_destroy(c.output);
	wl_registry_destroy(registry);
	wl_event_queue_destroy(queue);
	wl_display_flush(display);
	wl_display_disconnect(display);
	return NULL;
}

int main(void)
{
	int fds[2], client_fds[3], stopping[2];
	pthread_t server, clients[2];

	pthread_barrier_init(&up, NULL, 2);
	for (int i = 0; i < 3; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
			return 1;
		server_fds[i] = fds[0];
		client_fds[i] = fds[1];
	}
	if (pipe(stopping))
		return 1;
	pthread_create(&server, NULL, serve, &stopping[0]);
	pthread_barrier_wait(&up);
	for (int i = 0; i < 2; i++)
		pthread_create(&clients[i], NULL, client, &client_fds[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(clients[i], NULL);
	client(&client_fds[2]);
	if (write(stopping[1], "q", 1) != 1)
		return 1;
	pthread_join(server, NULL);
	return 0;
}
