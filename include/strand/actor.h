/*
 * Actors: state that is nobody else's, behind a queue of messages. An actor is a strand while it has messages, and
 * almost nothing while it has none.
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
 *             strand_unhandled(message);
 *     }
 *
 *     static const strand_actor_class account = {
 *         .size = sizeof account, .name = "account", .state_size = sizeof(int64_t), .receive = receive};
 *
 *     STRAND_ACTORS(bank, NULL);
 *     strand_actor a = strand_actor_spawn(bank, NULL, &account, NULL, 0);
 *     strand_tell(a, STRAND_MSG(deposit, .amount = 5));
 *
 * One message is handled at a time, those of one sender in the order in which it has sent them. While it handles one an
 * actor is an ordinary strand: it may block, spawn, join, be interrupted, throw. What it throws is its supervisor's
 * business: the actor that has spawned it, and in the end the system's owner. What happens before a message is sent is
 * seen where it is handled, and what was done in handling one where the next is.
 *
 * A reference to an actor is a value. It may be kept and passed on as one likes, and stays safe when the actor has
 * ended: what is sent to it then is a dead letter. Nothing here assumes that the actor is in this process.
 *
 * Any strand of the run may call a function, unless it says "in a turn": only the strand that handles a message of an
 * actor, or runs one of its class' functions, and none that this has spawned; by others it is misuse. Plain threads,
 * and strands of other runs, can tell an actor something, and give it something, and that is all. What does not say
 * that it waits does not block, throws nothing, takes some dozens of ns, and wants no more than the lock of one actor
 * for that. docs/model.md has the rules in one place, docs/protocols/actor.md how they are kept.
 */
#ifndef STRAND_ACTOR_H
#define STRAND_ACTOR_H

#include "../strand.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A reference to an actor; {0}: nobody. Equal bits are the same actor. */
typedef struct strand_actor {
    uint64_t bits[2];
} strand_actor;

/** The handle of a system of actors; goes stale when its block has been left. */
typedef struct strand_actors {
    uint64_t bits[2];
} strand_actors;

/* ---- messages ---------------------------------------------------------------------------------------------- */

/** A type of messages; its address is what tells it from others. It lasts as long as the run. */
typedef struct strand_message_type {
    const char *name;
    /** Gives back what a message owns that nobody has taken: called once with its body, when its handling has ended, or
     *  it is a dead letter (-EPIPE); not if it was not taken in (-EAGAIN, -ENOMEM). May not block, nor throw: misuse.
     *  On any thread of the run; when that has ended, on the one that sends. NULL: it owns nothing. */
    void (*drop)(void *body);
} strand_message_type;

/** A message, as long as it is being handled: not any more when it has been passed on, nor while it is put aside. Only
 *  what `body` points to may be written to. */
typedef struct strand_message {
    const strand_message_type *type;
    strand_actor sender; /* {0}: it was sent by no actor. Of a question: can be told one message, the answer */
    void *body;          /* the copy, 16-byte aligned, or what was given; the receiver's while it handles it */
    size_t size;         /* of a copy, in bytes; 0: it was given */
} strand_message;

/** A structure that can be sent, with one member at least, and its type, name_message. At file scope, in a header
 *  too. */
#define STRAND_MESSAGE(name, ...) STRAND_MESSAGE_WITH(name, NULL, __VA_ARGS__)
/** The same of messages that own something, which `drop_` gives back: see strand_message_type. */
#define STRAND_MESSAGE_WITH(name, drop_, ...)                                                                          \
    typedef struct name __VA_ARGS__ name;                                                                              \
    extern const strand_message_type name##_message __attribute__((weak));                                             \
    const strand_message_type name##_message = {#name, drop_}

/** The same without its type, which is defined elsewhere. */
#define STRAND_MESSAGE_DECLARE(name, ...)                                                                              \
    typedef struct name __VA_ARGS__ name;                                                                              \
    extern const strand_message_type name##_message

