# SPDX-License-Identifier: GPL-2.0-only
"""GLib, GObject and what is made of them."""
import ctypes
import os

from uses.calls import Lib, doubles, file, handed, life, made, need

def glib():
    g = Lib('libglib-2.0.so.0')
    containers(g)
    loops(g)
    times(g)
    texts(g)
    variants(g)


def each(names, make):
    return [lambda n=name: make(n) for name in names]


def containers(g):
    nothing = lambda *args: None  # noqa: E731,ARG005
    blank = ctypes.create_string_buffer(8)
    eight, one = ctypes.c_size_t(8), ctypes.c_size_t(1)
    life(lambda: g.g_bytes_new(b'x', one), g.g_bytes_ref, g.g_bytes_unref)
    held = g.g_bytes_new(b'abcd', ctypes.c_size_t(4))
    made(g.g_bytes_unref, lambda: g.g_bytes_new_static(b'x', one), lambda: g.g_bytes_new_take(g.g_malloc(one), one),
         lambda: g.g_bytes_new_from_bytes(held, one, one),
         lambda: g.g_bytes_new_with_free_func(b'x', one, g.address('g_mem_is_system_malloc'), None))

    def shared():
        o = g.g_bytes_new(b'x', one)
        g.g_bytes_ref(o)
        g.g_free(g.g_bytes_unref_to_data(o, blank))
        return o
    made(g.g_bytes_unref, shared)
    for _ in range(4):
        g.g_free(g.g_bytes_unref_to_data(g.g_bytes_new(b'x', one), blank))
    table = lambda: g.g_hash_table_new(None, None)  # noqa: E731
    life(table, g.g_hash_table_ref, g.g_hash_table_unref)
    like = table()
    made(g.g_hash_table_unref, lambda: g.g_hash_table_new_full(None, None, None, None), lambda: g.g_hash_table_new_similar(like))
    life(g.g_ptr_array_new, g.g_ptr_array_ref, g.g_ptr_array_unref)
    pointers = g.g_ptr_array_new()
    made(g.g_ptr_array_unref, lambda: g.g_ptr_array_sized_new(4), lambda: g.g_ptr_array_copy(pointers, None, None),
         lambda: g.g_ptr_array_new_with_free_func(None), lambda: g.g_ptr_array_new_full(4, None),
         lambda: g.g_ptr_array_new_null_terminated(4, None, 1))
    life(lambda: g.g_array_new(0, 0, 8), g.g_array_ref, g.g_array_unref)
    array = g.g_array_new(0, 0, 8)
    made(g.g_array_unref, lambda: g.g_array_sized_new(0, 0, 8, 4), lambda: g.g_array_copy(array), g.g_byte_array_new,
         lambda: g.g_byte_array_sized_new(4), lambda: g.g_byte_array_new_take(g.g_malloc(eight), eight))
    for make, get, free, put in ((g.g_ptr_array_new, g.g_ptr_array_ref, g.g_ptr_array_free, g.g_ptr_array_unref),
                                 (lambda: g.g_array_new(0, 0, 8), g.g_array_ref, g.g_array_free, g.g_array_unref)):
        def freed():
            o = make()
            get(o)
            free(o, 1)
            return o
        made(put, freed)
    life(lambda: g.g_tree_new(g.address('g_strcmp0')), g.g_tree_ref, g.g_tree_unref)
    made(g.g_tree_unref, lambda: g.g_tree_new_with_data(g.address('g_strcmp0'), None),
         lambda: g.g_tree_new_full(g.address('g_strcmp0'), None, None, None))
    life(g.g_async_queue_new, g.g_async_queue_ref, g.g_async_queue_unref)
    made(g.g_async_queue_unref, lambda: g.g_async_queue_new_full(None))
    queue = g.g_async_queue_new()
    g.g_async_queue_ref_unlocked(queue)
    g.g_async_queue_ref_unlocked(queue)
    g.g_async_queue_ref(queue)
    life(g.g_strv_builder_new, g.g_strv_builder_ref, g.g_strv_builder_unref)


