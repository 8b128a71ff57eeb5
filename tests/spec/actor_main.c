/*
 * Actors on the main thread: that of the caller of strand_run, or a loop of the program's own. What computes is
 * elsewhere.
 */
#define _GNU_SOURCE
#define SUITE actor_main
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

STRAND_MESSAGE(event, { int n; });
STRAND_MESSAGE(chunk, {
    int first, count;
    long sum;
});
STRAND_MESSAGE(order, { strand_actor ui; });
STRAND_MESSAGE(go_on, { char none; });

static strand_event done;
static _Atomic pid_t main_thread;
static _Atomic int events, stopped;

static void begin(void)
{
    done = (strand_event){{0}};
    events = stopped = 0;
    main_thread = gettid();
}

static const strand_dispatcher ui_and_others[] = {
    {.size = sizeof *ui_and_others, .name = "ui", .executor = "current-context-executor"},
    {.size = sizeof *ui_and_others,
     .name = "sql",
     .executor = "fork-join-executor",
     .threads = 1,
     .scheduler = "dedicated"},
    {.size = sizeof *ui_and_others, .name = "work", .executor = "fork-join-executor", .threads = 2}};

static strand_actor spawn_on(strand_actors system, const char *dispatcher, const strand_actor_class *class,
                             const void *args, size_t size)
{
    return strand_actor_spawn(system, STRAND_ACTOR_ATTR(.dispatcher = dispatcher), class, args, size);
}

/* The main thread is one of a run of several, its root on any of them; fn is on the main one. */
struct on_main {
    strand_fn *fn;
};

static void *be_root(void *arg)
{
    const struct on_main *main = arg;
    STRAND_SCOPE(scope);
    return strand_join(strand_spawn_with(scope, STRAND_ATTR(.pin = STRAND_PIN(0)), main->fn, NULL, 0));
}

static void run_on_main(int threads, strand_fn *fn)
{
    struct on_main main = {fn};
    strand_options options = test_options();
    test_set_threads(&options, threads);
    test_set_callers_thread(&options);
    strand_run(&options, be_root, &main);
}

/* ---- the caller's context ---------------------------------------------------------------------------------- */

enum { EVENTS = 40 };

static void handle_event(void *state, strand_message *message)
{
    (void)state;
    CHECK_EQ(gettid(), main_thread);
    if (STRAND_IS(message, event)->n % 3 == 0)
        strand_yield();
    if (STRAND_IS(message, event)->n % 7 == 0)
        strand_sleep(20 * STRAND_US);
    CHECK_EQ(gettid(), main_thread);
    if (++events == 2 * EVENTS)
        strand_event_set(&done);
}

static const strand_actor_class ui_class = {.size = sizeof ui_class, .name = "ui", .receive = handle_event};

/* Tells the other one, from a thread that is not the main one. */
static void report(void *state, strand_message *message)
{
    CHECK(gettid() != main_thread);
    CHECK_EQ(strand_tell(*(const strand_actor *)state, STRAND_MSG(event, STRAND_IS(message, event)->n)), 0);
}

static const strand_actor_class reporter = {
    .size = sizeof reporter, .name = "reporter", .state_size = sizeof(strand_actor), .receive = report};

static void *handle_events(void *arg)
{
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = ui_and_others, .dispatchers_count = 3));
    strand_actor ui = spawn_on(system, "ui", &ui_class, NULL, 0),
                 r = spawn_on(system, "sql", &reporter, &ui, sizeof ui);
    for (int i = 0; i < EVENTS; i++) {
        CHECK_EQ(strand_tell(ui, STRAND_MSG(event, i)), 0);
        CHECK_EQ(strand_tell(r, STRAND_MSG(event, i)), 0);
    }
    strand_event_wait(&done);
    return arg;
}

/* S-43 */
TEST_REAL(actors_of_the_current_context_run_on_the_main_thread_for_any_sender)
{
    begin();
    run_on_main(1, handle_events);
    CHECK_EQ(events, 2 * EVENTS);
    begin();
    run_on_main(4, handle_events);
    CHECK_EQ(events, 2 * EVENTS);
}

/* ---- a loop of the program's ------------------------------------------------------------------------------- */

static strand_pool ui_pool;
static _Atomic int ui_known;

static void *handle_events_elsewhere(void *arg)
{
    STRAND_SCOPE(scope);
    ui_pool = strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = "current"));
    ui_known = 1;
    const strand_dispatcher loop = {.size = sizeof loop, .name = "loop", .pool = ui_pool};
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = &loop, .dispatchers_count = 1));
    strand_actor ui = spawn_on(system, "loop", &ui_class, NULL, 0),
                 r = strand_actor_spawn(system, NULL, &reporter, &ui, sizeof ui);
    for (int i = 0; i < EVENTS; i++) {
        CHECK_EQ(strand_tell(ui, STRAND_MSG(event, i)), 0);
        CHECK_EQ(strand_tell(r, STRAND_MSG(event, i)), 0);
    }
    strand_event_wait(&done);
    return arg;
}

static void *run_elsewhere(void *arg)
{
    test_run(handle_events_elsewhere, NULL);
    return arg;
}

