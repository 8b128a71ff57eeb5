/*
 * The runner of `make fault`. For each run of each workload it first counts the calls without a fault. Then it makes
 * each call fail with each of its errors, once, and again for good from that call on. Each such point runs in a process
 * of its own. The workload either succeeds, or throws an exception with that error code, as calls.def says. Afterwards
 * no object is live that a run without a fault would not leave; the process has its descriptors, threads, handlers and
 * masks of before; and the workload succeeds once more. Only if memory is refused for good, the library may end the
 * program instead, with a message.
 *
 *     fault [OPTION...] [WORKLOAD...] many calls of one function: only some fail, see share
 *       --all all calls fail
 *       --short fewer calls, and one run of each workload
 *       --first stops at the first failed point
 *       --verbose prints what the workload reported
 *     fault --point WORKLOAD/RUN/PART/ERROR/N/once   one point in this process, for the debugger; or .../forever
 */
#include "fault.h"

#include "strand/io.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 90, JOBS_MOST = 64, FAILED_MOST = 20, TEXT_MOST = 400, SIGNALS = 64 };
static const char *const run_names[] = {"seeded", "alone", "pair"};
enum { RUNS = 3 };

/* How many of the calls of one function are made to fail: so many first ones, last ones, and others between. */
struct share {
    long first, last, between;
};
static struct share share = {100, 10, 40};
static bool brief, first_only, verbose;

char fault_done[1];
static struct workload *workloads;

void fault_register(struct workload *workload)
{
    struct workload **at = &workloads;
    while (*at && strcmp((*at)->name, workload->name) < 0)
        at = &(*at)->next;
    workload->next = *at;
    *at = workload;
}

/* ---- one point, in a process of its own ------------------------------------------------------------------ */

enum outcome { OUTCOME_NONE, OUTCOME_DONE, OUTCOME_TOLD, OUTCOME_ENDED, OUTCOME_WRONG };

struct point {
    const struct workload *workload;
    int run; /* of run_names */
    struct plan plan;
    const struct failure *failure; /* NULL: nothing fails */
};

/* In memory that the runner sees. */
struct result {
    enum outcome outcome;
    long hits, seen[PARTS], live[KINDS];
    int opened; /* descriptors that libunwind keeps, too */
    char told[TEXT_MOST];
};

void fault_wrong(const char *file, int line, const char *what)
{
    char text[TEXT_MOST];
    int length = snprintf(text, sizeof text, "%s:%d: does not hold: %s\n", file, line, what);
    if (write(2, text, (size_t)length) < 0)
        _exit(4);
    _exit(3);
}

__attribute__((noreturn, format(printf, 1, 2))) static void wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    fflush(NULL);
    _exit(3);
}

void fault_close_fd(int *fd)
{
    if (*fd >= 0)
        (void)strand_close(*fd);
    *fd = -1;
}

static int entries_of(const char *folder)
{
    int count = 0;
    DIR *all = opendir(folder);
    FAULT_CHECK(all != NULL);
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

struct process {
    int descriptors;
    sigset_t mask;
    stack_t stack;
    struct sigaction actions[SIGNALS];
};

static void look(struct process *process)
{
    memset(process, 0, sizeof *process);
    process->descriptors = entries_of("/proc/self/fd");
    pthread_sigmask(SIG_SETMASK, NULL, &process->mask);
    sigaltstack(NULL, &process->stack);
    for (int signal = 1; signal <= SIGNALS; signal++)
        (void)sigaction(signal, NULL, &process->actions[signal - 1]);
}

/* Threads of the kernel that make calls for io_uring stay until nothing refers to their ring, which can't be unmapped
 * where munmap fails. */
static bool is_the_kernels(const char *id)
{
    char path[64], name[9] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", id);
    FILE *comm = fopen(path, "re");
    if (comm && !fgets(name, sizeof name, comm))
        name[0] = '\0';
    if (comm)
        fclose(comm);
    return strcmp(name, "iou-wrk-") == 0;
}

static int count_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.' && !is_the_kernels(entry->d_name);
    closedir(tasks);
    return count;
}

