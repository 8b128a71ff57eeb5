/*
 * Where unwinding begins and continues, for x86-64, System V.
 */
        .text

/*
 * void arch_unwind(struct arch_flight *), also the public strand_unwind_; and the public strand_resume_(struct
 * _Unwind_Exception *), which ends landing pads in place of _Unwind_Resume. Both give the registers of the caller's
 * frame, as a struct arch_frame, to a function that goes on from there by cached rules. It returns if the forced unwind
 * has to go on from there instead; then neither has left a frame to be unwound.
 */
        .macro  unwinds cached, slowly
        sub     $0x48, %rsp
        .cfi_def_cfa_offset 0x50
        mov     %rbx, 0x00(%rsp)
        mov     %rbp, 0x08(%rsp)
        mov     %r12, 0x10(%rsp)
        mov     %r13, 0x18(%rsp)
        mov     %r14, 0x20(%rsp)
        mov     %r15, 0x28(%rsp)
        lea     0x50(%rsp), %rax
        mov     0x48(%rsp), %rdx
        mov     %rax, 0x30(%rsp)
        mov     %rdx, 0x38(%rsp)
        mov     %rdi, 0x40(%rsp)
        mov     %rsp, %rsi
        call    \cached
        mov     0x40(%rsp), %rdi
        add     $0x48, %rsp
        .cfi_def_cfa_offset 0x08
        jmp     \slowly
        .endm

        .globl  arch_unwind
        .hidden arch_unwind
        .type   arch_unwind, @function
        .globl  strand_unwind_
        .type   strand_unwind_, @function
        .p2align 4
arch_unwind:
strand_unwind_:
        .cfi_startproc
        endbr64
        unwinds arch_unwind_begin_, arch_unwind_slowly_
        .cfi_endproc
        .size   arch_unwind, . - arch_unwind
        .size   strand_unwind_, . - strand_unwind_

        .globl  strand_resume_
        .type   strand_resume_, @function
        .p2align 4
strand_resume_:
        .cfi_startproc
        endbr64
        movabs  $0x4c49425354524e44, %rax       /* ARCH_CLASS_OURS */
        cmp     %rax, (%rdi)
        jne     _Unwind_Resume@PLT
        unwinds arch_unwind_resume_, arch_resume_slowly_
        .cfi_endproc
        .size   strand_resume_, . - strand_resume_

/* void arch_frame_here_(struct arch_frame *): rbp, the stack pointer and the address behind the call. */
        .globl  arch_frame_here_
        .hidden arch_frame_here_
        .type   arch_frame_here_, @function
        .p2align 4
arch_frame_here_:
        .cfi_startproc
        endbr64
        lea     0x08(%rsp), %rax
        mov     (%rsp), %rdx
        mov     %rbp, 0x08(%rdi)
        mov     %rax, 0x30(%rdi)
        mov     %rdx, 0x38(%rdi)
        ret
        .cfi_endproc
        .size   arch_frame_here_, . - arch_frame_here_

        .hidden arch_unwind_begin_
        .hidden arch_unwind_slowly_
        .hidden arch_unwind_resume_
        .hidden arch_resume_slowly_
        .section .note.GNU-stack, "", @progbits
