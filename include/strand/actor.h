/*
 * Actors: private state behind a mailbox. An actor is a strand while it has messages, and costs almost nothing while it
 * has none.
 *
 *     STRAND_MESSAGE(deposit, { int64_t amount; });
 *     STRAND_MESSAGE(ask_balance, { char none; });
 *     STRAND_MESSAGE(balance, { int64_t amount; });
 *
 *     static void receive(void *state, strand_message *message)
 *     {
 *         int64_t *amount = state;
 *         const deposit *d;
 *         if ((d = STRAND_IS(message, deposit)))
 *             *amount += d->amount;
 *         else if (STRAND_IS(message, ask_balance))
 *             strand_reply(message, STRAND_MSG(balance, .amount = *amount));
 *         else
 *             strand_message_unhandled(message);
 *     }
 *
 *     static const strand_actor_class account =
 *         STRAND_ACTOR_CLASS(.name = "account", .state_size = sizeof(int64_t), .receive = receive);
 *
 *     STRAND_ACTORS(bank, NULL);
 *     strand_actor a = strand_actor_spawn(bank, NULL, &account, NULL, 0);
 *     strand_tell(a, STRAND_MSG(deposit, .amount = 5));
 *
 * An actor handles one message at a time. The messages of one sender arrive in the order in which it sent them. While
 * an actor handles a message it is an ordinary strand: it may block, spawn, join, throw, and be interrupted. Its
 * supervisor decides about an exception that leaves the handling: the actor that spawned it, and at last the owner of
 * the system. Sending a message happens before its handling, and the handling of one message happens before that of the
 * next.
 *
 * A reference to an actor is a plain value. It may be kept and passed on, and stays safe when the actor has ended: a
 * message sent to it then is a dead letter. Nothing in this header assumes that the actor is in this process.
 *
 * Which callers:
 *
 *   any thread            strand_tell, strand_tell_as, strand_actor_give
 *   an actor in a turn    strand_actor_spawn_child, strand_actor_scope, strand_actor_watch, strand_actor_unwatch,
 *                         strand_actor_become, strand_actor_unbecome, strand_actor_unstash_all, strand_actor_timer,
 *                         strand_actor_timer_stop, strand_actor_receive_timeout
 *   the same, with the    strand_message_forward, strand_message_take, strand_message_unhandled, strand_message_stash
 *   message in hand
 *   any strand of the     all other functions
 *   actor's run
 *   a signal handler      no function
 *
 * A turn is the time in which the strand of an actor handles a message or runs a function of the actor's class. Strands
 * that it has spawned are not in a turn. Calling a function of the second or third row elsewhere is misuse.
 *
 * Suspension: strand_ask and strand_actor_wait may suspend the caller and are cancellation points. strand_tell,
 * strand_tell_as, strand_actor_give, strand_reply and strand_message_forward do so too, but only while a full mailbox
 * lets them wait (strand_tell). All other functions never suspend, unless a function says otherwise.
 *
 * Cost: some tens of nanoseconds, and the lock of at most one actor, unless a function says otherwise. A function
 * throws only if its text says so. docs/model.md has the rules, docs/protocols/actor.md explains how they are kept.
 *
 * strand/actors.h, which this header includes, has systems, dispatchers, routers and published events.
 */
#ifndef STRAND_ACTOR_H
#define STRAND_ACTOR_H

#include "../strand.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A reference to an actor. {0} names no actor. References with equal bits name the same actor. */
typedef struct strand_actor {
    uint64_t bits[2];
} strand_actor;

/** A handle of an actor system. It goes stale when the block of STRAND_ACTORS has been left. */
typedef struct strand_actors {
    uint64_t bits[2];
} strand_actors;

/* ---- messages ---------------------------------------------------------------------------------------------- */

/** A message type. Its address identifies the type; it must live as long as the run. */
typedef struct strand_message_type {
    size_t size; /* sizeof(strand_message_type) */
    const char *name;
    /** Releases what the body of a message owns, unless the receiver took it (strand_message_take). It is called once:
     * when the handling has ended, or when the message becomes a dead letter (-EPIPE). It is not called for a message
     * that was not accepted (-EAGAIN, -ENOMEM). Blocking and throwing in it are misuse. It runs on any thread of the
     * run, or on the sender's thread if the run has ended. NULL: messages of the type own nothing. */
    void (*drop)(void *body);
    const void *reserved; /* NULL */
} strand_message_type;

