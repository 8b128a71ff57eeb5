/*
 * Responses of OCSP for tests, and a server that staples whatever a test wants, by OpenSSL alone.
 */
#ifndef SPEC_TLS_RESPONSES_H
#define SPEC_TLS_RESPONSES_H

#include "tls_clock.h"
#include "tls_pair.h"

#include <openssl/ocsp.h>
#include <openssl/ssl.h>

/* A response in DER and in PEM. */
struct response {
    unsigned char der[4096];
    int size;
    char pem[8192];
};

struct answer {
    const struct made *certificate, *issuer; /* whose certificate, by whom; NULL: the authority */
    const struct made *signer;               /* NULL: the issuer */
    int status, reason;
    int from, to;         /* seconds from now; 0, 0: for an hour before and behind */
    bool endless;         /* it does not say until when */
    const char *until;    /* the text of a time instead of `to` */
    bool by_key;          /* the signer is named by its key */
    bool bare;            /* it does not contain the signer's certificate */
    bool twice;           /* by another digest it says the opposite before */
    const EVP_MD *digest; /* of the signature; NULL: SHA-256 */
    bool critical;        /* it has an extension that its readers have to understand */
};

static inline void response_texts(struct response *r, OCSP_RESPONSE *response)
{
    BIO *memory = BIO_new(BIO_s_mem());
    unsigned char *at = r->der;
    r->size = i2d_OCSP_RESPONSE(response, NULL);
    CHECK(r->size > 0 && (size_t)r->size <= sizeof r->der && i2d_OCSP_RESPONSE(response, &at) == r->size);
    CHECK(PEM_write_bio(memory, "OCSP RESPONSE", "", r->der, r->size) > 0);
    made_text(memory, r->pem, sizeof r->pem);
    OCSP_RESPONSE_free(response);
}

/* Add the answer. A text of a time is taken as it is, which the call that adds would make a usual one. */
static inline void response_add(OCSP_BASICRESP *basic, OCSP_CERTID *id, const struct answer *a)
{
    ASN1_TIME *when = X509_gmtime_adj(NULL, -7200), *from = X509_gmtime_adj(NULL, a->from ? a->from : -3600);
    ASN1_TIME *to = a->endless ? NULL : X509_gmtime_adj(NULL, a->to ? a->to : 3600);
    OCSP_SINGLERESP *single = OCSP_basic_add1_status(basic, id, a->status, a->reason, when, from, to);
    CHECK(single != NULL);
    ASN1_GENERALIZEDTIME *end;
    OCSP_single_get0_status(single, NULL, NULL, NULL, &end);
    if (a->until)
        CHECK(ASN1_GENERALIZEDTIME_set_string(end, a->until));
    ASN1_TIME_free(when);
    ASN1_TIME_free(from);
    ASN1_TIME_free(to);
}

static inline void response_add_opposite(OCSP_BASICRESP *basic, const struct answer *a, const struct made *issuer)
{
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha256(), a->certificate->certificate, issuer->certificate);
    struct answer opposite = *a;
    opposite.status = a->status == V_OCSP_CERTSTATUS_GOOD ? V_OCSP_CERTSTATUS_REVOKED : V_OCSP_CERTSTATUS_GOOD;
    response_add(basic, id, &opposite);
    OCSP_CERTID_free(id);
}

static inline void make_response(struct response *r, struct answer a)
{
    const struct made *issuer = a.issuer ? a.issuer : &authority, *signer = a.signer ? a.signer : issuer;
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), a.certificate->certificate, issuer->certificate);
    CHECK(basic && id);
    if (a.twice)
        response_add_opposite(basic, &a, issuer);
    response_add(basic, id, &a);
    if (a.critical)
        CHECK(OCSP_BASICRESP_add1_ext_i2d(basic, NID_id_pkix_OCSP_archiveCutoff,
                                          X509_getm_notAfter(issuer->certificate), 1, 0));
    CHECK(OCSP_basic_sign(basic, signer->certificate, signer->key, a.digest ? a.digest : EVP_sha256(), NULL,
                          (a.by_key ? OCSP_RESPID_KEY : 0) | (a.bare ? OCSP_NOCERTS : 0)) == 1);
    response_texts(r, OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic));
    OCSP_CERTID_free(id);
    OCSP_BASICRESP_free(basic);
}

#define RESPOND(r, ...) make_response((r), (struct answer){__VA_ARGS__})

/* ---- a server ---------------------------------------------------------------------------------------------------- */

struct stapler {
    const struct made *own, *between; /* between: sent behind the own certificate, or NULL */
    const struct response *staple;    /* NULL: none */
    int version;
};

static bool staple_asked; /* whether the last client has asked */

static inline int staple_given(SSL *ssl, void *arg)
{
    const struct response *staple = arg;
    staple_asked = true;
    if (!staple)
        return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, OPENSSL_memdup(staple->der, (size_t)staple->size), staple->size);
    return SSL_TLSEXT_ERR_OK;
}

static inline SSL *stapler_open(const struct stapler *stapler)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    CHECK(context && SSL_CTX_use_certificate(context, stapler->own->certificate) == 1 &&
          SSL_CTX_use_PrivateKey(context, stapler->own->key) == 1);
    if (stapler->between)
        CHECK(SSL_CTX_add1_chain_cert(context, stapler->between->certificate) == 1);
    SSL_CTX_set_tlsext_status_cb(context, staple_given);
    SSL_CTX_set_tlsext_status_arg(context, (void *)stapler->staple);
    SSL_CTX_set_max_proto_version(context, stapler->version);
    SSL *ssl = SSL_new(context);
    CHECK(ssl != NULL);
    SSL_CTX_free(context);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl);
    return ssl;
}

/* One step of the server's handshake. Returns whether it is over. */
static inline bool stapler_step(SSL *ssl, int fd)
{
    int result = SSL_do_handshake(ssl);
    bool over = result == 1 || SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ;
    ERR_clear_error();
    char *bytes;
    long size = BIO_get_mem_data(SSL_get_wbio(ssl), &bytes);
    if (size > 0 && strand_write_all(fd, bytes, (size_t)size) < 0)
        return true;
    (void)BIO_reset(SSL_get_wbio(ssl));
    char arrived[4096];
    int64_t got = over ? 0 : strand_read(fd, arrived, sizeof arrived);
    if (got <= 0)
        return true;
    return BIO_write(SSL_get_rbio(ssl), arrived, (int)got) != got;
}

/* The handshake of a server at pair[1], as a strand. */
static inline void *serve_staple(void *stapler)
{
    SSL *ssl = stapler_open(stapler);
    while (!stapler_step(ssl, pair[1])) {
    }
    SSL_free(ssl);
    return NULL;
}

/* The handshake of a client of `trusting` with such a server. Returns the client's result; the client stays open. */
static inline int visit_stapler(struct stapler stapler, const char *host)
{
    open_pair();
    staple_asked = false;
    client = strand_tls_client(trusting, pair[0], host);
    STRAND_SCOPE(scope);
    strand s = strand_spawn(scope, serve_staple, &stapler);
    int result = strand_tls_handshake(client);
    strand_shutdown(pair[0], 1); /* SHUT_WR */
    strand_join(s);
    CHECK_EQ(strand_close(pair[1]), 0);
    return result;
}

#endif
