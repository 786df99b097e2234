/* The parts of the benchmark's page. */
#ifndef TOOLS_BENCH_PAGE_H
#define TOOLS_BENCH_PAGE_H

#include "bench/bench.h"
#include "page/page.h"

/* The name of a device, "B: name" of several. */
void bench_title(const struct joined *joined, int device, char *text, size_t bytes);

/* A number that depends on nothing but the order of rows. */
int bench_op_colour(const struct joined *joined, const char *op);

/* Set by set: bars for each operation, then a table. */
void bench_operations(struct page *page, const struct joined *joined);

void bench_roofline(struct page *page, const struct joined *joined, int device);

#endif
