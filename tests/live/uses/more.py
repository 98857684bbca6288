# SPDX-License-Identifier: GPL-2.0-only
"""Libraries of hardware, media, versions and machines."""
import atexit
import ctypes
import os
import shutil
import subprocess

from uses.calls import Lib, file, folder, handed, life, made, need, out, setenv, skip

CALL0 = ctypes.CFUNCTYPE(ctypes.c_int)


def libinput():
    i = Lib('libinput.so.10')
    interface = (ctypes.c_void_p * 2)(i.address('libinput_ref'), i.address('libinput_ref'))  # never called
    life(lambda: i.libinput_path_create_context(interface, None), i.libinput_ref, i.libinput_unref)


def libgit2():
    g = Lib('libgit2.so.1.5')
    g.git_libgit2_init()
    path = folder().encode()
    repository = out(g.git_repository_init, None, path, 0)
    oid = ctypes.create_string_buffer(20)
    assert not g.git_blob_create_from_buffer(oid, repository, b'text', ctypes.c_size_t(4))
    handed(g.git_object_free, lambda: out(g.git_object_lookup, None, repository, oid, -2))
    for put in (g.git_object_free, g.git_blob_free):
        life(lambda: out(g.git_blob_lookup, None, repository, oid), lambda blob: out(g.git_object_dup, None, blob), put)
    builder = out(g.git_treebuilder_new, None, repository, None)
    assert not g.git_treebuilder_insert(None, builder, b'a', oid, 0o100644)
    tree_id, commit_id = ctypes.create_string_buffer(20), ctypes.create_string_buffer(20)
    assert not g.git_treebuilder_write(tree_id, builder)
    tree = out(g.git_tree_lookup, None, repository, tree_id)
    who = out(g.git_signature_now, None, b'a', b'a@b')
    assert not g.git_commit_create_v(commit_id, repository, b'HEAD', who, who, None, b'text', tree, ctypes.c_size_t(0))
    handed(g.git_tree_free, lambda: out(g.git_tree_lookup, None, repository, tree_id))
    handed(g.git_commit_free, lambda: out(g.git_commit_lookup, None, repository, commit_id))
    commit = out(g.git_commit_lookup, None, repository, commit_id)
    handed(g.git_tree_free, lambda: out(g.git_commit_tree, None, commit))
    for kind in ('odb', 'config', 'index', 'refdb'):
        handed(getattr(g, f'git_{kind}_free'), lambda: out(getattr(g, 'git_repository_' + kind), None, repository))


