/*
 * How the code of a landing pad ends. A compiler that has inlined a noexcept function, or instruments it, gives a call
 * inside a landing pad like any other's, which destroys objects; but where others call _Unwind_Resume it calls
 * std::terminate. The table of the function does not tell the one from the other, so the code is read: all paths from
 * the pad, up to the first call whose meaning is known. Calls of other functions return.
 *
 * A path that is not understood may lead anywhere: one with an indirect jump, or into another landing pad, which the
 * call before it did not return to. Most indirect calls are destructors. So _Unwind_Resume is missed where its address
 * was put into a register (-mcmodel=large), or belongs to an unwinder that the library does not know (a plug-in's own).
 */
#include "landing.h"

#include "decode.h"
#include "state.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

const uint8_t *arch_skip_endbr64(const uint8_t *code)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    return memcmp(code, endbr64, sizeof endbr64) == 0 ? code + sizeof endbr64 : code;
}

/* ---- what a call means ----------------------------------------------------------------------------------------- */

/* The catcher's function: beside PAD_CATCHES and its like. */
enum { CATCHES_OR_RETURNS = 32 };

static unsigned meaning_of_address(uintptr_t function, const struct arch_catcher *catcher)
{
    const struct arch_cxx_runtime *cxx = &arch_state.cxx;
    if (function == (uintptr_t)_Unwind_Resume || function == (uintptr_t)cxx->resume || function == arch_state.resume)
        return PAD_RESUMES;
    if (function == (uintptr_t)cxx->terminate)
        return PAD_TERMINATES;
    if (function == (uintptr_t)cxx->begin_catch)
        return PAD_CATCHES;
    if (function == (uintptr_t)catcher->function)
        return CATCHES_OR_RETURNS;
    return function == (uintptr_t)abort ? PAD_DIES : 0;
}

static unsigned meaning_of_name(const char *name, const struct arch_catcher *catcher)
{
    static const struct {
        const char *name;
        unsigned meaning;
    } names[] = {
        {"_Unwind_Resume", PAD_RESUMES},     {"strand_resume_", PAD_RESUMES},
        {"_ZSt9terminatev", PAD_TERMINATES}, {"__cxa_call_terminate", PAD_TERMINATES},
        {"__cxa_begin_catch", PAD_CATCHES},  {"abort", PAD_DIES},
        {"__assert_fail", PAD_DIES},         {"__stack_chk_fail", PAD_DIES},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].meaning;
    return strcmp(name, catcher->name) == 0 ? CATCHES_OR_RETURNS : 0;
}

/* The name of the function that the loader will put into the word; NULL: unknown. */
static const char *name_of_word(const void *word)
{
    Dl_info info;
    struct link_map *object = NULL;
    const ElfW(Rela) *relocations = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    size_t size = 0;
    if (!dladdr1(word, &info, (void **)&object, RTLD_DL_LINKMAP) || !object)
        return NULL;
    for (const ElfW(Dyn) *d = object->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_JMPREL)
            relocations = (const void *)d->d_un.d_ptr; /* NOLINT: the loader has made addresses of them */
        else if (d->d_tag == DT_PLTRELSZ)
            size = d->d_un.d_val;
        else if (d->d_tag == DT_SYMTAB)
            symbols = (const void *)d->d_un.d_ptr; /* NOLINT */
        else if (d->d_tag == DT_STRTAB)
            names = (const void *)d->d_un.d_ptr; /* NOLINT */
    for (size_t i = 0; relocations && symbols && names && i < size / sizeof *relocations; i++)
        if (object->l_addr + relocations[i].r_offset == (uintptr_t)word)
            return names + symbols[ELF64_R_SYM(relocations[i].r_info)].st_name;
    return NULL;
}

/* The word may be the loader's, which it fills when its function is first called. Or it is a variable of the program,
 * with any value: what the value points to is not read. */
static unsigned meaning_of_word(const void *word, const struct arch_catcher *catcher)
{
    uintptr_t function;
    memcpy(&function, word, sizeof function);
    unsigned meaning = function ? meaning_of_address(function, catcher) : 0;
    const char *name = function && !meaning ? name_of_word(word) : NULL;
    return name ? meaning_of_name(name, catcher) : meaning;
}

/* The word of a function that is a stub of the linker: it jumps to the address in the word. NULL: it is none. */
static const void *word_of_stub(const uint8_t *function)
{
    struct arch_instruction stub;
    bool is = arch_decode(arch_skip_endbr64(function), &stub) && stub.way == ARCH_JUMPS;
    return is ? stub.word : NULL;
}

/* 0: it is not known. */
static unsigned meaning_of_function(const uint8_t *function, const struct arch_catcher *catcher)
{
    const void *word = word_of_stub(function);
    return word ? meaning_of_word(word, catcher) : meaning_of_address((uintptr_t)function, catcher);
}

