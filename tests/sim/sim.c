/*
 * The runner of a workload: one seed after the other in one process, and what is proven of each run. The interface is
 * sim.h. Blocks of memory are counted by the allocator's own names, which the program defines; under a sanitizer they
 * are the sanitizer's, which looks for leaks itself.
 */
#include "sim.h"

#include "strand/debug.h"
#include "strand/sim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* A run takes milliseconds; one that takes so long never ends. */
enum { HANG_S = 30 };
/* So many runs lie between two looks at descriptors and address space, which takes as long as some runs. */
enum { PASS_EVERY = 256, SPACE_SLACK = 64 << 20 };
/* A run takes thousands of steps; one that takes so many never ends. */
enum { STEPS_MOST = 20000000 };

const strand_kind SIM_ERROR = STRAND_KIND("sim error", &STRAND_ERROR);

static struct {
    const char *program;
    uint64_t seed;
    uint64_t runs; /* that have begun */
    bool one;      /* a single seed is run: it may be heard of */
    bool shared;   /* all strands live on shared stacks */
    bool refuses;  /* memory, now and then */
    enum strand_out_of_work out_of_work;
    bool breaks; /* connections */
    _Atomic int lives, logged;
    _Atomic uint64_t observed;
    uint64_t hash; /* of all runs */
    uint64_t seen_runs;
    int idle_s; /* since another run began */
    int descriptors;
    long space;
    struct sim_life life[SIM_LIVES];
} sim;

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    z = (z ^ (z >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return z ^ (z >> 33);
}

static uint64_t next_of(struct sim_chance *chance)
{
    return mixed(chance->state += UINT64_C(0x9e3779b97f4a7c15));
}

uint32_t sim_draw(struct sim_chance *chance, uint32_t n)
{
    return (uint32_t)(((next_of(chance) >> 32) * n) >> 32);
}

bool sim_one_in(struct sim_chance *chance, uint32_t n)
{
    return sim_draw(chance, n) == 0;
}

/* ---- what ends the process ------------------------------------------------------------------- */

/* May be called in a signal handler: with numbers and strings only, the C library's snprintf takes no lock. */
static void say_seed(const char *what)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "sim: %s FAILED under seed %" PRIu64 ", the %" PRIu64 ". of this process: %s\n"
                     "sim: replay it by: %s%s --seed %" PRIu64 "\n",
                     sim_workload.name, sim.seed, sim.runs, what, sim.program, sim.shared ? " --shared" : "", sim.seed);
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1) < 0)
        return;
}

STRAND_NORETURN static void end_failed(const char *what)
{
    say_seed(what);
    _exit(EXIT_FAILURE);
}

void sim_failed_(const char *file, int line, const char *text, long long a, long long b)
{
    char what[384];
    if (a == b)
        snprintf(what, sizeof what, "%s:%d: %s", file, line, text);
    else
        snprintf(what, sizeof what, "%s:%d: %s: %lld against %lld", file, line, text, a, b);
    end_failed(what);
}

void sim_check_eq_(long long a, long long b, const char *text, const char *file, int line)
{
    if (a != b)
        sim_failed_(file, line, text, a, b);
}

void sim_unexpected(const strand_exception *e, const char *where)
{
    strand_exception_print(e, STDERR_FILENO);
    end_failed(where);
}

static void on_fatal(int number)
{
    say_seed(number == SIGABRT ? "it was aborted" : number == SIGSEGV ? "SIGSEGV" : "a signal");
    signal(number, SIG_DFL);
    raise(number);
}

static void on_second(int number)
{
    (void)number;
    if (sim.runs != sim.seen_runs)
        sim.idle_s = 0;
    sim.seen_runs = sim.runs;
    if (++sim.idle_s >= HANG_S)
        end_failed("the run does not end");
}

