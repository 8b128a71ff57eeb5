/*
 * Actors in what a program says of itself: dumps, who waits for whom, deadlocks, traces.
 */
#define _GNU_SOURCE
#define SUITE actor_reports
#include "test.h"

#include "printed.h"

#include "strand/actor.h"
#include "strand/debug.h"
#include "strand/sync.h"

#include <string.h>

STRAND_MESSAGE(question, { strand_actor other; });
STRAND_MESSAGE(answer, { int n; });
STRAND_MESSAGE(pause_there, { char none; });

static strand_event paused, go_on;

static int print_all(int fd)
{
    return strand_dump(fd, STRAND_DUMP(.grouping = STRAND_DUMP_SINGLE));
}

static void receive(void *state, strand_message *message)
{
    (void)state;
    answer got;
    const question *q = STRAND_IS(message, question);
    if (q && q->other.bits[1]) {
        strand_event_set(&paused);
        CHECK_EQ(strand_ask(q->other, STRAND_MSG(question), STRAND_INTO(answer, &got)), 0);
    }
    if (q)
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(answer, 1)));
    if (!STRAND_IS(message, pause_there))
        return;
    strand_event_set(&paused);
    strand_event_wait(&go_on);
}

static const strand_actor_class clerk = {
    .size = sizeof clerk, .name = "clerk", .state_size = 8, .receive = receive, .max_mailbox = 1};

static strand_actor open_till(strand_actors system)
{
    paused = go_on = (strand_event){{0}};
    strand_actor till = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "till"), &clerk, NULL, 0);
    CHECK_EQ(strand_tell(till, STRAND_MSG(pause_there)), 0);
    strand_event_wait(&paused);
    return till;
}

static void *ask_it(void *actor)
{
    answer got;
    CHECK_EQ(strand_ask(*(strand_actor *)actor, STRAND_MSG(question), STRAND_INTO(answer, &got)), 0);
    return NULL;
}

static void *tell_it(void *actor)
{
    CHECK_EQ(strand_tell(*(strand_actor *)actor, STRAND_MSG(question)), 0);
    return NULL;
}

static void *wait_for_it(void *actor)
{
    return (void *)(intptr_t)strand_actor_wait(*(strand_actor *)actor);
}

TEST_INSIDE(a_dump_says_which_actor_a_strand_runs_and_what_it_handles)
{
    STRAND_ACTORS(system, NULL);
    open_till(system);
    const char *text = printed_with(print_all, "waits for event");
    CHECK_CONTAINS(text, "strand 'till' #");
    CHECK_CONTAINS(text, "runs actor /user/till, of class 'clerk', handles a 'pause_there'; 0 messages wait\n");
    strand_event_set(&go_on);
}

TEST_INSIDE(waiting_for_an_actor_waits_for_the_strand_that_runs_it)
{
    STRAND_ACTORS(system, NULL);
    strand_actor till = open_till(system);
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "watcher"), wait_for_it, &till, sizeof till);
    const char *text = printed_with(strand_waits_print, "waits for the end of actor /user/till");
    CHECK_CONTAINS(text, "2 of 3 strands are blocked\n");
    CHECK_CONTAINS(text, "strand 'till' #");
    CHECK_CONTAINS(text, ", which runs it, would have to go on; it is blocked too\n");
    strand_event_set(&go_on);
    strand_actor_stop(till, STRAND_STOP_NEXT);
    strand_scope_join(scope);
}

TEST_INSIDE(a_question_that_waits_in_a_mailbox_and_room_that_is_waited_for_are_the_actors_to_give)
{
    STRAND_ACTORS(system, NULL);
    strand_actor till = open_till(system);
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "teller"), tell_it, &till, sizeof till);
    const char *text = printed_with(strand_waits_print, "waits for room in the mailbox of actor /user/till");
    CHECK_CONTAINS(text, ", which runs it, would have to go on; it is blocked too\n");
    strand_event_set(&go_on);
    strand_scope_join(scope);
}

