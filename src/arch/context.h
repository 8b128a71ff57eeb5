/*
 * The jump and the thread's word, inline, since every switch and every call pays for them. Included by arch.h only.
 *
 * A suspended context's frame, as Boost.Context leaves it on x86-64: MXCSR at 0, the x87 control word at 4, r12 r13 r14
 * r15 rbx rbp rip from 8 on; its stack pointer after the resumption is frame + 0x40.
 *
 * On some processors ldmxcsr takes 50 ns if it changes even a sticky exception flag; on others the next stmxcsr does.
 * The ABI preserves only the control bits across calls, so the flags in the frame may be overwritten by the current
 * ones, and then ldmxcsr changes nothing. On yet other processors, reading MXCSR costs more than it saves; so the start
 * measures it.
 */
#ifndef ARCH_CONTEXT_H
#define ARCH_CONTEXT_H

#define ARCH_MXCSR_FLAGS 0x3fu

/* jump_fcontext, entered by a jump with its return address pushed by hand. The processor predicts returns from the
 * calls that it has seen. A call that returns on another stack would shift these predictions by one, and the next
 * return of the resumed strand would be mispredicted. Data below the stack pointer is lost: the library is compiled
 * with -mno-red-zone. */
ARCH_NOT_INSTRUMENTED __attribute__((always_inline)) static inline struct arch_transfer arch_jump_(arch_context to,
                                                                                                   void *data)
{
    struct arch_transfer transfer;
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "pushq %%rax\n\t"
                     "jmp jump_fcontext\n"
                     "1:"
                     : "=a"(transfer.from), "=d"(transfer.data), "+D"(to), "+S"(data)
                     :
                     : "rcx", "r8", "r9", "r10", "r11", "memory", "cc", ARCH_VECTORS_);
    return transfer;
}

ARCH_NOT_INSTRUMENTED static inline struct arch_transfer arch_context_jump(arch_context to, void *data)
{
    if (arch_mxcsr_is_slow) {
        uint32_t flags = __builtin_ia32_stmxcsr();
        /* By assembler: sanitizers track the words below the frames of another stack. */
        __asm__ volatile("xorl (%1), %0\n\tandl %2, %0\n\tjz 1f\n\txorl %0, (%1)\n1:"
                         : "+r"(flags)
                         : "r"(to), "i"(ARCH_MXCSR_FLAGS)
                         : "memory", "cc");
    }
    return arch_jump_(to, data);
}

/* memcpy of another context's frames, parts of which sanitizers have poisoned. */
ARCH_NOT_INSTRUMENTED static inline void arch_copy(void *to, const void *from, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/* Overwrite secrets: by assembler, since it must not be optimised away, and is not instrumented. */
ARCH_NOT_INSTRUMENTED static inline void arch_wipe(void *at, size_t bytes, unsigned char value)
{
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
}

extern HIDDEN __thread void *arch_self_ __attribute__((tls_model("initial-exec")));

/* The generation of the thread's dynamic thread vector, its first word; the second word of the thread's descriptor
 * points to it. glibc and musl both do so. */
static inline uint64_t arch_locals_generation(void)
{
    uint64_t generation;
    __asm__ volatile("movq %%fs:8, %0\n\tmovq (%0), %0" : "=r"(generation));
    return generation;
}

static inline void *arch_self(void)
{
    void *self;
    __asm__ volatile("movq arch_self_@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(self));
    return self;
}

#endif
