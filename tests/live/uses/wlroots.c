/* SPDX-License-Identifier: GPL-2.0-only */
/* wlroots' buffers: who uses one locks it; its producer drops it. */
#include <stdlib.h>
#include <wlr/types/wlr_buffer.h>

static void destroyed(struct wlr_buffer *buffer)
{
	free(buffer);
}

int main(void)
{
	static const struct wlr_buffer_impl impl = { .destroy = destroyed };

	for (int i = 0; i < 4; i++) {
		struct wlr_buffer *buffer = calloc(1, sizeof(*buffer));

		wlr_buffer_init(buffer, &impl, 8, 8);
		wlr_buffer_lock(buffer);
		wlr_buffer_lock(buffer);
		wlr_buffer_unlock(buffer);
		wlr_buffer_drop(buffer);
		wlr_buffer_unlock(buffer);
	}
	return 0;
}
