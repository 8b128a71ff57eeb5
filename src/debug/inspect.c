/*
 * Inspection of one strand from outside. A reference keeps the control block. The object that the strand waits for is
 * the user's memory, and is read only while all threads are held.
 *
 * INVARIANT [DG1] what is reported of a strand that nobody holds belongs to one moment: what shows that its thread or
 *           its wait went on (current, switches, the wait's state, the context) is the same before and after the
 *           reading.
 * ORDERING  [DG1] these words are loaded by acquire, and a fence stands before the second time. The threads store them
 *           plainly, which on x86-64 is a release.
 */
#include "inspect.h"

#include "actors.h"
#include "pools.h"

#include "../sched/records.h"
#include "../strand/entry.h"
#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/misuse.h"
#include "../strand/print.h"
#include "../strand/wait.h"
#include "../sync/chan.h"
#include "../sync/mutex.h"
#include "../sync/port.h"
#include "../sync/prio.h"

#include <stdio.h>
#include <string.h>

/* The time limit for all answers together, and the least time for each. */
#define ANSWERS_NS INT64_C(250000000)
#define ANSWER_NS INT64_C(50000000)

size_t scratch_size(void)
{
    return sizeof(struct scratch) + arch_patterns_size();
}

void scratch_init(struct scratch *scratch)
{
    scratch->patterns = (struct arch_patterns *)(void *)(scratch + 1);
}

/* ---- location ----------------------------------------------------------------------------------------------- */

/* Returns the thread that runs it, or NULL. */
static struct thread *runner_of(const struct view *view, struct cb *c)
{
    struct fibre *fibre = c->member.fibre;
    struct thread *thread = thread_first(view->thread->sub);
    while (thread && plain_load(&thread->current, memory_order_relaxed) != fibre)
        thread = thread_after(thread);
    return thread && plain_load(&fibre->current, memory_order_relaxed) == &c->member ? thread : NULL;
}

static uint64_t switches_of(struct subprocess *sub)
{
    uint64_t sum = 0;
    for (struct thread *thread = thread_first(sub); thread; thread = thread_after(thread))
        sum += plain_load(&thread->switches, memory_order_acquire); /* [DG1] */
    return sum;
}

static struct frame_span span_of_guest(struct cb *c)
{
    const struct shared_stack *shared = &shared_of(c->member.fibre)->stack;
    struct guest *guest = guest_of(&c->member);
    bool active = plain_load(&shared->active, memory_order_acquire) == guest; /* [SF9] */
    struct frame_span span = {.size = (size_t)plain_load(&guest->depth, memory_order_acquire) *
                                      sizeof(uintptr_t)}; /* [DG1] */
    span.context = span.size ? shared->base - span.size : NULL;
    span.saved = active ? NULL : plain_load(&guest->saved, memory_order_acquire); /* [DG1] */
    return span;
}

/* A waiting strand resumes in another epoch of its wait. For other strands the stamp is the number of switches of all
 * threads. */
static uint64_t stamp_of(const struct view *view, struct cb *c)
{
    uint64_t state = atomic_load_explicit(&c->wait.state, memory_order_acquire); /* [W1] */
    return wait_is_armed(state) ? state : switches_of(view->thread->sub);
}

static const struct sighting *sighting_of(const struct view *view, struct cb *c)
{
    for (size_t i = 0; i < view->scratch->sightings_count; i++)
        if (view->scratch->sightings[i].id == cb_id(c))
            return &view->scratch->sightings[i];
    return NULL;
}

struct frame_span inspect_span(const struct view *view, struct cb *c)
{
    struct frame_span span = {0};
    struct fibre *fibre = c->member.fibre;
    uint64_t stamp = view->loose ? stamp_of(view, c) : 0;
    struct thread *runner = runner_of(view, c);
    if (c->guest && c->started && !runner) {
        span = span_of_guest(c);
    } else if (c->started && !runner && fibre->stack) {
        span.context = atomic_load_explicit(&fibre->context, memory_order_acquire); /* [S2] */
        span.size = span.context ? (size_t)(fibre->stack->top - (char *)span.context) : 0;
    }
    span.stamp = stamp;
    span.runner = runner;
    span.asked = runner && sighting_of(view, c);
    return span;
}

