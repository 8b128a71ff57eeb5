/*
 * Rooms, and the lobby that supervises them.
 */
#include "chat.h"

#include <stdlib.h>
#include <string.h>

/* ---- people: a list that grows ------------------------------------------------------------------------------- */

struct person {
    strand_actor outlet;
    char name[NAME_MOST];
};

struct people {
    struct person *list;
    size_t count, room;
};

static struct person *find(struct people *people, strand_actor outlet)
{
    for (size_t i = 0; i < people->count; i++)
        if (people->list[i].outlet.bits[0] == outlet.bits[0] && people->list[i].outlet.bits[1] == outlet.bits[1])
            return &people->list[i];
    return NULL;
}

static void add(struct people *people, strand_actor outlet, const char *name)
{
    if (people->count == people->room) {
        size_t room = people->room ? 2 * people->room : 8;
        struct person *list = realloc(people->list, room * sizeof *list);
        if (!list)
            strand_throw(&STRAND_SYSTEM, "no memory for one more");
        people->list = list;
        people->room = room;
    }
    struct person *person = &people->list[people->count++];
    person->outlet = outlet;
    memcpy(person->name, name, NAME_MOST);
}

static void drop(struct people *people, struct person *person)
{
    *person = people->list[--people->count];
}

/* ---- a room -------------------------------------------------------------------------------------------------- */

struct room {
    char name[NAME_MOST];
    struct people people;
};

static void tell_all(const struct room *room, const struct person *but, const char *name, const char *what)
{
    for (size_t i = 0; i < room->people.count; i++)
        if (&room->people.list[i] != but)
            tell_line(room->people.list[i].outlet, "%s %s", name, what);
}

static void come_in(struct room *room, const enter *e)
{
    if (find(&room->people, e->outlet))
        return;
    if (strand_actor_watch(e->outlet)) /* a client may leave without a message: its end is noticed */
        strand_throw(&STRAND_SYSTEM, "no memory to watch one more");
    if (!e->again)
        tell_all(room, NULL, e->name, "comes in");
    add(&room->people, e->outlet, e->name);
    tell_line(e->outlet, e->again ? "* the room %s is back" : "* you are in %s", room->name);
}

static void go_out(struct room *room, strand_actor outlet)
{
    struct person *person = find(&room->people, outlet);
    if (!person)
        return;
    char name[NAME_MOST];
    memcpy(name, person->name, sizeof name);
    strand_actor_unwatch(outlet);
    drop(&room->people, person);
    tell_all(room, NULL, name, "goes out");
}

static void speak(struct room *room, const say *s)
{
    struct person *person = find(&room->people, s->outlet);
    if (!person)
        return;
    for (size_t i = 0; i < room->people.count; i++)
        if (&room->people.list[i] != person)
            tell_line(room->people.list[i].outlet, "<%s> %s", person->name, s->text.bytes);
}

static void call_anew(struct room *room, const rename_to *r)
{
    struct person *person = find(&room->people, r->outlet);
    if (!person)
        return;
    char old[NAME_MOST], what[NAME_MOST + 32] = "is called ";
    memcpy(old, person->name, sizeof old);
    memcpy(person->name, r->name, sizeof person->name);
    strcat(what, person->name);
    tell_all(room, person, old, what);
}

static void list_people(struct room *room, strand_actor outlet)
{
    for (size_t i = 0; i < room->people.count; i++)
        tell_line(outlet, "* %s", room->people.list[i].name);
}

static void be_room(void *state, strand_message *message)
{
    struct room *me = state;
    const enter *e = STRAND_IS(message, enter);
    const leave *l = STRAND_IS(message, leave);
    const rename_to *r = STRAND_IS(message, rename_to);
    const say *s = STRAND_IS(message, say);
    const who *w = STRAND_IS(message, who);
    const strand_terminated *t = STRAND_IS(message, strand_terminated);
    if (e)
        come_in(me, e);
    else if (l)
        go_out(me, l->outlet);
    else if (r)
        call_anew(me, r);
    else if (s)
        speak(me, s);
    else if (w)
        list_people(me, w->outlet);
    else if (t)
        go_out(me, t->who);
    else
        strand_throw(&STRAND_ERROR, "room %s: somebody has asked for it", me->name);
}

static void open_room(void *state, const void *args)
{
    struct room *me = state;
    memcpy(me->name, args, sizeof me->name);
    strand_tell(strand_actor_parent(), STRAND_MSG(begun, strand_actor_self()));
}

static void close_room(void *state)
{
    struct room *me = state;
    free(me->people.list);
}

