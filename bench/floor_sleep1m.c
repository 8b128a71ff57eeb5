/*
 * The floor of sleep1m: the first touch of a million pages that lie as far apart as stacks do. The kernel, and the host
 * below a virtual machine, make that cost; it varies by the minute. For sleep1m_shared: of as many bytes as the strands
 * have of live stack, side by side.
 */
#include "bench.h"

#include <sys/mman.h>

enum { STRANDS = BENCH_MANY(1000000), PAGE = 4096, APART = 64 * 1024, LIVE = 256 };
enum { UNCOUNTED = 128 }; /* pages: the kernel adds them up in batches */

int main(int argc, char **argv)
{
    bool shared = argc > 1 && strcmp(argv[1], "shared") == 0;
    size_t apart = shared ? PAGE : APART, pages = shared ? (size_t)STRANDS * LIVE / PAGE : STRANDS;
    size_t size = pages * apart;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bench_check(at != MAP_FAILED, "no address space");
    bench_check(madvise(at, size, MADV_NOHUGEPAGE) == 0, "huge pages can't be refused");
    int64_t before = bench_resident();
    int64_t cpu = bench_cpu();
    int64_t start = bench_now();
    for (size_t i = 0; i < pages; i++)
        ((volatile char *)at)[i * apart] = 1;
    int64_t taken = bench_now() - start;
    cpu = bench_cpu() - cpu;
    size_t touched = (size_t)(bench_resident() - before) / PAGE;
    bench_check(touched + UNCOUNTED > pages / 100 * 99 && touched < pages / 100 * 101 + UNCOUNTED,
                "%zu pages became resident", touched);
    bench_sample(shared ? "sleep1m_shared" : "sleep1m", "floor", 1, "s", (double)taken / 1e9);
    bench_sample(shared ? "sleep1m_shared_cpu" : "sleep1m_cpu", "floor", 1, "s", (double)cpu / 1e9);
    return 0;
}
