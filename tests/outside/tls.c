/* A context and a stream, by the installed library. */
#include <strand/tls.h>

#include <stdio.h>

static void *start(void *arg)
{
    strand_tls_context *context = strand_tls_context_open(STRAND_TLS_ATTR(.protocols = "http/1.1"));
    STRAND_TRY {
        strand_tls_client(context, -1, "");
    }
    STRAND_CATCH(&STRAND_TLS_ERROR, e) {
        puts("ok");
    }
    STRAND_END
    strand_tls_context_close(context);
    return arg;
}

int main(void)
{
    strand_run(NULL, start, NULL);
    return 0;
}
