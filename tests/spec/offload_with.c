/*
 * Offloaded calls with copied arguments: an interrupted caller continues at once, and the arguments stay until the
 * function has returned.
 */
#define SUITE offload_with
#include "blocker.h"

/* ---- arguments and answers -------------------------------------------------------------------- */

struct sum {
    int a, b, result;
    const struct sum *at;
};

static void *add(void *arg)
{
    struct sum *sum = arg;
    sum->result = sum->a + sum->b;
    sum->at = sum;
    return NULL;
}

TEST_INSIDE(the_function_gets_a_copy_of_the_arguments)
{
    struct sum sum = {.a = 1, .b = 2}, answer;
    CHECK_PTR(strand_offload_with(STRAND_OFFLOAD_ATTR(.answer = &answer), add, &sum, sizeof sum), NULL);
    CHECK_EQ(sum.result, 0);
    CHECK(answer.at != &sum && answer.at != &answer);
}

TEST_INSIDE(the_arguments_as_the_function_leaves_them_are_the_answer)
{
    struct sum sum = {.a = 1, .b = 2}, other = {0};
    strand_offload_with(NULL, add, &sum, sizeof sum);
    CHECK_EQ(sum.result, 0);
    strand_offload_with(STRAND_OFFLOAD_ATTR(.answer = &other), add, &sum, sizeof sum);
    CHECK_EQ(sum.result, 0);
    CHECK_EQ(other.result, 3);
    strand_offload_with(STRAND_OFFLOAD_ATTR(.answer = &sum), add, &sum, sizeof sum);
    CHECK_EQ(sum.result, 3);
}

static void *address_of_b(void *arg)
{
    return &((struct sum *)arg)->b;
}

TEST_INSIDE(a_result_inside_of_the_copy_comes_back_as_the_same_place_in_the_answer)
{
    struct sum sum = {0}, other;
    CHECK_PTR(strand_offload_with(STRAND_OFFLOAD_ATTR(.answer = &other), address_of_b, &sum, sizeof sum), &other.b);
    CHECK_PTR(strand_offload_with(NULL, address_of_b, &sum, sizeof sum), NULL);
}

TEST_INSIDE(a_result_elsewhere_comes_back_as_it_is)
{
    static char place;
    struct {
        void *pointer;
    } args = {&place};
    CHECK_PTR(strand_offload_with(NULL, test_return, &place, 0), &place);
    CHECK_PTR(strand_offload_with(STRAND_OFFLOAD_ATTR(.answer = &args), test_return, TEST_PTR(7), 0), TEST_PTR(7));
}

static void *is_aligned(void *arg)
{
    return TEST_PTR((uintptr_t)arg % 16 == 0);
}

TEST_INSIDE(the_copy_is_aligned_for_everything)
{
    char bytes[33] = "";
    for (size_t size = 1; size <= sizeof bytes; size++)
        CHECK(strand_offload_with(NULL, is_aligned, bytes, size) != NULL);
}

TEST_INSIDE(attributes_of_an_older_header_end_earlier)
{
    struct sum sum = {.a = 4, .b = 5};
    strand_offload_attr attr = {.size = offsetof(strand_offload_attr, answer), .answer = &sum};
    strand_offload_with(&attr, add, &sum, sizeof sum);
    CHECK_EQ(sum.result, 0);
}

/* ---- leaving ---------------------------------------------------------------------------------- */

/* What becomes of a call, in the order in which it does. */
struct parcel {
    struct blocker *blocker;
    unsigned char bytes[500];
};

static struct blocker blocker;
static _Atomic int released, dropped, stopped, threw;

static void begin(void)
{
    blocker_reset(&blocker);
    released = dropped = stopped = threw = 0;
}

static void fill(struct parcel *parcel)
{
    parcel->blocker = &blocker;
    for (size_t i = 0; i < sizeof parcel->bytes; i++)
        parcel->bytes[i] = (unsigned char)(i * 7);
}

static void must_be_whole(const struct parcel *parcel)
{
    for (size_t i = 0; i < sizeof parcel->bytes; i++)
        CHECK_EQ(parcel->bytes[i], (unsigned char)(i * 7));
}

/* Stays inside until the blocker is released; then its arguments are what they were. */
static void *carry(void *arg)
{
    struct parcel *parcel = arg;
    block_until_released(parcel->blocker);
    must_be_whole(parcel);
    test_log("returned");
    return parcel;
}

