/*
 * The floor of sleep1m: the first touch of a million pages that lie as far apart as stacks do. The kernel, and the host
 * below a virtual machine, make that cost; it varies by the minute.
 */
#include "bench.h"

#include <sys/mman.h>

enum { PAGES = 1000000, APART = 64 * 1024 };

int main(void)
{
    size_t size = (size_t)PAGES * APART;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bench_check(at != MAP_FAILED, "no address space");
    bench_check(madvise(at, size, MADV_NOHUGEPAGE) == 0, "huge pages can't be refused");
    int64_t before = bench_resident();
    int64_t cpu = bench_cpu();
    int64_t start = bench_now();
    for (size_t i = 0; i < PAGES; i++)
        ((volatile char *)at)[i * APART] = 1;
    int64_t taken = bench_now() - start;
    cpu = bench_cpu() - cpu;
    int64_t touched = (bench_resident() - before) / 4096;
    bench_check(touched > PAGES / 100 * 99 && touched < PAGES / 100 * 101, "%" PRId64 " pages became resident",
                touched);
    bench_sample("sleep1m", "floor", 1, "s", (double)taken / 1e9);
    bench_sample("sleep1m_cpu", "floor", 1, "s", (double)cpu / 1e9);
    return 0;
}
