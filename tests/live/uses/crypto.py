# SPDX-License-Identifier: GPL-2.0-only
"""Libraries of keys and certificates."""
import ctypes

from uses.calls import Lib, file, handed, life, made, need, out, skip, stream


class OpenSSL:
    """What one call makes of another's result."""

    def __init__(self):
        self.o = Lib('libcrypto.so.3')
        self.key = self.made('EC', b'P-256')

    def made(self, kind, *more):
        """-> EVP_PKEY"""
        return need(self.o.EVP_PKEY_Q_keygen(None, None, kind.encode(), *more))

    def der(self, encode, thing):
        """-> bytes"""
        size = ctypes.c_int(encode(thing, None)).value
        data = ctypes.create_string_buffer(size)
        encode(thing, ctypes.byref(ctypes.c_void_p(ctypes.addressof(data))))
        return data.raw

    def decoded(self, decode, data, *before):
        """calls decode(..., &data, size)"""
        held = ctypes.create_string_buffer(data)
        place = ctypes.c_void_p(ctypes.addressof(held))
        return decode(*before, ctypes.byref(place), ctypes.c_long(len(data)))

    def pem(self, write, thing, *more):
        """-> a BIO maker and a FILE maker for what write(bio, thing...) writes"""
        o = self.o
        bio = o.BIO_new(o.BIO_s_mem())
        assert write(bio, thing, *more)
        place = ctypes.c_void_p()
        size = o.BIO_ctrl(bio, 3, 0, ctypes.byref(place))
        text = ctypes.string_at(place.value, size)
        o.BIO_free(bio)
        path = file(text)
        return (lambda: o.BIO_new_mem_buf(text, len(text))), (lambda: stream(path))


def openssl():
    s = OpenSSL()
    o = s.o
    for name in ('X509', 'EVP_PKEY', 'X509_CRL', 'X509_STORE', 'RSA', 'DH', 'DSA', 'EC_KEY'):
        life(getattr(o, name + '_new'), getattr(o, name + '_up_ref'), getattr(o, name + '_free'))
    life(lambda: o.BIO_new(o.BIO_s_mem()), o.BIO_up_ref, o.BIO_free)
    fetched(o)
    keys(s)
    certificates(s)
    old_keys(s)
    bios(o)
    tls(s)


def fetched(o):
    for kind, algorithm in (('MD', b'SHA2-256'), ('CIPHER', b'AES-128-CBC'), ('MAC', b'HMAC'), ('KDF', b'HKDF'),
                            ('RAND', b'CTR-DRBG'), ('KEYMGMT', b'RSA'), ('KEYEXCH', b'DH'), ('SIGNATURE', b'RSA'),
                            ('ASYM_CIPHER', b'RSA'), ('KEM', b'RSA')):
        fetch, free = getattr(o, f'EVP_{kind}_fetch'), getattr(o, f'EVP_{kind}_free')
        life(lambda f=fetch, a=algorithm: f(None, a, None), getattr(o, f'EVP_{kind}_up_ref'), free)
        handed(free, lambda f=fetch, a=algorithm: f(None, a, None))
    for kind, algorithm in ('DECODER', b'RSA'), ('ENCODER', b'RSA'), ('STORE_LOADER', b'file'):
        fetch, free = getattr(o, f'OSSL_{kind}_fetch'), getattr(o, f'OSSL_{kind}_free')
        life(lambda f=fetch, a=algorithm: f(None, a, None), getattr(o, f'OSSL_{kind}_up_ref'), free)
        handed(free, lambda f=fetch, a=algorithm: f(None, a, None))


def keys(s):
    o = s.o
    raw = b'k' * 32
    der = s.der(o.i2d_PrivateKey, s.key)
    public = s.der(o.i2d_PUBKEY, s.key)
    private_pem = s.pem(o.PEM_write_bio_PrivateKey, s.key, None, None, 0, None, None)
    public_pem = s.pem(o.PEM_write_bio_PUBKEY, s.key)
    EC, ED, HMAC = 408, 1087, 855

    def from_bio(read, source):
        bio = source()
        key = read(bio, None, None, None)
        o.BIO_free(bio)
        return key
    made(o.EVP_PKEY_free, lambda: s.made('ED25519'), lambda: o.EVP_PKEY_dup(s.key),
         lambda: o.EVP_PKEY_new_raw_private_key(ED, None, raw, ctypes.c_size_t(32)),
         lambda: o.EVP_PKEY_new_raw_public_key(ED, None, raw, ctypes.c_size_t(32)),
         lambda: o.EVP_PKEY_new_mac_key(HMAC, None, raw, 32), lambda: s.decoded(o.d2i_PrivateKey, der, EC, None),
         lambda: s.decoded(o.d2i_AutoPrivateKey, der, None), lambda: s.decoded(o.d2i_PUBKEY, public, None),
         lambda: from_bio(o.PEM_read_bio_PrivateKey, private_pem[0]), lambda: from_bio(o.PEM_read_bio_PUBKEY, public_pem[0]),
         lambda: o.PEM_read_PrivateKey(private_pem[1](), None, None, None),
         lambda: o.PEM_read_PUBKEY(public_pem[1](), None, None, None))