static void release(void *arg)
{
    must_be_whole(arg);
    released++;
    test_log("released");
}

static void drop(void *result)
{
    must_be_whole(result);
    dropped++;
    test_log("dropped");
}

static void stop(void *arg)
{
    struct parcel *parcel = arg;
    must_be_whole(parcel);
    stopped++;
    test_log("stopped");
    parcel->blocker->released = 1;
}

#define SEND(...)                                                                                                      \
    strand_offload_with(STRAND_OFFLOAD_ATTR(.release = release, .drop = drop, __VA_ARGS__), carry, &parcel,            \
                        sizeof parcel)

/* The arguments lie on the stack of the strand, which is gone when the function reads them. */
static void *send_and_note(void *arg)
{
    struct parcel parcel;
    fill(&parcel);
    STRAND_TRY {
        SEND(.crew = {{0}});
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        threw++;
        strand_rethrow(strand_exception_keep(e));
    }
    STRAND_END
    return arg;
}

static void *leave_a_call_that_runs(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, send_and_note, arg);
    YIELD_UNTIL(blocker.entered);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    CHECK_EQ(blocker.passed, 0);
    CHECK_EQ(released + dropped, 0);
    blocker.released = 1;
    YIELD_UNTIL(released);
    CHECK_LOG("returned dropped released");
    return arg;
}

/* V-37 */
TEST_INSIDE(an_interrupted_caller_continues_at_once_while_the_function_runs)
{
    begin();
    leave_a_call_that_runs(NULL);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(released, 1);
    CHECK_EQ(threw, 1);
}

static void *leave_and_end(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, send_and_note, arg);
    YIELD_UNTIL(blocker.entered);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    return arg;
}

static void *release_later(void *arg)
{
    wait_on_thread(&blocker.entered, 1);
    strand_sim_sleep(50 * STRAND_MS);
    blocker.released = 1;
    return arg;
}

static void *leave_and_end_beside_a_helper(void *arg)
{
    CHECK_EQ(strand_sim_thread(release_later, NULL), 0);
    return leave_and_end(arg);
}

/* contract 7.5 */
TEST(the_end_of_the_run_waits_for_what_was_left)
{
    begin();
    test_run(leave_and_end_beside_a_helper, NULL);
    CHECK_LOG("returned dropped released");
}

static void *send_in_time(void *ns)
{
    struct parcel parcel;
    fill(&parcel);
    STRAND_DEADLINE(strand_in((intptr_t)ns));
    SEND(.stop = NULL);
    return ns;
}

/* contract 5.2 */
TEST_INSIDE(a_deadline_passes_while_the_function_runs)
{
    begin();
    int tries = 0;
    for (intptr_t ns = 10 * STRAND_MS; !blocker.entered; ns *= 2) {
        CHECK_THROWS(send_in_time, (void *)ns, &STRAND_TIMED_OUT);
        tries++;
    }
    CHECK_EQ(blocker.passed, 0);
    CHECK_EQ(released, tries - 1);
    blocker.released = 1;
    YIELD_UNTIL(released == tries);
    CHECK_EQ(dropped, 1);
}

static void *offload_blocker(void *arg)
{
    return strand_offload(block_until_released, arg);
}

static void *send_behind_another(void *arg)
{
    static struct blocker first;
    blocker_reset(&first);
    STRAND_SCOPE(scope);
    strand busy = strand_spawn(scope, offload_blocker, &first);
    YIELD_UNTIL(first.entered);
    strand child = strand_spawn(scope, send_and_note, NULL);
    test_await_blocked("waits for an offloaded call", 2);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    CHECK_LOG("released");
    first.released = 1;
    strand_join(busy);
    return arg;
}

TEST(a_call_that_no_thread_has_taken_up_is_taken_back_and_its_arguments_are_released)
{
    begin();
    strand_options options = test_options();
    options.max_offload_threads = 1;
    strand_run(&options, send_behind_another, NULL);
    CHECK_EQ(blocker.entered, 0);
    CHECK_LOG("released");
}

static void *send_cancelled(void *arg)
{
    struct parcel *parcel = arg;
    strand_offload_with(STRAND_OFFLOAD_ATTR(.release = release, .drop = drop, .stop = stop), carry, parcel,
                        sizeof *parcel);
    return arg;
}

