/*
 * Whether reports show lines of the source. Include test.h before.
 */
#ifndef SPEC_HAS_LINES_H
#define SPEC_HAS_LINES_H

#include <dlfcn.h>

/** Tools have lines of their own. */
static inline bool has_lines(void)
{
    bool watched = TEST_ASAN || TEST_TSAN || test_under_valgrind();
    return !watched && dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
}

#endif