/** A message in hand: one that the actor handles now. The struct is valid until the handling ends, or the message is
 * forwarded or stashed. The receiver may only write to the memory at `body`. */
typedef struct strand_message {
    const strand_message_type *type;
    strand_actor sender; /* {0}: the sender is no actor. For a question: accepts one message, the answer */
    void *body;          /* a copy, aligned to 16 bytes, or the memory that was given */
    size_t size;         /* the size of a copy in bytes; 0: the body was given */
} strand_message;

/** Define a message type of one source file: the struct `name` with its members, at least one, and the
 * strand_message_type `name_message`. Other source files may define other types of the same name. Not for headers,
 * where each file that includes the header would get a type of its own: that is refused. */
#define STRAND_MESSAGE(name, ...) STRAND_MESSAGE_WITH(name, NULL, __VA_ARGS__)
/** Define a message type of one source file whose messages own something, with a function `drop_` that releases it (see
 * strand_message_type). */
#define STRAND_MESSAGE_WITH(name, drop_, ...)                                                                          \
    STRAND_ONLY_IN_A_SOURCE_FILE_;                                                                                     \
    typedef struct name __VA_ARGS__ name;                                                                              \
    static const strand_message_type name##_message __attribute__((unused)) = STRAND_MESSAGE_TYPE_(#name, drop_)

/** Declare a message type that several source files use, in a header: the struct `name` with its members, at least one,
 * and the strand_message_type `name_message`. `name_message` is a name of the whole program: give the name a prefix, as
 * you do for functions. If two libraries define the same name, the linker refuses the second. */
#define STRAND_MESSAGE_DECLARE(name, ...)                                                                              \
    typedef struct name __VA_ARGS__ name;                                                                              \
    extern const strand_message_type name##_message
/** Define, in one source file, a message type that a header declares. `drop_` as in strand_message_type, or NULL. */
#define STRAND_MESSAGE_DEFINE(name, drop_) const strand_message_type name##_message = STRAND_MESSAGE_TYPE_(#name, drop_)

/** Write a message as three arguments: its type, a struct with these members, and the size. STRAND_MSG(name) or
 * STRAND_MSG(name, .member = value, ...). */
#define STRAND_MSG(...) STRAND_MSG_(__VA_ARGS__, )
/** Get the body of a message, as a pointer to the struct `name`, if the message has that type, else NULL. The macro
 * evaluates its argument `message` twice, so pass a variable, not a call. Cost: one comparison. */
