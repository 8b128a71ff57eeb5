/*
 * Asking an actor: which answers are taken, and whose the question is afterwards.
 */
#define SUITE actor_asks
#include "test.h"

#include "strand/actor.h"
#include "strand/sim.h"
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
            replied = strand_message_forward(message, *asker);
        *asker = (strand_actor){{0, 0}};
        return;
    }
    *asker = (strand_actor){{0, 0}};
    if (q->how == GIVEN)
        replied = strand_actor_give(message->sender, &owned_message, &given);
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

/* contract 6.4 */
TEST_INSIDE(an_answer_of_another_type_is_refused_on_both_sides_and_dropped_once)
{
    static const struct {
        int how, drops;
    } cases[] = {{COPIED, 1}, {GIVEN, 1}, {PASSED_ON, 1}, {OF_ANOTHER_SIZE, 0}, {RIGHT_TOO_LATE, 1}};
    static strand_actor a;
    drops = keeps = 0;
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

/* ---- whose the question is --------------------------------------------------------------------------------- */

enum { ANSWERED, FORGOTTEN };

static strand_event held;

static void answer_owned(void *state, strand_message *message)
{
    (void)state;
    const owned *o = STRAND_IS(message, owned);
    if (o && o->n == ANSWERED)
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(answer, 1)));
    else if (!o)
        strand_event_wait(&held);
}

static const strand_actor_class oracle = {.size = sizeof oracle, .name = "oracle", .receive = answer_owned},
                                full = {.size = sizeof full, .name = "full", .receive = answer_owned, .max_mailbox = 1},
                                refusing = {.size = sizeof refusing,
                                            .name = "refusing",
                                            .receive = answer_owned,
                                            .max_mailbox = 1,
                                            .mailbox_full = STRAND_MAILBOX_FULL_FAIL};

struct asking {
    strand_actor whom;
    int how;
};

static void *ask_owned(void *arg)
{
    const struct asking *asking = arg;
    answer got;
    return TEST_PTR(strand_ask(asking->whom, STRAND_MSG(owned, asking->how), STRAND_INTO(answer, &got)));
}

/* contract 6.4 */
TEST_INSIDE(the_resources_of_a_question_are_dropped_once_in_every_case)
{
    static struct asking asking;
    held = (strand_event){{0}};
    drops = 0;
    {
        STRAND_ACTORS(system, NULL);
        STRAND_SCOPE(scope);
        strand_actor a = strand_actor_spawn(system, NULL, &oracle, NULL, 0),
                     f = strand_actor_spawn(system, NULL, &full, NULL, 0),
                     r = strand_actor_spawn(system, NULL, &refusing, NULL, 0);
        CHECK_EQ(strand_tell(f, STRAND_MSG(answer, 1)), 0);
        CHECK_EQ(strand_tell(r, STRAND_MSG(answer, 1)), 0);
        asking = (struct asking){a, ANSWERED};
        CHECK_PTR(ask_owned(&asking), TEST_PTR(0));
        test_run_cancelled(ask_owned, &asking); /* before it was sent */
        asking.whom = r;
        CHECK_PTR(ask_owned(&asking), TEST_PTR(-EAGAIN));
        asking.whom = f;
        strand waiting = strand_spawn(scope, ask_owned, &asking);
        test_await_blocked("waits for room in the mailbox of actor", 1);
        strand_cancel(waiting, NULL);
        CHECK(test_join_interrupted(waiting));
        asking = (struct asking){a, FORGOTTEN};
        waiting = strand_spawn(scope, ask_owned, &asking);
        test_await_blocked("waits for the answer of actor", 1);
        strand_cancel(waiting, NULL);
        CHECK(test_join_interrupted(waiting));
        strand_event_set(&held);
        strand_actors_join(system);
        CHECK_EQ(drops, 5);
        CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
        CHECK_EQ(strand_actor_wait(a), 0);
        CHECK_PTR(ask_owned(&asking), TEST_PTR(-EPIPE));
    }
    CHECK_EQ(drops, 6);
}

/* It asks its own asker, by what only an actor could answer. */
static void ask_back(void *state, strand_message *message)
{
    (void)state;
    answer got;
    replied = strand_ask(message->sender, STRAND_MSG(owned, 1), STRAND_INTO(answer, &got));
}

static const strand_actor_class returning = {.size = sizeof returning, .name = "returning", .receive = ask_back};

TEST_INSIDE(the_resources_of_a_question_are_dropped_once_where_it_is_taken_for_a_wrong_answer)
{
    drops = replied = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &returning, NULL, 0);
    answer got;
    CHECK_EQ(strand_ask(a, STRAND_MSG(question, 1), STRAND_INTO(answer, &got)), -EBADMSG);
    strand_actors_join(system);
    CHECK_EQ(replied, -EBADMSG);
    CHECK_EQ(drops, 1);
}

/* ---- out of memory ----------------------------------------------------------------------------------------- */

static int asked, lost;

static void *ask_often(void *arg)
{
    STRAND_TRY {
        STRAND_ACTORS(system, NULL);
        struct asking asking = {strand_actor_spawn(system, NULL, &oracle, NULL, 0), ANSWERED};
        for (int i = 0; i < 20; i++) {
            STRAND_DEADLINE(strand_in(STRAND_S));
            asked++;
            lost += ask_owned(&asking) == TEST_PTR(-ENOMEM);
        }
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        CHECK_FAIL("the asker waits although the answer was lost");
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
    }
    STRAND_END
    return arg;
}

/* The actor does not look at what its reply returns. */
TEST_REAL(without_memory_no_asker_waits_and_no_question_is_lost)
{
    for (uint64_t seed = 1; seed <= 200; seed++)
        strand_run(STRAND_OPTIONS(.has_seed = true, .seed = seed, .sim = STRAND_SIM(.memory = 30, .silent = true)),
                   ask_often, NULL);
    CHECK(lost > 0);
    CHECK_EQ(drops, asked);
}

/* ---- a beginning that leaves a strand behind --------------------------------------------------------------- */

static _Atomic int begun, over;

static void leave_a_strand(void *state, const void *args)
{
    static struct test_child left;
    (void)state, (void)args;
    if (!begun++)
        strand_spawn(strand_actor_scope(), test_child_blocks, &left);
}

static void count_end(void *state)
{
    (void)state;
    over++;
}

static const strand_actor_class untidy = {.size = sizeof untidy,
                                          .name = "untidy",
                                          .state_size = 8,
                                          .start = leave_a_strand,
                                          .receive = answer_owned,
                                          .stop = count_end};

TEST_INSIDE(each_beginning_that_has_returned_has_an_end_also_if_it_left_a_strand_behind)
{
    begun = over = 0;
    {
        STRAND_ACTORS(system, NULL);
        struct asking asking = {strand_actor_spawn(system, NULL, &untidy, NULL, 0), ANSWERED};
        CHECK_PTR(ask_owned(&asking), TEST_PTR(0)); /* it has restarted */
    }
    CHECK_EQ(begun, 2);
    CHECK_EQ(over, 2);
}
