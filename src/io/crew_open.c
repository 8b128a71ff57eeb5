/*
 * Opening crews, their handles, and their end. The protocol block is in crew.h; model: tests/models/crew.pml.
 */
#include "crew.h"

#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/misuse.h"
#include "../strand/scope.h"
#include "../strand/sized.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CREW_USUAL = 8, CREW_CLOSES_MOST = 64, CREW_FILES_MOST = 64, CREW_MOST = 1024 };
#define IDLE_USUAL (10 * STRAND_S)

/* What a handle refers to; ends with a scope. */
struct crew_record {
    _Atomic uint64_t word; /* as in a control block */
    void *link_[2];        /* the slab's */
    atomic_flag lock;      /* used only by the code for OBJECT_LOCK */
    struct crew *crew;
    struct owned owned;
    struct crew_origin origin; /* valid also after the crew has ended */
};
_Static_assert(sizeof(struct crew_record) <= OBJECT_SIZE && offsetof(struct crew_record, lock) == OBJECT_LOCK,
               "it lies in the slab of objects");

/* ---- ending ----------------------------------------------------------------------------------------------- */

static void close_run_crew(struct crew *crew)
{
    crew_lock(crew, NULL);
    crew->closing = true;
    crew_unlock(crew);
    crew_wake_all(NULL, crew);
    crew_join_all(crew);
    free(crew);
}

void crew_close_all(struct io_run *io)
{
    for (int i = 0; i < RUN_CREWS; i++) {
        struct crew *crew = atomic_load_explicit(&io->crews[i], memory_order_relaxed);
        if (crew)
            close_run_crew(crew);
    }
}

/* Free the record. No handle finds it any more. */
static void finish(struct thread *thread, struct crew_record *record)
{
    free(record->crew);
    arch_san_release(record);
    slab_put(&worker_of(thread)->objects, record);
}

static void unref_record(struct thread *thread, struct crew_record *record)
{
    if (handle_ref_release(thread, &record->word))
        finish(thread, record);
}

static void retire(struct thread *thread, struct crew_record *record)
{
    if (handle_retire(thread, &record->word))
        finish(thread, record);
}

/* The scope was left. The strand may resume on another thread. */
static void end_with_scope(struct thread *thread, struct owned *owned)
{
    struct crew_record *record = CONTAINER(owned, struct crew_record, owned);
    struct crew *crew = record->crew;
    struct cb *me = current_of(thread);
    struct batch batch;
    batch_init(&batch);
    may_suspend(thread, me, "STRAND_SCOPE");
    crew_lock(crew, thread);
    crew->closing = true;
    crew_turn_away(crew, JOB_REFUSED, &batch);
    bool waits = crew->threads || crew->callers;
    if (waits) {
        crew->end.node.waiter = me;
        crew->end.pool = me->member.fibre->pool;
    }
    crew_unlock(crew);
    batch_deliver(thread, &batch);
    crew_wake_all(thread, crew);
    if (waits)
        (void)crew_await(&thread, me, &crew->end, BLOCKED_CREW, WAIT_FLOOR_MOST);
    crew_join_all(crew);
    retire(thread, record);
}

/* ---- making ----------------------------------------------------------------------------------------------- */

/* A field, or 0 if the caller's header did not have it yet. */
#define ATTR(attr, field)                                                                                              \
    ((attr) && (attr)->size >= offsetof(strand_crew_attr, field) + sizeof((attr)->field) ? (attr)->field : 0)

/* calls: its threads call functions of the program. */
static struct crew *make(struct thread *thread, int threads, const char *name, bool calls)
{
    struct crew *crew = platform_calloc(thread, 1, sizeof *crew);
    if (!crew)
        return NULL;
    crew->sub = thread->sub;
    crew->most = (size_t)threads;
    crew->idle_ns = IDLE_USUAL;
    crew->calls = calls;
    crew->end.crew = crew;
    list_init(&crew->queue);
    list_init(&crew->asleep);
    list_init(&crew->all);
    snprintf(crew->origin.name, sizeof crew->origin.name, "%s", name);
    return crew;
}

static int64_t idle_time(int64_t asked)
{
    return asked < 0 ? ARCH_FOREVER : asked ? asked : IDLE_USUAL;
}

