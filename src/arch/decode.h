/*
 * How instructions go on; for the files of src/arch only.
 */
#ifndef ARCH_DECODE_H
#define ARCH_DECODE_H

#include <stdbool.h>
#include <stdint.h>

enum arch_way { ARCH_GOES_ON, ARCH_CALLS, ARCH_BRANCHES, ARCH_JUMPS, ARCH_TRAPS, ARCH_ENDS };

struct arch_instruction {
    enum arch_way way;     /* ends: it returns, or jumps to where a register says */
    const uint8_t *next;   /* the instruction behind it */
    const uint8_t *target; /* of a call, branch or jump; NULL: not known, or in a word */
    const void *word;      /* the word that has the target of a call or jump; NULL: none, or not at a fixed address */
};

/* Decode the instruction at `code`. Returns false if it is unknown. */
bool arch_decode(const uint8_t *code, struct arch_instruction *instruction);

#endif
