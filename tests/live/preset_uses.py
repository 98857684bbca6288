# SPDX-License-Identifier: GPL-2.0-only
"""What test_presets.py traces: uses each library of a preset a little, by ctypes. `preset_uses.py PRESET`; 77: not here."""
import ctypes
import os
import sys

TIMES = 4


class Lib:
    """f = Lib('libx.so.1'); f.name(arguments): pointers and numbers in, a pointer out."""

    def __init__(self, name):
        try:
            self._lib = ctypes.CDLL(name)
        except OSError as e:
            print(e, file=sys.stderr)
            sys.exit(77)

    def __getattr__(self, name):
        function = getattr(self._lib, name)
        function.restype = ctypes.c_void_p

        def call(*args):
            return function(*[ctypes.c_void_p(a) if isinstance(a, int) and a > 1 << 31 else a for a in args])
        return call


def out(call, *args):
    """the pointer that a function hands out; its place among the arguments is None"""
    place = ctypes.c_void_p()
    result = call(*[ctypes.byref(place) if a is None else a for a in args])
    if ctypes.c_int(result or 0).value < 0 or not place.value:
        raise RuntimeError(f'{call}: {result}')
    return place.value


def life(make, get, put):
    """made, taken, given back twice; and held by two others meanwhile"""
    for _ in range(TIMES):
        o = make()
        get(o)
        get(o)
        put(o)
        put(o)
        put(o)


def cairo():
    c = Lib('libcairo.so.2')
    surface = c.cairo_image_surface_create(0, 8, 8)
    life(lambda: c.cairo_create(surface), c.cairo_reference, c.cairo_destroy)
    life(lambda: c.cairo_image_surface_create(0, 4, 4), c.cairo_surface_reference, c.cairo_surface_destroy)
    for d in ([0.5] * 3, [0.5] * 4, [0.1] * 4, [0.1] * 6):
        name = {3: 'rgb', 4: 'rgba', 6: 'radial'}[len(d)]
        life(lambda n=name, a=d: getattr(c, 'cairo_pattern_create_' + n)(*map(ctypes.c_double, a)),
             c.cairo_pattern_reference, c.cairo_pattern_destroy)
    life(lambda: c.cairo_pattern_create_for_surface(surface), c.cairo_pattern_reference, c.cairo_pattern_destroy)
    life(lambda: c.cairo_toy_font_face_create(b'Sans', 0, 0), c.cairo_font_face_reference, c.cairo_font_face_destroy)
    life(c.cairo_region_create, c.cairo_region_reference, c.cairo_region_destroy)
    c.cairo_surface_destroy(surface)


def pixman():
    p = Lib('libpixman-1.so.0')
    life(lambda: p.pixman_image_create_bits(0x20020888, 4, 4, None, 0), p.pixman_image_ref, p.pixman_image_unref)


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


def fontconfig():
    f = Lib('libfontconfig.so.1')
    life(f.FcPatternCreate, f.FcPatternReference, f.FcPatternDestroy)
    life(f.FcConfigCreate, f.FcConfigReference, f.FcConfigDestroy)
    life(f.FcCharSetCreate, f.FcCharSetCopy, f.FcCharSetDestroy)


def kmod():
    k = Lib('libkmod.so.2')
    life(lambda: k.kmod_new(None, None), k.kmod_ref, k.kmod_unref)
    ctx = k.kmod_new(None, None)
    life(lambda: out(k.kmod_module_new_from_name, ctx, b'loop', None), k.kmod_module_ref, k.kmod_module_unref)


def udev():
    u = Lib('libudev.so.1')
    life(u.udev_new, u.udev_ref, u.udev_unref)
    ctx = u.udev_new()
    life(lambda: u.udev_enumerate_new(ctx), u.udev_enumerate_ref, u.udev_enumerate_unref)
    life(lambda: u.udev_device_new_from_subsystem_sysname(ctx, b'mem', b'null'), u.udev_device_ref, u.udev_device_unref)
    monitor = u.udev_monitor_new_from_netlink(ctx, b'udev')
    if monitor:
        life(lambda: u.udev_monitor_new_from_netlink(ctx, b'udev'), u.udev_monitor_ref, u.udev_monitor_unref)


def sd_bus():
    b = Lib('libsystemd.so.0')
    life(lambda: out(b.sd_bus_new, None), b.sd_bus_ref, b.sd_bus_unref)


def sd_event():
    e = Lib('libsystemd.so.0')
    life(lambda: out(e.sd_event_new, None), e.sd_event_ref, e.sd_event_unref)
    loop = out(e.sd_event_new, None)
    handler = ctypes.cast(e._lib.sd_event_unref, ctypes.c_void_p).value  # never called
    life(lambda: out(e.sd_event_add_defer, loop, None, handler, None), e.sd_event_source_ref, e.sd_event_source_unref)


def sd_device():
    d = Lib('libsystemd.so.0')
    life(lambda: out(d.sd_device_new_from_subsystem_sysname, None, b'mem', b'null'), d.sd_device_ref, d.sd_device_unref)
    life(lambda: out(d.sd_device_enumerator_new, None), d.sd_device_enumerator_ref, d.sd_device_enumerator_unref)


def pango():
    p = Lib('libpango-1.0.so.0')
    life(p.pango_attr_list_new, p.pango_attr_list_ref, p.pango_attr_list_unref)


