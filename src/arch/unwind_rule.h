/*
 * How to get from one frame to its caller's, read once from the tables of the function and kept in a cache
 * (unwind_cached.c). For the files of src/arch only.
 */
#ifndef ARCH_UNWIND_RULE_H
#define ARCH_UNWIND_RULE_H

#include <stdint.h>

/* The registers that a function preserves, and the stack pointer, in a frame after a call has returned. The assembler
 * of unwind_x86_64.S and x86_64.S stores and loads them by their offsets. */
enum { ARCH_RULE_RBX, ARCH_RULE_RBP, ARCH_RULE_R12, ARCH_RULE_R13, ARCH_RULE_R14, ARCH_RULE_R15, ARCH_RULE_SAVED };
struct arch_frame {
    uint64_t saved[ARCH_RULE_SAVED];
    uint64_t sp, ip; /* ip: where the call returns to */
};

enum arch_rule_type {
    ARCH_RULE_NONE,   /* the caller's frame can't be found like this: libgcc has to */
    ARCH_RULE_END,    /* the frame has no caller */
    ARCH_RULE_TRACE,  /* a trace goes on to the caller's frame; a throw can't: libgcc has to unwind this one */
    ARCH_RULE_FOLLOW, /* a throw goes on to the caller's frame, too */
    ARCH_RULE_LAND    /* as TRACE, and a throw lands in the frame's clean-up, at `pad` */
};

/*
 * For one return address. The canonical frame address (CFA) is the stack pointer of the caller after the return: a
 * register's value plus an offset. The return address lies 8 bytes below it.
 */
struct arch_rule {
    uint64_t pad;
    int32_t cfa_offset;
    uint16_t pushed;                /* bytes of arguments on the stack that the landing pad does not expect */
    uint8_t type, cfa_is_rbp;       /* type: enum arch_rule_type; otherwise the CFA is relative to the stack pointer */
    int16_t saved[ARCH_RULE_SAVED]; /* where the register was saved, relative to the CFA; 0: it has not changed */
    int16_t unused[2];
};

/* Reads the rule of a return address. Not a cheap call. The rule is ARCH_RULE_NONE where anything is unusual. */
struct arch_rule arch_rule_read(uintptr_t ip);

#endif
