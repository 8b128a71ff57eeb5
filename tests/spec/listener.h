/*
 * An actor that subscribes to events of its system: it logs "unhandled" for each message that an actor does not handle,
 * and counts dead letters. Other messages have no effect on it.
 */
#ifndef SPEC_LISTENER_H
#define SPEC_LISTENER_H

#include "test.h"

#include "strand/actor.h"

static _Atomic int dead_letters;

static void listen_to_events(void *state, strand_message *message)
{
    (void)state;
    const strand_published *p = STRAND_IS(message, strand_published);
    if (p && p->kind == STRAND_ACTOR_DEAD_LETTER)
        dead_letters++;
    else if (p)
        test_log("%s", p->kind == STRAND_ACTOR_UNHANDLED ? "unhandled" : "?");
}

static const strand_actor_class listener = {.size = sizeof listener, .name = "listener", .receive = listen_to_events};

static strand_actor spawn_listener(strand_actors system, strand_actor_events kinds)
{
    strand_actor l = strand_actor_spawn(system, NULL, &listener, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, l, kinds), 0);
    return l;
}

#endif