def loops(g):
    life(g.g_main_context_new, g.g_main_context_ref, g.g_main_context_unref)
    made(g.g_main_context_unref, lambda: g.g_main_context_new_with_flags(0))
    ctx = g.g_main_context_new()
    g.g_main_context_push_thread_default(ctx)
    handed(g.g_main_context_unref, g.g_main_context_ref_thread_default)
    g.g_main_context_pop_thread_default(ctx)
    loop = lambda: g.g_main_loop_new(ctx, 0)  # noqa: E731
    life(loop, g.g_main_loop_ref, g.g_main_loop_unref)
    for _ in range(4):
        running = loop()
        source = g.g_idle_source_new()
        g.g_source_set_callback(source, g.address('g_main_loop_quit'), running, None)
        g.g_source_attach(source, ctx)
        g.g_source_unref(source)
        g.g_main_loop_run(running)
        g.g_main_loop_unref(running)
    functions = (ctypes.c_void_p * 6)()
    size = ctypes.c_uint(256)
    life(lambda: g.g_source_new(functions, size), g.g_source_ref, g.g_source_unref)
    for make in (lambda lock: g.g_thread_new(b'x', g.address('g_mutex_lock'), lock),
                 lambda lock: g.g_thread_try_new(b'x', g.address('g_mutex_lock'), lock, None)):
        for _ in range(4):
            # it waits, so that it does not put its own reference meanwhile
            lock = (ctypes.c_void_p * 1)()
            g.g_mutex_lock(lock)
            thread = need(make(lock))
            g.g_thread_ref(thread)
            g.g_thread_unref(thread)
            g.g_mutex_unlock(lock)
            g.g_thread_join(thread)


def times(g):
    moment = lambda: g.g_date_time_new_from_unix_utc(ctypes.c_int64(1 << 30))  # noqa: E731
    life(moment, g.g_date_time_ref, g.g_date_time_unref)
    held, zone = moment(), g.g_time_zone_new_utc()
    date = (2020, 1, 2, 3, 4)
    second = ctypes.c_double(5)
    timeval = (ctypes.c_long * 2)(1 << 30, 0)
    local = ctypes.c_int64(1 << 30)
    made(g.g_date_time_unref, lambda: g.g_date_time_new(zone, *date, second), lambda: g.g_date_time_new_local(*date, second),
         lambda: g.g_date_time_new_utc(*date, second), lambda: g.g_date_time_new_now(zone), g.g_date_time_new_now_local,
         g.g_date_time_new_now_utc, lambda: g.g_date_time_new_from_unix_local(local),
         lambda: g.g_date_time_new_from_iso8601(b'2020-01-02T03:04:05Z', None),
         lambda: g.g_date_time_new_from_timeval_local(timeval), lambda: g.g_date_time_new_from_timeval_utc(timeval),
         lambda: g.g_date_time_to_timezone(held, zone), lambda: g.g_date_time_to_local(held), lambda: g.g_date_time_to_utc(held),
         lambda: g.g_date_time_add(held, ctypes.c_int64(1)), lambda: g.g_date_time_add_seconds(held, second),
         lambda: g.g_date_time_add_full(held, 1, 1, 1, 1, 1, second),
         *each(('days', 'hours', 'minutes', 'months', 'weeks', 'years'), lambda n: getattr(g, 'g_date_time_add_' + n)(held, 1)))
    life(g.g_time_zone_new_utc, g.g_time_zone_ref, g.g_time_zone_unref)
    handed(g.g_time_zone_unref, lambda: g.g_time_zone_new(b'UTC'), lambda: g.g_time_zone_new_identifier(b'UTC'),
           g.g_time_zone_new_local, g.g_time_zone_new_utc, lambda: g.g_time_zone_new_offset(3600))


