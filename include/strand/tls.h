/*
 * TLS over descriptors. It is a library of its own, libstrand-tls, over OpenSSL 3: pkg-config strand-tls.
 *
 *     strand_tls_context *context = strand_tls_context_open(NULL);            the system's trust
 *     int fd = strand_dial_tcp("example.org", 443);
 *     strand_tls *tls = strand_tls_client(context, fd, "example.org");        owns the descriptor now
 *     if (strand_tls_write_all(tls, request, size) < 0)
 *         log(strand_tls_failure(tls));      "certificate 0 (CN = example.org): certificate has expired"
 *     ...
 *     strand_tls_shutdown(tls);
 *     strand_tls_close(tls);
 *
 * The versions are TLS 1.2 and 1.3. A client checks the chain of certificates and the name of the server. Renegotiation
 * is refused, and there is no compression and no early data. Keys are wiped where they are freed. TLS in the kernel is
 * not used.
 *
 * A certificate may be revoked before it expires. Its authority says so by lists (CRLs) and by OCSP responses. A server
 * sends the response for its own certificate with it: a staple, which its program fetches and renews. Clients ask for a
 * staple where they check certificates. One that says "revoked" refuses the connection. Without a good one the
 * connection is refused if the client requires that (staple_required), or if the server's certificate does (TLS
 * Feature, RFC 7633, "must-staple"); else it goes on. A good staple says that the certificate is not revoked, is signed
 * by the certificate's issuer or by a responder with a certificate of that issuer, and is valid now; clocks may differ
 * by five minutes. One that is signed by SHA-1 is not good, whatever it says (the digest of RSA-PSS is not looked at).
 * Servers do not ask their clients for staples.
 *
 * Clients resume sessions: a further handshake of the same context with the same host takes less computation, and sends
 * no certificates. A context keeps up to 64 sessions, two of a host, for itself alone; one that replaces it begins
 * without any. A session ends when a certificate of the chain that was checked expires, when a staple that was required
 * runs out, or when one of the context's lists of revoked certificates does; a resumed handshake has no staple. The
 * sessions of a host end when its certificate is found revoked. Servers give tickets, which the context that replaces
 * theirs does not know: the next handshake is a full one then.
 *
 * Results are numbers of bytes, 0, or negated errno codes. strand_tls_failure has the reason in words:
 *
 *  - -EKEYREJECTED: the peer's certificate was refused; the text says which one, its subject, and why: for a wrong
 *    name, which names the certificate has,
 *  - -EACCES: the peer refused this side's certificate, or this side has sent none,
 *  - -EPROTO: what arrived is no TLS, breaks its rules, or there is no version, cipher or protocol in common,
 *  - -ECONNABORTED: the connection ended without the end of TLS. Bytes may be missing: a third party may have cut it,
 *  - -EBADF: the stream was closed meanwhile,
 *  - -ENOMEM, and the codes of strand_read and strand_write.
 *
 * Such a failure lasts: later calls return the same code. An error of the descriptor in one direction (-EPIPE) leaves
 * the other direction as it is.
 *
 * One strand may read while another one writes, shuts down or closes. Several readers, and several writers, are served
 * in FIFO order. Buffers may lie on the caller's stack. A handshake uses some 10 KiB of stack, which the usual size
 * has.
 *
 * Which callers:
 *
 *   any strand         all functions
 *   any thread         strand_tls_context_close, strand_tls_context_replace, strand_tls_context_name,
 *                      strand_tls_failure
 *   a signal handler   no function
 *
 * Suspension: functions marked STRAND_BLOCKS may suspend the caller and are cancellation points. strand_tls_close,
 * strand_tls_try_read, strand_tls_pending, strand_on_tls and strand_tls_info_get may suspend the caller shortly, and
 * are no cancellation points. All other functions never suspend. Functions that read files block the thread meanwhile.
 *
 * Cost: that of OpenSSL, the system calls of the descriptor, and a copy of the encrypted bytes, unless a function says
 * otherwise. A handshake costs up to a millisecond of computation.
 *
 * In a seeded run the streams work on simulated descriptors. Keys and the dates of certificates are real ones.
 */
#ifndef STRAND_TLS_H
#define STRAND_TLS_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- contexts ----------------------------------------------------------------------------------------------- */

/** The kind of an exception of TLS, below STRAND_ERROR. Its code is a negated errno code. */
extern const strand_kind STRAND_TLS_ERROR;

