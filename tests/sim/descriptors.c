/*
 * Descriptors against close and cancel: writers and readers of pipes and of a connection are cancelled, run out of
 * time, or lose the descriptor to a strand that closes it. Bytes arrive in order and once, and none is lost while both
 * ends are open; using a closed descriptor returns an error; and all descriptors are closed at the end.
 */
#include "sim.h"

#include "strand/io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    STREAMS = 2,
    TURNS = 3,
    CHUNK = 96,
    LARGE = 70000,
    CALLERS = 3,
    QUESTIONS = 8,
    READERS = 3,
    LINES = 3,
    LINE = 6000
};

static char large[STREAMS][LARGE]; /* each has one writer, which may wait for long */

/* One direction. A strand that closes an end first sets `closing`. */
struct stream {
    int in, out; /* to be written, to be read */
    _Atomic int in_closing, out_closing, in_closed, out_closed;
    _Atomic int unknown;              /* a write has failed, or was given up, without telling how far it came */
    _Atomic int64_t written, arrived; /* bytes */
};

/* Over a connection of its own. */
struct line {
    int64_t result, arrived; /* bytes that were sent, or a negated errno code; bytes */
    bool over;               /* its end has arrived */
};

static struct {
    struct stream streams[STREAMS];
    struct line lines[LINES];
    int listener;
    _Atomic int listener_closing, called, answered;
} world;

/* ---- bytes ---------------------------------------------------------------------------------------- */

static char byte_at(int64_t place)
{
    return (char)(place * 7 + (place >> 8));
}

static void fill(char *bytes, int64_t place, int size)
{
    for (int i = 0; i < size; i++)
        bytes[i] = byte_at(place + i);
}

static void check_arrived(struct stream *stream, const char *bytes, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        SIM_CHECK_EQ(bytes[i], byte_at(stream->arrived + i));
    stream->arrived += size;
}

/* ---- the two ends --------------------------------------------------------------------------------- */

/* Of strand_write_all, which may be interrupted in the middle. */
struct piece {
    struct stream *stream;
    const char *bytes;
    int size;
    int64_t result;
};

static void write_piece(struct sim_life *me, void *arg)
{
    struct piece *piece = arg;
    (void)me;
    piece->result = strand_write_all(piece->stream->in, piece->bytes, (size_t)piece->size);
}

static int64_t write_whole(struct sim_life *me, struct stream *stream, const char *bytes, int size)
{
    struct piece piece = {stream, bytes, size, 0};
    strand_exception *e = sim_try(me, write_piece, &piece);
    if (e)
        stream->written += (int64_t)strand_exception_progress(e);
    sim_settle(e);
    return piece.result;
}

/* One writer at a time knows where it is. */
static bool write_some(struct sim_life *me, struct stream *stream)
{
    char bytes[CHUNK];
    int size = 1 + (int)sim_draw(&me->chance, CHUNK);
    bool closed = stream->in_closed, all = sim_one_in(&me->chance, 2);
    fill(bytes, stream->written, size);
    int64_t n = all ? write_whole(me, stream, bytes, size) : strand_write(stream->in, bytes, (size_t)size);
    if (n > 0) {
        SIM_CHECK(!closed && n <= size && (!all || n == size));
        stream->written += n;
        return true;
    }
    SIM_CHECK((n == -EBADF && stream->in_closing) || (n == -EPIPE && stream->out_closing));
    stream->unknown |= all;
    return false;
}

static void write_a_lot(struct sim_life *me, void *arg)
{
    struct stream *stream = arg;
    (void)me;
    int64_t n = strand_write_all(stream->in, large[stream - world.streams], LARGE);
    if (n == LARGE)
        stream->written += n;
    else
        stream->unknown = 1;
}

/* The end of a writer's work: more than the system keeps for the reader, so that it has to wait for it. */
static void write_until_it_is_full(struct sim_life *me, struct stream *stream)
{
    fill(large[stream - world.streams], stream->written, LARGE);
    strand_exception *e = sim_try(me, write_a_lot, stream);
    if (e)
        stream->written += (int64_t)strand_exception_progress(e);
    sim_settle(e);
}

static bool read_some(struct sim_life *me, struct stream *stream)
{
    char bytes[4 * CHUNK];
    bool closed = stream->out_closed;
    int64_t n = strand_read(stream->out, bytes, 1 + sim_draw(&me->chance, sizeof bytes));
    if (n > 0) {
        SIM_CHECK(!closed);
        check_arrived(stream, bytes, n);
        return true;
    }
    SIM_CHECK((n == 0 && stream->in_closing) || (n == -EBADF && stream->out_closing));
    return false;
}

