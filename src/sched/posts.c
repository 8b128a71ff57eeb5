/*
 * The queue of a pool's posts. The protocol block is in posts.h.
 */
#include "posts.h"

void posts_put(struct posts *posts, struct post *post)
{
    atomic_store_explicit(&post->next, NULL, memory_order_relaxed);
    struct post *before = atomic_exchange_explicit(&posts->last, post, memory_order_seq_cst);  /* [N2] [K1] */
    atomic_store_explicit(before ? &before->next : &posts->first, post, memory_order_release); /* [N4] */
}

/* Takes the post out of `last` if it has no successor yet [N1]. Returns false if a producer is about to link one. */
static bool is_the_last(struct posts *posts, struct post *post)
{
    atomic_store_explicit(&posts->first, NULL, memory_order_relaxed); /* before a producer can find the queue empty */
    struct post *expected = post;
    if (atomic_compare_exchange_strong_explicit(&posts->last, &expected, NULL, memory_order_release,
                                                memory_order_relaxed)) /* [N1] */
        return true;
    atomic_store_explicit(&posts->first, post, memory_order_relaxed);
    return false;
}

struct post *posts_take(struct posts *posts)
{
    struct post *post = atomic_load_explicit(&posts->first, memory_order_acquire);             /* [N4] */
    struct post *next = post ? atomic_load_explicit(&post->next, memory_order_acquire) : NULL; /* [N4] */
    if (next)
        atomic_store_explicit(&posts->first, next, memory_order_relaxed);
    else if (post && !is_the_last(posts, post))
        return NULL;
    return post;
}
