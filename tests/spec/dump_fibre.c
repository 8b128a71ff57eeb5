/*
 * strand_dump shows the strands of shared fibres: where their frames are, and what these are.
 */
#define _GNU_SOURCE
#define SUITE dump_fibre
#include "test.h"

#include "dozing.h"

#include "strand/debug.h"
#include "strand/sync.h"

#include <sys/mman.h>
#include <unistd.h>

static NOINLINE void nod_on_a_shared_stack(int depth)
{
    char room[2000];
    __asm__ volatile("" : : "r"(room) : "memory");
    if (depth > 0) {
        nod_on_a_shared_stack(depth - 1);
    } else {
        dozing++;
        strand_sleep(FOREVER);
    }
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void *deep_sleeper(void *arg)
{
    nod_on_a_shared_stack(4);
    return arg;
}

/* The lines of one strand: from its name to the next strand's. */
static const char *lines_of(const char *text, const char *name)
{
    static char lines[4096];
    char head[64];
    snprintf(head, sizeof head, "strand '%s' ", name);
    const char *from = strstr(text, head);
    CHECK(from != NULL);
    const char *to = strstr(from + 1, "strand '");
    size_t size = to ? (size_t)(to - from) : strlen(from);
    CHECK(size < sizeof lines);
    memcpy(lines, from, size);
    lines[size] = 0;
    return lines;
}

static strand on_fibre(strand_scope scope, strand_fibre fibre, const char *name, strand_fn *fn)
{
    return strand_spawn_with(scope, STRAND_ATTR(.name = name, .fibre = fibre), fn, NULL, 0);
}

/* The last one that fell asleep is in the stack still; the others' frames are saved stacks. */
TEST_INSIDE(a_dump_shows_the_functions_of_strands_whose_frames_are_copied_out)
{
    STRAND_SCOPE(scope);
    dozing = 0;
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.name = "crowd"));
    on_fibre(scope, fibre, "first", sleeper);
    test_yield_until(&dozing, 1);
    on_fibre(scope, fibre, "second", deep_sleeper);
    test_yield_until(&dozing, 2);
    on_fibre(scope, fibre, "third", sleeper);
    test_yield_until(&dozing, 3);
    test_await_blocked("sleeps", 3);
    const char *text = test_dump();
    const char *lines = lines_of(text, "first");
    CHECK_CONTAINS(lines, "fibre 'crowd' 0, inactive; stack: ");
    CHECK_CONTAINS(lines, " bytes used, saved in ");
    CHECK_CONTAINS(lines, "blocked: sleeps");
    CHECK_CONTAINS(lines, "at doze_off+0x");
    CHECK_CONTAINS(lines, "at sleeper+0x");
    lines = lines_of(text, "second"); /* a mapping of its own */
    CHECK_CONTAINS(lines, "fibre 'crowd' 0, inactive; stack: ");
    CHECK_EQ(test_count(lines, "at nod_on_a_shared_stack+0x"), 5);
    CHECK_CONTAINS(lines, "at deep_sleeper+0x");
    lines = lines_of(text, "third");
    CHECK_CONTAINS(lines, "fibre 'crowd' 0, active; stack: ");
    CHECK_CONTAINS(lines, "at doze_off+0x");
    CHECK(strstr(lines, "saved") == NULL);
    strand_scope_cancel(scope, NULL);
}
TEST_OWN_STACKS(a_dump_shows_the_functions_of_strands_whose_frames_are_copied_out,
                "the last one that fell asleep is copied out as well");

static void *sleeper_with_much_open(void *arg)
{
    STRAND_SCOPE(scope);
    STRAND_DEADLINE(strand_in(2 * FOREVER));
    doze_off();
    return arg;
}

/* What it has open goes to its saved stack with its frames. */
TEST_INSIDE(a_dump_says_in_how_many_bytes_a_strand_is_saved)
{
    size_t saved = 0;
    strand_fibre_info info = {.size = sizeof info};
    STRAND_SCOPE(scope);
    dozing = 0;
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    on_fibre(scope, fibre, "first", sleeper_with_much_open);
    test_yield_until(&dozing, 1);
    on_fibre(scope, fibre, "second", sleeper);
    test_yield_until(&dozing, 2);
    test_await_blocked("sleeps", 2);
    const char *line = strstr(lines_of(test_dump(), "first"), "saved in ");
    CHECK(line && sscanf(line, "saved in %zu", &saved) == 1);
    strand_fibre_info_get(fibre, 0, &info);
    CHECK_EQ(saved, info.saved_bytes);
    strand_scope_cancel(scope, NULL);
}
TEST_OWN_STACKS(a_dump_says_in_how_many_bytes_a_strand_is_saved, "the second is saved as well");

