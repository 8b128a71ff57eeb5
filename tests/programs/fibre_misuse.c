/*
 * Misuse of shared fibres.
 */
#include "cases.h"

#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/sim.h"
#include "strand/sync.h"

static strand_fibre stale, shared;
static const strand_key KEY;

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

/* A guest that refers to its own stack: the report names it, and says where. */
#define GUEST(MACRO, name, ...)                                                                                        \
    static void *name##_(void *arg);                                                                                   \
    MACRO(name, __VA_ARGS__, "below", "lodger", "bytes")                                                               \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        return as_guest(name##_);                                                                                      \
    }                                                                                                                  \
    static void *name##_(void *arg)
#define MISUSE_BY_A_GUEST(name, ...) GUEST(MISUSE, name, __VA_ARGS__)
#define MISUSE_OF_A_GUESTS_LOCK(name, ...) GUEST(MISUSE_OWN_STACK, name, __VA_ARGS__)
#define MISUSE_BY_A_COPY(name, ...) GUEST(MISUSE_IN_DEBUG, name, __VA_ARGS__)

/* ---- opening --------------------------------------------------------------------------------------------- */

MISUSE(open_with_no_size, "strand_fibre_open", "size is 0")
DOES(STRAND_SCOPE(scope); strand_fibre_open(scope, &(strand_fibre_attr){.count = 1}))

MISUSE(open_with_an_absurd_size, "strand_fibre_open", "size is 5000")
DOES(STRAND_SCOPE(scope); strand_fibre_open(scope, &(strand_fibre_attr){.size = 5000}))

MISUSE(open_fewer_than_none, "strand_fibre_open", "count is -1")
DOES(STRAND_SCOPE(scope); strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = -1)))

MISUSE(open_too_many, "strand_fibre_open", "count is 65537")
DOES(STRAND_SCOPE(scope); strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 65537)))

static strand_scope plain;

static void *open_in(void *arg)
{
    strand_fibre_open(plain, NULL);
    return arg;
}

MISUSE(open_in_a_foreign_scope, "strand_fibre_open", "scope")
{
    STRAND_SCOPE(scope);
    plain = scope;
    strand_join(strand_spawn(scope, open_in, NULL));
    return arg;
}

/* ---- handles --------------------------------------------------------------------------------------------- */

static void open_and_leave(void)
{
    STRAND_SCOPE(scope);
    stale = strand_fibre_open(scope, NULL);
}

MISUSE(spawn_on_a_stale_fibre, "strand_spawn_with", "its scope has been left", "the fibre 'fibre' was opened in ")
{
    open_and_leave();
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = stale), nothing, NULL, 0);
    return arg;
}

MISUSE(ask_a_stale_fibre, "strand_fibre_info_get", "its scope has been left")
{
    strand_fibre_info info = {.size = sizeof info};
    open_and_leave();
    strand_fibre_info_get(stale, 0, &info);
    return arg;
}

MISUSE(trim_a_stale_fibre, "strand_fibre_trim", "its scope has been left")
DOES(open_and_leave(); strand_fibre_trim(stale))

MISUSE(count_a_stale_fibre, "strand_fibre_count", "its scope has been left")
DOES(open_and_leave(); strand_fibre_count(stale))

MISUSE(spawn_on_an_invented_fibre, "strand_spawn_with", "fibre")
DOES(STRAND_SCOPE(scope); strand_spawn_with(scope, STRAND_ATTR(.fibre = {{0x1000, 7}}), nothing, NULL, 0))

MISUSE(ask_the_handle_of_a_channel, "strand_fibre_count", "the handle is not a fibre's")
{
    union {
        strand_chan channel;
        strand_fibre fibre;
    } handle;
    STRAND_SCOPE(scope);
    handle.channel = strand_chan_open(scope, sizeof(long), 4, NULL);
    strand_fibre_count(handle.fibre);
    return arg;
}

MISUSE(ask_the_handle_of_a_strand, "strand_fibre_count", "the handle is not a fibre's")
{
    union {
        strand strand;
        strand_fibre fibre;
    } handle = {strand_self()};
    strand_fibre_count(handle.fibre);
    return arg;
}

