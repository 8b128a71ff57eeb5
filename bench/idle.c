/*
 * idle_cpu, idle_wakes: what a runtime of N threads costs that has had work and now has none, its only strand asleep
 * for longer than the measurement. A plain thread watches: CPU time of all others over 10 s, and how often they went to
 * sleep meanwhile, which is how often something woke them.
 */
#include "bench.h"

#include <dirent.h>
#include <pthread.h>
#include <strand/pool.h>
#include <unistd.h>

enum { WATCH_S = BENCH_LONG(10), SETTLE_S = 1 };

static int threads;

static void *work(void *arg)
{
    int64_t end = bench_now() + 2000000;
    while (bench_now() < end)
        ;
    return arg;
}

/* Work for every thread, then none, until well after the watcher is done. */
static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 16 * threads; i++)
        strand_spawn(scope, work, NULL);
    strand_scope_join(scope);
    strand_sleep((WATCH_S + 2 * SETTLE_S) * STRAND_S);
    return arg;
}

static void *runtime(void *arg)
{
    return strand_run(STRAND_OPTIONS(.threads = threads), root, arg);
}

/* Voluntary switches of all threads but the first, which is the watcher; *others: how many those are. */
static int64_t voluntary_switches(int *others)
{
    char path[sizeof "/proc/self/task//status" + 256];
    int64_t sum = 0;
    *others = 0;
    DIR *tasks = opendir("/proc/self/task");
    bench_check(tasks != NULL, "no /proc");
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        if (task->d_name[0] == '.' || strtol(task->d_name, NULL, 10) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        int64_t switches = bench_field(path, "voluntary_ctxt_switches:");
        bench_check(switches >= 0, "%s can't be read", path);
        sum += switches;
        ++*others;
    }
    closedir(tasks);
    return sum;
}

static int64_t cpu_of_others(void)
{
    return bench_cpu() - bench_clock(CLOCK_THREAD_CPUTIME_ID);
}

static void sleep_s(int seconds)
{
    struct timespec t = {.tv_sec = seconds};
    nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
    threads = (int)bench_argument(argc, argv, 8);
    pthread_t thread;
    bench_check(pthread_create(&thread, NULL, runtime, NULL) == 0, "no thread");
    sleep_s(SETTLE_S);
    int others;
    int64_t cpu = cpu_of_others();
    int64_t switches = voluntary_switches(&others);
    bench_check(others >= threads, "the runtime has %d threads only", others);
    sleep_s(WATCH_S);
    switches = voluntary_switches(&others) - switches;
    cpu = cpu_of_others() - cpu;
    pthread_join(thread, NULL);
    bench_sample("idle_cpu", "strand", threads, "ms", (double)cpu / 1e6);
    bench_sample("idle_wakes", "strand", threads, "wakes/s", (double)switches / WATCH_S);
    return 0;
}
