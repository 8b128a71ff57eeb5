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
#include <sys/sendfile.h>
#include <sys/socket.h>

enum { AT_ONCE = 1 << 20 };

struct pace {
    uint64_t taken;  /* by the client, of all that the connection has sent, before this period */
    strand_time end; /* of the period */
};

static uint64_t taken(const struct connection *c)
{
    int waiting = 0;
    if (ioctl(c->fd, SIOCOUTQ, &waiting) != 0 || waiting < 0)
        waiting = 0;
    return c->sent - (uint64_t)waiting;
}

static struct pace begin_pace(struct connection *c)
{
    c->phase = WRITING;
    return (struct pace){taken(c), strand_in(c->server->timeout)};
}

static void begin_period(const struct connection *c, struct pace *pace)
{
    const struct server *server = c->server;
    uint64_t now = taken(c);
    uint64_t least = (uint64_t)((double)server->rate * ((double)server->timeout / (double)STRAND_S));
    if (now - pace->taken < (least ? least : 1))
        strand_throw(&CLIENT_GONE, "%s takes its answer too slowly", c->peer);
    pace->taken = now;
    pace->end = strand_in(server->timeout);
}

/* Until the socket takes more, or the period ends. */
static int await_room(const struct connection *c, struct pace *pace)
{
    STRAND_TRY {
        STRAND_DEADLINE(pace->end);
        return strand_wait_ready(c->fd, STRAND_WRITABLE);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    begin_period(c, pace);
    return 0;
}

/* After a call that has sent so many bytes, or has failed; returns how many. */
static uint64_t keep_pace(struct connection *c, struct pace *pace, ssize_t sent)
{
    if (sent == -EAGAIN)
        sent = await_room(c, pace);
    if (sent < 0 && sent != -EINTR)
        strand_throw(&CLIENT_GONE, "%s went away", c->peer);
    strand_checkpoint(); /* a socket that always takes more would not see that the connection is cancelled */
    c->sent += sent > 0 ? (uint64_t)sent : 0;
    return sent > 0 ? (uint64_t)sent : 0;
}

/* In both, errno is read where no switch can come in between. */
__attribute__((noinline)) static ssize_t send_some(int to, const char *bytes, size_t length)
{
    ssize_t sent = send(to, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? -errno : sent;
}

__attribute__((noinline)) static ssize_t send_some_of_file(int to, int from, uint64_t first, uint64_t length)
{
    off_t offset = (off_t)first;
    ssize_t sent = sendfile(to, from, &offset, length < AT_ONCE ? (size_t)length : AT_ONCE);
    return sent < 0 ? -errno : sent;
}

void send_bytes(struct connection *c, const char *bytes, size_t length)
{
    struct pace pace = begin_pace(c);
    for (size_t at = 0; at < length;)
        at += (size_t)keep_pace(c, &pace, send_some(c->fd, bytes + at, length - at));
}

/* A file that has shrunk ends the connection: its head has gone. */
void send_file(struct connection *c, int file, uint64_t first, uint64_t length)
{
    struct pace pace = begin_pace(c);
    for (uint64_t at = 0; at < length;) {
        ssize_t sent = send_some_of_file(c->fd, file, first + at, length - at);
        if (sent == 0)
            strand_throw(&STRAND_ERROR, "a file has shrunk while it was sent");
        at += keep_pace(c, &pace, sent);
    }
}
