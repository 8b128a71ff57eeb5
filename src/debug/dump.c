/*
 * The tree of strands in words. The other threads are held at their next tick, so that what they run stands still; the
 * strands are found through the slab of control blocks, not through lists that somebody may be changing, and pinned
 * while they are printed; memory is taken before anybody is held. Page: docs/protocols/dump.md.
 */
#include "../../include/strand/debug.h"

#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/misuse.h"
#include "../sync/chan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_MOST = 48, INDENT_MOST = 60, TEXT_FIRST = 64 * 1024 };
#define HOLD_NS INT64_C(100000000)

struct entry {
    struct cb *c;
    uint64_t id, owner; /* owner: of its anchor; 0 for the root */
};

struct dump {
    int error;
    struct thread *thread;
    struct entry *entries;
    size_t count, room, over; /* over: of them have ended, and nobody has consumed them */
    size_t *path;             /* of the walk: the next entry to print at each depth */
    char *text;
    size_t used, text_room;
};

/* ---- output ---------------------------------------------------------------------------------------------- */

/* What is printed is kept: to write it while the others are held would let a slow reader hold them. */
static bool make_room(struct dump *dump, size_t size)
{
    size_t room = dump->text_room ? dump->text_room : TEXT_FIRST;
    while (room - dump->used < size)
        room *= 2;
    char *more = room == dump->text_room ? dump->text : realloc(dump->text, room);
    if (!more) {
        dump->error = -ENOMEM;
        return false;
    }
    dump->text = more;
    dump->text_room = room;
    return true;
}

__attribute__((format(printf, 3, 4))) static void say(struct dump *dump, size_t indent, const char *format, ...)
{
    char text[400];
    indent = indent < INDENT_MOST ? indent : INDENT_MOST;
    memset(text, ' ', indent);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text + indent, sizeof text - indent, format, args);
    va_end(args);
    size_t size = indent + (length > 0 ? (size_t)length : 0);
    size = size < sizeof text ? size : sizeof text - 1;
    if (dump->error || !make_room(dump, size))
        return;
    memcpy(dump->text + dump->used, text, size);
    dump->used += size;
}

/* ---- collecting ------------------------------------------------------------------------------------------ */

static void collect(void *object, void *arg)
{
    struct dump *dump = arg;
    struct cb *c = object;
    uint64_t word = atomic_load_explicit(&c->word, memory_order_relaxed);
    if (!word_serial(word) || (word & (WORD_DEAD | WORD_FREE)) || dump->count == dump->room)
        return;
    struct scope *anchor = __atomic_load_n(&c->anchor, __ATOMIC_RELAXED);
    dump->over += (atomic_load_explicit(&c->ends, memory_order_relaxed) & ENDS_OVER) != 0;
    dump->entries[dump->count++] = (struct entry){c, word_serial(word), anchor ? cb_id(anchor->block.owner) : 0};
}

static void count(void *object, void *arg)
{
    (void)object;
    ++*(size_t *)arg;
}