MISUSE(send_to_a_fibre, "strand_chan_send", "channel")
{
    union {
        strand_chan channel;
        strand_fibre fibre;
    } handle;
    long value = 1;
    STRAND_SCOPE(scope);
    handle.fibre = strand_fibre_open(scope, NULL);
    STRAND_IGNORE(strand_chan_send(handle.channel, &value));
    return arg;
}

static void *spawn_on_the_others_fibre(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = stale), nothing, NULL, 0);
    return arg;
}

MISUSE(spawn_on_a_fibre_of_another_run, "strand_spawn_with", "another run")
{
    STRAND_SCOPE(scope);
    stale = strand_fibre_open(scope, NULL);
    strand_run(STRAND_OPTIONS(.own_threads = true, .on_misuse = tell), spawn_on_the_others_fibre, NULL);
    return arg;
}

/* ---- figures --------------------------------------------------------------------------------------------- */

MISUSE(ask_with_no_size, "strand_fibre_info_get", "size is 0")
{
    strand_fibre_info info = {0};
    STRAND_SCOPE(scope);
    strand_fibre_info_get(strand_fibre_open(scope, NULL), 0, &info);
    return arg;
}

MISUSE(ask_for_one_that_is_not_there, "strand_fibre_info_get", "no fibre 2")
{
    strand_fibre_info info = {.size = sizeof info};
    STRAND_SCOPE(scope);
    strand_fibre_info_get(strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 2)), 2, &info);
    return arg;
}

/* ---- spawning -------------------------------------------------------------------------------------------- */

MISUSE(choose_a_stack_size, "strand_spawn_with", "attr.stack_size")
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .stack_size = 65536), nothing, NULL, 0);
    return arg;
}

MISUSE(wipe_a_stack_of_its_own, "strand_spawn_with", "attr.wipe")
DOES(STRAND_SCOPE(scope); strand_spawn_with(scope, STRAND_ATTR(.wipe = true), nothing, NULL, 0))

MISUSE(choose_a_pool, "strand_spawn_with", "attr.pool")
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .pool = strand_pool_self()), nothing, NULL, 0);
    return arg;
}

/* ---- what is handed over --------------------------------------------------------------------------------- */

/* V-18, contract 3.12 */
MISUSE_BY_A_GUEST(give_local, "strand_spawn", "the argument points into the stack")
{
    int local = 0;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, nothing, &local));
    return arg;
}

MISUSE_BY_A_GUEST(give_local_with_attributes, "strand_spawn_with", "the argument points into the stack")
{
    int local = 0;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, NULL, nothing, &local, 0));
    return arg;
}

MISUSE_BY_A_GUEST(give_local_to_a_guest, "strand_spawn_with", "the argument points into the stack")
{
    int local = 0;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = shared), nothing, &local, 0));
    return arg;
}

/* V-18, contract 3.12 */
MISUSE_BY_A_GUEST(result_is_local, "strand_fn", "its result points into its own stack")
{
    static void *volatile place;
    int local = 0;
    (void)arg;
    place = &local;
    return place;
}

MISUSE_BY_A_GUEST(offload_local, "strand_offload", "the argument points into the stack")
DOES(int local = 0; strand_offload(nothing, &local))

MISUSE_BY_A_GUEST(offload_local_on, "strand_offload_on", "the argument points into the stack")
DOES(int local = 0; strand_offload_on((strand_crew){{0, 0}}, nothing, &local))

MISUSE_BY_A_GUEST(offload_local_with, "strand_offload_with", "the argument points into the stack")
DOES(int local = 0; strand_offload_with(NULL, nothing, &local, 0))

/* V-18, contract 3.12 */
MISUSE_BY_A_GUEST(inherit_local, "STRAND_LOCAL", "the value points into the stack")
DOES(int local = 0; STRAND_LOCAL(&KEY, &local))

MISUSE_BY_A_GUEST(wait_with_a_local_key, "strand_prio_acquire", "the key points into the stack")
{
    static strand_prio_semaphore sem;
    int key = 0;
    strand_prio_init(&sem, &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 1});
    STRAND_IGNORE(strand_prio_try_acquire(&sem, NULL));
    strand_prio_acquire(&sem, &key);
    return arg;
}

MISUSE_BY_A_GUEST(run_once_for_a_local, "strand_once_run", "the result points into the stack")
DOES(static strand_once once; strand_once_run(&once, result_is_local_, arg))

