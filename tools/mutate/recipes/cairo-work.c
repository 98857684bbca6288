// SPDX-License-Identifier: GPL-2.0-only
/* One picture on surfaces of many kinds: groups, clips, patterns, text, regions, recordings, a user's font. */
#include <cairo-pdf.h>
#include <cairo-ps.h>
#include <cairo-script.h>
#include <cairo-svg.h>
#include <cairo-tee.h>
#include <cairo.h>
#include <stdlib.h>
#include <string.h>

static cairo_status_t swallow(void *closure, const unsigned char *data, unsigned length)
{
	(void)data;
	*(unsigned *)closure += length;
	return CAIRO_STATUS_SUCCESS;
}

static void patterns(cairo_t *cr)
{
	cairo_pattern_t *linear = cairo_pattern_create_linear(0, 0, 40, 40), *radial, *mesh, *got;
	cairo_surface_t *dot, *under;
	cairo_t *on;

	cairo_pattern_add_color_stop_rgba(linear, 0, 1, 0, 0, 1);
	cairo_pattern_add_color_stop_rgba(linear, 1, 0, 0, 1, 0.5);
	cairo_set_source(cr, linear);
	cairo_pattern_destroy(linear);
	cairo_paint_with_alpha(cr, 0.5);
	radial = cairo_pattern_create_radial(20, 20, 2, 20, 20, 18);
	cairo_pattern_add_color_stop_rgb(radial, 0, 0, 1, 0);
	cairo_pattern_add_color_stop_rgb(radial, 1, 1, 1, 0);
	cairo_rectangle(cr, 5, 5, 30, 30);
	cairo_set_source(cr, radial);
	cairo_fill_preserve(cr);
	cairo_set_source_rgb(cr, 0, 0, 0);
	cairo_stroke(cr);
	mesh = cairo_pattern_create_mesh();
	cairo_mesh_pattern_begin_patch(mesh);
	cairo_mesh_pattern_move_to(mesh, 0, 0);
	cairo_mesh_pattern_line_to(mesh, 30, 0);
	cairo_mesh_pattern_line_to(mesh, 30, 30);
	cairo_mesh_pattern_line_to(mesh, 0, 30);
	for (unsigned i = 0; i < 4; i++)
		cairo_mesh_pattern_set_corner_color_rgb(mesh, i, i / 3.0, 0.5, 0.2);
	cairo_mesh_pattern_end_patch(mesh);
	cairo_set_source(cr, mesh);
	cairo_mask(cr, radial);
	cairo_pattern_destroy(mesh);
	cairo_pattern_destroy(radial);
	dot = cairo_surface_create_similar(cairo_get_target(cr), CAIRO_CONTENT_COLOR_ALPHA, 8, 8);
	on = cairo_create(dot);
	cairo_arc(on, 4, 4, 3, 0, 6.3);
	cairo_fill(on);
	cairo_destroy(on);
	/* of a surface in error, cairo's own cairo_set_source_surface() loses the pattern */
	if (!cairo_surface_status(dot)) {
		cairo_set_source_surface(cr, dot, 2, 2);
		got = cairo_pattern_reference(cairo_get_source(cr));
		cairo_pattern_set_extend(got, CAIRO_EXTEND_REPEAT);
		cairo_rectangle(cr, 10, 10, 20, 20);
		cairo_fill(cr);
		cairo_mask_surface(cr, dot, 1, 1);
		cairo_set_source_rgb(cr, 0, 0, 0);
		cairo_pattern_destroy(got);
	}
	cairo_surface_destroy(dot);
	under = cairo_surface_create_for_rectangle(cairo_get_target(cr), 4, 4, 16, 16);
	on = cairo_create(under);
	cairo_paint_with_alpha(on, 0.1);
	cairo_destroy(on);
	cairo_surface_destroy(under);
}

static void groups(cairo_t *cr)
{
	cairo_pattern_t *popped;

	for (int i = 0; i < 3; i++) {
		cairo_save(cr);
		cairo_rectangle(cr, 2, 2, 30 - i, 30);
		cairo_clip(cr);
		cairo_arc(cr, 16, 16, 12, 0, 6.3);
		cairo_clip(cr);
		cairo_push_group(cr);
		cairo_set_source_rgba(cr, 0.2, 0.4, 0.6, 0.7);
		cairo_paint(cr);
		popped = cairo_pop_group(cr);
		if (i == 1) {
			cairo_pattern_destroy(popped);
		} else {
			cairo_set_source(cr, popped);
			cairo_pattern_destroy(popped);
			cairo_paint(cr);
		}
		cairo_push_group_with_content(cr, CAIRO_CONTENT_ALPHA);
		cairo_paint(cr);
		cairo_pop_group_to_source(cr);
		cairo_reset_clip(cr);
		cairo_mask(cr, cairo_get_source(cr));
		cairo_rectangle_list_destroy(cairo_copy_clip_rectangle_list(cr));
		cairo_restore(cr);
	}
}

static cairo_status_t glyph(cairo_scaled_font_t *font, unsigned long which, cairo_t *cr, cairo_text_extents_t *extents)
{
	(void)font;
	cairo_rectangle(cr, 0, -0.6, 0.3 + (double)(which % 4) / 10, 0.5);
	cairo_fill(cr);
	extents->x_advance = 0.7;
	return CAIRO_STATUS_SUCCESS;
}

