/*
 * Sending. A client may take its answer as slowly as it likes, down to a least rate: in each period of the server's
 * timeout it has to take so many bytes, or one at least. So a long download is never cut for its length, and none lasts
 * for ever.
 *
 * The client has taken what it has acknowledged. What the system has buffered says nothing: it fills at once, and a
 * socket becomes writable only after a large part of its buffer has gone.
 */
#include "httpd.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { AT_ONCE = 1 << 20 };

struct pace {
    uint64_t taken;  /* by the client, of all that the connection has sent, before this period */
    strand_time end; /* of the period */
};

/* How much the client has taken of what was sent. What waits for it may be more than what was sent: TLS adds to it. */
static uint64_t taken(const struct connection *c, uint64_t sent)
{
    int waiting = 0;
    if (ioctl(c->fd, SIOCOUTQ, &waiting) != 0 || waiting < 0)
        waiting = 0;
    return sent > (uint64_t)waiting ? sent - (uint64_t)waiting : 0;
}

static struct pace begin_pace(struct connection *c)
{
    c->phase = WRITING;
    return (struct pace){taken(c, c->sent), strand_in(c->server->timeout)};
}

/* sent: bytes that the last period has sent, and that c->sent does not count yet. */
static void begin_period(const struct connection *c, struct pace *pace, uint64_t sent)
{
    const struct server *server = c->server;
    uint64_t now = taken(c, c->sent + sent);
    uint64_t least = (uint64_t)((double)server->rate * ((double)server->timeout / (double)STRAND_S));
    if (now < pace->taken + (least ? least : 1))
        strand_throw(&CLIENT_GONE, "%s takes its answer too slowly", c->peer);
    pace->taken = now;
    pace->end = strand_in(server->timeout);
}

/* Something to send: a part of a file, or bytes if that is -1. */
struct piece {
    int file;
    const char *bytes;
    uint64_t first, length; /* in the file */
    bool more;              /* follows at once: the system may send both in one packet */
};

/* Here errno is read where no switch can come in between. */
__attribute__((noinline)) static int64_t send_now(const struct connection *c, const struct piece *piece)
{
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (piece->more ? MSG_MORE : 0);
    ssize_t sent = send(c->fd, piece->bytes, (size_t)piece->length, flags);
    return sent < 0 ? -errno : sent;
}

/* Waits for room. Returns how many bytes have gone, or a negated errno code. */
static int64_t send_and_wait(struct connection *c, const struct piece *piece)
{
    int64_t sent;
    if (piece->file >= 0)
        return strand_file_send(piece->file, c->fd, piece->length, (int64_t)piece->first);
    if (c->tls)
        return secure_write(c, piece->bytes, (size_t)piece->length);
    while ((sent = send_now(c, piece)) == -EAGAIN || sent == -EINTR) {
        int error = sent == -EAGAIN ? strand_wait_ready(c->fd, STRAND_WRITABLE) : 0;
        if (error)
            return error;
    }
    return sent;
}

/* The same until the period ends: then a new one begins, if the client has taken enough. */
static int64_t send_in_period(struct connection *c, struct pace *pace, const struct piece *piece)
{
    STRAND_TRY {
        STRAND_DEADLINE(pace->end);
        return send_and_wait(c, piece);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        uint64_t sent = strand_exception_progress(e);
        begin_period(c, pace, sent);
        return (int64_t)sent;
    }
    STRAND_END
    return -EINVAL; /* not reached */
}

/* Returns how many bytes have gone; 0: none in this period, or the file has no more. */
static uint64_t send_piece(struct connection *c, struct pace *pace, const struct piece *piece)
{
    int64_t sent = -EAGAIN;
    bool now = piece->file < 0 && !c->tls; /* the usual case, without a deadline */
    if (now)
        sent = send_now(c, piece);
    if (sent == -EAGAIN || sent == -EINTR) {
        if (!pace->end.ns)
            *pace = begin_pace(c);
        sent = send_in_period(c, pace, piece);
    }
    if (sent < 0)
        strand_throw(&CLIENT_GONE, "%s went away", c->peer);
    if (now)
        strand_checkpoint(); /* a socket that always takes more would not see that the connection is cancelled */
    c->sent += (uint64_t)sent;
    return (uint64_t)sent;
}

static void send_all(struct connection *c, struct pace *pace, const char *bytes, size_t length, bool more)
{
    for (size_t at = 0; at < length;)
        at += (size_t)send_piece(c, pace, &(struct piece){-1, bytes + at, 0, length - at, more});
}

void send_bytes(struct connection *c, const char *bytes, size_t length, bool more)
{
    struct pace pace = {0}; /* begins when the client lets it wait */
    c->phase = WRITING;
    send_all(c, &pace, bytes, length, more);
}

__attribute__((noreturn)) static void complain_of_file(void)
{
    strand_throw(&STRAND_ERROR, "a file has shrunk, or can't be read any more, while it was sent");
}

/* Through the buffer of answers, which is empty. */
static void send_file_secured(struct connection *c, struct pace *pace, int file, uint64_t first, uint64_t length)
{
    for (uint64_t at = 0; at < length;) {
        size_t size = length - at < OUT_MOST ? (size_t)(length - at) : OUT_MOST;
        int64_t got = strand_file_read(file, c->out, size, (int64_t)(first + at));
        if (got <= 0)
            complain_of_file();
        send_all(c, pace, c->out, (size_t)got, at + (uint64_t)got < length);
        at += (uint64_t)got;
    }
}

/* A file that has shrunk ends the connection: its head has gone. */
void send_file(struct connection *c, int file, uint64_t first, uint64_t length)
{
    struct pace pace = begin_pace(c);
    if (c->tls) {
        send_file_secured(c, &pace, file, first, length);
        return;
    }
    for (uint64_t at = 0; at < length;) {
        uint64_t size = length - at < AT_ONCE ? length - at : AT_ONCE;
        strand_time period = pace.end;
        uint64_t sent = send_piece(c, &pace, &(struct piece){file, NULL, first + at, size, false});
        if (!sent && pace.end.ns == period.ns)
            complain_of_file();
        at += sent;
    }
}
