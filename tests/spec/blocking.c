/*
 * What holds for every function that may block: each is refused inside of a no-suspend section and outside of strands,
 * and each is a cancellation point, which in a cancelled strand throws before it does anything, and in a shield does
 * what it is for. Functions and calls are those of tests/harness/blocking.h; what is refused is run by
 * tests/programs/blocking.c.
 */
#define _GNU_SOURCE
#define SUITE blocking
#define ONE_SEED_IN 10 /* each seed is a hundred functions */
#include "test.h"

#include "blocking.h"

#include <fcntl.h>
#include <poll.h>

STRAND_MESSAGE_DEFINE(echoed, NULL);

static struct test_output o;

static void misuse(const char *where, const struct blocking *row)
{
    char arg[100], expected[100];
    snprintf(arg, sizeof arg, "%s:%s", where, row->name);
    snprintf(expected, sizeof expected, "misuse of %s:", row->reported);
    test_program(&o, "blocking", arg);
    if (strstr(o.out, "still alive"))
        CHECK_FAIL("%s is no misuse", arg);
    if (!o.signalled || o.status != SIGABRT)
        CHECK_FAIL("%s ends with %d", arg, o.status);
    CHECK_CONTAINS(o.err, expected);
}

/* ---- where it is refused --------------------------------------------------------------------------- */

/* N-04, contract 4.68, 5.8 */
TEST_PROGRAM(whatever_may_block_is_misuse_in_a_section_and_the_report_says_where_that_was_opened)
{
    for (size_t i = 0; i < BLOCKING_COUNT; i++) {
        misuse("section", &blocking[i]);
        CHECK_CONTAINS(o.err, "inside a no-suspend section");
        char *place = strstr(o.out, "section at "), *end = place ? strchr(place, '\n') : NULL;
        CHECK(end != NULL);
        *end = 0;
        CHECK_CONTAINS(o.err, place + strlen("section at "));
    }
}

/* contract 4.68 */
TEST_PROGRAM(whatever_may_block_is_misuse_on_a_plain_thread)
{
    for (size_t i = 0; i < BLOCKING_COUNT; i++) {
        misuse("outside", &blocking[i]);
        CHECK_CONTAINS(o.err, "from a plain thread");
    }
}

/* contract 4.68 */
TEST_PROGRAM(whatever_may_block_is_misuse_in_an_offloaded_function)
{
    for (size_t i = 0; i < BLOCKING_COUNT; i++) {
        misuse("crew", &blocking[i]);
        CHECK_CONTAINS(o.err, "from a plain thread");
    }
}

/* ---- cancellation points ---------------------------------------------------------------------------- */

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static int lowest_free_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    close(fd);
    return fd;
}

/* Whatever call it was, nothing of what calls may do is done. */
static void check_untouched(struct things *t)
{
    struct sockaddr_un peer;
    socklen_t length = sizeof peer;
    strand_port_info info = {.size = sizeof info};
    int number = 0;
    CHECK_EQ(strand_scope_count(t->children), 1);
    CHECK_EQ(strand_scope_count(t->first), 1);
    CHECK_EQ(strand_scope_count(t->collecting), 1);
    CHECK(strand_mutex_held(&t->held));
    CHECK_EQ(strand_mutex_try_lock(&t->mutex), 0);
    strand_mutex_unlock(&t->mutex);
    CHECK_EQ(strand_rwlock_try_write(&t->rwlock), 0);
    strand_rwlock_write_done(&t->rwlock);
    CHECK_EQ(strand_semaphore_permits(&t->semaphore), 2);
    CHECK(!strand_once_done(&t->once) && !t->ran);
    CHECK_EQ(strand_prio_in_flight(&t->prio), 0);
    CHECK_EQ(strand_limit_in_flight(&t->limit), 0);
    CHECK_EQ(strand_limit_in_flight(&t->bound), 0);
    CHECK_EQ(strand_chan_length(t->full), 1);
    CHECK_EQ(strand_chan_length(t->empty), 0);
    CHECK_EQ(strand_port_info_get(t->messages, &info), 0);
    CHECK_EQ(info.taken, 1);
    CHECK(is_readable(t->in[0]) && t->byte == 0);
    CHECK(!is_readable(t->out[0]));
    CHECK(is_readable(t->listener));
    CHECK(getpeername(t->socket, (struct sockaddr *)&peer, &length) != 0);
    CHECK(!is_readable(t->port_owner));
    strand_case signal = strand_on_signal(t->signals, &number);
    CHECK_EQ(strand_select(&signal, 1, STRAND_SELECT_NOW), 0);
    CHECK_EQ(number, SIGUSR1);
}

