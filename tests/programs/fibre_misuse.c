/*
 * One misuse of shared fibres per argument. The hook writes what it is told to standard output.
 */
#include "strand.h"
#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/pool.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <stdio.h>
#include <string.h>

static strand_fibre stale, shared;
static const strand_key KEY;

static void tell(const strand_misuse *misuse, void *arg)
{
    (void)arg;
    printf("hook told: function=%s; what=%s; made=%s\n", misuse->function, misuse->what, misuse->made);
    fflush(stdout);
}

static void *nothing(void *arg)
{
    return arg;
}

/* Runs fn as the only strand of a shared fibre: what it hands over is refused from the first strand on. */
static void *as_guest(strand_fn *fn)
{
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, NULL);
    strand guest = strand_spawn_with(scope, STRAND_ATTR(.name = "lodger", .fibre = shared), fn, NULL, 0);
    return strand_join(guest);
}

/* ---- opening --------------------------------------------------------------------------------------------- */

static void open_with_no_size(void)
{
    STRAND_SCOPE(scope);
    strand_fibre_open(scope, &(strand_fibre_attr){.count = 1});
}

static void open_with_an_absurd_size(void)
{
    STRAND_SCOPE(scope);
    strand_fibre_open(scope, &(strand_fibre_attr){.size = 5000});
}

static void open_fewer_than_none(void)
{
    STRAND_SCOPE(scope);
    strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = -1));
}

static void open_too_many(void)
{
    STRAND_SCOPE(scope);
    strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 65537));
}

static strand_scope plain;

static void *open_in(void *arg)
{
    strand_fibre_open(plain, NULL);
    return arg;
}

static void open_in_a_foreign_scope(void)
{
    STRAND_SCOPE(scope);
    plain = scope;
    strand_join(strand_spawn(scope, open_in, NULL));
}

/* ---- handles --------------------------------------------------------------------------------------------- */

static void open_and_leave(void)
{
    STRAND_SCOPE(scope);
    stale = strand_fibre_open(scope, NULL);
}

static void spawn_on_a_stale_fibre(void)
{
    open_and_leave();
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = stale), nothing, NULL, 0);
}

static void ask_a_stale_fibre(void)
{
    strand_fibre_info info = {.size = sizeof info};
    open_and_leave();
    strand_fibre_info_get(stale, 0, &info);
}

static void trim_a_stale_fibre(void)
{
    open_and_leave();
    strand_fibre_trim(stale);
}

static void count_a_stale_fibre(void)
{
    open_and_leave();
    strand_fibre_count(stale);
}

static void spawn_on_an_invented_fibre(void)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = {{0x1000, 7}}), nothing, NULL, 0);
}

static void ask_the_handle_of_a_channel(void)
{
    union {
        strand_chan channel;
        strand_fibre fibre;
    } handle;
    STRAND_SCOPE(scope);
    handle.channel = strand_chan_open(scope, sizeof(long), 4, NULL);
    strand_fibre_count(handle.fibre);
}

static void ask_the_handle_of_a_strand(void)
{
    union {
        strand strand;
        strand_fibre fibre;
    } handle = {strand_self()};
    strand_fibre_count(handle.fibre);
}

static void send_to_a_fibre(void)
{
    union {
        strand_chan channel;
        strand_fibre fibre;
    } handle;
    long value = 1;
    STRAND_SCOPE(scope);
    handle.fibre = strand_fibre_open(scope, NULL);
    STRAND_IGNORE(strand_chan_send(handle.channel, &value));
}

static void *spawn_on_the_others_fibre(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = stale), nothing, NULL, 0);
    return arg;
}

static void spawn_on_a_fibre_of_another_run(void)
{
    STRAND_SCOPE(scope);
    stale = strand_fibre_open(scope, NULL);
    strand_run(STRAND_OPTIONS(.own_threads = true, .on_misuse = tell), spawn_on_the_others_fibre, NULL);
}

/* ---- figures --------------------------------------------------------------------------------------------- */

