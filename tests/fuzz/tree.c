/*
 * The fuzzer's target: runs the program that the input decodes to, under a seed, tells the model of every operation,
 * and checks what comes of it. How a block is left is real: by falling off its end, by return, by exceptions that no
 * try block stops in between. See docs/testing.md.
 *
 *     build/fuzz/tree FILE      runs that input once
 */
#include "run.h"

#include "strand/sim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct program program;
const strand_kind kind_a = STRAND_KIND("a", &STRAND_ERROR), kind_b = STRAND_KIND("b", &kind_a);
static int logged;

/* ---- reports --------------------------------------------------------------------------------------------- */

static void say_words(void)
{
    program_print(&program, stderr);
    fprintf(stderr, "fuzz: libFuzzer names the file below; build/fuzz/tree FILE runs it again\n");
}

void disagree(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "fuzz: ");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_stack_use_after_return=0:quarantine_size_mb=32";
}

/* Of every report of every sanitizer, at its end. */
void __sanitizer_report_error_summary(const char *summary);
void __sanitizer_report_error_summary(const char *summary)
{
    fprintf(stderr, "%s\n", summary);
    say_words();
}

static struct sigaction libfuzzer_s;

static void on_abort(int signal, siginfo_t *info, void *context)
{
    say_words();
    libfuzzer_s.sa_sigaction(signal, info, context);
}

/* libFuzzer sets its handlers before the first input. */
static void put_words_before_aborts(void)
{
    struct sigaction ours = {.sa_sigaction = on_abort, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (!libfuzzer_s.sa_sigaction && sigaction(SIGABRT, &ours, &libfuzzer_s) != 0)
        abort();
}

/* ---- choosing -------------------------------------------------------------------------------------------- */

/* Chooses number `which`, modulo their count, of the indices that `fits` accepts; 0 if there is none. */
int choose(struct mstrand *s, unsigned which, bool (*fits)(struct mstrand *s, int index))
{
    int fitting[NODES], count = 0;
    for (int i = 0; i < program.count; i++)
        if (fits(s, i))
            fitting[count++] = i;
    return count ? fitting[which % (unsigned)count] : NO_ONE;
}

bool is_child(struct mstrand *s, int i)
{
    const struct mstrand *c = &model.strands[i];
    return i && (c->life == RUNNING || c->life == ENDED) && model.scopes[c->anchor].owner == index_of(s) &&
           model.scopes[c->anchor].life == OPEN;
}

bool is_strand(struct mstrand *s, int i)
{
    return s && model.strands[i].life != NEVER;
}

bool is_other(struct mstrand *s, int i)
{
    return i != index_of(s) && model.strands[i].life != NEVER;
}

bool is_mine(struct mstrand *s, int i)
{
    return model.scopes[i].life == OPEN && model.scopes[i].owner == index_of(s);
}

bool is_mine_or_open(struct mstrand *s, int i)
{
    return is_mine(s, i) || (model.scopes[i].life != NOT_YET && (model.scopes[i].flags & STRAND_OPEN));
}

bool is_scope(struct mstrand *s, int i)
{
    return s && model.scopes[i].life != NOT_YET;
}

/* ---- one input ------------------------------------------------------------------------------------------- */

/* What an exception carries is logged in lines of its own. */
static void on_log(const char *message, void *arg)
{
    (void)arg;
    logged += !strstr(message, ": suppressed ") && !strstr(message, ": caused by ") && !strstr(message, ": ... and ");
}

static void *run_root(void *arg)
{
    struct mstrand *root = arg;
    root->handle = strand_self();
    return run_strand(root);
}

static void check_strand(struct mstrand *s)
{
    bool runs = s->life != NEVER;
    MUST(s->began == runs && s->ended == runs, "strand %d has begun %d times and ended %d times", index_of(s), s->began,
         s->ended);
    MUST(!runs || s == model.strands || s->life == GONE, "strand %d is left", index_of(s));
    if (s->drops)
        MUST(s->dropped == (s->outcome != OUT_VALUE ? 0
                            : s->taken              ? 0
                                                    : 1),
             "the result of strand %d was dropped %d times", index_of(s), s->dropped);
    strand_exception_release(s->kept_real);
}

static void run_once(void)
{
    strand_exception *uncaught = NULL;
    logged = 0;
    model_reset();
    void *result = strand_run(STRAND_OPTIONS(.threads = program.threads, .scheduler = program.scheduler,
                                             .stack_size = 256 * 1024, .has_seed = true, .seed = program.seed,
                                             /* the model counts on coarse steps */
                                             .sim = STRAND_SIM(.depth = STRAND_SIM_WALK, .coarse = true),
                                             .uncaught = &uncaught, .on_misuse = on_misuse, .on_log = on_log),
                              run_root, model.strands);
    struct mstrand *root = model.strands;
    MUST(root->life == ENDED, "the run is over, but the root strand has not ended");
    MUST((uncaught != NULL) == (root->exception != NULL), "the root strand has thrown, or not, unlike the model's");
    if (uncaught)
        exc_compare(uncaught, root->exception, "the run");
    else
        MUST(result == value_of(root), "the run returned %p", result);
    strand_exception_release(uncaught);
    for (int i = 0; i < NODES; i++)
        check_strand(&model.strands[i]);
    MUST(payloads() == 0, "%d payloads of exceptions are left", payloads());
    MUST(logged == model.logs, "%d exceptions were logged, by the model %d", logged, model.logs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    put_words_before_aborts();
    setenv("STRAND_SIM_SILENT", "1", 1);
    program_decode(&program, data, size);
    if (getenv("FUZZ_WORDS"))
        program_print(&program, stderr);
    run_once();
    misuse_in_a_child(run_once);
    return 0;
}
