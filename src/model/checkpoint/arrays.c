/* Lists the arrays of a checkpoint and copies them between device and host. */
#include "model/checkpoint/arrays.h"

#include "base/fail.h"
#include "graph/place/group.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lk_checkpoint_arrays_clear(struct lk_checkpoint_arrays *arrays)
{
    for (int i = 0; i < arrays->count; i++)
        free(arrays->list[i].data);
    free(arrays->list);
}

/* Of a group the replica and the optimizer that have a parameter. */
static struct lk_replica *replica_of(const struct lk_checkpoint_arrays *arrays, int param)
{
    return lk_group_member(arrays->replica, lk_group_place_of_param(arrays->replica, param));
}

static const struct lk_optimizer_info *optimizer_of(const struct lk_checkpoint_arrays *arrays,
                                                    int param)
{
    const int place = param < 0 ? 0 : lk_group_place_of_param(arrays->replica, param);
    return arrays->optimizer->group ? arrays->optimizer->group[place] : arrays->optimizer;
}

static const struct lk_param *param_of(const struct lk_checkpoint_arrays *arrays, int index)
{
    return lk_replica_param(replica_of(arrays, index), index);
}

/* The byte at which a state array begins in the optimizer's state. */
static size_t state_offset(const struct lk_checkpoint_arrays *arrays,
                           const struct lk_checkpoint_array *array)
{
    if (array->param < 0)
        return arrays->optimizer->scaling_at;
    const int64_t stride = optimizer_of(arrays, array->param)->stride;
    const int64_t first = array->state * stride + param_of(arrays, array->param)->offset;
    return (size_t)first * lk_dtype_bytes(lk_replica_real(arrays->replica));
}

static const void *find_there(const struct lk_checkpoint_arrays *arrays,
                              const struct lk_checkpoint_array *array)
{
    const int place =
        array->param < 0 ? 0 : lk_group_place_of_param(arrays->replica, array->param);
    const size_t real = lk_dtype_bytes(lk_replica_real(arrays->replica));
    if (array->state >= 0)
        return (const char *)arrays->there->state[place] + state_offset(arrays, array);
    return (const char *)arrays->there->weights[place] +
           (size_t)param_of(arrays, array->param)->offset * real;
}

/* Adds the next array, whose description is set already, with its data or memory for it. */
static enum lk_status add_data(struct lk_checkpoint_arrays *arrays)
{
    struct lk_checkpoint_array *array = &arrays->list[arrays->count++];
    if (arrays->there) {
        array->tensor.data = find_there(arrays, array);
        return LK_OK;
    }
    array->data = malloc((size_t)array->tensor.bytes + 1);
    if (!array->data)
        return lk_fail_memory(array->name, array->tensor.bytes);
    array->tensor.data = array->data;
    return LK_OK;
}

static enum lk_status add_scaling(struct lk_checkpoint_arrays *arrays)
{
    struct lk_checkpoint_array *array = &arrays->list[arrays->count];
    *array = (struct lk_checkpoint_array){.name = "optimizer.scaling.loss.state", .param = -1};
    array->tensor = (struct lk_safetensor){.name = array->name,
                                           .type = LK_SAFETENSOR_F32,
                                           .rank = 1,
                                           .shape = {LK_LOSS_SCALE_NUMBERS},
                                           .bytes = LK_LOSS_SCALE_NUMBERS * sizeof(float)};
    return add_data(arrays);
}

static enum lk_status add(struct lk_checkpoint_arrays *arrays, int index, int state)
{
    const struct lk_param *param = param_of(arrays, index);
    const enum lk_dtype real = lk_replica_real(arrays->replica);
    struct lk_checkpoint_array *array = &arrays->list[arrays->count];
    *array = (struct lk_checkpoint_array){.param = index, .state = state};
    if (state >= 0)
        snprintf(array->name, sizeof array->name, "optimizer.%s.%s",
                 arrays->optimizer->array_names[state], param->name);
    else
        snprintf(array->name, sizeof array->name, "%s", param->name);
    array->tensor = (struct lk_safetensor){
        .name = array->name,
        .type = real == LK_F64 ? LK_SAFETENSOR_F64 : LK_SAFETENSOR_F32,
        .rank = param->shape.rank,
        .bytes = (uint64_t)param->count * lk_dtype_bytes(real),
    };
    memcpy(array->tensor.shape, param->shape.dim, sizeof param->shape.dim);
    return add_data(arrays);
}

