/*
 * Which C++ runtime the program has. The library needs none, and takes the first of these that there is:
 *
 *  - the one that C++ files name which include strand.h (include/strand/cxx.h). Nothing else finds a runtime whose
 *    symbols are hidden, or makes the linker take all of its functions out of an archive;
 *  - what is linked with the program, by weak references: a static program of which only C files include strand.h;
 *  - a shared one, by name: such a program with shared libraries, or one that loads a plug-in.
 *
 * A process may have several, each with exceptions of its own. Strands use one of them, and so the first.
 */
#include "state.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

extern char __cxa_get_globals[] __attribute__((weak)), __cxa_allocate_exception[] __attribute__((weak)),
    __cxa_init_primary_exception[] __attribute__((weak)), __cxa_begin_catch[] __attribute__((weak)),
    __cxa_end_catch[] __attribute__((weak)), _ZSt13set_terminatePFvvE[] __attribute__((weak)),
    _ZSt13get_terminatev[] __attribute__((weak)), _ZSt17current_exceptionv[] __attribute__((weak)),
    _ZNSt15__exception_ptr13exception_ptrD1Ev[] __attribute__((weak)),
    _ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE[] __attribute__((weak)),
    _ZTISt9exception[] __attribute__((weak)), __gxx_personality_v0[] __attribute__((weak)),
    _ZSt9terminatev[] __attribute__((weak)), _Unwind_Resume[] __attribute__((weak));

struct symbol {
    const char *name;
    void *linked; /* the program's own; a weak reference */
    size_t at;    /* offset in struct arch_cxx_runtime */
};

#define SYMBOL(member, name)                                                                                           \
    {                                                                                                                  \
#name, name, offsetof(struct arch_cxx_runtime, member)                                                         \
    }

/* In the order in which C++ files name them. */
static const struct symbol symbols[ARCH_CXX_SYMBOLS] = {
    SYMBOL(globals, __cxa_get_globals),
    SYMBOL(allocate, __cxa_allocate_exception),
    SYMBOL(init, __cxa_init_primary_exception),
    SYMBOL(begin_catch, __cxa_begin_catch),
    SYMBOL(end_catch, __cxa_end_catch),
    SYMBOL(personality, __gxx_personality_v0),
    SYMBOL(set_terminate, _ZSt13set_terminatePFvvE),
    SYMBOL(get_terminate, _ZSt13get_terminatev),
    SYMBOL(current, _ZSt17current_exceptionv),
    SYMBOL(drop, _ZNSt15__exception_ptr13exception_ptrD1Ev),
    SYMBOL(rethrow, _ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE),
    SYMBOL(terminate, _ZSt9terminatev),
    SYMBOL(resume, _Unwind_Resume),
    SYMBOL(base, _ZTISt9exception),
};
enum { GLOBALS = 0, DROP = 9, BASE = ARCH_CXX_SYMBOLS - 1 };

/* ---- what C++ files announce --------------------------------------------------------------------------------- */

enum { NOTHING, WRITING, ANNOUNCED }; /* arch_state.cxx_announced.state: the first file writes, nobody afterwards */

typedef struct arch_cxx *globals_fn(void);

static globals_fn *globals_at(const void *address)
{
    globals_fn *globals;
    memcpy(&globals, &address, sizeof globals);
    return globals;
}

