/*
 * Printing locations in the code, frames and strands.
 */
#ifndef STRAND_PRINT_H
#define STRAND_PRINT_H

#include "core.h"

/* Prints up to 511 bytes, without allocating. Control characters, except the newline at the end, become \xHH
 * (base/plain.h). */
void print_text(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the caller's trace. me is NULL outside of strands. */
void print_here(int fd, struct cb *me);
/* Writes the location of a return address: "function+0x12 (file.c:41)", without the line if that is not known. `names`
 * comes from arch_names_open, or is NULL. LOCATION_WORDS bytes are always enough. */
enum { LOCATION_WORDS = 288 };
const char *print_location_words(struct arch_names *names, void *ip, char *buffer, size_t size);
/* As print_location_words, with the line. Takes milliseconds: for reports of mistakes, not while threads are held or
 * strands run. */
const char *print_location_line(void *ip, char *buffer, size_t size);
/* Returns the text of an errno code of either sign. */
const char *print_error_words(int code);
/* Writes why this thread was just refused memory for a stack. Returns text. */
const char *print_refusal_words(struct thread *thread, int error, char *text, size_t room);
/* Prints a line per frame: " at function+0x12". */
void print_frames(int fd, void **ips, size_t count);
/* As print_frames, with the names that the caller has opened, or NULL, an indentation, and another word for "at".
 * Repeated frames of a recursive function make one line. */
void print_trace(int fd, struct arch_names *names, int indent, const char *at, void **ips, size_t count);
/* Reports that the stack of the thread's strand has overflowed. ucontext: the context of the fault; the report then
 * returns. NULL: no fault; the program ends here. */
enum overflow { OVERFLOW_GUARD, OVERFLOW_STEPPED_OVER, OVERFLOW_CANARY };
void print_overflow(struct thread *thread, enum overflow how, void *ucontext);
/* Diagnostics that src/debug registers for a run. The caller is a strand, or a thread of a pool that runs no strand and
 * holds no lock of its pool. The other threads are held meanwhile. */
struct reports {
    /* Prints all strands, as strand_dump does. Returns 0 or a negated errno code. */
    int (*dump)(struct thread *thread, int fd);
    /* As dump, to the log. */
    void (*dump_to_log)(struct thread *thread);
    /* Logs which strand waits for which, as strand_waits_print does. Without memory it logs a plain list of the
     * strands. */
    void (*waits_to_log)(struct thread *thread);
    /* Summarises that in a line of at most `size` - 1 bytes; 180 are enough. Without memory the line says so. Returns
     * whether strands wait for each other. */
    bool (*summarise_waits)(struct thread *thread, char *text, size_t size);
};
#endif
