/*
 * The processor's counters and control words, for the files of src/arch only.
 */
#ifndef ARCH_X86_64_H
#define ARCH_X86_64_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

static inline uint64_t arch_tsc(void)
{
    return __builtin_ia32_rdtsc();
}

/* Ordered after everything before it, and before everything after it. */
static inline uint64_t arch_tsc_in_order(void)
{
    __builtin_ia32_lfence();
    uint64_t ticks = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return ticks;
}

/* Whether the time-stamp counter runs at one rate in all power states. */
static inline bool arch_tsc_is_invariant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

/* Whether signal handlers return to that address: mov $SYS_rt_sigreturn, %rax; syscall. */
static inline bool arch_is_signal_return(const void *ip)
{
    return __builtin_memcmp(ip, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9) == 0;
}

/* A system call that touches neither errno nor any other memory of the C library. Returns its result, or a negated
 * errno code. For a child that shares its parent's memory. */
__attribute__((always_inline)) static inline int64_t arch_raw_call(long number, uint64_t a, uint64_t b, uint64_t c,
                                                                   uint64_t d)
{
    register uint64_t fourth __asm__("r10") = d;
    int64_t result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

static inline uint32_t arch_mxcsr_read(void)
{
    uint32_t value;
    __asm__ volatile("stmxcsr %0" : "=m"(value));
    return value;
}

static inline void arch_mxcsr_write(uint32_t value)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(value));
}

#endif