/** What is sent, in the place of three arguments: the type, and a structure with these members: STRAND_MSG(name),
 *  STRAND_MSG(name, .member = value, ...). */
#define STRAND_MSG(...) STRAND_MSG_(__VA_ARGS__, )
/** The body of a message, if it is of that type; else NULL. `message` is evaluated twice. */
#define STRAND_IS(message, name) ((message)->type == &name##_message ? (name *)(message)->body : (name *)(void *)0)

/**
 * Send a message: `size` bytes of `body` are copied, and what they own is the receiver's from now on. The sender that
 * it sees is the actor in whose turn the caller is, else {0}. Never waits, unless the actor's mailbox is full and
 * senders are to wait then (STRAND_FULL_WAIT): only there it is a cancellation point, interrupted it has sent nothing,
 * and where nothing may suspend it is misuse. Returns 0; or -EPIPE: the actor has ended, or stops, or there is none,
 * and the message is a dead letter, and dropped; or -EAGAIN: its mailbox is full (STRAND_FULL_FAIL); or -ENOMEM. With
 * the last two it was not taken in, and the caller still owns its contents. Returns -EBADMSG if the receiver is an
 * asker that expects an answer of another type; the message is a dead letter then, too. Returns -EDEADLK, and does not
 * take the message in, if the caller is the actor's parent, in a turn, and would wait for room while the failed actor
 * waits for its decision. Some 20 ns, with its handling.
 *
 * Any thread, but not handlers of signals. From outside of the run it is handed in, never waits, and finds room in any
 * mailbox. What becomes of it is not known: 0; or -ENOMEM; or -EPIPE: the run has ended, and it was dropped.
 */
int strand_tell(strand_actor to, const strand_message_type *type, const void *body, size_t size);
/** The same with another sender: an actor that need not live, or {0}. */
int strand_tell_as(strand_actor to, strand_actor sender, const strand_message_type *type, const void *body,
                   size_t size);
/** Send what `body` points to itself: it is the receiver's from now on, and goes to the type's drop function if that
 *  does not take it. Waits and returns as strand_tell does; if it was not taken in it is the caller's still. Any
 *  thread. NULL is misuse, and so is what lies in the stack of an opened fibre (strand/pool.h). */
int strand_give(strand_actor to, const strand_message_type *type, void *body);
/** Answer a message: tell its sender, and wait and return as that does. One without a sender: -EPIPE, and a dead
 * letter. Who answers later, or from a plain thread, keeps `sender`, and tells that. Of several answers to a question
 * the first one counts, also if it is refused (-EBADMSG). */
STRAND_CHECKED int strand_reply(const strand_message *message, const strand_message_type *type, const void *body,
                                size_t size);
/** Pass the message in hand on, as its sender has sent it; nothing is copied. Waits and returns as strand_tell does.
 *  With 0 and -EPIPE it is not the caller's any more, and not to be touched; else, and interrupted, it is in hand
 *  still; -EREMOTE, too: a question, to an actor of another run, which could not answer it. Misuse, here and in the two
 *  below: of a message that the caller does not handle, or not any more. Misuse, too: of one whose body was taken. */
int strand_forward(strand_message *message, strand_actor to);
/** What the message in hand owns is the caller's: it is not dropped. Returns its body, NULL if it was taken before. A
 *  copy lasts as long as it is handled; what was given is the caller's for good. */
void *strand_take(strand_message *message);
/** The behaviour has no use for the message in hand: that is published (strand_actors_subscribe). It is dropped as any
 *  other. O(those who have subscribed). */
void strand_unhandled(strand_message *message);

/* ---- actors ------------------------------------------------------------------------------------------------ */

/** What an actor does with a message. */
typedef void strand_behaviour(void *state, strand_message *message);

/**
 * What becomes of an actor that has failed: an exception has left the handling of a message, or its function for the
 * beginning. The message is gone, and who has asked by it gets -EPIPE, at once. It handles no other, and its children
 * go on, until this has been decided by its parent.
 */
