/*
 * Certificates for tests of TLS, made where they are needed: keys of P-256, valid from yesterday unless a test says
 * otherwise.
 */
#ifndef SPEC_TLS_MADE_H
#define SPEC_TLS_MADE_H

#include "test.h"

#include "strand/tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

/* A certificate, its key and their texts. They live as long as the process. */
struct made {
    X509 *certificate;
    EVP_PKEY *key;
    char pem[8192], public_pem[4096]; /* the certificate and its key; without the key */
};

struct wanted {
    const char *subject;       /* its common name */
    const char *names;         /* "DNS:example.org,IP:127.0.0.1", or NULL */
    const struct made *issuer; /* NULL: it signs itself */
    bool authority;
    int from_days, to_days; /* 0, 0: from yesterday until tomorrow */
    const char *usage;      /* "OCSPSigning", or NULL */
    const char *features;   /* of TLS: "status_request", or NULL */
};

static inline void made_extension(X509 *certificate, const struct made *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer ? issuer->certificate : certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    CHECK(extension && X509_add_ext(certificate, extension, -1));
    X509_EXTENSION_free(extension);
}

static inline void made_text(BIO *memory, char *text, size_t room)
{
    int size = BIO_read(memory, text, (int)room - 1);
    CHECK(size > 0 && (size_t)size < room - 1);
    text[size] = 0;
    BIO_free(memory);
}

static inline void made_texts(struct made *m)
{
    BIO *both = BIO_new(BIO_s_mem()), *one = BIO_new(BIO_s_mem());
    CHECK(PEM_write_bio_X509(both, m->certificate) && PEM_write_bio_X509(one, m->certificate));
    CHECK(PEM_write_bio_PKCS8PrivateKey(both, m->key, NULL, NULL, 0, NULL, NULL));
    made_text(both, m->pem, sizeof m->pem);
    made_text(one, m->public_pem, sizeof m->public_pem);
}

static inline void make_certificate(struct made *m, struct wanted w)
{
    static long serial;
    X509 *c = m->certificate = X509_new();
    m->key = EVP_EC_gen("P-256");
    CHECK(c && m->key && X509_set_version(c, 2) && X509_set_pubkey(c, m->key));
    ASN1_INTEGER_set(X509_get_serialNumber(c), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(c), 24L * 3600 * (w.from_days ? w.from_days : -1));
    X509_gmtime_adj(X509_getm_notAfter(c), 24L * 3600 * (w.to_days ? w.to_days : 1));
    X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN", MBSTRING_UTF8, (const unsigned char *)w.subject, -1, -1,
                               0);
    X509_set_issuer_name(c, X509_get_subject_name(w.issuer ? w.issuer->certificate : c));
    made_extension(c, w.issuer, NID_basic_constraints, w.authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (w.names)
        made_extension(c, w.issuer, NID_subject_alt_name, w.names);
    if (w.usage)
        made_extension(c, w.issuer, NID_ext_key_usage, w.usage);
    if (w.features)
        made_extension(c, w.issuer, NID_tlsfeature, w.features);
    CHECK(X509_sign(c, w.issuer ? w.issuer->key : m->key, EVP_sha256()));
    made_texts(m);
}

#define MAKE(m, ...) make_certificate((m), (struct wanted){__VA_ARGS__})

/* The authority that tests trust, and a server of it with the names "example.org" and 127.0.0.1. Made once. */
static struct made authority, server;

static inline void make_usual(void)
{
    if (authority.key)
        return;
    MAKE(&authority, .subject = "authority", .authority = true);
    MAKE(&server, .subject = "server", .names = "DNS:example.org,IP:127.0.0.1", .issuer = &authority);
}

/* An authority's list of revoked certificates, with this one in it unless that is NULL. It runs out in so many
 * seconds. */
static inline void make_list(const struct made *issuer, const struct made *revoked, int seconds, char *text,
                             size_t room)
{
    X509_CRL *list = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, -3600), *then = X509_gmtime_adj(NULL, seconds);
    CHECK(list && X509_CRL_set_version(list, 1) && X509_CRL_set1_lastUpdate(list, now) &&
          X509_CRL_set1_nextUpdate(list, then));
    CHECK(X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer->certificate)));
    if (revoked) {
        X509_REVOKED *entry = X509_REVOKED_new();
        X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked->certificate));
        X509_REVOKED_set_revocationDate(entry, now);
        X509_CRL_add0_revoked(list, entry);
    }
    CHECK(X509_CRL_sign(list, issuer->key, EVP_sha256()));
    BIO *memory = BIO_new(BIO_s_mem());
    CHECK(PEM_write_bio_X509_CRL(memory, list));
    made_text(memory, text, room);
    X509_CRL_free(list);
    ASN1_TIME_free(now);
    ASN1_TIME_free(then);
}

#endif