#ifdef SANITIZED
/* A sanitizer that finds something ends the process by an abort, which names the seed. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__ubsan_default_options(void);
const char *__asan_default_options(void)
{
    return "abort_on_error=1";
}
const char *__tsan_default_options(void)
{
    return "abort_on_error=1:halt_on_error=1";
}
const char *__ubsan_default_options(void)
{
    return "abort_on_error=1";
}
#endif

static void watch_for_the_end(void)
{
    static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i], &action, NULL);
    action = (struct sigaction){.sa_handler = on_second, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{1, 0}, {1, 0}}, NULL);
}

/* ---- strands --------------------------------------------------------------------------------- */

static struct sim_life *new_life(struct sim_chance *chance, sim_body *body, void *arg, int tag)
{
    int number = atomic_fetch_add(&sim.lives, 1);
    SIM_CHECK(number < SIM_LIVES);
    struct sim_life *life = &sim.life[number];
    memset(life, 0, sizeof *life);
    life->chance.state = next_of(chance);
    life->number = number;
    life->tag = tag;
    life->body = body;
    life->arg = arg;
    return life;
}

static void end_life(struct sim_life *const *life)
{
    SIM_CHECK_EQ((*life)->depth, 0);
    (*life)->ended++;
    sim_observe((uint64_t)(*life)->number << 8 | 1);
}

static void *live(void *arg)
{
    struct sim_life *me = *(struct sim_life **)arg;
    struct sim_life *ending __attribute__((cleanup(end_life), unused)) = me;
    me->begun++;
    sim_observe((uint64_t)me->number << 8);
    me->body(me, me->arg);
    me->returned++;
    return me;
}

void sim_take(void *result)
{
    struct sim_life *life = result;
    SIM_CHECK(life >= sim.life && life < sim.life + SIM_LIVES);
    SIM_CHECK_EQ(life->ended, 1);
    life->taken++;
}

static void refuse(struct sim_life *const *life)
{
    if (*life)
        (*life)->refused++;
}

struct sim_life *sim_spawn_at(struct sim_life *me, strand_scope scope, const struct strand_attr *where, sim_body *body,
                              void *arg, int tag)
{
    struct sim_life *life = new_life(&me->chance, body, arg, tag);
    struct sim_life *refused __attribute__((cleanup(refuse))) = life;
    struct strand_attr attr = *where;
    attr.drop = sim_take;
    life->handle = strand_spawn_with(scope, &attr, live, &life, sizeof life);
    refused = NULL;
    atomic_store(&life->known, 1);
    return life;
}

struct sim_life *sim_spawn_on(struct sim_life *me, strand_scope scope, strand_fibre fibre, sim_body *body, void *arg,
                              int tag)
{
    return sim_spawn_at(me, scope, STRAND_ATTR(.fibre = fibre), body, arg, tag);
}

struct sim_life *sim_spawn_tagged(struct sim_life *me, strand_scope scope, sim_body *body, void *arg, int tag)
{
    return sim_spawn_on(me, scope, (strand_fibre){{0, 0}}, body, arg, tag);
}

struct sim_life *sim_spawn(struct sim_life *me, strand_scope scope, sim_body *body, void *arg)
{
    return sim_spawn_tagged(me, scope, body, arg, 0);
}

struct sim_life *sim_life(int number)
{
    return number < sim.lives && atomic_load(&sim.life[number].known) ? &sim.life[number] : NULL;
}

struct sim_life *sim_somebody(struct sim_life *me)
{
    return sim_life((int)sim_draw(&me->chance, (uint32_t)sim.lives));
}

void sim_cancel(struct sim_life *life, const char *why)
{
    strand_cancel(life->handle, why);
    atomic_store(&life->cancelled, 1);
}

static void join(struct sim_life *me, void *child)
{
    (void)me;
    sim_take(strand_join(((struct sim_life *)child)->handle));
}

enum sim_end sim_join(struct sim_life *child)
{
    strand_exception *e = sim_try(NULL, join, child);
    enum sim_end end = !e ? SIM_RETURNED : strand_exception_is(e, &STRAND_CHILD_CANCELLED) ? SIM_CANCELLED : SIM_FAILED;
    sim_settle(e);
    return end;
}

