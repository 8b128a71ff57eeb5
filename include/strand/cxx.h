/*
 * Each C++ file registers the C++ runtime that it is linked with. Without that, the library finds a shared runtime, but
 * no runtime whose symbols are hidden in a program or a plug-in (-static-libstdc++ with --exclude-libs). In a static
 * program it finds only the functions that other code has linked. The compiler calls a function before it constructs a
 * function's static object; in a C++ file that includes this header the library gets that call. Nothing here is for
 * programs; strand.h includes it.
 */
#ifndef STRAND_CXX_H
#define STRAND_CXX_H

#ifdef __cplusplus
extern "C" {
#endif

struct strand_cxx_runtime_ {
    unsigned count;                 /* of functions; the library ignores what it does not know */
    void (*const *functions)(void); /* in the order of src/arch/cxx_find.c */
    const void *base;               /* typeid(std::exception); NULL: the file is compiled without RTTI */
};

/* Weak: a file that uses only types, and has no static object in a function, can be linked without the library. */
void strand_cxx_use_(const struct strand_cxx_runtime_ *runtime) __attribute__((weak));

/* __cxa_guard_acquire for strands: returns 1 if the caller has to construct the object, 0 once it is constructed. */
int strand_static_enter_(void *guard);

#ifdef __cplusplus
}
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L && defined(__EXCEPTIONS)
extern "C++" {
#include <exception>
#include <typeinfo>
}
#pragma GCC system_header /* no warning of a constructor that runs before main */

/* Another C++ library than libstdc++ may lack some, and gives the bits of a guard other meanings. */
#if defined(__GLIBCXX__)
__asm__(".set __cxa_guard_acquire, strand_static_enter_");
#define STRAND_CXX_NAMED_(name) __asm__(#name)
#else
#define STRAND_CXX_NAMED_(name) __asm__(#name) __attribute__((weak))
#endif

/* Their strong references make the linker take the functions out of an archive. The types are those that other files
 * know them by, as far as the optimiser of a linker looks. */
#pragma GCC visibility push(default)
extern "C" {
void *strand_cxx_globals_(void) STRAND_CXX_NAMED_(__cxa_get_globals);
void *strand_cxx_allocate_(size_t) STRAND_CXX_NAMED_(__cxa_allocate_exception);
void *strand_cxx_init_(void *, void *, void (*)(void *)) STRAND_CXX_NAMED_(__cxa_init_primary_exception);
void *strand_cxx_begin_catch_(void *) STRAND_CXX_NAMED_(__cxa_begin_catch);
void strand_cxx_end_catch_(void) STRAND_CXX_NAMED_(__cxa_end_catch);
unsigned strand_cxx_personality_(int, int, unsigned long long, void *, void *) STRAND_CXX_NAMED_(__gxx_personality_v0);
void strand_cxx_resume_(void *) STRAND_CXX_NAMED_(_Unwind_Resume);
}
#pragma GCC visibility pop
#undef STRAND_CXX_NAMED_

#if defined(__GXX_RTTI)
#define STRAND_CXX_BASE_ &typeid(std::exception)
#else
#define STRAND_CXX_BASE_ nullptr
#endif
#define STRAND_CXX_ADDRESS_(function) reinterpret_cast<void (*)(void)>(&function)

static inline void strand_cxx_drop_(std::exception_ptr *kept)
{
    typedef std::exception_ptr pointer;
    kept->~pointer();
}

static inline bool strand_cxx_register_(void)
{
    void (*const functions[])(void) = {
        STRAND_CXX_ADDRESS_(strand_cxx_globals_),    STRAND_CXX_ADDRESS_(strand_cxx_allocate_),
        STRAND_CXX_ADDRESS_(strand_cxx_init_),       STRAND_CXX_ADDRESS_(strand_cxx_begin_catch_),
        STRAND_CXX_ADDRESS_(strand_cxx_end_catch_),  STRAND_CXX_ADDRESS_(strand_cxx_personality_),
        STRAND_CXX_ADDRESS_(std::set_terminate),     STRAND_CXX_ADDRESS_(std::get_terminate),
        STRAND_CXX_ADDRESS_(std::current_exception), STRAND_CXX_ADDRESS_(strand_cxx_drop_),
        STRAND_CXX_ADDRESS_(std::rethrow_exception), STRAND_CXX_ADDRESS_(std::terminate),
        STRAND_CXX_ADDRESS_(strand_cxx_resume_),
    };
    const struct strand_cxx_runtime_ runtime = {sizeof functions / sizeof *functions, functions, STRAND_CXX_BASE_};
    if (strand_cxx_use_)
        strand_cxx_use_(&runtime);
    return true;
}
static const bool strand_cxx_registered_ __attribute__((unused)) = strand_cxx_register_();
#undef STRAND_CXX_BASE_
#undef STRAND_CXX_ADDRESS_
#endif

#endif
