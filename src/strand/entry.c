/*
 * The frame that every strand's function runs in: at the bottom of each stack, which runs one strand after the other.
 */
#include "entry.h"
#include "cxx.h"
#include "end.h"
#include "exception.h"
#include "interrupt.h"
#include "misuse.h"

#include "../sched/switch.h"

/* ---- running --------------------------------------------------------------------------------------------- */

/* Misuse if the strand's function returns with an open block. first: the try block of this file.
 */
static COLD void must_be_left_(struct cb *c, const struct strand_try_ *first)
{
    struct own *own = own_of(c);
    if (own->blocks || own->shield || own->tries != first)
        misuse_block_skipped_(c, own->blocks);
    own->floor = 0; /* the strand's last operation may have put an interruption off [I2] */
}

static inline void must_be_left(struct cb *c, const struct strand_try_ *first)
{
    const struct own *own = own_of(c);
    if (UNLIKELY((own->depth | own->floor) != 0 ||
                 own->tries != first)) /* a shield raises the floor, and a block raises the depth */
        must_be_left_(c, first);
}

ARCH_NOT_INSTRUMENTED static COLD void catch_all(struct serving *serving, struct cb *c)
{
    cb_throws(c, exception_land(c, NULL));
    ASSERT(!own_of(c)->flight);
    must_be_left(c, &serving->try);
    arch_longjmp(serving->try.jump, STRAND_TRY_FORM_);
}

/* Misuse: if the thread exited, the strands of its pool would lose it. */
COLD void entry_thread_exits(void)
{
    struct thread *thread = thread_self();
    if (arch_orphan())
        misuse_forked(NULL, "pthread_exit");
    if (!thread || !thread->current)
        misuse("pthread_exit", "", "it would end a thread of the run: a function that the runtime calls has to return");
    struct cb *c = current_of(thread);
    MISUSE_STRAND("pthread_exit", c,
                  "it would end the thread that runs the pool's strands. To end the strand '%s' alone, return from its "
                  "function or throw an exception",
                  cb_name(c));
}

/* If the frames below the strand's function are unwound without an exception in flight, the thread exits, and
 * src/arch/exits.c has not noticed. */
ARCH_NOT_INSTRUMENTED static void leave_serving(struct serving *serving)
{
    struct cb *c = current_of(must_be_strand("strand_fn"));
    if (!own_of(c)->flight)
        entry_thread_exits();
    catch_all(serving, c);
}

static inline void begin(struct cb *c)
{
    c->started = true;
    if (UNLIKELY(c->slow_end))
        own_of(c)->locals = c->inherits;
}

/* thrown: an exception has left the current strand's function. */
__attribute__((noreturn)) static NOINLINE void serve(struct thread *thread, struct strand_try_ *try, bool thrown)
{
    for (;; thrown = false) {
        struct cb *c = current_of(thread);
        if (LIKELY(!thrown)) {
            arch_san_acquire(c);
            begin(c);
            own_of(c)->tries = try;
            c->result = cxx_call(thread, c->fn, c->arg);
            thread = must_be_strand("strand_fn"); /* misuse in the child of a fork */
            must_be_left(c, try);
        }
        end_strand(thread, c);
        thread = switch_serve_next(thread);
    }
}

void entry_serve(struct thread *thread)
{
    struct serving serving __attribute__((cleanup(leave_serving)));
    serving.try.outer = NULL;
    serving.try.in_flight = NULL;
    serving.try.uncaught = 0;
    serving.try.refuses = false;
    bool thrown = STRAND_TRY_SETJMP_(serving.try) != 0;
    serve(thrown ? thread_self() : thread, &serving.try, thrown);
}

/* ---- on a shared fibre ------------------------------------------------------------------------------------ */

/* All strands of the fibre share the frame of entry_serve_shared, the frames above it, and the try block. They are
 * never copied, so nothing there may change after shared_fibre_wait. Not inline, so that the frame stays small. */
ARCH_NOT_INSTRUMENTED static NOINLINE void leave_shared(char *mark)
{
    (void)mark;
    struct thread *thread = must_be_strand("strand_fn");
    struct cb *c = current_of(thread);
    if (!own_of(c)->flight)
        entry_thread_exits();
    catch_all(&hosting_of(shared_of(thread->current))->serving, c);
}

static COLD void result_misuse(struct thread *thread, struct cb *c)
{
    MISUSE_STRAND("strand_fn", c,
                  "its result points into its own stack, which other strands use by now: %zu bytes below the top. "
                  "Return memory from malloc, or a value in the pointer itself",
                  (size_t)(thread->current->stack->top - (char *)c->result));
}

/* Ends a strand. Returns when another strand starts on this stack. */
static NOINLINE void end_guest(void *result, bool thrown)
{
    struct thread *thread = must_be_strand("strand_fn");
    struct cb *c = current_of(thread);
    if (LIKELY(!thrown)) {
        c->result = result;
        must_be_left(c, &hosting_of(shared_of(thread->current))->serving.try);
        if (UNLIKELY(shared_fibre_has(thread->current, result)))
            result_misuse(thread, c);
    }
    end_strand(thread, c);
    (void)switch_serve_shared(thread);
}

/* Uses as little stack as possible: this frame is in the saved stack of every strand. */
static NOINLINE void run_guest(void)
{
    struct thread *thread = thread_self();
    struct cb *c = current_of(thread);
    arch_san_acquire(c);
    begin(c);
    end_guest(cxx_call(thread, c->fn, c->arg), false);
}

void entry_serve_shared(struct shared_fibre *shared, void *above)
{
    char mark __attribute__((cleanup(leave_shared)));
    struct serving *serving = &((struct hosting *)above)->serving;
    serving->try.outer = NULL;
    serving->try.in_flight = NULL;
    serving->try.uncaught = 0;
    serving->try.refuses = false;
    ((struct own *)(void *)shared->fibre.own)->tries = &serving->try; /* every strand of the fibre starts with it */
    if (STRAND_TRY_SETJMP_(serving->try) != 0)
        end_guest(NULL, true);
    else
        shared_fibre_wait(shared, &mark);
    for (;;)
        run_guest();
}