def gpgme():
    g = Lib('libgpgme.so.11')
    gpg = shutil.which('gpg')
    if not gpg:
        skip('gpg is not installed')
    home = folder()
    os.environ['GNUPGHOME'] = home
    setenv('GNUPGHOME', home)
    done = subprocess.run([gpg, '--batch', '--passphrase', '', '--quick-gen-key', 'a@b.c', 'ed25519', 'sign', 'never'],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        skip(f'gpg made no key: {done.stderr}')
    atexit.register(subprocess.run, ['gpgconf', '--kill', 'all'], check=False)
    g.gpgme_check_version(None)
    ctx = out(g.gpgme_new, None)

    def listed():
        assert not g.gpgme_op_keylist_start(ctx, None, 0)
        key = out(g.gpgme_op_keylist_next, ctx, None)
        g.gpgme_op_keylist_end(ctx)
        return key
    life(listed, g.gpgme_key_ref, g.gpgme_key_unref)
    key = listed()
    name = subprocess.run([gpg, '--batch', '--with-colons', '-k'], capture_output=True, text=True, check=True).stdout
    name = next(line.split(':')[9] for line in name.splitlines() if line.startswith('fpr')).encode()
    life(lambda: out(g.gpgme_get_key, ctx, name, None, 0), g.gpgme_key_ref, g.gpgme_key_release)
    g.gpgme_key_unref(key)
    result = need(g.gpgme_op_keylist_result(ctx))
    g.gpgme_result_ref(result)
    g.gpgme_result_ref(result)
    g.gpgme_result_unref(result)
    g.gpgme_result_unref(result)
    g.gpgme_release(ctx)


def p11_kit():
    p = Lib('libp11-kit.so.0')
    life(lambda: p.p11_kit_pin_new_for_string(b'1234'), p.p11_kit_pin_ref, p.p11_kit_pin_unref)
    made(p.p11_kit_pin_unref, lambda: p.p11_kit_pin_new(b'1234', ctypes.c_size_t(4)),
         lambda: p.p11_kit_pin_new_for_buffer(ctypes.create_string_buffer(8), ctypes.c_size_t(4), None))


def nss():
    n = Lib('libnss3.so')
    if n.NSS_NoDB_Init(None):
        skip('NSS does not start')
    slot = need(n.PK11_GetInternalSlot())
    handed(n.PK11_FreeSlot, n.PK11_GetInternalSlot, n.PK11_GetInternalKeySlot, lambda: n.PK11_ReferenceSlot(slot))
    AES_KEY_GEN, AES_CBC = 0x1080, 0x1082
    life(lambda: n.PK11_KeyGen(slot, AES_KEY_GEN, None, 16, None), n.PK11_ReferenceSymKey, n.PK11_FreeSymKey)

    class Item(ctypes.Structure):
        _fields_ = ('type', ctypes.c_int), ('data', ctypes.c_char_p), ('len', ctypes.c_uint)
    raw = Item(0, b'k' * 16, 16)
    made(n.PK11_FreeSymKey, lambda: n.PK11_ImportSymKey(slot, AES_CBC, 4, 0x104, ctypes.byref(raw), None))
    module = need(n.PK11_GetModule(slot))
    life(lambda: n.SECMOD_ReferenceModule(module), n.SECMOD_ReferenceModule, n.SECMOD_DestroyModule)


def krb5():
    k = Lib('libkrb5support.so.0')
    life(lambda: out(k.k5_json_string_create, b'x', None), k.k5_json_retain, k.k5_json_release)
    made(k.k5_json_release, lambda: out(k.k5_json_array_create, None), lambda: out(k.k5_json_object_create, None),
         lambda: out(k.k5_json_number_create, ctypes.c_longlong(7), None), lambda: out(k.k5_json_bool_create, 1, None),
         lambda: out(k.k5_json_null_create, None), lambda: out(k.k5_json_decode, b'[1]', None),
         lambda: out(k.k5_json_string_create_len, b'xy', ctypes.c_size_t(2), None))


def pulseaudio():
    p = Lib('libpulse.so.0')
    daemon = shutil.which('pulseaudio')
    if not daemon:
        skip('pulseaudio is not installed')
    home = folder()
    env = {**os.environ, 'HOME': home, 'XDG_RUNTIME_DIR': home, 'PULSE_RUNTIME_PATH': home}
    server = subprocess.Popen([daemon, '-n', '--daemonize=no', '--exit-idle-time=-1', '--use-pid-file=no',
                               '-L', 'module-null-sink', '-L', f'module-native-protocol-unix auth-anonymous=1 socket={home}/native'], env=env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(server.wait)
    atexit.register(server.kill)
    while not os.path.exists(f'{home}/native') and server.poll() is None:
        pass
    loop = p.pa_mainloop_new()
    api = p.pa_mainloop_get_api(loop)
    make = lambda: p.pa_context_new(api, b'x')  # noqa: E731
    life(make, p.pa_context_ref, p.pa_context_unref)
    made(p.pa_context_unref, lambda: p.pa_context_new_with_proplist(api, b'x', None))
    READY, FAILED = 4, 5
    state = 0
    while state != READY:
        if server.poll() is not None:
            skip('pulseaudio does not run here')
        context = make()
        p.pa_context_connect(context, f'unix:{home}/native'.encode(), 1, None)
        state = p.pa_context_get_state(context) or 0
        while state not in (READY, FAILED):
            p.pa_mainloop_iterate(loop, 1, None)
            state = p.pa_context_get_state(context) or 0
    sample = (ctypes.c_uint32 * 3)(3, 44100, 2)
    life(lambda: p.pa_stream_new(context, b'x', sample, None), p.pa_stream_ref, p.pa_stream_unref)
    for ask in 4 * (lambda: p.pa_context_get_server_info(context, None, None), lambda: p.pa_context_drain(context, None, None),
                    lambda: p.pa_context_get_sink_info_list(context, None, None)):
        o = ask()
        if not o:
            continue
        p.pa_operation_ref(o)
        p.pa_operation_unref(o)
        p.pa_operation_cancel(o)
        p.pa_operation_unref(o)
    p.pa_context_disconnect(context)
    p.pa_context_unref(context)


def pipewire():
    p = Lib('libpipewire-0.3.so.0')
    p.pw_init(None, None)
    loop = need(p.pw_main_loop_new(None))
    context = need(p.pw_context_new(p.pw_main_loop_get_loop(loop), None, ctypes.c_size_t(0)))
    for _ in range(4):
        core = need(p.pw_context_connect_self(context, None, ctypes.c_size_t(0)))
        p.pw_proxy_ref(core)
        p.pw_proxy_ref(core)
        p.pw_proxy_unref(core)
        p.pw_proxy_unref(core)
        p.pw_core_disconnect(core)


def libvirt():
    v = Lib('libvirt.so.0')
    make = lambda: v.virConnectOpen(b'test:///default')  # noqa: E731
    life(make, v.virConnectRef, v.virConnectClose)
    made(v.virConnectClose, lambda: v.virConnectOpenReadOnly(b'test:///default'),
         lambda: v.virConnectOpenAuth(b'test:///default', None, 0))
    connection = need(make())
    one = ctypes.c_int(1)
    domain = lambda: v.virDomainLookupByName(connection, b'test')  # noqa: E731
    life(domain, v.virDomainRef, v.virDomainFree)
    uuid = ctypes.create_string_buffer(37)
    assert not v.virDomainGetUUIDString(need(domain()), uuid)
    made(v.virDomainFree, lambda: v.virDomainLookupByID(connection, one), lambda: v.virDomainLookupByUUIDString(connection, uuid))
    xml = b"<domain type='test'><name>x</name><memory>1024</memory><os><type>hvm</type></os></domain>"
    for _ in range(4):
        defined = need(v.virDomainDefineXML(connection, xml))
        started = need(v.virDomainCreateXML(connection, xml.replace(b'x<', b'y<'), 0))
        v.virDomainUndefine(defined)
        v.virDomainDestroy(started)
        v.virDomainFree(defined)
        v.virDomainFree(started)
    network = lambda: v.virNetworkLookupByName(connection, b'default')  # noqa: E731
    life(network, v.virNetworkRef, v.virNetworkFree)
    assert not v.virNetworkGetUUIDString(need(network()), uuid)
    made(v.virNetworkFree, lambda: v.virNetworkLookupByUUIDString(connection, uuid))
    pool = lambda: v.virStoragePoolLookupByName(connection, b'default-pool')  # noqa: E731
    life(pool, v.virStoragePoolRef, v.virStoragePoolFree)
    life(lambda: v.virStreamNew(connection, 0), v.virStreamRef, v.virStreamFree)


def libdrm():
    """Buffers of the allocator that needs no hardware."""
    d = Lib('libdrm_intel.so.1')
    memory = ctypes.create_string_buffer(1 << 20)
    manager = d.drm_intel_bufmgr_fake_init(-1, ctypes.c_ulong(0), memory, ctypes.c_ulong(1 << 20), ctypes.create_string_buffer(4))
    make = lambda: d.drm_intel_bo_alloc(need(manager), b'x', ctypes.c_ulong(4096), 4096)  # noqa: E731
    life(make, d.drm_intel_bo_reference, d.drm_intel_bo_unreference)
    made(d.drm_intel_bo_unreference, lambda: d.drm_intel_bo_alloc_for_render(manager, b'x', ctypes.c_ulong(4096), 4096))


def vlc():
    v = Lib('libvlc.so.5')
    words = (ctypes.c_char_p * 3)(b'--no-audio', b'--no-video', b'--quiet')
    instance = v.libvlc_new(3, words)
    if not instance:
        skip('libvlc has no plugins here')
    life(lambda: v.libvlc_new(3, words), v.libvlc_retain, v.libvlc_release)
    life(lambda: v.libvlc_media_new_path(instance, b'/x'), v.libvlc_media_retain, v.libvlc_media_release)
    made(v.libvlc_media_release, lambda: v.libvlc_media_new_location(instance, b'file:///x'),
         lambda: v.libvlc_media_new_as_node(instance, b'x'))
    life(lambda: v.libvlc_media_list_new(instance), v.libvlc_media_list_retain, v.libvlc_media_list_release)
    life(lambda: v.libvlc_media_player_new(instance), v.libvlc_media_player_retain, v.libvlc_media_player_release)
    core = Lib('libvlccore.so.9')
    item = lambda: core.input_item_NewExt(b'file:///x', b'x', ctypes.c_int64(-1), 0, 0)  # noqa: E731
    life(item, core.input_item_Hold, core.input_item_Release)


def sqlite():
    s = Lib('libsqlite3.so.0')
    db = out(s.sqlite3_open, b':memory:', None)
    assert not s.sqlite3_exec(db, b'create table t(a, b); create index i on t(a); insert into t values (2, 1), (1, 2), (3, 3)',
                              None, None, None)
    for _ in range(4):
        for text in (b'select a from t order by b, a', b'select a from t union select b from t order by 1',
                     b'select b, count(*) from t group by b'):
            statement = out(s.sqlite3_prepare_v2, db, text, -1, None, None)
            while s.sqlite3_step(statement) == 100:
                pass
            s.sqlite3_finalize(statement)
    s.sqlite3_close(db)


def ffmpeg():
    a = Lib('libavutil.so.57')
    size = ctypes.c_size_t(64)

    def put(handle):
        a.av_buffer_unref(ctypes.byref(ctypes.c_void_p(handle)))
    for make in (lambda: a.av_buffer_alloc(size), lambda: a.av_buffer_allocz(size),
                 lambda: a.av_buffer_create(a.av_malloc(size), size, None, None, 0)):
        for _ in range(4):
            handle = need(make())
            more = need(a.av_buffer_ref(handle)), need(a.av_buffer_ref(handle))
            put(handle)
            put(more[1])
            put(more[0])
    pool = need(a.av_buffer_pool_init(size, None))
    for _ in range(4):
        handle = need(a.av_buffer_pool_get(pool))
        put(need(a.av_buffer_ref(handle)))
        put(handle)


def librdkafka():
    k = Lib('librdkafka.so.1')
    text = ctypes.create_string_buffer(256)
    client = need(k.rd_kafka_new(0, None, text, ctypes.c_size_t(256)))
    handed(k.rd_kafka_topic_destroy, lambda: k.rd_kafka_topic_new(client, b'x', None))
    k.rd_kafka_destroy(client)


def elfutils():
    e = Lib('libelf.so.1')
    e.elf_version(1)
    fd = os.open('/proc/self/exe', os.O_RDONLY)
    READ = 1
    for _ in range(4):
        elf = need(e.elf_begin(fd, READ, None))
        need(e.elf_begin(fd, READ, elf))
        need(e.elf_begin(fd, READ, elf))
        for _ in range(3):
            e.elf_end(elf)


ALL = (libinput, libgit2, gpgme, p11_kit, nss, krb5, pulseaudio, pipewire, libvirt, libdrm, vlc, sqlite, ffmpeg,
       librdkafka, elfutils)
