/*
 * The floor of the row start: a process in C that does nothing.
 */
#include "start.h"

int main(int argc, char **argv)
{
    if (start_is_child(argc, argv))
        return 0;
    start_measure("floor");
    return 0;
}
