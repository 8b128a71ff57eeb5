/*
 * The reasons for which strands block, of all layers, and the words that diagnostics print before the object.
 * Diagnostics only. The order matters: for reasons after DESCRIPTOR, src/debug prints the address of the object.
 */
#ifndef STRAND_BLOCKED_H
#define STRAND_BLOCKED_H

/* EACH(name, words) */
#define EACH_BLOCKED(EACH)                                                                                             \
    EACH(NOT, "runnable")                                                                                              \
    EACH(JOIN, "joins strand")                                                                                         \
    EACH(JOIN_SCOPE, "joins its scope, waits for strand")                                                              \
    EACH(WAIT, "waits for the end of strand")                                                                          \
    EACH(LEAVE, "leaves a scope, waits for strand")                                                                    \
    EACH(SLEEP, "sleeps")                                                                                              \
    EACH(SCOPE, "waits for the end of any child")                                                                      \
    EACH(OFFLOAD, "waits for an offloaded call")                                                                       \
    EACH(POOL, "waits for the end of pool")                                                                            \
    EACH(QUIET, "waits for quiescence")                                                                                \
    EACH(STOPPING, "waits for the run to be shut down")                                                                \
    EACH(CREW, "waits for the end of a crew")                                                                          \
    EACH(DESCRIPTOR, "waits for descriptor")                                                                           \
    EACH(SEND, "sends to channel")                                                                                     \
    EACH(RECEIVE, "receives from channel")                                                                             \
    EACH(SELECT, "waits for one of")                                                                                   \
    EACH(MUTEX, "waits for mutex")                                                                                     \
    EACH(CONDITION, "waits for condition")                                                                             \
    EACH(READ_LOCK, "waits to read under lock")                                                                        \
    EACH(WRITE_LOCK, "waits to write under lock")                                                                      \
    EACH(SEMAPHORE, "waits for semaphore")                                                                             \
    EACH(EVENT, "waits for event")                                                                                     \
    EACH(BARRIER, "waits at barrier")                                                                                  \
    EACH(ONCE, "waits for once")                                                                                       \
    EACH(STATIC, "waits for a static object, with the guard")                                                          \
    EACH(GROUP, "waits for group")                                                                                     \
    EACH(PERMIT, "waits for semaphore") /* of a priority semaphore, or a limit */                                      \
    EACH(PORT, "receives from port")                                                                                   \
    EACH(MAILBOX, "waits for room in the mailbox of an actor")                                                         \
    EACH(ASK, "waits for the answer of an actor")                                                                      \
    EACH(ACTOR_END, "waits for the end of an actor")                                                                   \
    EACH(ACTOR, "waits for actors that have messages") /* a runner strand, while no actor has a message */             \
    EACH(SIGNAL, "waits for signals")                  /* as a case of a select only */

#define BLOCKED_NAME(name, words) BLOCKED_##name,
enum blocked { EACH_BLOCKED(BLOCKED_NAME) };
#undef BLOCKED_NAME

#endif
