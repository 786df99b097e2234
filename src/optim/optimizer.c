/* What all optimizers share: their state, the kernel's launch, tracked values, the loss scale.
 */
#include "optim/optimizer.h"

#include "base/fail.h"
#include "optim/scaling.h"
#include "tensor/tensor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t most_count = INT32_MAX - 65536; /* kernels count elements in an int */

struct lk_optimizer {
    struct lk_optimizer_info info;
    struct lk_kernel *kernel;
    struct lk_elementwise elementwise;
    size_t real_bytes;
    struct lk_scaling *scaling; /* NULL: the loss is not scaled */
    struct lk_kernel *track;
    int64_t tracked;
};

/* A view may begin at a multiple of so many bytes on every known device. */
enum { VIEW_ALIGN = 512 };

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

static enum lk_status check(const struct lk_device *device, enum lk_dtype real, int64_t count)
{
    if (real != LK_F32 && real != LK_F64)
        return lk_fail(LK_E_ARGUMENT, "an optimizer works on float32 or float64");
    if (real == LK_F64 && !lk_device_info(device)->has_fp64)
        return lk_fail(LK_E_UNSUPPORTED, "optimizer in float64: %s has no cl_khr_fp64",
                       lk_device_info(device)->name);
    if (count < 1 || count > most_count)
        return lk_fail(LK_E_ARGUMENT, "optimizer of %lld parameters: expected 1..%lld",
                       (long long)count, (long long)most_count);
    return LK_OK;
}

