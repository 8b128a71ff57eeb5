/*
 * Reports of a seeded run: a line at its end; if it fails, its seed, the last steps in words, and the state of the
 * strands. All output goes through arch_write, since it may happen in the middle of an abort.
 */
#include "sim.h"

#include "../strand/exception.h"
#include "../strand/print.h"
#include "../strand/sized.h"
#include "../sync/sync_blocked.h"

#include <stdlib.h>
#include <string.h>

static const char *const switch_point_texts[] = {
    [POINT_START] = "begins",
    [POINT_SUSPENSION] = "goes on after a suspension",
    [POINT_SPIN] = "looks again what it spins for",
    [POINT_SLEEP] = "wakes up",
    [POINT_OPERATION] = "goes on",
    [POINT_ATOMIC] = "goes on before an atomic operation",
};

void report_strand(struct step *step, const struct fibre *fibre)
{
    struct cb *c = fibre->current ? cb_of(fibre->current) : NULL;
    step->strand = c;
    step->id = c ? cb_id(c) : 0;
    step->blocked_on = c ? c->blocked_on : 0;
    step->blocked = c ? c->blocked : BLOCKED_NOT;
}

static const char *sign(const struct sim *sim)
{
    return sim->atomic_steps ? "s" : "";
}

/* Prints "with strand_mutex_lock", or the public function that the address is a part of. */
static void say_operation(const struct step *step)
{
    char name[120];
    uintptr_t offset;
    bool known = arch_symbol(step->where, name, sizeof name, &offset);
    char *dot = strchr(name, '.');
    if (dot)
        *dot = '\0'; /* the compiler has added the rest */
    print_text(2, " with %s", known ? name : "an operation");
}

/* The control block is never unmapped; if it was reused, its number differs. */
static void say_strand(const struct step *step)
{
    uint64_t word = atomic_load_explicit(&step->strand->word, memory_order_relaxed);
    if (word_serial(word) == step->id && !(word & (WORD_DEAD | WORD_FREE)))
        print_text(2, ", in strand '%s' #%llu", cb_name(step->strand), (unsigned long long)step->id);
    else
        print_text(2, ", in strand #%llu, which has ended", (unsigned long long)step->id);
}

static void say_step(const struct sim *sim, const struct step *step)
{
    bool plain = !sim->played[step->who]->thread;
    print_text(2, "  %6llu %12.3f us  %sthread %u %s", (unsigned long long)step->number,
               (double)(step->now - sim->began) / 1000, plain ? "plain " : "", step->who,
               switch_point_texts[step->switch_point]);
    if (step->switch_point == POINT_OPERATION)
        say_operation(step);
    if (step->again)
        print_text(2, ", and %u times more", step->again);
    if (step->strand)
        say_strand(step);
    const struct blocked_reason *reason = blocked_reason((struct runtime *)sim->sub, step->blocked);
    if (step->blocked)
        print_text(2, ", which %s", reason->words);
    if (reason->on == ON_STRAND)
        print_text(2, " #%llu", (unsigned long long)step->blocked_on);
    if (reason->on == ON_DESCRIPTOR)
        print_text(2, " %d", (int)step->blocked_on);
    print_text(2, "\n");
}

static void say_last_steps(const struct sim *sim)
{
    uint32_t first = sim->recorded > LAST_STEPS ? sim->recorded - LAST_STEPS : 0;
    print_text(2, "the last steps:\n");
    for (uint32_t i = first; i < sim->recorded; i++)
        say_step(sim, &sim->last[i % LAST_STEPS]);
}

