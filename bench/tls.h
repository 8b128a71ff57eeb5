/*
 * tls_handshake and tls_stream: what their servers and their load share: the certificate, a key of RSA with 2048 bits
 * that each server makes for itself, as most servers have one; and what is sent.
 *
 * A connection begins by a handshake. The client then says by one byte what it wants. TLS_ONE: the server sends the
 * byte back, and waits for the end. TLS_MUCH: the server sends the same 64 KiB again and again, until the client has
 * gone, and ends itself. TLS_OVER: the server ends.
 */
#ifndef BENCH_TLS_H
#define BENCH_TLS_H

#include "echo.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

enum { TLS_ONE = '1', TLS_MUCH = 'm', TLS_OVER = 'o' };
/* Connections of tls_handshake at a time. */
enum { TLS_AT_A_TIME = 8 };
enum { TLS_CHUNK = 64 << 10 };

/* A certificate that signs itself: the load does not look who the server is. */
BENCH_API X509 *tls_make_certificate(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    bench_check(certificate && X509_set_version(certificate, 2) && X509_set_pubkey(certificate, key), "no certificate");
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 24 * 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, (const unsigned char *)"bench",
                               -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    bench_check(X509_sign(certificate, key, EVP_sha256()), "no signature");
    return certificate;
}

BENCH_API unsigned char tls_byte(size_t i)
{
    return (unsigned char)(i * 7 + i / 251);
}

BENCH_API void tls_fill(unsigned char chunk[TLS_CHUNK])
{
    for (size_t i = 0; i < TLS_CHUNK; i++)
        chunk[i] = tls_byte(i);
}

/* Whether the program measures streams; the load's first argument is 1 then, or else 0. */
BENCH_API long tls_is_stream(int argc, char **argv)
{
    bench_check(argc == 2 && (!strcmp(argv[1], "stream") || !strcmp(argv[1], "handshake")),
                "usage: %s handshake | stream", argv[0]);
    return argv[1][0] == 's';
}

BENCH_API void tls_start_load(const char *runtime, long stream, int port)
{
    echo_start("/tls_load", runtime, stream, port);
}

#endif
