/*
 * A stream of TLS: one SSL object of OpenSSL between two strands and a descriptor.
 *
 * OpenSSL never sees the descriptor. It reads from `in` and appends to `out` (tls_bytes.c), and the strands carry the
 * bytes between these and the descriptor by strand_read and strand_write. So nothing suspends inside of OpenSSL: its
 * frames, its error queue, which belongs to the thread, and the addresses that it was given are gone by then.
 *
 * PARTIES  A reader: the strand that has the role `reader`. A writer: the strand that has the role `writer`. A
 * handshake has both, in this order. Closers. Roles are semaphores of one permit: FIFO, and held across suspensions.
 *
 * STATE    `lock` guards the SSL object, `in`, `out`, `unsent`, `undelivered`, `users`, `inside`, `closed`, `ready` and
 * the failures. No strand suspends while it holds the lock. `arriving` belongs to the reader, `sending` to the writer.
 *
 *         descriptor --reader--> arriving --reader, under lock--> in --SSL, under lock--> the caller's buffer
 *         the caller's bytes --SSL, under lock--> out --writer, under lock--> sending --writer--> descriptor
 *
 *     The writer swaps `out` with an empty `sending`, and then sends it without the lock. A reader appends to `out`
 * too: alerts.
 *
 * INVARIANTS
 *   [TL1] No strand suspends between a call of OpenSSL and the reading of its error queue. Each call begins with an
 *     empty queue.
 *   [TL2] What OpenSSL has encrypted is sent once and in its order: only the writer takes from `out`, and only if
 *     `sending` is empty. An interrupted write leaves the rest in `sending`, and `unsent` set: a reader that waits
 *     sends the rest meanwhile, because the peer may answer only to that.
 *   [TL3] A strand that has given up the role of the writer at the end of its call looks once more whether bytes wait,
 *     and sends them if the role is free, unless it is interrupted or sending has failed. So a reader that does not get
 *     the role knows that its alerts are sent.
 *   [TL4] Each call counts as a user from its beginning to its end. The last one frees the stream once it is closed.
 *   [TL5] An interruption never crosses OpenSSL, and never lies between taking the caller's bytes and saying so.
 *   [TL6] Each call on the descriptor counts as `inside`, and begins only while the stream is not closed; the lock
 *     makes both one step. The closer sets `closed`, and closes the descriptor when nobody is inside. So no strand
 *     reads from or writes to another connection that has got the number.
 *   [TL7] OpenSSL encrypts nothing while it is in the middle of a message that the peer sends after the handshake
 *     (new keys, a ticket). A writer then waits, under the lock, until a reader has completed that message. If the
 *     reader's role is free, the writer takes it and reads one byte at a time, so bytes behind the message stay in the
 *     descriptor, where a select sees them [TL9]. A reader that gives up the role wakes the writer. Writers take the
 *     reader's role only after the handshake; so the handshake, which takes the roles in the other order, does not
 *     deadlock with them.
 *   [TL8] A reader never waits for room alone: while bytes wait that no writer sends, it waits for room or for bytes,
 *     with the role of the writer, and sends one part at a time. So two peers that both have full buffers and both read
 *     go on. A writer that wants the role gets it after the part, and waits for the same room.
 *   [TL9] A case of a select (strand_on_tls) waits for the descriptor only if OpenSSL has decrypted all that was taken
 *     from the descriptor, and this gave neither a byte, nor the end, nor a failure. The lock makes this one step.
 *     Later only a reader takes bytes from the descriptor that a read would return, and there is none then.
 *
 * PROGRESS A reader that waits for bytes holds no lock, and a writer that waits for room neither.
 *
 * NOT DONE Waiting inside of a BIO: the frames of OpenSSL would lie on a strand's stack, which may be copied, and its
 *     error queue would change threads. A lock around the whole call: a reader that waits would keep writers out.
 *
 * TESTED BY tests/spec/tls_stream.c, tls_cancel.c, tls_many.c, tls_select.c
 */
#ifndef STRAND_TLS_INSIDE_H
#define STRAND_TLS_INSIDE_H

#include "../../include/strand/io.h"
#include "../../include/strand/sync.h"
#include "../../include/strand/tls.h"

#include <openssl/ssl.h>

#include <errno.h>
#include <string.h>