/** Certificates, trust and rules that streams share, of clients and of servers. */
typedef struct strand_tls_context strand_tls_context;

/** What a server asks of its clients: no certificate; one, but a client without one is served too (a certificate that
 * is sent is checked); one, without which the handshake fails. */
enum strand_tls_clients { STRAND_TLS_CLIENTS_UNASKED = 0, STRAND_TLS_CLIENTS_ASKED, STRAND_TLS_CLIENTS_REQUIRED };

/**
 * The optional attributes of a context. Zero is the default of each field but `size`. Files are in PEM format. A text
 * that begins with "-----BEGIN" stands for the file's contents instead of its path. The call that is given the
 * attributes copies what it needs.
 */
typedef struct strand_tls_attr {
    size_t size;              /* sizeof(strand_tls_attr); required */
    const char *certificates; /* the own certificate, then those between it and the root; a server needs one */
    const char *key;          /* its private key, not encrypted; NULL: the file of the certificates has it too */
    const char *trust;        /* certificates of the authorities to trust; NULL: those of the system */
    const char *revoked;   /* lists of revoked certificates (CRLs), one of each authority of a chain; NULL: unchecked */
    const char *protocols; /* protocols of the application (ALPN), the best first: "h2,http/1.1"; NULL: none */
    enum strand_tls_clients clients; /* for servers: what they ask of clients */
    bool only_1_3;                   /* refuse TLS 1.2 */
    bool unverified;    /* clients accept every certificate: encryption without knowing to whom. For tests */
    bool no_resumption; /* each handshake is a full one: no session is kept, offered or resumed */
    /* A file that the secrets of each connection are appended to, for programs that look into recorded traffic; a
     * program that wants to be looked into sets it to getenv("SSLKEYLOGFILE"). NULL: none. A reader of the file can
     * read the traffic, so a new one is for its owner alone. Writing to it blocks the thread */
    const char *key_log;
    /* An OCSP response for the own certificate, in DER (openssl ocsp -respout), which servers staple until it runs out.
     * A new one takes a new context (strand_tls_context_replace). NULL: none */
    const char *staple;
    bool staple_required; /* clients refuse servers without a good staple */
} strand_tls_attr;

/** Write attributes as an argument, with `size` filled in: STRAND_TLS_ATTR(.certificates = "own.pem"). C++ requires the
 * order of the fields. */
#define STRAND_TLS_ATTR(...) STRAND_SIZED_(strand_tls_attr, __VA_ARGS__)

/**
 * Make a context. `attr` may be NULL: a context for clients that trust what the system trusts. The call reads the
 * files, and blocks the thread meanwhile. The system's certificates are read when the first stream needs them. Returns
 * the context, which the caller closes (strand_tls_context_close). Throws STRAND_TLS_ERROR if a file cannot be read, a
 * key does not fit its certificate, or an attribute is wrong; its text names the file and the reason, and its code is
 * -EINVAL or -ENOMEM. An OCSP response is wrong if it cannot be parsed, is for another certificate, says "revoked" or
 * "unknown", or has expired; its text says what to do. The call checks the signature of the response only if
 * `certificates` has the issuer's certificate.
 */
strand_tls_context *strand_tls_context_open(const strand_tls_attr *attr);
/** Close a context. Its streams go on; the memory is freed, and the key wiped, with the last of them. NULL has no
 * effect. Any thread may call it. */
void strand_tls_context_close(strand_tls_context *context);

/**
 * Make streams that are opened with `context` from now on use `other` instead: new certificates, without a restart and
 * without the streams that are open. Further calls replace it again; `other` may itself be replaced. The caller still
 * closes both contexts. Returns 0, or -EINVAL if one of them is missing, or if `other` leads back to `context`: by
 * contexts that replace it, or by names (strand_tls_context_name). Any thread may call it.
 */
int strand_tls_context_replace(strand_tls_context *context, strand_tls_context *other);
/** Make servers of `context` use `other` for clients that ask for a host of this name (SNI): its certificate, its
 * staple and its protocols. All else stays that of `context`: the versions, what the server asks of clients, the
 * authorities it trusts and the lists of revoked certificates. "*.example.org" stands for all names with one more part
 * in front. The first name that fits counts. A client that asks for another name gets the certificate of `context`. The
 * caller still closes both contexts. Returns 0, or -EINVAL if a context or a name is missing or `other` leads back to
 * `context`, or -ENOMEM. Any thread may call it. */