static void wait_until_readable(struct sim_life *me, struct stream *stream)
{
    strand_case cases[2] = {strand_on_ready(stream->out, STRAND_READABLE),
                            strand_on_time(strand_in(sim_draw(&me->chance, 30) * STRAND_US))};
    int chosen = strand_select(cases, 2, 0);
    if (chosen == 0 && cases[0].result)
        SIM_CHECK(cases[0].result == -EBADF && stream->out_closing);
}

static void close_in(struct stream *stream)
{
    if (stream->in_closing++)
        return;
    SIM_CHECK_EQ(strand_close(stream->in), 0);
    stream->in_closed = 1;
}

static void close_out(struct stream *stream)
{
    if (stream->out_closing++)
        return;
    SIM_CHECK_EQ(strand_close(stream->out), 0);
    stream->out_closed = 1;
}

/* ---- strands -------------------------------------------------------------------------------------- */

static void write_in_a_deadline(struct sim_life *me, void *arg)
{
    STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 30)) * STRAND_US));
    write_some(me, arg);
    strand_yield();
}

static void read_in_a_deadline(struct sim_life *me, void *arg)
{
    STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 30)) * STRAND_US));
    read_some(me, arg);
}

/* It takes a deadline for no reason to stop. */
static bool in_a_deadline(struct sim_life *me, sim_body *body, struct stream *stream)
{
    sim_settle(sim_try(me, body, stream));
    return true;
}

static void writer(struct sim_life *me, void *arg)
{
    struct stream *stream = arg;
    bool goes_on = true;
    SIM_CLEANUP(me);
    for (int i = 0; i < TURNS && goes_on; i++) {
        if (sim_one_in(&me->chance, 3))
            strand_sleep(sim_draw(&me->chance, 3) * 5 * STRAND_US);
        goes_on = sim_one_in(&me->chance, 3) ? in_a_deadline(me, write_in_a_deadline, stream) : write_some(me, stream);
    }
    if (goes_on && sim_one_in(&me->chance, 8))
        write_until_it_is_full(me, stream);
    if (sim_one_in(&me->chance, 2))
        close_in(stream);
}

/* To the end, or not. */
static void reader(struct sim_life *me, void *arg)
{
    struct stream *stream = arg;
    bool goes_on = true;
    SIM_CLEANUP(me);
    for (int i = 0; i < 2 * TURNS && goes_on; i++) {
        if (sim_one_in(&me->chance, 3))
            wait_until_readable(me, stream);
        goes_on = sim_one_in(&me->chance, 3) ? in_a_deadline(me, read_in_a_deadline, stream) : read_some(me, stream);
    }
    if (sim_one_in(&me->chance, 4))
        close_out(stream);
}

static void closer(struct sim_life *me, void *arg)
{
    struct stream *stream = arg;
    strand_sleep(sim_draw(&me->chance, 40) * STRAND_US);
    if (sim_one_in(&me->chance, 2))
        close_in(stream);
    else
        close_out(stream);
}

/* ---- a listener ----------------------------------------------------------------------------------- */

static void close_late(const int *fd)
{
    SIM_CHECK_EQ(strand_close(*fd), 0);
}

static void name_of_listener(char *name, size_t size)
{
    snprintf(name, size, "@strand-sim-%d", (int)getpid());
}

static void call(struct sim_life *me, void *arg)
{
    char name[64], byte = 'x';
    (void)arg;
    SIM_CLEANUP(me);
    name_of_listener(name, sizeof name);
    int fd = strand_dial_unix(name);
    SIM_CHECK(fd >= 0);
    int closing __attribute__((cleanup(close_late), unused)) = fd;
    world.called++;
    strand_write(fd, &byte, 1);
}

static void answer(struct sim_life *me, void *arg)
{
    char byte;
    (void)arg;
    SIM_CLEANUP(me);
    for (;;) {
        int fd = strand_accept(world.listener);
        if (fd < 0) {
            SIM_CHECK(fd == -EBADF && world.listener_closing);
            return;
        }
        int closing __attribute__((cleanup(close_late), unused)) = fd;
        world.answered++;
        strand_read(fd, &byte, 1);
    }
}

