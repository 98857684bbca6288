# SPDX-License-Identifier: GPL-2.0-only
"""Libraries around the kernel: devices, modules, mounts, buses."""
import ctypes
import os
import signal

from uses.calls import Lib, bus, handed, life, made, out, setenv


def kmod():
    k = Lib('libkmod.so.2')
    life(lambda: k.kmod_new(None, None), k.kmod_ref, k.kmod_unref)
    ctx = k.kmod_new(None, None)
    find = lambda: out(k.kmod_module_new_from_name, ctx, b'loop', None)  # noqa: E731
    life(find, k.kmod_module_ref, k.kmod_module_unref)
    handed(k.kmod_module_unref, find)


def udev():
    u = Lib('libudev.so.1')
    life(u.udev_new, u.udev_ref, u.udev_unref)
    ctx = u.udev_new()
    life(lambda: u.udev_enumerate_new(ctx), u.udev_enumerate_ref, u.udev_enumerate_unref)
    life(lambda: u.udev_device_new_from_subsystem_sysname(ctx, b'mem', b'null'), u.udev_device_ref, u.udev_device_unref)

    def from_environment():
        # it cuts the strings into pieces
        ctypes.CDLL(None).clearenv()
        for name, value in ('DEVPATH', '/devices/virtual/mem/null'), ('SUBSYSTEM', 'mem'), ('ACTION', 'add'), ('SEQNUM', '1'):
            setenv(name, value)
        return u.udev_device_new_from_environment(ctx)
    made(u.udev_device_unref, lambda: u.udev_device_new_from_syspath(ctx, b'/sys/devices/virtual/mem/null'),
         lambda: u.udev_device_new_from_device_id(ctx, b'c1:3'),
         lambda: u.udev_device_new_from_devnum(ctx, ord('c'), ctypes.c_ulong(os.makedev(1, 3))),
         from_environment)
    monitor = u.udev_monitor_new_from_netlink(ctx, b'udev')
    if monitor:
        life(lambda: u.udev_monitor_new_from_netlink(ctx, b'udev'), u.udev_monitor_ref, u.udev_monitor_unref)


def sd_bus():
    b = Lib('libsystemd.so.0')
    life(lambda: out(b.sd_bus_new, None), b.sd_bus_ref, b.sd_bus_unref)
    address = bus()
    for name in ('DBUS_SESSION_BUS_ADDRESS', 'DBUS_SYSTEM_BUS_ADDRESS'):
        setenv(name, address)
    opened = lambda name: lambda: out(getattr(b, name), None)  # noqa: E731
    handed(b.sd_bus_unref, *map(opened, ('sd_bus_default', 'sd_bus_default_user', 'sd_bus_default_system')))
    made(b.sd_bus_flush_close_unref, *map(opened, ('sd_bus_open', 'sd_bus_open_user', 'sd_bus_open_system')))
    held = out(b.sd_bus_open_user, None)
    words = b'a.b', b'/a', b'a.c', b'd'
    life(lambda: out(b.sd_bus_message_new_method_call, held, None, *words), b.sd_bus_message_ref, b.sd_bus_message_unref)
    made(b.sd_bus_message_unref, lambda: out(b.sd_bus_message_new_signal, held, None, b'/a', b'a.c', b'd'),
         lambda: out(b.sd_bus_message_new, held, None, 1))
    ask = b'org.freedesktop.DBus', b'/', b'org.freedesktop.DBus', b'GetId'

    def asked():
        place = ctypes.c_void_p()
        question = out(b.sd_bus_message_new_method_call, held, None, *ask)
        b.sd_bus_call(held, question, ctypes.c_uint64(0), 0, ctypes.byref(place))
        b.sd_bus_message_unref(question)
        return place.value
    made(b.sd_bus_message_unref, asked)


def sd_event():
    e = Lib('libsystemd.so.0')
    life(lambda: out(e.sd_event_new, None), e.sd_event_ref, e.sd_event_unref)
    handed(e.sd_event_unref, lambda: out(e.sd_event_default, None))
    loop = out(e.sd_event_new, None)
    handler = e.address('sd_event_unref')  # never called
    life(lambda: out(e.sd_event_add_defer, loop, None, handler, None), e.sd_event_source_ref, e.sd_event_source_unref)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    pipe = os.pipe()
    made(e.sd_event_source_unref, lambda: out(e.sd_event_add_exit, loop, None, handler, None),
         lambda: out(e.sd_event_add_post, loop, None, handler, None),
         lambda: out(e.sd_event_add_io, loop, None, pipe[0], 1, handler, None),
         lambda: out(e.sd_event_add_signal, loop, None, signal.SIGUSR1, handler, None),
         lambda: out(e.sd_event_add_time, loop, None, 1, ctypes.c_uint64(1 << 62), ctypes.c_uint64(0), handler, None))


def sd_device():
    d = Lib('libsystemd.so.0')
    life(lambda: out(d.sd_device_new_from_subsystem_sysname, None, b'mem', b'null'), d.sd_device_ref, d.sd_device_unref)
    made(d.sd_device_unref, lambda: out(d.sd_device_new_from_device_id, None, b'c1:3'),
         lambda: out(d.sd_device_new_from_syspath, None, b'/sys/devices/virtual/mem/null'),
         lambda: out(d.sd_device_new_from_devnum, None, ord('c'), ctypes.c_ulong(os.makedev(1, 3))))
    life(lambda: out(d.sd_device_enumerator_new, None), d.sd_device_enumerator_ref, d.sd_device_enumerator_unref)


def libmount():
    m = Lib('libmount.so.1')
    for name in ('fs', 'table', 'cache', 'monitor'):
        life(getattr(m, f'mnt_new_{name}'), getattr(m, f'mnt_ref_{name}'), getattr(m, f'mnt_unref_{name}'))
    for name in ('fs', 'table', 'cache'):
        made(getattr(m, f'mnt_free_{name}'), getattr(m, f'mnt_new_{name}'))


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
    made(n.nlmsg_free, lambda: n.nlmsg_alloc_size(ctypes.c_size_t(256)))
    route = Lib('libnl-route-3.so.200')
    life(route.rtnl_link_alloc, n.nl_object_get, n.nl_object_put)
    ops = n.nl_cache_ops_lookup(b'route/link')
    if ops:
        life(lambda: n.nl_cache_alloc(ops), n.nl_cache_get, n.nl_cache_free)


ALL = (kmod, udev, sd_bus, sd_device, sd_event, libmount, libfdisk, smartcols, libnl)