TEST_INSIDE(a_dump_says_how_much_of_its_stack_a_strand_uses)
{
    size_t used = 0, stack = 0;
    STRAND_SCOPE(scope);
    dozing = 0;
    strand_spawn_with(scope, STRAND_ATTR(.name = "deep", .stack_size = 128 * 1024), deep_sleeper, NULL, 0);
    test_yield_until(&dozing, 1);
    test_await_blocked("sleeps", 1);
    const char *line = strstr(lines_of(test_dump(), "deep"), "stack: ");
    CHECK(line && sscanf(line, "stack: %zu of %zu bytes used", &used, &stack) == 2);
    CHECK(used > 10000 && used < 20000);
    CHECK_EQ(stack, 128 * 1024);
    strand_scope_cancel(scope, NULL);
}

TEST_INSIDE(a_dump_shows_strands_of_a_fibre_that_have_not_started)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 2));
    dozing = 0;
    on_fibre(scope, fibre, "one", sleeper);
    on_fibre(scope, fibre, "other", sleeper);
    const char *text = test_dump();
    CHECK_CONTAINS(text, "strand 'one' ");
    CHECK_CONTAINS(lines_of(text, "other"), "fibre 'fibre' 1");
    strand_scope_cancel(scope, NULL);
}

static void *dump_itself(void *arg)
{
    const char *lines = lines_of(test_dump(), "dumper");
    CHECK_CONTAINS(lines, "fibre 'fibre' 0, active; stack: ");
    CHECK_CONTAINS(lines, "running on thread");
    CHECK_CONTAINS(lines, "at dump_itself+0x");
    return arg;
}

TEST_INSIDE(a_strand_of_a_fibre_may_dump)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 256 * 1024));
    on_fibre(scope, fibre, "dumper", dump_itself);
    strand_scope_join(scope);
}

static void *yields(void *arg)
{
    strand_yield();
    return arg;
}

static void *come_and_go(void *rounds)
{
    for (intptr_t i = 0; i < (intptr_t)rounds; i++) {
        STRAND_SCOPE(scope);
        strand_fibre fibre = strand_fibre_open(scope, NULL);
        on_fibre(scope, fibre, "short", test_return);
        on_fibre(scope, fibre, "yields", yields);
        strand_scope_join(scope);
    }
    return NULL;
}

static _Atomic int spins, released;

static void *spin_until_released(void *arg)
{
    spins = 1;
    while (!released)
        continue;
    return arg;
}

static void *dump_while_fibres_switch(void *arg)
{
    STRAND_SCOPE(scope);
    spins = released = 0;
    strand_spawn(scope, spin_until_released, NULL);
    test_yield_until(&spins, 1);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, come_and_go, TEST_PTR(test_scale(2000)));
    for (int i = 0; i < 20; i++)
        CHECK_CONTAINS(test_dump(), "strands: ");
    released = 1;
    strand_scope_join(scope);
    return arg;
}

/* One thread comes to no switch, so nobody is sure of standing still. */
TEST_REAL(a_dump_reads_fibres_that_are_closed_meanwhile)
{
    strand_options options = test_options();
    test_set_threads(&options, 4);
    strand_run(&options, dump_while_fibres_switch, NULL);
}

static _Atomic int made;
static strand_event dumped;

/* Without coming to a switch. */
static void *make_many(void *count)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (intptr_t i = 0; i < (intptr_t)count; i++) {
        on_fibre(scope, fibre, "one of many", sleeper);
        made++;
    }
    strand_event_wait(&dumped);
    strand_scope_cancel(scope, NULL);
    return count;
}

/* Returns how many strands are printed, and in *said how many the dump says there are; 0: not all stood still. */
static size_t printed_of(int fd, size_t *said)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = mmap(NULL, (size_t)size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(size > 0 && text != MAP_FAILED);
    text[size] = 0;
    const char *head = strstr(text, "strands: ");
    CHECK(head && sscanf(head, "strands: %zu", said) == 1);
    size_t count = test_count(text, "strand '");
    if (strstr(text, "could not be held"))
        *said = 0;
    munmap(text, (size_t)size + 1);
    return count;
}

/* Between the moment at which memory is taken and that at which the others are held. */
TEST_REAL_RACE(a_dump_has_room_for_strands_that_are_made_when_it_begins)
{
    enum { MANY = TEST_TSAN ? 5000 : 20000 }; /* gcc 12's TSan knows of 8128 strands */
    size_t said = 0;
    int fd = memfd_create("dump", MFD_CLOEXEC);
    CHECK(fd >= 0);
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "maker"), make_many, TEST_PTR(MANY), 0);
    while (made == 0)
        strand_yield();
    CHECK_EQ(strand_dump(fd, STRAND_DUMP(.grouping = STRAND_DUMP_SINGLE)), 0);
    size_t printed = printed_of(fd, &said);
    strand_event_set(&dumped);
    strand_scope_join(scope);
    CHECK(said == 0 || said == MANY + 2);
    CHECK(printed >= said);
    close(fd);
}
