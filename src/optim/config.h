/* What an optimizer is made from: the parameters that it treats in a way of their own, and the
 * gradient's limits. Floor 4. Knows no kind of optimizer. */
#ifndef LK_OPTIM_CONFIG_H
#define LK_OPTIM_CONFIG_H

#include "device/device.h"
#include <lockstep/tensor.h>

/* Factors of parameters `first` to first + count - 1: of their learning rate, and of their
 * weight decay; and the penalties l1 sum |w| + l2 sum w^2 whose gradient is added to the mean
 * gradient, behind what clips it. */
struct lk_param_factors {
    int64_t first, count; /* first: a multiple of LK_FACTOR_BLOCK */
    double rate, decay, l1, l2;
};
enum { LK_FACTOR_BLOCK = 128 }; /* all parameters of a block have the same factors */

/* Parameters `first` to first + count - 1 are a table with rows of `units` numbers, of which a
 * step touches few. A lazy optimizer leaves a row whose gradient is 0 as it is, with its state:
 * no momentum, decay or penalty moves it. The step that corrects Adam's moments is that of all
 * parameters. source: TensorFlow's LazyAdam, torch.optim.SparseAdam */
struct lk_param_rows {
    int64_t first, count, units; /* first: a multiple of LK_FACTOR_BLOCK */
    int64_t places; /* of each shard, where the gradient is a list (tensor/row_list.h), which is
                     * taken in an update of the table alone; else 0 */
    int shards;
};

/* Limits to the mean gradient, before weight decay; 0: none. value: of each element, which is
 * cut off there (torch.nn.utils.clip_grad_value_). norm: of the gradient of all parameters as
 * one vector; a longer one is multiplied by norm / (its norm + 1e-6)
 * (torch.nn.utils.clip_grad_norm_, about Keras's global_clipnorm). The norm comes first. */
struct lk_clip {
    double value, norm;
};

/* Of a group of devices that train one model, each the parameters of its place: elements
 * `first` to first + count - 1 of one of its optimizers are those from `at` on of all. All are
 * multiples of LK_FACTOR_BLOCK. */
struct lk_param_placement {
    int64_t first, count, at;
};

/* What blocks of LK_FACTOR_BLOCK parameters are summed for. */
enum lk_block_sums { LK_SUMS_OF_SQUARES, LK_SUMS_OF_PENALTIES };

struct lk_optimizer_config {
    struct lk_device *device;
    enum lk_dtype real;
    const char *kind, *options;             /* "adam"; "lr=0.01 beta_1=0.8" (NULL: defaults) */
    int64_t count;                          /* parameters */
    const struct lk_param_factors *factors; /* copied; those of others: 1, 1, 0, 0 */
    int factor_count;
    const struct lk_param_rows *rows; /* copied; in the order of `first` */
    int row_count;
    struct lk_clip clip;
    int64_t all; /* parameters of a group, of which `count` are its own; 0: no group */
    const struct lk_param_placement *placements; /* of a group; copied */
    int placement_count;
    bool penalizes; /* some parameter of the group has a penalty */
    double ema;     /* the share of their moving average that weights keep in a step; 0: none */
};

#endif
