/*
 * An actor's behaviours, and its stash. In its own turn.
 */
#include "cell.h"
#include "mailbox.h"
#include "message.h"
#include "optional.h"

#include "../strand/misuse.h"
#include "../strand/throw.h"

#include <stdlib.h>

static struct optional *own_optional(struct thread *thread, struct runner *r, const char *what)
{
    struct optional *optional = optional_of(thread, r->cell);
    if (!optional)
        throw_no_memory(current_of(thread), what);
    return optional;
}

void strand_actor_become(strand_behaviour *receive)
{
    struct thread *thread = must_be_strand("strand_actor_become");
    struct runner *r = must_be_actor(thread, "strand_actor_become");
    struct optional *optional = own_optional(thread, r, "a behaviour");
    struct behaviours *top = platform_malloc(thread, sizeof *top);
    must_be_there((void *)(uintptr_t)receive, "behaviour", "strand_actor_become");
    if (!top)
        throw_no_memory(current_of(thread), "a behaviour");
    *top = (struct behaviours){optional->behaviours, receive};
    optional->behaviours = top;
    r->receive = receive;
}

void strand_actor_unbecome(void)
{
    struct thread *thread = must_be_strand("strand_actor_unbecome");
    struct runner *r = must_be_actor(thread, "strand_actor_unbecome");
    struct optional *optional = cell_optional(r->cell);
    struct behaviours *top = optional ? optional->behaviours : NULL;
    if (!top)
        MISUSE("strand_actor_unbecome", caller_made_actor(r, MADE_ROOM),
               "there is no behaviour to return from: strand_actor_become was not called");
    optional->behaviours = top->below;
    r->receive = behaviour_of(r->cell);
    free(top);
}

void behaviours_drop(struct optional *optional)
{
    for (struct behaviours *top; (top = optional->behaviours);) {
        optional->behaviours = top->below;
        free(top);
    }
}

/* ---- the stash ---------------------------------------------------------------------------------------------- */

void strand_message_stash(strand_message *message)
{
    struct thread *thread = must_be_strand("strand_message_stash");
    struct runner *r = message_must_be_in_hand(thread, message, "strand_message_stash");
    struct optional *optional = own_optional(thread, r, "a stashed message");
    struct envelope *e = r->in_hand;
    r->in_hand = NULL;
    e->next = NULL;
    *optional->stash_last = e;
    optional->stash_last = &e->next;
}

size_t strand_actor_unstash_all(void)
{
    return mailbox_return_stash(must_be_actor(must_be_strand("strand_actor_unstash_all"), "strand_actor_unstash_all"));
}
