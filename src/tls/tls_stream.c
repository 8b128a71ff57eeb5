/*
 * Streams: the handshake, reading, writing, ending and closing. tls.h has the protocol.
 */
#include "tls.h"

#include <openssl/err.h>

/* ---- users ------------------------------------------------------------------------------------------------------ */

void tls_lock(strand_tls *tls)
{
    STRAND_SHIELD;
    strand_mutex_lock(&tls->lock);
}

/* [TL4] The end of a call. */
static void leave(strand_tls **user)
{
    strand_tls *tls = *user;
    if (!tls)
        return;
    tls_lock(tls);
    bool last = --tls->users == 0 && tls->closed;
    strand_mutex_unlock(&tls->lock);
    if (last)
        tls_destroy(tls);
}

/* The beginning of a call, which leaves if the result is 0. Else the result is a negated errno code. */
static int enter(strand_tls *tls)
{
    if (!tls)
        return -EINVAL;
    strand_mutex_lock(&tls->lock);
    bool closed = tls->closed;
    tls->users += !closed;
    strand_mutex_unlock(&tls->lock);
    return closed ? -EBADF : 0;
}

/* Enter until the block ends; the block returns if that fails. */
#define ENTER(tls)                                                                                                     \
    int entered_ = enter(tls);                                                                                         \
    if (entered_)                                                                                                      \
        return entered_;                                                                                               \
    strand_tls *user_ TLS_AT_END(leave) = (tls)

/* ---- closing -------------------------------------------------------------------------------------------------------
 */

int strand_tls_close(strand_tls *tls)
{
    if (!tls)
        return 0;
    tls_lock(tls);
    bool closed = tls->closed;
    tls->closed = true;
    tls->users++;
    strand_mutex_unlock(&tls->lock);
    int code = closed ? -EBADF : tls_close_descriptor(tls);
    leave(&tls);
    return code;
}

/* ---- the handshake -------------------------------------------------------------------------------------------------
 */

/* Under the lock. */
static void note_peer(strand_tls *tls)
{
    X509 *peer = SSL_get1_peer_certificate(tls->ssl);
    tls_subject(peer, tls->peer, sizeof tls->peer);
    X509_free(peer);
}

static int step_handshake(strand_tls *tls)
{
    tls_lock(tls);
    int result = tls->failed;
    if (!result && !tls->ready) {
        ERR_clear_error(); /* [TL1] */
        result = tls_outcome(tls, SSL_do_handshake(tls->ssl));
        tls->ready = result == 1;
        if (tls->ready)
            note_peer(tls);
    }
    strand_mutex_unlock(&tls->lock);
    return result < 0 ? result : 0;
}

/* By the reader: more bytes for OpenSSL, or the knowledge that there are none. Returns 0 or a negated errno code. */
static int feed(strand_tls *tls, size_t most)
{
    int64_t got = tls->read_failed ? tls->read_failed : tls_fetch(tls, most);
    if (got > 0)
        return 0;
    tls_lock(tls);
    tls->ended |= got == 0;
    if (got < 0 && got != -ENOMEM)
        tls->read_failed = tls_note(tls, (int)got, tls_words((int)got));
    strand_mutex_unlock(&tls->lock);
    return (int)got;
}

/* Whether the handshake is over: true for good once it is. */
static bool is_ready(strand_tls *tls)
{
    tls_lock(tls);
    bool ready = tls->ready;
    strand_mutex_unlock(&tls->lock);
    return ready;
}

/* Give up the role of the reader, to a writer too. */
static void reader_done(strand_tls **reader)
{
    strand_tls *tls = *reader;
    strand_semaphore_release(&tls->reader);
    tls_lock(tls);
    strand_condition_broadcast(&tls->moved);
    strand_mutex_unlock(&tls->lock);
}

static int shake(strand_tls *tls)
{
    strand_semaphore_acquire(&tls->reader);
    strand_tls *reader TLS_AT_END(reader_done) = tls;
    if (is_ready(tls)) /* by the strand that was here before; a writer may be busy by now */
        return 0;
    STRAND_PERMIT(&tls->writer);
    for (;;) {
        int result = step_handshake(tls), sent = tls_send(tls);
        if (result != TLS_WANTS_BYTES)
            return result ? result : sent;
        if (sent)
            return sent;
        result = feed(tls, SIZE_MAX);
        if (result)
            return result;
    }
}

int strand_tls_handshake(strand_tls *tls)
{
    ENTER(tls);
    int code = shake(tls);
    tls_send_left(tls);
    return code;
}

/* ---- reading -------------------------------------------------------------------------------------------------------
 */

