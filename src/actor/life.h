/*
 * The tree's requests to an actor: start, stop, restart; and failures. In the actor's own turn.
 *
 * STATE     activation.calls: a set of bits, not a queue. A request that comes twice before the actor acts on it
 *           happens once. It takes no memory if the actor is awake, as one that has failed is.
 * PROTOCOL  between two messages the actor acts on its bits in this order: it decides about children that have failed,
 *           one after the other in the order of their failures; it stops; it notices that its last child has ended; it
 *           resumes; starts; restarts; suspends. A stop precedes every other request about the actor itself, and no
 *           request follows it. While a restart waits for the children, a stop turns the restart into a stop, and the
 *           stop function is called once. Suspend and resume each clear the other's bit: the latest wins. A restart
 *           ends an earlier suspension; one that comes while the restart waits for the children takes effect after it.
 *           ACTIVATION_SUSPENDED stands for an actor that has failed and for one that was suspended by request: a
 *           resume, or a restart that begins, ends both. An actor that failed in its start function has no state:
 *           resuming restarts it. The stop function is not called where start has not returned (ACTIVATION_UNSTARTED).
 *           A parent's decision about a failure applies only while the child is still suspended because of that
 *           failure: meanwhile another strand may have restarted or resumed it, and it may have failed again. What
 *           all_for_one does to all children applies in every state. A restart that is delayed counts as requested when
 *           its time comes. A suspended actor obeys the tree: it decides about its children, is restarted, and is
 *           stopped. STRAND_STOP_LAST is a message, and waits with the others. STRAND_STOP_NOW cancels the runner's
 *           strand while the actor does not stop yet: the stop function is not interrupted. A runner that is cancelled
 *           before it has read the bits leaves them to another runner, since a cancel is lasting. While a restarting
 *           actor waits for its children they must not wait for it: senders that wait for room enter, whatever the
 *           bound, and askers get -EPIPE; their questions are kept as messages. A failure while a stop is requested but
 *           has not begun is published, and the decision finds no actor. A failure during the stop goes to the log
 *           only. A failure of the root is the system's: its runner ends by that exception, as a failed child of the
 *           system's scope.
 * NOT DONE  a queue of requests to the actor: a decision could then fail for lack of memory. (A report of a failure
 *           does need a record: life_fail.) The price of bits is that the order of requests is lost, except between
 *           suspend and resume.
 */
#ifndef ACTOR_LIFE_H
#define ACTOR_LIFE_H

#include "actor.h"

/* Serve pending calls, in the actor's turn. Afterwards the runner may have no activation any more. */
void life_calls(struct runner *r);
/* Stop the actor: at once, if it has no children. */
void life_stop(struct runner *r);
/* Record that handling the message in hand, or one of the actor's own functions, has failed. Takes the exception. */
void life_fail(struct runner *r, strand_exception *e);
/* The runner's strand is cancelled: pass its activation to another runner. */
void life_retire(struct runner *r);

/* ---- for supervise.c --------------------------------------------------------------------------------------- */

/* A call of an own function of the actor, in a scope of its own. */
struct own_call {
    struct runner *r;
    enum { OWN_START, OWN_STOP, OWN_DECIDE } which;
    bool begun;
    bool returned; /* the function has; its scope may fail afterwards, because of strands left in it */
    struct failure *failure;
    enum strand_directive decided;
};
/* Make the call. Returns the exception that it ended by, or NULL. Waits if there is no memory for its scope. */
strand_exception *life_own(struct own_call *call);
/* How long a child whose start has failed is suspended at first, unless its supervision says otherwise. */
enum { BEGINNING_PAUSE = STRAND_MS };
/* Restart a child after a pause, if it is then still suspended by that failure. */
void life_retry(struct thread *thread, struct runner *r, const struct failure *failure, int64_t pause);
/* Make a request of all children. */
void life_call_children(struct runner *r, uint32_t calls, int64_t pause);

/* ---- supervise.c ------------------------------------------------------------------------------------------- */

/* Decide about children that have failed. */
void supervise(struct runner *r);
/* Free failures that need no decision any more. */
void failures_drop(struct failure *failures);

#endif