strand_crew strand_crew_open(strand_scope scope, const strand_crew_attr *attr)
{
    struct thread *thread = must_be_strand("strand_crew_open");
    struct cb *me = current_of(thread);
    if (attr)
        must_have_size(attr->size, offsetof(strand_crew_attr, max_threads), "strand_crew_attr", "strand_crew_open");
    int threads = ATTR(attr, max_threads) ? ATTR(attr, max_threads) : CREW_USUAL;
    if (threads < 1 || threads > CREW_MOST)
        MISUSE("strand_crew_open", "", "strand_crew_attr.max_threads is %d, not 1 to %d", threads, CREW_MOST);
    struct crew_record *record = platform_slab_get(thread, &worker_of(thread)->objects);
    if (!record)
        throw_no_memory(me, "a crew");
    arch_san_acquire(record);
    record->owned.release = end_with_scope;
    record->crew = make(thread, threads, attr && attr->name ? attr->name : "crew", true);
    uint64_t serial = next_serial(worker_of(thread));
    atomic_store_explicit(&record->word, serial << WORD_SERIAL, memory_order_release); /* [HN2] */
    int error = record->crew ? 0 : -ENOMEM;
    if (!error) {
        record->crew->most_waiting = ATTR(attr, max_waiting);
        record->crew->idle_ns = idle_time(ATTR(attr, idle_ns));
        record->crew->origin.site = __builtin_return_address(0);
        record->origin = record->crew->origin;
        error = scope_own(thread, me, scope, &record->owned, "strand_crew_open");
    }
    if (error) {
        retire(thread, record);
        throw_system(me, error, error == -ECANCELED ? "a crew of an open scope that has been left" : "a crew");
    }
    return (strand_crew){{(uint64_t)(uintptr_t)record, serial | MARK_CREW}};
}

static int run_crew_most(const struct runtime *runtime, enum run_crew which)
{
    int asked = runtime->options.max_offload_threads;
    if (which == CREW_CLOSES || which == CREW_FILES)
        return which == CREW_CLOSES ? CREW_CLOSES_MOST : CREW_FILES_MOST;
    if (which == CREW_NAMES)
        return CREW_USUAL;
    return asked <= 0 ? CREW_USUAL : asked < CREW_MOST ? asked : CREW_MOST;
}

/* Get one of the run's crews; the first user creates it. NULL: no memory. */
static struct crew *run_crew(struct thread *thread, enum run_crew which)
{
    static const char *const names[RUN_CREWS] = {"strand-crew", "strand-names", "strand-closes", "strand-files"};
    _Atomic(struct crew *) *at = &io_run_of(thread)->crews[which];
    struct crew *crew = atomic_load_explicit(at, memory_order_acquire), *none = NULL; /* [PB1] */
    if (crew)
        return crew;
    crew = make(thread, run_crew_most(runtime_of(thread), which), names[which], which == CREW_CALLS);
    if (!crew)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(at, &none, crew, memory_order_acq_rel,
                                                memory_order_acquire)) /* [PB1] */
        return crew;
    free(crew);
    return none;
}

/* ---- entering --------------------------------------------------------------------------------------------- */

static const char *made(const void *record, char *buffer, size_t size)
{
    return crew_made(&((const struct crew_record *)record)->origin, buffer, size);
}

static const struct handle_noun crew_noun = {"crew", MARK_CREW, offsetof(struct crew_record, word), false, made};

static struct crew_record *ref_record(struct thread *thread, strand_crew handle, const char *function)
{
    return handle_ref_object(thread, &crew_noun, handle.bits, function);
}

static bool is_run_crew(strand_crew handle)
{
    return !handle.bits[0] && !handle.bits[1];
}

static void count_in(struct thread *thread, struct crew *crew, const char *function)
{
    crew_lock(crew, thread);
    bool closing = crew->closing;
    crew->callers += !closing;
    crew_unlock(crew);
    if (closing)
        MISUSE(function, crew_made(&crew->origin, MADE_ROOM),
               "the crew is ending: its scope has been left. Call before that");
}

struct crew *crew_enter_own(struct thread *thread, enum run_crew which, const char *function)
{
    struct crew *crew = run_crew(thread, which);
    if (crew)
        count_in(thread, crew, function);
    return crew;
}

struct crew *crew_enter(struct thread *thread, strand_crew handle, const char *function)
{
    if (is_run_crew(handle))
        return crew_enter_own(thread, CREW_CALLS, function);
    struct crew_record *record = ref_record(thread, handle, function);
    struct crew *crew = record->crew;
    count_in(thread, crew, function);
    unref_record(thread, record);
    return crew;
}

void crew_leave(struct thread *thread, struct crew *crew)
{
    crew_lock(crew, thread);
    crew->callers--;
    bool last = crew_is_last(crew);
    crew_unlock(crew);
    if (last)
        crew_notify_end(crew);
}

/* ---- asking ----------------------------------------------------------------------------------------------- */

void strand_crew_info_get(strand_crew handle, strand_crew_info *out)
{
    struct thread *thread = must_be_strand("strand_crew_info_get");
    must_be_there(out, "buffer for the figures", "strand_crew_info_get");
    must_have_size(out->size, sizeof out->size, "strand_crew_info", "strand_crew_info_get");
    bool unmade = is_run_crew(handle) &&
                  !atomic_load_explicit(&io_run_of(thread)->crews[CREW_CALLS], memory_order_acquire); /* [PB1] */
    strand_crew_info info = {.max_threads = (size_t)run_crew_most(runtime_of(thread), CREW_CALLS)};
    if (!unmade) {
        struct crew *crew = crew_enter(thread, handle, "strand_crew_info_get");
        crew_lock(crew, thread);
        info.threads = crew->threads;
        info.running = crew->running;
        info.idle = crew->threads - crew->running;
        info.waiting = crew->queued;
        info.max_threads = crew->most;
        crew_unlock(crew);
        crew_leave(thread, crew);
    }
    sized_give(out, out->size, &info, sizeof info);
}
