/*
 * Misuse of the interface: detected, reported, fatal.
 */
#ifndef STRAND_MISUSE_H
#define STRAND_MISUSE_H

#include "print.h"

/* Reports the function, the mistake, and where the object was made; then aborts. */
__attribute__((noreturn, format(printf, 3, 4))) void misuse(const char *function, const char *made, const char *format,
                                                            ...);
/* Write where an object was made, for `made`. MADE_WORDS bytes are enough. Each returns its buffer, or "". */
enum { MADE_WORDS = 400 };
#define MADE_ROOM (char[MADE_WORDS]){0}, MADE_WORDS
const char *misuse_made_scope(struct scope *scope, char *buffer, size_t size);
const char *misuse_made_strand(struct cb *c, char *buffer, size_t size);
/* For a stale handle. Returns "" if the memory serves another strand by now. */
const char *misuse_made_stale(strand handle, char *buffer, size_t size);

/* For an object in the user's memory: its address. */
const char *misuse_made_at(const char *noun, const void *object, char *buffer, size_t size);

#define MISUSE(function, made, ...) misuse(function, made, __VA_ARGS__)
#define MISUSE_SCOPE(function, scope, ...) misuse(function, misuse_made_scope(scope, MADE_ROOM), __VA_ARGS__)
#define MISUSE_AT(function, noun, object, ...)                                                                         \
    misuse(function, misuse_made_at(noun, object, (char[64]){0}, 64), __VA_ARGS__)
#define MISUSE_STALE(function, handle, ...) misuse(function, misuse_made_stale(handle, MADE_ROOM), __VA_ARGS__)
#define MISUSE_STRAND(function, c, ...) misuse(function, misuse_made_strand(c, MADE_ROOM), __VA_ARGS__)

/* Misuse of an object of another run of the process. The report does not read the object, which that run may be
 * freeing. */
__attribute__((noreturn)) void misuse_foreign(const char *function, const char *noun);

/* Misuse of a run that stayed in the parent when this process was forked. The runtime may be NULL. */
__attribute__((noreturn)) void misuse_forked(struct runtime *runtime, const char *function);
/* Called after a function of the user, which may have forked. */
static inline void must_be_here(struct runtime *runtime, const char *function)
{
    if (subprocess_is_left(&runtime->sub))
        misuse_forked(runtime, function);
}

/* Misuse: the object that the function works on is NULL. */
__attribute__((noreturn)) void misuse_null_(const char *function, const char *noun);
static inline void must_be_there(const void *object, const char *noun, const char *function)
{
    if (UNLIKELY(!object))
        misuse_null_(function, noun);
}

/* Why the caller must not suspend: the section that it is in ("inside a no-suspend section"), and where that was
 * opened. */
struct misuse_section_words {
    char where[192], made[MADE_WORDS];
};
struct misuse_section_words misuse_section_words(struct cb *me);
/* Misuse: blocking in a no-suspend section. */
void misuse_in_section_(struct cb *me, const char *function);

#endif
