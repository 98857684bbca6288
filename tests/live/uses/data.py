# SPDX-License-Identifier: GPL-2.0-only
"""Libraries of data, messages and networks."""
import ctypes
import os

from uses.calls import Lib, bus, file, folder, life, handed, made, need, out, setenv


def libxml2():
    x = Lib('libxml2.so.2')
    life(x.xmlDictCreate, x.xmlDictReference, x.xmlDictFree)
    held = x.xmlDictCreate()
    made(x.xmlDictFree, lambda: x.xmlDictCreateSub(held))


def libevent():
    e = Lib('libevent-2.1.so.7')
    base = e.event_base_new()
    life(lambda: e.bufferevent_socket_new(base, -1, 0), e.bufferevent_incref, e.bufferevent_decref)

    def held():
        o = e.bufferevent_socket_new(base, -1, 0)
        e.bufferevent_incref(o)
        e.bufferevent_free(o)
        return o
    made(e.bufferevent_decref, held)


def libcbor():
    c = Lib('libcbor.so.0.8')

    def put(o):
        c.cbor_decref(ctypes.byref(ctypes.c_void_p(o)))
    life(c.cbor_new_int8, c.cbor_incref, put)
    made(put, *[getattr(c, 'cbor_new_' + name) for name in
                ('int16', 'int32', 'int64', 'float2', 'float4', 'float8', 'ctrl', 'indefinite_array', 'indefinite_map',
                 'indefinite_string', 'indefinite_bytestring', 'definite_string', 'definite_bytestring')])
    made(put, lambda: c.cbor_new_definite_array(ctypes.c_size_t(2)), lambda: c.cbor_new_definite_map(ctypes.c_size_t(2)),
         lambda: c.cbor_new_tag(ctypes.c_uint64(1)))


def json_c():
    j = Lib('libjson-c.so.5')
    life(j.json_object_new_object, j.json_object_get, j.json_object_put)
    one = ctypes.c_double(1)
    made(j.json_object_put, j.json_object_new_array, *[
        lambda name=name, args=args: getattr(j, 'json_object_new_' + name)(*args) for name, args in (
            ('array_ext', (4,)), ('boolean', (1,)), ('int', (7,)), ('int64', (7,)), ('uint64', (7,)), ('double', (one,)),
            ('double_s', (one, b'1.0')), ('string', (b'x',)), ('string_len', (b'x', 1)))])
    path = file(b'{"a": 1}').encode()

    def opened(read, *more):
        fd = os.open(path, os.O_RDONLY)
        found = read(fd, *more)
        os.close(fd)
        return found
    tokener = j.json_tokener_new()
    made(j.json_object_put, lambda: j.json_tokener_parse(b'[1]'), lambda: j.json_object_from_file(path),
         lambda: j.json_tokener_parse_verbose(b'[1]', ctypes.byref(ctypes.c_int())),
         lambda: j.json_tokener_parse_ex(tokener, b'[1]', 4),
         lambda: opened(j.json_object_from_fd), lambda: opened(j.json_object_from_fd_ex, 8))


def dbus():
    d = Lib('libdbus-1.so.3')
    address = bus().encode()
    setenv('DBUS_SESSION_BUS_ADDRESS', address.decode())
    error = ctypes.create_string_buffer(64)
    d.dbus_error_init(error)
    life(lambda: d.dbus_message_new(1), d.dbus_message_ref, d.dbus_message_unref)
    to = b'org.freedesktop.DBus', b'/', b'org.freedesktop.DBus', b'GetId'
    ask = lambda: d.dbus_message_new_method_call(*to)  # noqa: E731
    question = ask()
    d.dbus_message_set_serial(question, 1)
    data, size = ctypes.c_void_p(), ctypes.c_int()
    assert d.dbus_message_marshal(question, ctypes.byref(data), ctypes.byref(size))
    made(d.dbus_message_unref, ask, lambda: d.dbus_message_copy(question),
         lambda: d.dbus_message_new_signal(b'/', b'a.b', b'c'), lambda: d.dbus_message_new_method_return(question),
         lambda: d.dbus_message_new_error(question, b'a.b', b'c'),
         lambda: d.dbus_message_new_error_printf(question, b'a.b', b'%s', b'c'),
         lambda: d.dbus_message_demarshal(data.value, size.value, error))
    dbus_connections(d, address, error, ask)
    server = lambda: d.dbus_server_listen(f'unix:dir={folder()}'.encode(), error)  # noqa: E731

    def end(o):
        d.dbus_server_disconnect(o)
        d.dbus_server_unref(o)
    for _ in range(4):
        o = need(server())
        d.dbus_server_ref(o)
        d.dbus_server_unref(o)
        end(o)


def dbus_connections(d, address, error, ask):
    def end(o):
        d.dbus_connection_close(o)
        d.dbus_connection_unref(o)
    for make in (lambda: d.dbus_bus_get_private(0, error), lambda: d.dbus_connection_open_private(address, error)):
        for _ in range(4):
            o = need(make())
            d.dbus_connection_ref(o)
            d.dbus_connection_unref(o)
            end(o)
    handed(d.dbus_connection_unref, lambda: d.dbus_bus_get(0, error), lambda: d.dbus_connection_open(address, error))
    o = need(d.dbus_bus_get(0, error))
    for _ in range(4):
        d.dbus_message_unref(need(d.dbus_connection_send_with_reply_and_block(o, ask(), -1, error)))
        pending = ctypes.c_void_p()
        assert d.dbus_connection_send_with_reply(o, ask(), ctypes.byref(pending), -1)
        d.dbus_pending_call_ref(pending)
        d.dbus_pending_call_block(pending)
        d.dbus_message_unref(need(d.dbus_pending_call_steal_reply(pending)))
        d.dbus_pending_call_unref(pending)
        d.dbus_pending_call_unref(pending)
    # answers that nobody waits for are handed out one by one
    place = ctypes.c_uint32()
    for _ in range(4):
        d.dbus_connection_send(o, ask(), ctypes.byref(place))
    left = 4
    while left:
        message = d.dbus_connection_pop_message(o)
        if message:
            left -= d.dbus_message_get_reply_serial(message) is not None
            d.dbus_message_unref(message)
        else:
            d.dbus_connection_read_write(o, -1)


def nghttp2():
    n = Lib('libnghttp2.so.14')


ALL = (libxml2, libevent, libcbor, json_c, dbus)
