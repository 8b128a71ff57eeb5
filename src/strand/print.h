/*
 * Exceptions and stacks in words, and the ends of the program.
 */
#ifndef STRAND_PRINT_H
#define STRAND_PRINT_H

#include "core.h"

/* Formatted, up to 511 bytes, in one call and without memory. */
void print_text(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Where the calling strand is; me is NULL outside of strands. */
void print_here(int fd, struct cb *me);
/* A place of the program, by the address that the call there returns to: "function+0x12 (file.c:41)", or without the
 * line where that is not known. `names` is of arch_names_open, or NULL. PLACE_WORDS bytes are enough for any. */
enum { PLACE_WORDS = 288 };
const char *place_words(struct arch_names *names, void *ip, char *buffer, size_t size);
/* The same, with the line, in milliseconds: for a report of a mistake, not while strands are held or under way. */
const char *place_found(void *ip, char *buffer, size_t size);
/* What a strand does that is blocked so: "waits for mutex", before the name of what it waits for. "" for BLOCKED_NOT.
 */
const char *blocked_words(unsigned blocked);
/* One line per frame: "    at function+0x12". */
void print_frames(int fd, void **ips, size_t count);
/* Both exceptions, then abort. */
__attribute__((noreturn)) void print_and_die(const char *what, strand_exception *e, strand_exception *other);
/* The stack of the thread's strand has overflowed. ucontext: of the fault, which goes on after the report; NULL: the
 * canary was found damaged, and the program ends here. */
enum overflow { OVERFLOW_GUARD, OVERFLOW_STEPPED_OVER, OVERFLOW_CANARY };
void overflow_report(struct thread *thread, enum overflow how, void *ucontext);
/* The C++ runtime ends the program. */
void print_terminating(void);
/* An exception can't get through the function that has this address: for arch_on_lost. */
void print_lost(void *ip);
/* What the diagnostics print of a run. src/debug has the functions, and the run knows them. The caller is a strand, or
 * a thread of a pool that runs none and holds no lock of its pool; the other threads are held meanwhile. */
struct reports {
    /* All strands, as strand_dump writes them. Returns 0 or a negated errno code. */
    int (*dump)(struct thread *thread, int fd);
    /* The same to the log. */
    void (*dump_to_log)(struct thread *thread);
    /* Which strand waits for which, as strand_waits_print writes it, to the log. Without memory it is a plain list of
     * the strands. */
    void (*waits_to_log)(struct thread *thread);
    /* The same in a line of at most `size` - 1 bytes, of which 180 are enough. Without memory the line says so. Returns
     * whether strands wait for each other. */
    bool (*summarise_waits)(struct thread *thread, char *text, size_t size);
};
/* To the log hook, or to standard error: a line for the exception, and one for each that it carries and that is no
 * interruption; at most as many as strand_exception_print has. NULL: nothing happens. */
void log_exception(struct runtime *runtime, const char *what, const strand_exception *e);
void log_text(struct runtime *runtime, const char *text);

#endif
