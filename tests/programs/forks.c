/*
 * A process with a run forks: where, and what the child does, is said by the argument, "FROM:WHAT". The parent says
 * what became of the child, and that its own run goes on. A child that hangs is ended by SIGALRM.
 */
#define _GNU_SOURCE
#include "strand.h"
#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/monitor.h"
#include "strand/pool.h"
#include "strand/port.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_S = 120 };

static const char *what;
static strand other; /* a strand of the parent's run */
static strand_chan chan;
static strand_port port;
static strand_pool driven; /* the case "driver" drives it */
static strand_mutex mutex;
STRAND_MONITOR(account, { int balance; });
static struct account account;

static bool is(const char *word)
{
    return strcmp(what, word) == 0;
}

/* In the parent false, when the child has ended; in the child true. */
static bool fork_here(void)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_S);
        return true;
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        perror("fork");
    else if (WIFSIGNALED(status))
        printf("child: signal %d\n", WTERMSIG(status));
    else
        printf("child: exit %d\n", WEXITSTATUS(status));
    return false;
}

/* ---- what the child does with a run of its own ------------------------------------------------ */

static void *add_one(void *number)
{
    ++*(_Atomic int *)number;
    strand_sleep(STRAND_MS);
    return number;
}

static void *spawn_ten(void *number)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, add_one, number);
    strand_scope_join(scope);
    return number;
}

static void *use_strand_of_parent(void *arg)
{
    strand_cancel(other, "from the child");
    return arg;
}

static strand_options options_for_child(void)
{
    strand_options options = {.size = sizeof options};
    if (is("run_own"))
        options.own_threads = true;
    if (is("run_four"))
        options.threads = 4;
    if (is("run_seed")) {
        options.has_seed = true;
        options.seed = 7;
    }
    return options;
}

static void run_in_child(void)
{
    static _Atomic int number;
    strand_options options = options_for_child();
    for (int i = 0; i < 3; i++)
        strand_run(&options, spawn_ten, &number);
    _exit(number == 30 ? 0 : 1);
}

/* ---- its other effects ------------------------------------------------------------------------- */

/* Signals do what they did before there was a run. */
static const int ours[] = {SIGSEGV, SIGBUS, SIGABRT, SIGUSR1};
static struct sigaction before[sizeof ours / sizeof *ours];

static void note_signals(void)
{
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        (void)sigaction(ours[i], NULL, &before[i]);
}

static void check_signals(void)
{
    struct sigaction action;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (sigaction(ours[i], NULL, &action) < 0 || action.sa_handler != before[i].sa_handler)
            _exit(ours[i]);
    _exit(0);
}

enum { DESCRIPTORS = 1024 };
static bool inherited[DESCRIPTORS];

static void note_descriptors(void)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        inherited[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* What others inherit is what this process has inherited. */
static void exec_true(void)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && !(flags & FD_CLOEXEC) && !inherited[fd])
            _exit(5);
    }
    execl("/bin/true", "true", (char *)NULL);
    _exit(99);
}

static void use_any_thread(void)
{
    long value = 1;
    if (strand_chan_post(chan, &value) != -EPIPE)
        _exit(1);
    if (strand_port_send(port, &value, sizeof value) != -EPIPE)
        _exit(4);
    if (driven.bits[1] && strand_pool_drive(driven, strand_in(STRAND_MS), 0) != 0)
        _exit(5);
    if (driven.bits[1] && strand_pool_fd(driven) != -ESHUTDOWN)
        _exit(6);
    if (strand_dump(2, NULL) != -ESRCH)
        _exit(2);
    if (strand_id(strand_self()) != 0 || strand_now().ns <= 0 || strand_unwinding())
        _exit(3);
    _exit(0);
}

static void throw_something(void)
{
    strand_throw(&STRAND_ERROR, "from the child");
}

static void spawn_something(void)
{
    STRAND_SCOPE(scope);
}

/* Other threads of the parent throw at that moment. */
static void fork_once_more(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    _exit(child > 0 && waitpid(child, &status, 0) == child ? status : 6);
}

static void print_at_exit(void)
{
    static const char text[] = "at exit\n";
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(98);
}

/* Returns if the child must continue in the function that called this. */
static void act(void)
{
    if (!strncmp(what, "run", 3) && !is("run_handle"))
        run_in_child();
    if (is("run_handle"))
        strand_run(NULL, use_strand_of_parent, NULL);
    if (is("yield"))
        strand_yield();
    if (is("throw"))
        throw_something();
    if (is("open"))
        spawn_something();
    if (is("cancel"))
        strand_cancel(other, NULL);
    if (is("signals"))
        check_signals();
    if (is("exec"))
        exec_true();
    if (is("any"))
        use_any_thread();
    if (is("fork"))
        fork_once_more();
    if (is("exit"))
        exit(3);
    if (is("_exit"))
        _exit(4);
}

