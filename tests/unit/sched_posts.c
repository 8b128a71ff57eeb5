/*
 * The queue of posts: what was put in comes out once, in the order of each producer.
 */
#include "arch_check.h"

#include "sched/posts.h"

#include <pthread.h>

enum { PRODUCERS = 3, EACH = 20000 };

struct numbered {
    struct post post;
    int producer, number;
};

static struct posts queue;

static void put(struct numbered *n, int producer, int number)
{
    *n = (struct numbered){.producer = producer, .number = number};
    arch_san_release(&n->post); /* for TSan, as all who post do */
    posts_put(&queue, &n->post);
}

static struct numbered *take(void)
{
    struct post *post = posts_take(&queue);
    if (!post)
        return NULL;
    arch_san_acquire(post);
    return CONTAINER(post, struct numbered, post);
}

static void an_empty_queue_has_nothing(void)
{
    CHECK(!posts_any(&queue));
    CHECK(!take());
}

static void the_oldest_comes_first_also_when_more_are_put_in_between(void)
{
    struct numbered all[6];
    for (int i = 0; i < 3; i++)
        put(&all[i], 0, i);
    for (int i = 0; i < 6; i++) {
        CHECK(posts_any(&queue));
        CHECK(take() == &all[i]);
        if (i < 3)
            put(&all[i + 3], 0, i + 3);
    }
    an_empty_queue_has_nothing();
}

static void a_post_can_be_put_in_again_when_it_was_taken(void)
{
    struct numbered one;
    for (int i = 0; i < 3; i++) {
        put(&one, 0, i);
        CHECK(take() == &one);
    }
    an_empty_queue_has_nothing();
}

/* Between the two steps of posts_put: neither the post nor the one before it can be taken. */
static void what_is_not_linked_yet_holds_back_the_one_before_it(void)
{
    struct numbered one, two;
    put(&one, 0, 1);
    atomic_store_explicit(&two.post.next, NULL, memory_order_relaxed);
    atomic_store_explicit(&queue.last, &two.post, memory_order_relaxed);
    CHECK(!take());
    CHECK(posts_any(&queue));
    atomic_store_explicit(&one.post.next, &two.post, memory_order_relaxed);
    CHECK(take() == &one);
    CHECK(take() == &two);
    an_empty_queue_has_nothing();
}

static void *produce(void *arg)
{
    for (int i = 0; i < EACH; i++)
        put(malloc(sizeof(struct numbered)), (int)(intptr_t)arg, i);
    return NULL;
}

static void producers_at_the_same_time_lose_nothing_and_keep_their_order(void)
{
    pthread_t threads[PRODUCERS];
    int next[PRODUCERS] = {0};
    for (int i = 0; i < PRODUCERS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, produce, (void *)(intptr_t)i), 0);
    for (int taken = 0; taken < PRODUCERS * EACH;) {
        struct numbered *n = take();
        if (!n)
            continue;
        CHECK_EQUAL(n->number, next[n->producer]++);
        free(n);
        taken++;
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    an_empty_queue_has_nothing();
}

int main(void)
{
    an_empty_queue_has_nothing();
    the_oldest_comes_first_also_when_more_are_put_in_between();
    a_post_can_be_put_in_again_when_it_was_taken();
    what_is_not_linked_yet_holds_back_the_one_before_it();
    producers_at_the_same_time_lose_nothing_and_keep_their_order();
    return failures != 0;
}