MISUSE_BY_A_GUEST(lock_is_local, "strand_limit_init", "the semaphore lies in the stack")
DOES(strand_limit limit; strand_limit_init(&limit, 1, "limit"))

/* ---- what is copied ---------------------------------------------------------------------------------------- */

struct message {
    long number;
    void *place;
};

/* contract 3.5 */
MISUSE_BY_A_COPY(copy_to_child, "strand_spawn_with", "at byte 8")
{
    struct message message = {1, &message};
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, NULL, nothing, &message, sizeof message));
    return arg;
}

MISUSE_BY_A_COPY(copy_to_crew, "strand_offload_with", "at byte 8")
{
    struct message message = {1, &message};
    strand_offload_with(NULL, nothing, &message, sizeof message);
    return arg;
}

static void *copy_numbers(void *arg)
{
    struct message message = {(long)(intptr_t)&stale, arg};
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof message, 1, NULL);
    strand_join(strand_spawn_with(scope, NULL, nothing, &message, sizeof message));
    STRAND_IGNORE(strand_chan_send(chan, &message));
    return arg;
}

NO_MISUSE(copy_no_address)
{
    (void)arg;
    return as_guest(copy_numbers);
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

/* contract 3.5 */
MISUSE_BY_A_COPY(send_address, "strand_chan_send", "at byte 8")
{
    (void)arg;
    return copy_to_channel(BY_SEND);
}

MISUSE_BY_A_COPY(try_to_send_address, "strand_chan_try_send", "at byte 8")
{
    (void)arg;
    return copy_to_channel(BY_TRY);
}

MISUSE_BY_A_COPY(post_address, "strand_chan_post", "at byte 8")
{
    (void)arg;
    return copy_to_channel(BY_POST);
}

MISUSE_BY_A_COPY(select_to_send_address, "strand_select", "at byte 8")
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

MISUSE_BY_A_GUEST(give_local_to_an_actor, "strand_actor_give", "the message points into the stack")
{
    int local = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor_give(strand_actor_spawn(system, NULL, &deaf, NULL, 0), &letter_message, &local);
    return arg;
}

MISUSE_BY_A_GUEST(run_a_local_among_actors, "strand_actors_run", "the argument points into the stack")
{
    int local = 0;
    STRAND_ACTORS(system, NULL);
    strand_actors_run(system, NULL, nothing, &local);
    return arg;
}

/* contract 3.5 */
MISUSE_BY_A_COPY(tell_address, "strand_tell", "at byte 8")
{
    int local = 0;
    STRAND_ACTORS(system, NULL);
    strand_tell(strand_actor_spawn(system, NULL, &deaf, NULL, 0), STRAND_MSG(letter, 1, &local));
    return arg;
}

MISUSE_BY_A_COPY(begin_an_actor_with_address, "strand_actor_spawn", "at byte 8")
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

/* V-18, contract 3.12 */
MISUSE_OF_A_GUESTS_LOCK(mutex_is_local, "strand_mutex_unlock", "the mutex lies in the stack")
{
    strand_mutex mutex = {0};
    STRAND_SCOPE(scope);
    strand_mutex_lock(&mutex);
    let_wait(scope, lock_it, &mutex);
    strand_mutex_unlock(&mutex);
    return arg;
}

MISUSE_OF_A_GUESTS_LOCK(reader_is_local, "strand_rwlock_read_done", "the lock lies in the stack")
{
    strand_rwlock lock = {0};
    STRAND_SCOPE(scope);
    strand_rwlock_read(&lock);
    let_wait(scope, write_it, &lock);
    strand_rwlock_read_done(&lock);
    return arg;
}

MISUSE_OF_A_GUESTS_LOCK(writer_is_local, "strand_rwlock_write_done", "the lock lies in the stack")
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

MISUSE_OF_A_GUESTS_LOCK(neighbours_mutex, "strand_mutex_lock", "the mutex lies in the stack")
{
    strand_mutex mutex = {0};
    STRAND_SCOPE(scope);
    place = &mutex;
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = shared, .name = "lodger"), lock_the_neighbours, NULL, 0));
    return arg;
}

/* V-18, contract 3.12 */
MISUSE_BY_A_GUEST(condition_is_local, "strand_condition_wait", "the condition lies in the stack")
{
    static strand_mutex mutex;
    strand_condition condition = {0};
    strand_mutex_lock(&mutex);
    strand_condition_wait(&condition, &mutex);
    return arg;
}

