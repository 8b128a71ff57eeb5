/*
 * Inspection of one strand from outside. A pin keeps the control block. The object that the strand waits for is the
 * user's memory, and is read only while all threads are held.
 */
#include "look.h"

#include "cells.h"
#include "pools.h"

#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/misuse.h"
#include "../strand/print.h"
#include "../strand/serve.h"
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

size_t looker_size(void)
{
    return sizeof(struct looker) + arch_patterns_size();
}

void looker_init(struct looker *looker)
{
    looker->patterns = (struct arch_patterns *)(void *)(looker + 1);
}

/* ---- location ----------------------------------------------------------------------------------------------- */

/* Returns the thread that runs it, or NULL. */
static struct thread *runner_of(const struct look *look, struct cb *c)
{
    struct fibre *fibre = c->member.fibre;
    struct thread *thread = thread_first(look->thread->sub);
    while (thread && plain_load(&thread->current, memory_order_relaxed) != fibre)
        thread = thread_after(thread);
    return thread && plain_load(&fibre->active, memory_order_relaxed) == &c->member ? thread : NULL;
}

static uint64_t switches_of(struct subprocess *sub)
{
    uint64_t sum = 0;
    for (struct thread *thread = thread_first(sub); thread; thread = thread_after(thread))
        sum += plain_load(&thread->switches, memory_order_acquire);
    return sum;
}

static struct place place_of_guest(struct cb *c)
{
    struct opened *opened = opened_of(c->member.fibre);
    struct guest *guest = guest_of(&c->member);
    bool resident = plain_load(&opened->resident, memory_order_acquire) == &c->member;
    struct place place = {.size = (size_t)plain_load(&guest->depth, memory_order_acquire) * sizeof(uintptr_t)};
    place.context = place.size ? opened->base - place.size : NULL;
    place.image = resident ? NULL : plain_load(&guest->image, memory_order_acquire);
    return place;
}

/* A waiting strand resumes in another epoch of its wait. For other strands the stamp is the number of switches of all
 * threads. */
static uint64_t stamp_of(const struct look *look, struct cb *c)
{
    uint64_t state = atomic_load_explicit(&c->wait.state, memory_order_acquire);
    return wait_tag(state) == WAIT_ARMED ? state : switches_of(look->thread->sub);
}

static const struct told *told_of(const struct look *look, struct cb *c)
{
    for (size_t i = 0; i < look->looker->told_count; i++)
        if (look->looker->told[i].id == cb_id(c))
            return &look->looker->told[i];
    return NULL;
}

struct place look_place(const struct look *look, struct cb *c)
{
    struct place place = {0};
    struct fibre *fibre = c->member.fibre;
    uint64_t stamp = look->loose ? stamp_of(look, c) : 0;
    struct thread *runner = runner_of(look, c);
    if (c->guest && c->started && !runner) {
        place = place_of_guest(c);
    } else if (c->started && !runner && fibre->stack) {
        place.context = atomic_load_explicit(&fibre->context, memory_order_acquire);
        place.size = place.context ? (size_t)(fibre->stack->top - (char *)place.context) : 0;
    }
    place.stamp = stamp;
    place.runner = runner;
    place.asked = runner && told_of(look, c);
    return place;
}

enum doing look_doing(struct cb *c, const struct place *place)
{
    if (atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER)
        return DOING_NOTHING;
    if (place->runner)
        return DOING_RUNNING;
    if (!c->started)
        return DOING_NOT_STARTED;
    return c->blocked == BLOCKED_NOT ? DOING_RUNNABLE : DOING_BLOCKED;
}

static bool is_held(const struct look *look, const struct place *place)
{
    return place->runner != look->thread && atomic_load_explicit(&place->runner->held, memory_order_acquire);
}

size_t look_saved(struct cb *c)
{
    return opened_saved(guest_of(&c->member));
}

