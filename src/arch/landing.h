/*
 * Landing pads; for the files of src/arch only.
 */
#ifndef ARCH_LANDING_H
#define ARCH_LANDING_H

#include "arch.h"

/* libgcc's, and exported by LLVM's libunwind as well. */
struct dwarf_eh_bases {
    void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *ip, struct dwarf_eh_bases *bases) __attribute__((weak));

/* How the code of a landing pad may end. */
enum {
    PAD_RESUMES = 1,    /* the unwinding goes on */
    PAD_TERMINATES = 2, /* by std::terminate */
    PAD_CATCHES = 4,
    PAD_DIES = 8,    /* in another way */
    PAD_UNKNOWN = 16 /* in one that is not understood */
};

/* Returns all ways that are possible. The catcher's function returns from the first `passed` calls. Code does not fall
 * into a landing pad, of which is_pad(table, code) knows. */
unsigned arch_pad_ends(const uint8_t *pad, const struct arch_catcher *catcher, unsigned passed,
                       bool (*is_pad)(const void *table, const uint8_t *code), const void *table);

/* Whether the code begins with endbr64, which marks where jumps may go to. Returns the code behind that. */
const uint8_t *arch_skip_endbr64(const uint8_t *code);

#endif
