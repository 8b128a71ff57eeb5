/*
 * The bytes between OpenSSL and the descriptor. OpenSSL reads and writes memory; strands carry it (tls.h has the
 * protocol).
 */
#include "tls.h"

/* What the first read asks for, and what one asks for at most: it doubles while the peer fills it. */
enum { FIRST = 4 << 10, MOST = 64 << 10 };
/* Alerts that a reader may pile up where a writer is stuck. A peer that provokes more is up to no good. */
#define MAX_UNSENT ((size_t)256 << 10)

bool tls_bytes_reserve(struct tls_bytes *bytes, size_t more)
{
    if (bytes->room - bytes->end >= more)
        return true;
    size_t count = tls_bytes_count(bytes), room = bytes->room ? bytes->room : 512;
    if (bytes->start && bytes->room - count >= more) {
        memmove(bytes->at, bytes->at + bytes->start, count);
    } else {
        while (room - count < more)
            room *= 2;
        unsigned char *at = OPENSSL_malloc(room);
        if (!at)
            return false;
        if (count)
            memcpy(at, bytes->at + bytes->start, count);
        OPENSSL_free(bytes->at);
        bytes->at = at;
        bytes->room = room;
    }
    bytes->start = 0;
    bytes->end = count;
    return true;
}

void tls_bytes_free(struct tls_bytes *bytes)
{
    OPENSSL_free(bytes->at);
    *bytes = (struct tls_bytes){0};
}

void tls_bytes_expect(strand_tls *tls, size_t size)
{
    struct tls_bytes *out = &tls->out;
    if (size <= TLS_KEPT || tls_bytes_count(out) || out->room >= TLS_ROOM)
        return;
    tls_bytes_free(out);
    out->at = tls_spare_take(tls->context);
    out->room = out->at ? TLS_ROOM : 0;
}

/* Free what is too large for a stream that waits. */
static void shrink(strand_tls *tls, struct tls_bytes *drained)
{
    if (drained->room == TLS_ROOM) {
        tls_spare_give(tls->context, drained->at);
        *drained = (struct tls_bytes){0};
    } else if (drained->room > TLS_KEPT) {
        tls_bytes_free(drained);
    }
    drained->start = drained->end = 0;
}

/* ---- what OpenSSL calls -------------------------------------------------------------------------------------- */

static int carry_in(BIO *bio, char *to, size_t size, size_t *done)
{
    strand_tls *tls = BIO_get_data(bio);
    size_t count = tls_bytes_count(&tls->in);
    BIO_clear_retry_flags(bio);
    *done = count < size ? count : size;
    if (!count) {
        if (!tls->ended)
            BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(to, tls->in.at + tls->in.start, *done);
    tls->in.start += *done;
    if (tls->in.start == tls->in.end)
        tls->in.start = tls->in.end = 0;
    return 1;
}

static int carry_out(BIO *bio, const char *from, size_t size, size_t *done)
{
    strand_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *done = 0;
    if (tls_bytes_count(&tls->out) > MAX_UNSENT || !tls_bytes_reserve(&tls->out, size)) {
        tls->no_memory = true;
        return 0;
    }
    memcpy(tls->out.at + tls->out.end, from, size);
    tls->out.end += size;
    tls->unsent = true;
    *done = size;
    return 1;
}

static long carry_control(BIO *bio, int what, long number, void *pointer)
{
    (void)number;
    (void)pointer;
    strand_tls *tls = BIO_get_data(bio);
    switch (what) {
    case BIO_CTRL_FLUSH:
        return 1;
    case BIO_CTRL_EOF:
        return tls->ended && !tls_bytes_count(&tls->in);
    default:
        return 0;
    }
}

BIO_METHOD *tls_carrier_open(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | 127, "strand");
    if (method && BIO_meth_set_read_ex(method, carry_in) && BIO_meth_set_write_ex(method, carry_out) &&
        BIO_meth_set_ctrl(method, carry_control))
        return method;
    BIO_meth_free(method);
    return NULL;
}

bool tls_carrier_set(strand_tls *tls)
{
    BIO *bio = BIO_new(tls->context->carrier);
    if (!bio)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    return true;
}

/* ---- the descriptor ------------------------------------------------------------------------------------------- */

/* Begin a call on the descriptor. Returns whether it may begin: until go_outside, the number is
 * the stream's [TL6]. */
