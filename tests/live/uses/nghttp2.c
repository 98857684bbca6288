/* SPDX-License-Identifier: GPL-2.0-only */
/* nghttp2: the counted buffers of header names and values, as a callback gets them. */
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

static int header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name, nghttp2_rcbuf *value,
		  uint8_t flags, void *arg)
{
	(void)session, (void)frame, (void)flags, (void)arg;
	nghttp2_rcbuf_incref(name);
	nghttp2_rcbuf_incref(value);
	nghttp2_rcbuf_incref(value);
	nghttp2_rcbuf_decref(value);
	nghttp2_rcbuf_decref(value);
	nghttp2_rcbuf_decref(name);
	return 0;
}

#define HEADER(n, v) \
	{ \
		(uint8_t *)(n), (uint8_t *)(v), sizeof(n) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NONE \
	}

int main(void)
{
	nghttp2_nv nv[] = { HEADER(":method", "GET"),
			    HEADER(":scheme", "http"),
			    HEADER(":path", "/some/where"),
			    HEADER(":authority", "a.b"),
			    HEADER("x-one", "a value of its own"),
			    HEADER("x-two", "another value") };
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *client, *server;
	const uint8_t *data;
	ssize_t n;

	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_client_new(&client, callbacks, NULL);
	nghttp2_session_callbacks_set_on_header_callback2(callbacks, header);
	nghttp2_session_server_new(&server, callbacks, NULL);
	nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, NULL, 0);
	for (int i = 0; i < 4; i++)
		nghttp2_submit_request(client, NULL, nv, sizeof(nv) / sizeof(nv[0]), NULL, NULL);
	while ((n = nghttp2_session_mem_send(client, &data)) > 0) {
		if (nghttp2_session_mem_recv(server, data, (size_t)n) != n)
			return 1;
	}
	nghttp2_session_del(client);
	nghttp2_session_del(server);
	nghttp2_session_callbacks_del(callbacks);
	return 0;
}
