/*
 * Reports of exceptions that end the program. strand_exception_print is declared in include/strand/exception.h.
 */
#ifndef STRAND_EXCEPTION_PRINT_H
#define STRAND_EXCEPTION_PRINT_H

#include "exception.h"

/* Prints both exceptions, then aborts. */
__attribute__((noreturn)) void exception_print_and_die(const char *what, strand_exception *e, strand_exception *other);
/* For arch_on_lost: an exception can't get through the function that has this address. */
void exception_print_lost(void *ip);

#endif