/* The object with that address is never unloaded. */
static void keep_loaded(const void *address)
{
    Dl_info info;
    if (arch_can_load() && dladdr(address, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* The runtime that strands use, or will; NULL: not known. */
static globals_fn *globals_in_use(void)
{
    if (atomic_load_explicit(&arch_state.cxx.there, memory_order_acquire)) /* [PB1] */
        return arch_state.cxx.globals;
    if (atomic_load_explicit(&arch_state.cxx_announced.state, memory_order_acquire) == ANNOUNCED) /* [PB1] */
        return globals_at(arch_state.cxx_announced.addresses[GLOBALS]);
    return NULL;
}

/* Called while the loader holds its lock, for which arch_cxx_find waits with the process's: so not under that. */
bool arch_cxx_announce(void (*const *functions)(void), unsigned count, const void *base)
{
    struct arch_cxx_announced *announced = &arch_state.cxx_announced;
    int state = NOTHING;
    if (count < BASE || !functions[GLOBALS])
        return true;
    if (atomic_compare_exchange_strong_explicit(&announced->state, &state, WRITING, memory_order_relaxed,
                                                memory_order_relaxed)) {
        memcpy(announced->addresses, functions, BASE * sizeof *functions);
        announced->addresses[BASE] = base;
        keep_loaded(announced->addresses[GLOBALS]);
        keep_loaded(announced->addresses[DROP]);
        if (!arch_tool)
            arch_tool_find(); /* threads use static objects before the first run */
        atomic_store_explicit(&announced->state, ANNOUNCED, memory_order_release); /* [PB1] */
    }
    globals_fn *used = globals_in_use(), *named = (globals_fn *)functions[GLOBALS];
    return !used || used == named || used() == named(); /* one function may have two addresses */
}

/* ---- what there is otherwise ----------------------------------------------------------------------------------- */

/* Find the library that has the runtime, for dlsym: one that is visible to the whole program, or one that was loaded
 * with local symbols, like a plug-in's; it stays loaded. NULL: there is none. */
static bool find_library(void **library)
{
    static const char *const names[] = {"libstdc++.so.6", "libc++abi.so.1"};
    *library = RTLD_DEFAULT;
    bool found = __cxa_get_globals || dlsym(RTLD_DEFAULT, "__cxa_get_globals");
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
        found = *library && dlsym(*library, "__cxa_get_globals");
    }
    return found;
}

/* A process may have parts of two runtimes: libc++abi's __cxa_get_globals, and missing functions from libstdc++. Their
 * counts of exceptions differ. The loader knows no object of a wholly static program, which has one runtime. */
static bool of_one_object(const void *one, const void *other)
{
    Dl_info first = {0}, second = {0};
    (void)dladdr(one, &first);
    (void)dladdr(other, &second);
    return first.dli_fbase == second.dli_fbase;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(uint64_t *)loads = info->dlpi_adds;
    return 1;
}

/* Whether a library was loaded since the last look. */
static bool is_new(void)
{
    uint64_t loads = 0;
    (void)dl_iterate_phdr(count_loads, &loads);
    bool new = loads != arch_state.cxx.loads;
    arch_state.cxx.loads = loads;
    return new;
}

/* NULL: there is none. What a C++ file names is not completed from another runtime, apart from std::exception, which
 * all know by its name. */
static const void *find(size_t i, bool announced, void *library)
{
    if (announced && (i != BASE || arch_state.cxx_announced.addresses[i]))
        return arch_state.cxx_announced.addresses[i];
    return symbols[i].linked ? symbols[i].linked : dlsym(library, symbols[i].name);
}

void arch_cxx_find(void)
{
    struct arch_cxx_runtime *cxx = &arch_state.cxx;
    void *library = RTLD_DEFAULT;
    if (cxx->there)
        return;
    bool announced =
        atomic_load_explicit(&arch_state.cxx_announced.state, memory_order_acquire) == ANNOUNCED; /* [PB1] */
    if (!announced && (!is_new() || !find_library(&library)))
        return;
    for (size_t i = 0; i < ARCH_CXX_SYMBOLS; i++) {
        const void *address = find(i, announced, library);
        memcpy((char *)cxx + symbols[i].at, &address, sizeof address);
    }
    cxx->throws = cxx->allocate && cxx->init && cxx->begin_catch && cxx->end_catch && cxx->base &&
                  of_one_object(*(void **)(void *)&cxx->globals, *(void **)(void *)&cxx->init);
    if (cxx->throws) {
        cxx->type.methods = cxx->base->methods; /* those of a class without a base */
        cxx->type.name = "14strand_thrown_";
    }
    cxx->keeps = cxx->throws && cxx->current && cxx->drop && cxx->rethrow;
    atomic_store_explicit(&cxx->there, true, memory_order_release); /* [PB1] */
}

bool arch_cxx_lacks_functions(void)
{
    return atomic_load_explicit(&arch_state.cxx.there, memory_order_acquire) && !arch_state.cxx.keeps; /* [PB1] */
}
