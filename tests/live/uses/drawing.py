# SPDX-License-Identifier: GPL-2.0-only
"""Libraries that draw, and lay out text."""
import ctypes
import os

from uses.calls import Lib, doubles, file, folder, handed, life, made, need, out, setenv, stream


def cairo():
    c = Lib('libcairo.so.2')
    surface = c.cairo_image_surface_create(0, 8, 8)
    memory = ctypes.create_string_buffer(256)
    png = os.path.join(folder(), 'png').encode()
    life(lambda: c.cairo_create(surface), c.cairo_reference, c.cairo_destroy)
    life(lambda: c.cairo_image_surface_create(0, 4, 4), c.cairo_surface_reference, c.cairo_surface_destroy)
    assert not c.cairo_surface_write_to_png(surface, png)
    made(c.cairo_surface_destroy, lambda: c.cairo_image_surface_create_for_data(memory, 0, 4, 4, 16),
         lambda: c.cairo_image_surface_create_from_png(png), lambda: c.cairo_recording_surface_create(0x3000, None),
         lambda: c.cairo_surface_create_for_rectangle(surface, *doubles(1, 1, 2, 2)))
    life(lambda: c.cairo_pattern_create_for_surface(surface), c.cairo_pattern_reference, c.cairo_pattern_destroy)
    made(c.cairo_pattern_destroy, c.cairo_pattern_create_mesh, lambda: c.cairo_pattern_create_rgb(*doubles(.5, .5, .5)),
         lambda: c.cairo_pattern_create_rgba(*doubles(.5, .5, .5, .5)),
         lambda: c.cairo_pattern_create_linear(*doubles(0, 0, 1, 1)),
         lambda: c.cairo_pattern_create_radial(*doubles(0, 0, 1, 1, 1, 2)))
    life(lambda: c.cairo_toy_font_face_create(b'Sans', 0, 0), c.cairo_font_face_reference, c.cairo_font_face_destroy)
    handed(c.cairo_font_face_destroy, lambda: c.cairo_toy_font_face_create(b'Serif', 0, 0))
    life(c.cairo_region_create, c.cairo_region_reference, c.cairo_region_destroy)
    rectangles = (ctypes.c_int * 8)(0, 0, 1, 1, 2, 2, 1, 1)
    region = c.cairo_region_create()
    made(c.cairo_region_destroy, lambda: c.cairo_region_create_rectangle(rectangles),
         lambda: c.cairo_region_create_rectangles(rectangles, 2), lambda: c.cairo_region_copy(region))
    c.cairo_region_destroy(region)
    c.cairo_surface_destroy(surface)


def pixman():
    p = Lib('libpixman-1.so.0')
    life(lambda: p.pixman_image_create_bits(0x20020888, 4, 4, None, 0), p.pixman_image_ref, p.pixman_image_unref)
    points = [(ctypes.c_int32 * 2)(n << 16, n << 16) for n in range(2)]
    stops = (ctypes.c_uint16 * 12)(0, 0, 1, 2, 3, 4, 0, 1, 5, 6, 7, 8)
    made(p.pixman_image_unref, lambda: p.pixman_image_create_bits_no_clear(0x20020888, 4, 4, None, 0),
         lambda: p.pixman_image_create_solid_fill(stops),
         lambda: p.pixman_image_create_linear_gradient(*points, stops, 2),
         lambda: p.pixman_image_create_radial_gradient(*points, 1 << 16, 2 << 16, stops, 2),
         lambda: p.pixman_image_create_conical_gradient(points[0], 0, stops, 2))


def freetype():
    f = Lib('libfreetype.so.6')
    library = out(f.FT_Init_FreeType, None)
    f.FT_Reference_Library(library)
    f.FT_Reference_Library(library)
    f.FT_Done_Library(library)
    f.FT_Done_Library(library)


def harfbuzz():
    h = Lib('libharfbuzz.so.0')
    data = b'\0' * 64
    blob = h.hb_blob_create(data, 64, 0, None, None)
    face = h.hb_face_create(blob, 0)
    makers = {'blob': lambda: h.hb_blob_create(data, 64, 0, None, None), 'buffer': h.hb_buffer_create,
              'face': lambda: h.hb_face_create(blob, 0), 'font': lambda: h.hb_font_create(face), 'set': h.hb_set_create,
              'map': h.hb_map_create, 'unicode_funcs': lambda: h.hb_unicode_funcs_create(None)}
    for name, make in makers.items():
        life(make, getattr(h, f'hb_{name}_reference'), getattr(h, f'hb_{name}_destroy'))
    font = h.hb_font_create(face)
    made(h.hb_font_destroy, lambda: h.hb_font_create_sub_font(font))


