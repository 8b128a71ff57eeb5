/*
 * Actors in C++: messages, classes and questions are written as in C, and what a turn has made is destroyed with it.
 */
#define SUITE actor_cxx

#include <atomic>
#include <new>
#include <string>

#include "cxx.h"

#include "strand/actor.h"

STRAND_MESSAGE(add, {
    int n;
    bool twice;
});
STRAND_MESSAGE(ask_sum, { char none; });
STRAND_MESSAGE(sum, { int n; });

namespace {

void free_text(void *body)
{
    test_log("dropped");
    delete *static_cast<std::string **>(body);
}

} // namespace

STRAND_MESSAGE_WITH(text, free_text, { std::string *words; });
STRAND_MESSAGE_WITH(
    words, [](void *body) { delete static_cast<std::string *>(body); }, { char none; });

namespace {

struct Counter {
    int sum;
};

void count(void *state, strand_message *message)
{
    Leaving leaving("left");
    auto *counter = static_cast<Counter *>(state);
    if (const add *a = STRAND_IS(message, add)) {
        if (a->n == 13)
            throw std::bad_alloc();
        if (a->n < 0)
            strand_throw(&TEST_ERROR, "less than nothing");
        counter->sum += a->twice ? 2 * a->n : a->n;
    } else if (STRAND_IS(message, ask_sum)) {
        CHECK_EQ(strand_reply(message, STRAND_MSG(sum, counter->sum)), 0);
    } else if (const text *t = STRAND_IS(message, text)) {
        test_log("%s", t->words->c_str());
    } else {
        strand_message_unhandled(message);
    }
}

strand_actor_class class_of()
{
    strand_actor_class class_ = {};
    class_.size = sizeof class_;
    class_.name = "counter";
    class_.state_size = sizeof(Counter);
    class_.receive = count;
    return class_;
}

const strand_actor_class counter_class = class_of();

} // namespace

TEST_INSIDE(actors_take_messages_and_asks_in_cxx_too)
{
    STRAND_ACTORS(system, nullptr);
    strand_actor a = strand_actor_spawn(system, nullptr, &counter_class, nullptr, 0);
    sum answer = {};
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 3, true)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 4, false)), 0);
    CHECK_EQ(strand_ask(a, STRAND_MSG(ask_sum), STRAND_INTO(sum, &answer)), 0);
    CHECK_EQ(answer.n, 10);
    strand_actors_join(system); /* the asker may go on before the turn that has answered is over */
    CHECK_LOG("left left left");
}

TEST_INSIDE(the_contents_of_a_message_in_cxx_are_destroyed)
{
    STRAND_ACTORS(system, nullptr);
    strand_actor a = strand_actor_spawn(system, nullptr, &counter_class, nullptr, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(text, new std::string("hello"))), 0);
    CHECK_EQ(strand_actor_give(a, &words_message, new std::string("given")), 0); /* nobody has a use for it */
    strand_actors_join(system);
    CHECK_LOG("hello left dropped left");
}

/* contract 4.63 */
TEST_INSIDE(an_actor_that_an_exception_of_cxx_leaves_fails_and_restarts)
{
    STRAND_ACTORS(system, nullptr);
    strand_actor a = strand_actor_spawn(system, nullptr, &counter_class, nullptr, 0);
    sum answer = {};
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 1, false)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 13, false)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 5, false)), 0);
    CHECK_EQ(strand_ask(a, STRAND_MSG(ask_sum), STRAND_INTO(sum, &answer)), 0);
    CHECK_EQ(answer.n, 5);
    strand_actors_join(system); /* the asker may go on before the turn that has answered is over */
    CHECK_LOG("left left left left");
}

namespace {

enum Where { START, STOP, DECIDE, TASK };

struct Alive {
    static std::atomic<int> count;
    Alive()
    {
        count++;
    }
    ~Alive()
    {
        count--;
    }
};
std::atomic<int> Alive::count, failures;
std::atomic<Where> where;
std::atomic<bool> has_failed;

/* Once, in that function. */
void run_out_of_memory(Where here)
{
    Alive alive;
    if (where == here && !has_failed.exchange(true))
        throw std::bad_alloc();
}

strand_actor_class short_of_memory()
{
    strand_actor_class class_ = class_of();
    class_.start = [](void *, const void *) { run_out_of_memory(START); };
    class_.stop = [](void *) { run_out_of_memory(STOP); };
    class_.decide = [](void *, strand_actor, const strand_exception *why) {
        CHECK_KIND(why, &STRAND_FOREIGN);
        run_out_of_memory(DECIDE);
        return STRAND_RESTART;
    };
    class_.receive = [](void *, strand_message *message) {
        if (STRAND_IS(message, add)) {
            strand_actor child = strand_actor_spawn_child(nullptr, &counter_class, nullptr, 0);
            CHECK_EQ(strand_tell(child, STRAND_MSG(add, 13, false)), 0);
        } else {
            CHECK_EQ(strand_reply(message, STRAND_MSG(sum, 7)), 0);
        }
    };
    return class_;
}

strand_actor_class counting_failures()
{
    strand_actor_class class_ = class_of();
    class_.receive = [](void *, strand_message *message) {
        const strand_published *failure = STRAND_IS(message, strand_published);
        CHECK_STR(strand_exception_text(failure->why), "std::bad_alloc");
        failures++;
    };
    return class_;
}

const strand_actor_class short_class = short_of_memory(), failures_class = counting_failures();

void must_answer(strand_actor a)
{
    sum answer = {};
    CHECK_EQ(strand_ask(a, STRAND_MSG(ask_sum), STRAND_INTO(sum, &answer)), 0);
    CHECK_EQ(answer.n, 7);
}

void *task(void *arg)
{
    run_out_of_memory(TASK);
    return arg;
}

} // namespace

TEST_INSIDE(running_out_of_memory_in_any_function_of_an_actor_in_cxx_is_a_failure_like_any_other)
{
    for (Where here : {START, STOP, DECIDE, TASK}) {
        where = here;
        has_failed = false;
        failures = 0;
        STRAND_ACTORS(system, nullptr);
        strand_actor listener = strand_actor_spawn(system, nullptr, &failures_class, nullptr, 0);
        CHECK_EQ(strand_actors_subscribe(system, listener, STRAND_ACTOR_FAILURE), 0);
        strand_actor a = strand_actor_spawn(system, nullptr, &short_class, nullptr, 0);
        CHECK_EQ(strand_tell(a, STRAND_MSG(add, 0, false)), 0);
        CHECK_EQ(strand_actors_run(system, nullptr, task, nullptr), 0);
        strand_actors_join(system);
        must_answer(a);
        CHECK_EQ(strand_actor_restart(a), 0);
        strand_actors_join(system);
        must_answer(a);
        CHECK(has_failed);
        CHECK_EQ(failures, 2); /* and its child's */
        CHECK_EQ(Alive::count, 0);
    }
}

TEST_INSIDE(an_actor_that_fails_in_cxx_runs_its_destructors)
{
    STRAND_ACTORS(system, nullptr);
    strand_actor a = strand_actor_spawn(system, nullptr, &counter_class, nullptr, 0);
    sum answer = {};
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 1, false)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, -1, false)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 5, false)), 0);
    CHECK_EQ(strand_ask(a, STRAND_MSG(ask_sum), STRAND_INTO(sum, &answer)), 0);
    CHECK_EQ(answer.n, 5);      /* it has restarted */
    strand_actors_join(system); /* the asker may go on before the turn that has answered is over */
    CHECK_LOG("left left left left");
}
