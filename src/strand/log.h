/*
 * The log of a run.
 */
#ifndef STRAND_LOG_H
#define STRAND_LOG_H

#include "core.h"

/* Logs a line for the exception, and one for each exception that it carries and that is not an interruption: at most as
 * many as strand_exception_print prints. Does nothing if e is NULL. */
void log_exception(struct runtime *runtime, const char *what, const strand_exception *e);
void log_text(struct runtime *runtime, const char *text);

#endif
