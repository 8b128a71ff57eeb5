/*
 * The log of a run.
 */
#ifndef STRAND_LOG_H
#define STRAND_LOG_H

#include "core.h"

/* To the log hook, or to standard error: a line for the exception, and one for each that it carries and that is no
 * interruption; at most as many as strand_exception_print has. NULL: nothing happens. */
void log_exception(struct runtime *runtime, const char *what, const strand_exception *e);
void log_text(struct runtime *runtime, const char *text);

#endif