enum doing inspect_doing(struct cb *c, const struct frame_span *span)
{
    if (atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER) /* [E5] */
        return DOING_NOTHING;
    if (span->runner)
        return DOING_RUNNING;
    if (!c->started)
        return DOING_NOT_STARTED;
    return c->blocked == BLOCKED_NOT ? DOING_RUNNABLE : DOING_BLOCKED;
}

static bool is_held(const struct view *view, const struct frame_span *span)
{
    return span->runner != view->thread &&
           atomic_load_explicit(&span->runner->hold.state, memory_order_acquire); /* [HD1] */
}

size_t inspect_saved(struct cb *c)
{
    return shared_saved(guest_of(&c->member));
}

size_t inspect_used(const struct view *view, struct cb *c, const struct frame_span *span)
{
    const struct fibre *fibre = c->member.fibre;
    const char *top = c->guest ? shared_of(c->member.fibre)->stack.base : fibre->stack ? fibre->stack->top : NULL;
    const char *at = NULL;
    if (!span->runner)
        return span->size;
    if (span->runner->platform)
        at = span->runner->platform->where(span->runner);
    else if (is_held(view, span))
        at = span->runner->hold.at;
    else if (span->asked)
        return sighting_of(view, c)->used;
    if (span->runner == view->thread)
        at = __builtin_frame_address(0);
    bool inside = at && top && at < top && (size_t)(top - at) <= fibre->stack_size; /* not on a signal stack */
    return inside ? (size_t)(top - at) : 0;
}

static void say_place(const struct view *view, struct cb *c, const struct frame_span *span, size_t indent)
{
    char name[POOL_NAME_ROOM], pool[48] = "", fibre[64] = "", saved[64] = "", thread[48] = "";
    struct thread *home = plain_load(&c->member.fibre->home, memory_order_relaxed);
    if (!pool_is_first(c->member.fibre->pool))
        snprintf(pool, sizeof pool, "pool '%s'; ", pool_name(c->member.fibre->pool, name));
    if (c->guest) {
        const struct hosting *hosting = hosting_of(shared_of(c->member.fibre));
        bool in_stack = span->context || span->runner;
        snprintf(fibre, sizeof fibre, "fibre '%s' %u, %s; ", hosting->name, hosting->number,
                 span->saved ? "inactive"
                 : in_stack  ? "active"
                             : "not on it yet");
    }
    if (span->saved)
        snprintf(saved, sizeof saved, ", saved in %zu", inspect_saved(c));
    if (!span->runner && home && c->started)
        snprintf(thread, sizeof thread, "; ran on thread %d", home->index);
    size_t used = inspect_used(view, c, span);
    if (used)
        output_say(view->out, indent, "%s%sstack: %zu of %zu bytes used%s%s\n", pool, fibre, used,
                   c->member.fibre->stack_size, saved, thread);
    else
        output_say(view->out, indent, "%s%sstack: %zu bytes%s\n", pool, fibre, c->member.fibre->stack_size, thread);
}

/* ---- frames ------------------------------------------------------------------------------------------------- */

static size_t trace(const struct view *view, struct cb *c, const struct frame_span *span, const char *saved, void **ips,
                    size_t most)
{
    const struct stack *stack = c->member.fibre->stack;
    return arch_trace_alike(view->scratch->patterns, span->context, saved, saved ? span->size : 0, stack->top, ips,
                            most);
}

/* A thread that could not be held may resume the strand at any moment. So its frames are copied, and the copy is good
 * if afterwards they are still in place and the strand has not been resumed. */
static size_t trace_a_copy(const struct view *view, struct cb *c, const struct frame_span *span, void **ips,
                           size_t most)
{
    char *copy = view->scratch->copy;
    if (span->size > sizeof view->scratch->copy)
        return 0;
    arch_copy(copy, span->saved ? span->saved : (const char *)span->context, span->size);
    atomic_thread_fence(memory_order_seq_cst); /* [DG1] */
    struct frame_span after = inspect_span(view, c);
    if (after.context != span->context || after.saved != span->saved || after.stamp != span->stamp)
        return 0;
    return trace(view, c, span, copy, ips, most);
}

static size_t answered(const struct view *view, struct cb *c, void **ips, size_t most)
{
    const struct sighting *sighting = sighting_of(view, c);
    size_t count = sighting->count < most ? sighting->count : most;
    memcpy(ips, sighting->ips, count * sizeof *ips);
    return count;
}

