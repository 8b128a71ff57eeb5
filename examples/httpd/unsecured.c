/*
 * In a build without libstrand-tls: there is no TLS, and the server says so.
 */
#include "httpd.h"

bool security_open(struct security *security)
{
    if (security->certificates)
        fprintf(stderr, "httpd: --tls: this program was built without libstrand-tls\n");
    security->failed = security->certificates != NULL;
    return !security->failed;
}

void security_reload(struct security *security)
{
    (void)security;
}

void security_close(struct security *security)
{
    (void)security;
}

/* ---- connections, of which none speaks TLS ------------------------------------------------------- */

bool secure_begin(struct connection *c)
{
    (void)c;
    return false;
}

int64_t secure_read(struct connection *c, char *buffer, size_t size)
{
    (void)c, (void)buffer, (void)size;
    return -1;
}

int64_t secure_write(struct connection *c, const char *bytes, size_t size)
{
    (void)c, (void)bytes, (void)size;
    return -1;
}

void secure_end(struct connection *c)
{
    (void)c;
}

void secure_close(struct connection *c)
{
    (void)c;
}
