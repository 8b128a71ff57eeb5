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
#define _Atomic
extern "C" {
#include "test.h"
}
#undef _Atomic

#endif