enum strand_directive {
    /* It begins anew: its children are stopped, and have ended; then its function for the end, a fresh state, and
     * its function for the beginning. Kept are its reference, its name, whom it watches and who watches it, and the
     * messages that wait, first of them those put aside. Behaviours and timers are gone. While it waits for its
     * children its mailbox is not full, so that they don't wait for it; and who asks it, or has asked it, gets
     * -EPIPE. */
    STRAND_RESTART = 0,
    STRAND_RESUME,  /* it goes on with its state, and so do children by whose failures it has failed. One whose function
                       for the beginning has failed has no state, and is restarted */
    STRAND_STOP,    /* as by STRAND_STOP_NEXT */
    STRAND_ESCALATE /* its supervisor fails in the same way */
};

/** What becomes of a message to an actor whose mailbox is full. What an actor tells itself, its timers, notices of
 *  ends, what is published, and what comes from outside of the run take no room, come in always, and are not pushed
 *  out. */
enum strand_mailbox_full {
    STRAND_FULL_WAIT = 0, /* its sender waits until there is room, first come, first served; -EPIPE if the actor stops.
                             Two actors that wait for room in each other's mailboxes wait for ever */
    STRAND_FULL_FAIL,     /* the sender gets -EAGAIN, and has it still */
    STRAND_FULL_OLDEST    /* the oldest that waits, and was not taken up, is a dead letter */
};

/** The last of the priorities of messages: what is above counts as this. */
#define STRAND_PRIORITY_LAST 63u

/**
 * What all actors of a kind have in common. It is known by its address, and has to stay, unchanged, until the system
 * has been left. Zero is the default of each but size, state_size and receive. Its functions run in turns of the actor,
 * each in a scope of its own (strand_actor_scope), and may block, and throw, unless it says otherwise.
 */
typedef struct strand_actor_class {
    size_t size;       /* sizeof(strand_actor_class); required */
    const char *name;  /* for people; NULL: "actor" */
    size_t state_size; /* bytes */
    /** Handles a message. What it throws is a failure of the actor. To return, or throw, with a mutex or a read-write
     *  lock held is misuse: the next message may be another strand's. */
    strand_behaviour *receive;
    /** In the actor's first turn, before any message, and again after a restart: `state` is zeroed, `args` are those of
     *  the spawn, which last as long as the actor. What it throws is a failure of the actor. Without it the state
     *  begins with the bytes of `args`, as many as there is room for. */
    void (*start)(void *state, const void *args);
    /** In its last turn, when its children have ended; before a restart, too. Does not run if `start` has been called
     *  and has not returned. Runs if `start` has returned and a strand that it left behind has failed. No message or
     *  stop interrupts it; what it throws goes to the log. */
    void (*stop)(void *state);
    /** How many messages may wait, the one in hand and those after it; 0: any number. There is room again when those
     *  that it has taken up together have been handled (one at a time, where the oldest are pushed out); what is put
     *  aside takes none. */
    unsigned mailbox_most;
    enum strand_mailbox_full mailbox_full;
    /** Which messages come first: those of priority 0, up to STRAND_PRIORITY_LAST; among equals, in order of arrival.
     *  Called once for each, the library's own too (strand_terminated, ...), before the actor takes up the next; what
     *  was put aside is before all, and not asked for again. May not block, nor throw: misuse. NULL: in order of
     *  arrival. */
    unsigned (*priority)(const strand_message *message);
    /** Supervision of its children: what becomes of one that has failed. `why` is valid during the call
     *  (strand_exception_keep). What it throws is its own failure; no directive is misuse. NULL: they are restarted. */
    enum strand_directive (*decide)(void *state, strand_actor child, const strand_exception *why);
    bool all_for_one;        /* that one is restarted, or stopped, happens to all of them, to each by itself */
    unsigned restarts_most;  /* more restarts of one child in that time: it is stopped; 0: any number. Of those below
                                /user more than 10 in a minute are the system's failure. Those by hand don't count */
    int64_t restarts_within; /* ns, from the first of them on; 0: ever */
    int64_t backoff;         /* ns that a child rests before it is restarted; twice as long each time, and as at first
                                when it has been up for restarts_within (0: never). 0: it doesn't; but one whose
                                function for the beginning fails rests a ms, and so on, up to a second */
    int64_t backoff_most;    /* ns; it rests no longer than that; 0: 64 times backoff */
    const char *dispatcher;  /* where they run: see strand_dispatcher; NULL: where the system was opened */
    bool log_receives;       /* what it handles is published: STRAND_ON_RECEIVE */
} strand_actor_class;

