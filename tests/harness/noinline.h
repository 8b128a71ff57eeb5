/*
 * A function that reports and traces name keeps a frame of its own.
 */
#ifndef NOINLINE_H
#define NOINLINE_H

#define NOINLINE __attribute__((noinline))

#endif