MISUSE_BY_A_GUEST(semaphore_is_local, "strand_semaphore_acquire", "the semaphore lies in the stack")
DOES(strand_semaphore semaphore = STRAND_SEMAPHORE_INIT(0); strand_semaphore_acquire(&semaphore))

MISUSE_BY_A_GUEST(semaphore_is_local_and_tried, "strand_semaphore_try_acquire", "the semaphore lies in the stack")
DOES(strand_semaphore semaphore = STRAND_SEMAPHORE_INIT(0); STRAND_IGNORE(strand_semaphore_try_acquire(&semaphore)))

MISUSE_BY_A_GUEST(barrier_is_local, "strand_barrier_wait", "the barrier lies in the stack")
DOES(strand_barrier barrier = STRAND_BARRIER_INIT(2); strand_barrier_wait(&barrier))

MISUSE_BY_A_GUEST(once_is_local, "strand_once_run", "the once lies in the stack")
DOES(strand_once once = {0}; strand_once_run(&once, nothing, NULL))

/* V-18, contract 3.12 */
MISUSE_BY_A_GUEST(event_is_local, "strand_event_wait", "the event lies in the stack")
DOES(strand_event event = {0}; strand_event_wait(&event))

MISUSE_BY_A_GUEST(event_is_local_and_set, "strand_event_set", "the event lies in the stack")
DOES(strand_event event = {0}; strand_event_set(&event))

MISUSE_BY_A_GUEST(group_is_local, "strand_group_wait", "the group lies in the stack")
{
    strand_group group = {0};
    strand_group_add(&group, 1);
    strand_group_wait(&group);
    return arg;
}

MISUSE_BY_A_GUEST(latch_is_local, "strand_latch_wait", "the latch lies in the stack")
DOES(strand_latch latch = STRAND_LATCH_INIT(1); strand_latch_wait(&latch))

/* V-18, contract 3.12 */
MISUSE_BY_A_GUEST(select_on_local, "strand_select", "the object of a case lies in the stack")
{
    strand_event event = {0};
    strand_case cases[] = {strand_on_event(&event)};
    strand_select(cases, 1, 0);
    return arg;
}

MISUSE_BY_A_GUEST(throw_with_a_local_payload, "strand_throw_with", "the payload points into the stack")
DOES(int local = 0; strand_throw_with(&STRAND_ERROR, STRAND_THROW_INFO(.payload = &local), "it has a payload"))

MISUSE_BY_A_GUEST(throw_a_local_kind, "strand_throw", "the kind points into the stack")
DOES(strand_kind kind = STRAND_KIND("local", &STRAND_ERROR); strand_throw(&kind, "of a kind that is gone soon"))

MISUSE_BY_A_GUEST(throw_a_local_kind_with, "strand_throw_with", "the kind points into the stack")
{
    strand_kind kind = STRAND_KIND("local", &STRAND_ERROR);
    strand_throw_with(&kind, NULL, "of a kind that is gone soon");
    return arg;
}

MISUSE_BY_A_GUEST(inherit_by_a_local_key, "STRAND_LOCAL", "the key points into the stack")
DOES(strand_key key = STRAND_KEY("local"); STRAND_LOCAL(&key, arg))

MISUSE_BY_A_GUEST(start_a_thread_with_local, "strand_sim_thread", "the argument points into the stack")
DOES(int local = 0; strand_sim_thread(nothing, &local))

static int64_t asks_a_local(const void *key, void *arg)
{
    (void)key;
    return *(int *)arg;
}

/* V-18, contract 3.12 */
MISUSE_BY_A_GUEST(order_by_local, "strand_prio_init", "options.arg points into the stack")
{
    static strand_prio_semaphore sem;
    int local = 0;
    strand_prio_init(&sem,
                     &(strand_prio_options){
                         .size = sizeof(strand_prio_options), .permits = 1, .priority = asks_a_local, .arg = &local});
    return arg;
}

MISUSE_BY_A_GUEST(local_name_of_a_limit, "strand_limit_init", "the name points into the stack")
{
    static strand_limit limit;
    char name[] = "limit";
    strand_limit_init(&limit, 1, name);
    return arg;
}
