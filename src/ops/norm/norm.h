/* What layer and group normalization have in common: y = act(gamma u + beta) with
 * u = (x - mean) / sqrt(variance + epsilon), mean and variance being those of a part of one
 * sample. Nothing depends on other samples. Floor 4. Private to src/ops/norm. */
#ifndef LK_OPS_NORM_NORM_H
#define LK_OPS_NORM_NORM_H

#include "ops/activation.h"
#include "ops/op.h"

struct lk_norm_options {
    int64_t groups; /* of group_norm */
    int axis;       /* of layer_norm */
    double epsilon;
    bool center, scale;
    int activation; /* ops/activation.h */
};

/* The rows of a table that both have. Names and standard values as in Keras. */
#define LK_NORM_OPTIONS                                                                        \
    {.name = "epsilon",                                                                        \
     .kind = LK_OPTION_REAL,                                                                   \
     .offset = offsetof(struct lk_norm_options, epsilon),                                      \
     .min = 1e-13,                                                                             \
     .max = 1,                                                                                 \
     .standard = "0.001",                                                                      \
     .help = "added to the variance"},                                                         \
        {.name = "center",                                                                     \
         .kind = LK_OPTION_BOOL,                                                               \
         .offset = offsetof(struct lk_norm_options, center),                                   \
         .standard = "true",                                                                   \
         .help = "add a learned beta"},                                                        \
        {.name = "scale",                                                                      \
         .kind = LK_OPTION_BOOL,                                                               \
         .offset = offsetof(struct lk_norm_options, scale),                                    \
         .standard = "true",                                                                   \
         .help = "multiply by a learned gamma"},                                               \
        LK_ACTIVATION_OPTION(struct lk_norm_options, activation)

/* Parameters of the shape `learned`, and what backward reads, where y is like x. */
void lk_norm_infer(struct lk_op_shapes *shapes, const struct lk_shape *learned);

/* The parameters of a run and their gradients; NULL: there are none, or none is wanted. */
struct lk_norm_params {
    const struct lk_buffer *gamma, *beta;
    struct lk_buffer *dgamma, *dbeta;
};
struct lk_norm_params lk_norm_params(const struct lk_op_setup *setup,
                                     const struct lk_op_run *run);

/* Whether backward has to look at y. */
bool lk_norm_masks(const struct lk_op_setup *setup);

bool lk_norm_absorb(void *options, const char *next, const char *next_options);

#endif
