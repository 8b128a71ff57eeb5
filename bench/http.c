/*
 * usage: http [RUNTIME COMMAND...]
 *
 * http: requests per second that a server of one thread answers, the page /hello, 100 connections kept alive, asked for
 * by wrk. Without arguments it is examples/httpd; peers/ have other servers.
 */
#include "http.h"

int main(int argc, char **argv)
{
    char path[4096];
    char *httpd[] = {path, (char *)"--port", (char *)"0", (char *)"--threads", (char *)"1", NULL};
    http_find_example("http", "httpd", path, sizeof path);
    signal(SIGPIPE, SIG_IGN);
    int port = http_start_server(argc < 3 ? httpd : argv + 2);
    http_check_page(port, "/hello");
    http_ask(port, "/hello", 1);
    bench_sample("http", argc < 3 ? "strand" : argv[1], 1, "req/s", http_ask(port, "/hello", 3));
    return 0;
}
