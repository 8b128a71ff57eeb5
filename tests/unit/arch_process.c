/*
 * The state that is the process's: chunks of the handle range, serial numbers, fork, fault handlers and those before
 * them.
 */
#include "arch_co.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static void starting_twice_changes_nothing(void)
{
    char *handles = arch_handles;
    size_t size = arch_handles_size;
    CHECK(handles != NULL && size >= ARCH_CHUNK);
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK(arch_handles == handles && arch_handles_size == size);
}

/* contract 9.5 */
static void chunks_are_aligned_and_zero_for_ever(void)
{
    enum { CHUNKS = 40 };
    void *chunks[CHUNKS];
    for (int i = 0; i < CHUNKS; i++) {
        CHECK_EQUAL(arch_chunk_take(0, &chunks[i]), 0);
        CHECK_EQUAL((uintptr_t)chunks[i] % ARCH_CHUNK, 0);
        CHECK(arch_in_handles(chunks[i]) && arch_in_handles((char *)chunks[i] + ARCH_CHUNK - sizeof(uint64_t)));
        CHECK(!arch_in_handles((char *)chunks[i] + 1) && !arch_in_handles((char *)chunks[i] + 4));
        CHECK_EQUAL(*(uint64_t *)chunks[i], 0);
        memset(chunks[i], 1, ARCH_CHUNK);
    }
    for (int i = 0; i < CHUNKS; i++)
        arch_chunk_give(0, chunks[i], ARCH_CHUNK);
    for (int i = 0; i < CHUNKS; i++)
        CHECK_EQUAL(*(uint64_t *)chunks[i], 0); /* still readable */
    for (int i = 0; i < CHUNKS; i++) {
        void *again;
        CHECK_EQUAL(arch_chunk_take(0, &again), 0);
        CHECK_EQUAL(*(uint64_t *)again, 0);
        bool known = false;
        for (int k = 0; k < CHUNKS; k++)
            known |= chunks[k] == again;
        CHECK(known); /* what was given back goes first */
    }
    for (int i = 0; i < CHUNKS; i++)
        arch_chunk_give(0, chunks[i], ARCH_CHUNK);
    void *last;
    CHECK_EQUAL(arch_chunk_take(0, &last), 0);
    memset(last, 1, 100);
    arch_chunk_give(0, last, 100); /* so few are wiped */
    CHECK_EQUAL(arch_chunk_take(0, &last), 0);
    for (int i = 0; i < 128; i++)
        CHECK_EQUAL(((char *)last)[i], 0);
    arch_chunk_give(0, last, 100);
    int local;
    CHECK(!arch_in_handles(&local) && !arch_in_handles(NULL) && !arch_in_handles(&failures));
}

static void chunks_of_one_kind_never_come_to_another(void)
{
    void *first, *other, *again;
    CHECK_EQUAL(arch_chunk_take(1, &first), 0);
    memset(first, 1, 1000);
    arch_chunk_give(1, first, 1000);
    CHECK_EQUAL(arch_chunk_take(2, &other), 0);
    CHECK(other != first);
    CHECK_EQUAL(arch_chunk_take(1, &again), 0);
    CHECK(again == first);
    for (int i = 0; i < 1000; i++)
        CHECK_EQUAL(((char *)again)[i], 0);
    arch_chunk_give(1, again, 1000);
    arch_chunk_give(2, other, 0);
}

static _Atomic uint64_t serial_sum;

static void *take_serials(void *arg)
{
    uint64_t sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += arch_serials(3);
    atomic_fetch_add(&serial_sum, sum);
    return arg;
}

static void serials_are_nobody_else_s(void)
{
    enum { THREADS = 4, BLOCKS = THREADS * 1000 };
    uint64_t first = arch_serials(1) + 1;
    CHECK(first > 1);
    arch_thread threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL(arch_thread_start(&threads[i], take_serials, NULL, "serials"), 0);
    for (int i = 0; i < THREADS; i++)
        arch_thread_join(threads[i]);
    CHECK_EQUAL(arch_serials(1), first + 3 * BLOCKS);
    uint64_t expected = BLOCKS * first + 3 * ((uint64_t)BLOCKS * (BLOCKS - 1) / 2);
    CHECK(atomic_load(&serial_sum) == expected);
}