int strand_tls_context_name(strand_tls_context *context, const char *name, strand_tls_context *other);

/* ---- streams ------------------------------------------------------------------------------------------------ */

/** A stream of TLS over a descriptor. */
typedef struct strand_tls strand_tls;

/**
 * Make a client's stream over a connected descriptor (a socket, a pseudo-terminal, ...). `host` is the name, or the
 * address, that the server's certificate must have; it is also sent to the server, which may choose its certificate by
 * it (SNI). A name consists of letters, digits, '-', '_' and dots; a dot at its end is ignored. An address of IPv6 may
 * have brackets around it. The call does not talk to the server: strand_tls_handshake does, or the first call that
 * reads or writes.
 *
 * Returns the stream, which owns the descriptor from now on, and which the caller closes (strand_tls_close). Throws
 * STRAND_TLS_ERROR with -EINVAL if there is no context, no host or a host that is no name, and STRAND_SYSTEM with
 * -ENOMEM; the descriptor stays the caller's then.
 */
strand_tls *strand_tls_client(strand_tls_context *context, int fd, const char *host);
/** Make a server's stream over a connected descriptor, with the certificate of the context. The call does not talk to
 * the client. Returns the stream, which owns the descriptor from now on, and which the caller closes
 * (strand_tls_close). Throws STRAND_TLS_ERROR with -EINVAL if there is no context or it has no certificate, and
 * STRAND_SYSTEM with -ENOMEM; the descriptor stays the caller's then. */
strand_tls *strand_tls_server(strand_tls_context *context, int fd);

/**
 * Agree with the peer on keys, and check its certificate. Reading and writing do it too, if need be; a caller that
 * wants a deadline for it calls it alone. An interrupted call can be made again, and goes on where it was. A server of
 * TLS 1.3 learns that its client was content only by what the client sends next, and a client learns in its first read
 * that the server refused its certificate.
 *
 * Returns 0, or a negated errno code. Cost: up to a millisecond of computation, and two or three round trips.
 */
STRAND_BLOCKS int strand_tls_handshake(strand_tls *tls);
/** Read from a stream into `buffer`: at least one byte and at most `size` bytes. With size 0 nothing is read. Returns
 * the number of bytes, 0 after the peer has ended the stream (strand_tls_shutdown), or a negated errno code:
 * -ECONNABORTED if the connection ended without that. An interrupted call has read nothing. */
STRAND_BLOCKS int64_t strand_tls_read(strand_tls *tls, void *buffer, size_t size);
/**
 * Read from a stream into `buffer` what can be read without waiting, up to `size` bytes. The call takes what the
 * descriptor has, and decrypts it. Returns the number of bytes, 0 at the end and a negated errno code as
 * strand_tls_read, or:
 *
 *  - -EAGAIN: nothing can be read now. Nothing has arrived, or less than a record, or only messages of TLS itself (of
 *    which one call takes some only); or another strand reads,
 *  - -ENOTCONN: the handshake is not over, and this call does not begin it.
 *
 * Cost: as strand_tls_read, and a call of poll(2) whenever what was taken before gives no byte.
 */
STRAND_CHECKED int64_t strand_tls_try_read(strand_tls *tls, void *buffer, size_t size);
/** Count the decrypted bytes that the next read returns without waiting. That read may return more: this call decrypts
 * at most one record, and takes nothing from the descriptor. Returns 0 if there are none, at the end, after a failure
 * and before the handshake. */
size_t strand_tls_pending(strand_tls *tls);
/**
 * Make the case that a read of a stream may go on. The descriptor alone (strand_on_ready) does not tell it: bytes that
 * were taken from the descriptor may still be in the stream, where no event reports them.
 *
 * The case happens at once if bytes can be read, at the end of the stream, after a failure that a read returns, and
 * before the handshake. Otherwise it happens when the descriptor is readable. The descriptor may have less than a
 * record then, or a message of TLS itself, so strand_tls_read may still wait, and strand_tls_try_read may return
 * -EAGAIN:
 *
 *     strand_case cases[] = {strand_on_tls(tls), STRAND_ON_RECEIVE(chan, &order)};
 *     if (strand_select(cases, 2, 0) == 0)
 *         got = strand_tls_try_read(tls, buffer, sizeof buffer);               -EAGAIN: make the cases, and wait, again
 *
 * A case is for one select: make it again after each read. The stream must stay open until the select returns or waits.
 * No other strand may read from the stream meanwhile; others may write. This call sends what an interrupted write has
 * left as far as the descriptor takes it at once; a strand that waits in a select sends nothing. The case's result is
 * 0, or a negated errno code: -EBADF if the stream was closed while the select waited. Cost: less than a microsecond
 * and the decryption of at most one record; the select may make a system call.
 */
