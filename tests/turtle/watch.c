/*
 * Stands between a program and SDL (LD_PRELOAD): a call that does not come from the main thread ends the program, and
 * at the end it says how many came. What is watched is all that the program calls: the file CALLS has a line CALL(name)
 * for each.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *watch_call(const char *name);

static unsigned long calls;

/* Where the call goes on. */
__attribute__((used)) void *watch_call(const char *name)
{
    if (gettid() != getpid()) {
        fprintf(stderr, "watch: %s was called on thread %d, and the main one is %d\n", name, (int)gettid(),
                (int)getpid());
        abort();
    }
    calls++;
    return dlsym(RTLD_NEXT, name);
}

__attribute__((destructor)) static void tell(void)
{
    fprintf(stderr, "watch: %lu calls, all on the main thread\n", calls);
}

/* With all registers that may have arguments kept. In its own section: without optimisation the compiler is in that of
 * what it put out last. */
#define CALL(name)                                                                                                     \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                           \
            "push %rdi\n push %rsi\n push %rdx\n push %rcx\n push %r8\n push %r9\n push %rax\n"                        \
            "sub $128, %rsp\n"                                                                                         \
            "movups %xmm0, (%rsp)\n movups %xmm1, 16(%rsp)\n movups %xmm2, 32(%rsp)\n movups %xmm3, 48(%rsp)\n"        \
            "movups %xmm4, 64(%rsp)\n movups %xmm5, 80(%rsp)\n movups %xmm6, 96(%rsp)\n movups %xmm7, 112(%rsp)\n"     \
            "lea 1f(%rip), %rdi\n call watch_call@PLT\n mov %rax, %r11\n"                                              \
            "movups (%rsp), %xmm0\n movups 16(%rsp), %xmm1\n movups 32(%rsp), %xmm2\n movups 48(%rsp), %xmm3\n"        \
            "movups 64(%rsp), %xmm4\n movups 80(%rsp), %xmm5\n movups 96(%rsp), %xmm6\n movups 112(%rsp), %xmm7\n"     \
            "add $128, %rsp\n"                                                                                         \
            "pop %rax\n pop %r9\n pop %r8\n pop %rcx\n pop %rdx\n pop %rsi\n pop %rdi\n jmp *%r11\n"                   \
            "1: .string \"" #name "\"\n.size " #name ", . - " #name "\n.popsection\n");

#ifdef CALLS
#include CALLS
#endif