static int by_owner(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The first entry with this owner. */
static size_t first_of(const struct dump *dump, uint64_t owner)
{
    size_t low = 0, high = dump->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (dump->entries[middle].owner < owner)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- one strand ------------------------------------------------------------------------------------------ */

/* The thread that runs it, or NULL. */
static struct thread *runner_of(struct dump *dump, struct cb *c)
{
    struct pool *pool = dump->thread->pool;
    for (int i = 0; i < pool->count; i++)
        if (__atomic_load_n(&pool->threads[i]->current, __ATOMIC_RELAXED) == c->member.fibre)
            return pool->threads[i];
    return NULL;
}

static void print_why(struct dump *dump, struct cb *c, size_t indent)
{
    static const char *const words[] = {
        [BLOCKED_NOT] = "runnable",
        [BLOCKED_JOIN] = "blocked: joins strand",
        [BLOCKED_JOIN_SCOPE] = "blocked: joins its scope, waits for strand",
        [BLOCKED_WAIT] = "blocked: waits for the end of strand",
        [BLOCKED_LEAVE] = "blocked: leaves a scope, waits for strand",
        [BLOCKED_SLEEP] = "blocked: sleeps",
        [BLOCKED_SCOPE] = "blocked: waits for the end of any child",
        [BLOCKED_OFFLOAD] = "blocked: waits for an offloaded call",
        [BLOCKED_DESCRIPTOR] = "blocked: waits for descriptor",
        [BLOCKED_SEND] = "blocked: sends to channel",
        [BLOCKED_RECEIVE] = "blocked: receives from channel",
        [BLOCKED_SELECT] = "blocked: waits for one of",
        [BLOCKED_MUTEX] = "blocked: waits for mutex",
        [BLOCKED_CONDITION] = "blocked: waits for condition",
        [BLOCKED_READ_LOCK] = "blocked: waits to read under lock",
        [BLOCKED_WRITE_LOCK] = "blocked: waits to write under lock",
        [BLOCKED_SEMAPHORE] = "blocked: waits for semaphore",
        [BLOCKED_EVENT] = "blocked: waits for event",
        [BLOCKED_BARRIER] = "blocked: waits at barrier",
        [BLOCKED_ONCE] = "blocked: waits for the one run of",
        [BLOCKED_GROUP] = "blocked: waits for group",
    };
    int64_t now = driver_now(dump->thread->sub);
    unsigned blocked = c->blocked < sizeof words / sizeof *words ? c->blocked : BLOCKED_NOT;
    double since = (double)(now - c->since) / 1e6;
    if (!c->started)
        say(dump, indent, "runnable: has not started\n");
    else if (blocked == BLOCKED_NOT)
        say(dump, indent, "runnable\n");
    else if (blocked == BLOCKED_SLEEP)
        say(dump, indent, "%s for %.1f ms more, since %.1f ms\n", words[blocked],
            (double)((int64_t)c->blocked_on - now) / 1e6, since);
    else if (blocked == BLOCKED_SCOPE || blocked == BLOCKED_OFFLOAD)
        say(dump, indent, "%s, since %.1f ms\n", words[blocked], since);
    else if (blocked == BLOCKED_DESCRIPTOR)
        say(dump, indent, "%s %d, since %.1f ms\n", words[blocked], (int)c->blocked_on, since);
    else if (blocked == BLOCKED_SELECT)
        say(dump, indent, "%s %d cases, since %.1f ms\n", words[blocked], (int)c->blocked_on, since);
    else if (blocked == BLOCKED_SEND || blocked == BLOCKED_RECEIVE)
        say(dump, indent, "%s '%s' at %p, since %.1f ms\n", words[blocked],
            ((struct chan *)(uintptr_t)c->blocked_on)->name, (void *)(uintptr_t)c->blocked_on, since);
    else if (blocked > BLOCKED_DESCRIPTOR)
        say(dump, indent, "%s at %p, since %.1f ms\n", words[blocked], (void *)(uintptr_t)c->blocked_on, since);
    else
        say(dump, indent, "%s #%llu, since %.1f ms\n", words[blocked], (unsigned long long)c->blocked_on, since);
}

static void print_frames_of(struct dump *dump, void **ips, size_t frames, size_t indent)
{
    for (size_t i = 0; i < frames; i++) {
        char name[160];
        uintptr_t offset;
        (void)arch_symbol(ips[i], name, sizeof name, &offset);
        say(dump, indent, "at %s+0x%zx\n", name, (size_t)offset);
    }
}

static void print_stack(struct dump *dump, struct cb *c, struct thread *runner, size_t indent)
{
    void *ips[FRAMES_MOST];
    struct fibre *fibre = c->member.fibre;
    arch_context context = atomic_load_explicit(&fibre->context, memory_order_acquire);
    if (runner == dump->thread)
        print_frames_of(dump, ips, arch_trace(ips, FRAMES_MOST), indent);
    else if (runner && atomic_load_explicit(&runner->held, memory_order_acquire))
        print_frames_of(dump, runner->held_ips, runner->held_count, indent);
    else if (!runner && c->started && fibre->stack && context) {
        size_t frames = arch_trace_context(context, NULL, 0, 0, ips, FRAMES_MOST);
        /* A thread that could not be held may have gone on with it. */
        if (atomic_load_explicit(&fibre->context, memory_order_acquire) == context)
            print_frames_of(dump, ips, frames, indent);
    }
}

static void print_pinned(struct dump *dump, const struct entry *entry, size_t depth)
{
    struct cb *c = entry->c;
    size_t indent = depth * 2;
    struct scope *anchor = __atomic_load_n(&c->anchor, __ATOMIC_RELAXED);
    uint64_t word = atomic_load_explicit(&c->word, memory_order_relaxed);
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER;
    say(dump, indent, "strand '%s' #%llu%s%s\n", cb_name(c), (unsigned long long)entry->id,
        word & WORD_CANCELLED ? ", cancelled" : "", over ? ", ended, not joined" : "");
    struct note *note = atomic_load_explicit(&c->note, memory_order_acquire);
    if (note)
        say(dump, indent + 4, "cancelled by '%s' #%llu%s%s\n", note->who, (unsigned long long)note->who_id,
            note->why[0] ? ": " : "", note->why);
    if (anchor)
        say(dump, indent + 4, "in the scope of %s:%d\n", anchor->block.file, anchor->block.line);
    if (over)
        return;
    struct thread *runner = runner_of(dump, c);
    if (runner)
        say(dump, indent + 4, "running on thread %d (%u)%s\n", runner->index, runner->os_id,
            runner == dump->thread || atomic_load(&runner->held) ? "" : ", could not be held");
    else
        print_why(dump, c, indent + 4);
    print_stack(dump, c, runner, indent + 6);
}

static void print_strand(struct dump *dump, const struct entry *entry, size_t depth)
{
    struct thread *thread = dump->thread;
    if (!pin(thread, &entry->c->word, entry->id))
        return; /* it is gone: somebody could not be held */
    print_pinned(dump, entry, depth);
    unpin_cb(thread, entry->c);
}

/* ---- the tree -------------------------------------------------------------------------------------------- */

/* Depth first, without recursion: the tree may be deeper than the caller's stack. */
static void walk(struct dump *dump)
{
    size_t depth = 0;
    dump->path[0] = first_of(dump, 0);
    uint64_t owner = 0;
    for (;;) {
        size_t at = dump->path[depth];
        if (at < dump->count && dump->entries[at].owner == owner) {
            print_strand(dump, &dump->entries[at], depth);
            owner = dump->entries[at].id;
            dump->path[++depth] = first_of(dump, owner);
        } else {
            if (depth-- == 0)
                break;
            owner = dump->entries[dump->path[depth]].owner;
            dump->path[depth]++;
        }
    }
}

static void dump_held(struct dump *dump, struct runtime *runtime)
{
    struct pool *pool = dump->thread->pool;
    int loose = 0;
    if (dump->thread->shared && !dump->thread->driver)
        loose = pool_hold(dump->thread, pool, driver_now(&runtime->sub) + HOLD_NS);
    arch_note_acquire(&runtime->sub); /* what strands did before they were left, or held */
    slab_each(&runtime->cbs, collect, dump);
    qsort(dump->entries, dump->count, sizeof *dump->entries, by_owner);
    say(dump, 0, "strands: %zu, besides %zu ended, not joined; threads: %d (%s)\n", dump->count - dump->over,
        dump->over, pool->count, pool->scheduler->name);
    if (loose)
        say(dump, 0, "%d of the threads could not be held: what they run may be out of date\n", loose);
    walk(dump);
    arch_note_release(&runtime->sub.pool);
    if (dump->thread->shared && !dump->thread->driver)
        pool_release(dump->thread, pool);
}

static void begin(struct thread *thread, struct runtime *runtime)
{
    while (atomic_exchange_explicit(&runtime->dumping, true, memory_order_acquire)) {
        if (atomic_load_explicit(&thread->hold, memory_order_relaxed))
            pool_stand_still(thread); /* for the dump that is under way */
        driver_await(thread);
    }
}

int strand_dump(int fd)
{
    struct thread *thread = must_be_strand("strand_dump");
    struct runtime *runtime = runtime_of(thread);
    struct dump *dump = malloc(sizeof *dump);
    size_t strands = 0;
    if (!dump)
        return -ENOMEM;
    *dump = (struct dump){.thread = thread};
    begin(thread, runtime);
    slab_each(&runtime->cbs, count, &strands);
    dump->room = strands + 4096; /* those that are made until everybody is held */
    dump->entries = malloc(dump->room * sizeof *dump->entries);
    dump->path = malloc((dump->room + 1) * sizeof *dump->path);
    int error = -ENOMEM;
    if (dump->entries && dump->path) {
        dump_held(dump, runtime);
        error = dump->error;
    }
    atomic_store_explicit(&runtime->dumping, false, memory_order_release);
    if (!error)
        error = (int)arch_write(fd, dump->text, dump->used);
    free(dump->entries);
    free(dump->path);
    free(dump->text);
    free(dump);
    return error;
}
