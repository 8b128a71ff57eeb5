/*
 * Whether a response of OCSP (RFC 6960) says that a certificate is good.
 */
#include "tls.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/x509v3.h>

#include <stdio.h>

/* Clocks may differ by so many seconds. */
enum { LEEWAY = 300 };
/* A response that does not say when there will be a newer one is good for a day. */
enum { DAY = 24 * 3600 };

static const struct {
    const char *words, *remedy;
} faults[] = {
    [TLS_MALFORMED] = {"cannot be parsed", "it has to be in DER, as openssl ocsp -respout writes it"},
    [TLS_NO_RESPONSE] = {"is a refusal of the responder", "ask the responder again"},
    [TLS_OF_OTHER] = {"is for another certificate", "ask the responder for the first of the context's certificates"},
    [TLS_UNSIGNED] = {"is not signed by the certificate's authority", "ask the responder that the certificate names"},
    [TLS_WEAK] = {"has a weak signature", "ask the responder for one that is signed by SHA-256"},
    [TLS_REVOKED] = {"says that the certificate is revoked", "get a new certificate"},
    [TLS_UNKNOWN] = {"says that the authority does not know the certificate",
                     "ask the responder that the certificate names"},
    [TLS_EARLY] = {"is not valid yet", "check the clock"},
    [TLS_OVER] = {"has expired", "fetch a new one from the responder"},
    [TLS_NO_MEMORY] = {"cannot be checked", "there is no memory"},
};

void tls_ocsp_say(const struct tls_finding *finding, char *text, size_t room)
{
    const char *detail = finding->detail;
    snprintf(text, room, "%s%s%s%s", faults[finding->fault].words, detail ? " (" : "", detail ? detail : "",
             detail ? ")" : "");
}

const char *tls_ocsp_remedy(enum tls_fault fault)
{
    return faults[fault].remedy;
}

/* A failure by the first error that OpenSSL has noted, unless memory was short. Empties the queue. */
static enum tls_fault fault_of(struct tls_finding *finding, enum tls_fault fault)
{
    unsigned long error = ERR_peek_error(), next;
    while ((next = ERR_get_error()))
        if (ERR_GET_REASON(next) == ERR_R_MALLOC_FAILURE)
            return TLS_NO_MEMORY;
    finding->detail = error ? ERR_reason_error_string(error) : NULL;
    return fault;
}

/* ---- for which certificate ------------------------------------------------------------------------------------- */

static bool is_digest(const ASN1_OCTET_STRING *string, const unsigned char *digest, unsigned size)
{
    return (unsigned)ASN1_STRING_length(string) == size && memcmp(ASN1_STRING_get0_data(string), digest, size) == 0;
}

/* Whether a response is for a certificate: by its number, and its issuer's name and, where the issuer is known, key. */
static bool is_for(OCSP_SINGLERESP *single, const struct tls_asked *asked)
{
    ASN1_OCTET_STRING *name, *key;
    ASN1_OBJECT *algorithm;
    ASN1_INTEGER *number;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size;
    OCSP_id_get0_info(&name, &algorithm, &key, &number, (OCSP_CERTID *)OCSP_SINGLERESP_get0_id(single));
    const EVP_MD *by = EVP_get_digestbyobj(algorithm);
    if (!by || ASN1_INTEGER_cmp(number, X509_get0_serialNumber(asked->certificate)) != 0)
        return false;
    if (X509_NAME_digest(X509_get_issuer_name(asked->certificate), by, digest, &size) != 1 ||
        !is_digest(name, digest, size))
        return false;
    return !asked->issuer ||
           (X509_pubkey_digest(asked->issuer, by, digest, &size) == 1 && is_digest(key, digest, size));
}

/* What a response says of a certificate, or NULL. A response may say it by several digests: then the worst counts. */
static OCSP_SINGLERESP *find(OCSP_BASICRESP *basic, const struct tls_asked *asked)
{
    OCSP_SINGLERESP *found = NULL;
    for (int i = 0; i < OCSP_resp_count(basic); i++) {
        OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
        if (!is_for(single, asked))
            continue;
        if (OCSP_single_get0_status(single, NULL, NULL, NULL, NULL) == V_OCSP_CERTSTATUS_REVOKED)
            return single;
        if (!found || OCSP_single_get0_status(found, NULL, NULL, NULL, NULL) == V_OCSP_CERTSTATUS_GOOD)
            found = single;
    }
    return found;
}

/* ---- until when ------------------------------------------------------------------------------------------------- */

/* OpenSSL compares times of this form only. A time of another form would never be over. */
static bool is_usual(const ASN1_GENERALIZEDTIME *time)
{
    return !time || ASN1_STRING_length(time) == (int)sizeof "YYYYMMDDHHMMSSZ" - 1;
}

/* When a response runs out, or NULL without memory. */
static ASN1_TIME *end_of(const ASN1_GENERALIZEDTIME *from, const ASN1_GENERALIZEDTIME *next)
{
    int days, seconds;
    if (next)
        return ASN1_STRING_dup(next);
    return ASN1_TIME_diff(&days, &seconds, NULL, from) == 1 ? X509_time_adj_ex(NULL, days + 1, seconds, NULL) : NULL;
}

