/*
 * The floor of the latency rows: the same schedule on a bare epoll loop with one timer descriptor.
 */
#include "latency.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static struct latency load;

static void arm(int timer, int64_t at)
{
    struct itimerspec when = {.it_value = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000}};
    bench_check(timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) == 0, "the timer can't be set");
}

int main(int argc, char **argv)
{
    int epoll = epoll_create1(0);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN};
    bench_check(epoll >= 0 && timer >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) == 0, "no poller");
    latency_schedule(&load, bench_argument(argc, argv, 50));
    for (long i = 0; i < LATENCY_EVENTS;) {
        uint64_t expirations;
        arm(timer, load.due[i]);
        bench_check(epoll_wait(epoll, &event, 1, -1) == 1, "nothing happened");
        bench_check(read(timer, &expirations, sizeof expirations) == sizeof expirations, "the timer did not expire");
        for (; i < LATENCY_EVENTS && load.due[i] <= bench_now(); i++)
            latency_serve(&load, i);
    }
    latency_report(&load, "floor");
    return 0;
}
