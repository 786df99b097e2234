/* What the tests of replicas share: a network in the making, a replica of it, its loss and its
 * gradients, checked by finite differences. Knows cmocka. */
#ifndef TESTS_GRAPH_RIG_H
#define TESTS_GRAPH_RIG_H

#include "graph/nodes/schedule.h"
#include "graph/replica.h"
#include "ok.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SIDE = 9, CHANNELS = 2, CLASSES = 3, BATCH = 21 };

struct network {
    struct lk_graph *graph;
    struct lk_node *images, *others, *labels, *probabilities, *loss; /* others: or NULL */
};

struct lk_node *add(struct network *net, const char *op, struct lk_node *x,
                    const char *options);

/* A replica that trains, with its first weights. */
struct lk_replica *make_replica(struct lk_device *device, const struct lk_node *output,
                                enum lk_dtype real, int shards, bool stores_half);

/* Fills slot 0 with random images and all labels, from sample `first` on; loads them too. */
void fill(struct lk_replica *replica, const struct network *net, int64_t first);
void load(struct lk_replica *replica, const struct network *net, int64_t samples);

/* The sum of the samples' losses, in double. Loads the inputs for each forward, since backward
 * may use their memory. */
double total_loss(struct lk_replica *replica, const struct network *net, int64_t samples);

/* Gradients over all shards, as they lie in the weights; the caller frees them. */
double *read_gradients(struct lk_replica *replica);

/* The loss along a random direction of one parameter against the gradient's component. */
void check_parameter(struct lk_replica *replica, const struct network *net, int index,
                     const double *gradients, int64_t samples);

#endif