void sim_for_ever(void)
{
    strand_sleep(3600 * STRAND_S);
    end_failed("a strand was not ended that should have been");
}

void sim_eternal(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    sim_for_ever();
}

struct trial {
    struct sim_life *me;
    sim_body *body;
    void *arg;
};
static void *attempt(void *arg)
{
    struct trial *trial = arg;
    trial->body(trial->me, trial->arg);
    return NULL;
}

strand_exception *sim_try(struct sim_life *me, sim_body *body, void *arg)
{
    struct trial trial = {me, body, arg};
    return strand_try(attempt, &trial, NULL);
}

void sim_settle(strand_exception *e)
{
    if (e && strand_exception_is(e, &STRAND_INTERRUPTED))
        strand_rethrow(e);
    strand_exception_release(e);
}

static void give_back(void *life)
{
    ((struct sim_life *)life)->given_back++;
}

void sim_fail(struct sim_life *me)
{
    me->failed++;
    strand_throw_info info = {.size = sizeof info, .payload = me, .payload_free = give_back};
    strand_throw_with(&SIM_ERROR, &info, "of strand %d", me->number);
}

void sim_see(const strand_exception *e)
{
    const strand_exception *suppressed;
    if (strand_exception_kind(e) == &SIM_ERROR)
        ((struct sim_life *)strand_exception_payload(e))->seen++;
    for (size_t i = 0; (suppressed = strand_exception_suppressed(e, i)); i++)
        sim_see(suppressed);
}

struct sim_cleanup_ sim_enter_(struct sim_life *life)
{
    return (struct sim_cleanup_){life, life->depth++};
}

void sim_leave_(const struct sim_cleanup_ *cleanup)
{
    SIM_CHECK_EQ(--cleanup->life->depth, cleanup->depth);
}

/* ---- what is refused ------------------------------------------------------------------------- */

bool sim_refuses_memory(void)
{
    return sim.refuses;
}

bool sim_breaks(void)
{
    return sim.breaks;
}

bool sim_no_memory(const strand_exception *e)
{
    const strand_exception *suppressed;
    if (!e || !sim.refuses)
        return false;
    if (strand_exception_is(e, &STRAND_SYSTEM) && strand_exception_code(e) == -ENOMEM)
        return true;
    for (size_t i = 0; (suppressed = strand_exception_suppressed(e, i)); i++)
        if (sim_no_memory(suppressed))
            return true;
    return sim_no_memory(strand_exception_cause(e));
}

bool sim_ended(const struct sim_life *life)
{
    return life->ended || (sim.refuses && !life->begun);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static _Atomic long blocks; /* that are not free */

#ifndef SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

/* One thread runs here, so that a load and a store are enough. */
static void *counted(void *block)
{
    if (block)
        atomic_store_explicit(&blocks, atomic_load_explicit(&blocks, memory_order_relaxed) + 1, memory_order_relaxed);
    return block;
}
void *malloc(size_t size)
{
    return counted(__libc_malloc(size));
}
void *calloc(size_t n, size_t size)
{
    return counted(__libc_calloc(n, size));
}
void *memalign(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size));
}
void *aligned_alloc(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size));
}
int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *made = counted(__libc_memalign(alignment, size));
    if (made)
        *block = made;
    return made ? 0 : ENOMEM;
}
void free(void *block)
{
    if (block)
        atomic_store_explicit(&blocks, atomic_load_explicit(&blocks, memory_order_relaxed) - 1, memory_order_relaxed);
    __libc_free(block);
}
void *realloc(void *old, size_t size)
{
    if (!old)
        return malloc(size);
    if (size)
        return __libc_realloc(old, size);
    free(old);
    return NULL;
}
#endif

