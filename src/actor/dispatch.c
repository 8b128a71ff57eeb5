/*
 * Dispatchers. See dispatch.h. A system's own dispatchers are opened with it; executors that have names of their own,
 * when an actor first asks for one.
 */
#include "dispatch.h"

#include "runners.h"

#include "../sched/records.h"
#include "../strand/misuse.h"
#include "../strand/pool.h"
#include "../strand/sized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS_MOST = 64 };

/* How a dispatcher gets its threads. */
enum executor { EXECUTOR_SHARED, EXECUTOR_OWN, EXECUTOR_CALLERS, EXECUTOR_GROWS, EXECUTOR_UNKNOWN };

static enum executor executor_of(const char *name)
{
    static const struct {
        const char *name;
        enum executor executor;
    } known[] = {{"", EXECUTOR_SHARED},
                 {"default-executor", EXECUTOR_SHARED},
                 {"thread-pool-executor", EXECUTOR_SHARED},
                 {"fork-join-executor", EXECUTOR_OWN},
                 {"current-context-executor", EXECUTOR_CALLERS},
                 {"task-executor", EXECUTOR_GROWS}};
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return known[i].executor;
    return name ? EXECUTOR_UNKNOWN : EXECUTOR_SHARED;
}

struct opening {
    struct system *system;
    const strand_dispatcher *what;
    enum executor executor;
    strand_pool pool;
};

static void *open_pool(void *arg)
{
    struct opening *opening = arg;
    const strand_dispatcher *what = opening->what;
    int threads = opening->executor == EXECUTOR_GROWS ? 1 : what->threads;
    opening->pool =
        runtime_of(thread_self())
            ->ops->pool_open(opening->system->scope,
                             STRAND_POOL_ATTR(.threads = threads, .scheduler = what->scheduler, .name = what->name));
    return NULL;
}

static bool is_named(strand_pool pool)
{
    return pool.bits[0] || pool.bits[1];
}

/* Find the pool's record and keep it for the runners: another strand may close the pool before
 * a runner lives there. */
static int find_pool(struct thread *thread, struct opening *opening, struct pool **out)
{
    const strand_dispatcher *what = opening->what;
    bool named = is_named(what->pool);
    *out = opening->system->default_runners.pool;
    if (!named && opening->executor != EXECUTOR_OWN && opening->executor != EXECUTOR_GROWS) {
        pool_record_ref(*out);
        return 0;
    }
    opening->pool = what->pool;
    strand_exception *e = named ? NULL : strand_try(open_pool, opening, NULL);
    int error = !e ? 0 : strand_exception_code(e) ? strand_exception_code(e) : -EINTR;
    strand_exception_release(e);
    if (error)
        return error;
    struct opened_pool *op = pool_find(thread_self(), opening->pool, "STRAND_ACTORS");
    *out = pool_behind(op);
    pool_record_ref(*out);
    pool_unref(op);
    (void)thread;
    return 0;
}

static int make(struct thread *thread, struct system *system, const strand_dispatcher *what, struct runners **out)
{
    struct opening opening = {.system = system, .what = what, .executor = executor_of(what->executor)};
    struct pool *pool;
    if (opening.executor == EXECUTOR_UNKNOWN)
        return -ENOENT;
    if (is_named(what->pool))
        opening.executor = EXECUTOR_SHARED;
    struct runners *runners = aligned_alloc(CACHE_LINE, (sizeof *runners + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
    if (!runners)
        return -ENOMEM;
    int error = find_pool(thread, &opening, &pool);
    thread = thread_self();
    int pin = opening.executor == EXECUTOR_CALLERS && !what->pin ? system->thread : what->pin - 1;
    int most = opening.executor != EXECUTOR_GROWS ? 0 : what->threads ? what->threads : TASKS_MOST;
    if (!error && (error = runners_open(thread, system, runners, pool, pin, most)))
        pool_record_unref(thread_self(), pool);
    if (error) {
        free(runners);
        return error;
    }
    strncpy(runners->name, what->name ? what->name : what->executor, sizeof runners->name - 1);
    runners->most = what->max_batch ? what->max_batch : TURN_MOST;
    runners->quantum = what->quantum_ns;
    *out = runners;
    return 0;
}

static void link_runners(struct thread *thread, struct system *system, struct runners *runners)
{
    spin_lock(&system->lock, thread);
    runners->next = atomic_load_explicit(&system->runners, memory_order_relaxed);
    arch_san_release(&system->runners);
    atomic_store_explicit(&system->runners, runners, memory_order_release); /* [PB1] */
    spin_unlock(&system->lock);
}

static struct runners *find(struct system *system, const char *name)
{
    struct runners *runners = atomic_load_explicit(&system->runners, memory_order_acquire); /* [PB1] */
    arch_san_acquire(&system->runners);
    while (runners && strcmp(runners->name, name) != 0)
        runners = runners->next;
    return runners;
}

int dispatch_open(struct thread *thread, struct system *system, const strand_dispatcher *dispatchers, size_t count)
{
    if (count)
        must_be_there(dispatchers, "table of dispatchers", "STRAND_ACTORS");
    for (size_t i = 0; i < count; i++) {
        const strand_dispatcher *what = &dispatchers[i];
        struct runners *runners;
        must_have_size(what->size, sizeof *what, "strand_dispatcher", "STRAND_ACTORS");
        if (!what->name || !*what->name || strlen(what->name) >= sizeof runners->name)
            MISUSE("STRAND_ACTORS", "", "a dispatcher has no name, or one that is too long");
        if (what->quantum_ns < 0 || what->threads < 0)
            MISUSE("STRAND_ACTORS", "", "the dispatcher '%s' has a negative quantum or number of threads", what->name);
        int error = make(thread, system, what, &runners);
        if (error)
            return error;
        thread = thread_self();
        link_runners(thread, system, runners);
    }
    return 0;
}

int dispatch_find(struct thread *thread, struct system *system, const char *name, struct runners **out)
{
    *out = &system->default_runners;
    if (!name)
        return 0;
    if ((*out = find(system, name)))
        return 0;
    *out = &system->default_runners;
    enum executor executor = executor_of(name);
    if (executor == EXECUTOR_SHARED)
        return 0;
    if (executor == EXECUTOR_UNKNOWN)
        return -ENOENT;
    /* Two concurrent requests for the same executor open it twice, and both are used. */
    strand_dispatcher what = {.size = sizeof what, .name = name, .executor = name};
    int error = make(thread, system, &what, out);
    if (!error)
        link_runners(thread_self(), system, *out);
    return error;
}

void dispatch_free(struct system *system)
{
    struct runners *runners = atomic_load_explicit(&system->runners, memory_order_acquire); /* [PB1] */
    for (struct runners *next; runners; runners = next) {
        next = runners->next;
        pool_record_unref(thread_self(), runners->pool);
        free(runners);
    }
}
