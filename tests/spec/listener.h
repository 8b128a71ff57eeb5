/*
 * An actor that logs "unhandled" for each message of its system that an actor does not handle.
 */
#ifndef SPEC_UNHANDLED_H
#define SPEC_UNHANDLED_H

#include "test.h"

#include "strand/actor.h"

static void log_unhandled(void *state, strand_message *message)
{
    (void)state;
    const strand_published *p = STRAND_IS(message, strand_published);
    test_log("%s", p->kind == STRAND_ACTOR_UNHANDLED ? "unhandled" : "?");
}

static const strand_actor_class listener = {.size = sizeof listener, .name = "listener", .receive = log_unhandled};

static strand_actor spawn_listener(strand_actors system)
{
    strand_actor l = strand_actor_spawn(system, NULL, &listener, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, l, STRAND_ACTOR_UNHANDLED), 0);
    return l;
}

#endif
