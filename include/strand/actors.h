/*
 * Systems of actors: opening and leaving them, the dispatchers that actors run on, routers, and the events that a
 * system publishes. Actors and messages are in strand/actor.h, which includes this header.
 *
 * Which callers:
 *
 *   the owner of the system    strand_actors_join
 *   any strand of its run      all other functions
 *   plain threads, signal      no function
 *   handlers
 *
 * Suspension: strand_actors_join may suspend the caller and is a cancellation point. Leaving the block of STRAND_ACTORS
 * suspends and is none. All other functions never suspend, unless a function says otherwise.
 *
 * Cost: some tens of nanoseconds, unless a function says otherwise.
 */
#ifndef STRAND_ACTORS_H
#define STRAND_ACTORS_H

#include "actor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- systems ----------------------------------------------------------------------------------------------- */

/**
 * A dispatcher: where actors run and how long their turns are. Classes and attributes choose a dispatcher by its name.
 * Zero is the default of each field but size and name. Opening the system copies the dispatcher. `executor` chooses the
 * threads:
 *
 *     NULL, "", "default-executor", "thread-pool-executor"  the pool in which the system was opened
 *     "fork-join-executor"                                  a pool of its own
 *     "current-context-executor"                            the thread on which the system was opened
 *     "task-executor"                                       a pool of its own that grows
 *
 * The last one is for actors that block their threads. Its pool begins with one thread and gets another one whenever
 * more actors have turns, up to `threads` (0: 64). Its threads end with the system. If the system refuses threads, the
 * actors share those that exist. The names of executors also work as names of dispatchers, without a dispatcher of that
 * name: the system then makes one with defaults when an actor first uses it. Other names are refused with -ENOENT.
 */
typedef struct strand_dispatcher {
    size_t size;      /* sizeof(strand_dispatcher); required, else misuse */
    const char *name; /* 1 to 31 bytes; copied; required, else misuse */
    const char *executor;
    strand_pool pool;      /* a pool that outlives the system, instead of an executor; {0}: `executor` decides */
    int threads;           /* for a pool of its own, as in strand_pool_attr */
    const char *scheduler; /* likewise */
    int pin;               /* STRAND_PIN(index): run all actors on that thread of the pool; 0: on any thread */
    unsigned max_batch;    /* the maximum number of messages per turn, before other actors run; 0: 64 */
    int64_t quantum_ns;    /* the approximate maximum of a turn; 0: about a millisecond */
} strand_dispatcher;

/** The optional attributes of an actor system. Zero is the default of each field but `size`. */
typedef struct strand_actors_attr {
    size_t size;      /* sizeof(strand_actors_attr); required */
    const char *name; /* diagnostics only; copied, up to 31 bytes; NULL means "actors" */
    const strand_dispatcher *dispatchers;
    size_t dispatchers_count;
} strand_actors_attr;
/** Write attributes as an argument, with `size` filled in: STRAND_ACTORS_ATTR(.name = "bank"). */
#define STRAND_ACTORS_ATTR(...) STRAND_SIZED_(strand_actors_attr, __VA_ARGS__)

/**
 * Open an actor system until the enclosing block ends:
 *
 *     STRAND_ACTORS(name, attr);
 *
 * `attr` may be NULL. Throws STRAND_SYSTEM: -ENOMEM without memory; -EAGAIN if strand_options.max_strands is reached;
 * -ENOENT for an unknown executor; -ENXIO if a dispatcher is pinned to a thread that its pool lacks; and the errors of
 * strand_pool_open. Other strands may run meanwhile, but it is no cancellation point.
 *
 * Leaving the block stops all actors, children before their parents, and waits for them uninterruptibly. Messages in
 * hand are finished, or interrupted if the block is left by an exception; waiting messages become dead letters. Call
 * strand_actors_join before to let them be handled. The system then closes the pools that it opened. A failure that no
 * supervisor handles stops the system and interrupts the block, which throws that failure. Opening a system or leaving
 * its block in a no-suspend section is misuse, and so is using the handle afterwards.
 */
#define STRAND_ACTORS(name, attr)                                                                                      \
    STRAND_BLOCK_BEGINS_ strand_actors name STRAND_CLEANUP_(strand_actors_leave_) =                                    \
        strand_actors_enter_((attr), __FILE__, __LINE__)

/** Stop an actor system like leaving its block, without waiting. STRAND_STOP_NOW works like leaving it by an exception.
 * Only if there is no memory does the call wait, uninterruptibly, until other strands have released some; in a
 * no-suspend section that is misuse. */
void strand_actors_stop(strand_actors system, enum strand_actor_stopping how);
/** Run fn(arg) as a task on a dispatcher (NULL: the system's own), in a turn of a new actor below /user. The system
 * waits for it like for any actor. The result of fn is ignored, and an exception that leaves it is published as a
 * failure of that actor. Returns 0, -ENOMEM, -ENOENT, -ESHUTDOWN, or a code that strand_actor_spawn throws. NULL is
 * misuse, and so is an `arg` in the stack of a shared fibre. Cost: that of strand_actor_spawn. */
int strand_actors_run(strand_actors system, const char *dispatcher, strand_fn *fn, void *arg);
/** Wait until an actor system has ended, or its run is quiescent: no strand runs or is runnable, and no timer or
 * external event will send a message. Messages of suspended actors, and of actors that wait for each other, remain.
 * When the caller continues, other strands may have sent more. Only the owner of the system may call it, else it is
 * misuse. An interrupted call has no effect. Cost: a few microseconds after the last strand has suspended. */