TEST_INSIDE(a_call_interrupted_before_it_begins_releases_its_arguments_too)
{
    static struct parcel parcel;
    begin();
    fill(&parcel);
    test_run_cancelled(send_cancelled, &parcel);
    CHECK_LOG("released");
    CHECK_EQ(blocker.entered, 0);
}

TEST_INSIDE(a_caller_that_gets_the_result_has_nothing_dropped_and_nothing_released)
{
    struct parcel parcel;
    fill(&parcel);
    begin();
    blocker.released = 1;
    SEND(.stop = stop);
    CHECK_EQ(blocker.passed, 1);
    CHECK_LOG("returned");
}

/* ---- stopping --------------------------------------------------------------------------------- */

static void *send_with_a_stop(void *arg)
{
    struct parcel parcel;
    fill(&parcel);
    SEND(.stop = stop);
    return arg;
}

/* V-37 */
TEST_INSIDE(the_stop_function_is_called_when_the_caller_is_interrupted)
{
    begin();
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, send_with_a_stop, NULL);
    YIELD_UNTIL(blocker.entered);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    YIELD_UNTIL(released);
    CHECK_LOG("stopped returned dropped released");
    CHECK_EQ(stopped, 1);
}

static void *send_borrowed(void *arg)
{
    struct parcel parcel;
    fill(&parcel);
    struct parcel *result = SEND(.stop = stop, .borrows = true, .answer = &parcel);
    CHECK_PTR(result, &parcel);
    test_log("resumed");
    strand_yield();
    test_log("never");
    return arg;
}

/* V-37 */
TEST_INSIDE(the_stop_function_of_a_borrowing_call_is_called_and_its_end_awaited)
{
    begin();
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, send_borrowed, NULL);
    YIELD_UNTIL(blocker.entered);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    CHECK_LOG("stopped returned resumed");
}

static void *send_borrowed_and_unstopped(void *arg)
{
    struct parcel parcel;
    fill(&parcel);
    SEND(.borrows = true);
    test_log("resumed");
    return arg;
}

TEST_INSIDE(a_function_that_borrows_and_cannot_be_stopped_is_waited_for)
{
    begin();
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, send_borrowed_and_unstopped, NULL);
    YIELD_UNTIL(blocker.entered);
    strand_cancel(child, NULL);
    for (int i = 0; i < 10; i++)
        strand_yield();
    CHECK(!strand_ended(child));
    blocker.released = 1;
    strand_join(child);
    CHECK_LOG("returned resumed");
}

/* ---- races ------------------------------------------------------------------------------------ */

static _Atomic int ran, taken, drops, releases, stops, throws;

static void *return_it(void *arg)
{
    ran++;
    return *(void **)arg;
}

static void count_drop(void *result)
{
    CHECK_PTR(result, TEST_PTR(5));
    drops++;
}

static void count_release(void *arg)
{
    CHECK_PTR(*(void **)arg, TEST_PTR(5));
    releases++;
}

static void count_stop(void *arg)
{
    CHECK_PTR(*(void **)arg, TEST_PTR(5));
    stops++;
}

static void *call_and_count(void *with_stop)
{
    void *args = TEST_PTR(5);
    STRAND_TRY {
        void *result = strand_offload_with(
            STRAND_OFFLOAD_ATTR(.drop = count_drop, .release = count_release, .stop = with_stop ? count_stop : NULL),
            return_it, &args, sizeof args);
        CHECK_PTR(result, TEST_PTR(5));
        taken++;
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        CHECK_KIND(e, &STRAND_INTERRUPTED);
        throws++;
    }
    STRAND_END
    return NULL;
}

static void *race(void *arg)
{
    long rounds = test_scale(2000);
    for (long i = 0; i < rounds; i++) {
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, call_and_count, TEST_PTR(i % 2));
        for (long j = i % 7; j > 0; j--)
            strand_yield();
        if (i % 3)
            strand_sleep(i % 50 * STRAND_US);
        strand_cancel(child, NULL);
        strand_wait(child);
        strand_scope_cancel(scope, NULL);
    }
    CHECK_EQ(taken + throws, rounds);
    return arg;
}

static void forget(void)
{
    ran = taken = drops = releases = stops = throws = 0;
}

/* The end of the run waits for what was left. */
/* contract 4.20 */
TEST(each_result_is_taken_or_dropped_once_and_arguments_are_released_if_the_call_throws)
{
    forget();
    test_run(race, NULL);
    CHECK_EQ(taken + drops, ran);
    CHECK_EQ(releases, throws);
    CHECK(stops <= throws);
}