static size_t trace_running(const struct view *view, struct cb *c, const struct frame_span *span, void **ips,
                            size_t most)
{
    struct thread *runner = span->runner;
    arch_context elsewhere = runner->platform ? runner->platform->where(runner) : NULL;
    if (elsewhere)
        return arch_trace_context(elsewhere, NULL, 0, 0, ips, most);
    if (runner == view->thread)
        return arch_trace(ips, most);
    if (!is_held(view, span))
        return span->asked ? answered(view, c, ips, most) : 0;
    size_t count = runner->hold.count < most ? runner->hold.count : most;
    memcpy(ips, runner->hold.ips, count * sizeof *ips);
    return count;
}

size_t inspect_frames(const struct view *view, struct cb *c, const struct frame_span *span, void **ips, size_t most)
{
    if (span->runner)
        return trace_running(view, c, span, ips, most);
    if (!span->context)
        return 0;
    return view->loose ? trace_a_copy(view, c, span, ips, most) : trace(view, c, span, span->saved, ips, most);
}

/* Caches names: looking one up is expensive, and few functions are in many traces. */
const char *inspect_name(const struct view *view, void *ip)
{
    struct name *name = &view->scratch->names[((uintptr_t)ip * UINT64_C(0x9E3779B97F4A7C15)) >> 54];
    if (name->ip != ip) {
        name->ip = ip;
        print_location_words(view->names, ip, name->text, sizeof name->text);
    }
    return name->text;
}
_Static_assert(NAMES == 1 << (64 - 54), "all of the cache is in use");

void inspect_say_frames(const struct view *view, void *const *ips, size_t count, size_t indent)
{
    for (size_t i = 0; i < count; i++)
        output_say(view->out, indent, "at %s\n", inspect_name(view, ips[i]));
}

/* ---- threads that could not be held ---------------------------------------------------------------------- */

/* In a signal handler, on the asked thread; or on the inspecting thread, while the asked one waits. */
ARCH_NOT_INSTRUMENTED static uintptr_t stack_end(void *self, uintptr_t sp, struct arch_asked *asked)
{
    const struct thread *thread = self;
    struct fibre *fibre = thread ? plain_load(&thread->current, memory_order_relaxed) : NULL;
    const struct stack *stack = fibre ? plain_load(&fibre->stack, memory_order_relaxed) : NULL;
    struct member *current = fibre ? plain_load(&fibre->current, memory_order_relaxed) : NULL;
    if (!stack || !current || sp < (uintptr_t)stack->low || sp >= (uintptr_t)stack->top)
        return 0;
    const struct cb *c = CONTAINER(current, struct cb, member);
    asked->tag = plain_load((const uint64_t *)&c->word, memory_order_relaxed) >> WORD_SERIAL;
    return (uintptr_t)stack->top;
}

bool inspect_runner(struct scratch *scratch, struct thread *thread, int64_t wait_ns, struct sighting *sighting)
{
    struct arch_asked asked = {.top = stack_end, .copy = scratch->copy, .room = sizeof scratch->copy};
    bool answers = arch_ask_waiting(thread->os_id, thread, &asked) == 0 ||
                   (wait_ns && arch_ask(thread->os_id, &asked, wait_ns) == 0);
    if (!answers || !asked.end)
        return false;
    *sighting =
        (struct sighting){.thread = thread, .id = asked.tag, .waits = asked.waits, .used = asked.end - asked.sp};
    sighting->count = arch_trace_asked(&asked, sighting->ips, FRAMES_MOST);
    return true;
}

void inspect_unheld(struct view *view, struct thread *thread, bool signals)
{
    int64_t now = platform_now(thread->sub);
    if (!view->answers_until)
        view->answers_until = now + ANSWERS_NS;
    int64_t wait_ns = view->answers_until - now > ANSWER_NS ? view->answers_until - now : ANSWER_NS;
    struct scratch *scratch = view->scratch;
    if (scratch->sightings_count < ASKED_MOST &&
        inspect_runner(scratch, thread, signals ? wait_ns : 0, &scratch->sightings[scratch->sightings_count]))
        scratch->sightings_count++;
}

/* ---- waits -------------------------------------------------------------------------------------------------- */

