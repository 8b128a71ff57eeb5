/*
 * Misuse of the interface: detected, reported, fatal.
 */
#ifndef STRAND_MISUSE_H
#define STRAND_MISUSE_H

#include "print.h"

/* Report and abort: the function, what was done, where the object was made. */
__attribute__((noreturn, format(printf, 3, 4))) void misuse(const char *function, const char *made, const char *format,
                                                            ...);
/* Where an object was made, in words, for `made`: MADE_WORDS bytes are enough. Each returns its buffer, or "". */
enum { MADE_WORDS = 400 };
#define MADE_ROOM (char[MADE_WORDS]){0}, MADE_WORDS
const char *made_scope(struct scope *scope, char *buffer, size_t size);
const char *made_strand(struct cb *c, char *buffer, size_t size);
/* Of a stale handle: as long as its memory serves nobody else, it is known. */
const char *made_stale(strand handle, char *buffer, size_t size);

/* Of an object of the user's, which says nothing else of itself. */
const char *made_at(const char *noun, const void *object, char *buffer, size_t size);

#define MISUSE(function, made, ...) misuse(function, made, __VA_ARGS__)
#define MISUSE_SCOPE(function, scope, ...) misuse(function, made_scope(scope, MADE_ROOM), __VA_ARGS__)
#define MISUSE_AT(function, noun, object, ...) misuse(function, made_at(noun, object, (char[64]){0}, 64), __VA_ARGS__)
#define MISUSE_STALE(function, handle, ...) misuse(function, made_stale(handle, MADE_ROOM), __VA_ARGS__)
#define MISUSE_STRAND(function, c, ...) misuse(function, made_strand(c, MADE_ROOM), __VA_ARGS__)

/* Misuse of what another run of the process has made; nothing of it is told, as that run may be giving it back. */
__attribute__((noreturn)) void misuse_foreign(const char *function, const char *noun);

/* Misuse of a run that has stayed in the parent when this process was forked; the runtime may be NULL. */
__attribute__((noreturn)) void misuse_forked(struct runtime *runtime, const char *function);
/* After a function of the user's, on a thread that is none of the scheduler's, or may be none by now. */
static inline void must_be_here(struct runtime *runtime, const char *function)
{
    if (subprocess_is_left(&runtime->sub))
        misuse_forked(runtime, function);
}

/* Misuse where what a function is about is NULL. */
__attribute__((noreturn)) void misuse_null_(const char *function, const char *noun);
static inline void must_be_there(const void *object, const char *noun, const char *function)
{
    if (UNLIKELY(!object))
        misuse_null_(function, noun);
}

/* Why the caller may not suspend: what it is in ("inside a no-suspend section"), and where that was opened. */
struct section_words {
    char where[192], made[MADE_WORDS];
};
struct section_words section_words(struct cb *me);
/* Blocking in a no-suspend section. */
void section_misuse_(struct cb *me, const char *function);

#endif