static void fork_and_act(void)
{
    if (fork_here())
        act();
}

/* ---- where it forks ----------------------------------------------------------------------------- */

static void *fork_in_strand(void *arg)
{
    fork_and_act();
    return arg;
}

static void fork_in_blocks(void)
{
    static _Atomic int unused;
    static const strand_key key = STRAND_KEY("key");
    static strand_limit limit;
    strand_limit_init(&limit, 1, NULL);
    if (is("scope")) {
        STRAND_SCOPE(scope);
        fork_and_act();
        (void)scope;
    } else if (is("children")) {
        STRAND_SCOPE(scope);
        strand_cancel(strand_spawn(scope, add_one, &unused), NULL);
        fork_and_act();
    } else if (is("try")) {
        STRAND_TRY {
            fork_and_act();
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
        }
        STRAND_END
    } else if (is("shield")) {
        STRAND_SHIELD;
        fork_and_act();
    } else if (is("deadline")) {
        STRAND_DEADLINE(strand_in(3600 * STRAND_S));
        fork_and_act();
    } else if (is("section")) {
        STRAND_NO_SUSPEND;
        fork_and_act();
    } else if (is("local")) {
        STRAND_LOCAL(&key, &limit);
        fork_and_act();
    } else if (is("locked")) {
        STRAND_LOCKED(&mutex);
        fork_and_act();
    } else if (is("limit")) {
        STRAND_LIMIT_PERMIT(&limit);
        fork_and_act();
    } else if (is("monitor")) {
        STRAND_MONITOR_ENTER(account, in, &account);
        in->balance++;
        fork_and_act();
    } else if (is("watching")) {
        STRAND_SIGNALS(signals, SIGUSR1);
        fork_and_act();
        (void)signals;
    }
}

static void fork_when_dropped(void *element)
{
    (void)element;
    fork_and_act();
}

static void *throw_it(void *arg)
{
    strand_throw(&STRAND_ERROR, "%s", (const char *)arg);
}

static void fork_when_unwound(int *unused)
{
    (void)unused;
    fork_and_act();
}

static void *throw_through_a_fork(void *arg)
{
    int mark __attribute__((cleanup(fork_when_unwound))) = 0;
    (void)mark;
    return throw_it(arg);
}

static void *fork_plainly(void *arg)
{
    fork_and_act();
    return arg;
}

/* A handler that comes when the thread has nothing to do: the child returns from it into the scheduler. */
static void on_signal(int signal)
{
    (void)signal;
    fork_and_act();
}

struct idler {
    pthread_t thread;
    pid_t id;
};

/* Whether the system says that the thread sleeps. */
static bool is_idle(pid_t id)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)id);
    FILE *stat = fopen(path, "r");
    char *name_end = stat && fgets(line, sizeof line, stat) ? strrchr(line, ')') : NULL;
    if (stat)
        fclose(stat);
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

/* The thread gets the signal before the message. */
static void *send_signal(void *arg)
{
    const struct timespec nap = {.tv_nsec = 1000 * 1000};
    const struct idler *idler = arg;
    long message = 0;
    while (!is_idle(idler->id))
        nanosleep(&nap, NULL);
    pthread_kill(idler->thread, SIGUSR2);
    STRAND_IGNORE(strand_port_send(port, &message, sizeof message));
    return arg;
}

static void fork_in_handler(void)
{
    static struct idler me;
    pthread_t thread;
    long message;
    struct sigaction action = {.sa_handler = on_signal};
    me = (struct idler){pthread_self(), gettid()};
    sigaction(SIGUSR2, &action, NULL);
    if (pthread_create(&thread, NULL, send_signal, &me) == 0) {
        strand_port_receive(port, &message, sizeof message);
        pthread_join(thread, NULL);
    }
}

static _Atomic int handled;

static void on_signal_once(int signal)
{
    on_signal(signal);
    handled++;
}

static void *note_me(void *idler)
{
    *(struct idler *)idler = (struct idler){pthread_self(), gettid()};
    return idler;
}

