/*
 * Where an exception would land: frames with tables as compilers of C++ write them, of a personality that is taken for
 * that of C++ here. Each frame's function calls `proceed`, which calls the next one or looks.
 */
#include "../../src/arch/state.h"
#include "arch_check.h"

#include <unwind.h>

_Unwind_Reason_Code landing_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                        struct _Unwind_Exception *exception, struct _Unwind_Context *context);
_Unwind_Reason_Code landing_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                        struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version, (void)actions, (void)class, (void)exception, (void)context;
    return _URC_CONTINUE_UNWIND;
}

/* Personalities: by the distance to them, and to a word that has their address. */
#define CXX "0x1b, landing_personality"
#define C "0x9b, landing_c"
__asm__(".section .data.rel.ro, \"aw\", @progbits\nlanding_c: .quad __gcc_personality_v0\n.text\n");

/* A function with the personality `who`, the instructions of its landing pad, and its table. */
#define FRAME(name, who, pad, table)                                                                                   \
    void name(void);                                                                                                   \
    __asm__(".text\n"                                                                                                  \
            ".globl " #name "\n.type " #name ", @function\n" #name ":\n"                                               \
            ".cfi_startproc\n.cfi_personality " who "\n.cfi_lsda 0x1b, .Ltable_" #name "\n"                            \
            "sub $8, %rsp\n.cfi_def_cfa_offset 16\n"                                                                   \
            ".Lbegin_" #name ": call landing_proceed\n.Lend_" #name ": add $8, %rsp\n.cfi_def_cfa_offset 8\nret\n"     \
            ".Lpad_" #name ": " pad "\nud2\n.cfi_endproc\n"                                                            \
            ".section .gcc_except_table, \"a\", @progbits\n.Ltable_" #name ": " table "\n.text\n")

#define CALLS_ULEB128(name, action)                                                                                    \
    ".byte 1\n.uleb128 .Lcalls_end_" #name " - .Lcalls_" #name "\n.Lcalls_" #name ":\n"                                \
    ".uleb128 .Lbegin_" #name " - " #name "\n.uleb128 .Lend_" #name " - .Lbegin_" #name "\n.uleb128 .Lpad_" #name      \
    " - " #name "\n.uleb128 " #action "\n.Lcalls_end_" #name ":\n"
#define CALLS_UDATA4(name, action)                                                                                     \
    ".byte 3\n.uleb128 .Lcalls_end_" #name " - .Lcalls_" #name "\n.Lcalls_" #name ":\n"                                \
    ".long .Lbegin_" #name " - " #name "\n.long .Lend_" #name " - .Lbegin_" #name "\n.long .Lpad_" #name " - " #name   \
    "\n.uleb128 " #action "\n.Lcalls_end_" #name ":\n"
#define TYPES(name, calls, actions, types)                                                                             \
    ".byte 0xff, 3\n.uleb128 .Ltypes_" #name " - .Ldistance_" #name "\n.Ldistance_" #name ":\n" calls actions types    \
    "\n.Ltypes_" #name ": "
#define NO_TYPES ".byte 0xff, 0xff\n"

#define HANDLE "mov %rax, %rdi\ncall landing_begins_catch"
#define HANDLE_BY_STUB "mov %rax, %rdi\ncall landing_stub"
#define HANDLE_BY_STUB_WITH_BND "endbr64\nmov %rax, %rdi\ncall landing_stub_with_bnd"
#define HANDLE_LATER "mov %rax, %rbx\ncall landing_cleans_up\nmov %rbx, %rdi\ncall landing_begins_catch"
#define TERMINATE_LATER "mov %rax, %rbx\ncall landing_cleans_up\nmov %rbx, %rdi\ncall landing_terminates"
#define END "call landing_cleans_up\ncall landing_ends"
#define END_BY_JUMP "call landing_cleans_up\njmp landing_ends"
#define END_BY_WORD "call landing_cleans_up\ncall *landing_word(%rip)"
#define RESUME "call landing_cleans_up\ncall _Unwind_Resume"
#define END_OR_RESUME "test %rbx, %rbx\njne 1f\ncall landing_ends\n1: call _Unwind_Resume"
#define END_OR_HANDLE_TYPE "cmp $1, %rdx\nje 1f\ncall landing_ends\n1: call landing_begins_catch"
#define END_OR_JUMP_ANYWHERE "test %rbx, %rbx\njne 1f\ncall landing_ends\n1: jmp *%rbx"
#define END_OR_UNKNOWN "test %rbx, %rbx\njne 1f\ncall landing_ends\n1: .byte 6"
#define END_OR_DIE "test %rbx, %rbx\njne 1f\ncall landing_ends\n1: call abort"
#define END_AFTER_A_LOOP "0: dec %rbx\njne 0b\njmp 1f\n1: call landing_ends"
#define END_OR_TRAP "test %rbx, %rbx\njne 1f\ncall landing_ends\n1: ud2"
#define END_OR(function) "test %rbx, %rbx\njne 1f\ncall landing_ends\n1: jmp " #function
#define LEAVE "call landing_leaves\ncall landing_ends"
#define LEAVE_TWO "test %rbx, %rbx\njne 1f\ncall landing_cleans_up\n1: call landing_leaves\n" LEAVE
#define TERMINATE "mov %rax, %rdi\ncall landing_terminates"
#define TERMINATE_WITH_ENDBR "endbr64\nmov %rax, %rdi\ncall landing_terminates"
#define EVERYTHING ".long 0"
#define A_TYPE ".long 1"

/* __cxa_begin_catch, and stubs for it; __clang_call_terminate; std::terminate; a destructor; what leaves a try block.
 */
void landing_begins_catch(void);
void landing_ends(void);
void landing_leaves(void);
__asm__(".text\n.globl landing_begins_catch\nlanding_begins_catch: ret\n"
        "landing_stub: jmp *landing_c(%rip)\nlanding_stub_with_bnd: endbr64\n.byte 0xf2\njmp *landing_c(%rip)\n"
        ".globl landing_ends\nlanding_ends: ud2\nlanding_cleans_up: ret\n.globl landing_leaves\nlanding_leaves: ret\n"
        "landing_terminates: push %rax\ncall landing_begins_catch\ncall landing_ends\nud2\n"
        ".section .data.rel.ro, \"aw\", @progbits\nlanding_word: .quad landing_ends\n.text\n");

/* Functions that end in a call, which so does not return. The linker exports the names of reports (Makefile). */
#define CALLS_LAST(name, call)                                                                                         \
    __asm__(".text\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" call "\n.cfi_endproc\n.size " #name      \
            ", . - " #name "\nud2\n")
__asm__(".text\n.globl __asan_report_here\n.type __asan_report_here, @function\n__asan_report_here: ud2\n"
        ".size __asan_report_here, . - __asan_report_here\n"
        ".globl __ubsan_handle_here\n.type __ubsan_handle_here, @function\n__ubsan_handle_here: ud2\n"
        ".size __ubsan_handle_here, . - __ubsan_handle_here\n");
CALLS_LAST(landing_reports, "call __asan_report_here");
CALLS_LAST(landing_handles, "call __ubsan_handle_here");
CALLS_LAST(landing_exits, "call exit@PLT");
CALLS_LAST(landing_calls_a_word, "call *landing_c(%rip)");
CALLS_LAST(landing_calls_no_name, "call landing_cleans_up");

FRAME(no_call_may_throw, CXX, "", NO_TYPES ".byte 1\n.uleb128 0\n");
FRAME(in_c, C, "", NO_TYPES ".byte 1\n.uleb128 0\n");
FRAME(cleans_up, CXX, "", NO_TYPES CALLS_ULEB128(cleans_up, 0));
FRAME(cleans_up_in_words, CXX, "", NO_TYPES CALLS_UDATA4(cleans_up_in_words, 0));
#define PADS_FROM_ELSEWHERE(name)                                                                                      \
    ".byte 0x1b\n.long " #name " - 16 - .\n.byte 0xff, 1\n.uleb128 .Lcalls_end_" #name " - .Lcalls_" #name             \
    "\n.Lcalls_" #name ":\n.uleb128 .Lbegin_" #name " - " #name "\n.uleb128 .Lend_" #name " - .Lbegin_" #name          \
    "\n.uleb128 .Lpad_" #name " - " #name " + 16\n.uleb128 0\n.Lcalls_end_" #name ":\n"
FRAME(pads_in_unknown_words, CXX, "", ".byte 0x4b, 0, 0, 0, 0, 0xff, 1\n.uleb128 0\n");
FRAME(pads_from_elsewhere_end, CXX, END, PADS_FROM_ELSEWHERE(pads_from_elsewhere_end));
FRAME(pads_from_elsewhere_resume, CXX, RESUME, PADS_FROM_ELSEWHERE(pads_from_elsewhere_resume));
#define CLEANS_UP(name, pad) FRAME(name, CXX, pad, NO_TYPES CALLS_ULEB128(name, 0))
CLEANS_UP(ends, END);
CLEANS_UP(ends_by_jump, END_BY_JUMP);
CLEANS_UP(ends_by_word, END_BY_WORD);
CLEANS_UP(ends_after_a_loop, END_AFTER_A_LOOP);
CLEANS_UP(ends_or_dies, END_OR_DIE);
CLEANS_UP(ends_or_traps, END_OR_TRAP);
CLEANS_UP(resumes, RESUME);
CLEANS_UP(ends_or_resumes, END_OR_RESUME);
CLEANS_UP(ends_or_jumps_anywhere, END_OR_JUMP_ANYWHERE);
CLEANS_UP(ends_or_is_unknown, END_OR_UNKNOWN);
CLEANS_UP(ends_or_reports, END_OR(landing_reports));
CLEANS_UP(ends_or_handles, END_OR(landing_handles));
CLEANS_UP(ends_or_exits, END_OR(landing_exits));
CLEANS_UP(ends_or_calls_a_word, END_OR(landing_calls_a_word));
CLEANS_UP(ends_or_calls_no_name, END_OR(landing_calls_no_name));
CLEANS_UP(leaves, LEAVE);
CLEANS_UP(leaves_two, LEAVE_TWO);
FRAME(catches_type_or_ends, CXX, END_OR_HANDLE_TYPE,
      TYPES(catches_type_or_ends, CALLS_ULEB128(catches_type_or_ends, 3), ".byte 0, 0, 1, 0x7d\n", A_TYPE));
FRAME(terminates_later, CXX, TERMINATE_LATER,
      TYPES(terminates_later, CALLS_ULEB128(terminates_later, 1), ".byte 1, 0\n", EVERYTHING));
FRAME(catches_all, CXX, HANDLE, TYPES(catches_all, CALLS_ULEB128(catches_all, 1), ".byte 1, 0\n", EVERYTHING));
FRAME(catches_by_stub, CXX, HANDLE_BY_STUB,
      TYPES(catches_by_stub, CALLS_ULEB128(catches_by_stub, 1), ".byte 1, 0\n", EVERYTHING));
FRAME(catches_by_bnd, CXX, HANDLE_BY_STUB_WITH_BND,
      TYPES(catches_by_bnd, CALLS_ULEB128(catches_by_bnd, 1), ".byte 1, 0\n", EVERYTHING));
FRAME(catches_later, CXX, HANDLE_LATER,
      TYPES(catches_later, CALLS_ULEB128(catches_later, 1), ".byte 1, 0\n", EVERYTHING));
FRAME(catches_type, CXX, HANDLE, TYPES(catches_type, CALLS_ULEB128(catches_type, 1), ".byte 1, 0\n", A_TYPE));
FRAME(catches_type_then_all, CXX, HANDLE,
      TYPES(catches_type_then_all, CALLS_ULEB128(catches_type_then_all, 3), ".byte 1, 0, 2, 0x7d\n",
            EVERYTHING "\n" A_TYPE));
FRAME(terminates, CXX, TERMINATE, TYPES(terminates, CALLS_ULEB128(terminates, 1), ".byte 1, 0\n", EVERYTHING));
FRAME(terminates_with_endbr, CXX, TERMINATE_WITH_ENDBR,
      TYPES(terminates_with_endbr, CALLS_UDATA4(terminates_with_endbr, 1), ".byte 1, 0\n", EVERYTHING));
FRAME(may_throw_nothing, CXX, HANDLE,
      TYPES(may_throw_nothing, CALLS_ULEB128(may_throw_nothing, 1), ".byte 0x7f, 0\n", EVERYTHING) ".byte 0\n");
FRAME(may_throw_a_type, CXX, HANDLE,
      TYPES(may_throw_a_type, CALLS_ULEB128(may_throw_a_type, 1), ".byte 0x7f, 0\n", EVERYTHING) ".byte 1, 0\n");

typedef void frame_fn(void);

static frame_fn *const *frames; /* to be called yet; the last is followed by NULL */
static const void *limit;
static bool landed;

static unsigned passed; /* how many calls of landing_leaves return */
static unsigned count_passed(const struct arch_catcher *catcher, uintptr_t from)
{
    (void)catcher;
    (void)from;
    return passed;
}
static const struct arch_catcher catcher = {landing_leaves, "landing_leaves", count_passed};

void landing_proceed(void);
NOINLINE void landing_proceed(void)
{
    if (*frames)
        (*frames++)();
    else
        landed = arch_unwind_ends_at(limit, &catcher) == NULL;
    __asm__ volatile(""); /* no jump to the next one */
}

/* A try block. */
static void limits(void)
{
    char frame[64];
    limit = frame;
    landing_proceed();
    __asm__ volatile("" : : "r"(frame) : "memory");
}

static bool lands(frame_fn *const *chain)
{
    frames = chain;
    limit = (const void *)UINTPTR_MAX;
    landing_proceed();
    return landed;
}

/* From the outermost inwards. */
#define LANDS(...) lands((frame_fn *const[]){__VA_ARGS__, NULL})

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK(LANDS(no_call_may_throw)); /* without C++ there is no such function */
    arch_state.cxx.personality = (const void *)(uintptr_t)landing_personality;
    arch_state.cxx.begin_catch = (void *(*)(void *))(uintptr_t)landing_begins_catch;
    arch_state.cxx.terminate = (const void *)(uintptr_t)landing_ends;
    CHECK(!LANDS(no_call_may_throw));
    CHECK(LANDS(in_c));
    CHECK(!LANDS(no_call_may_throw, in_c));
    CHECK(LANDS(cleans_up));
    CHECK(LANDS(cleans_up_in_words));
    CHECK(!LANDS(no_call_may_throw, cleans_up));
    CHECK(!LANDS(no_call_may_throw, cleans_up_in_words));
    CHECK(LANDS(pads_in_unknown_words));
    CHECK(!LANDS(pads_from_elsewhere_end));
    CHECK(LANDS(pads_from_elsewhere_resume));
    CHECK(!LANDS(ends));
    CHECK(!LANDS(ends_by_jump));
    CHECK(!LANDS(ends_by_word));
    CHECK(!LANDS(ends_after_a_loop));
    CHECK(!LANDS(ends_or_dies));
    CHECK(!LANDS(ends_or_traps));
    CHECK(!LANDS(resumes, ends));
    CHECK(!LANDS(ends, resumes));
    CHECK(LANDS(resumes));
    CHECK(LANDS(ends_or_resumes));
    CHECK(LANDS(ends_or_jumps_anywhere));
    CHECK(LANDS(ends_or_is_unknown));
    CHECK(!LANDS(ends_or_reports));
    CHECK(!LANDS(ends_or_handles));
    CHECK(LANDS(ends_or_exits));
    CHECK(LANDS(ends_or_calls_a_word));
    CHECK(LANDS(ends_or_calls_no_name));
    CHECK(LANDS(leaves));
    passed = 1;
    CHECK(!LANDS(leaves));
    CHECK(LANDS(leaves_two));
    passed = 2;
    CHECK(!LANDS(leaves_two));
    passed = 0;
    CHECK(!LANDS(catches_type_or_ends));
    CHECK(!LANDS(terminates_later));
    CHECK(LANDS(no_call_may_throw, catches_all));
    CHECK(LANDS(no_call_may_throw, catches_by_stub));
    CHECK(LANDS(no_call_may_throw, catches_by_bnd));
    CHECK(LANDS(no_call_may_throw, catches_later));
    CHECK(!LANDS(catches_all, no_call_may_throw));
    CHECK(!LANDS(no_call_may_throw, catches_type));
    CHECK(LANDS(no_call_may_throw, catches_type_then_all));
    CHECK(!LANDS(terminates));
    CHECK(!LANDS(terminates_with_endbr));
    CHECK(!LANDS(may_throw_nothing));
    CHECK(LANDS(may_throw_a_type));
    CHECK(LANDS(no_call_may_throw, limits));
    CHECK(!LANDS(limits, no_call_may_throw));
    return failures != 0;
}
