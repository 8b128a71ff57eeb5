/*
 * The parts for x86-64, System V, that C can't express: a setjmp, jumps back to it and to gcc's, and the frame that
 * catches foreign exceptions.
 *
 * The words of a jump buffer in form 1: rbx, rbp, r12, r13, r14, r15, the stack pointer after the return, the return
 * address. Like any setjmp it leaves MXCSR and the x87 control word as they are at the jump.
 */
        .text

/* The registers that a function preserves, from a jump buffer in form 1 or a struct arch_frame, at rdi. */
        .macro  load_preserved
        mov     0x00(%rdi), %rbx
        mov     0x08(%rdi), %rbp
        mov     0x10(%rdi), %r12
        mov     0x18(%rdi), %r13
        mov     0x20(%rdi), %r14
        mov     0x28(%rdi), %r15
        .endm

        .globl  strand_setjmp_
        .type   strand_setjmp_, @function
        .p2align 4
strand_setjmp_:
        .cfi_startproc
        endbr64
        mov     %rbx, 0x00(%rdi)
        mov     %rbp, 0x08(%rdi)
        mov     %r12, 0x10(%rdi)
        mov     %r13, 0x18(%rdi)
        mov     %r14, 0x20(%rdi)
        mov     %r15, 0x28(%rdi)
        lea     0x08(%rsp), %rdx
        mov     %rdx, 0x30(%rdi)
        mov     (%rsp), %rdx
        mov     %rdx, 0x38(%rdi)
        xor     %eax, %eax
        ret
        .cfi_endproc
        .size   strand_setjmp_, . - strand_setjmp_

/*
 * int64_t arch_clone_(uint64_t flags, void *stack_top, int *pidfd, void (*fn)(void *), void *arg): clone(2) of a child
 * that calls fn(arg) on its own stack, and does not return. The parent gets the child's number, or a negated errno
 * code. The clone of the C library is not used: sanitizers wrap it as a fork, and release locks twice if the two
 * processes share their memory.
 */
        .globl  arch_clone_
        .hidden arch_clone_
        .type   arch_clone_, @function
        .p2align 4
arch_clone_:
        .cfi_startproc
        endbr64
        and     $-16, %rsi
        sub     $16, %rsi
        mov     %rcx, (%rsi)
        mov     %r8, 8(%rsi)
        xor     %r10d, %r10d
        xor     %r8d, %r8d
        mov     $56, %eax
        syscall
        test    %rax, %rax
        jz      0f
        ret
0:      .cfi_undefined %rip
        xor     %ebp, %ebp
        pop     %rax
        pop     %rdi
        call    *%rax
        ud2
        .cfi_endproc
        .size   arch_clone_, . - arch_clone_

/* void arch_longjmp_(void **jump): its strand_setjmp_ returns 1. */
        .globl  arch_longjmp_
        .hidden arch_longjmp_
        .type   arch_longjmp_, @function
        .p2align 4
arch_longjmp_:
        .cfi_startproc
        endbr64
        load_preserved
        mov     $1, %eax
        mov     0x30(%rdi), %rsp
        jmp     *0x38(%rdi)
        .cfi_endproc
        .size   arch_longjmp_, . - arch_longjmp_

/*
 * void arch_longjmp_builtin_(void **jump): its __builtin_setjmp returns 1.
 *
 * The words of a jump buffer in form 0: the frame pointer, the address to continue at, the stack pointer. In a program
 * compiled, or optimised by the linker, with -fcf-protection=return or =full, the shadow stack pointer comes before the
 * stack pointer. That word is 0: the library is not marked for shadow stacks, so no program that contains it has one.
 * __builtin_longjmp is compiled for one of the two layouts; this jump decides by the buffer.
 */
        .globl  arch_longjmp_builtin_
        .hidden arch_longjmp_builtin_
        .type   arch_longjmp_builtin_, @function
        .p2align 4
arch_longjmp_builtin_:
        .cfi_startproc
        endbr64
        mov     0x00(%rdi), %rbp
        mov     0x08(%rdi), %rax
        mov     0x10(%rdi), %rdx
        test    %rdx, %rdx
        jnz     0f
        mov     0x18(%rdi), %rdx
0:      mov     %rdx, %rsp
        jmp     *%rax
        .cfi_endproc
        .size   arch_longjmp_builtin_, . - arch_longjmp_builtin_

/* void arch_unwind_land_(const struct arch_frame *, exception, pad): a landing pad expects the exception in rax, and 0,
 * the meaning of a clean-up, in rdx. */
        .globl  arch_unwind_land_
        .hidden arch_unwind_land_
        .type   arch_unwind_land_, @function
        .p2align 4
arch_unwind_land_:
        .cfi_startproc
        endbr64
        mov     %rsi, %rax
        mov     %rdx, %rcx
        xor     %edx, %edx
        load_preserved
        mov     0x30(%rdi), %rsp
        jmp     *%rcx
        .cfi_endproc
        .size   arch_unwind_land_, . - arch_unwind_land_

/* Where contexts begin: jumped to by Boost.Context, with a return address on the stack. */
        .globl  arch_begin_
        .hidden arch_begin_
        .type   arch_begin_, @function
        .p2align 4
arch_begin_:
        .cfi_startproc
        .cfi_undefined %rip
        endbr64
        xor     %ebp, %ebp
        jmp     *%r12
        .cfi_endproc
        .size   arch_begin_, . - arch_begin_

/* void *arch_call(void *(*fn)(void *), void *arg) */
        .globl  arch_call
        .hidden arch_call
        .type   arch_call, @function
        .p2align 4
arch_call:
        .cfi_startproc
        .cfi_personality 0x1b, arch_call_personality_
        endbr64
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        .cfi_remember_state
        pop     %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_restore_state
        .globl  arch_call_landing_
        .hidden arch_call_landing_
arch_call_landing_:                     /* with the foreign exception in rax */
        endbr64
        mov     %rax, %rdi
        call    arch_call_caught_
        ud2
        .cfi_endproc
        .size   arch_call, . - arch_call

/* void arch_san_release_(void *at), arch_san_acquire_(void *at): arch_order_*_ in C, with all general registers
 * preserved. Called by assembler from anywhere, so with any alignment of the stack. */
        .macro  order name, function
        .globl  \name
        .hidden \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        and     $-16, %rsp
        sub     $0x50, %rsp
        mov     %rax, 0x00(%rsp)
        mov     %rcx, 0x08(%rsp)
        mov     %rdx, 0x10(%rsp)
        mov     %rsi, 0x18(%rsp)
        mov     %rdi, 0x20(%rsp)
        mov     %r8, 0x28(%rsp)
        mov     %r9, 0x30(%rsp)
        mov     %r10, 0x38(%rsp)
        mov     %r11, 0x40(%rsp)
        call    \function
        mov     0x00(%rsp), %rax
        mov     0x08(%rsp), %rcx
        mov     0x10(%rsp), %rdx
        mov     0x18(%rsp), %rsi
        mov     0x20(%rsp), %rdi
        mov     0x28(%rsp), %r8
        mov     0x30(%rsp), %r9
        mov     0x38(%rsp), %r10
        mov     0x40(%rsp), %r11
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   \name, . - \name
        .endm

        order   arch_san_release_, arch_order_release_
        order   arch_san_acquire_, arch_order_acquire_

        .hidden arch_order_release_
        .hidden arch_order_acquire_
        .hidden arch_call_caught_
        .hidden arch_call_personality_
        .section .note.GNU-stack, "", @progbits