/** What one actor may be told at its spawn. */
typedef struct strand_actor_attr {
    size_t size;      /* sizeof(strand_actor_attr); required */
    const char *name; /* among its siblings no other has it; 1 to 63 bytes, without '/' and control characters, '$'
                         not the first; copied. NULL: it has none */
    const char *dispatcher; /* NULL: its class' */
} strand_actor_attr;
#define STRAND_ACTOR_ATTR(...) STRAND_SIZED_(strand_actor_attr, __VA_ARGS__)

/**
 * Make an actor: one of the system's own, below /user, whoever calls; or, in a turn, a child of that actor. attr may be
 * NULL. `size` bytes of `args` are copied. It is a strand first when it gets a message, or if its class has a start
 * function. It ends when it is stopped, by whomever, or its parent, or its system. Throws STRAND_SYSTEM, and there is
 * no actor: -ENOMEM; -EEXIST: a sibling has that name; -EINVAL: none can have it; -ENOENT: there is no such dispatcher;
 * -ESHUTDOWN: the system has ended, or the parent stops or begins anew; and where an executor is asked for first, what
 * strand_pool_open throws. Then others may run meanwhile; it is no cancellation point. Misuse: a class, or attr,
 * without its size; a class that receives nothing; a system whose block has been left. Some 100 ns, with a message and
 * the end.
 */
strand_actor strand_actor_spawn(strand_actors system, const strand_actor_attr *attr, const strand_actor_class *class_,
                                const void *args, size_t size);
strand_actor strand_actor_spawn_child(const strand_actor_attr *attr, const strand_actor_class *class_, const void *args,
                                      size_t size);

/** How an actor is stopped. */
enum strand_stopping {
    STRAND_STOP_NEXT = 0, /* after the message in hand; those that wait are dead letters */
    STRAND_STOP_LAST,     /* after the messages that are there already, whatever their priority. It is one of them: an
                             actor that rests does not come to it */
    STRAND_STOP_NOW       /* as NEXT, and the strand that handles a message is cancelled: that is a dead letter, and no
                             failure. So it is with its children. Functions for the end are not interrupted */
};
/**
 * Stop an actor, and its children before it; oneself, too. When it stops it takes no messages and no children any more,
 * what waits is dead letters, and who waits for room, or for an answer, gets -EPIPE. When its children have ended, its
 * function for the end runs, and who watches it is told. Does not wait for that. A stop comes before all else that the
 * actor is told; another one may hasten it. Returns 0, also for one that has ended; -ENOMEM, or -EREMOTE, of one of
 * another run: nothing was done.
 */
int strand_actor_stop(strand_actor actor, enum strand_stopping how);

/** Let an actor rest: it handles no messages, which go on waiting, until it is resumed, restarted, or stopped. After
 *  the message in hand, as all of these. Of resting and going on, what it was told last holds
 *  (docs/protocols/actor.md). To resume one that has failed is what STRAND_RESUME does, before its supervisor decides.
 *  Return as strand_actor_stop does. */
int strand_actor_suspend(strand_actor actor);
int strand_actor_resume(strand_actor actor);
/** Let it begin anew, as a supervisor does by STRAND_RESTART; it rests no more. Of `/` it has no effect. Returns as
 *  strand_actor_stop does. */
int strand_actor_restart(strand_actor actor);

