/*
 * The tree of actors: parents, guardians, and which names an actor may have.
 */
#define SUITE actor_names
#include "listener.h"
#include "test.h"

#include "strand/actor.h"

#include <errno.h>

STRAND_MESSAGE(number, { int n; });

/* ---- parents and guardians ------------------------------------------------------------------------------------ */

static strand_actor parent;

static void check_parent(void *state, strand_message *message)
{
    (void)state, (void)message;
    CHECK_EQ(strand_actor_parent().bits[1], parent.bits[1]);
    test_log("child");
}

static const strand_actor_class child_class = {.size = sizeof child_class, .name = "child", .receive = check_parent};

static void be_parent(void *state, strand_message *message)
{
    (void)state;
    parent = strand_actor_self();
    strand_message_forward(message, strand_actor_spawn_child(NULL, &child_class, NULL, 0));
    CHECK_EQ(strand_actor_parent().bits[1], strand_actor_find(strand_actor_system(), "/user").bits[1]);
}

static const strand_actor_class parent_class = {.size = sizeof parent_class, .name = "parent", .receive = be_parent};

TEST_INSIDE(an_actor_knows_its_parent_and_a_strand_has_none)
{
    STRAND_ACTORS(system, NULL);
    CHECK_EQ(strand_actor_parent().bits[1], 0);
    CHECK_EQ(strand_actor_system().bits[1], 0);
    CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &parent_class, NULL, 0), STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("child");
}

TEST_INSIDE(a_guardian_handles_no_messages)
{
    STRAND_ACTORS(system, NULL);
    spawn_listener(system, STRAND_ACTOR_UNHANDLED);
    CHECK_EQ(strand_tell(strand_actor_find(system, "/user"), STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_tell(strand_actor_find(system, "/"), STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("unhandled unhandled");
}

/* ---- names --------------------------------------------------------------------------------------------------------
 */

struct naming {
    strand_actors system;
    const char *name, *dispatcher;
};

static void *spawn_named(void *arg)
{
    const struct naming *it = arg;
    strand_actor_spawn(it->system, STRAND_ACTOR_ATTR(.name = it->name, .dispatcher = it->dispatcher), &child_class,
                       NULL, 0);
    return NULL;
}

static void check_name(strand_actors system, const char *name, int code)
{
    struct naming it = {system, name, NULL};
    strand_exception *e = strand_try(spawn_named, &it, NULL);
    if (code) {
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), code);
        CHECK_CONTAINS(strand_exception_text(e), name);
        CHECK_CONTAINS(strand_exception_text(e), code == -EEXIST ? "as a sibling of it is" : "1 to 63 bytes");
    } else {
        CHECK(e == NULL);
    }
    strand_exception_release(e);
}

TEST_INSIDE(some_names_are_refused)
{
    char longest[65] = "";
    memset(longest, 'n', 64);
    STRAND_ACTORS(system, NULL);
    check_name(system, longest, -EINVAL);
    longest[63] = 0;
    check_name(system, longest, 0);
    check_name(system, longest, -EEXIST);
    check_name(system, "", -EINVAL);
    check_name(system, "a/b", -EINVAL);
    check_name(system, "$1", -EINVAL);
    check_name(system, "a\nb", -EINVAL);
    check_name(system, "a\177", -EINVAL);
    check_name(system, "k\303\251", 0);
    CHECK_EQ(strand_actor_find(system, "user").bits[1], 0);
    CHECK_EQ(strand_actor_find(system, "/user/nobody").bits[1], 0);
}
