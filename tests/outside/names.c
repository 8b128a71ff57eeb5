/* A look-up that causes no question, by the installed library. */
#include <strand/names.h>

#include <stdio.h>
#include <stdlib.h>

static void *start(void *arg)
{
    strand_names_list *list = NULL;
    if (strand_names_lookup("127.0.0.1", "7", NULL, &list) == 0 && list->count == 1 && list->port == 7)
        puts("ok");
    free(list);
    return arg;
}

int main(void)
{
    strand_run(NULL, start, NULL);
    return 0;
}