/* What one write encrypts at most, and a buffer that an idle stream may keep. */
#define TLS_PART ((size_t)64 << 10)
#define TLS_KEPT ((size_t)4 << 10)
/* A buffer that has room for an encrypted part, and how many of them a context keeps for its streams. */
#define TLS_ROOM (TLS_PART + ((size_t)4 << 10))
#define TLS_SPARES 8
/* Sessions that a context keeps at most, and of one host. */
#define TLS_SESSIONS 64
#define TLS_SESSIONS_EACH 2
/* Counters of a context for the hosts whose certificates were revoked. */
#define TLS_HOSTS 32

/* A queue of bytes in one piece of memory. */
struct tls_bytes {
    unsigned char *at;
    size_t start, end, room;
};

/* The context for a name that clients ask for; it has a reference. */
struct tls_name {
    struct tls_name *next;
    strand_tls_context *context;
    char name[];
};

/* A response of OCSP in DER, and when it runs out; `bytes` is NULL if there is none. */
struct tls_staple {
    unsigned char *bytes;
    long size;
    ASN1_TIME *until;
};

struct strand_tls_context {
    SSL_CTX *ssl;
    BIO_METHOD *carrier; /* how OpenSSL reaches `in` and `out` */
    int references;      /* under the lock */
    CRYPTO_RWLOCK *lock;
    bool unverified, certified;
    bool trusting;                 /* it has the certificates to trust; under the lock */
    strand_tls_context *successor; /* what further streams use, or NULL: tls_links.c has the protocol of these three */
    struct tls_name *names;
    strand_tls_context *next;
    enum strand_tls_clients clients;
    struct tls_session *sessions; /* tls_sessions.c has the protocol of these three */
    uint32_t revocations[TLS_HOSTS];
    ASN1_TIME *lists_until;      /* when the first of its lists of revoked certificates runs out, or NULL */
    struct tls_staple staple;    /* what servers staple */
    bool staple_required;        /* of the servers of its clients */
    BIO *key_log;                /* or NULL */
    CRYPTO_RWLOCK *key_log_lock; /* for writing to it, which may block the thread: streams do not wait for it */
    int spares;
    unsigned char *spare[TLS_SPARES]; /* buffers of TLS_ROOM bytes that no stream uses, under the lock */
    size_t protocols_size;
    unsigned char protocols[256];      /* as the handshake has them */
    unsigned char session_context[16]; /* of its own: no other context resumes its sessions */
};

#define TLS_WHY 640

/* A text of strand_tls_failure. */
struct tls_reason {
    struct tls_reason *next;
    char text[];
};

struct strand_tls {
    SSL *ssl;
    strand_tls_context *context, *named; /* named: by what the client has asked for, or NULL */
    int fd;
    strand_mutex lock;
    strand_semaphore reader, writer;
    strand_condition moved;    /* a reader has gone on, or given up its role */
    uint32_t users, inside;    /* inside: strands in calls on the descriptor */
    bool closed, ready, ended; /* ended: the descriptor has no more bytes */
    bool no_memory;            /* a BIO had none */
    bool unsent;               /* `out` or `sending` may have bytes */
    bool undelivered;          /* there was no memory for what `arriving` has */
    int failed, read_failed, write_failed;
    struct tls_bytes in, arriving, out, sending;
    size_t ask;                 /* the size of the next read */
    const char *why;            /* the last failure, under the context's lock: threads look at it, too */
    struct tls_reason *reasons; /* all that `why` has been */
    char refused[TLS_WHY];      /* what the check of the certificate has found */
    char *host;                 /* of a client's stream: the name or the address of its server */
    ASN1_TIME *until;           /* when a session that is resumed ends, or NULL */
    uint32_t revocations;       /* of its host, when it was opened */
    bool stapled;               /* the server has stapled that its certificate is good; tls_staple.c has the protocol */
    ASN1_TIME *staple_until;    /* when a staple that was required runs out, or NULL */
    unsigned char *peer_der;    /* the peer's certificate, once it was asked for, or NULL */
    int peer_der_size;
    char peer[256], protocol[256];
};

/* Until the block ends, however it ends. */
#define TLS_AT_END(function) __attribute__((cleanup(function), unused))

/* A step that OpenSSL could not finish without bytes from the peer. */
#define TLS_WANTS_BYTES (-EAGAIN)

/* ---- tls_context.c ------------------------------------------------------------------------------------------ */

/** For OpenSSL's readers of PEM. */
int tls_no_passphrase(char *text, int room, int writing, void *arg);