def texts(g):
    life(g.g_key_file_new, g.g_key_file_ref, g.g_key_file_unref)

    def freed():
        o = g.g_key_file_new()
        g.g_key_file_ref(o)
        g.g_key_file_free(o)
        return o
    made(g.g_key_file_unref, freed)
    path = file(b'text').encode()
    life(lambda: g.g_mapped_file_new(path, 0, None), g.g_mapped_file_ref, g.g_mapped_file_unref)
    fd = os.open(path, os.O_RDONLY)
    made(g.g_mapped_file_unref, lambda: g.g_mapped_file_new_from_fd(fd, 0, None))
    life(lambda: g.g_io_channel_unix_new(fd), g.g_io_channel_ref, g.g_io_channel_unref)
    made(g.g_io_channel_unref, lambda: g.g_io_channel_new_file(path, b'r', None))
    regex = lambda: g.g_regex_new(b'(x)', 0, 0, None)  # noqa: E731
    life(regex, g.g_regex_ref, g.g_regex_unref)
    held = regex()
    for _ in range(4):
        info = ctypes.c_void_p()
        g.g_regex_match(held, b'axb', 0, ctypes.byref(info))
        g.g_match_info_ref(info)
        g.g_match_info_ref(info)
        for _ in range(3):
            g.g_match_info_unref(info)
    life(lambda: g.g_option_group_new(b'a', b'b', b'c', None, None), g.g_option_group_ref, g.g_option_group_unref)
    hmac = lambda: g.g_hmac_new(2, b'key', ctypes.c_size_t(3))  # noqa: E731
    life(hmac, g.g_hmac_ref, g.g_hmac_unref)
    one = hmac()
    made(g.g_hmac_unref, lambda: g.g_hmac_copy(one))
    parser = (ctypes.c_void_p * 5)()
    context = lambda: g.g_markup_parse_context_new(parser, 0, None, None)  # noqa: E731
    life(context, g.g_markup_parse_context_ref, g.g_markup_parse_context_unref)
    made(g.g_markup_parse_context_free, context)


def variants(g):
    number = lambda: g.g_variant_new_int32(7)  # noqa: E731

    def sunk(make):
        return lambda: g.g_variant_ref_sink(need(make()))
    life(sunk(number), g.g_variant_ref, g.g_variant_unref)
    made(g.g_variant_unref, lambda: g.g_variant_take_ref(number()))
    text = lambda: g.g_variant_new_string(b'x')  # noqa: E731
    words = (ctypes.c_char_p * 3)(b'/a', b'/b', None)
    two = ctypes.c_ssize_t(2)

    def built():
        builder = g.g_variant_builder_new(b'ai')
        g.g_variant_builder_add_value(builder, number())
        whole = g.g_variant_builder_end(builder)
        g.g_variant_builder_unref(builder)
        return whole
    variant_type = ctypes.c_char_p(b's')
    held = sunk(number)()
    made(g.g_variant_unref, *map(sunk, (
        text, built, lambda: g.g_variant_new_boolean(1), lambda: g.g_variant_new_byte(1), lambda: g.g_variant_new_int16(1),
        lambda: g.g_variant_new_uint16(1), lambda: g.g_variant_new_uint32(1), lambda: g.g_variant_new_handle(1),
        lambda: g.g_variant_new_int64(ctypes.c_int64(1)), lambda: g.g_variant_new_uint64(ctypes.c_int64(1)),
        lambda: g.g_variant_new_double(*doubles(1)), lambda: g.g_variant_new_object_path(b'/a'),
        lambda: g.g_variant_new_signature(b's'), lambda: g.g_variant_new_take_string(g.g_strdup(b'x')),
        lambda: g.g_variant_new_printf(b'%s', b'x'), lambda: g.g_variant_new_variant(number()),
        lambda: g.g_variant_new_bytestring(b'x'), lambda: g.g_variant_new_bytestring_array(words, two),
        lambda: g.g_variant_new_strv(words, two), lambda: g.g_variant_new_objv(words, two),
        lambda: g.g_variant_new_maybe(b's', None), lambda: g.g_variant_new_array(b'i', None, ctypes.c_size_t(0)),
        lambda: g.g_variant_new_tuple((ctypes.c_void_p * 1)(held), ctypes.c_size_t(1)),
        lambda: g.g_variant_new_dict_entry(text(), number()),
        lambda: g.g_variant_new_fixed_array(b'y', b'ab', ctypes.c_size_t(2), ctypes.c_size_t(1)),
        lambda: g.g_variant_new_from_data(variant_type, b'x\0', ctypes.c_size_t(2), 1, None, None),
        lambda: g.g_variant_new_from_bytes(variant_type, g.g_bytes_new_static(b'x\0', ctypes.c_size_t(2)), 1),
        lambda: g.g_variant_new(b'(is)', 1, b'x'), lambda: g.g_variant_new_parsed(b'(1, 2)'))))
    # a full reference of its own
    made(g.g_variant_unref, lambda: g.g_variant_parse(None, b'1', None, None, None))
    container = sunk(lambda: g.g_variant_new_parsed(b"({'a': <1>}, <2>)"))()
    dictionary = need(g.g_variant_get_child_value(container, ctypes.c_size_t(0)))
    boxed = need(g.g_variant_get_child_value(container, ctypes.c_size_t(1)))
    iterator = g.g_variant_iter_new(container)
    lookup = g.g_variant_dict_new(dictionary)
    handed(g.g_variant_unref, lambda: g.g_variant_get_child_value(container, ctypes.c_size_t(0)),
           lambda: g.g_variant_get_variant(boxed), lambda: g.g_variant_lookup_value(dictionary, b'a', None),
           lambda: g.g_variant_get_normal_form(held), lambda: g.g_variant_byteswap(held),
           lambda: g.g_variant_dict_lookup_value(lookup, b'a', None))
    for _ in range(4):
        g.g_variant_iter_init(iterator, container)
        g.g_variant_unref(need(g.g_variant_iter_next_value(iterator)))

    made(g.g_variant_unref, sunk(lambda: g.g_variant_dict_end(g.g_variant_dict_new(dictionary))))
    life(lambda: g.g_variant_builder_new(b'ai'), g.g_variant_builder_ref, g.g_variant_builder_unref)
    life(lambda: g.g_variant_dict_new(None), g.g_variant_dict_ref, g.g_variant_dict_unref)