static bool go_inside(strand_tls *tls)
{
    tls_lock(tls);
    bool open = !tls->closed;
    tls->inside += open;
    strand_mutex_unlock(&tls->lock);
    return open;
}

static void go_outside(strand_tls **caller)
{
    strand_tls *tls = *caller;
    tls_lock(tls);
    tls->inside--;
    strand_mutex_unlock(&tls->lock);
}

static int64_t read_descriptor(strand_tls *tls, void *to, size_t size)
{
    if (!go_inside(tls))
        return -EBADF;
    strand_tls *inside TLS_AT_END(go_outside) = tls;
    return strand_read(inside->fd, to, size);
}

static int64_t write_descriptor(strand_tls *tls, const void *from, size_t size)
{
    if (!go_inside(tls))
        return -EBADF;
    strand_tls *inside TLS_AT_END(go_outside) = tls;
    return strand_write(inside->fd, from, size);
}

static bool has_inside(strand_tls *tls)
{
    tls_lock(tls);
    bool has = tls->inside > 0;
    strand_mutex_unlock(&tls->lock);
    return has;
}

int tls_close_descriptor(strand_tls *tls)
{
    STRAND_SHIELD;
    while (has_inside(tls)) {
        strand_forget(tls->fd); /* ends the calls that have reached the descriptor */
        strand_yield();         /* to strands that are about to reach it, or have just left it */
    }
    return strand_close(tls->fd);
}

/* ---- what strands call --------------------------------------------------------------------------------------- */

/* Under the lock: a buffer for the next read. A drained `in` gives its memory, and what is too large for a stream that
 * waits is freed. Returns whether there was memory. */
static bool make_room(strand_tls *tls)
{
    struct tls_bytes *arriving = &tls->arriving;
    if (!tls_bytes_count(&tls->in)) {
        tls_bytes_free(arriving);
        *arriving = tls->in;
        tls->in = (struct tls_bytes){0};
    }
    if (tls->ask < FIRST)
        tls->ask = FIRST;
    if (arriving->room != tls->ask)
        tls_bytes_free(arriving);
    arriving->start = arriving->end = 0;
    return tls_bytes_reserve(arriving, tls->ask);
}

/* Under the lock: give OpenSSL what has arrived. Returns whether there was memory; else it stays in `arriving`. */
static bool deliver(strand_tls *tls)
{
    struct tls_bytes *in = &tls->in, *arriving = &tls->arriving;
    size_t count = tls_bytes_count(arriving);
    if (!tls_bytes_count(in)) {
        struct tls_bytes drained = *in;
        *in = *arriving;
        *arriving = drained;
    } else {
        if (!tls_bytes_reserve(in, count))
            return false;
        memcpy(in->at + in->end, arriving->at + arriving->start, count);
        in->end += count;
    }
    arriving->start = arriving->end = 0;
    return true;
}

static int64_t receive(strand_tls *tls, size_t most)
{
    struct tls_bytes *arriving = &tls->arriving;
    tls_lock(tls);
    bool room = make_room(tls);
    strand_mutex_unlock(&tls->lock);
    if (!room)
        return -ENOMEM;
    size_t asked = tls->ask < most ? tls->ask : most;
    int64_t got = read_descriptor(tls, arriving->at, asked);
    if (got <= 0)
        return got;
    arriving->end = (size_t)got;
    if (asked < tls->ask)
        return got;
    if ((size_t)got == asked && asked < MOST)
        tls->ask *= 2;
    else if (got < FIRST)
        tls->ask = FIRST;
    return got;
}

int64_t tls_fetch(strand_tls *tls, size_t most)
{
    int64_t got = (int64_t)tls_bytes_count(&tls->arriving); /* that there was no memory for */
    if (!got)
        got = receive(tls, most);
    if (got <= 0)
        return got;
    tls_lock(tls);
    bool delivered = deliver(tls);
    tls->undelivered = !delivered;
    strand_mutex_unlock(&tls->lock);
    return delivered ? got : -ENOMEM;
}

bool tls_has_arrived(strand_tls *tls)
{
    if (tls->read_failed || tls_bytes_count(&tls->arriving) || !go_inside(tls))
        return true;
    strand_tls *inside TLS_AT_END(go_outside) = tls;
    strand_case readable = strand_on_ready(inside->fd, STRAND_READABLE);
    return strand_select(&readable, 1, STRAND_SELECT_NOW) == 0;
}