/** The actor in whose turn the caller is, its parent, its system; {0}: none. */
strand_actor strand_actor_self(void);
strand_actor strand_actor_parent(void);
strand_actors strand_actor_system(void);
/** The path of an actor: /user/..., by names; $ and a number for one that has none. As snprintf: returns its length, 0
 *  if the actor has ended, or is another run's; `text` may be NULL if there is no room. O(depth). */
size_t strand_actor_path(strand_actor actor, char *text, size_t room);
/** The actor at a path of names, such as "/user/shop/till"; {0}: there is none. Those without a name are not found, nor
 *  who is below them. Takes a lock that all names of the system have. NULL is misuse. O(length). */
strand_actor strand_actor_find(strand_actors system, const char *path);
/** The scope of the message in hand, or of another function of the class. What is spawned in it is to be joined, or
 *  cancelled, before that returns; what is left is cancelled, waited for, and a failure (STRAND_LIVE_STRANDS). In a
 *  turn. */
strand_scope strand_actor_scope(void);
/** Whether an actor has ended; of another run, too. */
bool strand_actor_ended(strand_actor actor);

/**
 * Send a message as strand_tell does, and wait for the answer: whatever is told its sender first. The answer's body is
 * copied, STRAND_INTO(type, place), or its address if it was given (STRAND_INTO_GIVEN), and what it owns is the
 * caller's; the place may be anywhere. Use STRAND_DEADLINE to wait for so long only. Returns 0; what strand_tell does;
 * -EPIPE also if there will be no answer: the message has become a dead letter, or its handling has failed, or the
 * actor that has handled it ends, or begins anew, without having answered; or it waits for its children to begin anew:
 * a question that waits is handled after that all the same, and its answer a dead letter. -EREMOTE: it is of another
 * run, and was sent nothing; -EBADMSG: the answer was of another type, or copied and not given, or the other way
 * round: it was refused, by the same code, and is a dead letter; -ENOMEM; -EDEADLK: the question is one of its
 * parent's, in a turn, and waits at an actor that has failed, and waits for the decision of that parent: so there is no
 * answer before the turn ends.
 *
 * An actor that handles the question and does not answer keeps the caller waiting until the actor ends or restarts. If
 * it had no memory for the answer, the caller gets -ENOMEM when the question has been handled. If it passes the
 * question on, the same holds for the actor that has it then. Interrupted, it has sent the message or not; an answer
 * that comes later is a dead letter. The caller no longer owns the contents of the question, whatever this returns or
 * throws: a question that was not taken in has been dropped, with the caller's body. Misuse: to ask oneself, in a turn;
 * NULL for the place. Two that ask each other wait for ever.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_ask(strand_actor to, const strand_message_type *type, const void *body,
                                            size_t size, const strand_message_type *into_type, void *into,
                                            size_t into_size);
#define STRAND_INTO(name, at) &name##_message, (1 ? (at) : (name *)(at)), sizeof(name)
#define STRAND_INTO_GIVEN(name, at) &name##_message, (1 ? (at) : (name **)(at)), (size_t)-1
/** Wait until an actor has ended: its function for that has returned, and its name is free. What it did is seen.
 *  Returns 0; -ENOMEM, or -EREMOTE, of one of another run: it was not waited for; -EDEADLK: the caller is its
 *  parent, in a turn, and the failed actor waits for that parent's decision. Misuse: to wait for oneself, in a turn. An
 *  actor that waits in a turn for an actor above it waits for ever. */
STRAND_BLOCKS int strand_actor_wait(strand_actor actor);

/** Sent to those who watch an actor when it has ended: after all that it has sent them, once. It has no sender. */
typedef struct strand_terminated {
    strand_actor who;
} strand_terminated;
extern const strand_message_type strand_terminated_message;
/** Be told of an actor's end by a message, at once if it has ended. Watching it again changes nothing; the notice ends
 *  that, a restart of either does not. In a turn. Returns 0; -ENOMEM, or -EREMOTE, of one of another run: it is not
 *  watched. O(log of those that the caller watches). */
