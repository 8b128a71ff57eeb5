/*
 * Exceptions that the library itself throws. The object and its flight: exception.h.
 */
#ifndef STRAND_THROW_H
#define STRAND_THROW_H

#include "core.h"

/* Throws STRAND_SYSTEM with a negated errno code. */
__attribute__((noreturn)) void throw_system(struct cb *me, int error, const char *what);
__attribute__((noreturn)) void throw_no_memory(struct cb *me, const char *what);

#endif