/* Under the lock: take what OpenSSL has encrypted, if what was taken before is sent [TL2]. */
static void take(strand_tls *tls)
{
    if (tls_bytes_count(&tls->sending))
        return;
    struct tls_bytes empty = tls->sending;
    tls->sending = tls->out;
    tls->out = empty;
    tls->out.start = tls->out.end = 0;
}

/* Under the lock. */
static int sending_failed(strand_tls *tls, int code)
{
    tls->write_failed = code;
    return tls->failed ? code : tls_note(tls, code, tls_words(code)); /* the reason of a refusal stays */
}

/* By the writer: one write of what waits. Returns 0 or a negated errno code, and by *left whether something waited. */
static int send_part(strand_tls *tls, bool *left)
{
    struct tls_bytes *sending = &tls->sending;
    tls_lock(tls);
    int code = tls->write_failed;
    take(tls);
    *left = tls->unsent = tls_bytes_count(sending) > 0;
    strand_mutex_unlock(&tls->lock);
    if (code || !*left)
        return code;
    int64_t sent = write_descriptor(tls, sending->at + sending->start, tls_bytes_count(sending));
    if (sent < 0) {
        tls_lock(tls);
        sending_failed(tls, (int)sent);
        strand_mutex_unlock(&tls->lock);
        return (int)sent;
    }
    sending->start += (size_t)sent;
    if (!tls_bytes_count(sending))
        shrink(tls, sending);
    return 0;
}

int tls_send(strand_tls *tls)
{
    for (bool left;;) {
        int code = send_part(tls, &left);
        if (code || !left)
            return code;
    }
}

/* Whether the role is the caller's now, because encrypted bytes wait that no writer sends [TL3]. Only the writer looks
 * at `sending`. */
static bool take_over(strand_tls *tls)
{
    tls_lock(tls);
    bool mine = !tls->write_failed && strand_semaphore_try_acquire(&tls->writer) == 0;
    if (mine && !tls_bytes_count(&tls->out) && !tls_bytes_count(&tls->sending)) {
        strand_semaphore_release(&tls->writer);
        mine = false;
    }
    strand_mutex_unlock(&tls->lock);
    return mine;
}

void tls_writer_done(strand_tls **writer)
{
    strand_semaphore_release(&(*writer)->writer);
}

/* As the writer. Returns whether all was sent: an interruption leaves the rest for the next call [TL5]. */
static bool sends_all(strand_tls *tls)
{
    strand_tls *writer TLS_AT_END(tls_writer_done) = tls;
    return tls_send_some(writer) == 0 && !strand_interrupted();
}

int tls_send_some(strand_tls *tls)
{
    STRAND_TRY {
        return tls_send(tls);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        return 0;
    }
    STRAND_END
    return 0;
}

void tls_send_left(strand_tls *tls)
{
    while (take_over(tls) && sends_all(tls)) {
    }
}

/* As the writer: wait until the descriptor takes bytes, or has some, and send a part in the first case. Returns whether
 * it was sent. */
static bool sends_before_bytes(strand_tls *tls)
{
    strand_tls *writer TLS_AT_END(tls_writer_done) = tls;
    bool left;
    if (!go_inside(writer))
        return false;
    strand_tls *inside TLS_AT_END(go_outside) = tls;
    strand_case cases[] = {strand_on_ready(inside->fd, STRAND_WRITABLE), strand_on_ready(inside->fd, STRAND_READABLE)};
    return strand_select(cases, 2, STRAND_SELECT_ORDERED) == 0 && cases[0].result == 0 && send_part(tls, &left) == 0;
}

void tls_await_bytes(strand_tls *tls)
{
    while (take_over(tls) && sends_before_bytes(tls)) {
    }
}

/* As the writer: send a part if the descriptor takes it now. Returns whether it was sent. */
static bool sends_at_once(strand_tls *tls)
{
    STRAND_SHIELD;
    strand_tls *writer TLS_AT_END(tls_writer_done) = tls;
    bool left;
    if (!go_inside(writer))
        return false;
    strand_tls *inside TLS_AT_END(go_outside) = tls;
    strand_case writable = strand_on_ready(inside->fd, STRAND_WRITABLE);
    return strand_select(&writable, 1, STRAND_SELECT_NOW) == 0 && writable.result == 0 && send_part(tls, &left) == 0;
}

void tls_send_now(strand_tls *tls)
{
    while (take_over(tls) && sends_at_once(tls)) {
    }
}
