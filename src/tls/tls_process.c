/*
 * What all contexts of a process share: one lock. Contexts belong to no run, and any thread may link them.
 */
#include "tls.h"

static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
static CRYPTO_RWLOCK *links;

static void open_links(void)
{
    links = CRYPTO_THREAD_lock_new();
}

CRYPTO_RWLOCK *tls_links_lock(void)
{
    return CRYPTO_THREAD_run_once(&once, open_links) ? links : NULL;
}
