/* SPDX-License-Identifier: GPL-2.0-only */
/* libwayland-server: the pool of a client's buffer is held by who reads from it. Server and client are one process. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wayland-client.h>
#include <wayland-server.h>

/* both libraries have these names */
static struct wl_resource *surface;
static struct wl_shm *shm;

static void global(void *data, struct wl_registry *registry, uint32_t name, const char *interface, uint32_t version)
{
	(void)data, (void)version;
	if (!strcmp(interface, "wl_shm"))
		shm = wl_registry_bind(registry, name, &wl_shm_interface, 1);
}

static void removed(void *data, struct wl_registry *registry, uint32_t name)
{
	(void)data, (void)registry, (void)name;
}

static enum wl_iterator_result look(struct wl_resource *resource, void *arg)
{
	struct wl_shm_buffer *buffer = wl_shm_buffer_get(resource);

	(void)arg;
	if (buffer)
		surface = resource;
	return WL_ITERATOR_CONTINUE;
}

static void turn(struct wl_display *client, struct wl_display *server)
{
	wl_display_flush(client);
	wl_event_loop_dispatch(wl_display_get_event_loop(server), 0);
	wl_display_flush_clients(server);
	while (wl_display_prepare_read(client))
		wl_display_dispatch_pending(client);
	wl_display_flush(client);
	wl_display_read_events(client);
	wl_display_dispatch_pending(client);
}

int main(void)
{
	static const struct wl_registry_listener listener = { global, removed };
	struct wl_display *server = wl_display_create(), *client;
	struct wl_client *peer;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return 1;
	wl_display_init_shm(server);
	peer = wl_client_create(server, pair[0]);
	client = wl_display_connect_to_fd(pair[1]);
	wl_registry_add_listener(wl_display_get_registry(client), &listener, NULL);
	turn(client, server);
	if (!shm)
		return 2;
	for (int i = 0; i < 4; i++) {
		int fd = memfd_create("pool", MFD_CLOEXEC);
		struct wl_shm_pool *pool;
		struct wl_buffer *buffer;
		struct wl_shm_pool *held;

		if (ftruncate(fd, 4096))
			return 3;
		pool = wl_shm_create_pool(shm, fd, 4096);
		buffer = wl_shm_pool_create_buffer(pool, 0, 8, 8, 32, WL_SHM_FORMAT_ARGB8888);
		wl_display_sync(client);
		turn(client, server);
		surface = NULL;
		wl_client_for_each_resource(peer, look, NULL);
		if (!surface)
			return 4;
		held = wl_shm_buffer_ref_pool(wl_shm_buffer_get(surface));
		wl_shm_buffer_ref_pool(wl_shm_buffer_get(surface));
		wl_shm_pool_unref(held);
		wl_shm_pool_unref(held);
		wl_buffer_destroy(buffer);
		wl_shm_pool_destroy(pool);
		wl_display_sync(client);
		turn(client, server);
		close(fd);
	}
	return 0;
}