def certificates(s):
    o = s.o
    name = o.X509_NAME_new()
    o.X509_NAME_add_entry_by_txt(name, b'CN', 0x1000, b'x', -1, -1, 0)
    cert = o.X509_new()
    o.ASN1_INTEGER_set(o.X509_get_serialNumber(cert), ctypes.c_long(1))
    o.X509_gmtime_adj(o.X509_getm_notBefore(cert), ctypes.c_long(0))
    o.X509_gmtime_adj(o.X509_getm_notAfter(cert), ctypes.c_long(10000))
    o.X509_set_issuer_name(cert, name)
    o.X509_set_subject_name(cert, name)
    o.X509_set_pubkey(cert, s.key)
    sha = o.EVP_sha256()
    assert o.X509_sign(cert, s.key, sha)
    request = o.X509_REQ_new()
    o.X509_REQ_set_subject_name(request, name)
    o.X509_REQ_set_pubkey(request, s.key)
    assert o.X509_REQ_sign(request, s.key, sha)
    rsa = s.made('RSA', ctypes.c_size_t(1024))  # the only one that goes with MD5
    crl = o.X509_CRL_new()
    o.X509_CRL_set_issuer_name(crl, name)
    o.X509_CRL_set1_lastUpdate(crl, o.X509_getm_notBefore(cert))
    assert o.X509_CRL_sign(crl, s.key, sha)

    def from_bio(read, source, *more):
        bio = source()
        found = read(bio, *more)
        o.BIO_free(bio)
        return found
    for thing, kind, free in (cert, 'X509', o.X509_free), (crl, 'X509_CRL', o.X509_CRL_free):
        data = s.der(getattr(o, 'i2d_' + kind), thing)
        bio, opened = s.pem(getattr(o, 'PEM_write_bio_' + kind), thing)
        path = file(data)
        calls = {name: getattr(o, name + kind, None) for name in ('d2i_', 'PEM_read_bio_', 'PEM_read_')}
        made(free, lambda t=thing, k=kind: getattr(o, k + '_dup')(t), lambda c=calls, d=data: s.decoded(c['d2i_'], d, None),
             lambda k=kind, d=data: from_bio(getattr(o, f'd2i_{k}_bio'), lambda: o.BIO_new_mem_buf(d, len(d)), None),
             lambda c=calls, b=bio: from_bio(c['PEM_read_bio_'], b, None, None, None),
             lambda c=calls, f=opened: c['PEM_read_'](f(), None, None, None))
        if kind == 'X509':
            made(free, lambda p=path: o.d2i_X509_fp(stream(p), None), lambda: o.X509_new_ex(None, None),
                 lambda b=bio: from_bio(o.PEM_read_bio_X509_AUX, b, None, None, None),
                 lambda: o.X509_REQ_to_X509(request, 1, rsa))
    handed(o.EVP_PKEY_free, lambda: o.X509_get_pubkey(cert), lambda: o.X509_REQ_get_pubkey(request),
           lambda: o.X509_PUBKEY_get(o.X509_get_X509_PUBKEY(cert)))
    store = o.X509_STORE_new()
    o.X509_STORE_add_cert(store, cert)
    ctx = o.X509_STORE_CTX_new()
    assert o.X509_STORE_CTX_init(ctx, store, cert, None)
    handed(o.X509_free, lambda: out(o.X509_STORE_CTX_get1_issuer, None, ctx, cert))
    infos = ('CERT', cert, o.X509_up_ref, o.X509_free), ('CRL', crl, o.X509_CRL_up_ref, o.X509_CRL_free), \
        ('PKEY', s.key, o.EVP_PKEY_up_ref, o.EVP_PKEY_free)
    for kind, thing, up, free in infos:
        up(thing)
        info = getattr(o, 'OSSL_STORE_INFO_new_' + kind)(thing)
        handed(free, lambda k=kind, i=info: getattr(o, 'OSSL_STORE_INFO_get1_' + k)(i))
        o.OSSL_STORE_INFO_free(info)
    s.cert = cert