STRAND_BLOCKS void strand_actors_join(strand_actors system);

/* ---- routers ----------------------------------------------------------------------------------------------- */

/** The rules by which a router chooses a routee, one of its actors. */
enum strand_route {
    STRAND_ROUTE_IN_TURN = 0, /* round robin */
    STRAND_ROUTE_RANDOM,
    STRAND_ROUTE_SMALLEST, /* the routee with the fewest waiting messages; among equals one that is not blocked;
                              O(count) */
    STRAND_ROUTE_ALL, /* every routee gets a copy; an asker gets the first answer, or the last error if no routee can
                         answer any more. Given messages and messages with a drop function cannot be copied; they
                         are published as unhandled */
    STRAND_ROUTE_HASH /* always the same routee for the same hash, as long as that routee lives; O(count) */
};

/** The description of a router. Zero is the default of each field but size, count and class_. */
typedef struct strand_router {
    size_t size; /* sizeof(strand_router); required */
    enum strand_route route;
    size_t count; /* the number of routees, which are children of the router */
    const strand_actor_class *class_;
    const void *args; /* the arguments of each routee; copied */
    size_t size_of_args;
    uint64_t (*hash)(const strand_message *message); /* required by STRAND_ROUTE_HASH; in a turn of the router */
    enum strand_directive (*decide)(void *none, strand_actor child, const strand_exception *why); /* NULL: restart */
    unsigned max_restarts; /* this and the following as in strand_actor_class */
    int64_t restarts_within_ns, backoff_ns, max_backoff_ns;
} strand_router;
/** Write a description as an argument, with `size` filled in: STRAND_ROUTER(.count = 4, .class_ = &worker). */
#define STRAND_ROUTER(...) STRAND_SIZED_(strand_router, __VA_ARGS__)

/** Spawn a router: an actor below /user that forwards each message to a routee, with its original sender. `attr` is the
 * router's and may be NULL. Stopping the router stops its routees; restarting it makes new ones. A routee that ends is
 * not replaced and gets no more messages. A message is unhandled, and an asker gets -EPIPE, if no routee is left, if
 * the hashed routee is stopping or (for a question) restarting, or if a full mailbox refuses it. If senders have to
 * wait for room, the router waits, but first decides about a failed routee. Returns the reference of the router. Throws
 * what strand_actor_spawn throws; an exception while the router makes its routees is the router's failure. A
 * description without size, count or class_, or with STRAND_ROUTE_HASH and without hash, is misuse. Cost: that of
 * strand_actor_spawn for the router and for each routee. */
strand_actor strand_router_spawn(strand_actors system, const strand_actor_attr *attr, const strand_router *router);

/* ---- what happens in a system ------------------------------------------------------------------------------ */

/** The kinds of published events. */
enum strand_actor_event {
    STRAND_ACTOR_DEAD_LETTER = 1, /* a message that no actor handles; with its receiver, sender and type */
    STRAND_ACTOR_UNHANDLED = 2,   /* a message for which strand_message_unhandled was called; likewise */
    STRAND_ACTOR_FAILURE = 4,     /* an actor has failed; with the exception */
    STRAND_ACTOR_RESTART = 8,     /* an actor restarts */
    STRAND_ACTOR_END = 16,        /* an actor has ended: its stop function has returned */
    STRAND_ACTOR_RECEIVE = 32     /* an actor of a class with log_receives has handled a message */
};

/** A set of kinds of events: 0, or some of enum strand_actor_event. */
typedef STRAND_FLAGS_(strand_actor_event) strand_actor_events;

/** The message that subscribers get for an event. It has no sender. */
typedef struct strand_published {
    enum strand_actor_event kind;
    bool unhandled;             /* for STRAND_ACTOR_RECEIVE: strand_message_unhandled was called */
    strand_actor actor, sender; /* the actor concerned, which is a message's receiver; and the message's sender */
    const strand_message_type *type;
    char path[96], class_name[32]; /* of `actor`; "..." and the end of a long path; "" if it had ended before */
    strand_exception *why;         /* for STRAND_ACTOR_FAILURE: the exception; valid while this message is handled */
} strand_published;
extern const strand_message_type strand_published_message;

/**
 * Subscribe an actor to the events of a system. It gets a strand_published for each event whose kind is in `kinds`, and
 * none of other kinds; 0 ends the subscription. The actor may belong to any system of the run. An actor gets no event
 * of its own failure. Events about a strand_published are not published, nor is a strand_terminated that becomes a dead
 * letter. The system of its receiver publishes a dead letter; if the receiver had ended, the system of the sender, or
 * else the system that was opened last.
 *
 * Events without a subscriber, and events for which there is no memory, go to the log: up to ten failures per second,
 * with path and class, and their total at the end of the system; the number of dead letters, with the first one, at the
 * end of the system.
 *
 * Returns 0; -ENOMEM if there is no memory; or -ESRCH if the actor has ended or belongs to another run. Cost: O(log
 * subscribers); publishing an event costs O(subscribers).
 */
int strand_actors_subscribe(strand_actors system, strand_actor actor, strand_actor_events kinds);

/* ---- behind the macros ------------------------------------------------------------------------------------- */

STRAND_SECTION_EXCLUDES_ strand_actors strand_actors_enter_(const strand_actors_attr *attr, const char *file, int line);
void strand_actors_leave_(strand_actors *system) STRAND_SECTION_EXCLUDES_;

#ifdef __cplusplus
}
#endif
#endif
