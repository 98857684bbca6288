// SPDX-License-Identifier: GPL-2.0-only
/* A client and a server that hand each other their bytes; the server keeps header fields beyond their stream. */
#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 5 };

struct end {
	nghttp2_session *session;
	nghttp2_rcbuf *kept[KEPT];
	unsigned fields, refused;
};

static void keep(struct end *e, nghttp2_rcbuf *value)
{
	nghttp2_rcbuf **at = &e->kept[e->fields++ % KEPT];

	if (*at)
		nghttp2_rcbuf_decref(*at);
	nghttp2_rcbuf_incref(value);
	*at = value;
}

static int header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name, nghttp2_rcbuf *value,
		  uint8_t flags, void *data)
{
	struct end *e = data;

	(void)session, (void)frame, (void)flags;
	if (nghttp2_rcbuf_get_buf(name).len > 3 && !nghttp2_rcbuf_is_static(value))
		keep(e, value);
	return 0;
}

static int invalid_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
			  nghttp2_rcbuf *value, uint8_t flags, void *data)
{
	(void)session, (void)frame, (void)name, (void)value, (void)flags;
	((struct end *)data)->refused++;
	return 0;
}

static nghttp2_nv field(const char *name, const char *value, uint8_t flags)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), flags };
}

static int frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
	nghttp2_nv answer[3] = { field(":status", "200", 0), field("server", "work", 0), field("etag", "\"1\"", 0) };

	(void)data;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		nghttp2_submit_response(session, frame->hd.stream_id, answer, 3, NULL);
	return 0;
}

static int stream_closed(nghttp2_session *session, int32_t id, uint32_t why, void *data)
{
	(void)session, (void)id, (void)why, (void)data;
	return 0;
}

static void open_end(struct end *e, int server)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_settings_entry table = { NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 512 };

	memset(e, 0, sizeof(*e));
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_header_callback2(callbacks, header);
	nghttp2_session_callbacks_set_on_invalid_header_callback2(callbacks, invalid_header);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
	if (server) {
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_received);
		nghttp2_session_server_new(&e->session, callbacks, e);
	} else {
		nghttp2_session_client_new(&e->session, callbacks, e);
	}
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(e->session, NGHTTP2_FLAG_NONE, &table, 1);
}

static void close_end(struct end *e)
{
	nghttp2_session_del(e->session);
	for (int i = 0; i < KEPT; i++)
		if (e->kept[i])
			nghttp2_rcbuf_decref(e->kept[i]);
}

/* false: nothing was to be said */
static int pass(struct end *from, struct end *to)
{
	const uint8_t *data;
	ssize_t n, some = 0;

	while ((n = nghttp2_session_mem_send(from->session, &data)) > 0) {
		some += n;
		if (nghttp2_session_mem_recv(to->session, data, (size_t)n) < 0)
			return 0;
	}
	return some > 0;
}

static void request(struct end *client, unsigned i)
{
	char path[40], long_value[300], name[20];
	nghttp2_nv nv[7];

	snprintf(path, sizeof(path), "/path/%u", i);
	snprintf(name, sizeof(name), "x-own-%u", i % 7);
	memset(long_value, 'v', sizeof(long_value) - 1);
	long_value[sizeof(long_value) - 1] = 0;
	nv[0] = field(":method", i % 3 ? "GET" : "POST", 0);
	nv[1] = field(":scheme", "https", 0);
	nv[2] = field(":authority", "example.org", 0);
	nv[3] = field(":path", path, 0);
	nv[4] = field("user-agent", "work", i % 5 ? 0 : NGHTTP2_NV_FLAG_NO_INDEX);
	nv[5] = field(name, i % 4 ? path : long_value, 0);
	nv[6] = field(i % 9 ? "accept" : "bad name", "*/*", 0);
	nghttp2_submit_request(client->session, NULL, nv, 7, NULL, NULL);
}

static void damaged(void)
{
	static const uint8_t bytes[][6] = { { 0x40, 0x82, 0x94, 0xe7, 0xff, 0xff },
					    { 0x40, 0x01, 'a', 0x7f, 0xff, 0xff },
					    { 0x3f, 0xff, 0xff, 0xff, 0xff, 0xff },
					    { 0x41, 0x03, 'a', 'b', 'c', 0xff } };

	for (unsigned i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		nghttp2_hd_inflater *inflater;
		nghttp2_nv nv;
		int flags = 0;
		ssize_t n = 0;

		nghttp2_hd_inflate_new(&inflater);
		for (size_t at = 0; at < sizeof(*bytes); at += (size_t)n) {
			n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, bytes[i] + at, sizeof(*bytes) - at, 1);
			if (n <= 0 || flags & NGHTTP2_HD_INFLATE_FINAL)
				break;
		}
		nghttp2_hd_inflate_del(inflater);
	}
}

int main(void)
{
	for (int round = 0; round < 4; round++) {
		struct end client, server;

		open_end(&client, 0);
		open_end(&server, 1);
		for (unsigned i = 0; i < 40; i++) {
			request(&client, i);
			while (pass(&client, &server) | pass(&server, &client))
				;
		}
		close_end(&client);
		close_end(&server);
		damaged();
	}
	return 0;
}
