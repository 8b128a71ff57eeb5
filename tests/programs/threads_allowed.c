/*
 * Prints strand_threads_allowed(). The argument says what the program does before: one-cpu restricts it to its first
 * CPU, unknown has the system refuse to tell the affinity (exit status 77 if the system cannot be brought to that), and
 * with four and many the system seems to have so many CPUs.
 */
#define _GNU_SOURCE
#include "strand.h"
#include "strand/pool.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SKIPPED 77

/* The CPUs that sched_getaffinity returns, if not 0; otherwise it asks the system. */
static int pretended, first, step, mask_bits;

static void pretend(int cpus, int the_first, int the_step, int bits)
{
    pretended = cpus;
    first = the_first;
    step = the_step;
    mask_bits = bits;
}

/* Instead of the C library's. As the system's, it needs room for all the CPUs that there can be. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    if (pretended == 0) {
        long written = syscall(SYS_sched_getaffinity, pid, size, set);
        if (written >= 0)
            memset((char *)set + written, 0, size - (size_t)written);
        return written < 0 ? -1 : 0;
    }
    if (size * 8 < (size_t)mask_bits) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(size, set);
    for (int i = 0; i < pretended; i++)
        CPU_SET_S((size_t)(first + i * step), size, set);
    return 0;
}

static int use_first_cpu_only(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return -1;
    int cpu = 0;
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

/* From here on the system call itself fails. */
static int hide_affinity(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    cpu_set_t set;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0 ||
        prctl(PR_SET_SECCOMP, (long)SECCOMP_MODE_FILTER, &program, 0L, 0L) != 0)
        return -1;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "one-cpu") == 0 && use_first_cpu_only() != 0)
        return 1;
    if (strcmp(how, "unknown") == 0 && hide_affinity() != 0)
        return SKIPPED;
    if (strcmp(how, "four") == 0)
        pretend(4, 1, 2, 64); /* of eight */
    if (strcmp(how, "many") == 0)
        pretend(1500, 100, 2, 4096);
    printf("%d\n", strand_threads_allowed());
    return 0;
}
