/*
 * What sanitizers and valgrind have to be told about stacks, switches and order. Empty inlines in ordinary builds; no
 * #if at the calls. The order at a switch: arch_note_leave on the old stack, the jump, arch_note_arrive on the new one,
 * also when a context is entered for the first time. A note may be copied while its stack runs. Included by arch.h
 * only.
 *
 * The kind of the build is the compiler's, or STRAND_TSAN: files that are compiled without TSan's instrumentation, and
 * announce their order by arch_note_release and arch_note_acquire, still need TSan's notes. STRAND_VALGRIND asks for
 * valgrind's, which cost a few instructions per stack. All files of a build agree: else it does not link (notes.c).
 *
 *   thread      n is the calling thread's own stack
 *   make, end   n is the stack of a new context; that context has ended, and is left already
 *   leave       from `from` to `to`; `ends`: `from` is never gone back to
 *   suspended   n is left for good or for now at `context`; resumed: n is about to be gone on with. Any thread
 *   look        this memory is read before it is written, on purpose
 *   unmap       this memory is about to be given back, whatever stacks lie in it
 *   save        n, suspended at `at`, is copied out: `bytes` from there on go to an image of arch_image_size(bytes), in
 *               which the caller has stored `beside` bytes more right behind them. load: it is copied in again
 *   start       the same of an image that stays, for a new context; drop: that image is not used any more
 *   release     what this thread did so far happens before what follows an arch_note_acquire of the same address
 *
 * Besides, a kind says: ARCH_NOTES_SEPARATE, whether every strand needs a context of its own, so that two which run one
 * after the other on one stack are not taken as ordered; ARCH_NOTES_MEMBARRIER, whether arch_membarrier may be used;
 * ARCH_NOTES_THREADS, how many threads of its own it has; ARCH_NOTES_HANDLES, how much address space it leaves to the
 * handle range; ARCH_NOT_INSTRUMENTED, the attribute that hides a function from TSan. All functions need it that are
 * left by arch_longjmp and so never report their return, or that touch at a switch what is ordered only after it.
 */
#ifndef ARCH_NOTES_H
#define ARCH_NOTES_H

#ifdef __has_feature
#define ARCH_HAS_FEATURE_(x) __has_feature(x)
#else
#define ARCH_HAS_FEATURE_(x) 0
#endif

#if defined(__SANITIZE_THREAD__) || ARCH_HAS_FEATURE_(thread_sanitizer) || defined(STRAND_TSAN)
#include "notes_tsan.h"
#elif defined(__SANITIZE_ADDRESS__) || ARCH_HAS_FEATURE_(address_sanitizer)
#include "notes_asan.h"
#elif defined(STRAND_VALGRIND)
#include "notes_valgrind.h"
#else
#include "notes_none.h"
#endif

#endif
