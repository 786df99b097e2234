/* Runs the kernels of a model that computes one time step after the other. */
#include "oclgrind/generation.h"

#include "base/fail.h"
#include "graph/replica.h"

enum { STEPS = 5, TOKENS = 7, SAMPLES = 3 };

static enum lk_status make_network(struct lk_graph *graph, struct lk_node **tokens,
                                   struct lk_node **length, struct lk_node **y)
{
    const struct lk_input input = {"tokens", LK_I32, {1, {STEPS}}, 0, 0, false};
    struct lk_node *x;
    LK_TRY(lk_graph_add_input(graph, &input, tokens));
    LK_TRY(lk_graph_add_length(*tokens, length));
    LK_TRY(lk_graph_add(graph, "embedding", *tokens, "vocabulary=7 units=8", &x));
    LK_TRY(lk_graph_add(graph, "position", x, "kind=learned", &x));
    LK_TRY(lk_graph_add(graph, "dense", x, "units=24", &x));
    LK_TRY(lk_graph_add(graph, "rotary", x, "heads=2 packed=true", &x));
    LK_TRY(lk_graph_add(graph, "attention", x, "heads=2 causal=true", &x));
    LK_TRY(lk_graph_add(graph, "lstm", x, "units=5 return_sequences=true", &x));
    LK_TRY(lk_graph_add(graph, "gru", x, "units=6 return_sequences=true", &x));
    LK_TRY(lk_graph_add(graph, "dense", x, "units=7", &x));
    return lk_graph_add(graph, "softmax", x, "", y);
}

enum lk_status run_generation(struct lk_device *device)
{
    struct lk_graph *graph = NULL;
    struct lk_replica *replica = NULL;
    struct lk_node *tokens, *length, *y;
    enum lk_status status;
    LK_TRY_OUT(lk_graph_create(&graph));
    LK_TRY_OUT(make_network(graph, &tokens, &length, &y));
    const struct lk_replica_config config = {.device = device,
                                             .outputs = {y},
                                             .batch = SAMPLES,
                                             .shards = 1,
                                             .real = LK_F32,
                                             .one_step = true};
    LK_TRY_OUT(lk_replica_create(&config, &replica));
    LK_TRY_OUT(lk_replica_build(replica));
    LK_TRY_OUT(lk_replica_init_weights(replica, 3));
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < SAMPLES; i++) {
            ((int32_t *)lk_replica_slot(replica, tokens, 0))[i] = (i + t) % TOKENS;
            ((int32_t *)lk_replica_slot(replica, length, 0))[i] = 1;
        }
        LK_TRY_OUT(lk_replica_load(replica, 0, SAMPLES));
        LK_TRY_OUT(lk_replica_forward(replica, t));
        LK_TRY_OUT(lk_replica_wait_slot(replica, 0));
    }
    status = lk_device_finish(device);
out:
    lk_replica_destroy(replica);
    lk_graph_destroy(graph);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "one time step after the other");
}