struct trial {
    const struct blocking *row;
    struct things *things;
    int64_t result;
};

static void *call(void *arg)
{
    struct trial *trial = arg;
    trial->result = trial->row->call(trial->things);
    return NULL;
}

static void call_interrupted(const struct blocking *row, struct things *t)
{
    struct trial trial = {row, t, 0};
    int64_t next = t->ticker.next_ns;
    int fd = lowest_free_descriptor();
    strand_exception *e = strand_try(call, &trial, NULL);
    if (!e)
        CHECK_FAIL("%s does not throw in a cancelled strand", row->name);
    CHECK_KIND(e, &STRAND_INTERRUPTED);
    CHECK_EQ(strand_exception_progress(e), 0);
    strand_exception_release(e);
    CHECK_EQ(lowest_free_descriptor(), fd);
    CHECK_EQ(t->ticker.next_ns, next);
    check_untouched(t);
}

static void *call_all_interrupted(void *arg)
{
    for (size_t i = 0; i < BLOCKING_COUNT; i++)
        CHECK(with_things(&blocking[i], call_interrupted));
    test_log("all");
    return arg;
}

/* contract 1.7 */
TEST_SYSTEM_INSIDE(whatever_may_block_throws_in_a_cancelled_strand_before_it_has_done_anything)
{
    test_run_cancelled(call_all_interrupted, NULL);
    CHECK_LOG("all");
}

static void *dial_no_path(void *arg)
{
    STRAND_IGNORE(strand_dial_unix(""));
    return arg;
}

static void *dial_no_port(void *arg)
{
    STRAND_IGNORE(strand_dial_tcp("127.0.0.1", -1));
    return arg;
}

static void *listen_at_no_port(void *arg)
{
    strand_listen_tcp("127.0.0.1", -1);
    return arg;
}

static void *use_no_addresses(void *arg)
{
    strand_fn *const fns[] = {dial_no_path, dial_no_port, listen_at_no_port};
    for (int i = 0; i < 3; i++) {
        CHECK_THROWS(fns[i], NULL, &STRAND_INTERRUPTED);
    }
    test_log("all");
    return arg;
}

/* contract 1.7 */
TEST_INSIDE(a_cancelled_strand_is_interrupted_before_its_address_is_checked)
{
    test_run_cancelled(use_no_addresses, NULL);
    CHECK_LOG("all");
}

static void *broadcast(void *condition)
{
    for (;;) {
        strand_condition_broadcast(condition);
        strand_sleep(20 * STRAND_US);
    }
    return NULL;
}

static void call_shielded(const struct blocking *row, struct things *t)
{
    struct trial trial = {row, t, -1};
    STRAND_SCOPE(s);
    strand_spawn(s, broadcast, &t->condition);
    STRAND_SHIELD;
    strand_exception *e = strand_try(call, &trial, NULL);
    if (e)
        CHECK_FAIL("%s throws in a shield: %s", row->name, strand_exception_text(e));
    if (trial.result < 0)
        CHECK_FAIL("%s has failed with %d", row->name, (int)trial.result);
    strand_scope_cancel(s, NULL);
}

static void *call_all_shielded(void *arg)
{
    for (size_t i = 0; i < BLOCKING_COUNT; i++)
        CHECK(with_things(&blocking[i], call_shielded));
    test_log("all");
    return arg;
}

TEST_SYSTEM_INSIDE(whatever_may_block_does_what_it_is_for_in_a_shield)
{
    test_run_cancelled(call_all_shielded, NULL);
    CHECK_LOG("all");
}