int strand_watch(strand_actor actor);
/** Do not be told any more, not even by a message that is in the mailbox already. In a turn. O(log of those that
 *  the caller watches). */
void strand_unwatch(strand_actor actor);

/* ---- what an actor becomes --------------------------------------------------------------------------------- */

/** Handle messages by another function from the next one on, until it is taken back, or the actor is restarted. A
 *  stack. In a turn. Throws STRAND_SYSTEM (-ENOMEM), and nothing has changed. Misuse: NULL; to take back what there is
 *  not. */
void strand_become(strand_behaviour *receive);
void strand_unbecome(void);
/** Put the message in hand aside, until strand_unstash_all, or a restart. It is not dropped, takes no room in the
 *  mailbox, and may not be touched; when the actor stops, it is a dead letter. Misuse: of another message. Throws
 *  STRAND_SYSTEM (-ENOMEM), and has it in hand still. */
void strand_stash(strand_message *message);
/** What was put aside comes next, in its order, before all that waits, of whatever priority. Returns how many these
 *  are. In a turn. O(those). */
size_t strand_unstash_all(void);

/* ---- time -------------------------------------------------------------------------------------------------- */

/**
 * Tell the calling actor this in `ns` nanoseconds (less than 0: 0), and then again every so many (0: once); ticks that
 * were missed are not made up for. `size` bytes of `body` are copied; it has no sender. One of the same key, which is
 * any address, is replaced. Timers end with a restart, and with the actor; what a message owns that was not sent then
 * is dropped, and only one that owns nothing can be sent again and again: else misuse. In a turn. Returns 0; -ENOMEM,
 * or -EAGAIN: options.max_strands is reached: nothing was done, and what it owns is the caller's. If there is no memory
 * when it is due, it comes a millisecond later. O(log of the timers).
 */
int strand_actor_timer(const void *key, int64_t ns, int64_t every, const strand_message_type *type, const void *body,
                       size_t size);
/** Take it back, if there is one of that key; what its message owns is dropped. Nor is a message of it
 *  handled that is in the mailbox already; so it is with one that is replaced. In a turn. O(log of the timers). */
void strand_actor_timer_stop(const void *key);
/** Sent to an actor that had no message for so long; it has no sender. One at a time, and only if it holds still when
 *  its turn comes. */
typedef struct strand_receive_timeout {
    char none;
} strand_receive_timeout;
extern const strand_message_type strand_receive_timeout_message;
/** Be told so, again and again, each time that the last message was handled `ns` nanoseconds ago, and none is in hand.
 *  0 and less: not any more. A restart ends it. In a turn. Returns as strand_actor_timer does. */
int strand_actor_receive_timeout(int64_t ns);

/* ---- systems ----------------------------------------------------------------------------------------------- */

/**
 * Where actors run, under a name of its own, which classes and attributes choose, and how long their turns are. Zero is
 * the default of each but size and name; it is copied when the system is opened. The executor says what its threads
 * are:
 *
 *     NULL, "", "default-executor", "thread-pool-executor"  those of the pool in which the system was opened
 *     "fork-join-executor"                                  those of a pool of its own
 *     "current-context-executor"                            the one that the system was opened on
 *     "task-executor"                                       those of a pool of its own that grows
 *
 * The last is for actors that block their threads: its pool begins with one, and gets one more whenever more of them
 * have turns, up to `threads` (0: 64). None goes before the system ends; where none can be had they share what there
 * is. These names can be chosen without a dispatcher of that kind, too, and mean one that is all defaults, made when an
 * actor first asks for it. Others are refused: -ENOENT.
 */
typedef struct strand_dispatcher {
    size_t size;      /* sizeof(strand_dispatcher); required: without it misuse */
    const char *name; /* 1 to 31 bytes; copied; required: without it misuse */
    const char *executor;
    strand_pool pool; /* this one, which has to outlive the system, without an executor; {0}: what the executor says */
    int threads;      /* of a pool of its own, and its scheduler: as in strand_pool_attr */
    const char *scheduler;
    int pin;         /* STRAND_PIN(index): all on that thread of the pool; 0: on any */
    unsigned batch;  /* an actor handles so many messages, and then it is the others' turn; 0: 64 */
    int64_t quantum; /* or so many ns, about; 0: until its thread looks around, as it does every millisecond or so */
} strand_dispatcher;

