/*
 * chat: rooms for talking, by lines over TCP; nc is the client.
 *
 *   /nick NAME set the name
 *   /join ROOM enter a room, which is made if it does not exist
 *   /leave leave the room
 *   /who           who is in it
 *   /rooms         which rooms there are
 *   /crash crash the room: it fails and is restarted, and its members are in it again
 *   /quit          go
 *   anything else  is said in the room
 *
 * A client is a strand, which reads, and an actor, its outlet, which writes: a client that reads too slowly loses
 * lines, the oldest first, and no other client waits for it. The tree of actors:
 *
 *   /user/lobby knows the room of each client, and supervises the rooms
 *     a room knows its members; forwards their lines
 *   /user/outlets     supervises the outlets
 *     an outlet       has a socket to write to
 *
 * A crashed room starts empty and notifies the lobby, which lets the members that it knows enter again.
 */
#ifndef CHAT_H
#define CHAT_H

#include <strand.h>
#include <strand/actor.h>

#include <stdbool.h>

enum { NAME_MOST = 32, LINE_MOST = 1000 };

struct text {
    char bytes[LINE_MOST + 2 * NAME_MOST + 8];
};

/* To an outlet: write this line. Its own end of the conversation is over when it is stopped. */
STRAND_MESSAGE_DECLARE(line, { struct text text; });

/* To a room: a member enters. */
STRAND_MESSAGE_DECLARE(enter, {
    strand_actor outlet;
    char name[NAME_MOST];
    bool again; /* after a crash: the members get no line about it */
});
STRAND_MESSAGE_DECLARE(leave, { strand_actor outlet; });
STRAND_MESSAGE_DECLARE(rename_to, {
    strand_actor outlet;
    char name[NAME_MOST];
});
STRAND_MESSAGE_DECLARE(say, {
    strand_actor outlet;
    struct text text;
});
STRAND_MESSAGE_DECLARE(who, { strand_actor outlet; });
STRAND_MESSAGE_DECLARE(crash, { char none; });

/* To the lobby: go into a room, out of one ("": and into none), or ask which there are. */
STRAND_MESSAGE_DECLARE(go_to, {
    strand_actor outlet;
    char name[NAME_MOST], room[NAME_MOST];
});
STRAND_MESSAGE_DECLARE(went, {
    strand_actor room; /* {0}: none */
});
STRAND_MESSAGE_DECLARE(list_rooms, { strand_actor outlet; });
/* From a room that has restarted. */
STRAND_MESSAGE_DECLARE(begun, { strand_actor room; });

extern const strand_actor_class lobby_class, room_class, outlet_class;

/* printf to an outlet. */
void tell_line(strand_actor outlet, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct server {
    strand_actors system;
    strand_actor lobby;
    strand_scope clients;
};
/* The strand of a connection, which it owns. */
struct client {
    struct server *server;
    int fd;
};
void *serve_client(void *client);

#endif