/* A thread that was joined may be on its way out for a moment. */
static int threads(void)
{
    int count = 0;
    for (int tries = 0; tries < 60000 && (count = count_threads()) > 1; tries++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return count;
}

/* Whatever stays with the process from its first run on is in base. */
static void compare(const struct point *point, const struct process *before, const struct result *base, long hits)
{
    static const struct result none = {.live = {[KIND_BLOCK] = 100, [KIND_MAPPING] = 100, [KIND_FOREIGN] = LONG_MAX},
                                       .opened = 100};
    struct process now;
    if (!base)
        base = &none;
    bool keeps = point->failure && point->failure->keeps, handlers = point->plan.part != PART_sigaction;
    for (int kind = 0; kind < KINDS; kind++) {
        long may = base->live[kind] + (keeps ? hits : 0);
        if (fault_live((enum kind)kind) > may) {
            fault_print_live();
            wrong("%ld %s are left, not %ld", fault_live((enum kind)kind), fault_kinds[kind], may);
        }
    }
    if (fault_strange)
        wrong("the library has given back %ld times what it had not taken", (long)fault_strange);
    if (threads() != 1)
        wrong("%d threads are left", threads());
    look(&now);
    if (now.descriptors > before->descriptors + base->opened)
        wrong("%d descriptors are left, not %d", now.descriptors - before->descriptors, base->opened);
    if (memcmp(&now.mask, &before->mask, sizeof now.mask) != 0)
        wrong("the signal mask has changed");
    if (!keeps && (now.stack.ss_sp != before->stack.ss_sp || now.stack.ss_flags != before->stack.ss_flags))
        wrong("the signal stack has changed");
    for (int i = 0; i < SIGNALS && handlers; i++)
        if (now.actions[i].sa_handler != before->actions[i].sa_handler)
            wrong("the handler of signal %d has changed", i + 1);
}

static bool tells(const strand_exception *e, int code)
{
    if (!e)
        return false;
    if (strand_exception_is(e, &STRAND_ERROR) && (code ? strand_exception_code(e) == code : strand_exception_code(e)))
        return strchr(strand_exception_text(e), ' ') != NULL;
    if (tells(strand_exception_cause(e), code))
        return true;
    const strand_exception *other;
    for (size_t i = 0; (other = strand_exception_suppressed(e, i)); i++)
        if (tells(other, code))
            return true;
    return false;
}

/* The workload once; returns what left it, which the caller owns. */
static strand_exception *run_once(const struct point *point)
{
    strand_exception *e = NULL;
    strand_options options = point->workload->options;
    options.uncaught = &e;
    options.has_seed = strcmp(run_names[point->run], "seeded") == 0;
    options.seed = 1;
    options.threads = strcmp(run_names[point->run], "alone") == 0 ? 1 : 2;
    void *result = strand_run(&options, point->workload->root, NULL);
    if (point->workload->settle)
        point->workload->settle();
    if (!e && result != FAULT_DONE)
        wrong("the workload has not come to its end, and nobody says why");
    return e;
}

static void judge(const struct point *point, const strand_exception *e, long hits)
{
    if (!e && hits && point->failure->must == MUST_TELL)
        wrong("the workload should report an error, and did not");
    if (!e)
        return;
    strand_exception_print(e, 2);
    if (!hits || !tells(e, -point->failure->code))
        wrong("this exception does not tell of the error");
    if (point->failure->must == MUST_PASS)
        wrong("the workload should not report this error");
}

static void execute(const struct point *point, const struct result *base, struct result *result)
{
    struct process before;
    if (point->workload->variable)
        setenv(point->workload->variable, point->workload->value, 1);
    setenv("STRAND_SIM_SILENT", "1", 1);
    signal(SIGPIPE, SIG_DFL);
    look(&before);
    fault_arm(&point->plan);
    strand_exception *e = run_once(point);
    fault_disarm();
    result->hits = fault_hits;
    judge(point, e, result->hits);
    if (e)
        snprintf(result->told, sizeof result->told, "%s", strand_exception_text(e));
    enum outcome outcome = e ? OUTCOME_TOLD : OUTCOME_DONE;
    strand_exception_release(e);
    for (int part = 0; part < PARTS; part++)
        result->seen[part] = fault_seen[part];
    for (int kind = 0; kind < KINDS; kind++)
        result->live[kind] = fault_live((enum kind)kind);
    struct process after;
    look(&after);
    result->opened = after.descriptors - before.descriptors;
    compare(point, &before, base, result->hits);
    if ((e = run_once(point))) {
        strand_exception_print(e, 2);
        wrong("the run after it, in which nothing failed, has failed");
    }
    compare(point, &before, base ? base : result, result->hits);
    result->outcome = outcome;
}

/* ---- many points at a time ------------------------------------------------------------------------------- */

struct tally {
    long points, all, outcomes[OUTCOME_WRONG + 1], missed;
};

static struct job {
    pid_t pid; /* 0: free */
    struct point point;
    struct result *result;
    FILE *out;
} jobs[JOBS_MOST];
static int jobs_count;
static struct tally of_run, of_part[PARTS];
static bool reached_by[PARTS];
static long failed;

static bool is_enough(void)
{
    return first_only && failed;
}

static void describe(char *text, size_t size, const struct point *point)
{
    const struct call *call = point->failure ? &fault_calls[point->plan.part] : NULL;
    snprintf(text, size, "%s/%s/%s/%s/%ld/%s", point->workload->name, run_names[point->run], call ? call->part : "-",
             call ? point->failure->name : "-", point->plan.at, point->plan.forever ? "forever" : "once");
}

/* The documented end: no memory, from a call on, and none for an exception. */
static bool has_ended(const struct job *job, int status, const char *text)
{
    enum part part = job->point.plan.part;
    bool memory = part == PART_malloc || part == PART_calloc || part == PART_aligned_alloc || part == PART_realloc;
    return memory && job->point.plan.forever && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
           strstr(text, "libstrand: no memory, not even for an exception; the program ends");
}

static void say_failed(const struct job *job, int status, const char *text)
{
    char name[TEXT_MOST];
    describe(name, sizeof name, &job->point);
    if (failed++ >= FAILED_MOST)
        return;
    printf("FAILED fault --point %s\n", name);
    if (WIFSIGNALED(status))
        printf("    ended by %s%s\n", strsignal(WTERMSIG(status)),
               WTERMSIG(status) == SIGALRM ? ": it does not come to an end" : "");
    printf("    %s\n", text);
    fflush(stdout);
}

static void finish(struct job *job, int status)
{
    static char text[8192];
    rewind(job->out);
    size_t length = fread(text, 1, sizeof text - 1, job->out);
    text[length] = '\0';
    enum outcome outcome = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? job->result->outcome : OUTCOME_WRONG;
    if (has_ended(job, status, text))
        outcome = OUTCOME_ENDED;
    if (outcome == OUTCOME_NONE)
        outcome = OUTCOME_WRONG;
    if (outcome == OUTCOME_WRONG)
        say_failed(job, status, text);
    bool missed = outcome == OUTCOME_DONE && !job->result->hits;
    struct tally *tallies[] = {&of_run, job->point.failure ? &of_part[job->point.plan.part] : NULL};
    for (int i = 0; i < 2 && tallies[i] && job->point.failure; i++) {
        tallies[i]->points++;
        tallies[i]->missed += missed;
        tallies[i]->outcomes[outcome] += !missed;
    }
    if (verbose && outcome == OUTCOME_TOLD) {
        char name[TEXT_MOST];
        describe(name, sizeof name, &job->point);
        printf("    %s: %s\n", name, job->result->told);
    }
    job->pid = 0;
}

static void reap(void)
{
    int status;
    pid_t pid = wait(&status);
    FAULT_CHECK(pid > 0);
    for (int i = 0; i < jobs_count; i++)
        if (jobs[i].pid == pid)
            finish(&jobs[i], status);
}

static void reap_all(void)
{
    for (int i = 0; i < jobs_count; i++)
        while (jobs[i].pid)
            reap();
}

static struct job *free_job(void)
{
    for (;;) {
        for (int i = 0; i < jobs_count; i++)
            if (!jobs[i].pid)
                return &jobs[i];
        reap();
    }
}

static struct job *start(const struct point *point, const struct result *base)
{
    struct job *job = free_job();
    job->point = *point;
    memset(job->result, 0, sizeof *job->result);
    FAULT_CHECK(ftruncate(fileno(job->out), 0) == 0);
    rewind(job->out);
    fflush(NULL);
    job->pid = fork();
    FAULT_CHECK(job->pid >= 0);
    if (job->pid == 0) {
        alarm(LIMIT_S);
        dup2(fileno(job->out), 2);
        execute(point, base, job->result);
        _exit(0);
    }
    return job;
}

static void open_jobs(void)
{
    const char *asked = getenv("JOBS");
    jobs_count = asked ? atoi(asked) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    jobs_count = jobs_count < 1 ? 1 : jobs_count > JOBS_MOST ? JOBS_MOST : jobs_count;
    for (int i = 0; i < jobs_count; i++) {
        jobs[i].result = mmap(NULL, sizeof *jobs[i].result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        jobs[i].out = tmpfile();
        FAULT_CHECK(jobs[i].result != MAP_FAILED && jobs[i].out);
    }
}

/* ---- all points ------------------------------------------------------------------------------------------ */

/* What a run without a fault does and leaves; on several threads the most of some. */
static bool count_calls(const struct workload *workload, int run, struct result *base)
{
    enum { COUNTS = 3 };
    const struct point point = {.workload = workload, .run = run, .plan.part = PARTS};
    memset(base, 0, sizeof *base);
    for (int i = 0; i < COUNTS; i++) {
        long before = failed;
        struct job *job = start(&point, NULL);
        reap_all();
        if (failed > before)
            return false;
        for (int part = 0; part < PARTS; part++)
            base->seen[part] = job->result->seen[part] > base->seen[part] ? job->result->seen[part] : base->seen[part];
        base->opened = job->result->opened > base->opened ? job->result->opened : base->opened;
        for (int kind = 0; kind < KINDS; kind++)
            base->live[kind] = job->result->live[kind] > base->live[kind] ? job->result->live[kind] : base->live[kind];
    }
    return true;
}

static bool is_chosen(long at, long count)
{
    if (at <= share.first)
        return true;
    long between = count - share.first - share.last;
    return at > count - share.last || between <= share.between ||
           (at - share.first) * share.between / between != (at - share.first - 1) * share.between / between;
}

static void try_failure(struct point point, const struct result *base)
{
    long count = base->seen[point.plan.part];
    point.plan.error = point.failure->error;
    for (int forever = 0; forever < 2 - point.failure->once; forever++) {
        point.plan.forever = forever;
        of_run.all += count;
        of_part[point.plan.part].all += count;
        for (long at = 1; at <= count && !is_enough(); at++) {
            point.plan.at = at;
            if (is_chosen(at, count))
                start(&point, base);
        }
    }
}

static void try_workload(const struct workload *workload, int run)
{
    struct result base;
    time_t begin = time(NULL);
    memset(&of_run, 0, sizeof of_run);
    if (workload->prepare)
        workload->prepare();
    if (!count_calls(workload, run, &base))
        return;
    for (int part = 0; part < PARTS; part++) {
        if (brief && workload->of && strncmp(fault_calls[part].part, workload->of, strlen(workload->of)) != 0)
            continue;
        struct point point = {.workload = workload, .run = run, .plan.part = (enum part)part};
        reached_by[part] |= base.seen[part] > 0;
        for (int i = 0; i < FAILURES_MOST && fault_calls[part].failures[i].name; i++) {
            point.failure = &fault_calls[part].failures[i];
            try_failure(point, &base);
        }
    }
    reap_all();
    printf("%-6s %-10s %-7s %6ld points of %7ld: %5ld told, %5ld passed, %4ld ended, %4ld not reached, %ld failed, "
           "%ld s\n",
           of_run.outcomes[OUTCOME_WRONG] ? "FAILED" : "ok", workload->name, run_names[run], of_run.points, of_run.all,
           of_run.outcomes[OUTCOME_TOLD], of_run.outcomes[OUTCOME_DONE], of_run.outcomes[OUTCOME_ENDED], of_run.missed,
           of_run.outcomes[OUTCOME_WRONG], (long)(time(NULL) - begin));
    fflush(stdout);
}

/* In the short form one of its runs for each workload, the number-th: not of all the same. */
static bool is_run(const struct workload *workload, int run, unsigned number)
{
    unsigned runs = (unsigned)__builtin_popcount(workload->runs);
    unsigned before = (unsigned)__builtin_popcount(workload->runs & ((1U << run) - 1));
    return workload->runs & 1U << run && (!brief || before == number % runs);
}

/* A line for each call; one that nobody reaches has failed. */
static void sum_up(bool all)
{
    for (int part = 0; part < PARTS; part++) {
        const struct tally *t = &of_part[part];
        bool reached = reached_by[part];
        if (!reached && all)
            failed++;
        if (!reached && !all)
            continue;
        printf("%-6s %-22s %6ld points of %7ld: %5ld told, %5ld passed, %4ld ended, %4ld not reached%s\n",
               (!reached && all) || t->outcomes[OUTCOME_WRONG] ? "FAILED" : "ok", fault_calls[part].part, t->points,
               t->all, t->outcomes[OUTCOME_TOLD], t->outcomes[OUTCOME_DONE], t->outcomes[OUTCOME_ENDED], t->missed,
               reached ? "" : "; no workload calls it");
    }
}

/* ---- what is asked for ----------------------------------------------------------------------------------- */

static const struct workload *find_workload(const char *name)
{
    const struct workload *workload = workloads;
    while (workload && strcmp(workload->name, name) != 0)
        workload = workload->next;
    if (!workload) {
        fprintf(stderr, "fault: there is no workload '%s'\n", name);
        exit(2);
    }
    return workload;
}

static int one_point(const char *text)
{
    char workload[64], run[64], part[64], error[64], how[64];
    struct point point = {.plan.part = PARTS};
    struct result result = {0};
    if (sscanf(text, "%63[^/]/%63[^/]/%63[^/]/%63[^/]/%ld/%63s", workload, run, part, error, &point.plan.at, how) != 6)
        return 2;
    point.workload = find_workload(workload);
    while (point.run < RUNS - 1 && strcmp(run_names[point.run], run) != 0)
        point.run++;
    for (int i = 0; i < PARTS; i++)
        for (int n = 0; n < FAILURES_MOST && strcmp(fault_calls[i].part, part) == 0; n++)
            if (fault_calls[i].failures[n].name && strcmp(fault_calls[i].failures[n].name, error) == 0) {
                point.plan.part = (enum part)i;
                point.failure = &fault_calls[i].failures[n];
                point.plan.error = point.failure->error;
            }
    point.plan.forever = strcmp(how, "forever") == 0;
    if (point.workload->prepare)
        point.workload->prepare();
    execute(&point, NULL, &result);
    fault_print_live();
    printf("%s, %ld calls were made to fail\n", result.outcome == OUTCOME_TOLD ? result.told : "done", result.hits);
    return 0;
}

int main(int argc, char **argv)
{
    int chosen = 0;
    setenv("STRAND_LINES", "none", 1); /* libdw takes memory of its own, some of which the library gives back */
    if (argc == 3 && strcmp(argv[1], "--point") == 0)
        return one_point(argv[2]);
    open_jobs();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--short") == 0) {
            brief = true;
            share = (struct share){4, 1, 2};
        } else if (strcmp(argv[i], "--all") == 0) {
            share.first = LONG_MAX;
        } else if (strcmp(argv[i], "--first") == 0) {
            first_only = true;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else {
            find_workload(argv[i]);
            chosen++;
        }
    }
    time_t begin = time(NULL);
    unsigned number = 0;
    for (const struct workload *workload = workloads; workload; workload = workload->next) {
        bool wanted = !chosen;
        for (int i = 1; i < argc; i++)
            wanted |= strcmp(argv[i], workload->name) == 0;
        for (int run = 0; wanted && run < RUNS; run++)
            if (is_run(workload, run, number) && !is_enough())
                try_workload(workload, run);
        number++;
    }
    sum_up(!chosen && !is_enough());
    long points = 0;
    for (int part = 0; part < PARTS; part++)
        points += of_part[part].points;
    printf("fault: %ld points, %ld failed, %ld s\n", points, failed, (long)(time(NULL) - begin));
    return failed != 0;
}
