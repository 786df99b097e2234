/* In place of http.c where libmicrohttpd was not there: nothing can be served. */
#include "serve/http/http.h"

#include "base/fail.h"

enum lk_status lk_http_open(const struct lk_http_config *config, struct lk_http **http)
{
    (void)config;
    (void)http;
    return lk_fail(LK_E_UNSUPPORTED, "built without libmicrohttpd, which serves HTTP");
}

int lk_http_port(const struct lk_http *http)
{
    (void)http;
    return 0;
}

bool lk_http_take(struct lk_http *http, int connected, const struct sockaddr *address,
                  unsigned bytes)
{
    (void)http;
    (void)connected;
    (void)address;
    (void)bytes;
    return false;
}

bool lk_http_drain(struct lk_http *http, double seconds)
{
    (void)http;
    (void)seconds;
    return true;
}

void lk_http_close(struct lk_http *http)
{
    (void)http;
}

void lk_http_answer(struct lk_http_exchange *exchange, const struct lk_http_reply *reply)
{
    (void)exchange;
    (void)reply;
}

void lk_http_count(struct lk_http *http, int *connections, int *requests)
{
    (void)http;
    *connections = *requests = 0;
}