/* All that is there, up to `size` bytes. Under the lock. */
static int64_t decrypt(strand_tls *tls, unsigned char *buffer, size_t size)
{
    size_t count = 0;
    int result = tls->failed;
    while (!result) {
        size_t part = size - count < INT32_MAX ? size - count : INT32_MAX;
        ERR_clear_error(); /* [TL1] */
        result = tls_outcome(tls, SSL_read(tls->ssl, buffer + count, (int)part));
        if (result <= 0)
            break;
        count += (size_t)result;
        if (count < size && (SSL_has_pending(tls->ssl) || tls_bytes_count(&tls->in)))
            result = 0;
    }
    return count ? (int64_t)count : result;
}

/* By the reader: what decrypt does, and by *unsent whether encrypted bytes wait. */
static int64_t read_step(strand_tls *tls, void *buffer, size_t size, bool *unsent)
{
    tls_lock(tls);
    int64_t got = decrypt(tls, buffer, size);
    strand_condition_broadcast(&tls->moved);
    *unsent = tls->unsent;
    strand_mutex_unlock(&tls->lock);
    return got;
}

static int64_t read_some(strand_tls *tls, void *buffer, size_t size)
{
    strand_semaphore_acquire(&tls->reader);
    strand_tls *reader TLS_AT_END(reader_done) = tls;
    for (;;) {
        bool unsent;
        int64_t got = read_step(tls, buffer, size, &unsent);
        if (unsent && got == TLS_WANTS_BYTES)
            tls_await_bytes(tls);
        else if (unsent && got <= 0)
            tls_send_now(tls);
        if (got != TLS_WANTS_BYTES)
            return got;
        int code = feed(tls, SIZE_MAX);
        if (code)
            return code;
    }
}

int64_t strand_tls_read(strand_tls *tls, void *buffer, size_t size)
{
    if (size && !buffer)
        return -EINVAL;
    ENTER(tls);
    int code = is_ready(tls) ? 0 : shake(tls);
    return code || !size ? code : read_some(tls, buffer, size);
}

/* ---- reading without waiting -----------------------------------------------------------------------------------
 */

/* A call that can't be interrupted takes no more from a peer that sends messages of TLS without end. */
enum { FEEDS_MOST = 8 };

/* Take what is there, and what the descriptor has. */
static int64_t take_some(strand_tls *tls, void *buffer, size_t size)
{
    if (strand_semaphore_try_acquire(&tls->reader) != 0)
        return -EAGAIN;
    strand_tls *reader TLS_AT_END(reader_done) = tls;
    for (int feeds = 0;; feeds++) {
        bool unsent;
        int64_t got = read_step(reader, buffer, size, &unsent);
        if (unsent && got <= 0)
            tls_send_now(reader);
        if (got != TLS_WANTS_BYTES || feeds == FEEDS_MOST || !tls_has_arrived(reader))
            return got;
        int code = feed(reader, SIZE_MAX);
        if (code)
            return code;
    }
}

int64_t strand_tls_try_read(strand_tls *tls, void *buffer, size_t size)
{
    STRAND_SHIELD;
    if (size && !buffer)
        return -EINVAL;
    ENTER(tls);
    tls_lock(tls);
    int code = tls->ready ? 0 : tls->failed ? tls->failed : -ENOTCONN;
    strand_mutex_unlock(&tls->lock);
    return code || !size ? code : take_some(tls, buffer, size);
}

/* Under the lock, after the handshake: let OpenSSL decrypt a record of `in`, if it has no bytes for a read. Returns
 * more than 0 if it has some, or what decrypt returns. */
static int look(strand_tls *tls)
{
    unsigned char byte;
    if (tls->failed)
        return tls->failed;
    ERR_clear_error(); /* [TL1] */
    int result = tls_outcome(tls, SSL_peek(tls->ssl, &byte, 1));
    strand_condition_broadcast(&tls->moved); /* [TL7] */
    return result;
}

size_t strand_tls_pending(strand_tls *tls)
{
    STRAND_SHIELD;
    if (enter(tls))
        return 0;
    strand_tls *user TLS_AT_END(leave) = tls;
    tls_lock(tls);
    size_t count = tls->ready && look(tls) > 0 ? (size_t)SSL_pending(tls->ssl) : 0;
    strand_mutex_unlock(&tls->lock);
    return count;
}

/* Whether a read can only go on with bytes of the descriptor. Sends what the descriptor takes at once: a strand that
 * waits in a select sends nothing meanwhile. */
static bool needs_descriptor(strand_tls *tls)
{
    if (enter(tls))
        return false;
    strand_tls *user TLS_AT_END(leave) = tls;
    tls_lock(tls);
    bool needs = tls->ready && look(tls) == TLS_WANTS_BYTES && !tls->read_failed && !tls->undelivered; /* [TL9] */
    bool unsent = tls->unsent;
    strand_mutex_unlock(&tls->lock);
    if (unsent)
        tls_send_now(tls);
    return needs;
}

strand_case strand_on_tls(strand_tls *tls)
{
    STRAND_SHIELD;
    static const strand_time past = {.ns = -1};
    return needs_descriptor(tls) ? strand_on_ready(tls->fd, STRAND_READABLE) : strand_on_time(past);
}

