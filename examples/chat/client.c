/*
 * Clients: a strand that reads lines, and an actor that writes them.
 */
#include "chat.h"

#include <strand/io.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the outlet ---------------------------------------------------------------------------------------------- */

void tell_line(strand_actor outlet, const char *format, ...)
{
    line l;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(l.text.bytes, sizeof l.text.bytes - 1, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    size_t end = (size_t)length < sizeof l.text.bytes - 1 ? (size_t)length : sizeof l.text.bytes - 2;
    memcpy(l.text.bytes + end, "\n", 2);
    (void)strand_tell(outlet, &line_message, &l,
                      offsetof(line, text.bytes) + end + 2); /* a client that has left gets nothing */
}

static void write_line(void *state, strand_message *message)
{
    const int *fd = state;
    const line *l = STRAND_IS(message, line);
    if (l && strand_write_all(*fd, l->text.bytes, strlen(l->text.bytes)) < 0)
        strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT);
}

const strand_actor_class outlet_class = {.size = sizeof outlet_class,
                                         .name = "outlet",
                                         .state_size = sizeof(int),
                                         .receive = write_line,
                                         .max_mailbox = 256,
                                         .mailbox_full = STRAND_MAILBOX_FULL_OLDEST};

/* ---- lines --------------------------------------------------------------------------------------------------- */

struct lines {
    int fd;
    size_t used, taken;
    char bytes[LINE_MOST + 1];
};

/* The next line without its end, or NULL: there is none. One that is too long comes in pieces. */
static char *next_line(struct lines *in)
{
    for (;;) {
        memmove(in->bytes, in->bytes + in->taken, in->used - in->taken);
        in->used -= in->taken;
        in->taken = 0;
        char *end = memchr(in->bytes, '\n', in->used);
        if (end || in->used == LINE_MOST) {
            in->taken = end ? (size_t)(end - in->bytes) + 1 : in->used;
            if (!end)
                end = in->bytes + in->used;
            *end = '\0';
            if (end > in->bytes && end[-1] == '\r')
                end[-1] = '\0';
            return in->bytes;
        }
        int64_t got = strand_read(in->fd, in->bytes + in->used, LINE_MOST - in->used);
        if (got <= 0)
            return NULL;
        in->used += (size_t)got;
    }
}

/* ---- what is typed ------------------------------------------------------------------------------------------- */

struct person {
    struct server *server;
    strand_actor outlet, room;
    char name[NAME_MOST];
};

/* Names are one word. */
static bool take_name(const char *text, char *name)
{
    size_t length = strcspn(text, " \t/");
    if (!length || text[length] || length >= NAME_MOST)
        return false;
    memset(name, 0, NAME_MOST);
    memcpy(name, text, length);
    return true;
}

static void go(struct person *me, const char *room)
{
    go_to g = {.outlet = me->outlet};
    went w = {.room = {{0, 0}}};
    memcpy(g.name, me->name, sizeof g.name);
    if (*room && !take_name(room, g.room)) {
        tell_line(me->outlet, "* a room has a name of one word, of up to %d characters", NAME_MOST - 1);
        return;
    }
    int error = strand_ask(me->server->lobby, &go_to_message, &g, sizeof g, STRAND_INTO(went, &w));
    if (error || (*room && !w.room.bits[1]))
        tell_line(me->outlet, "* there is no room for one more");
    me->room = w.room;
}

static void be_called(struct person *me, const char *name)
{
    rename_to r = {.outlet = me->outlet};
    if (!take_name(name, r.name)) {
        tell_line(me->outlet, "* a name is one word, of up to %d characters", NAME_MOST - 1);
        return;
    }
    memcpy(me->name, r.name, sizeof me->name);
    if (me->room.bits[1])
        strand_tell(me->room, &rename_to_message, &r, sizeof r);
}

static void talk(struct person *me, const char *text)
{
    say s = {.outlet = me->outlet};
    if (!me->room.bits[1]) {
        tell_line(me->outlet, "* you are in no room: /join ROOM");
        return;
    }
    snprintf(s.text.bytes, sizeof s.text.bytes, "%s", text);
    strand_tell(me->room, &say_message, &s, sizeof s);
}

/* False: that was the last one. */
static bool obey(struct person *me, const char *text)
{
    bool inside = me->room.bits[1];
    if (!strncmp(text, "/nick ", 6))
        be_called(me, text + 6);
    else if (!strncmp(text, "/join ", 6) && text[6])
        go(me, text + 6);
    else if (!strcmp(text, "/leave"))
        go(me, "");
    else if (!strcmp(text, "/who") && inside)
        strand_tell(me->room, STRAND_MSG(who, me->outlet));
    else if (!strcmp(text, "/rooms"))
        strand_tell(me->server->lobby, STRAND_MSG(list_rooms, me->outlet));
    else if (!strcmp(text, "/crash") && inside)
        strand_tell(me->room, STRAND_MSG(crash, 0));
    else if (!strcmp(text, "/quit"))
        return false;
    else if (*text == '/')
        tell_line(me->outlet, "* /nick NAME  /join ROOM  /leave  /who  /rooms  /crash  /quit");
    else if (*text)
        talk(me, text);
    return true;
}

/* ---- the strand ---------------------------------------------------------------------------------------------- */

static void close_it(int *fd)
{
    strand_close(*fd);
}

/* Before the socket is closed: what it has written goes out. */
static void end_outlet(strand_actor *outlet)
{
    if (!outlet->bits[1])
        return;
    strand_actor_stop(*outlet, STRAND_STOP_NOW);
    strand_actor_wait(*outlet);
}

void *serve_client(void *arg)
{
    struct client *client = arg;
    int fd __attribute__((cleanup(close_it))) = client->fd;
    struct lines in = {.fd = fd};
    struct person me = {.server = client->server, .name = "somebody"};
    strand_actor outlet __attribute__((cleanup(end_outlet))) =
        strand_actor_spawn(client->server->system, NULL, &outlet_class, &fd, sizeof fd);
    me.outlet = outlet;
    tell_line(outlet, "* welcome; /nick NAME, /join ROOM");
    for (char *text; (text = next_line(&in)) && obey(&me, text);)
        continue;
    tell_line(outlet, "* bye");
    strand_actor_stop(outlet, STRAND_STOP_LAST);
    STRAND_DEADLINE(strand_in(STRAND_S)); /* for one that does not read */
    strand_actor_wait(outlet);
    return NULL;
}
