/*
 * usage: http_proxy [RUNTIME COMMAND]
 *
 * http_proxy: requests per second through a reverse proxy of one thread, the page /hello, 100 connections kept alive on
 * both sides, asked for by wrk. The backend is examples/httpd, of one thread. Without arguments the proxy is
 * examples/proxy; peers/ have other ones, whose command gets the port of the backend as its argument.
 */
#include "http.h"

int main(int argc, char **argv)
{
    char httpd_path[4096], proxy_path[4096], port_text[16], address[32];
    char *httpd[] = {httpd_path, (char *)"--port=0", (char *)"--threads=1", NULL};
    char *proxy[] = {proxy_path, (char *)"--listen=127.0.0.1:0", (char *)"--backend",
                     address,    (char *)"--pool=128",           (char *)"--threads=1",
                     NULL};
    http_find_example("http_proxy", "httpd", httpd_path, sizeof httpd_path);
    http_find_example("http_proxy", "proxy", proxy_path, sizeof proxy_path);
    signal(SIGPIPE, SIG_IGN);
    int backend = http_start_server(httpd);
    snprintf(port_text, sizeof port_text, "%d", backend);
    snprintf(address, sizeof address, "127.0.0.1:%d", backend);
    char *peer[] = {argc < 3 ? NULL : argv[2], port_text, NULL};
    int port = http_start_server(argc < 3 ? proxy : peer);
    http_check_page(port, "/hello");
    http_ask(port, "/hello", 1);
    bench_sample("http_proxy", argc < 3 ? "strand" : argv[1], 1, "req/s", http_ask(port, "/hello", 3));
    return 0;
}
