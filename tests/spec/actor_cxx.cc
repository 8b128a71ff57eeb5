/*
 * Actors in C++: messages, classes and questions are written as in C, and what a turn has made is destroyed with it.
 */
#define SUITE actor_cxx

#include <new>
#include <string>

#if defined(TEST_CRITERION)
#include <criterion/criterion.h>
#endif

/* The harness is written in C: as in cxx.cc. */
#include <stdatomic.h>
#define _Atomic
extern "C" {
#include "test.h"
}
#include "strand/actor.h"
#undef _Atomic

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

struct Leaving {
    ~Leaving()
    {
        test_log("left");
    }
};

struct Counter {
    int sum;
};

void count(void *state, strand_message *message)
{
    Leaving leaving;
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
        strand_unhandled(message);
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

TEST_INSIDE(actors_can_be_told_and_asked_in_cxx_too)
{
    STRAND_ACTORS(system, nullptr);
    strand_actor a = strand_actor_spawn(system, nullptr, &counter_class, nullptr, 0);
    sum answer = {};
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 3, true)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 4, false)), 0);
    CHECK_EQ(strand_ask(a, STRAND_MSG(ask_sum), STRAND_INTO(sum, &answer)), 0);
    CHECK_EQ(answer.n, 10);
    CHECK_LOG("left left left");
}

TEST_INSIDE(what_a_message_owns_in_cxx_is_destroyed)
{
    STRAND_ACTORS(system, nullptr);
    strand_actor a = strand_actor_spawn(system, nullptr, &counter_class, nullptr, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(text, new std::string("hello"))), 0);
    CHECK_EQ(strand_give(a, &words_message, new std::string("given")), 0); /* nobody has a use for it */
    strand_actors_join(system);
    CHECK_LOG("hello left dropped left");
}

TEST_INSIDE(an_actor_that_an_exception_of_cxx_leaves_fails_and_begins_anew)
{
    STRAND_ACTORS(system, nullptr);
    strand_actor a = strand_actor_spawn(system, nullptr, &counter_class, nullptr, 0);
    sum answer = {};
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 1, false)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 13, false)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(add, 5, false)), 0);
    CHECK_EQ(strand_ask(a, STRAND_MSG(ask_sum), STRAND_INTO(sum, &answer)), 0);
    CHECK_EQ(answer.n, 5);
    CHECK_LOG("left left left left");
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
    CHECK_EQ(answer.n, 5); /* it has begun anew */
    CHECK_LOG("left left left left");
}
