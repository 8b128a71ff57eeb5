/*
 * On which thread an actor runs that belongs to none. It is a preference: what is checked is a majority that chance
 * would not give; and that it is no more than that.
 */
#define _GNU_SOURCE
#define SUITE actor_placement
#include "test.h"

#include "strand/actor.h"

#include <sched.h>
#include <unistd.h>

STRAND_MESSAGE(step, { int n; });

enum { VISITS = 100, VISITED = 3, HOST_STACK = 128 * 1024 }; /* not the usual one: there is a fibre for each host */

/* A host per thread keeps it busy, so that no thread has a reason to take from another. It is their turn to tell, one
 * after the other. */
static struct {
    strand_actor actor[VISITED];
    int hosts, visits;
    _Atomic int met, turn, told, with_sender;
    pid_t sender;
} house;

static void note_visit(void *state, strand_message *message)
{
    (void)state;
    house.with_sender += gettid() == house.sender;
    house.turn = STRAND_IS(message, step)->n + 1;
}

static const strand_actor_class visited = {.size = sizeof visited, .name = "visited", .receive = note_visit};

/* The first part spins without a switch until all are here, so that each is on a thread of its own. */
static void *tell_in_turn(void *arg)
{
    for (house.met++; house.met < house.hosts;)
        sched_yield();
    for (int turn; (turn = house.turn) < house.visits;) {
        if (turn % house.hosts == (intptr_t)arg && house.told == turn) {
            house.told = turn + 1;
            house.sender = gettid();
            CHECK_EQ(strand_tell(house.actor[turn % VISITED], STRAND_MSG(step, turn)), 0);
        }
        strand_yield();
    }
    return arg;
}

static void *visit_all(void *arg)
{
    STRAND_ACTORS(system, NULL);
    STRAND_SCOPE(scope);
    for (int i = 0; i < VISITED; i++)
        house.actor[i] = strand_actor_spawn(system, NULL, &visited, NULL, 0);
    for (int i = 0; i < house.hosts; i++)
        strand_spawn_with(scope, STRAND_ATTR(.stack_size = HOST_STACK), tell_in_turn, TEST_PTR(i), 0);
    strand_scope_join(scope);
    return arg;
}

/* As a rule, which is checked as four fifths; on four threads chance would do for a quarter. A busy machine takes
 * threads from their processors: so it is repeated until it was as the rule says. */
/* S-48 */
TEST_REAL(a_dormant_actor_has_its_turn_on_the_thread_of_its_sender)
{
    strand_options options = test_options();
    options.scheduler = "stealing"; /* that with one queue for all threads prefers none of them */
    options.balance = STRAND_BALANCE_NONE;
    house.hosts = test_threads() < 4 ? 4 : test_threads();
    house.visits = (int)test_scale(VISITS);
    test_set_threads(&options, house.hosts);
    do {
        house.met = house.turn = house.told = house.with_sender = 0;
        strand_run(&options, visit_all, NULL);
        CHECK_EQ(house.turn, house.visits);
    } while (house.with_sender * 5 < house.visits * 4);
}

/* ---- who has the time ------------------------------------------------------------------------------------------ */

enum { TAKEN = 8 };

static struct {
    strand_actor actor[TAKEN];
    pid_t sender;
    _Atomic int elsewhere, here;
} busy;

static void note_thread(void *state, strand_message *message)
{
    (void)state, (void)message;
    gettid() == busy.sender ? busy.here++ : busy.elsewhere++;
}

static const strand_actor_class taken = {.size = sizeof taken, .name = "taken", .receive = note_thread};

/* The sender never yields, so only other threads can run the actors, which are dormant before each message. */
static void *tell_and_stay(void *arg)
{
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < TAKEN; i++)
        busy.actor[i] = strand_actor_spawn(system, NULL, &taken, NULL, 0);
    busy.sender = gettid();
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < TAKEN; i++)
            CHECK_EQ(strand_tell(busy.actor[i], STRAND_MSG(step, i)), 0);
        while (busy.elsewhere < round * TAKEN)
            sched_yield();
    }
    CHECK_EQ(busy.elsewhere, 3 * TAKEN);
    CHECK_EQ(busy.here, 0);
    return arg;
}

/* S-46, S-48 */
TEST_REAL(a_dormant_actor_moves_where_the_thread_of_its_sender_has_no_time)
{
    strand_options options = test_options();
    test_set_threads(&options, test_threads() < 2 ? 2 : test_threads());
    strand_run(&options, tell_and_stay, NULL);
}
