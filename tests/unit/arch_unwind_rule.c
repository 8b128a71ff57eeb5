/*
 * Reading the rules of frames: each instruction of call frame information that compilers write for C, and what has to
 * be left to libgcc. The functions never run.
 */
#include "../../src/arch/unwind_rule.h"
#include "arch_check.h"

/* A function of the directives, with a return address behind them, at `NAME`_here. */
#define FUNCTION(name, before, after)                                                                                  \
    __asm__(".text\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" before "nop\n.globl " #name              \
            "_here\n.hidden " #name "_here\n" #name "_here:\nnop\n" after ".cfi_endproc\n.size " #name ", . - " #name  \
            "\n");                                                                                                     \
    extern const char name##_here[]

static struct arch_rule read_near(const char *here, intptr_t distance)
{
    return arch_rule_read((uintptr_t)here + (uintptr_t)distance);
}

static struct arch_rule read_at(const char *here)
{
    return read_near(here, 0);
}

/* The rule has these values: the CFA's register and offset, and where rbx, rbp, r12 to r15 were saved. */
static void check_rule(const char *here, bool cfa_is_rbp, int offset, const int saved[ARCH_RULE_SAVED])
{
    struct arch_rule rule = read_at(here);
    CHECK_EQUAL(rule.type, ARCH_RULE_FOLLOW);
    CHECK_EQUAL(rule.cfa_is_rbp, cfa_is_rbp);
    CHECK_EQUAL(rule.cfa_offset, offset);
    for (int i = 0; i < ARCH_RULE_SAVED; i++)
        CHECK_EQUAL(rule.saved[i], saved[i]);
}
#define CHECK_RULE(name, cfa_is_rbp, offset, ...)                                                                      \
    check_rule(name##_here, cfa_is_rbp, offset, (const int[ARCH_RULE_SAVED]){__VA_ARGS__})

FUNCTION(empty, "", "");
FUNCTION(pushes,
         "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\npush %r15\n.cfi_adjust_cfa_offset 8\n"
         ".cfi_offset %r15, -24\n",
         "pop %r15\n.cfi_def_cfa_offset 16\n.cfi_restore %r15\nnop\n");
FUNCTION(frame_pointer, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nnop\n.cfi_def_cfa_register %rbp\n",
         "");
FUNCTION(both_at_once,
         "nop\n.cfi_def_cfa %rbp, 32\n.cfi_offset %r12, -24\n.cfi_offset %r13, -32\n.cfi_offset %r14, -40\n", "");

static void saved_registers_and_the_frame_are_found(void)
{
    CHECK_RULE(empty, false, 8, 0, 0, 0, 0, 0, 0);
    CHECK_RULE(pushes, false, 24, -16, 0, 0, 0, 0, -24);
    CHECK_RULE(frame_pointer, true, 16, 0, -16, 0, 0, 0, 0);
    CHECK_RULE(both_at_once, true, 32, 0, 0, -24, -32, -40, 0);
}

FUNCTION(restored, ".cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\nnop\n.cfi_restore %rbx\n.cfi_def_cfa_offset 8\n",
         "");
FUNCTION(restored_long, ".cfi_offset %rbx, -16\nnop\n.cfi_escape 0x06, 3\n", "");
FUNCTION(same_value, ".cfi_offset %r12, -16\nnop\n.cfi_same_value %r12\n", "");
FUNCTION(remembered,
         ".cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\nnop\n.cfi_remember_state\n.cfi_restore %rbx\n"
         ".cfi_def_cfa_offset 8\nret\n.cfi_restore_state\n",
         "");
FUNCTION(remembered_twice,
         ".cfi_remember_state\n.cfi_offset %rbx, -16\nnop\n.cfi_remember_state\n.cfi_offset %r12, -24\n"
         "nop\n.cfi_restore_state\nnop\n",
         ".cfi_restore_state\nnop\n");
FUNCTION(extended, ".cfi_escape 0x05, 14, 3\n", "");

static void registers_are_restored_and_remembered(void)
{
    CHECK_RULE(restored, false, 8, 0, 0, 0, 0, 0, 0);
    CHECK_RULE(restored_long, false, 8, 0, 0, 0, 0, 0, 0);
    CHECK_RULE(same_value, false, 8, 0, 0, 0, 0, 0, 0);
    CHECK_RULE(remembered, false, 16, -16, 0, 0, 0, 0, 0);
    CHECK_RULE(remembered_twice, false, 8, -16, 0, 0, 0, 0, 0);
    CHECK_RULE(extended, false, 8, 0, 0, 0, 0, -24, 0);
}

/* Advances of one, two and four bytes' operands. */
FUNCTION(far,
         ".cfi_def_cfa_offset 16\n.skip 100, 0x90\n.cfi_def_cfa_offset 24\n.skip 1000, 0x90\n.cfi_def_cfa_offset 32\n"
         ".skip 70000, 0x90\n.cfi_def_cfa_offset 40\n",
         ".cfi_def_cfa_offset 48\n.skip 70000, 0x90\n");

static void only_what_comes_before_the_call_counts(void)
{
    CHECK_RULE(far, false, 40, 0, 0, 0, 0, 0, 0);
    CHECK_EQUAL(read_near(far_here, -1).cfa_offset, 32);
    CHECK_EQUAL(read_near(far_here, -70001).cfa_offset, 24);
    CHECK_EQUAL(read_near(far_here, 2).cfa_offset, 48);
}

FUNCTION(pushed, ".cfi_escape 0x2e, 0x10\n", ".cfi_escape 0x2e, 0x00\nnop\n");

static void arguments_on_the_stack_are_known(void)
{
    CHECK_EQUAL(read_at(pushed_here).pushed, 16);
    CHECK_EQUAL(read_near(pushed_here, 2).pushed, 0);
}

/* ---- what is left to libgcc ---------------------------------------------------------------------------------------
 */

FUNCTION(expression, ".cfi_escape 0x10, 3, 2, 0x77, 8\n", "");
FUNCTION(value_expression, ".cfi_escape 0x16, 3, 2, 0x77, 8\n", "");
FUNCTION(cfa_expression, ".cfi_escape 0x0f, 2, 0x77, 8\n", "");
FUNCTION(other_register, ".cfi_def_cfa %r10, 8\n", "");
FUNCTION(in_a_register, ".cfi_register %rbx, %r11\n", "");
FUNCTION(signal_frame, ".cfi_signal_frame\n", "");
FUNCTION(elsewhere, ".cfi_offset %rip, -16\n", "");
FUNCTION(stack_pointer, ".cfi_offset %rsp, -16\n", "");
FUNCTION(too_far, ".cfi_offset %rbx, -40000\n", "");
FUNCTION(nothing_to_go_back_to, ".cfi_escape 0x0b\n", "");
FUNCTION(remembered_too_often, ".rept 9\n.cfi_remember_state\n.endr\n", "");
FUNCTION(undefined_stack_pointer, ".cfi_undefined %rsp\n", "");

static void what_is_unusual_is_left_to_libgcc(void)
{
    const char *const unusual[] = {
        expression_here,
        value_expression_here,
        cfa_expression_here,
        other_register_here,
        in_a_register_here,
        signal_frame_here,
        elsewhere_here,
        stack_pointer_here,
        too_far_here,
        nothing_to_go_back_to_here,
        remembered_too_often_here,
        undefined_stack_pointer_here,
        (const char *)&unusual,
        NULL,
    };
    for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++)
        CHECK_EQUAL(read_at(unusual[i]).type, ARCH_RULE_NONE);
}