/** Load the system's trust if none was given: it takes some milliseconds, which a server does not need. Returns whether
 * that is possible. */
bool tls_context_trust(strand_tls_context *context);

/** A buffer of TLS_ROOM bytes: one that was given back, whose pages are there, if there is one. NULL without memory. */
unsigned char *tls_spare_take(strand_tls_context *context);
void tls_spare_give(strand_tls_context *context, unsigned char *buffer);

/** Free a context that has no reference, but not what it leads to. */
void tls_context_free(strand_tls_context *context);

/** A file in PEM, or a text that begins with "-----BEGIN", for reading. NULL, with a reason in OpenSSL's queue, if it
 * can't be opened. */
BIO *tls_pem_open(const char *pem);
/** Its name for messages: never the text of a key. */
const char *tls_pem_name(const char *pem);

/* ---- tls_links.c -------------------------------------------------------------------------------------------- */

/** A reference to the context that further streams of this one use. */
strand_tls_context *tls_context_current(strand_tls_context *context);
/** A reference to the context for the name that a client asks for, or NULL. */
strand_tls_context *tls_context_named(strand_tls_context *context, const char *asked);

/* ---- tls_sessions.c ----------------------------------------------------------------------------------------- */

/** Let streams of a new context resume sessions, or not. */
void tls_sessions_open(strand_tls_context *context, bool resumes);
/** Let a client's stream resume a session of its context and its host, if there is one. */
void tls_sessions_resume(strand_tls *tls);
/** Let nothing of a stream's host be resumed: its certificate has been revoked. Streams that are open keep no more
 * sessions of that host. */
void tls_sessions_forget(strand_tls *tls);
void tls_sessions_free(struct tls_session *sessions);

/* ---- tls_ocsp.c ------------------------------------------------------------------------------------------------ */

/* What is wrong with a response of OCSP. */
enum tls_fault {
    TLS_GOOD,
    TLS_MALFORMED,
    TLS_NO_RESPONSE, /* the responder has not answered */
    TLS_OF_OTHER,    /* it is for another certificate */
    TLS_UNSIGNED,
    TLS_WEAK, /* it is signed by a digest that OpenSSL's security level refuses */
    TLS_REVOKED,
    TLS_UNKNOWN,
    TLS_EARLY,
    TLS_OVER,
    TLS_NO_MEMORY,
};

/* What a response has to answer. */
struct tls_asked {
    X509 *certificate;
    X509 *issuer; /* its key has to sign the response; NULL if it is not known: the signature is not checked */
    int level;    /* OpenSSL's security level of the keys that sign it */
};

struct tls_finding {
    enum tls_fault fault;
    const char *detail; /* or NULL */
    ASN1_TIME *until;   /* of a good response: when it runs out. The caller frees it */
};

/** Look at a response. OpenSSL's queue has to be empty, and may have errors afterwards. */
struct tls_finding tls_ocsp_examine(const unsigned char *bytes, long size, struct tls_asked asked);
/** Write what was found, behind "the response": "has expired". */
void tls_ocsp_say(const struct tls_finding *finding, char *text, size_t room);
/** What the owner of a certificate can do about it. */
const char *tls_ocsp_remedy(enum tls_fault fault);

/* ---- tls_staple.c ----------------------------------------------------------------------------------------------- */

/** Let the servers of a new context staple, and its clients check staples. */
void tls_staple_open(strand_tls_context *context);
/** Read the response that servers of a context staple. Throws if it is not good for the context's certificate. */
void tls_staple_load(strand_tls_context *context, const char *path);
void tls_staple_free(struct tls_staple *staple);
/** Let a client's stream ask for a staple. Returns whether that is possible. */
bool tls_staple_ask(strand_tls *tls);

/* ---- tls_process.c ------------------------------------------------------------------------------------------ */

/** The lock of all links between contexts. */
pthread_rwlock_t *tls_links_lock(void);

/* ---- tls_names.c -------------------------------------------------------------------------------------------- */

/** Whether a name of strand_tls_context_name fits the name that a client asks for. */
bool tls_names_fit(const char *name, const char *asked);
/** OpenSSL's callback for the name that a client asks for. `context` is the strand_tls_context. */
int tls_names_choose(SSL *ssl, int *alert, void *context);

/* ---- tls_system.c ------------------------------------------------------------------------------------------- */