size_t look_used(const struct look *look, struct cb *c, const struct place *place)
{
    const struct fibre *fibre = c->member.fibre;
    const char *top = c->guest ? opened_of(c->member.fibre)->base : fibre->stack ? fibre->stack->top : NULL;
    const char *at = NULL;
    if (!place->runner)
        return place->size;
    if (place->runner->driver)
        at = place->runner->driver->where(place->runner);
    else if (is_held(look, place))
        at = place->runner->held_at;
    else if (place->asked)
        return told_of(look, c)->used;
    if (place->runner == look->thread)
        at = __builtin_frame_address(0);
    bool inside = at && top && at < top && (size_t)(top - at) <= fibre->stack_size; /* not on a signal stack */
    return inside ? (size_t)(top - at) : 0;
}

static void say_place(const struct look *look, struct cb *c, const struct place *place, size_t indent)
{
    char name[POOL_NAME_ROOM], pool[48] = "", fibre[64] = "", saved[64] = "", thread[48] = "";
    struct thread *home = plain_load(&c->member.fibre->home, memory_order_relaxed);
    if (!pool_is_first(c->member.fibre->pool))
        snprintf(pool, sizeof pool, "pool '%s'; ", pool_name(c->member.fibre->pool, name));
    if (c->guest) {
        const struct hosting *hosting = hosting_of(opened_of(c->member.fibre));
        bool in_stack = place->context || place->runner;
        snprintf(fibre, sizeof fibre, "fibre '%s' %u, %s; ", hosting->name, hosting->number,
                 place->image ? "inactive"
                 : in_stack   ? "active"
                              : "not on it yet");
    }
    if (place->image)
        snprintf(saved, sizeof saved, ", saved in %zu", look_saved(c));
    if (!place->runner && home && c->started)
        snprintf(thread, sizeof thread, "; ran on thread %d", home->index);
    size_t used = look_used(look, c, place);
    if (used)
        out_say(look->out, indent, "%s%sstack: %zu of %zu bytes used%s%s\n", pool, fibre, used,
                c->member.fibre->stack_size, saved, thread);
    else
        out_say(look->out, indent, "%s%sstack: %zu bytes%s\n", pool, fibre, c->member.fibre->stack_size, thread);
}

/* ---- frames ------------------------------------------------------------------------------------------------- */

static size_t trace(const struct look *look, struct cb *c, const struct place *place, const char *image, void **ips,
                    size_t most)
{
    const struct stack *stack = c->member.fibre->stack;
    return arch_trace_alike(look->looker->patterns, place->context, image, image ? place->size : 0, stack->top, ips,
                            most);
}

/* A thread that could not be held may resume the strand at any moment. So its frames are copied, and the copy is good
 * if afterwards they are still in place and the strand has not been resumed. */
static size_t trace_a_copy(const struct look *look, struct cb *c, const struct place *place, void **ips, size_t most)
{
    char *copy = look->looker->copy;
    if (place->size > sizeof look->looker->copy)
        return 0;
    arch_copy(copy, place->image ? place->image : (const char *)place->context, place->size);
    atomic_thread_fence(memory_order_seq_cst);
    struct place after = look_place(look, c);
    if (after.context != place->context || after.image != place->image || after.stamp != place->stamp)
        return 0;
    return trace(look, c, place, copy, ips, most);
}

static size_t answered(const struct look *look, struct cb *c, void **ips, size_t most)
{
    const struct told *told = told_of(look, c);
    size_t count = told->count < most ? told->count : most;
    memcpy(ips, told->ips, count * sizeof *ips);
    return count;
}

static size_t trace_running(const struct look *look, struct cb *c, const struct place *place, void **ips, size_t most)
{
    struct thread *runner = place->runner;
    arch_context elsewhere = runner->driver ? runner->driver->where(runner) : NULL;
    if (elsewhere)
        return arch_trace_context(elsewhere, NULL, 0, 0, ips, most);
    if (runner == look->thread)
        return arch_trace(ips, most);
    if (!is_held(look, place))
        return place->asked ? answered(look, c, ips, most) : 0;
    size_t count = runner->held_count < most ? runner->held_count : most;
    memcpy(ips, runner->held_ips, count * sizeof *ips);
    return count;
}

