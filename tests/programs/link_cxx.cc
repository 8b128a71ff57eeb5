/*
 * A user's C++ program, linked with nothing but the library: C++ exceptions go through destructors outside of strands,
 * inside of one, and on a plain thread that ends by pthread_exit; an exception of the library goes through a destructor
 * too. tools/check-link.sh looks at who serves all that.
 */
/* contract 9.8 */
#include "strand.h"

#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <stdexcept>

namespace {

int destroyed;

struct counted {
    ~counted()
    {
        destroyed++;
    }
};

bool throws_and_catches()
{
    try {
        counted local;
        throw std::runtime_error("on purpose");
    } catch (const std::exception &e) {
        return std::strcmp(e.what(), "on purpose") == 0;
    }
}

void *fails(void *)
{
    counted local;
    strand_throw(&STRAND_ERROR, "on purpose");
}

void *root(void *arg)
{
    bool *caught = static_cast<bool *>(arg);
    *caught = throws_and_catches();
    strand_exception *e = strand_try(fails, nullptr, nullptr);
    *caught = *caught && e != nullptr && throws_and_catches();
    strand_exception_release(e);
    return nullptr;
}

void *exits(void *)
{
    counted local;
    pthread_exit(nullptr);
}

} // namespace

int main()
{
    bool caught = false;
    bool outside = throws_and_catches();
    strand_run(nullptr, root, &caught);

    pthread_t thread;
    if (pthread_create(&thread, nullptr, exits, nullptr) != 0 || pthread_join(thread, nullptr) != 0)
        return 1;
    std::printf("%d destroyed\n", destroyed);
    return outside && caught && throws_and_catches() && destroyed == 6 ? 0 : 1;
}
