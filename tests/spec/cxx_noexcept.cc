/*
 * Operations in noexcept functions, which destructors are, of a strand that is cancelled: no exception gets out of such
 * a function, so an interruption waits until it has returned.
 */
#define SUITE cxx_noexcept

#include <atomic>
#include <cerrno>
#include <csignal>
#include <exception>
#include <initializer_list>
#include <string>
#include <unistd.h>

#include "cxx.h"
#include "strand/chan.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/pool.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

namespace {

/* What the operations wait for. */
struct World {
    strand_scope scope;
    strand_chan channel;
    strand_port port;
    strand sibling;
    strand_mutex mutex, inner;
    strand_condition condition;
    strand_event event, end, cancelled;
    strand_semaphore semaphore;
    strand_limit limit;
    strand_barrier barrier;
    strand_rwlock rwlock;
    strand_time due;
    int pipe[2];
    bool signalled;
};
World world;
std::atomic<bool> released; /* what is offloaded */

void nothing() {}

/* A way to block, what ends the wait, and what makes it one. */
struct Way {
    const char *name;
    void (*block)();
    void (*let_go)();
    void (*take)() = nothing;
};

void *await_the_end(void *arg)
{
    strand_event_wait(&world.end);
    return arg;
}

void end_it()
{
    strand_event_set(&world.end);
}

const Way ways[] = {
    {"sleep",
     [] {
         strand_sleep_until(world.due);
         CHECK(strand_now().ns >= world.due.ns);
     },
     nothing},
    {"receive",
     [] {
         long value;
         CHECK_EQ(strand_chan_receive(world.channel, &value), 0);
         CHECK_EQ(value, 7);
     },
     [] {
         long value = 7;
         CHECK_EQ(strand_chan_send(world.channel, &value), 0);
     }},
    {"send",
     [] {
         long value = 7;
         CHECK_EQ(strand_chan_send(world.channel, &value), 0);
     },
     [] {
         long value;
         CHECK_EQ(strand_chan_receive(world.channel, &value), 0);
         CHECK_EQ(value, 7);
     }},
    {"select",
     [] {
         long value = 0;
         strand_case cases[] = {strand_on_receive(world.channel, &value), strand_on_event(&world.event)};
         CHECK_EQ(strand_select(cases, 2, 0), 0);
         CHECK_EQ(value, 7);
     },
     [] {
         long value = 7;
         CHECK_EQ(strand_chan_send(world.channel, &value), 0);
     }},
    {"port",
     [] {
         long value = 0;
         CHECK_EQ(strand_port_receive(world.port, &value, sizeof value), sizeof value);
     },
     [] {
         long value = 7;
         CHECK_EQ(strand_port_send(world.port, &value, sizeof value), 0);
     }},
    {"mutex",
     [] {
         strand_mutex_lock(&world.mutex);
         strand_mutex_unlock(&world.mutex);
     },
     [] { strand_mutex_unlock(&world.mutex); }, [] { strand_mutex_lock(&world.mutex); }},
    {"condition",
     [] {
         STRAND_LOCKED(&world.inner);
         while (!world.signalled)
             strand_condition_wait(&world.condition, &world.inner);
     },
     [] {
         STRAND_LOCKED(&world.inner);
         world.signalled = true;
         strand_condition_signal(&world.condition);
     }},
    {"event",
     [] {
         strand_event_wait(&world.event);
         CHECK(strand_event_is_set(&world.event));
     },
     [] { strand_event_set(&world.event); }},
    {"semaphore", [] { strand_semaphore_acquire(&world.semaphore); },
     [] { strand_semaphore_release(&world.semaphore); }},
    {"limit",
     [] {
         strand_limit_acquire(&world.limit);
         strand_limit_release(&world.limit);
     },
     [] { strand_limit_release(&world.limit); }, [] { strand_limit_acquire(&world.limit); }},
    {"read-write lock",
     [] {
         strand_rwlock_read(&world.rwlock);
         strand_rwlock_read_done(&world.rwlock);
     },
     [] { strand_rwlock_write_done(&world.rwlock); }, [] { strand_rwlock_write(&world.rwlock); }},
    {"barrier", [] { strand_barrier_wait(&world.barrier); }, [] { strand_barrier_wait(&world.barrier); }},
    {"wait",
     [] {
         strand_wait(world.sibling);
         CHECK(strand_ended(world.sibling));
     },
     end_it},
    {"join",
     [] {
         STRAND_SCOPE(scope);
         CHECK_PTR(strand_join(strand_spawn(scope, await_the_end, TEST_PTR(3))), TEST_PTR(3));
     },
     end_it},
    {"scope",
     [] {
         STRAND_SCOPE(scope);
         strand_spawn(scope, await_the_end, nullptr);
         strand_scope_join(scope);
     },
     end_it},
};

/* What is outside of the run: those are not waited for in seeded runs, whose time is virtual. */
const Way ways_outside[] = {
    {"read",
     [] {
         char byte = 0;
         CHECK_EQ(strand_read(world.pipe[0], &byte, 1), 1);
     },
     [] { CHECK_EQ(strand_write(world.pipe[1], "x", 1), 1); }},
    {"offload",
     [] {
         void *result = strand_offload(
             [](void *arg) -> void * {
                 while (!released)
                     usleep(1000);
                 return arg;
             },
             TEST_PTR(5));
         CHECK_PTR(result, TEST_PTR(5));
     },
     [] { released = true; }, [] { released = false; }},
};

/* ---- on a normal way out --------------------------------------------------------------------- */

struct Closer {
    const Way &way;
    explicit Closer(const Way &w) : way(w) {}
    Closer(const Closer &) = delete;
    Closer &operator=(const Closer &) = delete;
    ~Closer()
    {
        test_log("closes");
        way.block();
        test_log("closed");
    }
};

void *close_in_order(void *way)
{
    {
        Closer closer(*static_cast<const Way *>(way));
    }
    try {
        strand_event_wait(&world.cancelled); /* a sleep may be over before the cancel */
        strand_checkpoint();
        test_log("never");
    } catch (...) {
        test_log("interrupted");
    }
    return way;
}

void prepare()
{
    world.mutex = world.inner = {};
    world.condition = {};
    world.event = world.end = world.cancelled = {};
    world.semaphore = STRAND_SEMAPHORE_INIT(0);
    world.barrier = STRAND_BARRIER_INIT(2);
    world.rwlock = {};
    world.signalled = false;
    strand_limit_init(&world.limit, 1, nullptr);
}

/* The strand is cancelled before its destructor blocks, or while it waits there. */
void close_cancelled(const Way &way, bool waits)
{
    STRAND_SCOPE(scope);
    prepare();
    way.take();
    world.channel = strand_chan_open(scope, sizeof(long), 0, nullptr);
    world.port = strand_port_open(scope, sizeof(long), 1, nullptr);
    world.sibling = strand_spawn(scope, await_the_end, nullptr);
    world.due = strand_in(20 * STRAND_MS);
    strand child = strand_spawn(scope, close_in_order, const_cast<Way *>(&way));
    if (waits)
        strand_wait_quiet({}, STRAND_QUIET_STALLED);
    strand_cancel(child, nullptr);
    strand_event_set(&world.cancelled);
    strand_wait_quiet({}, STRAND_QUIET_STALLED);
    way.let_go();
    CHECK_PTR(strand_join(child), &way);
    CHECK_LOG("closes closed interrupted");
    test_log_clear();
    end_it();
    strand_join(world.sibling);
}

/* contract 4.73 */
TEST_INSIDE(an_operation_in_a_destructor_of_a_cancelled_strand_happens)
{
    for (const Way &way : ways)
        close_cancelled(way, false);
}

/* contract 4.73 */
TEST_INSIDE(a_cancel_does_not_end_a_wait_in_a_destructor)
{
    for (const Way &way : ways)
        close_cancelled(way, true);
}

/* contract 4.73 */
TEST_REAL_INSIDE(a_cancel_does_not_end_a_wait_in_a_destructor_for_what_is_outside)
{
    CHECK_EQ(strand_pipe(world.pipe), 0);
    for (const Way &way : ways_outside)
        for (bool waits : {false, true})
            close_cancelled(way, waits);
    strand_close(world.pipe[0]);
    strand_close(world.pipe[1]);
}

/* ---- other sources, and handlers on the way ---------------------------------------------------- */

void wait_for_the_end()
{
    strand_event_wait(&world.end);
    test_log("waited");
}

void close_slowly() noexcept
{
    wait_for_the_end();
}

strand spawn_fresh(strand_scope scope, strand_fn *fn)
{
    world.end = {};
    return strand_spawn(scope, fn, nullptr);
}

/* The child blocks, and is cancelled; it goes on when it may. */
void cancel_while_it_waits(strand child)
{
    strand_wait_quiet({}, STRAND_QUIET_STALLED);
    strand_cancel(child, nullptr);
    strand_wait_quiet({}, STRAND_QUIET_STALLED);
    end_it();
    strand_wait(child);
}

TEST_INSIDE(a_deadline_that_passes_in_a_noexcept_function_holds_after_it)
{
    world.end = {};
    STRAND_SCOPE(scope);
    strand_spawn(
        scope,
        [](void *arg) -> void * {
            strand_sleep(20 * STRAND_MS);
            end_it();
            return arg;
        },
        nullptr);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        close_slowly();
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    strand_scope_join(scope);
    CHECK_LOG("waited timed-out");
}

/* The destructor's own deadline becomes an error, which its try block takes. */
struct GivesUp {
    ~GivesUp()
    {
        STRAND_TRY {
            STRAND_DEADLINE(strand_in(STRAND_MS));
            wait_for_the_end();
        }
        STRAND_CATCH(&STRAND_TIMED_OUT, e) {
            test_log("timed-out");
        }
        STRAND_END
    }
};

TEST_INSIDE(a_deadline_in_a_try_block_in_a_destructor_of_a_cancelled_strand_counts)
{
    STRAND_SCOPE(scope);
    strand child = spawn_fresh(scope, [](void *arg) -> void * {
        {
            GivesUp gives_up;
        }
        strand_checkpoint();
        return arg;
    });
    strand_cancel(child, nullptr);
    strand_wait(child);
    CHECK_LOG("timed-out");
}

void *catch_a_deadlock(void *arg)
{
    [&]() noexcept {
        STRAND_TRY {
            strand_event never = {};
            strand_event_wait(&never);
        }
        STRAND_CATCH(&STRAND_DEADLOCK, e) {
            test_log("deadlock");
        }
        STRAND_END
    }();
    return arg;
}

TEST(a_try_block_in_a_noexcept_function_catches_a_deadlock)
{
    strand_options options = test_options();
    options.out_of_work = STRAND_OUT_OF_WORK_THROW;
    options.on_log = [](const char *, void *) {};
    strand_run(&options, catch_a_deadlock, nullptr);
    CHECK_LOG("deadlock");
}

TEST_INSIDE(an_interruption_waits_for_a_noexcept_function_on_a_shared_fibre_too)
{
    STRAND_SCOPE(scope);
    world.end = {};
    strand_attr attr = {};
    attr.size = sizeof attr;
    attr.fibre = strand_fibre_open(scope, nullptr);
    strand children[3];
    for (strand &child : children)
        child = strand_spawn_with(
            scope, &attr,
            [](void *arg) -> void * {
                close_slowly();
                return arg;
            },
            nullptr, 0);
    strand_wait_quiet({}, STRAND_QUIET_STALLED);
    for (strand child : children)
        strand_cancel(child, nullptr);
    cancel_while_it_waits(children[0]);
    strand_scope_join(scope);
    CHECK_LOG("waited waited waited");
}

/* ---- for ever ----------------------------------------------------------------------------------------------- */

const char deferred_often[] = "has put off its interruption 10000 times";

void ask_often() noexcept
{
    for (int i = 0; i < 20000; i++)
        CHECK(!strand_interrupted());
}

/* The root of a run whose only child is cancelled before it calls the function. */
template <void (*fn)()> void *cancel_at_once(void *arg)
{
    STRAND_SCOPE(scope);
    world.cancelled = {};
    strand child = strand_spawn(
        scope,
        [](void *there) -> void * {
            {
                STRAND_SHIELD;
                strand_event_wait(&world.cancelled);
            }
            fn();
            return there;
        },
        arg);
    strand_cancel(child, nullptr);
    strand_event_set(&world.cancelled);
    strand_join(child);
    return arg;
}

TEST_REAL(a_strand_that_asks_for_ever_in_a_noexcept_function_whether_it_is_interrupted_is_logged_once)
{
    std::string text = Logged(cancel_at_once<ask_often>).text;
    size_t first = text.find(deferred_often);
    CHECK(first != std::string::npos);
    CHECK(text.find(deferred_often, first + 1) == std::string::npos);
}

void ask_often_in_a_shield() noexcept
{
    STRAND_SHIELD;
    ask_often();
}

TEST(a_strand_that_goes_on_in_a_shield_in_a_noexcept_function_is_not_logged)
{
    CHECK_STR(Logged(cancel_at_once<ask_often_in_a_shield>).text.c_str(), "");
}

/* ---- functions that compilers put into others -------------------------------------------------------------------- */

#define INLINED __attribute__((always_inline)) inline

struct Held {
    Held();
    ~Held();
};

/* g++ gives the wait a landing pad where it puts this function, but not where a noexcept function has the same text. */
INLINED void hold_and_wait()
{
    Held held;
    wait_for_the_end();
}

struct Waiting {
    INLINED ~Waiting()
    {
        hold_and_wait();
    }
};

/* As std::thread's. */
struct Joined {
    const bool *open;
    INLINED ~Joined()
    {
        if (*open)
            std::terminate();
    }
};

INLINED void wait_for_a_number() noexcept
{
    try {
        wait_for_the_end();
    } catch (int) {
        test_log("never");
    }
}

struct Catching {
    ~Catching() /* compilers put no try block into another function */
    {
        Held held;
        STRAND_TRY {
            wait_for_the_end();
        }
        STRAND_CATCH(&STRAND_ANY, e) {
            test_log("caught");
        }
        STRAND_END
    }
};

void wait_and_catch_errors()
{
    STRAND_TRY {
        wait_for_the_end();
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        test_log("never");
    }
    STRAND_END
}

struct CatchingErrors {
    ~CatchingErrors()
    {
        Held held;
        STRAND_TRY {
            wait_for_the_end();
        }
        STRAND_CATCH(&STRAND_SYSTEM, e) {
            test_log("never");
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            test_log("never");
        }
        STRAND_END
    }
};

void close_and_catch_errors()
{
    CatchingErrors catching;
}

/* A try block of interruptions in a function that lets nothing out, around what `wait` does. */
template <void (*wait)()> void catch_interruptions() noexcept
{
    STRAND_TRY {
        wait();
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("caught");
    }
    STRAND_END
}

void catch_errors_inside_of_interruptions() noexcept
{
    STRAND_TRY {
        Held held;
        STRAND_TRY {
            wait_for_the_end();
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            test_log("never");
        }
        STRAND_END
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("caught");
    }
    STRAND_END
}

struct Trying {
    ~Trying()
    {
        strand_exception *e = strand_try(
            [](void *arg) -> void * {
                wait_for_the_end();
                return arg;
            },
            nullptr, nullptr);
        test_log("%s", e ? "caught" : "not caught");
        strand_exception_release(e);
    }
};

void (*old_action)(int); /* SIG_IGN, which is no function */

struct RestoresHandler {
    bool installed;
    ~RestoresHandler()
    {
        if (installed)
            old_action(SIGUSR1);
        test_log("restored");
    }
};

static NOINLINE void wait_with_a_handler(bool installed)
{
    RestoresHandler restores = {installed};
    wait_for_the_end();
}

struct SaysGoodbye {
    ~SaysGoodbye()
    {
        STRAND_TRY {
            strand_yield();
            test_log("said");
            strand_throw(&STRAND_ERROR, "caught");
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            test_log("%s", strand_exception_text(e));
        }
        STRAND_END
    }
};

/* What a strand does, and the log of one that is cancelled while it waits. */
struct Form {
    const char *name;
    void (*fn)();
    const char *log;
};

const Form forms[] = {
    {"a noexcept function", close_slowly, "waited interrupted"},
    {"a handler inside of a noexcept function",
     []() noexcept {
         try {
             wait_for_the_end();
         } catch (...) {
             test_log("caught");
         }
     },
     "caught interrupted"},
    {"a try block inside of a noexcept function",
     []() noexcept {
         STRAND_TRY {
             wait_for_the_end();
         }
         STRAND_CATCH(&STRAND_ANY, e) {
             test_log("caught");
         }
         STRAND_END
     },
     "caught interrupted"},
    {"a destructor with a try block that catches no interruption, during unwinding",
     [] {
         SaysGoodbye goodbye;
         wait_for_the_end();
     },
     "said caught interrupted"},
    {"a destructor that may call a variable that holds no function", [] { wait_with_a_handler(old_action == SIG_ERR); },
     "restored interrupted"},
    {"a destructor with an object", [] { Waiting waiting; }, "held waited released interrupted"},
    {"a destructor below another object",
     [] {
         Held held;
         Waiting waiting;
     },
     "held held waited released released interrupted"},
    {"a destructor below a handler of a type",
     [] {
         try {
             Waiting waiting;
         } catch (int) {
             test_log("never");
         }
     },
     "held waited released interrupted"},
    {"a destructor in a try block",
     [] {
         STRAND_TRY {
             {
                 Waiting waiting;
             }
             strand_checkpoint();
         }
         STRAND_CATCH(&STRAND_ANY, e) {
             test_log("caught");
         }
         STRAND_END
     },
     "held waited released caught interrupted"},
    {"a handler of a type", [] { wait_for_a_number(); }, "waited interrupted"},
    {"a try block", [] { Catching catching; }, "held caught released interrupted"},
    {"a try block that takes errors", [] { CatchingErrors catching; }, "held waited released interrupted"},
    {"a try block that takes errors, of a function that is called", []() noexcept { wait_and_catch_errors(); },
     "waited interrupted"},
    {"a try block that takes errors, not noexcept", wait_and_catch_errors, "interrupted"},
    {"a try block that takes errors in one that takes interruptions", catch_errors_inside_of_interruptions,
     "held released caught interrupted"},
    {"a try block that takes errors in one of the caller that takes interruptions",
     catch_interruptions<wait_and_catch_errors>, "caught interrupted"},
    {"a try block that takes errors in a destructor in one that takes interruptions",
     catch_interruptions<close_and_catch_errors>, "held waited released interrupted"},
    {"strand_try", [] { Trying trying; }, "caught interrupted"},
    {"an object, not noexcept",
     [] {
         Held held;
         wait_for_the_end();
     },
     "held released interrupted"},
    {"a handler of a type, not noexcept",
     [] {
         try {
             Held held;
             wait_for_the_end();
         } catch (int) {
             test_log("never");
         }
     },
     "held released interrupted"},
    {"an object that may terminate, not noexcept",
     [] {
         static bool open;
         Joined joined{&open};
         wait_for_the_end();
     },
     "interrupted"},
};

NOINLINE Held::Held()
{
    test_log("held");
}

NOINLINE Held::~Held()
{
    test_log("released");
}

void *run_form(void *form)
{
    try {
        static_cast<const Form *>(form)->fn();
        strand_checkpoint();
    } catch (...) {
        test_log("interrupted");
    }
    return form;
}

/* contract 4.73 */
TEST_INSIDE(noexcept_functions_defer_an_interruption_until_their_end_and_handlers_inside_take_it_at_once)
{
    std::signal(SIGUSR2, SIG_IGN);
    old_action = std::signal(SIGUSR2, SIG_DFL);
    for (const Form &form : forms) {
        STRAND_SCOPE(scope);
        world.end = {};
        cancel_while_it_waits(strand_spawn(scope, run_form, const_cast<Form *>(&form)));
        CHECK_LOG(form.log);
        test_log_clear();
    }
}

/* ---- pruned on arrival --------------------------------------------------------------------------------------- */

int by_number(const void *a, const void *b, void *)
{
    return static_cast<int>(reinterpret_cast<intptr_t>(a) - reinterpret_cast<intptr_t>(b));
}

int acquire_without_throwing(strand_prio_semaphore *sem) noexcept
{
    return strand_prio_acquire(sem, reinterpret_cast<void *>(9)); /* the worst of all */
}

TEST_INSIDE(a_strand_that_would_be_pruned_in_a_noexcept_function_is_refused_instead)
{
    static strand_prio_semaphore sem;
    strand_prio_options options = {};
    options.size = sizeof options;
    options.permits = options.max_waiters = 1;
    options.compare = by_number;
    strand_prio_init(&sem, &options);
    CHECK_EQ(strand_prio_acquire(&sem, nullptr), 0);
    STRAND_SCOPE(scope);
    strand waiter = strand_spawn(
        scope,
        [](void *arg) -> void * {
            CHECK_EQ(strand_prio_acquire(&sem, reinterpret_cast<void *>(1)), 0);
            strand_prio_release(&sem);
            return arg;
        },
        nullptr);
    while (strand_prio_waiting(&sem) == 0)
        strand_yield();
    strand refused = strand_spawn(
        scope, [](void *) -> void * { return TEST_PTR(acquire_without_throwing(&sem)); }, nullptr);
    CHECK_PTR(strand_join(refused), TEST_PTR(-ENOBUFS));
    strand_prio_release(&sem);
    strand_join(waiter);
}

} // namespace