/* clang calls a function of the program's own, __clang_call_terminate, which catches the exception and terminates. */
static bool catches_and_terminates(const uint8_t *code, const struct arch_catcher *catcher)
{
    enum { MOST = 16 };
    struct arch_instruction at;
    bool caught = false;
    for (int i = 0; i < MOST && arch_decode(code, &at) && at.way <= ARCH_CALLS; i++, code = at.next) {
        unsigned meaning = at.target ? meaning_of_function(at.target, catcher)
                           : at.word ? meaning_of_word(at.word, catcher)
                                     : 0;
        if (meaning == PAD_TERMINATES)
            return caught;
        caught |= meaning == PAD_CATCHES;
    }
    return false;
}

/* Whether the call is that of a sanitizer's report, which does not return: no function that may resume does this. */
static bool reports(const struct arch_instruction *call)
{
    static const char *const beginnings[] = {"__asan_report_", "__ubsan_handle_"};
    Dl_info info;
    if (!call->target)
        return false;
    const void *word = word_of_stub(call->target);
    const char *name = word ? name_of_word(word) : NULL;
    if (!name && dladdr(call->target, &info) && info.dli_saddr == call->target)
        name = info.dli_sname;
    for (size_t i = 0; name && i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static unsigned meaning_of(const struct arch_instruction *call, const struct arch_catcher *catcher)
{
    if (call->word)
        return meaning_of_word(call->word, catcher);
    if (!call->target)
        return 0;
    unsigned meaning = meaning_of_function(call->target, catcher);
    return !meaning && catches_and_terminates(call->target, catcher) ? PAD_TERMINATES : meaning;
}

/* ---- paths ----------------------------------------------------------------------------------------------------- */

enum { STARTS = 128, INSTRUCTIONS = 4096 };

struct paths {
    const struct arch_catcher *catcher;
    bool (*is_pad)(const void *table, const uint8_t *code);
    const void *table;
    struct start {
        const uint8_t *code;
        unsigned passed;  /* how many calls of the catcher's function return from here on */
    } starts[STARTS];     /* where branches and jumps lead to, each once */
    unsigned count, left; /* of starts; of instructions */
    unsigned ends;
};

static void add_start(struct paths *paths, const uint8_t *code, unsigned passed)
{
    for (unsigned i = 0; i < paths->count; i++)
        if (paths->starts[i].code == code && paths->starts[i].passed == passed)
            return;
    if (paths->count == STARTS)
        paths->ends |= PAD_UNKNOWN;
    else
        paths->starts[paths->count++] = (struct start){code, passed};
}

/* The beginning of the function, or of the part of it that lies together. NULL: no code. */
static const void *function_of(const uint8_t *code)
{
    struct dwarf_eh_bases bases = {NULL, NULL, NULL};
    return _Unwind_Find_FDE && _Unwind_Find_FDE((void *)(uintptr_t)code, &bases) ? bases.function : NULL;
}

/* Whether the call before the code may return to it. */
static bool may_return_to(const struct paths *paths, const uint8_t *code, const void *function)
{
    return !paths->is_pad(paths->table, code) && function_of(code) == function;
}

static unsigned follow(struct paths *paths, const uint8_t *code, unsigned passed)
{
    struct arch_instruction at;
    const void *function = function_of(code);
    for (; function && paths->left && arch_decode(code, &at); paths->left--, code = at.next) {
        unsigned meaning = at.way == ARCH_CALLS || at.way == ARCH_JUMPS ? meaning_of(&at, paths->catcher) : 0;
        if (meaning == CATCHES_OR_RETURNS && !passed)
            return PAD_CATCHES;
        if (meaning == CATCHES_OR_RETURNS)
            passed--;
        else if (meaning)
            return meaning;
        if (at.way == ARCH_BRANCHES || (at.way == ARCH_JUMPS && at.target))
            add_start(paths, at.target, passed);
        if (at.way == ARCH_JUMPS && at.target)
            return 0;
        if (at.way == ARCH_TRAPS)
            return PAD_DIES;
        if (at.way == ARCH_CALLS && !may_return_to(paths, at.next, function))
            return reports(&at) ? PAD_DIES : PAD_UNKNOWN;
        if (at.way >= ARCH_JUMPS)
            break;
    }
    return PAD_UNKNOWN;
}

unsigned arch_pad_ends(const uint8_t *pad, const struct arch_catcher *catcher, unsigned passed,
                       bool (*is_pad)(const void *table, const uint8_t *code), const void *table)
{
    struct paths paths = {.catcher = catcher, .is_pad = is_pad, .table = table, .left = INSTRUCTIONS};
    add_start(&paths, pad, passed);
    for (unsigned i = 0; i < paths.count; i++)
        paths.ends |= follow(&paths, paths.starts[i].code, paths.starts[i].passed);
    return paths.ends;
}
