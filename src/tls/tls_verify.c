/*
 * The check of the peer's certificates: which one was refused, and why.
 */
#include "tls.h"

#include <openssl/x509v3.h>

#include <stdio.h>
#include <string.h>

/* The room for one name of a certificate. */
enum { NAME_ROOM = 64 };

void tls_subject(X509 *certificate, char *text, size_t room)
{
    text[0] = 0;
    BIO *memory = certificate ? BIO_new(BIO_s_mem()) : NULL;
    if (!memory)
        return;
    X509_NAME_print_ex(memory, X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
    int got = BIO_read(memory, text, (int)room - 1);
    text[got > 0 ? got : 0] = 0;
    BIO_free(memory);
}

void tls_refuse_certificate(strand_tls *tls, int place, X509 *certificate, const char *why)
{
    char subject[160];
    tls_subject(certificate, subject, sizeof subject);
    if (!tls->refused[0])
        snprintf(tls->refused, sizeof tls->refused, "certificate %d (%s): %s", place, subject[0] ? subject : "none",
                 why);
}

/* Prints an address into a text of NAME_ROOM bytes. Returns false if there is no memory. */
static bool print_address(GENERAL_NAME *name, char *text)
{
    static const char title[] = "IP Address:"; /* OpenSSL writes it first */
    BIO *memory = BIO_new(BIO_s_mem());
    if (!memory)
        return false;
    int size = GENERAL_NAME_print(memory, name) == 1 ? BIO_read(memory, text, NAME_ROOM - 1) : 0;
    BIO_free(memory);
    text[size > 0 ? size : 0] = 0;
    if (strncmp(text, title, sizeof title - 1) != 0)
        return false;
    memmove(text, text + sizeof title - 1, strlen(text) - (sizeof title - 1) + 1);
    return true;
}

/* A name or an address of a server, in words. Returns whether the name is one of these. A long one is cut. */
static bool print_name(GENERAL_NAME *name, char text[NAME_ROOM])
{
    int type;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
    if (type != GEN_DNS && type != GEN_IPADD)
        return false;
    const unsigned char *bytes = ASN1_STRING_get0_data(value);
    size_t size = (size_t)ASN1_STRING_length(value);
    if (type == GEN_IPADD)
        return print_address(name, text);
    size_t shown = size < NAME_ROOM ? size : NAME_ROOM - sizeof "...";
    for (size_t i = 0; i < shown; i++)
        text[i] = bytes[i] > ' ' && bytes[i] < 0x7f ? (char)bytes[i] : '?';
    strcpy(text + shown, shown < size ? "..." : "");
    return size > 0;
}

/* The names that a certificate has for servers: "example.org, 127.0.0.1". Characters that could deceive a reader of the
 * text are '?'. Where the room ends, so does the list, with "...". */
static void list_names(X509 *certificate, char *text, size_t room)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    size_t size = 0;
    text[0] = 0;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        char part[NAME_ROOM];
        if (!print_name(name, part))
            continue;
        const char *separator = size ? ", " : "";
        if (size + strlen(separator) + strlen(part) + sizeof ", ..." > room) {
            snprintf(text + size, room - size, "%s...", separator);
            break;
        }
        size += (size_t)snprintf(text + size, room - size, "%s%s", separator, part);
    }
    GENERAL_NAMES_free(names);
}

/* Why a certificate is refused that is for other servers: for which ones it is. */
static void say_names(X509 *certificate, const char *host, char *text, size_t room)
{
    char names[160];
    list_names(certificate, names, sizeof names);
    snprintf(text, room, "it is for %s, not for %s", names[0] ? names : "no server by name", host);
}

int tls_verify(int accepted, X509_STORE_CTX *check)
{
    if (accepted)
        return accepted;
    strand_tls *tls = SSL_get_app_data(X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
    X509 *certificate = X509_STORE_CTX_get_current_cert(check);
    int error = X509_STORE_CTX_get_error(check);
    char names[448]; /* room for the longest host and for a list of names */
    const char *why = X509_verify_cert_error_string(error);
    if ((error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH) && tls->host) {
        say_names(certificate, tls->host, names, sizeof names);
        why = names;
    }
    tls_refuse_certificate(tls, X509_STORE_CTX_get_error_depth(check), certificate, why);
    return 0;
}
