/*
 * Sessions that clients of a context resume: a handshake without certificates, by what an earlier one has left.
 *
 * A session stands for the check of the server's certificates that was made when the session began. So a context keeps
 * sessions for itself alone: its trust, its lists of revoked certificates and its protocols never change. A session is
 * for one host, and ends with the first certificate of the chain that expires, with a staple that was required, or with
 * the first list of revoked certificates that runs out.
 *
 * PARTIES  Strands in calls of OpenSSL for a client's stream: they keep sessions. Openers of clients' streams: they
 * take them.
 *
 * STATE    `sessions` of a context is a list, the newest first, under the context's lock: at most TLS_SESSIONS, and at
 * most TLS_SESSIONS_EACH of a host. The list owns copies: OpenSSL changes the session of a connection that ends badly.
 * `revocations` of a context, under its lock, counts how often a certificate of a host was found revoked. Hosts with
 * the same digest share a counter. `revocations` of a stream is the count of its host when the stream was opened.
 *
 * INVARIANTS
 *   [TR1] A session is kept only if the certificates were checked, or the context does not check any.
 *   [TR2] A session of TLS 1.3 is taken out of the list, since a ticket is used once: an observer that sees it twice
 *     knows that both connections are of one client.
 *   [TR3] A server resumes no session of a client whose certificate has expired.
 *   [TR4] A stream keeps no session if a certificate of its host was found revoked after the stream was opened.
 *   [TR5] Neither a client nor a server resumes a session after a list of revoked certificates has run out: the list
 *     that follows may have the certificate.
 *
 * TESTED BY tests/spec/tls_resume.c
 */
#include "tls.h"

struct tls_session {
    struct tls_session *next;
    SSL_SESSION *session;
    ASN1_TIME *until; /* when it ends, or NULL if no certificate was checked */
    char host[];
};

static void free_one(struct tls_session *entry)
{
    if (!entry)
        return;
    SSL_SESSION_free(entry->session);
    ASN1_TIME_free(entry->until);
    OPENSSL_free(entry);
}