bool inspect_is_blocked(struct cb *c)
{
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER; /* [E5] */
    uint64_t state = atomic_load_explicit(&c->wait.state, memory_order_acquire);  /* [W1] */
    return !over && c->started && c->blocked != BLOCKED_NOT && wait_is_armed(state);
}

bool inspect_is_settled(const struct view *view, struct cb *c)
{
    return !view->loose && wait_is_armed(atomic_load_explicit(&c->wait.state, memory_order_acquire)); /* [W1] */
}

/* Describes a wait from its control block alone. */
static void write_plainly(struct thread *thread, unsigned why, uint64_t on, char *text, size_t size)
{
    const struct blocked_reason *reason = blocked_reason(runtime_of(thread), why);
    switch (actors_are_waited_for(why) ? ON_NOTHING : reason->on) {
    case ON_NOTHING:
        snprintf(text, size, "%s", reason->words);
        break;
    case ON_STRAND:
        snprintf(text, size, "%s #%llu", reason->words, (unsigned long long)on);
        break;
    case ON_INSTANT:
        snprintf(text, size, "%s for %.1f ms more", reason->words,
                 (double)((int64_t)on - platform_now(thread->sub)) / 1e6);
        break;
    case ON_POOL:
        snprintf(text, size, "%s '%s'", reason->words, pool_name_waited_for(on, (char[POOL_NAME_ROOM]){0}));
        break;
    case ON_DESCRIPTOR:
        snprintf(text, size, "%s %d", reason->words, (int)on);
        break;
    case ON_CASES:
        snprintf(text, size, "%s %d cases", reason->words, (int)on);
        break;
    case ON_ADDRESS:
        snprintf(text, size, "%s at %p", reason->words, (void *)(uintptr_t)on);
        break;
    }
}

const char *inspect_words(const struct view *view, struct cb *c, unsigned why, uint64_t on, char *text, size_t size)
{
    const char *words = inspect_reason(view, why)->words;
    void *object = (void *)(uintptr_t)on;
    if (why == BLOCKED_SEND || why == BLOCKED_RECEIVE)
        snprintf(text, size, "%s '%s' at %p", words, ((struct chan *)object)->name, object);
    else if (why == BLOCKED_PORT)
        snprintf(text, size, "%s '%s' at %p", words, ((struct port *)object)->name, object);
    else if (why == BLOCKED_PERMIT && inspect_is_settled(view, c))
        snprintf(text, size, "%s '%s' #%llu at %p", words, ((struct prio *)object)->name,
                 (unsigned long long)((struct prio *)object)->serial, object);
    else if (actors_are_waited_for(why) && inspect_is_settled(view, c))
        actors_words(c, text, size);
    else
        write_plainly(view->thread, why, on, text, size);
    return text;
}

static double since_ms(const struct cb *c, int64_t now)
{
    return (double)(now - c->since) / 1e6;
}

static void say_plain_wait(struct output *out, struct thread *thread, struct cb *c, unsigned why, size_t indent)
{
    char words[WORDS_MOST];
    write_plainly(thread, why, c->blocked_on, words, sizeof words);
    output_say(out, indent, "blocked: %s, since %.1f ms\n", words, since_ms(c, platform_now(thread->sub)));
}

static void say_wait(const struct view *view, struct cb *c, size_t indent)
{
    char words[WORDS_MOST];
    unsigned why = c->blocked;
    inspect_words(view, c, why, c->blocked_on, words, sizeof words);
    output_say(view->out, indent, "blocked: %s, since %.1f ms\n", words, since_ms(c, platform_now(view->thread->sub)));
    if (why != BLOCKED_MUTEX || !inspect_is_settled(view, c))
        return;
    struct mutex *mutex = (struct mutex *)(uintptr_t)c->blocked_on;
    uint64_t owner = gate_value(atomic_load_explicit(&mutex->gate.word, memory_order_acquire)); /* [G4] */
    if (owner)
        output_say(view->out, indent + 4, "%s\n",
                   lockset_made((struct cb *)(uintptr_t)owner, LOCK_MUTEX,
                                inspect_name(view, plain_load(&mutex->site, memory_order_relaxed)), MADE_ROOM));
}