size_t look_frames(const struct look *look, struct cb *c, const struct place *place, void **ips, size_t most)
{
    if (place->runner)
        return trace_running(look, c, place, ips, most);
    if (!place->context)
        return 0;
    return look->loose ? trace_a_copy(look, c, place, ips, most) : trace(look, c, place, place->image, ips, most);
}

/* Caches names: looking one up is expensive, and few functions are in many traces. */
const char *look_name(const struct look *look, void *ip)
{
    struct name *name = &look->looker->names[((uintptr_t)ip * UINT64_C(0x9E3779B97F4A7C15)) >> 54];
    if (name->ip != ip) {
        name->ip = ip;
        place_words(look->names, ip, name->text, sizeof name->text);
    }
    return name->text;
}
_Static_assert(NAMES == 1 << (64 - 54), "all of the cache is in use");

void look_say_frames(const struct look *look, void *const *ips, size_t count, size_t indent)
{
    for (size_t i = 0; i < count; i++)
        out_say(look->out, indent, "at %s\n", look_name(look, ips[i]));
}

/* ---- threads that could not be held ---------------------------------------------------------------------- */

/* In a signal handler, on the asked thread; or on the inspecting thread, while the asked one waits. */
ARCH_NOT_INSTRUMENTED static uintptr_t stack_end(void *self, uintptr_t sp, struct arch_asked *asked)
{
    const struct thread *thread = self;
    struct fibre *fibre = thread ? plain_load(&thread->current, memory_order_relaxed) : NULL;
    const struct stack *stack = fibre ? plain_load(&fibre->stack, memory_order_relaxed) : NULL;
    struct member *active = fibre ? plain_load(&fibre->active, memory_order_relaxed) : NULL;
    if (!stack || !active || sp < (uintptr_t)stack->low || sp >= (uintptr_t)stack->top)
        return 0;
    const struct cb *c = CONTAINER(active, struct cb, member);
    asked->tag = plain_load((const uint64_t *)&c->word, memory_order_relaxed) >> WORD_SERIAL;
    return (uintptr_t)stack->top;
}

bool look_at_runner(struct looker *looker, struct thread *thread, int64_t wait_ns, struct told *told)
{
    struct arch_asked asked = {.top = stack_end, .copy = looker->copy, .room = sizeof looker->copy};
    bool answers = arch_ask_waiting(thread->os_id, thread, &asked) == 0 ||
                   (wait_ns && arch_ask(thread->os_id, &asked, wait_ns) == 0);
    if (!answers || !asked.end)
        return false;
    *told = (struct told){.thread = thread, .id = asked.tag, .waits = asked.waits, .used = asked.end - asked.sp};
    told->count = arch_trace_asked(&asked, told->ips, FRAMES_MOST);
    return true;
}

void look_ask(struct look *look, struct thread *thread, bool signals)
{
    int64_t now = driver_now(thread->sub);
    if (!look->answers_until)
        look->answers_until = now + ANSWERS_NS;
    int64_t wait_ns = look->answers_until - now > ANSWER_NS ? look->answers_until - now : ANSWER_NS;
    struct looker *looker = look->looker;
    if (looker->told_count < ASKED_MOST &&
        look_at_runner(looker, thread, signals ? wait_ns : 0, &looker->told[looker->told_count]))
        looker->told_count++;
}

/* ---- waits -------------------------------------------------------------------------------------------------- */

bool look_is_blocked(struct cb *c)
{
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER;
    uint64_t state = atomic_load_explicit(&c->wait.state, memory_order_acquire);
    return !over && c->started && c->blocked != BLOCKED_NOT && wait_tag(state) == WAIT_ARMED;
}

bool look_is_settled(const struct look *look, struct cb *c)
{
    return !look->loose && wait_tag(atomic_load_explicit(&c->wait.state, memory_order_acquire)) == WAIT_ARMED;
}

