/*
 * The harness, which is written in C, for tests in C++. Include it after the headers of C++: the atomics of C have
 * macros that disturb those. What of the harness is atomic is not used from C++, which knows no _Atomic.
 */
#ifndef SPEC_CXX_H
#define SPEC_CXX_H

#if defined(TEST_CRITERION)
#include <criterion/criterion.h>
#endif

#include <stdatomic.h>
#include <string>
#define _Atomic
extern "C" {
#include "test.h"
}
#undef _Atomic

/* Logs its name when its block is left. */
struct Leaving {
    const char *name;
    explicit Leaving(const char *text) : name(text) {}
    Leaving(const Leaving &) = delete;
    Leaving &operator=(const Leaving &) = delete;
    ~Leaving()
    {
        test_log("%s", name);
    }
};

/* What a run logs. */
class Logged {
  public:
    explicit Logged(strand_fn *root)
    {
        strand_options options = test_options();
        options.on_log = [](const char *line, void *log) { static_cast<Logged *>(log)->text += line; };
        options.hook_arg = this;
        strand_run(&options, root, nullptr);
    }
    std::string text;
};

#endif