/** A file to write to behind its end, for nobody but the owner, and for no program that this one starts. NULL, with a
 * reason in OpenSSL's queue, if it can't be opened or made. */
BIO *tls_file_append(const char *path);
/** A file to read. NULL, with a reason in OpenSSL's queue, if it can't be opened or is a directory. */
BIO *tls_file_read(const char *path);
/** Take the lock of all links, for reading or for writing, and give it back. */
void tls_links_read(void);
void tls_links_write(void);
void tls_links_leave(void);

/* ---- tls_bytes.c -------------------------------------------------------------------------------------------- */

/** The way between OpenSSL and a stream's `in` and `out`, or NULL. */
BIO_METHOD *tls_carrier_open(void);
/** Give a stream's SSL object its BIO. Returns whether there was memory. */
bool tls_carrier_set(strand_tls *tls);
/** Room for more bytes at the end. Returns whether there was memory. */
bool tls_bytes_reserve(struct tls_bytes *bytes, size_t more);
void tls_bytes_free(struct tls_bytes *bytes);
/** Under the lock: before so many bytes are encrypted, let `out` have room for them at once. Without memory it grows
 * later, or does not. */
void tls_bytes_expect(strand_tls *tls, size_t size);
static inline size_t tls_bytes_count(const struct tls_bytes *bytes)
{
    return bytes->end - bytes->start;
}
/** By the reader: wait for bytes of the peer, and take at most so many. Returns their number, 0 at the end, or a
 * negated errno code. */
STRAND_BLOCKS int64_t tls_fetch(strand_tls *tls, size_t most);
/** By the reader: whether tls_fetch would not wait. */
bool tls_has_arrived(strand_tls *tls);
/** By the strand that has set `closed`: end the calls on the descriptor, and close it [TL6]. As strand_close. */
int tls_close_descriptor(strand_tls *tls);
/** By the writer: send all that was encrypted. Returns 0 or a negated errno code. */
STRAND_BLOCKS int tls_send(strand_tls *tls);
/** As tls_send, but an interruption returns 0, and leaves the rest for the next call [TL5]. */
int tls_send_some(strand_tls *tls);
/** Give up the role of the writer; tls_send_left follows. */
void tls_writer_done(strand_tls **writer);
/** At the end of a call that has no role any more: send what waits, unless a writer does [TL3]. */
void tls_send_left(strand_tls *tls);
/** By a reader that is about to wait: send what waits as far as the descriptor takes it, until bytes arrive, all is
 * sent, or a writer has the role [TL8]. */
STRAND_BLOCKS void tls_await_bytes(strand_tls *tls);
/** By a reader that waits for nothing more: send what the descriptor takes at once, unless a writer does. */
void tls_send_now(strand_tls *tls);

/* ---- tls_open.c ---------------------------------------------------------------------------------------------- */

/** Free a stream, but not its descriptor. */
void tls_destroy(strand_tls *tls);

/* ---- tls_stream.c -------------------------------------------------------------------------------------------- */

/** Take the lock, uninterruptibly. strand_mutex_unlock gives it back. */
void tls_lock(strand_tls *tls);

/* ---- tls_failure.c ------------------------------------------------------------------------------------------- */

/** Under the lock, after a call of OpenSSL on the stream: what its result means. Returns the result if it is above 0,
 * 0 at the end of the stream, TLS_WANTS_BYTES, or a negated errno code, which is noted. */
int tls_outcome(strand_tls *tls, int result);
/** What a negated errno code means. */
const char *tls_words(int code);
/** Note a failure in words, without OpenSSL's. Returns the code. */
int tls_note(strand_tls *tls, int code, const char *words);
void tls_reasons_free(strand_tls *tls);
/** Throw STRAND_TLS_ERROR for a context, with the words and the reason of OpenSSL, whose queue is emptied. */
STRAND_NORETURN void tls_refuse(int code, const char *words, const char *subject);

/* ---- tls_verify.c -------------------------------------------------------------------------------------------- */

/** OpenSSL's callback for each certificate of a chain: notes why one is refused. */
int tls_verify(int accepted, X509_STORE_CTX *check);
/** Note why a certificate of the peer is refused, unless a reason is noted already. */
void tls_refuse_certificate(strand_tls *tls, int place, X509 *certificate, const char *why);
/** Write the subject of a certificate. */
void tls_subject(X509 *certificate, char *text, size_t room);

#endif