def old_keys(s):
    """Types of OpenSSL 1 that are there still."""
    o = s.o
    rsa = o.RSA_new()
    e = o.BN_new()
    o.BN_set_word(e, ctypes.c_ulong(65537))
    assert o.RSA_generate_key_ex(rsa, 512, e, None)
    ec = o.EC_KEY_new_by_curve_name(415)
    assert o.EC_KEY_generate_key(ec)
    dh = o.DH_new_by_nid(1126)
    dsa = o.DSA_new()
    assert o.DSA_generate_parameters_ex(dsa, 512, None, 0, None, None, None) and o.DSA_generate_key(dsa)
    pem = s.pem(o.PEM_write_bio_RSAPrivateKey, rsa, None, None, 0, None, None)[0]

    def read():
        bio = pem()
        found = o.PEM_read_bio_RSAPrivateKey(bio, None, None, None)
        o.BIO_free(bio)
        return found
    d = {name: s.der(getattr(o, 'i2d_' + name), thing) for name, thing in
         (('RSAPrivateKey', rsa), ('RSAPublicKey', rsa), ('ECPrivateKey', ec), ('DHparams', dh), ('DSAPrivateKey', dsa))}
    decode = lambda name: lambda: s.decoded(getattr(o, 'd2i_' + name), d[name], None)  # noqa: E731
    made(o.RSA_free, lambda: o.RSA_new_method(None), decode('RSAPrivateKey'), decode('RSAPublicKey'), read)
    made(o.EC_KEY_free, lambda: o.EC_KEY_new_ex(None, None), lambda: o.EC_KEY_new_by_curve_name(415),
         lambda: o.EC_KEY_new_method(None), lambda: o.EC_KEY_dup(ec), decode('ECPrivateKey'))
    made(o.DH_free, lambda: o.DH_new_method(None), lambda: o.DH_new_by_nid(1126), decode('DHparams'))
    made(o.DSA_free, lambda: o.DSA_new_method(None), decode('DSAPrivateKey'))
    for name, thing in ('RSA', rsa), ('EC_KEY', ec), ('DH', dh), ('DSA', dsa):
        key = o.EVP_PKEY_new()
        assert getattr(o, 'EVP_PKEY_set1_' + name)(key, thing)
        handed(getattr(o, name + '_free'), lambda n=name, k=key: getattr(o, 'EVP_PKEY_get1_' + n)(k))
        o.EVP_PKEY_free(key)


def bios(o):
    path = file(b'x').encode()
    made(o.BIO_free, lambda: o.BIO_new_ex(None, o.BIO_s_mem()), lambda: o.BIO_new_mem_buf(b'x', 1),
         lambda: o.BIO_new_file(path, b'r'), lambda: o.BIO_new_fp(stream(path.decode()), 0), lambda: o.BIO_new_fd(0, 0),
         lambda: o.BIO_new_socket(0, 0), lambda: o.BIO_new_connect(b'localhost:1'), lambda: o.BIO_new_accept(b'1'))


def tls(s):
    o, t = s.o, Lib('libssl.so.3')
    method = t.TLS_method()
    life(lambda: t.SSL_CTX_new(method), t.SSL_CTX_up_ref, t.SSL_CTX_free)
    made(t.SSL_CTX_free, lambda: t.SSL_CTX_new_ex(None, None, method))
    ctx = t.SSL_CTX_new(method)
    assert t.SSL_CTX_use_certificate(ctx, s.cert) and t.SSL_CTX_use_PrivateKey(ctx, s.key)
    life(lambda: t.SSL_new(ctx), t.SSL_up_ref, t.SSL_free)
    whole = t.SSL_new(ctx)
    made(t.SSL_free, lambda: t.SSL_dup(whole))
    made(o.BIO_free, lambda: t.BIO_new_ssl(ctx, 1))
    made(o.BIO_free_all, lambda: t.BIO_new_ssl_connect(ctx), lambda: t.BIO_new_buffer_ssl_connect(ctx))
    stores = [o.X509_STORE_new() for _ in range(4)]
    for store in stores:
        t.SSL_CTX_set_cert_store(ctx, store)
    # two ends in one process
    ends = t.SSL_new(ctx), t.SSL_new(ctx)
    pair = ctypes.c_void_p(), ctypes.c_void_p()
    assert o.BIO_new_bio_pair(ctypes.byref(pair[0]), ctypes.c_size_t(0), ctypes.byref(pair[1]), ctypes.c_size_t(0))
    for end, bio in zip(ends, pair):
        t.SSL_set_bio(end, bio, bio)
    t.SSL_set_connect_state(ends[0])
    t.SSL_set_accept_state(ends[1])
    for _ in range(20):
        for end in ends:
            t.SSL_do_handshake(end)
    handed(o.X509_free, lambda: t.SSL_get1_peer_certificate(ends[0]))
    handed(t.SSL_SESSION_free, lambda: t.SSL_get1_session(ends[0]))
    life(t.SSL_SESSION_new, t.SSL_SESSION_up_ref, t.SSL_SESSION_free)
    session = need(t.SSL_get1_session(ends[0]))
    data = s.der(t.i2d_SSL_SESSION, session)
    made(t.SSL_SESSION_free, lambda: t.SSL_SESSION_dup(session), lambda: s.decoded(t.d2i_SSL_SESSION, data, None))


ALL = (openssl,)
