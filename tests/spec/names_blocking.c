/*
 * What holds for every function of strand/names.h: it is a cancellation point, which in a cancelled strand throws
 * before it does anything. tools/check-blocking.sh proves that no function is missing.
 */
#define SUITE names_blocking
#include "test.h"

#include "strand/names.h"

#include <errno.h>

static strand_names_list *list;
static strand_names_services *services;
static strand_names_texts *texts;
static char *name;

static const strand_names_service service = {"a.test", 1, 1, 1};
static const strand_names_text text = {"text", 4};
static const strand_names_entry table[] = {{.name = "a.test",
                                            .addresses = "192.0.2.1",
                                            .services = &service,
                                            .service_count = 1,
                                            .texts = &text,
                                            .text_count = 1}};
static const strand_names_attr attr = {.size = sizeof attr, .table = table, .table_count = 1};

/* ROW(function, a call) */
#define BLOCKING(ROW)                                                                                                  \
    ROW(strand_names_lookup, strand_names_lookup("a.test", "80", &attr, &list))                                        \
    ROW(strand_names_reverse, strand_names_reverse("192.0.2.1", &attr, &name))                                         \
    ROW(strand_names_srv, strand_names_srv("a.test", &attr, &services))                                                \
    ROW(strand_names_txt, strand_names_txt("a.test", &attr, &texts))                                                   \
    ROW(strand_names_dial, strand_names_dial("127.0.0.1", "1", &attr))

#define CALL(function, call)                                                                                           \
    static void *call_##function(void *arg)                                                                            \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        return TEST_PTR(call);                                                                                         \
    }
BLOCKING(CALL)

static const struct {
    const char *function;
    strand_fn *fn;
} calls[] = {
#define ENTRY(function, call) {#function, call_##function},
    BLOCKING(ENTRY)
#undef ENTRY
};

static void *try_call(void *i)
{
    test_try_operation(calls[(intptr_t)i].fn, NULL);
    return NULL;
}

TEST_INSIDE(an_interrupted_call_does_nothing)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        test_log_clear();
        test_run_cancelled(try_call, TEST_PTR(i));
        if (!test_log_is("cut"))
            CHECK_FAIL("%s is no cancellation point", calls[i].function);
    }
    CHECK(!list && !name && !services && !texts);
}

TEST_INSIDE(a_call_without_a_name_is_refused)
{
    CHECK_EQ(strand_names_lookup(NULL, "80", &attr, &list), -EINVAL);
    CHECK_EQ(strand_names_reverse(NULL, &attr, &name), -EINVAL);
    CHECK_EQ(strand_names_srv(NULL, &attr, &services), -EINVAL);
    CHECK_EQ(strand_names_txt("", &attr, &texts), -EINVAL);
    CHECK_EQ(strand_names_dial(NULL, "1", &attr), -EINVAL);
    CHECK_EQ(strand_names_dial("127.0.0.1", "-1", &attr), -EINVAL);
    CHECK_EQ(strand_names_dial("127.0.0.1", "1", &(strand_names_attr){.size = 0}), -EINVAL);
}