def xkbcommon():
    x = Lib('libxkbcommon.so.0')
    life(lambda: x.xkb_context_new(3), x.xkb_context_ref, x.xkb_context_unref)
    ctx = x.xkb_context_new(3)
    text = (b'xkb_keymap { xkb_keycodes { <a> = 10; }; xkb_types { type "ONE_LEVEL" { modifiers = none; }; }; '
            b'xkb_compat { }; xkb_symbols { key <a> { [ a ] }; }; };')
    make = lambda: x.xkb_keymap_new_from_string(ctx, text, 1, 0)  # noqa: E731
    life(make, x.xkb_keymap_ref, x.xkb_keymap_unref)
    keymap = make()
    life(lambda: x.xkb_state_new(keymap), x.xkb_state_ref, x.xkb_state_unref)
    compose = b'<a> <b> : "c"\n'
    table = lambda: x.xkb_compose_table_new_from_buffer(ctx, compose, ctypes.c_size_t(len(compose)), b'C', 1, 0)  # noqa: E731
    life(table, x.xkb_compose_table_ref, x.xkb_compose_table_unref)
    held = table()
    life(lambda: x.xkb_compose_state_new(held, 0), x.xkb_compose_state_ref, x.xkb_compose_state_unref)


def libmount():
    m = Lib('libmount.so.1')
    for name in ('fs', 'table', 'cache', 'monitor'):
        life(getattr(m, f'mnt_new_{name}'), getattr(m, f'mnt_ref_{name}'), getattr(m, f'mnt_unref_{name}'))


def libfdisk():
    f = Lib('libfdisk.so.1')
    for name in ('context', 'partition', 'parttype', 'table'):
        life(getattr(f, f'fdisk_new_{name}'), getattr(f, f'fdisk_ref_{name}'), getattr(f, f'fdisk_unref_{name}'))
    ctx = f.fdisk_new_context()
    life(lambda: f.fdisk_new_script(ctx), f.fdisk_ref_script, f.fdisk_unref_script)


def smartcols():
    s = Lib('libsmartcols.so.1')
    for name in ('table', 'line', 'column', 'symbols'):
        life(getattr(s, f'scols_new_{name}'), getattr(s, f'scols_ref_{name}'), getattr(s, f'scols_unref_{name}'))


def libnl():
    n = Lib('libnl-3.so.200')
    life(lambda: n.nl_addr_alloc(ctypes.c_size_t(8)), n.nl_addr_get, n.nl_addr_put)
    life(lambda: n.nl_cb_alloc(0), n.nl_cb_get, n.nl_cb_put)
    life(n.nlmsg_alloc, n.nlmsg_get, n.nlmsg_free)
    route = Lib('libnl-route-3.so.200')
    life(route.rtnl_link_alloc, n.nl_object_get, n.nl_object_put)
    ops = n.nl_cache_ops_lookup(b'route/link')
    if ops:
        life(lambda: n.nl_cache_alloc(ops), n.nl_cache_get, n.nl_cache_put)


def libxml2():
    x = Lib('libxml2.so.2')
    life(x.xmlDictCreate, x.xmlDictReference, x.xmlDictFree)


def libevent():
    e = Lib('libevent-2.1.so.7')
    base = e.event_base_new()
    life(lambda: e.bufferevent_socket_new(base, -1, 0), e.bufferevent_incref, e.bufferevent_decref)


def gstreamer():
    g = Lib('libgstreamer-1.0.so.0')
    g.gst_init(None, None)
    for make in (g.gst_buffer_new, g.gst_caps_new_empty):
        life(make, g.gst_mini_object_ref, g.gst_mini_object_unref)


def libgphoto2():
    g = Lib('libgphoto2.so.6')
    life(lambda: out(g.gp_file_new, None), g.gp_file_ref, g.gp_file_unref)
    life(lambda: out(g.gp_list_new, None), g.gp_list_ref, g.gp_list_unref)
    life(lambda: out(g.gp_widget_new, 0, b'x', None), g.gp_widget_ref, g.gp_widget_unref)
    life(g.gp_context_new, g.gp_context_ref, g.gp_context_unref)


def libcbor():
    c = Lib('libcbor.so.0.8')

    def put(o):
        c.cbor_decref(ctypes.byref(ctypes.c_void_p(o)))
    life(c.cbor_new_int8, c.cbor_incref, put)
    life(c.cbor_new_indefinite_array, c.cbor_incref, put)


def xkbregistry():
    x = Lib('libxkbregistry.so.0')
    life(lambda: x.rxkb_context_new(1), x.rxkb_context_ref, x.rxkb_context_unref)


def json_c():
    j = Lib('libjson-c.so.5')
    life(j.json_object_new_object, j.json_object_get, j.json_object_put)
    life(lambda: j.json_object_new_int(7), j.json_object_get, j.json_object_put)


def dbus():
    d = Lib('libdbus-1.so.3')
    life(lambda: d.dbus_message_new(1), d.dbus_message_ref, d.dbus_message_unref)


def gobject():
    g = Lib('libgobject-2.0.so.0')
    life(lambda: g.g_object_new(ctypes.c_size_t(80), None), g.g_object_ref, g.g_object_unref)


def openssl():
    o = Lib('libcrypto.so.3')
    for name in ('X509', 'EVP_PKEY', 'X509_CRL', 'X509_STORE', 'RSA', 'DH'):
        life(getattr(o, name + '_new'), getattr(o, name + '_up_ref'), getattr(o, name + '_free'))


USES = {f.__name__.replace('_', '-'): f for f in (
    cairo, pixman, freetype, harfbuzz, fontconfig, kmod, udev, sd_bus, sd_device, sd_event, pango, xkbcommon, libmount, libfdisk,
    smartcols, libnl, libxml2, libevent, gstreamer, libgphoto2, libcbor, xkbregistry,
    json_c, dbus, gobject, openssl)}

if __name__ == '__main__':
    USES[sys.argv[1]]()