static void ask_with_no_size(void)
{
    strand_fibre_info info = {0};
    STRAND_SCOPE(scope);
    strand_fibre_info_get(strand_fibre_open(scope, NULL), 0, &info);
}

static void ask_for_nothing(void)
{
    STRAND_SCOPE(scope);
    strand_fibre_info_get(strand_fibre_open(scope, NULL), 0, NULL);
}

static void ask_for_one_that_is_not_there(void)
{
    strand_fibre_info info = {.size = sizeof info};
    STRAND_SCOPE(scope);
    strand_fibre_info_get(strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 2)), 2, &info);
}

/* ---- spawning -------------------------------------------------------------------------------------------- */

static void choose_a_stack_size(void)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .stack_size = 65536), nothing, NULL, 0);
}

static void wipe_a_stack_of_its_own(void)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.wipe = true), nothing, NULL, 0);
}

static void choose_a_pool(void)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .pool = strand_pool_self()), nothing, NULL, 0);
}

/* ---- what is handed over --------------------------------------------------------------------------------- */

static void *give_local(void *arg)
{
    int local = 0;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, nothing, &local));
    return arg;
}

static void *give_local_with_attributes(void *arg)
{
    int local = 0;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, NULL, nothing, &local, 0));
    return arg;
}

static void *give_local_to_a_guest(void *arg)
{
    int local = 0;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = shared), nothing, &local, 0));
    return arg;
}

static void *result_is_local(void *arg)
{
    static void *volatile place;
    int local = 0;
    (void)arg;
    place = &local;
    return place;
}

static void *offload_local(void *arg)
{
    int local = 0;
    strand_offload(nothing, &local);
    return arg;
}

static void *offload_local_on(void *arg)
{
    int local = 0;
    strand_offload_on((strand_crew){{0, 0}}, nothing, &local);
    return arg;
}

static void *offload_local_with(void *arg)
{
    int local = 0;
    strand_offload_with(NULL, nothing, &local, 0);
    return arg;
}

static void *inherit_local(void *arg)
{
    int local = 0;
    STRAND_LOCAL(&KEY, &local);
    return arg;
}

static void *wait_with_a_local_key(void *arg)
{
    static strand_prio_semaphore sem;
    int key = 0;
    strand_prio_init(&sem, &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 1});
    STRAND_IGNORE(strand_prio_try_acquire(&sem, NULL));
    strand_prio_acquire(&sem, &key);
    return arg;
}

static void *run_once_for_a_local(void *arg)
{
    static strand_once once;
    strand_once_run(&once, result_is_local, arg);
    return arg;
}

static void *lock_is_local(void *arg)
{
    strand_limit limit;
    strand_limit_init(&limit, 1, "limit");
    return arg;
}

/* ---- what is copied ---------------------------------------------------------------------------------------- */

struct message {
    long number;
    void *place;
};

static void *copy_to_child(void *arg)
{
    struct message message = {1, &message};
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, NULL, nothing, &message, sizeof message));
    return arg;
}

static void *copy_to_crew(void *arg)
{
    struct message message = {1, &message};
    strand_offload_with(NULL, nothing, &message, sizeof message);
    return arg;
}

static void *copy_no_address(void *arg)
{
    struct message message = {(long)(intptr_t)&stale, arg};
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof message, 1, NULL);
    strand_join(strand_spawn_with(scope, NULL, nothing, &message, sizeof message));
    STRAND_IGNORE(strand_chan_send(chan, &message));
    return arg;
}

enum by { BY_SEND, BY_TRY, BY_POST, BY_SELECT };

static void *copy_to_channel(enum by by)
{
    struct message message = {1, &by};
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof message, 1, NULL);
    strand_case cases[] = {strand_on_send(chan, &message)};
    switch (by) {
    case BY_SEND:
        STRAND_IGNORE(strand_chan_send(chan, &message));
        break;
    case BY_TRY:
        STRAND_IGNORE(strand_chan_try_send(chan, &message));
        break;
    case BY_POST:
        STRAND_IGNORE(strand_chan_post(chan, &message));
        break;
    case BY_SELECT:
        strand_select(cases, 1, 0);
    }
    return NULL;
}