static enum tls_fault check_time(struct tls_finding *finding, ASN1_GENERALIZEDTIME *from, ASN1_GENERALIZEDTIME *next)
{
    if (!from || !is_usual(from) || !is_usual(next))
        return TLS_MALFORMED;
    ERR_clear_error();
    if (OCSP_check_validity(from, next, LEEWAY, next ? -1 : DAY) != 1) {
        int reason = ERR_GET_REASON(ERR_peek_error());
        if (reason == OCSP_R_STATUS_NOT_YET_VALID)
            return TLS_EARLY;
        return reason == OCSP_R_STATUS_EXPIRED || reason == OCSP_R_STATUS_TOO_OLD ? TLS_OVER : TLS_MALFORMED;
    }
    finding->until = end_of(from, next);
    return finding->until ? TLS_GOOD : TLS_NO_MEMORY;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Whether the digest of a response's signature is too weak for OpenSSL's security level. OpenSSL asks that of the
 * certificates that sign, but not of the response. */
static bool is_weak(const OCSP_BASICRESP *basic, int level)
{
    static const int bits[] = {0, 80, 112, 128, 192, 256};
    int digest = NID_undef, key;
    const X509_ALGOR *algorithm = OCSP_resp_get0_tbs_sigalg(basic);
    if (!OBJ_find_sigid_algs(OBJ_obj2nid(algorithm->algorithm), &digest, &key) || digest == NID_undef)
        return false; /* EdDSA is never weak. RSA-PSS has its digest in parameters, which are not looked at */
    const EVP_MD *by = EVP_get_digestbynid(digest);
    int strength = digest == NID_sha1                            ? 63
                   : digest == NID_md5 || digest == NID_md5_sha1 ? 39
                   : by                                          ? EVP_MD_get_size(by) * 4
                                                                 : 0;
    return strength < bits[level < 0 ? 0 : level > 5 ? 5 : level];
}

/* The signer is the issuer, or the issuer has given it a certificate for that. Most responses that the issuer itself
 * has signed do not contain its certificate. */
static enum tls_fault check_signature(OCSP_BASICRESP *basic, const struct tls_asked *asked, struct tls_finding *finding)
{
    enum tls_fault fault = TLS_NO_MEMORY; /* [TO2] */
    if (is_weak(basic, asked->level)) {
        const ASN1_OBJECT *algorithm = OCSP_resp_get0_tbs_sigalg(basic)->algorithm;
        finding->detail = OBJ_nid2ln(OBJ_obj2nid(algorithm));
        return TLS_WEAK;
    }
    STACK_OF(X509) *signers = sk_X509_new_null();
    X509_STORE *store = X509_STORE_new();
    if (signers && store && sk_X509_push(signers, asked->issuer) > 0 &&
        X509_STORE_add_cert(store, asked->issuer) == 1 && X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN) == 1) {
        X509_VERIFY_PARAM_set_auth_level(X509_STORE_get0_param(store), asked->level);
        bool good = OCSP_basic_verify(basic, signers, store, OCSP_NOEXPLICIT) == 1;
        fault = good ? TLS_GOOD : fault_of(finding, TLS_UNSIGNED);
    }
    X509_STORE_free(store);
    sk_X509_free(signers);
    return fault;
}

/* Extensions that a reader has to understand (RFC 6960, 4.4). This one understands none. */
static bool has_critical(OCSP_BASICRESP *basic, OCSP_SINGLERESP *single)
{
    return OCSP_BASICRESP_get_ext_by_critical(basic, 1, -1) >= 0 ||
           OCSP_SINGLERESP_get_ext_by_critical(single, 1, -1) >= 0;
}

static enum tls_fault examine_basic(OCSP_BASICRESP *basic, const struct tls_asked *asked, struct tls_finding *finding)
{
    OCSP_SINGLERESP *single = find(basic, asked);
    if (!single)
        return fault_of(finding, TLS_OF_OTHER);
    enum tls_fault fault = asked->issuer ? check_signature(basic, asked, finding) : TLS_GOOD;
    if (fault != TLS_GOOD)
        return fault;
    int reason = -1;
    ASN1_GENERALIZEDTIME *when, *from, *next;
    int status = OCSP_single_get0_status(single, &reason, &when, &from, &next);
    if (status == V_OCSP_CERTSTATUS_REVOKED) { /* however old the response is */
        finding->detail = reason >= 0 ? OCSP_crl_reason_str(reason) : NULL;
        return TLS_REVOKED;
    }
    if (status != V_OCSP_CERTSTATUS_GOOD)
        return TLS_UNKNOWN;
    return has_critical(basic, single) ? TLS_MALFORMED : check_time(finding, from, next);
}

static enum tls_fault examine(OCSP_RESPONSE *response, const struct tls_asked *asked, struct tls_finding *finding)
{
    int status = OCSP_response_status(response);
    if (status != OCSP_RESPONSE_STATUS_SUCCESSFUL) {
        finding->detail = OCSP_response_status_str(status);
        return TLS_NO_RESPONSE;
    }
    OCSP_BASICRESP *basic = OCSP_response_get1_basic(response);
    if (!basic)
        return fault_of(finding, TLS_MALFORMED);
    enum tls_fault fault = examine_basic(basic, asked, finding);
    OCSP_BASICRESP_free(basic);
    return fault;
}

struct tls_finding tls_ocsp_examine(const unsigned char *bytes, long size, struct tls_asked asked)
{
    struct tls_finding finding = {.fault = TLS_MALFORMED};
    const unsigned char *at = bytes;
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &at, size);
    if (!response)
        finding.fault = fault_of(&finding, TLS_MALFORMED);
    else if (at == bytes + size)
        finding.fault = examine(response, &asked, &finding);
    OCSP_RESPONSE_free(response);
    return finding;
}