bool inspect_own(const struct view *view, struct cb *c, struct own *own)
{
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER; /* [E5] */
    uint64_t words[OWN_KEPT];
    if (view->loose || over || !c->started)
        return false;
    if (c->guest) {
        shared_own(&shared_of(c->member.fibre)->stack, guest_of(&c->member), words);
        *own = (struct own){0};
        memcpy(own, words, sizeof words);
    } else {
        *own = *own_of(c);
    }
    return true;
}

/* The cases are where the strand has put them, usually in its frames: for an inactive strand, in its saved stack. */
strand_case inspect_case(const struct view *view, struct cb *c, size_t index)
{
    strand_case copy;
    const char *at = (const char *)c->wait.node.value + index * sizeof copy;
    struct frame_span span = inspect_span(view, c);
    size_t offset = (size_t)((uintptr_t)at - (uintptr_t)span.context);
    if (span.saved && offset < span.size)
        at = span.saved + offset;
    arch_copy(&copy, at, sizeof copy);
    return copy;
}

/* ---- everything --------------------------------------------------------------------------------------------- */

static void say_head(struct output *out, struct cb *c, uint64_t id, bool over, size_t indent)
{
    struct scope *anchor = plain_load(&c->anchor, memory_order_relaxed);
    uint64_t word = atomic_load_explicit(&c->word, memory_order_relaxed);
    output_say(out, indent, "strand '%s' #%llu%s%s\n", cb_name(c), (unsigned long long)id,
               word & WORD_CANCELLED ? ", cancelled" : "", over ? ", ended, not joined" : "");
    struct cancel_reason *reason = atomic_load_explicit(&c->cancel_reason, memory_order_acquire); /* [PB1] */
    if (reason)
        output_say(out, indent + 4, "cancelled by '%s' #%llu%s%s\n", reason->who, (unsigned long long)reason->who_id,
                   reason->why[0] ? ": " : "", reason->why);
    if (anchor)
        output_say(out, indent + 4, "in the scope of " BLOCK_LOCATION "\n", BLOCK_LOCATION_OF(&anchor->block));
}

static void say_doing(const struct view *view, struct cb *c, enum doing doing, const struct frame_span *span,
                      size_t indent)
{
    struct thread *runner = span->runner;
    bool traced = runner && (runner == view->thread || runner->platform || is_held(view, span));
    bool waits = span->asked && sighting_of(view, c)->waits;
    if (doing == DOING_RUNNING)
        output_say(view->out, indent, "running on thread %d (%u)%s\n", runner->index, runner->os_id,
                   traced        ? ""
                   : waits       ? ", waits in the system"
                   : span->asked ? ", asked by a signal"
                                 : ", could not be held");
    else if (doing == DOING_NOT_STARTED)
        output_say(view->out, indent, "runnable: has not started\n");
    else if (doing == DOING_RUNNABLE)
        output_say(view->out, indent, "runnable\n");
    else
        say_wait(view, c, indent);
}

void inspect_say(const struct view *view, struct cb *c, uint64_t id, size_t indent)
{
    void *ips[FRAMES_MOST];
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER; /* [E5] */
    say_head(view->out, c, id, over, indent);
    if (over)
        return;
    struct frame_span span = inspect_span(view, c);
    enum doing doing = inspect_doing(c, &span);
    if (doing == DOING_NOTHING)
        return;
    say_place(view, c, &span, indent + 4);
    if (!view->loose)
        actors_say(view->out, c, indent + 4);
    say_doing(view, c, doing, &span, indent + 4);
    inspect_say_frames(view, ips, inspect_frames(view, c, &span, ips, FRAMES_MOST), indent + 6);
}

void inspect_say_blocked(struct output *out, struct thread *thread, struct cb *c, size_t indent)
{
    unsigned blocked = c->blocked;
    if (blocked == BLOCKED_NOT)
        output_say(out, indent, "runnable\n");
    else
        say_plain_wait(out, thread, c, blocked, indent);
}

void inspect_say_plainly(struct output *out, struct thread *thread, struct cb *c, uint64_t id)
{
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER; /* [E5] */
    unsigned blocked = c->blocked;
    say_head(out, c, id, over, 0);
    if (over)
        return;
    if (!c->started)
        output_say(out, 4, "runnable: has not started\n");
    else if (blocked == BLOCKED_NOT)
        output_say(out, 4, "runnable, or running\n");
    else
        say_plain_wait(out, thread, c, blocked, 4);
}
