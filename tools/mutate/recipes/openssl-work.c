// SPDX-License-Identifier: GPL-2.0-only
/* Keys, certificates, a chain that is verified in threads, messages, stores, a loaded provider, TLS between two ends.
 */
#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/pkcs7.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <openssl/store.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <string.h>

static EVP_PKEY *new_key(int i)
{
	return i % 2 ? EVP_PKEY_Q_keygen(NULL, NULL, "ED25519") : EVP_EC_gen("P-256");
}

static X509 *certificate(const char *name, EVP_PKEY *key, X509 *issuer, EVP_PKEY *signer, int number)
{
	X509 *x = X509_new();
	X509_NAME *subject = X509_get_subject_name(x);
	X509_EXTENSION *e;
	X509V3_CTX ctx;

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), number);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 360000);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(x, issuer ? X509_get_subject_name(issuer) : subject);
	X509_set_pubkey(x, key);
	X509V3_set_ctx(&ctx, issuer ? issuer : x, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
	X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
	X509_sign(x, signer, EVP_PKEY_is_a(signer, "ED25519") ? NULL : EVP_sha256());
	return x;
}

static X509_CRL *revoked(X509 *issuer, EVP_PKEY *signer)
{
	X509_CRL *crl = X509_CRL_new();
	X509_REVOKED *one = X509_REVOKED_new();
	ASN1_INTEGER *number = ASN1_INTEGER_new();
	ASN1_TIME *now = ASN1_TIME_adj(NULL, time(NULL), 0, -60), *later = ASN1_TIME_adj(NULL, time(NULL), 1, 0);

	X509_CRL_set_version(crl, 1);
	X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer));
	X509_CRL_set1_lastUpdate(crl, now);
	X509_CRL_set1_nextUpdate(crl, later);
	ASN1_INTEGER_set(number, 77);
	X509_REVOKED_set_serialNumber(one, number);
	X509_REVOKED_set_revocationDate(one, now);
	X509_CRL_add0_revoked(crl, one);
	X509_CRL_sort(crl);
	X509_CRL_sign(crl, signer, EVP_sha256());
	ASN1_INTEGER_free(number);
	ASN1_TIME_free(now);
	ASN1_TIME_free(later);
	return crl;
}

struct chain {
	EVP_PKEY *root_key, *key[2];
	X509 *root, *leaf[2];
	X509_STORE *store;
};

static void make_chain(struct chain *c)
{
	X509_VERIFY_PARAM *param = X509_VERIFY_PARAM_new();
	X509_CRL *crl;

	c->root_key = new_key(0);
	c->root = certificate("root", c->root_key, NULL, c->root_key, 1);
	c->store = X509_STORE_new();
	X509_STORE_add_cert(c->store, c->root);
	X509_STORE_add_cert(c->store, c->root);
	crl = revoked(c->root, c->root_key);
	X509_STORE_add_crl(c->store, crl);
	X509_CRL_free(crl);
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_CRL_CHECK);
	X509_STORE_set1_param(c->store, param);
	X509_VERIFY_PARAM_free(param);
	for (int i = 0; i < 2; i++) {
		c->key[i] = new_key(0);
		c->leaf[i] = certificate("leaf", c->key[i], c->root, c->root_key, i ? 77 : 2);
	}
}

static void free_chain(struct chain *c)
{
	for (int i = 0; i < 2; i++) {
		EVP_PKEY_free(c->key[i]);
		X509_free(c->leaf[i]);
	}
	X509_STORE_free(c->store);
	X509_free(c->root);
	EVP_PKEY_free(c->root_key);
}

static void *verify(void *chain)
{
	struct chain *c = chain;

	for (int i = 0; i < 6; i++) {
		X509_STORE_CTX *ctx = X509_STORE_CTX_new();
		STACK_OF(X509) * built, *found;

		X509_STORE_CTX_init(ctx, c->store, c->leaf[i % 2], NULL);
		X509_verify_cert(ctx);
		built = X509_STORE_CTX_get1_chain(ctx);
		sk_X509_pop_free(built, X509_free);
		found = X509_STORE_CTX_get1_certs(ctx, X509_get_subject_name(c->root));
		sk_X509_pop_free(found, X509_free);
		X509_STORE_CTX_free(ctx);
	}
	return NULL;
}

