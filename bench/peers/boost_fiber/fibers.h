/*
 * The configuration of the Boost.Fiber programs. A child is launched by dispatch: it runs at once, and its parent's
 * continuation is queued. Several threads take the scheduler work_stealing, which runs the newest fiber first, and
 * stacks of malloc, as a pool of stacks belongs to one thread. One thread takes a pool of stacks, and the scheduler
 * round_robin or, for trees, newest_first: with round_robin a tree keeps a hundred thousand fibers alive and takes ten
 * times as long. Idle threads of work_stealing sleep, except in trees, where work is never far away.
 */
#ifndef PEER_FIBERS_H
#define PEER_FIBERS_H

#include "../../bench.h"

#include <boost/fiber/all.hpp>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace fibers = boost::fibers;

enum { FIBERS_STACK = 16384 };

/* The stacks of the process. */
struct fibers_stacks {
    fibers::pooled_fixedsize_stack pooled{FIBERS_STACK};
    fibers::fixedsize_stack allocated{FIBERS_STACK};
    bool shared = false; /* several threads take them */
};

static inline fibers_stacks &fibers_configuration()
{
    static fibers_stacks stacks;
    return stacks;
}

template <class F> static inline fibers::fiber fibers_spawn(fibers::launch launch, F &&function)
{
    fibers_stacks &stacks = fibers_configuration();
    if (stacks.shared)
        return fibers::fiber(launch, std::allocator_arg, stacks.allocated, std::forward<F>(function));
    return fibers::fiber(launch, std::allocator_arg, stacks.pooled, std::forward<F>(function));
}

/*
 * A scheduler of one thread; Boost's work_stealing does not work with one thread. Boost's dispatcher, which frees the
 * stacks of ended fibers, is a fiber too. It gets its turn once in a while.
 */
class newest_first : public fibers::algo::algorithm {
    enum { FREE_EVERY = 64 };
    fibers::scheduler::ready_queue_type ready;
    fibers::context *dispatcher = nullptr;
    unsigned picks = 0;

  public:
    void awakened(fibers::context *fiber) noexcept override
    {
        if (fiber->is_context(fibers::type::dispatcher_context))
            dispatcher = fiber;
        else
            fiber->ready_link(ready);
    }
    fibers::context *pick_next() noexcept override
    {
        if (dispatcher != nullptr && (ready.empty() || ++picks % FREE_EVERY == 0))
            return std::exchange(dispatcher, nullptr);
        if (ready.empty())
            return nullptr;
        fibers::context *fiber = &ready.back();
        ready.pop_back();
        return fiber;
    }
    bool has_ready_fibers() const noexcept override
    {
        return dispatcher != nullptr || !ready.empty();
    }
    /* A row that runs out of ready fibers would end here; none of those that take this scheduler does. */
    void suspend_until(const std::chrono::steady_clock::time_point &) noexcept override
    {
        std::this_thread::yield();
    }
    void notify() noexcept override {}
};

enum fibers_order { FIBERS_ROUND_ROBIN, FIBERS_NEWEST_FIRST };

/* Runs a function as the main fiber of the first of so many threads, all of which steal from each other. */
template <class F> static inline void fibers_run(int threads, fibers_order order, const F &function)
{
    if (threads == 1) {
        if (order == FIBERS_NEWEST_FIRST)
            fibers::use_scheduling_algorithm<newest_first>();
        function();
        return;
    }
    fibers_configuration().shared = true;
    bool idle_sleep = order != FIBERS_NEWEST_FIRST;
    fibers::mutex mutex;
    fibers::condition_variable_any over;
    bool done = false;
    std::vector<std::thread> others;
    for (int i = 1; i < threads; i++)
        others.emplace_back([&, threads, idle_sleep] {
            fibers::use_scheduling_algorithm<fibers::algo::work_stealing>((uint32_t)threads, idle_sleep);
            std::unique_lock<fibers::mutex> lock(mutex);
            over.wait(lock, [&] { return done; });
        });
    fibers::use_scheduling_algorithm<fibers::algo::work_stealing>((uint32_t)threads, idle_sleep);
    function();
    {
        std::unique_lock<fibers::mutex> lock(mutex);
        done = true;
    }
    over.notify_all();
    for (std::thread &other : others)
        other.join();
}

#endif