static void *send_address(void *arg)
{
    (void)arg;
    return copy_to_channel(BY_SEND);
}

static void *try_to_send_address(void *arg)
{
    (void)arg;
    return copy_to_channel(BY_TRY);
}

static void *post_address(void *arg)
{
    (void)arg;
    return copy_to_channel(BY_POST);
}

static void *select_to_send_address(void *arg)
{
    (void)arg;
    return copy_to_channel(BY_SELECT);
}

/* ---- actors ---------------------------------------------------------------------------------------------- */

STRAND_MESSAGE(letter, {
    uint64_t number;
    void *address;
});

static void receive_nothing(void *state, strand_message *message)
{
    (void)state;
    (void)message;
}

static const strand_actor_class deaf = {
    .size = sizeof deaf, .name = "deaf", .state_size = sizeof(letter), .receive = receive_nothing};

static void *give_local_to_an_actor(void *arg)
{
    int local = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor_give(strand_actor_spawn(system, NULL, &deaf, NULL, 0), &letter_message, &local);
    return arg;
}

static void *run_a_local_among_actors(void *arg)
{
    int local = 0;
    STRAND_ACTORS(system, NULL);
    strand_actors_run(system, NULL, nothing, &local);
    return arg;
}

static void *tell_address(void *arg)
{
    int local = 0;
    STRAND_ACTORS(system, NULL);
    strand_tell(strand_actor_spawn(system, NULL, &deaf, NULL, 0), STRAND_MSG(letter, 1, &local));
    return arg;
}

static void *begin_an_actor_with_address(void *arg)
{
    int local = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor_spawn(system, NULL, &deaf, &(letter){1, &local}, sizeof(letter));
    return arg;
}

/* ---- objects that others wait at ------------------------------------------------------------------------- */

/* A strand with a stack of its own finds the guest's object taken, and waits there. */
static void *place;

static void *lock_it(void *arg)
{
    strand_mutex_lock(place);
    return arg;
}

static void *read_it(void *arg)
{
    strand_rwlock_read(place);
    return arg;
}

static void *write_it(void *arg)
{
    strand_rwlock_write(place);
    return arg;
}

static void let_wait(strand_scope scope, strand_fn *fn, void *object)
{
    place = object;
    strand_spawn(scope, fn, NULL);
    strand_sleep(STRAND_MS);
}

static void *mutex_is_local(void *arg)
{
    strand_mutex mutex = {0};
    STRAND_SCOPE(scope);
    strand_mutex_lock(&mutex);
    let_wait(scope, lock_it, &mutex);
    strand_mutex_unlock(&mutex);
    return arg;
}

static void *reader_is_local(void *arg)
{
    strand_rwlock lock = {0};
    STRAND_SCOPE(scope);
    strand_rwlock_read(&lock);
    let_wait(scope, write_it, &lock);
    strand_rwlock_read_done(&lock);
    return arg;
}

static void *writer_is_local(void *arg)
{
    strand_rwlock lock = {0};
    STRAND_SCOPE(scope);
    strand_rwlock_write(&lock);
    let_wait(scope, read_it, &lock);
    strand_rwlock_write_done(&lock);
    return arg;
}

/* What lies at the mutex's address while another strand of the fibre is active is that one's. */
static void *lock_the_neighbours(void *arg)
{
    volatile char mine[4096];
    for (size_t i = 0; i < sizeof mine; i++)
        mine[i] = 8;
    strand_mutex_lock(place);
    return arg;
}

static void *neighbours_mutex(void *arg)
{
    strand_mutex mutex = {0};
    STRAND_SCOPE(scope);
    place = &mutex;
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = shared, .name = "lodger"), lock_the_neighbours, NULL, 0));
    return arg;
}