FUNCTION(end_of_the_stack, ".cfi_undefined %rip\n", "");
FUNCTION(other_language, ".cfi_personality 0x1b, empty\n", ""); /* which is asked even without a table of its own */
FUNCTION(undefined_register, ".cfi_offset %rbx, -16\nnop\n.cfi_undefined %rbx\n", "");

FUNCTION(of_no_concern,
         ".cfi_undefined %rax\n.cfi_same_value %rcx\n.cfi_offset %rdx, -16\nnop\n.cfi_restore %rdx\n"
         ".cfi_offset %r15, -24\nnop\n.cfi_same_value %r15\n",
         "");

static void a_trace_knows_frames_that_a_throw_leaves_to_libgcc(void)
{
    CHECK_EQUAL(read_at(end_of_the_stack_here).type, ARCH_RULE_END);
    CHECK_EQUAL(read_at(other_language_here).type, ARCH_RULE_TRACE);
    CHECK_EQUAL(read_at(other_language_here).cfa_offset, 8);
    CHECK_RULE(undefined_register, false, 8, 0, 0, 0, 0, 0, 0);
    CHECK_RULE(of_no_concern, false, 8, 0, 0, 0, 0, 0, 0);
}

/* ---- clean-ups ----------------------------------------------------------------------------------------------------
 */

static const char *volatile returns_to;

static NOINLINE void call(void)
{
    returns_to = __builtin_return_address(0);
}

static void (*volatile callee)(void) = call; /* may throw, for all that the compiler knows */

static volatile int cleaned;

static void clean(const int *value)
{
    cleaned += *value;
}

static NOINLINE int has_a_clean_up(void)
{
    int value __attribute__((cleanup(clean))) = 1;
    callee();
    return value;
}

static NOINLINE int has_none(void)
{
    callee();
    return 1 + (returns_to != NULL);
}

static void the_clean_up_of_a_call_is_found(void)
{
    has_a_clean_up();
    struct arch_rule rule = read_at(returns_to);
    CHECK_EQUAL(rule.type, ARCH_RULE_LAND);
    CHECK(rule.pad != 0);
    has_none();
    rule = read_at(returns_to);
    CHECK(SANITIZED || (rule.type == ARCH_RULE_FOLLOW && rule.pad == 0)); /* TSan has a clean-up in each function */
}

int main(void)
{
    saved_registers_and_the_frame_are_found();
    registers_are_restored_and_remembered();
    only_what_comes_before_the_call_counts();
    arguments_on_the_stack_are_known();
    what_is_unusual_is_left_to_libgcc();
    a_trace_knows_frames_that_a_throw_leaves_to_libgcc();
    the_clean_up_of_a_call_is_found();
    return failures != 0;
}