/* A handler on a thread of a crew that waits for its next call, for as long as the crew lasts. */
static void fork_in_crew_handler(strand_scope scope)
{
    static struct idler its;
    struct sigaction action = {.sa_handler = on_signal_once};
    sigaction(SIGUSR2, &action, NULL);
    strand_offload_on(strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 1, .idle_ns = -1)), note_me, &its);
    while (!is_idle(its.id))
        strand_sleep(STRAND_MS);
    pthread_kill(its.thread, SIGUSR2);
    while (!handled)
        strand_sleep(STRAND_MS);
}

static void fork_when_freed(void *payload)
{
    (void)payload;
    fork_and_act();
}

static void *throw_payload(void *arg)
{
    strand_throw_with(&STRAND_ERROR, STRAND_THROW_INFO(.payload_free = fork_when_freed), "with a payload");
    return arg;
}

/* Between two calls of strand_pool_drive, with a strand that waits for the next. */
static void *fork_between(void *begun)
{
    while (!*(_Atomic bool *)begun)
        strand_pool_drive(driven, strand_in(STRAND_MS), 0);
    fork_and_act();
    while (strand_pool_drive(driven, strand_in(STRAND_MS), STRAND_DRIVE_WAIT))
        ;
    return begun;
}

static void *be_driven(void *begun)
{
    *(_Atomic bool *)begun = true;
    strand_yield();
    return begun;
}

static void fork_in_driver(void)
{
    static _Atomic bool begun;
    pthread_t thread;
    begun = false;
    {
        STRAND_SCOPE(scope);
        driven = strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = "current"));
        for (int i = 0; i < 2; i++)
            strand_spawn_with(scope, STRAND_ATTR(.pool = driven), be_driven, &begun, 0);
        if (pthread_create(&thread, NULL, fork_between, &begun) != 0)
            return;
        strand_scope_join(scope);
    }
    pthread_join(thread, NULL);
}

static void fork_from(const char *from, strand_scope scope)
{
    static strand_once once;
    pthread_t thread;
    if (strcmp(from, "root") == 0)
        fork_and_act();
    else if (strcmp(from, "child") == 0)
        strand_join(strand_spawn(scope, fork_in_strand, NULL));
    else if (strcmp(from, "guest") == 0)
        strand_join(
            strand_spawn_with(scope, STRAND_ATTR(.fibre = strand_fibre_open(scope, NULL)), fork_in_strand, NULL, 0));
    else if (strcmp(from, "block") == 0)
        fork_in_blocks();
    else if (strcmp(from, "offload") == 0)
        strand_offload(fork_plainly, NULL);
    else if (strcmp(from, "plain") == 0 && pthread_create(&thread, NULL, fork_plainly, NULL) == 0)
        pthread_join(thread, NULL);
    else if (strcmp(from, "played") == 0)
        strand_sim_thread(fork_plainly, NULL);
    else if (strcmp(from, "once") == 0)
        strand_once_run(&once, fork_plainly, NULL);
    else if (strcmp(from, "unwind") == 0)
        strand_exception_release(strand_try(throw_through_a_fork, "lost", NULL));
    else if (strcmp(from, "payload") == 0)
        strand_exception_release(strand_try(throw_payload, NULL, NULL));
    else if (strcmp(from, "handler") == 0)
        fork_in_handler();
    else if (strcmp(from, "crew") == 0)
        fork_in_crew_handler(scope);
    else if (strcmp(from, "driver") == 0)
        fork_in_driver();
    else if (strcmp(from, "result") == 0)
        strand_spawn_with(scope, STRAND_ATTR(.drop = fork_when_dropped), fork_plainly, NULL, 0);
}

static void *sleep_for_long(void *arg)
{
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static void *run(void *from)
{
    static const strand_chan_attr dropping = {.size = sizeof dropping, .drop = fork_when_dropped};
    {
        STRAND_SIGNALS(signals, SIGUSR1);
        STRAND_SCOPE(scope);
        (void)signals;
        long value = 1;
        port = strand_port_open(scope, sizeof value, 1, NULL);
        chan = strand_chan_open(scope, sizeof value, 1, strcmp(from, "dropped") == 0 ? &dropping : NULL);
        STRAND_IGNORE(strand_chan_send(chan, &value));
        other = strand_spawn(scope, sleep_for_long, NULL);
        strand_yield();
        fork_from(from, scope);
        strand_scope_cancel(scope, NULL);
    }
    static _Atomic int number;
    spawn_ten(&number);
    printf("parent: goes on %d\n", number);
    return from;
}

/* Threads that are in the middle of anything when this one forks. */
static _Atomic int enough;

static void *keep_busy(void *arg)
{
    while (!enough) {
        _Atomic int *number = calloc(1, sizeof *number);
        spawn_ten(number);
        free(number);
        strand_exception_release(strand_try(throw_it, "any", NULL));
    }
    return arg;
}

/* Each throw asks the loader, whose lock a child must not find taken. */
static void *keep_throwing(void *arg)
{
    for (int i = 0; !enough; i++) {
        STRAND_TRY {
            throw_it("any");
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            (void)e;
        }
        STRAND_END
        if (i % 100 == 99)
            strand_yield(); /* the one that forks is among the others */
    }
    return arg;
}

static void *fork_many_times(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++)
        strand_spawn(scope, keep_busy, NULL);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, keep_throwing, NULL);
    for (int i = 0; i < 40; i++) {
        fork_and_act();
        strand_sleep(100 * STRAND_US);
    }
    enough = 1;
    strand_scope_join(scope);
    puts("parent: goes on 10");
    return arg;
}