/** What a system may be told. Zero is the default of each. */
typedef struct strand_actors_attr {
    size_t size;      /* sizeof(strand_actors_attr); required */
    const char *name; /* for people; copied, up to 31 bytes; NULL: "actors" */
    const strand_dispatcher *dispatchers;
    size_t dispatchers_count;
} strand_actors_attr;
#define STRAND_ACTORS_ATTR(...) STRAND_SIZED_(strand_actors_attr, __VA_ARGS__)

/**
 * Open a system of actors, which is left with the enclosing block:
 *
 *     STRAND_ACTORS(name, attr);
 *
 * attr may be NULL. Throws STRAND_SYSTEM: -ENOMEM; -EAGAIN: options.max_strands is reached; -ENOENT: there is no such
 * executor; -ENXIO: a dispatcher is pinned to a thread that its pool lacks; and what strand_pool_open throws. Others
 * may run meanwhile; it is no cancellation point.
 *
 * Leaving it stops all actors, children before their parents, and waits, uninterruptibly, until they have ended: after
 * the messages in hand; by an exception, those are interrupted. What waits is dead letters: strand_actors_join before
 * that lets it be handled. The pools that it has opened are closed. A failure that nobody deals with stops the system,
 * interrupts the block, and leaves it: the block throws it. Leaving it in a no-suspend section is misuse; so is its
 * handle afterwards.
 */
#define STRAND_ACTORS(name, attr)                                                                                      \
    strand_actors name STRAND_CLEANUP_(strand_actors_leave_) = strand_actors_enter_((attr), __FILE__, __LINE__)

/** Stop a system: as leaving it, by STRAND_STOP_NOW as by an exception, without waiting. Only without memory it waits,
 *  uninterruptibly, until others have given some back. */
void strand_actors_stop(strand_actors system, enum strand_stopping how);
/** Run fn(arg) as a task that is no actor's, on a dispatcher (NULL: the system's own), in a turn of an actor of its own
 *  below /user. The system waits for it as for any. What it returns is lost; what it throws is published as an actor's
 *  failure. Returns 0, or a negated errno code: -ENOMEM, -ENOENT, -ESHUTDOWN, or as strand_actor_spawn throws. Misuse:
 *  NULL, and an arg in the stack of an opened fibre. */
int strand_actors_run(strand_actors system, const char *dispatcher, strand_fn *fn, void *arg);
/** Wait until the system has ended, or its run is out of work: nobody runs or is runnable, and nothing will send a
 *  message by itself. Actors that rest, and that wait for each other, have theirs still. By the time that the caller
 *  goes on others may have told more. Owner only: else misuse. */
STRAND_BLOCKS void strand_actors_join(strand_actors system);

/* ---- routers ----------------------------------------------------------------------------------------------- */

/** To which of its actors a router passes a message. */
enum strand_route {
    STRAND_ROUTE_IN_TURN = 0, /* round robin */
    STRAND_ROUTE_RANDOM,
    STRAND_ROUTE_SMALLEST, /* the routee with the fewest messages waiting; among equals one that is not blocked;
                              O(count) */
    STRAND_ROUTE_ALL,      /* each gets a copy; of what was given, or owns something: nobody, it is unhandled. Who asks
                              gets the first answer; or, when none of them will answer any more, the code of the last */
    STRAND_ROUTE_HASH      /* always the same for the same hash, as long as that actor lives; O(count) */
};