static void text(cairo_t *cr)
{
	cairo_font_options_t *options = cairo_font_options_create();
	cairo_font_face_t *face = cairo_toy_font_face_create("Sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD),
			  *own;
	cairo_scaled_font_t *scaled, *kept;
	cairo_text_extents_t extents;
	cairo_matrix_t size, ctm;

	cairo_select_font_face(cr, "Serif", CAIRO_FONT_SLANT_ITALIC, CAIRO_FONT_WEIGHT_NORMAL);
	cairo_set_font_size(cr, 9);
	cairo_move_to(cr, 2, 20);
	cairo_show_text(cr, "text");
	cairo_set_font_face(cr, face);
	cairo_matrix_init_scale(&size, 11, 11);
	cairo_get_matrix(cr, &ctm);
	scaled = cairo_scaled_font_create(face, &size, &ctm, options);
	cairo_set_scaled_font(cr, scaled);
	kept = cairo_scaled_font_reference(cairo_get_scaled_font(cr));
	cairo_scaled_font_text_extents(kept, "extents", &extents);
	cairo_text_path(cr, "path");
	cairo_fill(cr);
	cairo_scaled_font_destroy(kept);
	cairo_scaled_font_destroy(scaled);
	own = cairo_user_font_face_create();
	cairo_user_font_face_set_render_glyph_func(own, glyph);
	cairo_set_font_face(cr, own);
	cairo_set_font_size(cr, 8);
	cairo_move_to(cr, 2, 30);
	cairo_show_text(cr, "own");
	cairo_set_font_face(cr, NULL);
	cairo_font_face_destroy(own);
	cairo_font_face_destroy(face);
	cairo_font_options_destroy(options);
}

static void draw(cairo_surface_t *surface)
{
	cairo_t *cr = cairo_create(surface), *same = cairo_reference(cr);
	cairo_surface_t *mapped;
	cairo_path_t *path;
	char *mime = malloc(20);

	memset(mime, 'x', 20);
	cairo_surface_set_mime_data(surface, "text/x-none", (unsigned char *)mime, 20, free, mime);
	patterns(cr);
	groups(cr);
	text(cr);
	path = cairo_copy_path_flat(cr);
	cairo_append_path(cr, path);
	cairo_path_destroy(path);
	cairo_destroy(same);
	cairo_destroy(cr);
	mapped = cairo_surface_map_to_image(surface, NULL);
	cairo_surface_mark_dirty(mapped);
	cairo_surface_unmap_image(surface, mapped);
	cairo_surface_set_mime_data(surface, "text/x-none", NULL, 0, NULL, NULL);
	cairo_surface_flush(surface);
}

static void replay(cairo_surface_t *from, cairo_surface_t *onto)
{
	cairo_t *cr = cairo_create(onto);

	if (!cairo_surface_status(from))
		cairo_set_source_surface(cr, from, 0, 0);
	cairo_paint(cr);
	cairo_destroy(cr);
}

static void regions(void)
{
	cairo_rectangle_int_t one = { 0, 0, 10, 10 }, two = { 5, 5, 10, 10 };
	cairo_region_t *a = cairo_region_create_rectangle(&one), *b = cairo_region_create_rectangle(&two), *c;

	c = cairo_region_copy(a);
	cairo_region_union(c, b);
	cairo_region_subtract(c, a);
	cairo_region_destroy(cairo_region_reference(c));
	cairo_region_destroy(c);
	cairo_region_destroy(b);
	cairo_region_destroy(a);
}

int main(void)
{
	cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 40, 40), *small, *recording, *s, *tee,
			*watched;
	cairo_device_t *script;
	unsigned bytes = 0;

	for (int i = 0; i < 2; i++) {
		draw(image);
		small = cairo_surface_create_similar_image(image, CAIRO_FORMAT_A8, 16, 16);
		draw(small);
		recording = cairo_recording_surface_create(CAIRO_CONTENT_COLOR_ALPHA, NULL);
		draw(recording);
		replay(recording, image);
		s = cairo_pdf_surface_create_for_stream(swallow, &bytes, 40, 40);
		draw(s);
		replay(image, s);
		replay(recording, s);
		cairo_surface_show_page(s);
		cairo_surface_destroy(s);
		s = cairo_svg_surface_create_for_stream(swallow, &bytes, 40, 40);
		draw(s);
		replay(image, s);
		replay(recording, s);
		cairo_surface_destroy(s);
		s = cairo_ps_surface_create_for_stream(swallow, &bytes, 40, 40);
		draw(s);
		replay(image, s);
		cairo_surface_destroy(s);
		script = cairo_script_create_for_stream(swallow, &bytes);
		s = cairo_script_surface_create(script, CAIRO_CONTENT_COLOR_ALPHA, 40, 40);
		draw(s);
		cairo_script_from_recording_surface(script, recording);
		cairo_surface_destroy(s);
		s = cairo_script_surface_create_for_target(script, image);
		draw(s);
		cairo_surface_destroy(s);
		cairo_device_destroy(script);
		tee = cairo_tee_surface_create(image);
		cairo_tee_surface_add(tee, small);
		draw(tee);
		cairo_tee_surface_remove(tee, small);
		cairo_surface_destroy(tee);
		watched = cairo_surface_create_observer(image, CAIRO_SURFACE_OBSERVER_NORMAL);
		draw(watched);
		cairo_surface_destroy(watched);
		cairo_surface_write_to_png_stream(image, swallow, &bytes);
		cairo_surface_finish(small);
		cairo_surface_destroy(small);
		cairo_surface_destroy(recording);
		regions();
	}
	cairo_surface_destroy(image);
	cairo_debug_reset_static_data();
	return bytes ? 0 : 1;
}