TEST_INSIDE(a_wait_for_a_suspended_actor_says_that_it_is_suspended)
{
    STRAND_ACTORS(system, NULL);
    strand_actor till = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "till"), &clerk, NULL, 0);
    CHECK_EQ(strand_actor_suspend(till), 0);
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "asker"), ask_it, &till, sizeof till);
    const char *text =
        printed_with(strand_waits_print, "it is suspended: its supervisor, or a strand that resumes it\n");
    CHECK_CONTAINS(text, "strand 'asker' #");
    CHECK_CONTAINS(text, " waits for the answer of actor /user/till, since ");
    CHECK_EQ(strand_actor_resume(till), 0);
    strand_scope_join(scope);
}

TEST_INSIDE(strands_that_have_no_actor_to_run_wait_for_nobody)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &clerk, NULL, 0);
    ask_it(&a);
    CHECK_CONTAINS(printed_with(strand_waits_print, "0 of 1 strands are"), "0 of 1 strands are blocked\n");
}

/* ---- actors that wait for each other ----------------------------------------------------------------------- */

static strand_barrier both;
static char logged[8192];

static void keep_log(const char *message, void *arg)
{
    (void)arg;
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", message);
}

static void meet_and_ask(void *state, strand_message *message)
{
    (void)state;
    answer got;
    const question *q = STRAND_IS(message, question);
    strand_barrier_wait(&both);
    STRAND_IGNORE(strand_ask(q->other, STRAND_MSG(question), STRAND_INTO(answer, &got)));
}

static const strand_actor_class bird = {.size = sizeof bird, .name = "bird", .state_size = 8, .receive = meet_and_ask};

static void *ask_each_other(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor hen = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "hen"), &bird, NULL, 0);
    strand_actor egg = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "egg"), &bird, NULL, 0);
    strand_tell(hen, STRAND_MSG(question, egg));
    strand_tell(egg, STRAND_MSG(question, hen));
    strand_actor_wait(hen);
    return arg;
}

TEST(actors_that_ask_each_other_are_a_deadlock_which_names_them)
{
    strand_exception *e = NULL;
    strand_options options = test_options();
    both = (strand_barrier)STRAND_BARRIER_INIT(2);
    logged[0] = '\0';
    options.out_of_work = STRAND_OUT_OF_WORK_THROW;
    options.on_log = keep_log;
    options.uncaught = &e;
    CHECK_PTR(strand_run(&options, ask_each_other, NULL), NULL);
    CHECK_KIND(e, &STRAND_DEADLOCK);
    CHECK_CONTAINS(strand_exception_text(e), "all 3 strands wait, 2 of them for each other: ");
    CHECK_CONTAINS(strand_exception_text(e), "'hen' #");
    CHECK_CONTAINS(strand_exception_text(e), " for the answer of 'egg' #");
    CHECK_CONTAINS(logged, " waits for the answer of actor /user/egg, which strand 'egg' #");
    strand_exception_release(e);
}

/* ---- waits for a failed actor, below which its supervisor waits -------------------------------------------- */

STRAND_MESSAGE(crash, { char none; });
STRAND_MESSAGE(act, { int how; });

static strand_actor patient;

static void crash_or_handle(void *state, strand_message *message)
{
    (void)state;
    if (STRAND_IS(message, crash))
        strand_throw(&TEST_ERROR, "on request");
}

static const strand_actor_class weak = {.size = sizeof weak, .name = "weak", .receive = crash_or_handle};

static void ask_the_patient(void *state, strand_message *message)
{
    (void)state, (void)message;
    answer got;
    STRAND_IGNORE(strand_ask(patient, STRAND_MSG(question), STRAND_INTO(answer, &got)));
}

static const strand_actor_class visitor = {.size = sizeof visitor, .name = "visitor", .receive = ask_the_patient};

static void *await_the_patient(void *arg)
{
    strand_actor_wait(patient);
    return arg;
}

enum { JOINS, ASKS_ANOTHER, ASKS_FOR_NOTHING };

static void wait_around(void *state, strand_message *message)
{
    (void)state;
    answer got;
    const act *a = STRAND_IS(message, act);
    patient = strand_actor_spawn_child(STRAND_ACTOR_ATTR(.name = "patient"), &weak, NULL, 0);
    if (a->how != ASKS_FOR_NOTHING)
        strand_tell(patient, STRAND_MSG(crash));
    if (a->how == JOINS)
        strand_join(strand_spawn_with(strand_actor_scope(), STRAND_ATTR(.name = "nurse"), await_the_patient, NULL, 0));
    else if (a->how == ASKS_FOR_NOTHING)
        ask_the_patient(NULL, NULL);
    else
        STRAND_IGNORE(strand_ask(strand_actor_spawn_child(STRAND_ACTOR_ATTR(.name = "friend"), &visitor, NULL, 0),
                                 STRAND_MSG(question), STRAND_INTO(answer, &got)));
}