/** What a router is told; zero is the default of each but size, count and class_. */
typedef struct strand_router {
    size_t size; /* sizeof(strand_router); required */
    enum strand_route route;
    size_t count; /* so many actors, the router's children */
    const strand_actor_class *class_;
    const void *args; /* of each, copied */
    size_t size_of_args;
    uint64_t (*hash)(const strand_message *message); /* required by STRAND_ROUTE_HASH; in a turn of the router */
    enum strand_directive (*decide)(void *none, strand_actor child, const strand_exception *why); /* NULL: restart */
    unsigned restarts_most; /* these as in strand_actor_class */
    int64_t restarts_within, backoff, backoff_most;
} strand_router;
#define STRAND_ROUTER(...) STRAND_SIZED_(strand_router, __VA_ARGS__)

/** Make a router: an actor below /user that passes on what it is told, as its sender has sent it. One of its actors
 *  that ends is not replaced, and gets nothing any more; when there is none left, or by hash the one stops, or begins
 *  anew and is asked, messages are unhandled, as are those that a full mailbox refuses, and who asks gets -EPIPE; where
 *  senders wait for room, it does, but decides first about one that has failed. Stopping it stops them; a restart makes
 * new ones. attr is the router's, and may be NULL. Throws as strand_actor_spawn does; what making its actors throws is
 * its failure. Misuse: without size, count, class_, or, by hash, hash. */
strand_actor strand_router_spawn(strand_actors system, const strand_actor_attr *attr, const strand_router *router);

/* ---- what happens in a system ------------------------------------------------------------------------------ */

/** What is published; to be added up. */
enum strand_event_kind {
    STRAND_ON_DEAD_LETTER = 1, /* a message that nobody handles: to, its sender, type */
    STRAND_ON_UNHANDLED = 2,   /* its receiver has no use for it: the same */
    STRAND_ON_FAILURE = 4,     /* an actor has failed: it, why */
    STRAND_ON_RESTART = 8,     /* it begins anew */
    STRAND_ON_END = 16,        /* it ends: its function for that has returned */
    STRAND_ON_RECEIVE = 32     /* it has handled a message, of a class with log_receives */
};

/** Sent to those who have subscribed. It has no sender. */
typedef struct strand_published {
    enum strand_event_kind kind;
    bool unhandled;             /* of a receive: strand_unhandled was called */
    strand_actor actor, sender; /* who it happened to, of a message its receiver; and the message's sender */
    const strand_message_type *type;
    char path[96], class_name[32]; /* of the actor; of a longer path the end, after "..."; "": it had ended before */
    strand_exception *why;         /* of a failure, with its trace: as long as the message is handled */
} strand_published;
extern const strand_message_type strand_published_message;

/**
 * An actor, of any system of the run, is sent a strand_published of each kind in `kinds`, and of no others any more; 0:
 * of none. Nobody is told of its own failure. What happens to a strand_published is not published, nor that a
 * strand_terminated is a dead letter. Of a dead letter the receiver's system tells; if the receiver had ended, the
 * system of the actor that has sent it; or else the one that was opened last.
 *
 * What nobody has subscribed to, or can be told of for want of memory, goes to the log: of failures ten in a second,
 * with the actor's path and class, and at the system's end how many more there were; of dead letters, at the system's
 * end, how many there were, and the first one. Returns 0; -ENOMEM; -ESRCH: the actor has ended, or is another run's.
 * O(log of those who have subscribed); what is published, O(those).
 */
int strand_actors_subscribe(strand_actors system, strand_actor actor, unsigned kinds);

/* ---- behind the macros ------------------------------------------------------------------------------------- */

strand_actors strand_actors_enter_(const strand_actors_attr *attr, const char *file, int line);
void strand_actors_leave_(strand_actors *system);

/* As of a system header: see the end of strand.h. */
#ifdef __cplusplus
}
#pragma GCC system_header
#define STRAND_MSG_(name, ...)                                                                                         \
    &name##_message, &static_cast<const name &>(STRAND_RECORD_(name, __VA_ARGS__)), sizeof(name)
#else
#define STRAND_MSG_(name, ...) &name##_message, &__extension__(const name){__VA_ARGS__}, sizeof(name)
#endif
#endif