static void texts(struct chain *c)
{
	BIO *mem = BIO_new(BIO_s_mem()), *b64 = BIO_new(BIO_f_base64()), *md = BIO_new(BIO_f_md()), *chain;
	STACK_OF(X509_INFO) * infos;
	EVP_PKEY *key, *public;
	X509_REQ *req;
	X509 *x;

	PEM_write_bio_X509(mem, c->root);
	PEM_write_bio_X509(mem, c->leaf[0]);
	PEM_write_bio_PrivateKey(mem, c->key[0], EVP_aes_128_cbc(), NULL, 0, NULL, (void *)"pass");
	PEM_write_bio_PUBKEY(mem, c->key[1]);
	while ((x = PEM_read_bio_X509(mem, NULL, NULL, NULL))) {
		public = X509_get_pubkey(x);
		X509_verify(x, public);
		EVP_PKEY_free(public);
		X509_check_host(x, "leaf", 0, 0, NULL);
		X509_free(x);
	}
	BIO_reset(mem);
	PEM_write_bio_PrivateKey(mem, c->key[0], EVP_aes_128_cbc(), NULL, 0, NULL, (void *)"pass");
	PEM_write_bio_PUBKEY(mem, c->key[1]);
	key = PEM_read_bio_PrivateKey(mem, NULL, NULL, (void *)"pass");
	public = PEM_read_bio_PUBKEY(mem, NULL, NULL, NULL);
	EVP_PKEY_eq(key, public);
	EVP_PKEY_free(key);
	EVP_PKEY_free(public);
	PEM_write_bio_X509(mem, c->root);
	infos = PEM_X509_INFO_read_bio(mem, NULL, NULL, NULL);
	sk_X509_INFO_pop_free(infos, X509_INFO_free);
	req = X509_to_X509_REQ(c->leaf[0], c->key[0], EVP_sha256());
	public = X509_REQ_get_pubkey(req);
	X509_REQ_verify(req, public);
	EVP_PKEY_free(public);
	X509_REQ_free(req);
	BIO_set_md(md, EVP_sha256());
	chain = BIO_push(b64, BIO_push(md, mem));
	BIO_write(chain, "some text", 9);
	BIO_flush(chain);
	BIO_free_all(chain);
	x = X509_dup(c->leaf[0]);
	X509_free(x);
}

static void messages(struct chain *c)
{
	BIO *in = BIO_new_mem_buf("a message", -1), *out = BIO_new(BIO_s_mem()), *data = BIO_new(BIO_s_mem());
	STACK_OF(X509) * signers, *others = sk_X509_new_null(), *back = NULL;
	CMS_ContentInfo *cms, *sealed;
	EVP_PKEY *key = NULL;
	X509 *x = NULL;
	PKCS12 *p12;
	PKCS7 *p7;

	X509_up_ref(c->root);
	sk_X509_push(others, c->root);
	cms = CMS_sign(c->leaf[0], c->key[0], others, in, CMS_BINARY);
	CMS_verify(cms, others, c->store, NULL, out, CMS_BINARY);
	signers = CMS_get0_signers(cms);
	sk_X509_free(signers);
	sk_X509_pop_free(CMS_get1_certs(cms), X509_free);
	i2d_CMS_bio(data, cms);
	CMS_ContentInfo_free(cms);
	cms = d2i_CMS_bio(data, NULL);
	CMS_ContentInfo_free(cms);
	BIO_reset(in);
	sealed = CMS_encrypt(others, in, EVP_aes_128_cbc(), CMS_BINARY);
	CMS_decrypt(sealed, c->root_key, c->root, NULL, out, CMS_BINARY);
	CMS_ContentInfo_free(sealed);
	BIO_reset(in);
	p7 = PKCS7_sign(c->leaf[0], c->key[0], others, in, PKCS7_BINARY);
	PKCS7_verify(p7, others, c->store, NULL, out, PKCS7_BINARY);
	signers = PKCS7_get0_signers(p7, others, 0);
	sk_X509_free(signers);
	PKCS7_free(p7);
	p12 = PKCS12_create("pass", "name", c->key[0], c->leaf[0], others, 0, 0, 10, 10, 0);
	if (PKCS12_parse(p12, "pass", &key, &x, &back)) {
		EVP_PKEY_free(key);
		X509_free(x);
		sk_X509_pop_free(back, X509_free);
	}
	PKCS12_parse(p12, "wrong", &key, &x, NULL);
	PKCS12_free(p12);
	sk_X509_pop_free(others, X509_free);
	BIO_free(in);
	BIO_free(out);
	BIO_free(data);
}

