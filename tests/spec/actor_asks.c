/*
 * Asking an actor: which answers are taken, and whose the question is afterwards.
 */
#define SUITE actor_asks
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>

static _Atomic int drops;

static void count_drop(void *body)
{
    (void)body;
    drops++;
}

STRAND_MESSAGE(question, { int how; });
STRAND_MESSAGE(answer, { int n; });
STRAND_MESSAGE_WITH(owned, count_drop, { int n; });

/* ---- answers of another type ------------------------------------------------------------------------------- */

enum { COPIED, GIVEN, PASSED_ON, OF_ANOTHER_SIZE, RIGHT_TOO_LATE };

static _Atomic int replied, keeps;

static void answer_wrongly(void *state, strand_message *message)
{
    static owned given = {1};
    strand_actor *asker = state;
    const question *q = STRAND_IS(message, question);
    if (!q) {
        if (asker->bits[1])
            replied = strand_forward(message, *asker);
        *asker = (strand_actor){{0, 0}};
        return;
    }
    *asker = (strand_actor){{0, 0}};
    if (q->how == GIVEN)
        replied = strand_give(message->sender, &owned_message, &given);
    else if (q->how == PASSED_ON)
        *asker = message->sender, keeps = 1;
    else if (q->how == OF_ANOTHER_SIZE)
        replied = strand_reply(message, &answer_message, "12", 2);
    else
        replied = strand_reply(message, STRAND_MSG(owned, 1));
    if (q->how == RIGHT_TOO_LATE)
        CHECK_EQ(strand_reply(message, STRAND_MSG(answer, 1)), -EPIPE);
}

static const strand_actor_class wrong = {
    .size = sizeof wrong, .name = "wrong", .state_size = sizeof(strand_actor), .receive = answer_wrongly};

static void *pass_on(void *actor)
{
    test_yield_until(&keeps, 1);
    strand_tell(*(strand_actor *)actor, STRAND_MSG(owned, 1));
    return NULL;
}

/* contract 6: the answer is refused with the same code on both sides, and dropped once */
TEST_INSIDE(an_answer_of_another_type_is_refused_on_both_sides_and_dropped_once)
{
    static const struct {
        int how, drops;
    } cases[] = {{COPIED, 1}, {GIVEN, 1}, {PASSED_ON, 1}, {OF_ANOTHER_SIZE, 0}, {RIGHT_TOO_LATE, 1}};
    static strand_actor a;
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &wrong, NULL, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        answer got = {0};
        for (int n = 0; n < 10; n++) /* messages that were handled, whose memory is used again */
            strand_tell(a, STRAND_MSG(owned, n));
        strand_actors_join(system);
        CHECK_EQ(drops, 10);
        drops = replied = 0;
        STRAND_SCOPE(scope);
        strand other = {{0, 0}};
        if (cases[i].how == PASSED_ON)
            other = strand_spawn(scope, pass_on, &a);
        CHECK_EQ(strand_ask(a, STRAND_MSG(question, cases[i].how), STRAND_INTO(answer, &got)), -EBADMSG);
        if (cases[i].how == PASSED_ON)
            strand_join(other);
        strand_actors_join(system);
        CHECK_EQ(replied, -EBADMSG);
        CHECK_EQ(drops, cases[i].drops);
        CHECK_EQ(got.n, 0);
        drops = 0;
    }
}