static void *signal_memory;
static char *guarded;
static void *volatile nowhere;

static bool report(void *address, void *ucontext)
{
    void *ips[8];
    char line[128];
    bool overflow = guarded && (char *)address >= guarded && (char *)address < guarded + arch_page_size();
    size_t frames = arch_trace_signal(ucontext, ips, 8);
    int length = snprintf(line, sizeof line, "fault: overflow %d frames %d\n", overflow, frames >= 4);
    arch_write(STDERR_FILENO, line, (size_t)length);
    return overflow;
}

static _Atomic bool stop;

/* Holds the lock of the process's state most of the time. */
static void *enter_and_leave(void *arg)
{
    while (!atomic_load(&stop)) {
        void *chunk;
        if (arch_chunk_take(0, &chunk) == 0)
            arch_chunk_give(0, chunk, ARCH_CHUNK);
        for (int i = 0; i < 20; i++)
            if (arch_signals_enter(report) == 0)
                arch_signals_leave();
    }
    return arg;
}

static void use_in_child(void)
{
    void *chunk;
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK_EQUAL(arch_chunk_take(0, &chunk), 0);
    CHECK_EQUAL(*(uint64_t *)chunk, 0);
    arch_chunk_give(0, chunk, ARCH_CHUNK);
    if (arch_membarrier_works)
        arch_membarrier();
}

/* contract 9.7 */
static void a_child_can_go_on(void)
{
    arch_thread thread;
    CHECK_EQUAL(arch_thread_start(&thread, enter_and_leave, NULL, "state"), 0);
    for (int i = 0; i < 20; i++)
        CHECK_CHILD(use_in_child);
    atomic_store(&stop, true);
    arch_thread_join(thread);
}

static void little_address_space(void)
{
    struct rlimit limit = {(rlim_t)4 << 30, (rlim_t)4 << 30};
    setrlimit(RLIMIT_AS, &limit);
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK(arch_handles_size >= (size_t)1 << 26 && arch_handles_size < (size_t)4 << 30);
    void *chunk;
    CHECK_EQUAL(arch_chunk_take(0, &chunk), 0);
    CHECK(arch_in_handles(chunk));
    while (arch_chunk_take(0, &chunk) == 0)
        ;
    CHECK_EQUAL(arch_chunk_take(0, &chunk), -ENOMEM);
}

static void meet_a_bug(void)
{
    base_bug("here.c", 12, "what");
}

static void meet_a_long_bug(void)
{
    char what[1000];
    memset(what, 'x', sizeof what - 1);
    what[sizeof what - 1] = '\0';
    base_bug("here.c", 12, what);
}

static void a_bug_says_where_and_aborts(void)
{
    char text[4096];
    int status = in_child(meet_a_bug, text, sizeof text);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(text, "here.c:12: what") != NULL);
    status = in_child(meet_a_long_bug, text, sizeof text);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(text, "here.c:12: xxxx") != NULL && strlen(text) >= 500);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void before(int number, siginfo_t *info, void *ucontext)
{
    (void)ucontext;
    char line[64];
    int length = snprintf(line, sizeof line, "before: %d %d\n", number == SIGSEGV, info->si_addr == nowhere);
    arch_write(STDERR_FILENO, line, (size_t)length);
    _exit(77);
}

static NOINLINE int recurse(int depth)
{
    volatile char bytes[512];
    bytes[0] = (char)depth;
    return depth < 0 ? 0 : recurse(depth + 1) + bytes[0];
}

static void overflow(struct co *co)
{
    guarded = co->low;
    recurse(0);
}

static void run_over(void)
{
    struct co co;
    co_make(&co, overflow, NULL);
    CHECK_EQUAL(arch_signals_enter(report), 0);
    CHECK_EQUAL(arch_signals_thread_enter(&signal_memory), 0);
    co_resume(&co);
}

