/* The page that a browser shows of the server. Floor 9. */
#ifndef LK_SERVE_PAGE_H
#define LK_SERVE_PAGE_H

#include <stddef.h>

/* All of it, in static storage. */
const char *lk_page(size_t *bytes);

#endif