#define STRAND_IS(message, name)                                                                                       \
    ((message)->type == &name##_message ? STRAND_CAST_(name *, (message)->body) : STRAND_NULL_(name *))

/**
 * Send a message to an actor. The call copies `size` bytes of `body`; the receiver owns from now on what the body owns.
 * The receiver sees as sender the actor in whose turn the caller is, or {0}. Cost: about 20 ns, with the handling.
 *
 * The call waits only if the actor's mailbox is full and its class says STRAND_MAILBOX_FULL_WAIT. Only then is it a
 * cancellation point, an interrupted call has sent nothing, and it is misuse in a no-suspend section.
 *
 * Returns 0, or an error. After -EPIPE and -EBADMSG the message is a dead letter and has been dropped; after the other
 * errors it was not accepted, and the caller still owns its contents.
 *
 * - -EPIPE: the actor has ended or is stopping, or does not exist.
 * - -EBADMSG: the receiver is an asker that expects an answer of another type.
 * - -EAGAIN: the mailbox is full (STRAND_MAILBOX_FULL_FAIL).
 * - -ENOMEM: there is no memory.
 * - -EDEADLK: the caller, in a turn, would wait for room in the mailbox of an actor that has failed and awaits the
 *   decision of the caller's actor: its child, or an actor further below, whose failure was escalated to it.
 *
 * Any thread may call it, but no signal handler. A message from outside the run is delivered later, never waits and
 * ignores the mailbox's limit. Then the result says less: 0, -ENOMEM, or -EPIPE if the run has ended and the message
 * was dropped.
 */
int strand_tell(strand_actor to, const strand_message_type *type, const void *body, size_t size);
/** Send a message to an actor in the name of another sender: an actor, which need not live, or {0}. In all other
 * respects it works like strand_tell. Returns what strand_tell returns. Cost: that of strand_tell. */
int strand_tell_as(strand_actor to, strand_actor sender, const strand_message_type *type, const void *body,
                   size_t size);
/** Send the memory at `body` itself to an actor, without a copy. The receiver owns the memory from now on; if it does
 * not take it (strand_message_take), the memory goes to the type's drop function. It waits like strand_tell, and any
 * thread may call it. Returns what strand_tell returns; after -EAGAIN, -ENOMEM and -EDEADLK the caller still owns the
 * memory. NULL is misuse, and so is memory in the stack of a shared fibre (strand/pool.h). Cost: that of strand_tell,
 * without the copy. */
int strand_actor_give(strand_actor to, const strand_message_type *type, void *body);
/** Answer a message: send a message to its sender. It waits like strand_tell. To answer later, or from a plain thread,
 * keep `message->sender` and use strand_tell. The first of several answers to a question counts, even if it is refused
 * with -EBADMSG. Returns what strand_tell returns, and -EPIPE if the message has no sender; the answer is a dead letter
 * then. */
STRAND_CHECKED int strand_reply(const strand_message *message, const strand_message_type *type, const void *body,
                                size_t size);
/** Forward the message in hand to another actor with its original sender, without a copy. It waits like strand_tell.
 * After 0, -EPIPE and -EBADMSG the message is no longer in hand and must not be used. After another error or an
 * interruption it still is. Returns what strand_tell returns, and -EREMOTE if the message is a question and the actor
 * belongs to another run, which could not answer it. Forwarding a message that is not in hand, or whose body was taken,
 * is misuse. */
int strand_message_forward(strand_message *message, strand_actor to);
/** Take over what the message in hand owns, so that it is not dropped. Returns the body, or NULL if it was taken
 * before. A copied body is valid while the message is handled; a given one belongs to the caller for good. A message
 * that is not in hand is misuse. Cost: a few ns. */
void *strand_message_take(strand_message *message);
/** Report the message in hand as unhandled: this is published (strand_actors_subscribe). If the message is a question
 * without an answer, its asker gets -EPIPE at once. The message is dropped like any other when its handling ends. A
 * message that is not in hand is misuse. Cost: O(subscribers). */
void strand_message_unhandled(strand_message *message);

/* ---- actors ------------------------------------------------------------------------------------------------ */

/**
 * A behaviour: the function by which an actor handles a message.
 *
 *     static void locked(void *state, strand_message *message)
 *     {
 *         if (STRAND_IS(message, unlock))
 *             strand_actor_unbecome();
 *         else
 *             strand_message_stash(message);
 *     }
 *
 *     strand_actor_become(locked);
 */
typedef void strand_behaviour(void *state, strand_message *message);

/**
 * The decisions of a supervisor about a failed actor. An actor fails when an exception leaves the handling of a
 * message, or its start function. The message is gone; if it was a question, its asker gets -EPIPE at once. Until the
 * parent has decided, the actor handles no message, and its children continue.
 */
enum strand_directive {
    /* Restart it: stop its children and wait for them, call its stop function, and call its start function with a
     * zeroed state. The actor keeps its reference, its name, its watches in both directions, and its waiting messages,
     * stashed ones first. It loses its behaviours and timers. While it waits for its children its mailbox counts as not
     * full, so that they need not wait for it, and askers get -EPIPE. */
    STRAND_RESTART = 0,
    STRAND_RESUME,  /* continue with the old state; failed children whose failures caused this one continue as well. An
                       actor whose start function failed has no state and is restarted */
    STRAND_STOP,    /* stop it, as by STRAND_STOP_NEXT */
    STRAND_ESCALATE /* let the supervisor fail with the same exception */
};

/** The policies of a full mailbox. They do not concern messages that an actor sends to itself, messages of its timers,
 * notices of ends, published events and messages from outside the run: these need no room, are always accepted and are
 * never pushed out. */
enum strand_mailbox_full {
    STRAND_MAILBOX_FULL_WAIT = 0, /* the sender waits for room, in FIFO order; it gets -EPIPE if the actor stops. Two
                             actors that wait for room in each other's mailboxes wait forever */
    STRAND_MAILBOX_FULL_FAIL,     /* the sender gets -EAGAIN and keeps the message */
    STRAND_MAILBOX_FULL_OLDEST    /* the oldest waiting message becomes a dead letter */
};

/**
 * The lowest priority of a message. Greater numbers count as this one.
 *
 *     static unsigned priority(const strand_message *message)
 *     {
 *         return message->type == &cancel_message ? 0 : STRAND_PRIORITY_LAST;
 *     }
 */
#define STRAND_PRIORITY_LAST 63u

/**
 * A class of actors. The library knows a class by its address; it must stay valid and unchanged until the system has
 * been left. Zero is the default of each field but size, state_size and receive. The functions run in turns of the
 * actor, each in a scope of its own (strand_actor_scope). They may block and throw, unless their text says otherwise.
 */
typedef struct strand_actor_class {
    size_t size;       /* sizeof(strand_actor_class); required */
    const char *name;  /* diagnostics only; NULL means "actor" */
    size_t state_size; /* in bytes */
    /** Handles a message. An exception that leaves it is a failure of the actor. Returning or throwing while it holds a
     *  mutex or a read-write lock is misuse, because another strand may handle the next message. */
    strand_behaviour *receive;
    /** Called in the actor's first turn, before any message, and again after a restart. `state` is zeroed; `args` are
     * the arguments of the spawn, which live as long as the actor. An exception that leaves it is a failure of the
     * actor. Without this function the state begins with a copy of `args`, as far as they fit. */
    void (*start)(void *state, const void *args);
    /** Called in the actor's last turn, when its children have ended, and before a restart. It is not called if `start`
     *  was called and has not returned. It is called if `start` has returned and a strand that it left behind has
     * failed. No message and no stop interrupts it. An exception that leaves it goes to the log. */
    void (*stop)(void *state);
    /** The maximum number of messages in the mailbox, the one in hand included; 0: no limit. Messages that the actor
     * has fetched together free their room together, when all of them have been handled (one by one with
     *  STRAND_MAILBOX_FULL_OLDEST). Stashed messages need no room. */
    unsigned max_mailbox;
    enum strand_mailbox_full mailbox_full;
    /** Returns the priority of a message: 0 comes first, STRAND_PRIORITY_LAST last, and equal ones in the order of
     *  arrival. It is called once per message, those of the library (strand_terminated, ...) included, before the actor
     *  fetches the next one. Messages that come back from the stash precede all others and are not asked for again.
     *  Blocking and throwing in it are misuse. NULL: the order of arrival. */
    unsigned (*priority)(const strand_message *message);
    /** Returns the decision about a child that has failed. `why` is valid during the call (strand_exception_keep). An
     *  exception that leaves it is a failure of this actor. Returning no directive is misuse. NULL: restart. */
    enum strand_directive (*decide)(void *state, strand_actor child, const strand_exception *why);
    bool all_for_one;      /* restart or stop all children when one of them is restarted or stopped. The parent first
                              decides all failures that wait for it, then tells each child once: a stop outweighs
                              restarts, and the longest pause holds */
    unsigned max_restarts; /* the maximum number of restarts of one child within restarts_within_ns; the next one stops
                               it;  0: no limit. For actors below /user more than 10 in a minute are a failure of the
                               system. Restarts by strand_actor_restart do not count */
    int64_t restarts_within_ns; /* counted from the first restart; 0: forever */
    int64_t backoff_ns; /* how long a child waits before its restart. The time doubles with each restart, and is reset
                           when the child has been up for restarts_within_ns (0: never). 0: no wait, but a child whose
                           start function fails waits 1 ms, 2 ms, and so on, up to a second */
    int64_t max_backoff_ns; /* the maximum of that wait; 0: 64 times backoff_ns */
    const char *dispatcher; /* the name of a strand_dispatcher; NULL: the one on which the system was opened */
    bool log_receives;      /* publish each handled message (STRAND_ACTOR_RECEIVE) */
} strand_actor_class;
/** Initialise a class, with `size` filled in: STRAND_ACTOR_CLASS(.name = "till", .receive = receive). C++ requires the
 * order of the fields. */
#define STRAND_ACTOR_CLASS(...) STRAND_SIZED_INIT_(strand_actor_class, __VA_ARGS__)

/** The optional attributes of an actor. Zero is the default of each field but `size`. */
typedef struct strand_actor_attr {
    size_t size;      /* sizeof(strand_actor_attr); required */
    const char *name; /* unique among its siblings; 1 to 63 bytes without '/' and control characters, not beginning with
                         '$'; copied. NULL: no name */
    const char *dispatcher; /* NULL: that of the class */
} strand_actor_attr;
/** Write attributes as an argument, with `size` filled in: STRAND_ACTOR_ATTR(.name = "till"). */
#define STRAND_ACTOR_ATTR(...) STRAND_SIZED_(strand_actor_attr, __VA_ARGS__)

/**
 * Spawn a top-level actor of a system, below /user. `attr` may be NULL. The call copies `size` bytes of `args`. The
 * actor first runs when it gets a message, or at once if its class has a start function. It ends when it, its parent or
 * its system is stopped. Cost: about 100 ns, with a message and the end.
 *
 * Returns the reference of the actor. Throws STRAND_SYSTEM if no actor was made: -ENOMEM without memory; -EEXIST if a
 * sibling has the name; -EINVAL for an invalid name; -ENOENT for an unknown dispatcher; -ESHUTDOWN if the system has
 * ended, or the parent stops or restarts; and the errors of strand_pool_open where an executor is used first. In that
 * last case other strands may run meanwhile, but the call is no cancellation point. A class or attributes without their
 * size, a class without `receive`, and a stale system are misuse.
 */
strand_actor strand_actor_spawn(strand_actors system, const strand_actor_attr *attr, const strand_actor_class *class_,
                                const void *args, size_t size);
/** Spawn a child of the actor in whose turn the caller is. It works like strand_actor_spawn, and the child ends before
 * its parent. The call is for turns only. Returns the reference of the child. Throws what strand_actor_spawn throws.
 * Cost: that of strand_actor_spawn. */
strand_actor strand_actor_spawn_child(const strand_actor_attr *attr, const strand_actor_class *class_, const void *args,
                                      size_t size);

/** The ways to stop an actor. */
enum strand_actor_stopping {
    STRAND_STOP_NEXT = 0, /* after the message in hand; waiting messages become dead letters */
    STRAND_STOP_LAST,     /* after the messages that are in the mailbox now, whatever their priority. A suspended actor
                             does not reach this stop */
    STRAND_STOP_NOW       /* like STRAND_STOP_NEXT, and cancel the strand that handles a message: the message becomes a
                             dead letter, which is no failure. The same holds for its children. Stop functions are not
                             interrupted */
};
/**
 * Stop an actor, after its children. An actor may stop itself. A stopping actor accepts no messages and no children;
 * its waiting messages become dead letters; senders that wait for room and askers get -EPIPE. When its children have
 * ended its stop function runs, and its watchers are notified. The call does not wait for that. A stop precedes all
 * waiting messages; a second call may hasten it. Returns 0, also for an actor that has ended; -ENOMEM; or -EREMOTE for
 * an actor of another run. With an error the actor is not stopped.
 */
int strand_actor_stop(strand_actor actor, enum strand_actor_stopping how);

/** Suspend an actor. A suspended actor handles no messages; they wait until it is resumed, restarted or stopped. The
 * call does not wait: it takes effect after the message in hand, and the latest of suspend and resume wins
 * (docs/protocols/actor.md). Returns what strand_actor_stop returns. */
int strand_actor_suspend(strand_actor actor);
/** Resume a suspended actor. The call does not wait: it takes effect after the message in hand, and the latest of
 * suspend and resume wins. Resuming a failed actor is the decision STRAND_RESUME, ahead of its supervisor. Returns what
 * strand_actor_stop returns. */
int strand_actor_resume(strand_actor actor);
/** Restart an actor, as a supervisor does by STRAND_RESTART. A suspended actor is resumed by it. It has no effect on
 * the root actor `/`. The call does not wait. Returns what strand_actor_stop returns. */
int strand_actor_restart(strand_actor actor);

/** Get the actor in whose turn the caller is, or {0} if the caller is in no turn. Cost: a few ns. */
strand_actor strand_actor_self(void);
/** Get the parent of the actor in whose turn the caller is, or {0} if the caller is in no turn or the actor is the
 * root. Cost: a few ns. */
strand_actor strand_actor_parent(void);
/** Get the system of the actor in whose turn the caller is, or {0} if the caller is in no turn. Cost: a few ns. */
strand_actors strand_actor_system(void);
/** Write the path of an actor: /user/..., by names, with $ and a number for an actor without a name. `room` is the size
 * of `text` in bytes; `text` may be NULL if it is 0. Returns the length of the path, as snprintf does, or 0 if the
 * actor has ended or belongs to another run. Cost: O(depth). */
size_t strand_actor_path(strand_actor actor, char *text, size_t room);
/** Find the actor at a path of names, such as "/user/shop/till". Actors without a name, and those below them, are not
 * found. The call takes the lock of all names of the system. Returns the actor, or {0} if there is none. NULL is
 * misuse. Cost: O(length). */
strand_actor strand_actor_find(strand_actors system, const char *path);
/** Get the scope of the message in hand, or of another running function of the class. The call is for turns only and
 * does not suspend. The handle goes stale when that function returns. Strands spawned in the scope must be joined or
 * cancelled before. Strands that are left are cancelled and waited for, and they are a failure of the actor
 * (STRAND_LIVE_STRANDS). Cost: a few ns. */
strand_scope strand_actor_scope(void);
/** Check whether an actor has ended. The actor may be of another run. Returns true if the actor has ended. */
bool strand_actor_ended(strand_actor actor);

/**
 * Ask an actor: send it a message and wait for the answer, which is the first message that is sent to the question's
 * sender. STRAND_INTO(type, place) copies the body of the answer to `place`; STRAND_INTO_GIVEN(type, place) stores the
 * address of a body that was given. The caller owns what the answer owns. `place` may lie anywhere. To wait for a
 * limited time, call it in a STRAND_DEADLINE block.
 *
 * The caller no longer owns the contents of the question, whatever this call returns or throws: a question that was not
 * accepted has been dropped. An interrupted call may have sent the question; a later answer becomes a dead letter.
 *
 * Returns 0, the errors of strand_tell, or:
 *
 * - -EPIPE if there will be no answer: the question became a dead letter, or was reported as unhandled
 *   (strand_message_unhandled), or its handling failed, or the actor that handled it ends or restarts without an
 *   answer, or waits for its children to restart. A question that still waits then is handled later, and its answer
 *   becomes a dead letter.
 * - -EBADMSG if the answer had another type, or was copied instead of given or the reverse. The answer was refused with
 *   the same code and is a dead letter.
 * - -ENOMEM if there is no memory, also for the answer.
 * - -EREMOTE if the actor belongs to another run; nothing was sent.
 * - -EDEADLK if the question, asked in a turn, waits at an actor that has failed and awaits the decision of the asking
 *   actor: its child, or an actor further below, whose failure was escalated to it. The code comes at once, or when the
 *   decision becomes that of the asking actor. Longer cycles are not detected: a strand that the handler has spawned
 *   and joins asks; or another actor asks, and the supervisor asks that one. If nothing else can go on, they are
 *   reported as a deadlock that names the supervisor (strand_waits_print); a deadline ends them in any case.
 *
 * An actor that handles the question and neither answers nor reports it as unhandled lets the caller wait until the
 * actor ends or restarts. If it forwards the question, this applies to its current receiver. Two actors that ask each
 * other wait forever. Asking oneself in a turn is misuse, and so is NULL for the place. Cost: that of two messages, and
 * of a switch to another strand and back.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_ask(strand_actor to, const strand_message_type *type, const void *body,
                                            size_t size, const strand_message_type *into_type, void *into,
                                            size_t into_size);
#define STRAND_INTO(name, at) &name##_message, (1 ? (at) : STRAND_NULL_(name *)), sizeof(name)
#define STRAND_INTO_GIVEN(name, at) &name##_message, (1 ? (at) : STRAND_NULL_(name **)), STRAND_CAST_(size_t, -1)
/** Wait until an actor has ended: its stop function has returned and its name is free. What it did happens before the
 * return. Returns 0; -ENOMEM, or -EREMOTE if the actor belongs to another run, without waiting; or -EDEADLK as
 * strand_ask does, if the actor has failed and awaits the decision of the caller's actor. Waiting for oneself in a turn
 * is misuse. An actor that waits in a turn for an actor above it waits forever. An interrupted call has no effect.
 * Cost: some tens of ns beside the wait. */
STRAND_BLOCKS int strand_actor_wait(strand_actor actor);

/** The notice that an actor has ended, which each watcher gets once, after all messages of that actor. It has no
 * sender. */
typedef struct strand_terminated {
    strand_actor who;
} strand_terminated;
extern const strand_message_type strand_terminated_message;
/** Watch an actor: the caller's actor gets a strand_terminated when it ends, or at once if it has ended. Watching it
 * again has no effect. The notice ends the watch; a restart of either actor does not. The call is for turns only.
 * Returns 0; or -ENOMEM, or -EREMOTE if the actor belongs to another run, and it is not watched then. Cost: O(log
 * watches of the caller). */
int strand_actor_watch(strand_actor actor);
/** Stop watching an actor. A notice that is in the mailbox already is discarded. The call is for turns only. Cost:
 * O(log watches of the caller). */
void strand_actor_unwatch(strand_actor actor);

/* ---- behaviours and stashed messages ----------------------------------------------------------------------- */

/** Push another behaviour, which handles the messages from the next one on. A restart pops all. The call is for turns
 * only. NULL is misuse. Throws STRAND_SYSTEM with -ENOMEM if there is no memory, and nothing has changed then. */
void strand_actor_become(strand_behaviour *receive);
/** Pop the last behaviour. The one below it, or `receive` of the class, handles the messages from the next one on. The
 * call is for turns only. Popping more behaviours than were pushed is misuse. */
void strand_actor_unbecome(void);
/** Stash the message in hand until strand_actor_unstash_all or a restart. The call is for turns only. The message is
 * not dropped, needs no room in the mailbox and must not be used any more; it becomes a dead letter when the actor
 * stops. A message that is not in hand is misuse. Throws STRAND_SYSTEM with -ENOMEM if there is no memory; the message
 * is still in hand then. */
void strand_message_stash(strand_message *message);
/** Put all stashed messages back, in their order, ahead of all waiting messages of any priority. The call is for turns
 * only. Returns the number of messages that were put back. Cost: O(stashed messages). */
size_t strand_actor_unstash_all(void);

/* ---- time -------------------------------------------------------------------------------------------------- */

/**
 * Start a timer of the calling actor, which sends it a message after `after_ns` nanoseconds (less than 0 counts as 0),
 * and then every `every_ns` nanoseconds (0: once). A tick is skipped while the message of an earlier one is still in
 * the mailbox: an actor that is slower than its timer handles one tick after the other, and its mailbox does not grow.
 * The call copies `size` bytes of `body`; the message has no sender. `key` is any address; a timer of the same key is
 * replaced. Timers end with a restart and with the actor, and what an unsent message owns is dropped then. A repeated
 * message of a type with a drop function is misuse. The call is for turns only. Cost: O(log timers). If there is no
 * memory when the timer is due, the message comes a millisecond later.
 *
 * Returns 0; -ENOMEM if there is no memory; or -EAGAIN if strand_options.max_strands is reached. After an error there
 * is no timer, and the caller still owns the contents.
 */
int strand_actor_timer(const void *key, int64_t after_ns, int64_t every_ns, const strand_message_type *type,
                       const void *body, size_t size);
/** Stop the timer of a key, if there is one; what its message owns is dropped. A message of it that is in the mailbox
 * already is discarded; this holds for a replaced timer too. The call is for turns only. Cost: O(log timers). */
void strand_actor_timer_stop(const void *key);
/** The notice that an actor has had no message for the time of strand_actor_receive_timeout. It has no sender. At most
 * one is in the mailbox, and it is discarded if a message comes before it is handled. */
typedef struct strand_receive_timeout {
    char none;
} strand_receive_timeout;
extern const strand_message_type strand_receive_timeout_message;
/** Let the calling actor get a strand_receive_timeout whenever `ns` nanoseconds have passed since its last message was
 * handled. 0 and less switch this off, and so does a restart. The call is for turns only. Returns what
 * strand_actor_timer returns. Cost: O(log timers). */
int strand_actor_receive_timeout(int64_t ns);

/* ---- behind the macros ------------------------------------------------------------------------------------- */

#define STRAND_MESSAGE_TYPE_(name, drop)                                                                               \
    {                                                                                                                  \
        sizeof(strand_message_type), (name), (drop), NULL                                                              \
    }
#define STRAND_ONLY_IN_A_SOURCE_FILE_                                                                                  \
    STRAND_STATIC_ASSERT_(__INCLUDE_LEVEL__ == 0,                                                                      \
                          "in a header, declare the message type by STRAND_MESSAGE_DECLARE; define it in one source "  \
                          "file, by STRAND_MESSAGE_DEFINE")

#ifdef __cplusplus
}
#endif
#include "actors.h"

/* As of a system header: see the end of strand.h. */
#ifdef __cplusplus
#pragma GCC system_header
#define STRAND_MSG_(name, ...)                                                                                         \
    &name##_message, &static_cast<const name &>(STRAND_RECORD_(name, __VA_ARGS__)), sizeof(name)
#else
#define STRAND_MSG_(name, ...) &name##_message, &__extension__(const name){__VA_ARGS__}, sizeof(name)
#endif
#endif