static void *condition_is_local(void *arg)
{
    static strand_mutex mutex;
    strand_condition condition = {0};
    strand_mutex_lock(&mutex);
    strand_condition_wait(&condition, &mutex);
    return arg;
}

static void *semaphore_is_local(void *arg)
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_INIT(0);
    strand_semaphore_acquire(&semaphore);
    return arg;
}

static void *semaphore_is_local_and_tried(void *arg)
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_INIT(0);
    STRAND_IGNORE(strand_semaphore_try_acquire(&semaphore));
    return arg;
}

static void *barrier_is_local(void *arg)
{
    strand_barrier barrier = STRAND_BARRIER_INIT(2);
    strand_barrier_wait(&barrier);
    return arg;
}

static void *once_is_local(void *arg)
{
    strand_once once = {0};
    strand_once_run(&once, nothing, NULL);
    return arg;
}

static void *event_is_local(void *arg)
{
    strand_event event = {0};
    strand_event_wait(&event);
    return arg;
}

static void *event_is_local_and_set(void *arg)
{
    strand_event event = {0};
    strand_event_set(&event);
    return arg;
}

static void *group_is_local(void *arg)
{
    strand_group group = {0};
    strand_group_add(&group, 1);
    strand_group_wait(&group);
    return arg;
}

static void *latch_is_local(void *arg)
{
    strand_latch latch = STRAND_LATCH_INIT(1);
    strand_latch_wait(&latch);
    return arg;
}

static void *select_on_local(void *arg)
{
    strand_event event = {0};
    strand_case cases[] = {strand_on_event(&event)};
    strand_select(cases, 1, 0);
    return arg;
}

static void *throw_with_a_local_payload(void *arg)
{
    int local = 0;
    strand_throw_with(&STRAND_ERROR, STRAND_THROW_INFO(.payload = &local), "it has a payload");
    return arg;
}

static void *throw_a_local_kind(void *arg)
{
    strand_kind kind = STRAND_KIND("local", &STRAND_ERROR);
    strand_throw(&kind, "of a kind that is gone soon");
    return arg;
}

static void *throw_a_local_kind_with(void *arg)
{
    strand_kind kind = STRAND_KIND("local", &STRAND_ERROR);
    strand_throw_with(&kind, NULL, "of a kind that is gone soon");
    return arg;
}

static void *inherit_by_a_local_key(void *arg)
{
    strand_key key = STRAND_KEY("local");
    STRAND_LOCAL(&key, arg);
    return arg;
}

static void *start_a_thread_with_local(void *arg)
{
    int local = 0;
    strand_sim_thread(nothing, &local);
    return arg;
}

static int64_t asks_a_local(const void *key, void *arg)
{
    (void)key;
    return *(int *)arg;
}

static void *order_by_local(void *arg)
{
    static strand_prio_semaphore sem;
    int local = 0;
    strand_prio_init(&sem,
                     &(strand_prio_options){
                         .size = sizeof(strand_prio_options), .permits = 1, .priority = asks_a_local, .arg = &local});
    return arg;
}