/* The loop has its thread back each time, and when the pool has ended. */
/* S-43, S-44 */
TEST_REAL(actors_of_a_pool_that_a_loop_of_the_programs_drives_run_on_the_thread_of_the_loop)
{
    pthread_t thread;
    int more;
    begin();
    ui_known = 0;
    CHECK_EQ(pthread_create(&thread, NULL, run_elsewhere, NULL), 0);
    while (!ui_known)
        usleep(100);
    while ((more = strand_pool_drive(ui_pool, strand_in(STRAND_MS), STRAND_DRIVE_WAIT)) == 1)
        continue;
    CHECK_EQ(more, 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(events, 2 * EVENTS);
}

/* ---- its end ----------------------------------------------------------------------------------------------- */

static void count_stop(void *state)
{
    (void)state;
    stopped++;
}

/* The last event ends it all, from the main thread. */
static void quit_at_last(void *state, strand_message *message)
{
    (void)state;
    CHECK_EQ(gettid(), main_thread);
    events++;
    if (!STRAND_IS(message, event)->n)
        strand_actors_stop(strand_actor_system(), STRAND_STOP_NEXT);
}

static const strand_actor_class quitter = {
    .size = sizeof quitter, .name = "quitter", .receive = quit_at_last, .stop = count_stop};

static void run_for_ever(void *state, strand_message *message)
{
    (void)state, (void)message;
    CHECK(gettid() != main_thread);
    (void)strand_tell(strand_actor_self(), STRAND_MSG(go_on));
}

static const strand_actor_class restless = {
    .size = sizeof restless, .name = "restless", .receive = run_for_ever, .stop = count_stop};

static void *quit_from_main(void *arg)
{
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = ui_and_others, .dispatchers_count = 3));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(strand_tell(spawn_on(system, i % 2 ? "sql" : "work", &restless, NULL, 0), STRAND_MSG(go_on)), 0);
    strand_actor ui = spawn_on(system, "ui", &quitter, NULL, 0);
    for (int i = 2; i >= 0; i--)
        CHECK_EQ(strand_tell(ui, STRAND_MSG(event, i)), 0);
    strand_actors_join(system); /* they never become idle: it ends because it was stopped */
    return arg;
}

static int count_threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Its loop returns to its caller, and the other threads, which are stopped in the same way, have ended. */
/* S-44 */
TEST_REAL(the_main_thread_comes_back_to_its_caller_and_the_others_have_ended)
{
    begin();
    run_on_main(2, quit_from_main); /* a sanitizer may start a thread of its own with the first other one */
    int before = count_threads();
    for (int i = 0; i < 3; i++) {
        begin();
        run_on_main(1 + i, quit_from_main);
        CHECK_EQ(gettid(), main_thread);
        CHECK_EQ(events, 3);
        CHECK_EQ(stopped, 5);
        while (count_threads() != before)
            usleep(1000); /* the system takes a joined thread off its list a moment later */
    }
}

/* ---- computing elsewhere ----------------------------------------------------------------------------------- */

enum { NUMBERS = 10000, CHUNK = 300, HELD = 5 };

/* Works on a chunk, then sends itself a message to continue: so it handles other messages between two chunks. */
struct worker {
    strand_actor ui;
    int next;
};

static long compute(int first, int count)
{
    long sum = 0;
    for (int i = first; i < first + count; i++)
        sum += (long)i * i;
    return sum;
}

static void peel_off(void *state, strand_message *message)
{
    struct worker *me = state;
    const order *o = STRAND_IS(message, order);
    if (o)
        *me = (struct worker){.ui = o->ui};
    CHECK(gettid() != main_thread);
    int count = NUMBERS - me->next < CHUNK ? NUMBERS - me->next : CHUNK;
    while (me->next == HELD * CHUNK && !events)
        usleep(1000); /* it takes its time: the main thread has not to wait for it */
    CHECK_EQ(strand_tell(me->ui, STRAND_MSG(chunk, me->next, count, compute(me->next, count))), 0);
    me->next += count;
    if (me->next < NUMBERS)
        CHECK_EQ(strand_tell(strand_actor_self(), STRAND_MSG(go_on)), 0);
}

static const strand_actor_class worker = {
    .size = sizeof worker, .name = "worker", .state_size = sizeof(struct worker), .receive = peel_off};

struct picture {
    int drawn;
    long sum;
};

/* A result that has come at once is followed by an event, as a user makes them. */
static void apply(void *state, strand_message *message)
{
    struct picture *me = state;
    const chunk *c = STRAND_IS(message, chunk);
    CHECK_EQ(gettid(), main_thread);
    if (!c) {
        events++;
        return;
    }
    CHECK_EQ(c->first, me->drawn);
    me->drawn += c->count;
    me->sum += c->sum;
    if (me->drawn == HELD * CHUNK)
        CHECK_EQ(strand_tell(strand_actor_self(), STRAND_MSG(event)), 0);
    if (me->drawn == NUMBERS) {
        CHECK_EQ(me->sum, compute(0, NUMBERS));
        strand_event_set(&done);
    }
}

static const strand_actor_class painter = {
    .size = sizeof painter, .name = "painter", .state_size = sizeof(struct picture), .receive = apply};

static void *compute_and_apply(void *arg)
{
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = ui_and_others, .dispatchers_count = 3));
    strand_actor ui = spawn_on(system, "ui", &painter, NULL, 0), w = spawn_on(system, "work", &worker, NULL, 0);
    CHECK_EQ(strand_tell(w, STRAND_MSG(order, ui)), 0);
    strand_event_wait(&done);
    return arg;
}

/* S-45 */
TEST_REAL(a_worker_computes_in_chunks_that_an_actor_of_the_main_thread_applies)
{
    begin();
    run_on_main(1, compute_and_apply);
    CHECK_EQ(events, 1);
    begin();
    run_on_main(3, compute_and_apply);
    CHECK_EQ(events, 1);
}