/* The listener is closed when nothing is opened any more: its number is not used again while somebody waits for it. */
static void exchange(struct sim_life *me, void *arg)
{
    struct sim_life *callers[CALLERS];
    char name[64];
    name_of_listener(name, sizeof name);
    world.listener = strand_listen_unix(name);
    SIM_CHECK(world.listener >= 0);
    STRAND_SCOPE(scope);
    struct sim_life *server = sim_spawn(me, scope, answer, arg);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = sim_spawn(me, scope, call, arg);
        if (sim_one_in(&me->chance, 4))
            sim_cancel(callers[i], "while it calls");
    }
    for (int i = 0; i < CALLERS; i++)
        sim_join(callers[i]);
    if (sim_one_in(&me->chance, 3))
        sim_cancel(server, "while it accepts");
    world.listener_closing = 1;
    SIM_CHECK_EQ(strand_close(world.listener), 0);
    sim_join(server);
}

/* ---- connections that break, or fall silent -------------------------------------------------------- */

/* It ends when its time is over, if not before. */
static void send_line(struct sim_life *me, void *arg)
{
    struct line *line = arg;
    char bytes[LINE], name[64];
    name_of_listener(name, sizeof name);
    fill(bytes, 0, LINE);
    bytes[0] = (char)(line - world.lines);
    STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 40)) * 50 * STRAND_US));
    int fd = strand_dial_unix(name);
    SIM_CHECK(fd >= 0);
    int closing __attribute__((cleanup(close_late), unused)) = fd;
    line->result = -EINTR;
    int64_t n = line->result = strand_write_all(fd, bytes, LINE);
    SIM_CHECK(n == LINE || n == -EPIPE || n == -ECONNRESET);
}

static void speak(struct sim_life *me, void *arg)
{
    struct line *line = arg;
    SIM_CLEANUP(me);
    strand_exception *e = sim_try(me, send_line, line);
    if (e && line->result == -EINTR)
        line->result = (int64_t)strand_exception_progress(e);
    SIM_CHECK(!e || strand_exception_is(e, &STRAND_TIMED_OUT) || me->cancelled);
    sim_settle(e);
}

/* The first byte says of which line it is. Where the end is seen, everything has come. */
static void hear_line(struct sim_life *me, void *arg)
{
    char bytes[4 * CHUNK];
    struct line *line = NULL;
    int64_t n;
    STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 60)) * 50 * STRAND_US));
    while ((n = strand_read(*(int *)arg, bytes, sizeof bytes)) > 0) {
        int64_t first = !line;
        if (first)
            line = &world.lines[(int)bytes[0]];
        SIM_CHECK(line->arrived + n <= LINE);
        for (int64_t i = first; i < n; i++)
            SIM_CHECK_EQ(bytes[i], byte_at(line->arrived + i));
        line->arrived += n;
    }
    SIM_CHECK(n == 0 || n == -ECONNRESET);
    if (line)
        line->over = n == 0;
}

static void hear(struct sim_life *me, void *arg)
{
    int fd = me->tag;
    (void)arg;
    SIM_CLEANUP(me);
    int closing __attribute__((cleanup(close_late), unused)) = fd;
    strand_exception *e = sim_try(me, hear_line, &fd);
    SIM_CHECK(!e || strand_exception_is(e, &STRAND_TIMED_OUT));
    sim_settle(e);
}

static void accept_lines(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    STRAND_DEADLINE(strand_in(10 * STRAND_MS));
    for (int i = 0; i < LINES; i++) {
        int fd = strand_accept(world.listener);
        SIM_CHECK(fd >= 0);
        sim_spawn_tagged(me, scope, hear, arg, fd);
    }
    strand_scope_join(scope);
}

static void unreliable(struct sim_life *me, void *arg)
{
    char name[64];
    name_of_listener(name, sizeof name);
    world.listener = strand_listen_unix(name);
    SIM_CHECK(world.listener >= 0);
    int closing __attribute__((cleanup(close_late), unused)) = world.listener;
    STRAND_SCOPE(scope);
    for (int i = 0; i < LINES; i++)
        sim_spawn(me, scope, speak, &world.lines[i]);
    strand_exception *e = sim_try(me, accept_lines, arg); /* a caller that ran out of time has not called */
    SIM_CHECK(!e || strand_exception_is(e, &STRAND_TIMED_OUT));
    sim_settle(e);
    strand_scope_join(scope);
}

/* ---- nobody closes, or is cancelled: no event may be forgotten -------------------------------------- */

static void converse(struct sim_life *me, void *arg)
{
    char byte = (char)me->tag;
    (void)arg;
    for (int i = 0; i < QUESTIONS; i++) {
        if (i > 0 || me->tag == 0)
            SIM_CHECK_EQ(strand_write(world.streams[me->tag].in, &byte, 1), 1);
        SIM_CHECK_EQ(strand_read(world.streams[!me->tag].out, &byte, 1), 1);
    }
    if (me->tag == 1)
        SIM_CHECK_EQ(strand_write(world.streams[1].in, &byte, 1), 1);
}