static int open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    SIM_CHECK(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static long address_space(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    SIM_CHECK(file && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* The first look is the measure for all others. */
static void look_around(void)
{
    int descriptors = open_descriptors();
    long space = address_space();
    if (!sim.descriptors) {
        sim.descriptors = descriptors;
        sim.space = space;
    }
    SIM_CHECK_EQ(descriptors, sim.descriptors);
#ifndef SANITIZED
    SIM_CHECK(space <= sim.space + SPACE_SLACK);
#endif
}

/* ---- runs ------------------------------------------------------------------------------------ */

void sim_observe(uint64_t what)
{
    uint64_t hash = atomic_load_explicit(&sim.observed, memory_order_relaxed);
    atomic_store_explicit(&sim.observed, (hash ^ what) * UINT64_C(0x100000001b3), memory_order_relaxed);
}

int sim_logged(void)
{
    return sim.logged;
}

enum strand_out_of_work sim_out_of_work(void)
{
    return sim.out_of_work;
}

static void on_log(const char *message, void *arg)
{
    (void)arg;
    sim.logged++;
    if (sim.one)
        fprintf(stderr, "sim: log: %s\n", message);
}

static void *root(void *life)
{
    struct sim_life *me = life;
    me->begun++;
    me->body(me, me->arg);
    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    SIM_CHECK_EQ(stats.live, 1);
    SIM_CHECK_EQ(stats.spawned, stats.ended + 1);
    return life;
}

static void check_lives(void)
{
    for (int i = 1; i < sim.lives; i++) {
        const struct sim_life *life = &sim.life[i];
        SIM_CHECK(sim.refuses ? life->begun <= !life->refused : life->begun == !life->refused);
        SIM_CHECK_EQ(life->ended, life->begun);
        SIM_CHECK_EQ(life->taken, life->returned);
        SIM_CHECK_EQ(life->given_back, life->failed);
        SIM_CHECK(life->seen <= life->failed);
    }
}

static void run(uint64_t seed)
{
    static const char *const schedulers[] = {"stealing", "global"};
    struct sim_chance chance = {mixed(seed)};
    strand_exception *uncaught = NULL;
    sim.seed = seed;
    sim.lives = sim.logged = 0;
    sim.observed = UINT64_C(0xcbf29ce484222325);
    sim.runs++;
    memset(sim_workload.world, 0, sim_workload.world_size);
    strand_options options = {.size = sizeof options, .has_seed = true, .seed = seed, .uncaught = &uncaught};
    options.threads = 1 + (int)sim_draw(&chance, 4);
    options.scheduler = schedulers[sim_draw(&chance, 2)];
    options.on_log = on_log;
    strand_sim_report report = {.size = sizeof report};
    strand_sim way = {.size = sizeof way, .depth = STRAND_SIM_WALK, .max_steps = STEPS_MOST, .report = &report};
    way.shared_stacks = sim.shared;
    if (sim_one_in(&chance, 4)) /* by priorities, to one of several depths */
        way.depth = 1 + sim_draw(&chance, 5);
    options.sim = &way;
    struct sim_life *first = new_life(&chance, sim_workload.root, NULL, 0);
    sim.refuses = sim_workload.bears & SIM_NO_MEMORY && sim_one_in(&chance, 4);
    if (sim.refuses)
        way.memory = 8 << sim_draw(&chance, 6);
    sim.breaks = sim_workload.bears & SIM_BREAKS && sim_one_in(&chance, 4);
    if (sim.breaks) {
        way.resets = sim_draw(&chance, 4);
        way.silence = sim_draw(&chance, 4);
    }
    static const enum strand_out_of_work ways[] = {STRAND_OUT_OF_WORK_WAIT, STRAND_OUT_OF_WORK_THROW,
                                                   STRAND_OUT_OF_WORK_END};
    if (sim_workload.bears & SIM_OUT_OF_WORK)
        options.out_of_work = ways[sim_draw(&chance, 3)];
    sim.out_of_work = options.out_of_work;
    long before = blocks;
    void *result = strand_run(&options, root, first);
    if (uncaught && !sim_no_memory(uncaught))
        sim_unexpected(uncaught, "an exception has left the root strand");
    bool may_end = sim.out_of_work == STRAND_OUT_OF_WORK_END || sim_workload.bears & SIM_STOPPED;
    SIM_CHECK(uncaught || result == first || (may_end && !result));
    strand_exception_release(uncaught);
    check_lives();
    if (sim_workload.oracle)
        sim_workload.oracle();
    SIM_CHECK_EQ(blocks - before, 0);
    sim.hash = mixed(sim.hash ^ sim.observed ^ report.schedule);
    if (sim.runs % PASS_EVERY == 0)
        look_around();
}

static void throw_one(struct sim_life *me, void *arg)
{
    (void)me;
    strand_throw(&SIM_ERROR, "%p", arg);
}

static void *throw_and_catch(void *arg)
{
    strand_exception *e = sim_try(NULL, throw_one, arg);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    strand_exception_print(e, nowhere);
    close(nowhere);
    strand_exception_release(e);
    return NULL;
}

/* What the process keeps for ever is there before anything is counted: the libraries that unwind, and that find lines.
 */
static void warm_up(void)
{
    strand_options options = {.size = sizeof options, .has_seed = true, .threads = 4};
    for (int i = 0; i < 2; i++) /* what the loader keeps of a library that is missing is freed by the second */
        strand_run(&options, throw_and_catch, NULL);
}

/* ---- the command line ------------------------------------------------------------------------ */

struct range {
    uint64_t first, last;
};

STRAND_NORETURN static void usage(void)
{
    fprintf(stderr, "usage: %s [--hash] [--shared] {--seed N | --seeds A-B}...\n", sim.program);
    exit(2);
}

static uint64_t number(const char *text, char **end)
{
    if (*text < '0' || *text > '9')
        usage();
    return strtoull(text, end, text[1] == 'x' ? 16 : 10); /* as the library reads STRAND_SEED */
}

static struct range range_of(const char *option, const char *text)
{
    char *end;
    struct range range;
    range.first = range.last = number(text, &end);
    if (strcmp(option, "--seeds") == 0 && *end == '-')
        range.last = number(end + 1, &end);
    if (*end || range.last < range.first)
        usage();
    return range;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int options_of(char **argv, struct range *ranges, bool *hash)
{
    int count = 0;
    for (; *argv; argv++) {
        if (strcmp(*argv, "--hash") == 0)
            *hash = true;
        else if (strcmp(*argv, "--shared") == 0)
            sim.shared = true;
        else if ((strcmp(*argv, "--seed") == 0 || strcmp(*argv, "--seeds") == 0) && argv[1])
            ranges[count++] = range_of(argv[0], argv[1]), argv++;
        else
            usage();
    }
    return count;
}

int main(int argc, char **argv)
{
    struct range ranges[argc];
    bool hash = false;
    sim.program = argv[0];
    int count = options_of(argv + 1, ranges, &hash);
    if (count == 0)
        usage();
    sim.one = count == 1 && ranges[0].first == ranges[0].last;
    unsetenv("STRAND_SEED"); /* it would be every run's */
    setenv("STRAND_SIM_SILENT", "1", 1);
    warm_up();
    look_around();
    if (sim.one)
        unsetenv("STRAND_SIM_SILENT");
    watch_for_the_end();
    double start = seconds();
    for (int i = 0; i < count; i++)
        for (uint64_t seed = ranges[i].first;; seed++) {
            run(seed);
            if (seed == ranges[i].last)
                break;
        }
    look_around();
    double took = seconds() - start;
    printf("%s: %" PRIu64 " seeds, %.2f s, %.0f seeds/s", sim_workload.name, sim.runs, took, (double)sim.runs / took);
    if (hash)
        printf(", hash %016" PRIx64, sim.hash);
    putchar('\n');
    return 0;
}
