/*
 * Places, frames and strands in words.
 */
#ifndef STRAND_PRINT_H
#define STRAND_PRINT_H

#include "core.h"

/* Formatted, up to 511 bytes, without memory; control characters but for the line's end as \xHH (base/plain.h). */
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
/* An errno code (of either sign) in words. */
const char *error_words(int code);
/* Why this thread was just refused memory for a stack: into text, which is returned. */
const char *refusal_words(struct thread *thread, int error, char *text, size_t room);
/* One line per frame: "    at function+0x12". */
void print_frames(int fd, void **ips, size_t count);
/* The same with the names that the caller has opened, or NULL, an indentation, and another word than "at". A function
 * that calls itself from one place makes one line. */
void print_trace(int fd, struct arch_names *names, int indent, const char *at, void **ips, size_t count);
/* The stack of the thread's strand has overflowed. ucontext: of the fault, which goes on after the report; NULL: the
 * canary was found damaged, and the program ends here. */
enum overflow { OVERFLOW_GUARD, OVERFLOW_STEPPED_OVER, OVERFLOW_CANARY };
void overflow_report(struct thread *thread, enum overflow how, void *ucontext);
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
#endif