static void an_overflow_is_reported_and_then_kills(void)
{
    char text[8192];
    int status = in_child(run_over, text, sizeof text);
    CHECK(strncmp(text, "fault: overflow 1 frames 1\n", 27) == 0);
    CHECK(strstr(text + 1, "fault:") == NULL);
    if (SANITIZED)
        CHECK(status != 0); /* by the handler of the sanitizer, which was there before */
    else
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void fault_over(struct sigaction *action)
{
    nowhere = (void *)(uintptr_t)0x10;
    sigaction(SIGSEGV, action, NULL);
    CHECK_EQUAL(arch_signals_enter(report), 0);
    CHECK_EQUAL(arch_signals_enter(report), 0);
    arch_signals_leave();
    CHECK_EQUAL(arch_signals_thread_enter(&signal_memory), 0);
    *(volatile char *)nowhere = 1;
}

static void fault_over_handler(void)
{
    fault_over(&(struct sigaction){.sa_sigaction = before, .sa_flags = SA_SIGINFO});
}

static void before_plain(int number)
{
    before(number, &(siginfo_t){.si_addr = nowhere}, NULL);
}

static void fault_over_plain(void)
{
    fault_over(&(struct sigaction){.sa_handler = before_plain, .sa_flags = (int)SA_RESETHAND});
}

/* contract 9.7 */
static void a_fault_goes_on_to_who_had_it_before(void)
{
    char text[8192];
    void (*const ways[])(void) = {fault_over_handler, fault_over_plain};
    for (int i = 0; i < 2; i++) {
        int status = in_child(ways[i], text, sizeof text);
        CHECK(strcmp(text, "fault: overflow 0 frames 1\nbefore: 1 1\n") == 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 77);
    }
}

static void fault_over_ignored(void)
{
    fault_over(&(struct sigaction){.sa_handler = SIG_IGN});
}

static void raise_over_ignored(void)
{
    sigaction(SIGSEGV, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    CHECK_EQUAL(arch_signals_enter(report), 0);
    raise(SIGSEGV);
    arch_signals_leave();
}

static void raise_over_default(void)
{
    sigaction(SIGSEGV, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    CHECK_EQUAL(arch_signals_enter(report), 0);
    raise(SIGSEGV);
}

static void a_signal_that_was_ignored_or_default_stays_so(void)
{
    char text[8192];
    CHECK_CHILD(raise_over_ignored);
    int status = in_child(fault_over_ignored, text, sizeof text);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(strstr(text, "fault:") != NULL);
    status = in_child(raise_over_default, text, sizeof text);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(strstr(text, "fault:") == NULL);
}

static void handler_of(int number, struct sigaction *out)
{
    sigaction(number, NULL, out);
}

static void other(int number)
{
    (void)number;
}

/* contract 9.7 */
static void leaving_puts_everything_back(void)
{
    struct sigaction first, now;
    stack_t stack_first, stack_now;
    handler_of(SIGSEGV, &first);
    sigaltstack(NULL, &stack_first);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(arch_signals_enter(report), 0);
        CHECK_EQUAL(arch_signals_thread_enter(&signal_memory), 0);
        handler_of(SIGSEGV, &now);
        CHECK(now.sa_sigaction != first.sa_sigaction);
        sigaltstack(NULL, &stack_now);
        CHECK(stack_now.ss_sp != stack_first.ss_sp && stack_now.ss_size >= 65536);
        arch_signals_thread_leave(signal_memory);
        arch_signals_leave();
        handler_of(SIGSEGV, &now);
        CHECK(now.sa_sigaction == first.sa_sigaction);
        sigaltstack(NULL, &stack_now);
        CHECK(stack_now.ss_flags == stack_first.ss_flags && stack_now.ss_sp == stack_first.ss_sp);
    }
}

/* A handler that somebody installed meanwhile stays, and no ring of handlers comes into being. */
/* contract 9.7 */
static void a_later_handler_is_left_alone(void)
{
    struct sigaction first, now, action = {.sa_handler = other};
    handler_of(SIGSEGV, &first);
    CHECK_EQUAL(arch_signals_enter(report), 0);
    struct sigaction ours;
    sigaction(SIGSEGV, &action, &ours);
    arch_signals_leave();
    handler_of(SIGSEGV, &now);
    CHECK(now.sa_handler == other);
    CHECK_EQUAL(arch_signals_enter(report), 0);
    handler_of(SIGSEGV, &now);
    CHECK(now.sa_handler == other);
    sigaction(SIGSEGV, &ours, NULL);
    arch_signals_leave();
    handler_of(SIGSEGV, &now);
    CHECK(now.sa_sigaction == first.sa_sigaction);
}

/* The other handler restores ours before the next enter: it is ours again, and is removed at the end. */
static void a_handler_that_was_put_back_is_taken_up_again(void)
{
    struct sigaction first, ours, now, action = {.sa_handler = other};
    handler_of(SIGSEGV, &first);
    CHECK_EQUAL(arch_signals_enter(report), 0);
    sigaction(SIGSEGV, &action, &ours);
    arch_signals_leave();
    sigaction(SIGSEGV, &ours, NULL);
    CHECK_EQUAL(arch_signals_enter(report), 0);
    handler_of(SIGSEGV, &now);
    CHECK(now.sa_sigaction == ours.sa_sigaction);
    arch_signals_leave();
    handler_of(SIGSEGV, &now);
    CHECK(now.sa_sigaction == first.sa_sigaction);
}

static bool fault_again(void *address, void *ucontext)
{
    report(address, ucontext);
    return *(volatile char *)nowhere != 0;
}

static void fault_in_the_report(void)
{
    nowhere = (void *)(uintptr_t)0x10;
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = before, .sa_flags = SA_SIGINFO | SA_NODEFER}, NULL);
    CHECK_EQUAL(arch_signals_enter(fault_again), 0);
    CHECK_EQUAL(arch_signals_thread_enter(&signal_memory), 0);
    *(volatile char *)nowhere = 1;
}