static void algorithms(void)
{
	static const char *const digests[] = { "SHA256", "SHA3-256", "MD4", "BLAKE2B-512", "none" };
	OSSL_PROVIDER *legacy = OSSL_PROVIDER_load(NULL, "legacy"), *standard = OSSL_PROVIDER_load(NULL, "default");
	OSSL_LIB_CTX *own = OSSL_LIB_CTX_new();
	unsigned char out[64], key[32] = { 1 };
	OSSL_PARAM params[4];
	unsigned length;
	size_t many;
	int n;

	for (unsigned i = 0; i < sizeof(digests) / sizeof(*digests); i++) {
		EVP_MD *md = EVP_MD_fetch(i % 2 ? own : NULL, digests[i], NULL);
		EVP_MD_CTX *ctx = EVP_MD_CTX_new(), *copy = EVP_MD_CTX_new();

		if (md && EVP_DigestInit_ex2(ctx, md, NULL)) {
			EVP_DigestUpdate(ctx, "x", 1);
			EVP_MD_CTX_copy_ex(copy, ctx);
			EVP_DigestFinal_ex(ctx, out, &length);
			EVP_DigestInit_ex(ctx, EVP_sha1(), NULL);
		}
		EVP_MD_CTX_free(copy);
		EVP_MD_CTX_free(ctx);
		EVP_MD_free(md);
	}
	for (int i = 0; i < 4; i++) {
		EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, i % 2 ? "AES-256-GCM" : "AES-128-CBC", NULL);
		EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new(), *copy = EVP_CIPHER_CTX_new();

		EVP_EncryptInit_ex2(ctx, cipher, key, key, NULL);
		EVP_EncryptUpdate(ctx, out, &n, key, 16);
		EVP_CIPHER_CTX_copy(copy, ctx);
		EVP_EncryptFinal_ex(copy, out, &n);
		EVP_EncryptInit_ex2(ctx, EVP_aes_256_ctr(), key, key, NULL);
		EVP_CIPHER_CTX_free(copy);
		EVP_CIPHER_CTX_free(ctx);
		EVP_CIPHER_free(cipher);
	}
	for (int i = 0; i < 3; i++) {
		EVP_MAC *mac = EVP_MAC_fetch(NULL, i ? "HMAC" : "CMAC", NULL);
		EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac), *copy;

		params[0] = OSSL_PARAM_construct_utf8_string(i ? "digest" : "cipher",
							     (char *)(i ? "SHA256" : "AES-128-CBC"), 0);
		params[1] = OSSL_PARAM_construct_end();
		EVP_MAC_init(ctx, key, 16, params);
		copy = EVP_MAC_CTX_dup(ctx);
		EVP_MAC_final(ctx, out, &many, sizeof(out));
		EVP_MAC_CTX_free(copy);
		EVP_MAC_CTX_free(ctx);
		EVP_MAC_free(mac);
	}
	for (int i = 0; i < 2; i++) {
		EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
		EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);

		params[0] = OSSL_PARAM_construct_utf8_string("digest", (char *)"SHA256", 0);
		params[1] = OSSL_PARAM_construct_octet_string("key", key, sizeof(key));
		params[2] = OSSL_PARAM_construct_end();
		EVP_KDF_derive(ctx, out, sizeof(out), params);
		EVP_KDF_CTX_free(ctx);
		EVP_KDF_free(kdf);
	}
	OSSL_LIB_CTX_free(own);
	OSSL_PROVIDER_unload(legacy);
	OSSL_PROVIDER_unload(standard);
}

static void keys(void)
{
	for (int i = 0; i < 4; i++) {
		EVP_PKEY *key = new_key(i), *same = EVP_PKEY_dup(key), *peer = new_key(0);
		EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL), *copy;
		EVP_MD_CTX *sign = EVP_MD_CTX_new();
		unsigned char out[128];
		size_t n = sizeof(out);

		EVP_DigestSignInit_ex(sign, NULL, i % 2 ? NULL : "SHA256", NULL, NULL, key, NULL);
		EVP_DigestSign(sign, out, &n, out, 20);
		EVP_DigestVerifyInit(sign, NULL, i % 2 ? NULL : EVP_sha256(), NULL, same);
		EVP_DigestVerify(sign, out, n, out, 20);
		EVP_MD_CTX_free(sign);
		copy = EVP_PKEY_CTX_dup(ctx);
		if (!(i % 2) && EVP_PKEY_derive_init(ctx) > 0) {
			EVP_PKEY_derive_set_peer(ctx, peer);
			EVP_PKEY_derive_set_peer(ctx, same);
			n = sizeof(out);
			EVP_PKEY_derive(ctx, out, &n);
		}
		EVP_PKEY_CTX_free(copy);
		EVP_PKEY_CTX_free(ctx);
		if (!(i % 2)) {
			EC_KEY *ec = EVP_PKEY_get1_EC_KEY(key);
			EVP_PKEY *old = EVP_PKEY_new();

			EVP_PKEY_set1_EC_KEY(old, ec);
			EC_KEY_free(ec);
			EVP_PKEY_eq(old, key);
			EVP_PKEY_free(old);
		}
		EVP_PKEY_free(peer);
		EVP_PKEY_free(same);
		EVP_PKEY_free(key);
	}
}