enum lk_status lk_checkpoint_arrays_list(const struct lk_replica *replica,
                                         const struct lk_optimizer_info *optimizer,
                                         const struct lk_host_state *state,
                                         struct lk_checkpoint_arrays *arrays)
{
    const int states = optimizer ? optimizer->arrays : 0;
    int params = 0;
    while (lk_replica_param(replica, params))
        params++;
    const size_t most = (size_t)params * (1 + (size_t)states) + 2;
    *arrays = (struct lk_checkpoint_arrays){
        .replica = replica, .optimizer = optimizer, .there = state};
    arrays->list = calloc(most, sizeof *arrays->list);
    if (!arrays->list)
        return lk_fail_memory("a checkpoint", most * sizeof *arrays->list);
    for (int i = 0; i < params; i++)
        LK_TRY(add(arrays, i, -1));
    for (int state = 0; state < states; state++)
        for (int i = 0; i < params; i++)
            if (param_of(arrays, i)->is_trainable)
                LK_TRY(add(arrays, i, state));
    return optimizer && optimizer->scaling ? add_scaling(arrays) : LK_OK;
}

enum lk_status lk_checkpoint_arrays_fetch(const struct lk_checkpoint_arrays *arrays)
{
    for (int i = 0; i < arrays->count; i++) {
        const struct lk_checkpoint_array *array = &arrays->list[i];
        if (array->state < 0)
            LK_TRY(lk_replica_read_param(replica_of(arrays, array->param), array->param,
                                         array->data));
        else
            LK_TRY(lk_buffer_read(optimizer_of(arrays, array->param)->state,
                                  state_offset(arrays, array), (size_t)array->tensor.bytes,
                                  array->data));
    }
    return LK_OK;
}

enum lk_status lk_checkpoint_arrays_put(const struct lk_checkpoint_arrays *arrays)
{
    for (int i = 0; i < arrays->count; i++) {
        const struct lk_checkpoint_array *array = &arrays->list[i];
        if (array->state < 0)
            LK_TRY(lk_replica_write_param(replica_of(arrays, array->param), array->param,
                                          array->tensor.data));
        else
            LK_TRY(lk_buffer_write_surely(optimizer_of(arrays, array->param)->state,
                                          state_offset(arrays, array),
                                          (size_t)array->tensor.bytes, array->tensor.data));
    }
    return LK_OK;
}

enum lk_status lk_checkpoint_arrays_sum(const struct lk_checkpoint_arrays *arrays, bool state,
                                        char text[LK_SHA256_TEXT])
{
    struct lk_sha256 sum = {0};
    LK_TRY(lk_sha256_init(&sum));
    for (int i = 0; i < arrays->count; i++)
        if ((arrays->list[i].state >= 0) == state)
            lk_sha256_add(&sum, arrays->list[i].tensor.data,
                          (size_t)arrays->list[i].tensor.bytes);
    lk_sha256_finish(&sum, text);
    lk_sha256_clear(&sum);
    return LK_OK;
}

/* "optimizer.m.conv2d_1.weight"; a node may be named "optimizer", but has no dot in its name.
 */
bool lk_checkpoint_is_state(const char *name)
{
    static const char prefix[] = "optimizer.";
    const char *dot = strncmp(name, prefix, sizeof prefix - 1) == 0
                          ? strchr(name + sizeof prefix - 1, '.')
                          : NULL;
    return dot && strchr(dot + 1, '.');
}

enum lk_status lk_parameters_sha256(const struct lk_replica *replica, char text[LK_SHA256_TEXT])
{
    struct lk_checkpoint_arrays arrays = {0};
    enum lk_status status;
    LK_TRY_OUT(lk_checkpoint_arrays_list(replica, NULL, NULL, &arrays));
    LK_TRY_OUT(lk_checkpoint_arrays_fetch(&arrays));
    status = lk_checkpoint_arrays_sum(&arrays, false, text);
out:
    lk_checkpoint_arrays_clear(&arrays);
    return status;
}