static void read_one(struct sim_life *me, void *arg)
{
    char byte;
    (void)me;
    SIM_CHECK_EQ(strand_read(((struct stream *)arg)->out, &byte, 1), 1);
}

/* There is a byte for each of them, and they come all at once. */
static void crowd(struct sim_life *me, struct stream *stream)
{
    static const char bytes[READERS];
    STRAND_SCOPE(scope);
    for (int i = 0; i < READERS; i++)
        sim_spawn(me, scope, read_one, stream);
    strand_sleep(sim_draw(&me->chance, 3) * STRAND_US);
    SIM_CHECK_EQ(strand_write_all(stream->in, bytes, READERS), READERS);
    strand_scope_join(scope);
}

static void talk(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < STREAMS; i++)
        sim_spawn_tagged(me, scope, converse, arg, i);
    strand_scope_join(scope);
    crowd(me, &world.streams[0]);
    for (int i = 0; i < STREAMS; i++) {
        close_in(&world.streams[i]);
        close_out(&world.streams[i]);
    }
}

/* ---- all of it ------------------------------------------------------------------------------------ */

static void open_streams(void)
{
    for (int i = 0; i < STREAMS; i++) {
        int fds[2];
        SIM_CHECK_EQ(strand_pipe(fds), 0);
        world.streams[i].out = fds[0];
        world.streams[i].in = fds[1];
    }
}

/* What nobody has read is read now, if it still can be. */
static void settle(struct stream *stream)
{
    char bytes[4096];
    int64_t n = 0;
    close_in(stream);
    while (!stream->out_closing && (n = strand_read(stream->out, bytes, sizeof bytes)) > 0)
        check_arrived(stream, bytes, n);
    SIM_CHECK_EQ(n, 0);
    if (!stream->out_closing && !stream->unknown)
        SIM_CHECK_EQ(stream->arrived, stream->written);
    else if (!stream->unknown)
        SIM_CHECK(stream->arrived <= stream->written);
    close_out(stream);
}

static void stream(struct sim_life *me, void *arg)
{
    struct sim_life *strands[3 * STREAMS];
    STRAND_SCOPE(scope);
    for (int i = 0; i < STREAMS; i++) {
        strands[3 * i] = sim_spawn(me, scope, writer, &world.streams[i]);
        strands[3 * i + 1] = sim_spawn(me, scope, reader, &world.streams[i]);
        strands[3 * i + 2] = sim_spawn(me, scope, closer, &world.streams[i]);
    }
    (void)arg;
    for (uint32_t n = sim_draw(&me->chance, 3); n > 0; n--) {
        strand_sleep(sim_draw(&me->chance, 20) * STRAND_US);
        sim_cancel(strands[sim_draw(&me->chance, 3 * STREAMS)], "in the middle");
    }
    strand_sleep(sim_draw(&me->chance, 60) * STRAND_US);
    if (sim_one_in(&me->chance, 2)) {
        strand_scope_cancel(scope, "the end");
        return;
    }
    for (int i = 0; i < STREAMS; i++) { /* which ends all who wait, too */
        close_in(&world.streams[i]);
        close_out(&world.streams[i]);
    }
    for (int i = 0; i < 3 * STREAMS; i++)
        sim_join(strands[i]);
}

static void root(struct sim_life *me, void *arg)
{
    if (sim_breaks()) {
        unreliable(me, arg);
        return;
    }
    if (sim_one_in(&me->chance, 4)) {
        exchange(me, arg);
        return;
    }
    open_streams();
    if (sim_one_in(&me->chance, 3)) {
        talk(me, arg);
        return;
    }
    stream(me, arg);
    for (int i = 0; i < STREAMS; i++)
        settle(&world.streams[i]);
}

static void oracle(void)
{
    SIM_CHECK(world.answered <= CALLERS);
    for (int i = 0; i < LINES; i++) {
        const struct line *line = &world.lines[i];
        SIM_CHECK(line->result < 0 || line->arrived <= line->result);
        SIM_CHECK(!line->over || line->arrived == line->result);
        sim_observe((uint64_t)line->arrived << 1 | line->over);
    }
    for (int i = 0; i < STREAMS; i++)
        sim_observe((uint64_t)world.streams[i].arrived);
}

SIM_WORKLOAD_THAT(SIM_BREAKS, descriptors, root, oracle, world);