const strand_actor_class room_class = {.size = sizeof room_class,
                                       .name = "room",
                                       .state_size = sizeof(struct room),
                                       .receive = be_room,
                                       .start = open_room,
                                       .stop = close_room};

/* ---- the lobby ----------------------------------------------------------------------------------------------- */

enum { ROOMS_MOST = 256 };

struct lobby {
    struct {
        char name[NAME_MOST];
        strand_actor room;
        struct people people;
    } rooms[ROOMS_MOST];
    size_t count;
};

static int open_or_find(struct lobby *lobby, const char *name)
{
    size_t i = 0;
    while (i < lobby->count && strcmp(lobby->rooms[i].name, name) != 0)
        i++;
    if (i == ROOMS_MOST)
        return -1;
    if (i == lobby->count) {
        memcpy(lobby->rooms[i].name, name, NAME_MOST);
        lobby->rooms[i].room = strand_actor_spawn_child(NULL, &room_class, name, NAME_MOST);
        lobby->count++;
    }
    return (int)i;
}

static void take_out(struct lobby *lobby, strand_actor outlet)
{
    for (size_t i = 0; i < lobby->count; i++) {
        struct person *person = find(&lobby->rooms[i].people, outlet);
        if (!person)
            continue;
        drop(&lobby->rooms[i].people, person);
        strand_tell(lobby->rooms[i].room, STRAND_MSG(leave, outlet));
    }
}

static void send_in(strand_actor room, const struct person *person, bool again)
{
    enter e = {.outlet = person->outlet, .again = again};
    memcpy(e.name, person->name, sizeof e.name);
    strand_tell(room, &enter_message, &e, sizeof e);
}

static void let_go(struct lobby *lobby, const strand_message *message, const go_to *g)
{
    int at = *g->room ? open_or_find(lobby, g->room) : -1;
    take_out(lobby, g->outlet);
    if (at < 0) {
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(went, {{0, 0}})));
        return;
    }
    if (strand_actor_watch(g->outlet))
        strand_throw(&STRAND_SYSTEM, "no memory to watch one more");
    struct people *people = &lobby->rooms[at].people;
    add(people, g->outlet, g->name);
    send_in(lobby->rooms[at].room, &people->list[people->count - 1], false);
    STRAND_IGNORE(strand_reply(message, STRAND_MSG(went, lobby->rooms[at].room)));
}

/* After a crash it knows nobody; in the beginning nobody is there. */
static void fill(struct lobby *lobby, strand_actor room)
{
    for (size_t i = 0; i < lobby->count; i++)
        for (size_t j = 0; lobby->rooms[i].room.bits[1] == room.bits[1] && j < lobby->rooms[i].people.count; j++)
            send_in(room, &lobby->rooms[i].people.list[j], true);
}

static void be_lobby(void *state, strand_message *message)
{
    struct lobby *me = state;
    const go_to *g = STRAND_IS(message, go_to);
    const list_rooms *l = STRAND_IS(message, list_rooms);
    const begun *b = STRAND_IS(message, begun);
    const strand_terminated *t = STRAND_IS(message, strand_terminated);
    if (g)
        let_go(me, message, g);
    else if (b)
        fill(me, b->room);
    else if (t)
        take_out(me, t->who);
    for (size_t i = 0; l && i < me->count; i++)
        tell_line(l->outlet, "* %s (%zu)", me->rooms[i].name, me->rooms[i].people.count);
}

static void close_lobby(void *state)
{
    struct lobby *me = state;
    for (size_t i = 0; i < me->count; i++)
        free(me->rooms[i].people.list);
}

const strand_actor_class lobby_class = {.size = sizeof lobby_class,
                                        .name = "lobby",
                                        .state_size = sizeof(struct lobby),
                                        .receive = be_lobby,
                                        .stop = close_lobby};

STRAND_MESSAGE_DEFINE(line, NULL);
STRAND_MESSAGE_DEFINE(enter, NULL);
STRAND_MESSAGE_DEFINE(leave, NULL);
STRAND_MESSAGE_DEFINE(rename_to, NULL);
STRAND_MESSAGE_DEFINE(say, NULL);
STRAND_MESSAGE_DEFINE(who, NULL);
STRAND_MESSAGE_DEFINE(crash, NULL);
STRAND_MESSAGE_DEFINE(go_to, NULL);
STRAND_MESSAGE_DEFINE(went, NULL);
STRAND_MESSAGE_DEFINE(list_rooms, NULL);
STRAND_MESSAGE_DEFINE(begun, NULL);
