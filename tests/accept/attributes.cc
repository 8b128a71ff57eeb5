/*
 * C++: attributes, options, messages and blocks.
 */
#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/pool.h"

#include <string>
#include <vector>

typedef STRAND_CHAN(int) numbers;
STRAND_MESSAGE(deposit, {
    long cents;
    int times;
});

namespace {

void *work(void *arg)
{
    std::vector<std::string> words(3, "word");
    strand_yield();
    return arg;
}

void *root(void *arg)
{
    STRAND_SCOPE(scope);
    std::string name = "child";
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = name.c_str()), work, nullptr, 0));
    numbers from = STRAND_CHAN_OPEN_WITH(numbers, scope, 1, STRAND_CHAN_ATTR(.name = "numbers"));
    int value;
    strand_case one = STRAND_ON_SEND(from, &value);
    value = 7;
    if (strand_select(&one, 1, 0) != 0 || STRAND_RECEIVE(from, &value) < 0)
        return nullptr;
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.name = "system"));
    strand_tell(strand_actor{}, STRAND_MSG(deposit, .cents = 1));
    strand_tell(strand_actor{}, STRAND_MSG(deposit));
    for (int i = 0; i < 3; i++) {
        STRAND_TRY {
            std::string text(10, 'x');
            work(&text);
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            return nullptr;
        }
        STRAND_END
    }
    STRAND_DEADLINE(strand_in(1));
    return arg;
}

} // namespace

int main()
{
    return strand_run(STRAND_OPTIONS(.threads = 2, .stack_size = 65536), root, nullptr) != nullptr;
}