static void *local_name_of_a_limit(void *arg)
{
    static strand_limit limit;
    char name[] = "limit";
    strand_limit_init(&limit, 1, name);
    return arg;
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
    strand_fn *guest;
} cases[] = {
    {"open_with_no_size", open_with_no_size, NULL},
    {"open_with_an_absurd_size", open_with_an_absurd_size, NULL},
    {"open_fewer_than_none", open_fewer_than_none, NULL},
    {"open_too_many", open_too_many, NULL},
    {"open_in_a_foreign_scope", open_in_a_foreign_scope, NULL},
    {"spawn_on_a_stale_fibre", spawn_on_a_stale_fibre, NULL},
    {"ask_a_stale_fibre", ask_a_stale_fibre, NULL},
    {"trim_a_stale_fibre", trim_a_stale_fibre, NULL},
    {"count_a_stale_fibre", count_a_stale_fibre, NULL},
    {"spawn_on_an_invented_fibre", spawn_on_an_invented_fibre, NULL},
    {"spawn_on_a_fibre_of_another_run", spawn_on_a_fibre_of_another_run, NULL},
    {"ask_with_no_size", ask_with_no_size, NULL},
    {"ask_for_nothing", ask_for_nothing, NULL},
    {"ask_the_handle_of_a_channel", ask_the_handle_of_a_channel, NULL},
    {"ask_the_handle_of_a_strand", ask_the_handle_of_a_strand, NULL},
    {"send_to_a_fibre", send_to_a_fibre, NULL},
    {"ask_for_one_that_is_not_there", ask_for_one_that_is_not_there, NULL},
    {"choose_a_stack_size", choose_a_stack_size, NULL},
    {"wipe_a_stack_of_its_own", wipe_a_stack_of_its_own, NULL},
    {"choose_a_pool", choose_a_pool, NULL},
    {"give_local", NULL, give_local},
    {"give_local_with_attributes", NULL, give_local_with_attributes},
    {"give_local_to_a_guest", NULL, give_local_to_a_guest},
    {"result_is_local", NULL, result_is_local},
    {"offload_local", NULL, offload_local},
    {"offload_local_on", NULL, offload_local_on},
    {"offload_local_with", NULL, offload_local_with},
    {"copy_to_crew", NULL, copy_to_crew},
    {"inherit_local", NULL, inherit_local},
    {"wait_with_a_local_key", NULL, wait_with_a_local_key},
    {"run_once_for_a_local", NULL, run_once_for_a_local},
    {"lock_is_local", NULL, lock_is_local},
    {"copy_to_child", NULL, copy_to_child},
    {"copy_no_address", NULL, copy_no_address},
    {"give_local_to_an_actor", NULL, give_local_to_an_actor},
    {"run_a_local_among_actors", NULL, run_a_local_among_actors},
    {"tell_address", NULL, tell_address},
    {"begin_an_actor_with_address", NULL, begin_an_actor_with_address},
    {"send_address", NULL, send_address},
    {"try_to_send_address", NULL, try_to_send_address},
    {"post_address", NULL, post_address},
    {"select_to_send_address", NULL, select_to_send_address},
    {"mutex_is_local", NULL, mutex_is_local},
    {"neighbours_mutex", NULL, neighbours_mutex},
    {"reader_is_local", NULL, reader_is_local},
    {"writer_is_local", NULL, writer_is_local},
    {"condition_is_local", NULL, condition_is_local},
    {"semaphore_is_local", NULL, semaphore_is_local},
    {"semaphore_is_local_and_tried", NULL, semaphore_is_local_and_tried},
    {"barrier_is_local", NULL, barrier_is_local},
    {"once_is_local", NULL, once_is_local},
    {"event_is_local", NULL, event_is_local},
    {"event_is_local_and_set", NULL, event_is_local_and_set},
    {"group_is_local", NULL, group_is_local},
    {"latch_is_local", NULL, latch_is_local},
    {"select_on_local", NULL, select_on_local},
    {"throw_with_a_local_payload", NULL, throw_with_a_local_payload},
    {"throw_a_local_kind", NULL, throw_a_local_kind},
    {"throw_a_local_kind_with", NULL, throw_a_local_kind_with},
    {"inherit_by_a_local_key", NULL, inherit_by_a_local_key},
    {"start_a_thread_with_local", NULL, start_a_thread_with_local},
    {"order_by_local", NULL, order_by_local},
    {"local_name_of_a_limit", NULL, local_name_of_a_limit},
};

static const char *which = "";

static void *root(void *arg)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(which, cases[i].name) != 0)
            continue;
        if (cases[i].guest)
            as_guest(cases[i].guest);
        else
            cases[i].run();
    }
    return arg;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        which = argv[1];
    strand_run(STRAND_OPTIONS(.on_misuse = tell), root, NULL);
    puts("still alive");
    return 0;
}