def glib_rc():
    g = Lib('libglib-2.0.so.0')
    size = ctypes.c_size_t(32)
    for kind in ('g_rc_box', 'g_atomic_rc_box'):
        f = lambda name, k=kind: getattr(g, f'{k}_{name}')  # noqa: E731
        life(lambda n=f: n('alloc')(size), f('acquire'), lambda o, n=f: n('release_full')(o, None))
        held = f('alloc')(size)
        made(lambda o, n=f: n('release')(o), lambda n=f: n('alloc0')(size), lambda n=f: n('dup')(size, held))


def gobject():
    glib()
    g = Lib('libgobject-2.0.so.0')
    kind = ctypes.c_size_t(80)
    make = lambda: g.g_object_new(kind, None)  # noqa: E731
    life(make, g.g_object_ref, g.g_object_unref)
    made(g.g_object_unref, lambda: g.g_object_new_with_properties(kind, 0, None, None), lambda: g.g_object_newv(kind, 0, None))
    action = ctypes.c_size_t(Lib('libgio-2.0.so.0').g_simple_action_get_type())
    made(g.g_object_unref, lambda: g.g_object_new(action, b'name', b'x', None))
    unowned = ctypes.c_size_t(g.g_initially_unowned_get_type())
    made(g.g_object_unref, lambda: g.g_object_ref_sink(g.g_object_new(unowned, None)), lambda: g.g_object_ref_sink(make()),
         lambda: g.g_object_take_ref(g.g_object_new(unowned, None)))
    o = make()
    weak = (ctypes.c_void_p * 2)()
    g.g_weak_ref_init(weak, o)
    value = (ctypes.c_uint64 * 3)()
    g.g_value_init(value, kind)
    g.g_value_set_object(value, o)
    handed(g.g_object_unref, lambda: g.g_weak_ref_get(weak), lambda: g.g_value_dup_object(value))
    g.g_value_unset(value)
    g.g_weak_ref_clear(weak)
    g.g_object_unref(o)

    def spec():
        return g.g_param_spec_int(b'n', b'n', b'n', 0, 9, 1, 3)
    life(lambda: g.g_param_spec_ref_sink(spec()), g.g_param_spec_ref, g.g_param_spec_unref)
    for _ in range(4):
        p = spec()
        g.g_param_spec_ref(p)
        g.g_param_spec_sink(p)
        g.g_param_spec_unref(p)
    closures(g)


def closures(g):
    for make in (lambda: g.g_closure_new_simple(ctypes.c_uint(64), None),
                 lambda: g.g_cclosure_new(g.address('g_object_ref'), None, None),
                 lambda: g.g_cclosure_new_swap(g.address('g_object_ref'), None, None)):
        for _ in range(4):
            c = need(make())
            g.g_closure_ref(c)
            g.g_closure_sink(c)
            g.g_closure_ref(c)
            g.g_closure_unref(c)
            g.g_closure_unref(c)


def gstreamer():
    g = Lib('libgstreamer-1.0.so.0')
    g.gst_init(None, None)
    for make in (g.gst_buffer_new, g.gst_caps_new_empty):
        life(make, g.gst_mini_object_ref, g.gst_mini_object_unref)
    made(g.gst_mini_object_unref, g.gst_caps_new_any)


ALL = (glib, glib_rc, gobject, gstreamer)