static void say_threads(const struct sim *sim)
{
    static const char *const states[] = {
        [PLAYED_READY] = "can go on",
        [PLAYED_RELAXED] = "spins",
        [PLAYED_SLEEPING] = "sleeps",
        [PLAYED_DONE] = "is done",
    };
    for (uint32_t i = 0; i < sim->count; i++) {
        const struct played *p = sim->played[i];
        if (p->state == PLAYED_FREE)
            continue;
        print_text(2, "  %sthread %u %s", p->thread ? "" : "plain ", i, p == sim->running ? "runs" : states[p->state]);
        if (p != sim->running && p->state == PLAYED_SLEEPING && p->deadline != ARCH_FOREVER) {
            int64_t left = p->deadline - sim->now; /* the time may be over, while the thread was not chosen yet */
            print_text(2, ", for %.3f us more", left > 0 ? (double)left / 1000 : 0.0);
        }
        print_text(2, "\n");
    }
}

/* On the stack of the running thread, or of the director. */
static void say_strands(struct sim *sim)
{
    struct thread *before = thread_self(), *thread = before ? before : sim->sub->pool.threads[0];
    print_text(2, "the strands:\n");
    thread_adopt(thread);
    (void)runtime_of(thread)->reports->dump(thread, 2);
    thread_adopt(before);
}

/* Prints how to repeat the run, besides the program and its options. */
static void say_again(const struct sim *sim)
{
    const char *words = arch_env("STRAND_SIM");
    bool said = words && *words;
    print_text(2, "libstrand: STRAND_SEED=%s%llu %s%.100s%srepeats this run\n", sign(sim),
               (unsigned long long)sim->seed, said ? "STRAND_SIM=\"" : "", said ? words : "", said ? "\" " : "");
}

/* Sets *found if a post by a plain thread could end the strand's wait. */
static void find_receiver(void *object, void *found)
{
    struct cb *c = cb_in(object);
    uint64_t word = atomic_load_explicit(&c->word, memory_order_relaxed);
    if (word_serial(word) && !(word & (WORD_DEAD | WORD_FREE)))
        *(bool *)found |= c->blocked == BLOCKED_RECEIVE || c->blocked == BLOCKED_SELECT || c->blocked == BLOCKED_PORT;
}

static void say_what_is_not_seen(const struct sim *sim)
{
    struct runtime *runtime = (struct runtime *)sim->sub;
    bool found = false;
    slab_each(&runtime->cbs, find_receiver, &found);
    if (found)
        print_text(2, "libstrand: a strand waits for a channel: a thread of the program's own that may be about to "
                      "post to it is not seen; strand_sim_thread makes it part of the run\n");
}

static void report(struct sim *sim, const char *what, bool ended)
{
    sim->failed = true;
    arch_san_acquire(sim->sub); /* what strands did before they were suspended */
    print_text(2, "libstrand: seed %s%llu: %s, after %llu steps, schedule %016llx\n", sign(sim),
               (unsigned long long)sim->seed, what, (unsigned long long)sim->steps, (unsigned long long)sim->hash);
    say_last_steps(sim);
    if (!ended) {
        print_text(2, "the threads:\n");
        say_threads(sim);
        say_strands(sim);
    }
    say_again(sim);
}

void report_end(struct sim *sim, const char *failure)
{
    strand_sim_report *out = sim->options.report;
    const strand_sim_report made = {sizeof made,           sim->seed,        sim->hash, sim->steps,
                                    sim->now - sim->began, sim->atomic_steps};
    if (out)
        sized_give(out, out->size, &made, sizeof made);
    if (failure)
        report(sim, failure, true);
    else if (!sim->options.silent && !arch_env("STRAND_SIM_SILENT"))
        print_text(2, "libstrand: seed %s%llu, schedule %016llx, %llu steps\n", sign(sim),
                   (unsigned long long)sim->seed, (unsigned long long)sim->hash, (unsigned long long)sim->steps);
}

void report_fail(struct sim *sim, const char *what)
{
    report(sim, what, false);
    abort();
}

void report_deadlock(struct sim *sim)
{
    report(sim, "deadlock: nothing can ever run again", false);
    say_what_is_not_seen(sim);
    abort();
}

void report_ending(struct arch_player *player)
{
    struct sim *sim = (struct sim *)player;
    if (!sim->failed)
        report(sim, "the program ends", arch_san_separate()); /* TSan aborts if there is no memory for a dump */
}
