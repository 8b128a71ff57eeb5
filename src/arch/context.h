/*
 * The jump, inline, because every switch pays for it. Included by arch.h only.
 *
 * A suspended context's frame, as Boost.Context leaves it on x86-64: MXCSR at 0, the x87 control word at 4, r12 r13 r14
 * r15 rbx rbp rip from 8 on; its stack pointer after the resumption is frame + 0x40.
 *
 * On some processors ldmxcsr takes 50 ns when it changes even a sticky exception flag. The ABI keeps only the control
 * bits across calls, so the flags of the frame may be overwritten by the current ones, and then ldmxcsr changes
 * nothing. On processors where it makes no difference, reading MXCSR costs more than it saves; so it is measured at the
 * start.
 */
#ifndef ARCH_CONTEXT_H
#define ARCH_CONTEXT_H

#define ARCH_MXCSR_FLAGS 0x3fu

ARCH_NOT_INSTRUMENTED static inline struct arch_transfer arch_context_jump(arch_context to, void *data)
{
    if (arch_mxcsr_is_slow) {
        uint32_t flags = __builtin_ia32_stmxcsr() & ARCH_MXCSR_FLAGS;
        /* By assembler, as sanitizers have their own opinion of words below the frames of another stack. */
        __asm__("andl %1, (%0)\n\torl %2, (%0)" : : "r"(to), "i"(~ARCH_MXCSR_FLAGS), "r"(flags) : "memory", "cc");
    }
    return jump_fcontext(to, data);
}

#endif
