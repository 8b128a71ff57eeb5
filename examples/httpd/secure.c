/*
 * TLS: the certificates, which are read again while connections go on with the old ones, and the bytes of connections.
 * A build without libstrand-tls has unsecured.c instead.
 */
#include "httpd.h"

/* Blocks the thread while it reads the files: at the start, and once for each SIGHUP. NULL: it has said why not. */
static strand_tls_context *read_certificates(const struct security *security)
{
    STRAND_TRY {
        return strand_tls_context_open(STRAND_TLS_ATTR(.certificates = security->certificates, .key = security->key,
                                                       .protocols = "http/1.1", .staple = security->staple));
    }
    STRAND_CATCH(&STRAND_TLS_ERROR, e) {
        fprintf(stderr, "httpd: %s\n", strand_exception_text(e));
    }
    STRAND_END
    return NULL;
}

bool security_open(struct security *security)
{
    if (!security->certificates)
        return true;
    security->context = security->latest = read_certificates(security);
    security->failed = !security->context;
    return !security->failed;
}

void security_reload(struct security *security)
{
    strand_tls_context *fresh = read_certificates(security);
    if (!fresh) {
        fprintf(stderr, "httpd: the old certificates go on\n");
        return;
    }
    strand_tls_context_replace(security->context, fresh);
    if (security->latest != security->context)
        strand_tls_context_close(security->latest);
    security->latest = fresh;
}

void security_close(struct security *security)
{
    if (security->latest != security->context)
        strand_tls_context_close(security->latest);
    strand_tls_context_close(security->context);
}

/* ---- connections ------------------------------------------------------------------------------- */

bool secure_begin(struct connection *c)
{
    c->tls = strand_tls_server(c->server->security.context, c->fd);
    return strand_tls_handshake(c->tls) == 0;
}

int64_t secure_read(struct connection *c, char *buffer, size_t size)
{
    return strand_tls_read(c->tls, buffer, size);
}

int64_t secure_write(struct connection *c, const char *bytes, size_t size)
{
    return strand_tls_write(c->tls, bytes, size);
}

void secure_end(struct connection *c)
{
    (void)strand_tls_shutdown(c->tls); /* the client may have gone */
}

void secure_close(struct connection *c)
{
    strand_tls_close(c->tls);
}
