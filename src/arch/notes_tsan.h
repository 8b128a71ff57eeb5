/*
 * The notes for ThreadSanitizer. Every context is a fiber of TSan's, and a switch between two of them means no order:
 * what one strand did does not happen before what the next one does just because a thread runs both. Order is announced
 * by arch_note_release and arch_note_acquire only. Included by notes.h only.
 */
#ifndef ARCH_NOTES_TSAN_H
#define ARCH_NOTES_TSAN_H

#include <sanitizer/tsan_interface.h>

#define ARCH_NOTES_KIND arch_notes_are_tsan_
#define ARCH_NOTES_SEPARATE 1
#define ARCH_NOTES_MEMBARRIER 0
/* See arch_futex_wait. */
#define ARCH_NOTES_SLEEP_NS (INT64_C(20) * 1000 * 1000)