static enum lk_status make_kernel(struct lk_device *device, struct lk_optimizer *optimizer)
{
    char source[64], name[64], options[256];
    const struct lk_optimizer_kind *kind = optimizer->info.kind;
    lk_elementwise_define(&optimizer->elementwise, options, sizeof options - 1);
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

static size_t scaling_offset(const struct lk_optimizer *optimizer)
{
    const struct lk_optimizer_info *info = &optimizer->info;
    const size_t bytes = (size_t)info->arrays * (size_t)info->stride * optimizer->real_bytes;
    return (bytes + VIEW_ALIGN - 1) / VIEW_ALIGN * VIEW_ALIGN;
}

static enum lk_status make_state(struct lk_device *device, struct lk_optimizer *optimizer,
                                 int64_t count)
{
    struct lk_optimizer_info *info = &optimizer->info;
    info->count = count;
    info->stride = lk_elementwise_padded(count);
    info->arrays = info->kind->arrays(info->options, info->array_names);
    LK_TRY(lk_buffer_create(device, scaling_offset(optimizer) + VIEW_ALIGN, &info->state));
    return lk_buffer_enqueue_fill(info->state, 0);
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

enum lk_status lk_optimizer_state_arrays(const char *kind, const char *options, int *arrays)
{
    const struct lk_optimizer_kind *found = NULL;
    const char *names[LK_MOST_STATE_ARRAYS];
    void *parsed = NULL;
    LK_TRY(parse(kind, options, &found, &parsed));
    *arrays = found->arrays(parsed, names);
    free(parsed);
    return LK_OK;
}

enum lk_status lk_optimizer_create(struct lk_device *device, enum lk_dtype real,
                                   const char *kind, const char *options, int64_t count,
                                   struct lk_optimizer **optimizer)
{
    LK_TRY(check(device, real, count));
    struct lk_optimizer *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("an optimizer", sizeof *made);
    void *parsed = NULL;
    enum lk_status status = parse(kind, options, &made->info.kind, &parsed);
    made->info.options = parsed;
    made->real_bytes = real == LK_F64 ? 8 : 4;
    made->elementwise = lk_elementwise_make(lk_device_info(device));
    if (status == LK_OK)
        status = make_kernel(device, made);
    if (status == LK_OK)
        status = make_state(device, made, count);
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
    LK_TRY(lk_buffer_view(info->state, scaling_offset(optimizer),
                          LK_LOSS_SCALE_NUMBERS * sizeof(float), &info->scaling));
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

enum lk_status lk_optimizer_enqueue_check(struct lk_optimizer *optimizer,
                                          const struct lk_buffer *g, int64_t count)
{
    return optimizer->scaling ? lk_scaling_enqueue_check(optimizer->scaling, g, count) : LK_OK;
}

enum lk_status lk_optimizer_enqueue_decision(struct lk_optimizer *optimizer)
{
    return optimizer->scaling ? lk_scaling_enqueue_decision(optimizer->scaling) : LK_OK;
}

static enum lk_status check_update(const struct lk_optimizer *optimizer,
                                   const struct lk_buffer *w, const struct lk_buffer *g,
                                   const struct lk_update *update)
{
    const struct lk_optimizer_info *info = &optimizer->info;
    const int64_t count = info->count + optimizer->tracked;
    const size_t whole = (size_t)lk_elementwise_padded(count) * optimizer->real_bytes;
    const size_t part = (size_t)lk_elementwise_padded(update->count) * optimizer->real_bytes;
    if (update->step < 1)
        return lk_fail(LK_E_ARGUMENT, "optimizer '%s': step %lld; the first is 1",
                       info->kind->name, (long long)update->step);
    if (update->first < 0 || update->first % LK_PAD || update->count < 1 ||
        update->count > count - update->first)
        return lk_fail(LK_E_ARGUMENT, "optimizer '%s': %lld elements from %lld on, of %lld",
                       info->kind->name, (long long)update->count, (long long)update->first,
                       (long long)count);
    if (lk_buffer_bytes(w) < whole || lk_buffer_bytes(g) < part)
        return lk_fail(LK_E_ARGUMENT,
                       "optimizer '%s': parameters have %zu bytes, gradients %zu; expected %zu "
                       "and %zu",
                       info->kind->name, lk_buffer_bytes(w), lk_buffer_bytes(g), whole, part);
    return LK_OK;
}

static enum lk_status enqueue_moved(struct lk_optimizer *optimizer, struct lk_buffer *w,
                                    const struct lk_buffer *g, const struct lk_update *update)
{
    const struct lk_optimizer_info *info = &optimizer->info;
    const struct lk_elementwise *e = &optimizer->elementwise;
    double numbers[LK_MOST_NUMBERS];
    const int count = info->kind->numbers(info->options, update->lr, update->step, numbers);
    struct lk_arg args[8 + LK_MOST_NUMBERS] = {LK_BUF(w),
                                               LK_BUF(g),
                                               LK_BUF(info->state),
                                               LK_INT(update->first / e->vector),
                                               LK_INT(lk_elementwise_vectors(e, update->count)),
                                               LK_INT(info->stride / e->vector),
                                               LK_REAL(update->scale),
                                               LK_BUF(info->scaling)};
    for (int i = 0; i < count; i++)
        args[8 + i] = (struct lk_arg)LK_REAL(numbers[i]);
    return lk_kernel_enqueue(optimizer->kernel, lk_elementwise_grid(e, update->count), args,
                             8 + count);
}

enum lk_status lk_optimizer_enqueue_part(struct lk_optimizer *optimizer, struct lk_buffer *w,
                                         const struct lk_buffer *g,
                                         const struct lk_update *update)
{
    const struct lk_elementwise *e = &optimizer->elementwise;
    const int64_t left = optimizer->info.count - update->first;
    struct lk_update moved = *update;
    LK_TRY(check_update(optimizer, w, g, update));
    moved.count = left < 0 ? 0 : lk_least(left, update->count);
    const int64_t tracked = update->count - moved.count;
    if (moved.count > 0)
        LK_TRY(enqueue_moved(optimizer, w, g, &moved));
    if (tracked == 0)
        return LK_OK;
    return LK_ENQUEUE(optimizer->track, lk_elementwise_grid(e, tracked), LK_BUF(w),
                      LK_INT((update->first + moved.count) / e->vector), LK_BUF(g),
                      LK_INT(moved.count / e->vector),
                      LK_INT(lk_elementwise_vectors(e, tracked)), LK_REAL(update->scale),
                      LK_BUF(optimizer->info.scaling));
}

enum lk_status lk_optimizer_enqueue(struct lk_optimizer *optimizer, struct lk_buffer *w,
                                    const struct lk_buffer *g, double scale, double lr,
                                    int64_t step)
{
    const struct lk_update all = {.count = optimizer->info.count + optimizer->tracked,
                                  .scale = scale,
                                  .lr = lr,
                                  .step = step};
    LK_TRY(lk_optimizer_enqueue_check(optimizer, g, all.count));
    LK_TRY(lk_optimizer_enqueue_decision(optimizer));
    return lk_optimizer_enqueue_part(optimizer, w, g, &all);
}

double lk_optimizer_rate(const struct lk_optimizer *optimizer)
{
    const struct lk_optimizer_info *info = &optimizer->info;
    const struct lk_option *row = lk_option_find(info->kind->options, "lr");
    return *(const double *)((const char *)info->options + row->offset);
}

const struct lk_optimizer_info *lk_optimizer_info(const struct lk_optimizer *optimizer)
{
    return &optimizer->info;
}
