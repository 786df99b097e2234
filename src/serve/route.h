/* Which request means what. Floor 9. */
#ifndef LK_SERVE_ROUTE_H
#define LK_SERVE_ROUTE_H

#include "serve/http/http.h"
#include "serve/models/served.h"

/* What is served. */
struct lk_routes {
    struct lk_served *models;
    int count;
    struct lk_http *http; /* for its counts; NULL while it begins */
};

/* Answers a request, at once or when its job is done. */
void lk_route(const struct lk_routes *routes, struct lk_http_exchange *exchange,
              const struct lk_http_request *request);

#endif