static const strand_actor_class doctor = {.size = sizeof doctor, .name = "doctor", .receive = wait_around};

static void *wait_for_the_doctor(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "doctor"), &doctor, NULL, 0);
    strand_tell(a, STRAND_MSG(act, (int)(intptr_t)arg));
    strand_actor_wait(a);
    return NULL;
}

TEST(a_cycle_of_waits_through_a_failed_actor_names_the_supervisor_that_has_to_decide)
{
    static const struct {
        const char *brief, *step, *line;
    } cases[] = {
        [JOINS] = {"'nurse' #",
                   " waits for the end of actor /user/doctor/patient, which is suspended until strand "
                   "'doctor' #",
                   "    it is suspended until its supervisor decides: strand 'doctor' #"},
        [ASKS_ANOTHER] = {"'friend' #",
                          " waits for the answer of actor /user/doctor/patient, which is suspended until "
                          "strand 'doctor' #",
                          "    it is suspended until its supervisor decides: strand 'doctor' #"},
        [ASKS_FOR_NOTHING] = {"'doctor' #", " waits for the answer of actor /user/doctor/patient, since ",
                              "    it has handled the question without an answer: a strand that answers it"},
    };
    for (int how = JOINS; how <= ASKS_FOR_NOTHING; how++) {
        strand_exception *e = NULL;
        strand_options options = test_options();
        logged[0] = '\0';
        options.out_of_work = STRAND_OUT_OF_WORK_THROW;
        options.on_log = keep_log;
        options.uncaught = &e;
        CHECK_PTR(strand_run(&options, wait_for_the_doctor, TEST_PTR(how)), NULL);
        CHECK_KIND(e, &STRAND_DEADLOCK);
        CHECK_CONTAINS(strand_exception_text(e), cases[how].brief);
        if (how != ASKS_FOR_NOTHING)
            CHECK_CONTAINS(strand_exception_text(e), " for the decision of 'doctor' #");
        CHECK_CONTAINS(logged, cases[how].step);
        CHECK_CONTAINS(logged, cases[how].line);
        strand_exception_release(e);
    }
}

static void throw_at_once(void *state, strand_message *message)
{
    (void)state;
    (void)message;
    strand_throw(&STRAND_ERROR, "no more eggs");
}

static const strand_actor_class thrower = {
    .size = sizeof thrower, .name = "a class of a name that is too long", .state_size = 8, .receive = throw_at_once};

static enum strand_directive print_it(void *state, strand_actor child, const strand_exception *why)
{
    (void)state;
    (void)child;
    int fd = memfd_create("trace", MFD_CLOEXEC);
    strand_exception_print(why, fd);
    CHECK(pread(fd, logged, sizeof logged - 1, 0) > 0);
    close(fd);
    strand_event_set(&paused);
    return STRAND_STOP;
}

static void spawn_thrower(void *state, strand_message *message)
{
    (void)state;
    (void)message;
    strand_tell(strand_actor_spawn_child(NULL, &thrower, NULL, 0), STRAND_MSG(question));
}

static const strand_actor_class parent = {
    .size = sizeof parent, .state_size = 8, .receive = spawn_thrower, .decide = print_it};

TEST_INSIDE(an_exception_of_an_actor_names_its_class_and_has_its_trace)
{
    paused = (strand_event){{0}};
    memset(logged, 0, sizeof logged);
    STRAND_ACTORS(system, NULL);
    strand_tell(strand_actor_spawn(system, NULL, &parent, NULL, 0), STRAND_MSG(question));
    strand_event_wait(&paused);
    CHECK_CONTAINS(logged, "error: no more eggs\n");
    CHECK_CONTAINS(logged, "thrown in strand 'a class of a name that is too l' #");
    CHECK_CONTAINS(logged, "at throw_at_once+0x");
}