/* Describes a wait from its control block alone. */
static void write_plainly(char *text, size_t size, unsigned why, uint64_t on, int64_t now)
{
    const char *words = blocked_words(why);
    if (why == BLOCKED_SLEEP)
        snprintf(text, size, "%s for %.1f ms more", words, (double)((int64_t)on - now) / 1e6);
    else if (why == BLOCKED_SCOPE || why == BLOCKED_OFFLOAD || why == BLOCKED_CREW || why == BLOCKED_SIGNAL ||
             why == BLOCKED_QUIET || why == BLOCKED_STOPPING || why == BLOCKED_ACTOR || cells_are_waited_for(why))
        snprintf(text, size, "%s", words);
    else if (why == BLOCKED_POOL)
        snprintf(text, size, "%s '%s'", words, pool_name_waited_for(on, (char[POOL_NAME_ROOM]){0}));
    else if (why == BLOCKED_DESCRIPTOR)
        snprintf(text, size, "%s %d", words, (int)on);
    else if (why == BLOCKED_SELECT)
        snprintf(text, size, "%s %d cases", words, (int)on);
    else if (why > BLOCKED_DESCRIPTOR)
        snprintf(text, size, "%s at %p", words, (void *)(uintptr_t)on);
    else
        snprintf(text, size, "%s #%llu", words, (unsigned long long)on);
}

const char *look_words(const struct look *look, struct cb *c, unsigned why, uint64_t on, char *text, size_t size)
{
    const char *words = blocked_words(why);
    void *object = (void *)(uintptr_t)on;
    if (why == BLOCKED_SEND || why == BLOCKED_RECEIVE)
        snprintf(text, size, "%s '%s' at %p", words, ((struct chan *)object)->name, object);
    else if (why == BLOCKED_PORT)
        snprintf(text, size, "%s '%s' at %p", words, ((struct port *)object)->name, object);
    else if (why == BLOCKED_PERMIT && look_is_settled(look, c))
        snprintf(text, size, "%s '%s' #%llu at %p", words, ((struct prio *)object)->name,
                 (unsigned long long)((struct prio *)object)->serial, object);
    else if (cells_are_waited_for(why) && look_is_settled(look, c))
        cells_words(c, text, size);
    else
        write_plainly(text, size, why, on, driver_now(look->thread->sub));
    return text;
}

static double since_ms(const struct cb *c, int64_t now)
{
    return (double)(now - c->since) / 1e6;
}

static void say_plain_wait(struct out *out, struct cb *c, unsigned why, int64_t now, size_t indent)
{
    char words[WORDS_MOST];
    write_plainly(words, sizeof words, why, c->blocked_on, now);
    out_say(out, indent, "blocked: %s, since %.1f ms\n", words, since_ms(c, now));
}

static void say_wait(const struct look *look, struct cb *c, size_t indent)
{
    char words[WORDS_MOST];
    unsigned why = c->blocked;
    look_words(look, c, why, c->blocked_on, words, sizeof words);
    out_say(look->out, indent, "blocked: %s, since %.1f ms\n", words, since_ms(c, driver_now(look->thread->sub)));
    if (why != BLOCKED_MUTEX || !look_is_settled(look, c))
        return;
    struct mutex *mutex = (struct mutex *)(uintptr_t)c->blocked_on;
    uint64_t owner = gate_value(atomic_load_explicit(&mutex->gate.word, memory_order_acquire));
    if (owner)
        out_say(look->out, indent + 4, "%s\n",
                held_made((struct cb *)(uintptr_t)owner, HELD_MUTEX,
                          look_name(look, plain_load(&mutex->site, memory_order_relaxed)), MADE_ROOM));
}

bool look_own(const struct look *look, struct cb *c, struct own *own)
{
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER;
    uint64_t words[OWN_KEPT];
    if (look->loose || over || !c->started)
        return false;
    if (c->guest) {
        opened_own(&c->member, words);
        *own = (struct own){0};
        memcpy(own, words, sizeof words);
    } else {
        *own = *own_of(c);
    }
    return true;
}