/* A thread forks while the strand holds what a fork handler of the program takes, and dumps. */
static pthread_mutex_t of_handlers = PTHREAD_MUTEX_INITIALIZER;

static void take_it(void)
{
    pthread_mutex_lock(&of_handlers);
}

static void give_it_back(void)
{
    pthread_mutex_unlock(&of_handlers);
}

static void *fork_beside(void *arg)
{
    for (int i = 0; i < 40; i++)
        fork_and_act();
    enough = 1;
    return arg;
}

static void *dump_under_the_lock(void *arg)
{
    pthread_t thread;
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    alarm(CHILD_S);
    if (pthread_create(&thread, NULL, fork_beside, NULL) != 0)
        return NULL;
    while (!enough) {
        take_it();
        STRAND_IGNORE(strand_dump(nowhere, NULL));
        give_it_back();
    }
    pthread_join(thread, NULL);
    close(nowhere);
    puts("parent: goes on 10");
    return arg;
}

/* A handler forks while its thread stands still for a dump, or runs. */
static void *yield_often(void *arg)
{
    while (!enough)
        strand_yield();
    return arg;
}

static void *dump_often(void *arg)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    while (!enough)
        STRAND_IGNORE(strand_dump(nowhere, NULL));
    close(nowhere);
    return arg;
}

static void *send_forty_signals(void *thread)
{
    const struct timespec nap = {.tv_nsec = 1000 * 1000};
    for (int sent = 0; sent < 40; sent++) {
        pthread_kill(*(pthread_t *)thread, SIGUSR2);
        while (handled == sent)
            nanosleep(&nap, NULL);
    }
    enough = 1;
    return thread;
}

static void *fork_during_dumps(void *arg)
{
    static pthread_t me;
    struct sigaction action = {.sa_handler = on_signal_once};
    pthread_t dumper, sender;
    me = pthread_self();
    sigaction(SIGUSR2, &action, NULL);
    if (pthread_create(&dumper, NULL, dump_often, NULL) != 0 ||
        pthread_create(&sender, NULL, send_forty_signals, &me) != 0)
        return NULL;
    yield_often(NULL);
    pthread_join(dumper, NULL);
    pthread_join(sender, NULL);
    puts("parent: goes on 10");
    return arg;
}

static void tell(const strand_misuse *misuse, void *arg)
{
    (void)arg;
    dprintf(STDOUT_FILENO, "hook: %s; %s\n", misuse->function, misuse->made);
}

int main(int argc, char **argv)
{
    char from[32] = "";
    const char *colon = argc > 1 ? strchr(argv[1], ':') : NULL;
    if (!colon)
        return 2;
    snprintf(from, sizeof from, "%.*s", (int)(colon - argv[1]), argv[1]);
    what = colon + 1;
    atexit(print_at_exit);
    note_descriptors();
    note_signals();
    strand_options options = {.size = sizeof options, .on_misuse = tell};
    if (strcmp(from, "after") == 0) {
        static _Atomic int number;
        strand_run(&options, spawn_ten, &number);
        fork_and_act();
        puts("parent: goes on 10");
        return 0;
    }
    if (strcmp(from, "busy") == 0) {
        options.threads = 4;
        strand_run(&options, fork_many_times, NULL);
        return 0;
    }
    if (strcmp(from, "dump") == 0) {
        pthread_atfork(take_it, give_it_back, give_it_back);
        strand_run(&options, dump_under_the_lock, NULL);
        return 0;
    }
    if (strcmp(from, "dumps") == 0) {
        strand_run(&options, fork_during_dumps, NULL);
        return 0;
    }
    bool seeded = strncmp(from, "seed_", 5) == 0;
    options.has_seed = seeded;
    strand_run(&options, run, seeded ? from + 5 : from);
    return 0;
}