def fontconfig():
    f = Lib('libfontconfig.so.1')
    life(f.FcPatternCreate, f.FcPatternReference, f.FcPatternDestroy)
    life(f.FcConfigCreate, f.FcConfigReference, f.FcConfigDestroy)
    life(f.FcCharSetCreate, f.FcCharSetCopy, f.FcCharSetDestroy)
    pattern = f.FcPatternCreate()
    made(f.FcPatternDestroy, lambda: f.FcPatternDuplicate(pattern), lambda: f.FcNameParse(b'Sans:bold'))


def pango():
    p = Lib('libpango-1.0.so.0')
    life(p.pango_attr_list_new, p.pango_attr_list_ref, p.pango_attr_list_unref)
    attributes = p.pango_attr_list_new()
    made(p.pango_attr_list_unref, lambda: p.pango_attr_list_copy(attributes))


def xkbcommon():
    x = Lib('libxkbcommon.so.0')
    life(lambda: x.xkb_context_new(3), x.xkb_context_ref, x.xkb_context_unref)
    ctx = x.xkb_context_new(0)
    text = (b'xkb_keymap { xkb_keycodes { <a> = 10; }; xkb_types { type "ONE_LEVEL" { modifiers = none; }; }; '
            b'xkb_compat { }; xkb_symbols { key <a> { [ a ] }; }; };')
    make = lambda: x.xkb_keymap_new_from_string(ctx, text, 1, 0)  # noqa: E731
    life(make, x.xkb_keymap_ref, x.xkb_keymap_unref)
    path = file(text)
    made(x.xkb_keymap_unref, lambda: x.xkb_keymap_new_from_buffer(ctx, text, ctypes.c_size_t(len(text)), 1, 0),
         lambda: x.xkb_keymap_new_from_file(ctx, stream(path), 1, 0))
    if os.path.isdir('/usr/share/X11/xkb/rules'):
        made(x.xkb_keymap_unref, lambda: x.xkb_keymap_new_from_names(ctx, None, 0))
    keymap = make()
    life(lambda: x.xkb_state_new(keymap), x.xkb_state_ref, x.xkb_state_unref)
    compose = b'<a> <b> : "c"\n'
    table = lambda: x.xkb_compose_table_new_from_buffer(ctx, compose, ctypes.c_size_t(len(compose)), b'C', 1, 0)  # noqa: E731
    life(table, x.xkb_compose_table_ref, x.xkb_compose_table_unref)
    path = file(compose)
    made(x.xkb_compose_table_unref, lambda: x.xkb_compose_table_new_from_file(ctx, stream(path), b'C', 1, 0))
    setenv('XCOMPOSEFILE', path)
    made(x.xkb_compose_table_unref, lambda: x.xkb_compose_table_new_from_locale(ctx, b'C', 0))
    held = table()
    life(lambda: x.xkb_compose_state_new(held, 0), x.xkb_compose_state_ref, x.xkb_compose_state_unref)


def xkbregistry():
    x = Lib('libxkbregistry.so.0')
    life(lambda: x.rxkb_context_new(1), x.rxkb_context_ref, x.rxkb_context_unref)


def libgphoto2():
    g = Lib('libgphoto2.so.6')
    life(lambda: out(g.gp_file_new, None), g.gp_file_ref, g.gp_file_unref)
    life(lambda: out(g.gp_list_new, None), g.gp_list_ref, g.gp_list_unref)
    life(lambda: out(g.gp_widget_new, 0, b'x', None), g.gp_widget_ref, g.gp_widget_unref)
    life(g.gp_context_new, g.gp_context_ref, g.gp_context_unref)


def libdrm():
    """Buffers of the allocator that needs no hardware."""
    d = Lib('libdrm_intel.so.1')
    manager = need(d.drm_intel_bufmgr_fake_init(-1, 0, ctypes.create_string_buffer(1 << 20), ctypes.c_size_t(1 << 20), None))
    make = lambda: d.drm_intel_bo_alloc(manager, b'x', ctypes.c_size_t(4096), 4096)  # noqa: E731
    life(make, d.drm_intel_bo_reference, d.drm_intel_bo_unreference)


ALL = (cairo, pixman, freetype, harfbuzz, fontconfig, pango, xkbcommon, xkbregistry, libgphoto2)