static void a_fault_of_the_report_itself_is_not_reported(void)
{
    char text[8192];
    int status = in_child(fault_in_the_report, text, sizeof text);
    CHECK(strcmp(text, "fault: overflow 0 frames 1\nbefore: 1 1\n") == 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 77);
}

/* The page of a file that has become shorter. */
static void run_into_a_hole(void)
{
    int file = memfd_create("hole", 0);
    sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = before, .sa_flags = SA_SIGINFO}, NULL);
    CHECK_EQUAL(ftruncate(file, 1), 0);
    char *page = mmap(NULL, arch_page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK_EQUAL(ftruncate(file, 0), 0);
    nowhere = page;
    CHECK_EQUAL(arch_signals_enter(report), 0);
    CHECK_EQUAL(arch_signals_thread_enter(&signal_memory), 0);
    *page = 1;
}

static void a_bus_error_is_a_fault_too(void)
{
    char text[8192];
    int status = in_child(run_into_a_hole, text, sizeof text);
    CHECK(strcmp(text, "fault: overflow 0 frames 1\nbefore: 0 1\n") == 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 77);
}

/* Memory has gone bad that nobody reads at the moment: a notice, after which the program may go on. */
static void hear_of_bad_memory(void)
{
    siginfo_t info = {.si_signo = SIGBUS, .si_code = BUS_MCEERR_AO};
    sigaction(SIGBUS, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    CHECK_EQUAL(arch_signals_enter(report), 0);
    CHECK_EQUAL(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGBUS, &info), 0);
    arch_signals_leave();
}

static void a_notice_of_bad_memory_can_be_ignored(void)
{
    char text[8192];
    CHECK_EQUAL(in_child(hear_of_bad_memory, text, sizeof text), 0);
    CHECK(strstr(text, "fault:") == NULL);
}

int main(void)
{
    if (!SANITIZED)
        CHECK_CHILD(little_address_space);
    CHECK_EQUAL(arch_process_start(), 0);
    starting_twice_changes_nothing();
    chunks_are_aligned_and_zero_for_ever();
    chunks_of_one_kind_never_come_to_another();
    serials_are_nobody_else_s();
    a_child_can_go_on();
    a_bug_says_where_and_aborts();
    an_overflow_is_reported_and_then_kills();
    a_fault_goes_on_to_who_had_it_before();
    a_signal_that_was_ignored_or_default_stays_so();
    leaving_puts_everything_back();
    a_later_handler_is_left_alone();
    a_handler_that_was_put_back_is_taken_up_again();
    if (!SANITIZED) {
        a_fault_of_the_report_itself_is_not_reported();
        a_bus_error_is_a_fault_too();
        a_notice_of_bad_memory_can_be_ignored();
    }
    return failures != 0;
}