strand_case strand_on_tls(strand_tls *tls);
/**
 * Write up to `size` bytes at `bytes` to a stream, at least one and at most 64 KiB. Returns the number of bytes
 * written, or a negated errno code: -EPIPE after strand_tls_shutdown.
 *
 * An interrupted call has written nothing. A call that is interrupted after the bytes were encrypted returns their
 * number, as if the system had buffered them: the next call that writes or shuts down sends the rest of them first, and
 * a call that waits for bytes sends it meanwhile.
 */
STRAND_BLOCKS int64_t strand_tls_write(strand_tls *tls, const void *bytes, size_t size);
/** Write the `size` bytes at `bytes` to a stream. Returns `size`, or a negated errno code; the number of bytes written
 * before an error is unknown. An interruption may come between two parts; how many parts were written then is unknown:
 * call strand_tls_write in a loop to know it. */
STRAND_BLOCKS STRAND_CHECKED int64_t strand_tls_write_all(strand_tls *tls, const void *bytes, size_t size);
/** End the own direction of a stream: send what an interrupted write has left, and then the end of TLS. The peer's
 * direction stays: read until 0 to know that the peer has sent all. An interrupted call can be made again. Calling it
 * twice is allowed. Returns 0 or a negated errno code: -ENOTCONN before the handshake. */
STRAND_BLOCKS int strand_tls_shutdown(strand_tls *tls);
/**
 * Close a stream and its descriptor. Calls on the stream by other strands return -EBADF, and no call may begin later.
 * The call sends nothing: without strand_tls_shutdown before it the peer gets -ECONNABORTED, so that a program that
 * fails in the middle does not seem to have said all. The call is never interrupted. NULL has no effect. The strand
 * that has opened the stream needs no memory for it if it holds at most one mutex. Otherwise the call throws
 * STRAND_SYSTEM, and closes nothing, if there is no memory to record the stream's lock. Returns 0 or a negated errno
 * code, as strand_close.
 */
int strand_tls_close(strand_tls *tls);

/** Get the reason of the last failure of a stream. Returns a sentence, or "" if nothing has failed. The text is valid
 * until the stream is closed; a later failure has a text of its own. */
const char *strand_tls_failure(strand_tls *tls);
/** Check a result of a call on this stream. Returns a result >= 0 unchanged, and throws STRAND_TLS_ERROR with a negated
 * errno code and the reason (strand_tls_failure). */
int64_t strand_tls_must(strand_tls *tls, int64_t result);

/** What a handshake has agreed on, for strand_tls_info_get. Texts and the certificate are valid until the stream is
 * closed. */
typedef struct strand_tls_info {
    size_t size;             /* sizeof(strand_tls_info), set by the caller */
    const char *version;     /* "TLSv1.3"; "" before the handshake, as the others */
    const char *cipher;      /* "TLS_AES_256_GCM_SHA384" */
    const char *protocol;    /* of the application (ALPN), or "" */
    const char *server_name; /* that the client has asked for (SNI), or "" */
    const char *peer;        /* the subject of the peer's certificate, or "" */
    bool resumed;            /* the handshake continued an earlier session */
    bool stapled;            /* the server has stapled a good OCSP response; not in a resumed handshake */
    /* The peer's own certificate in DER, for d2i_X509 and for fingerprints; NULL if it has sent none. */
    const void *peer_certificate;
    size_t peer_certificate_size; /* in bytes */
} strand_tls_info;
/** Read what the handshake of a stream has agreed on into *info. The caller sets info->size; the function fills in the
 * fields that this size covers. Returns 0, -EINVAL if there is no stream or no size, or -ENOMEM if there is no memory
 * for the certificate; *info is unchanged then. Cost: the first call copies the certificate. */
int strand_tls_info_get(strand_tls *tls, strand_tls_info *info);

#ifdef __cplusplus
}
#endif
#endif
