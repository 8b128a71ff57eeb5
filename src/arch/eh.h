/*
 * Reading the tables that compilers write for unwinding: DWARF's encodings, and a function's call sites (the LSDA of
 * the Itanium C++ ABI, as gcc and clang write it). For the files of src/arch only.
 */
#ifndef ARCH_EH_H
#define ARCH_EH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The encoding of a value in a table: its format, its base, and whether it is the address of the value. */
enum { EH_FORMAT = 0x0f, EH_RELATIVE_TO_ITSELF = 0x10, EH_RELATIVE = 0x70, EH_INDIRECT = 0x80, EH_OMITTED = 0xff };

uint64_t arch_eh_uleb128(const uint8_t **at);
int64_t arch_eh_sleb128(const uint8_t **at);
/* The size in bytes of a fixed format; 0: the format is not fixed. */
size_t arch_eh_size(uint8_t encoding);
/* Reads a number, without its base. */
uint64_t arch_eh_value(uint8_t encoding, const uint8_t **at);
/* Reads an address, and stores it. Returns false, without advancing, if the encoding is unknown. */
bool arch_eh_address(uint8_t encoding, const uint8_t **at, uintptr_t *address);

/* A function's table of call sites. Landing pads are relative to `pads`. */
struct arch_eh_table {
    const uint8_t *calls, *actions, *types; /* types: NULL: it has none */
    uint8_t call_encoding, type_encoding;
    uintptr_t pads;
};

/* A range of calls in a table. */
struct arch_eh_site {
    uint64_t begin, size; /* in bytes from the start of the function */
    const uint8_t *pad;   /* NULL: none */
    uint64_t action;      /* 0: to clean up */
};

/* Returns false if an encoding is unknown. */
bool arch_eh_table_read(const uint8_t *lsda, uintptr_t function, struct arch_eh_table *table);
struct arch_eh_site arch_eh_site_read(const struct arch_eh_table *table, const uint8_t **at);
/* Finds the call site of the code at `offset` from the function's start. Returns false if no site has it. */
bool arch_eh_site_find(const struct arch_eh_table *table, uint64_t offset, struct arch_eh_site *site);

/* The personality of C code, which runs clean-ups and catches nothing. */
extern const char __gcc_personality_v0[];

#endif