/* The cases are where the strand has put them, usually in its frames: for an inactive strand, in its saved stack. */
strand_case look_case(const struct look *look, struct cb *c, size_t index)
{
    strand_case copy;
    const char *at = (const char *)c->wait.node.value + index * sizeof copy;
    struct place place = look_place(look, c);
    size_t offset = (size_t)((uintptr_t)at - (uintptr_t)place.context);
    if (place.image && offset < place.size)
        at = place.image + offset;
    arch_copy(&copy, at, sizeof copy);
    return copy;
}

/* ---- everything --------------------------------------------------------------------------------------------- */

static void say_head(struct out *out, struct cb *c, uint64_t id, bool over, size_t indent)
{
    struct scope *anchor = plain_load(&c->anchor, memory_order_relaxed);
    uint64_t word = atomic_load_explicit(&c->word, memory_order_relaxed);
    out_say(out, indent, "strand '%s' #%llu%s%s\n", cb_name(c), (unsigned long long)id,
            word & WORD_CANCELLED ? ", cancelled" : "", over ? ", ended, not joined" : "");
    struct note *note = atomic_load_explicit(&c->note, memory_order_acquire);
    if (note)
        out_say(out, indent + 4, "cancelled by '%s' #%llu%s%s\n", note->who, (unsigned long long)note->who_id,
                note->why[0] ? ": " : "", note->why);
    if (anchor)
        out_say(out, indent + 4, "in the scope of %s:%d\n", anchor->block.file, anchor->block.line);
}

static void say_doing(const struct look *look, struct cb *c, enum doing doing, const struct place *place, size_t indent)
{
    struct thread *runner = place->runner;
    bool traced = runner && (runner == look->thread || runner->driver || is_held(look, place));
    bool waits = place->asked && told_of(look, c)->waits;
    if (doing == DOING_RUNNING)
        out_say(look->out, indent, "running on thread %d (%u)%s\n", runner->index, runner->os_id,
                traced         ? ""
                : waits        ? ", waits in the system"
                : place->asked ? ", asked by a signal"
                               : ", could not be held");
    else if (doing == DOING_NOT_STARTED)
        out_say(look->out, indent, "runnable: has not started\n");
    else if (doing == DOING_RUNNABLE)
        out_say(look->out, indent, "runnable\n");
    else
        say_wait(look, c, indent);
}

void look_say(const struct look *look, struct cb *c, uint64_t id, size_t indent)
{
    void *ips[FRAMES_MOST];
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER;
    say_head(look->out, c, id, over, indent);
    if (over)
        return;
    struct place place = look_place(look, c);
    enum doing doing = look_doing(c, &place);
    if (doing == DOING_NOTHING)
        return;
    say_place(look, c, &place, indent + 4);
    if (!look->loose)
        cells_say(look->out, c, indent + 4);
    say_doing(look, c, doing, &place, indent + 4);
    look_say_frames(look, ips, look_frames(look, c, &place, ips, FRAMES_MOST), indent + 6);
}

void look_say_blocked(struct out *out, struct thread *thread, struct cb *c, size_t indent)
{
    unsigned blocked = c->blocked;
    if (blocked == BLOCKED_NOT)
        out_say(out, indent, "runnable\n");
    else
        say_plain_wait(out, c, blocked, driver_now(thread->sub), indent);
}

void look_say_plainly(struct out *out, struct thread *thread, struct cb *c, uint64_t id)
{
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER;
    unsigned blocked = c->blocked;
    say_head(out, c, id, over, 0);
    if (over)
        return;
    if (!c->started)
        out_say(out, 4, "runnable: has not started\n");
    else if (blocked == BLOCKED_NOT)
        out_say(out, 4, "runnable, or running\n");
    else
        say_plain_wait(out, c, blocked, driver_now(thread->sub), 4);
}
