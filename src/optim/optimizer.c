/* What all optimizers share: finding and creating them, their state, tracked values, the loss
 * scale. */
#include "optim/optimizer.h"

#include "base/fail.h"
#include "optim/internal.h"
#include "tensor/tensor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t most_count = INT32_MAX - 65536; /* kernels count elements in an int */

/* A view may begin at a multiple of so many bytes on every known device. */
enum { VIEW_ALIGN = 512 };

const char *const lk_decay_of_names[] = {
    [LK_DECAY_OF_ALL] = "all", [LK_DECAY_OF_WEIGHTS] = "weights", NULL};

static const char *kind_name(const void *kinds, int i)
{
    const struct lk_optimizer_kind *const *list = kinds;
    return list[i] ? list[i]->name : NULL;
}

enum lk_status lk_optimizer_find(const char *name, const struct lk_optimizer_kind **kind)
{
    for (int i = 0; lk_optimizer_kinds[i]; i++)
        if (strcmp(lk_optimizer_kinds[i]->name, name) == 0) {
            *kind = lk_optimizer_kinds[i];
            return LK_OK;
        }
    const char *near = lk_nearest_name(name, kind_name, lk_optimizer_kinds);
    return lk_fail(LK_E_ARGUMENT, "unknown optimizer '%s'%s%s%s", name,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

double lk_optimizer_power(double base, int64_t exponent)
{
    double power = 1;
    for (double square = base; exponent > 0; exponent /= 2) {
        if (exponent % 2)
            power *= square;
        square *= square;
    }
    return power;
}

static enum lk_status check(const struct lk_optimizer_config *config)
{
    const struct lk_device *device = config->device;
    const enum lk_dtype real = config->real;
    const int64_t count = config->count;
    if (real != LK_F32 && real != LK_F64)
        return lk_fail(LK_E_ARGUMENT, "an optimizer works on float32 or float64");
    if (real == LK_F64 && !lk_device_info(device)->has_fp64)
        return lk_fail(LK_E_UNSUPPORTED, "optimizer in float64: %s has no cl_khr_fp64",
                       lk_device_info(device)->name);
    if (count < 0 || count > most_count)
        return lk_fail(LK_E_ARGUMENT, "optimizer of %lld parameters: expected 0..%lld",
                       (long long)count, (long long)most_count);
    return LK_OK;
}

static enum lk_status make_kernel(struct lk_device *device, struct lk_optimizer *optimizer)
{
    char source[64], name[64], options[256];
    const struct lk_optimizer_kind *kind = optimizer->info.kind;
    lk_elementwise_define(&optimizer->elementwise, options, sizeof options / 2);
    if (optimizer->adjustment)
        strcat(options, " -DADJUSTED=1");
    if (optimizer->rows)
        strcat(options, lk_lazy_rows_define(optimizer->rows));
    const size_t used = strlen(strcat(options, " "));
    if (kind->define)
        kind->define(optimizer->info.options, options + used, sizeof options - used);
    snprintf(name, sizeof name, "%s_update", kind->source);
    snprintf(source, sizeof source, "optim/%s", kind->source);
    const struct lk_kernel_spec spec = {.source = source,
                                        .name = name,
                                        .options = options,
                                        .real_bytes = (int)optimizer->real_bytes};
    return lk_kernel_create(device, &spec, &optimizer->kernel);
}

static enum lk_status make_state(struct lk_device *device, struct lk_optimizer *optimizer,
                                 int64_t count, bool has_ema)
{
    struct lk_optimizer_info *info = &optimizer->info;
    info->count = count;
    info->stride = lk_elementwise_padded(count);
    info->arrays = info->kind->arrays(info->options, info->array_names);
    if (has_ema)
        info->array_names[info->arrays++] = LK_EMA_ARRAY;
    const size_t bytes = (size_t)info->arrays * (size_t)info->stride * optimizer->real_bytes;
    info->scaling_at = (bytes + VIEW_ALIGN - 1) / VIEW_ALIGN * VIEW_ALIGN;
    return lk_buffer_create_zeros(device, info->scaling_at + VIEW_ALIGN, &info->state);
}

/* Finds the kind of that name and parses its options, which the caller frees. */
static enum lk_status parse(const char *kind, const char *options,
                            const struct lk_optimizer_kind **found, void **parsed)
{
    LK_TRY(lk_optimizer_find(kind, found));
    void *made = calloc(1, (*found)->options_bytes);
    if (!made)
        return lk_fail_memory("an optimizer", (*found)->options_bytes);
    const enum lk_status status = lk_options_parse((*found)->options, made, options);
    if (status != LK_OK) {
        free(made);
        return lk_fail_within(status, "optimizer '%s'", kind);
    }
    *parsed = made;
    return LK_OK;
}

enum lk_status lk_optimizer_ask(const char *kind, const char *options,
                                struct lk_optimizer_traits *traits)
{
    const struct lk_optimizer_kind *found = NULL;
    const char *names[LK_MOST_STATE_ARRAYS];
    void *parsed = NULL;
    LK_TRY(parse(kind, options, &found, &parsed));
    *traits = (struct lk_optimizer_traits){.arrays = found->arrays(parsed, names),
                                           .spares = found->spares && found->spares(parsed),
                                           .lazy = found->lazy(parsed)};
    free(parsed);
    return LK_OK;
}

static enum lk_status create(struct lk_optimizer *optimizer,
                             const struct lk_optimizer_config *config)
{
    struct lk_device *device = config->device;
    struct lk_optimizer_info *info = &optimizer->info;
    void *parsed = NULL;
    LK_TRY(parse(config->kind, config->options, &info->kind, &parsed));
    info->options = parsed;
    LK_TRY(lk_adjustment_create(config, &optimizer->adjustment));
    LK_TRY(lk_lazy_rows_create(config, info->kind->lazy(parsed), &optimizer->rows));
    LK_TRY(make_kernel(device, optimizer));
    LK_TRY(make_state(device, optimizer, config->count, config->ema > 0));
    return config->ema == 0 ? LK_OK : lk_average_create(config, info, &optimizer->average);
}

enum lk_status lk_optimizer_create(const struct lk_optimizer_config *config,
                                   struct lk_optimizer **optimizer)
{
    LK_TRY(check(config));
    struct lk_optimizer *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("an optimizer", sizeof *made);
    made->real_bytes = config->real == LK_F64 ? 8 : 4;
    made->elementwise = lk_elementwise_make(lk_device_info(config->device));
    const enum lk_status status = create(made, config);
    if (status != LK_OK) {
        lk_optimizer_destroy(made);
        return status;
    }
    *optimizer = made;
    return LK_OK;
}

void lk_optimizer_destroy(struct lk_optimizer *optimizer)
{
    if (!optimizer)
        return;
    lk_kernel_destroy(optimizer->kernel);
    lk_kernel_destroy(optimizer->track);
    lk_scaling_destroy(optimizer->scaling);
    lk_adjustment_destroy(optimizer->adjustment);
    lk_lazy_rows_destroy(optimizer->rows);
    lk_average_destroy(optimizer->average);
    lk_buffer_destroy(optimizer->info.scaling);
    lk_buffer_destroy(optimizer->info.state);
    free((void *)optimizer->info.options);
    free(optimizer);
}

enum lk_status lk_optimizer_scale_loss(struct lk_optimizer *optimizer, struct lk_device *device,
                                       const struct lk_loss_scale *how)
{
    struct lk_optimizer_info *info = &optimizer->info;
    if (optimizer->real_bytes != sizeof(float))
        return lk_fail(LK_E_ARGUMENT, "the loss is scaled for float32 alone");
    LK_TRY(lk_buffer_view(info->state, info->scaling_at, LK_LOSS_SCALE_NUMBERS * sizeof(float),
                          &info->scaling));
    return lk_scaling_create(device, how, info->scaling, &optimizer->scaling);
}

enum lk_status lk_optimizer_track(struct lk_optimizer *optimizer, struct lk_device *device,
                                  int64_t tracked)
{
    char options[128];
    const struct lk_kernel_spec spec = {.source = "optim/tracked",
                                        .name = "tracked_update",
                                        .options = options,
                                        .real_bytes = (int)optimizer->real_bytes};
    const int64_t count = optimizer->info.count;
    if (tracked < 1 || tracked > most_count - count || count % LK_PAD || optimizer->track)
        return lk_fail(LK_E_ARGUMENT, "%lld tracked parameters behind %lld others",
                       (long long)tracked, (long long)count);
    optimizer->tracked = tracked;
    lk_elementwise_define(&optimizer->elementwise, options, sizeof options);
    return lk_kernel_create(device, &spec, &optimizer->track);
}

double lk_optimizer_rate(const struct lk_optimizer *optimizer)
{
    const struct lk_optimizer_info *info = &optimizer->info;
    const struct lk_option *row = lk_option_find(info->kind->options, "lr");
    return *(const double *)((const char *)info->options + row->offset);
}

void lk_optimizer_set_group(struct lk_optimizer *optimizer,
                            const struct lk_optimizer_info *const *group)
{
    optimizer->info.group = group;
}

const struct lk_optimizer_info *lk_optimizer_info(const struct lk_optimizer *optimizer)
{
    return &optimizer->info;
}