void tls_sessions_free(struct tls_session *sessions)
{
    while (sessions) {
        struct tls_session *next = sessions->next;
        free_one(sessions);
        sessions = next;
    }
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

/* The earlier one of two times. The second may be NULL. */
static const ASN1_TIME *earlier(const ASN1_TIME *time, const ASN1_TIME *other)
{
    return other && ASN1_TIME_compare(other, time) < 0 ? other : time;
}

/* When the first of the checked certificates expires, or the staple runs out that was required [TO1], or a list of
 * revoked certificates [TR5]. Those of a resumed session were checked before. */
static const ASN1_TIME *first_end(strand_tls *tls)
{
    STACK_OF(X509) *chain = SSL_get0_verified_chain(tls->ssl);
    const ASN1_TIME *first = chain ? tls->staple_until : tls->until;
    for (int i = 0; chain && i < sk_X509_num(chain); i++) {
        const ASN1_TIME *end = X509_get0_notAfter(sk_X509_value(chain, i));
        if (!first || ASN1_TIME_compare(end, first) < 0)
            first = end;
    }
    return first ? earlier(first, tls->context->lists_until) : NULL;
}

/* Returns NULL without memory, or if the certificates were not checked [TR1]. */
static struct tls_session *copy(strand_tls *tls, const SSL_SESSION *session)
{
    bool checks = !tls->context->unverified;
    const ASN1_TIME *until = checks ? first_end(tls) : NULL;
    if (checks && (!until || SSL_get_verify_result(tls->ssl) != X509_V_OK))
        return NULL;
    size_t size = strlen(tls->host) + 1;
    struct tls_session *entry = OPENSSL_zalloc(sizeof *entry + size);
    if (!entry)
        return NULL;
    memcpy(entry->host, tls->host, size);
    entry->session = SSL_SESSION_dup(session);
    entry->until = until ? ASN1_STRING_dup(until) : NULL;
    if (entry->session && (entry->until || !until))
        return entry;
    free_one(entry);
    return NULL;
}

/* Under the lock: the counter of a host. */
static uint32_t *revocations_of(strand_tls_context *context, const char *host)
{
    uint32_t digest = 0;
    for (; *host; host++)
        digest = digest * 31 + (unsigned char)(*host | 0x20); /* letters of both cases alike */
    return &context->revocations[digest % TLS_HOSTS];
}

void tls_sessions_forget(strand_tls *tls)
{
    struct tls_session *forgotten = NULL;
    if (!tls->host) /* there was no memory for it, and so there is no session of the stream */
        return;
    CRYPTO_THREAD_write_lock(tls->context->lock);
    ++*revocations_of(tls->context, tls->host); /* [TR4] */
    for (struct tls_session **at = &tls->context->sessions; *at;) {
        struct tls_session *entry = *at;
        if (OPENSSL_strcasecmp(entry->host, tls->host) != 0) {
            at = &entry->next;
            continue;
        }
        *at = entry->next;
        entry->next = forgotten;
        forgotten = entry;
    }
    CRYPTO_THREAD_unlock(tls->context->lock);
    tls_sessions_free(forgotten);
}

/* Under the lock: take what is too much, the oldest, out of the list. */
static struct tls_session *take_surplus(strand_tls_context *context, const char *host)
{
    int all = 0, of_host = 0;
    for (struct tls_session **at = &context->sessions; *at; at = &(*at)->next) {
        of_host += OPENSSL_strcasecmp((*at)->host, host) == 0;
        if (++all > TLS_SESSIONS || of_host > TLS_SESSIONS_EACH) {
            struct tls_session *surplus = *at;
            *at = surplus->next;
            return surplus;
        }
    }
    return NULL;
}

/* OpenSSL's callback for a session that can be resumed. Returns whether it keeps the reference. */
static int keep(SSL *ssl, SSL_SESSION *session)
{
    strand_tls *tls = SSL_get_app_data(ssl);
    struct tls_session *entry = SSL_is_server(ssl) || !tls->host ? NULL : copy(tls, session);
    if (!entry)
        return 0;
    strand_tls_context *context = tls->context;
    struct tls_session *surplus = entry;
    CRYPTO_THREAD_write_lock(context->lock);
    if (*revocations_of(context, entry->host) == tls->revocations) { /* [TR4] */
        entry->next = context->sessions;
        context->sessions = entry;
        surplus = take_surplus(context, entry->host);
    }
    CRYPTO_THREAD_unlock(context->lock);
    free_one(surplus);
    return 0;
}

/* OpenSSL's callback for a ticket that a server has got. The ticket has the client's certificate. */
static SSL_TICKET_RETURN look_at_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t size,
                                        SSL_TICKET_STATUS status, void *arg)
{
    (void)name, (void)size, (void)arg;
    const strand_tls *tls = SSL_get_app_data(ssl);
    if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    X509 *client = SSL_SESSION_get0_peer(session);
    if (client && X509_cmp_current_time(earlier(X509_get0_notAfter(client), tls->context->lists_until)) < 0)
        return SSL_TICKET_RETURN_IGNORE_RENEW; /* [TR3] [TR5] */
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

void tls_sessions_open(strand_tls_context *context, bool resumes)
{
    SSL_CTX *ssl = context->ssl;
    /* Servers give their sessions away as tickets. */
    SSL_CTX_set_session_cache_mode(ssl, (resumes ? SSL_SESS_CACHE_BOTH : SSL_SESS_CACHE_OFF) |
                                            SSL_SESS_CACHE_NO_INTERNAL_STORE | SSL_SESS_CACHE_NO_AUTO_CLEAR);
    if (resumes) {
        SSL_CTX_sess_set_new_cb(ssl, keep);
        SSL_CTX_set_session_ticket_cb(ssl, NULL, look_at_ticket, NULL);
        return;
    }
    SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ssl, 0);
}

/* ---- resuming ---------------------------------------------------------------------------------------------------- */

static bool is_over(const struct tls_session *entry)
{
    return !SSL_SESSION_is_resumable(entry->session) || (entry->until && X509_cmp_current_time(entry->until) < 0);
}

/* Let a stream resume a session. Under the lock. */
static void offer(strand_tls *tls, const struct tls_session *entry)
{
    if (is_over(entry) || (entry->until && !(tls->until = ASN1_STRING_dup(entry->until))))
        return;
    SSL_set_session(tls->ssl, entry->session);
}

void tls_sessions_resume(strand_tls *tls)
{
    struct tls_session *taken = NULL;
    CRYPTO_THREAD_write_lock(tls->context->lock);
    tls->revocations = *revocations_of(tls->context, tls->host);
    struct tls_session **at = &tls->context->sessions;
    while (*at && OPENSSL_strcasecmp((*at)->host, tls->host) != 0)
        at = &(*at)->next;
    if (*at) {
        struct tls_session *found = *at;
        offer(tls, found);
        if (is_over(found) || SSL_SESSION_get_protocol_version(found->session) >= TLS1_3_VERSION) { /* [TR2] */
            taken = found;
            *at = found->next;
        }
    }
    CRYPTO_THREAD_unlock(tls->context->lock);
    free_one(taken);
}