/* ---- writing -------------------------------------------------------------------------------------------------------
 */

/* What a writer does under the lock. */
typedef int64_t tls_step(strand_tls *tls, const void *bytes, size_t size);

static int64_t encrypt(strand_tls *tls, const void *from, size_t size)
{
    const unsigned char *bytes = from;
    size_t count = 0;
    int result = tls->failed ? tls->failed : SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN ? -EPIPE : 1;
    size = size < TLS_PART ? size : TLS_PART;
    if (result > 0)
        tls_bytes_expect(tls, size);
    while (result > 0 && count < size) {
        ERR_clear_error(); /* [TL1] */
        result = tls_outcome(tls, SSL_write(tls->ssl, bytes + count, (int)(size - count)));
        count += result > 0 ? (size_t)result : 0;
    }
    return count ? (int64_t)count : result;
}

/* A select may wait for what follows the message in the descriptor [TL7]. */
static int feed_as_reader(strand_tls *tls)
{
    strand_tls *reader TLS_AT_END(reader_done) = tls;
    return feed(reader, 1);
}

static void unlock(strand_tls **locked)
{
    strand_mutex_unlock(&(*locked)->lock);
}

/* Do what a writer has to do under the lock. If OpenSSL first needs the rest of a message of the peer, wait until a
 * reader has gone on, unless the role is free: *reads is set, and it is the caller's then [TL7]. */
static int64_t try_step(strand_tls *tls, tls_step *step, const void *bytes, size_t size, bool *reads)
{
    tls_lock(tls);
    strand_tls *locked TLS_AT_END(unlock) = tls;
    int64_t result = step(locked, bytes, size);
    *reads = result == TLS_WANTS_BYTES && strand_semaphore_try_acquire(&tls->reader) == 0;
    if (result == TLS_WANTS_BYTES && !*reads)
        strand_condition_wait(&tls->moved, &tls->lock);
    return result;
}

/* By the writer: what try_step does, until OpenSSL needs no more bytes for it. */
static int64_t write_step(strand_tls *tls, tls_step *step, const void *bytes, size_t size)
{
    for (;;) {
        bool reads;
        int64_t result = try_step(tls, step, bytes, size, &reads);
        if (result != TLS_WANTS_BYTES)
            return result;
        int code = reads ? feed_as_reader(tls) : 0;
        if (!code)
            code = tls_send(tls);
        if (code)
            return code;
    }
}

static int64_t write_some(strand_tls *tls, const void *bytes, size_t size)
{
    strand_semaphore_acquire(&tls->writer);
    strand_tls *writer TLS_AT_END(tls_writer_done) = tls;
    int code = tls_send(writer);
    if (code)
        return code;
    int64_t count = write_step(writer, encrypt, bytes, size);
    code = tls_send_some(writer); /* [TL5] the bytes are taken */
    return count > 0 && code < 0 ? code : count;
}

int64_t strand_tls_write(strand_tls *tls, const void *bytes, size_t size)
{
    if (size && !bytes)
        return -EINVAL;
    ENTER(tls);
    int64_t count = is_ready(tls) ? 0 : shake(tls);
    if (!count && size) {
        count = write_some(tls, bytes, size);
        tls_send_left(tls);
    }
    return count;
}

int64_t strand_tls_write_all(strand_tls *tls, const void *bytes, size_t size)
{
    size_t done = 0;
    do {
        int64_t count = strand_tls_write(tls, (const unsigned char *)bytes + done, size - done);
        if (count < 0)
            return count;
        done += (size_t)count;
    } while (done < size);
    return (int64_t)size;
}

/* ---- the end -------------------------------------------------------------------------------------------------------
 */

/* Under the lock. OpenSSL says no end in the middle of a message of the peer. */
static int64_t say_end(strand_tls *tls, const void *bytes, size_t size)
{
    (void)bytes, (void)size;
    if (tls->failed)
        return tls->failed;
    if (!tls->ready)
        return -ENOTCONN;
    if (SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN)
        return 0;
    ERR_clear_error(); /* [TL1] */
    int result = SSL_in_init(tls->ssl) ? SSL_do_handshake(tls->ssl) : 1;
    if (result == 1)
        result = SSL_shutdown(tls->ssl);
    return result >= 0 ? 0 : tls_outcome(tls, result);
}

static int end_writing(strand_tls *tls)
{
    strand_semaphore_acquire(&tls->writer);
    strand_tls *writer TLS_AT_END(tls_writer_done) = tls;
    int sent = tls_send(writer), code = (int)write_step(writer, say_end, NULL, 0);
    return code ? code : sent ? sent : tls_send(writer);
}

int strand_tls_shutdown(strand_tls *tls)
{
    ENTER(tls);
    int code = end_writing(tls);
    tls_send_left(tls);
    return code;
}