static void stored(struct chain *c)
{
	BIO *file = BIO_new_file("stored.pem", "w");
	OSSL_STORE_CTX *store;
	X509_LOOKUP *lookup;
	X509_STORE *x509s;

	PEM_write_bio_X509(file, c->root);
	PEM_write_bio_PrivateKey(file, c->key[0], NULL, NULL, 0, NULL, NULL);
	BIO_free(file);
	store = OSSL_STORE_open("stored.pem", NULL, NULL, NULL, NULL);
	while (store && !OSSL_STORE_eof(store)) {
		OSSL_STORE_INFO *info = OSSL_STORE_load(store);
		X509 *x = info ? OSSL_STORE_INFO_get1_CERT(info) : NULL;
		EVP_PKEY *key = info && !x ? OSSL_STORE_INFO_get1_PKEY(info) : NULL;

		X509_free(x);
		EVP_PKEY_free(key);
		OSSL_STORE_INFO_free(info);
	}
	OSSL_STORE_close(store);
	x509s = X509_STORE_new();
	lookup = X509_STORE_add_lookup(x509s, X509_LOOKUP_file());
	X509_LOOKUP_load_file(lookup, "stored.pem", X509_FILETYPE_PEM);
	sk_X509_pop_free(X509_STORE_get1_all_certs(x509s), X509_free);
	X509_STORE_free(x509s);
}

static void tls(struct chain *c)
{
	SSL_CTX *server_ctx = SSL_CTX_new(TLS_server_method()), *client_ctx = SSL_CTX_new(TLS_client_method());
	SSL_SESSION *session = NULL;

	SSL_CTX_use_certificate(server_ctx, c->leaf[0]);
	SSL_CTX_use_PrivateKey(server_ctx, c->key[0]);
	SSL_CTX_add1_chain_cert(server_ctx, c->root);
	SSL_CTX_set_session_id_context(server_ctx, (const unsigned char *)"id", 2);
	SSL_CTX_set1_cert_store(client_ctx, c->store);
	SSL_CTX_set_verify(client_ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(client_ctx, SSL_SESS_CACHE_CLIENT);
	for (int i = 0; i < 5; i++) {
		SSL *server = SSL_new(server_ctx), *client = SSL_new(client_ctx);
		BIO *one, *two;
		char text[8];
		X509 *peer;

		if (i > 2) {
			SSL_set_max_proto_version(client, TLS1_2_VERSION);
			SSL_use_certificate(client, c->leaf[1]);
			SSL_use_PrivateKey(client, c->key[1]);
		}
		BIO_new_bio_pair(&one, 0, &two, 0);
		SSL_set_bio(server, one, one);
		SSL_set_bio(client, two, two);
		SSL_set_accept_state(server);
		SSL_set_connect_state(client);
		if (session && i != 3)
			SSL_set_session(client, session);
		for (int k = 0; k < 6; k++) {
			SSL_do_handshake(client);
			SSL_do_handshake(server);
		}
		SSL_write(server, "text", 4);
		SSL_read(client, text, sizeof(text));
		peer = SSL_get1_peer_certificate(client);
		X509_free(peer);
		SSL_SESSION_free(session);
		session = SSL_get1_session(client);
		if (i == 2) {
			SSL *copy = SSL_dup(client);

			SSL_free(copy);
		}
		SSL_shutdown(client);
		SSL_shutdown(server);
		SSL_free(client);
		SSL_free(server);
	}
	SSL_SESSION_free(session);
	SSL_CTX_free(client_ctx);
	SSL_CTX_free(server_ctx);
}

int main(void)
{
	pthread_t threads[2];
	struct chain chain;

	make_chain(&chain);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, verify, &chain);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++) {
		texts(&chain);
		messages(&chain);
		algorithms();
		keys();
		stored(&chain);
		tls(&chain);
	}
	free_chain(&chain);
	return 0;
}
