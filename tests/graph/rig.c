/* Builds, loads and measures the replicas of tests. */
#include "graph/rig.h"

#include "base/random.h"
#include <math.h>
#include <stdlib.h>

struct lk_node *add(struct network *net, const char *op, struct lk_node *x, const char *options)
{
    struct lk_node *y = NULL;
    ASSERT_OK(lk_graph_add(net->graph, op, x, options, &y));
    return y;
}

struct lk_replica *make_replica(struct lk_device *device, const struct lk_node *output,
                                enum lk_dtype real, int shards, bool stores_half)
{
    struct lk_replica *replica = NULL;
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {output},
                                             .batch = BATCH,
                                             .shards = shards,
                                             .real = real,
                                             .stores_half = stores_half,
                                             .training = true,
                                             .seed = 5};
    ASSERT_OK(lk_replica_create(&config, &replica));
    ASSERT_OK(lk_replica_build(replica));
    ASSERT_OK(lk_replica_init_weights(replica, 7));
    return replica;
}

void fill(struct lk_replica *replica, const struct network *net, int64_t first)
{
    enum { PIXELS = SIDE * SIDE * CHANNELS };
    struct lk_node *const inputs[] = {net->images, net->others};
    const int64_t count =
        lk_least(lk_replica_tiling(replica)->shards * lk_replica_tiling(replica)->shard_samples,
                 BATCH - first);
    int32_t *labels = lk_replica_slot(replica, net->labels, 0);
    for (uint32_t n = 0; n < 2 && inputs[n]; n++) {
        uint8_t *images = lk_replica_slot(replica, inputs[n], 0);
        for (int64_t i = 0; images && i < count * PIXELS; i++)
            images[i] =
                (uint8_t)lk_random(3, LK_RANDOM_DATA, n, (uint64_t)(first * PIXELS + i)).v[0];
    }
    for (int64_t i = 0; labels && i < count; i++)
        labels[i] = (int32_t)((first + i) % CLASSES);
}

void load(struct lk_replica *replica, const struct network *net, int64_t samples)
{
    fill(replica, net, 0);
    ASSERT_OK(lk_replica_load(replica, 0, samples));
}

double total_loss(struct lk_replica *replica, const struct network *net, int64_t samples)
{
    struct lk_shape shape;
    double values[BATCH * 2], sum = 0;
    load(replica, net, samples);
    ASSERT_OK(lk_replica_forward(replica, 1));
    const struct lk_buffer *y = lk_replica_output(replica, 0, &shape);
    assert_int_equal(lk_shape_count(&shape), 2);
    ASSERT_OK(lk_tiled_read(y, lk_replica_tiling(replica), &shape, LK_F64, samples, values));
    for (int64_t i = 0; i < samples; i++)
        sum += values[2 * i];
    return sum;
}

double *read_gradients(struct lk_replica *replica)
{
    const int64_t count = lk_replica_trainable_count(replica);
    const int shards = lk_replica_tiling(replica)->shards;
    double *all = malloc((size_t)(count * shards) * sizeof *all);
    ASSERT_OK(lk_buffer_read(lk_replica_gradients(replica), 0,
                             (size_t)(count * shards) * sizeof *all, all));
    for (int s = 1; s < shards; s++)
        for (int64_t i = 0; i < count; i++)
            all[i] += all[s * count + i];
    return all;
}

void check_parameter(struct lk_replica *replica, const struct network *net, int index,
                     const double *gradients, int64_t samples)
{
    const struct lk_param *param = lk_replica_param(replica, index);
    const double h = 1e-6; /* so small that no relu switches in between */
    double loss[2], slope = 0;
    double *w = malloc((size_t)param->count * sizeof *w);
    double *moved = malloc((size_t)param->count * sizeof *w);
    ASSERT_OK(lk_replica_read_param(replica, index, w));
    for (int side = 0; side < 2; side++) {
        for (int64_t e = 0; e < param->count; e++) {
            const struct lk_random4 r =
                lk_random(11, LK_RANDOM_DATA, (uint32_t)index, (uint64_t)e);
            const double d = lk_random_unit(r.v[0]) - 0.5;
            moved[e] = w[e] + (side ? h : -h) * d;
            slope += side ? d * gradients[param->offset + e] : 0;
        }
        ASSERT_OK(lk_replica_write_param(replica, index, moved));
        loss[side] = total_loss(replica, net, samples);
    }
    ASSERT_OK(lk_replica_write_param(replica, index, w));
    const double measured = (loss[1] - loss[0]) / (2 * h);
    if (!(fabs(measured - slope) <= 1e-6 * (fabs(slope) + 1)) || fabs(slope) < 1e-9)
        fail_msg("%s: slope %.10g, gradient says %.10g", param->name, measured, slope);
    free(w);
    free(moved);
}
