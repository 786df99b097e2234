/* One operation on one device, with guard bytes round every tensor. */
#include "rig.h"

#include "driver.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD = 0xa5, NAN_BYTE = 0xff };

char rig_where[512];

void rig_fail(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s: %s", rig_where, text);
    abort(); /* fail_msg does not return */
}

void rig_ok(enum lk_status status, const char *what)
{
    if (status != LK_OK)
        rig_fail("%s: %s: %s", what, lk_status_text(status), lk_error_text());
}

double *rig_doubles(int64_t count)
{
    double *memory = calloc((size_t)count + 1, sizeof *memory);
    if (!memory)
        rig_fail("no memory for %lld doubles", (long long)count);
    return memory;
}

/* --- guarded tensors ------------------------------------------------------------------- */

static void make(struct rig *rig, struct rig_tensor *tensor, size_t bytes)
{
    if (bytes == 0)
        return;
    struct lk_device *device = rig->setup.device;
    tensor->guard = lk_device_info(device)->align_bytes;
    tensor->bytes = bytes;
    tensor->host = malloc(bytes + 2 * tensor->guard);
    if (!tensor->host)
        rig_fail("no memory for a tensor of %zu bytes", bytes);
    rig_ok(lk_buffer_create(device, bytes + 2 * tensor->guard, &tensor->parent), "buffer");
    rig_ok(lk_buffer_view(tensor->parent, tensor->guard, bytes, &tensor->view), "view");
}

static void clear(struct rig_tensor *tensor)
{
    lk_buffer_destroy(tensor->view);
    lk_buffer_destroy(tensor->parent);
    free(tensor->host);
}

/* What the tensor's bytes are on the host; upload() sends them. */
static unsigned char *inside(const struct rig_tensor *tensor)
{
    return tensor->host + tensor->guard;
}

static void upload(struct rig_tensor *tensor)
{
    if (!tensor->parent)
        return;
    memset(tensor->host, GUARD, tensor->guard);
    memset(tensor->host + tensor->guard + tensor->bytes, GUARD, tensor->guard);
    rig_ok(lk_buffer_write(tensor->parent, 0, tensor->bytes + 2 * tensor->guard, tensor->host),
           "write");
}

static void upload_nan(struct rig_tensor *tensor)
{
    if (tensor->parent)
        memset(inside(tensor), NAN_BYTE, tensor->bytes);
    upload(tensor);
}

static void download(struct rig_tensor *tensor, const char *name)
{
    if (!tensor->parent)
        return;
    const size_t after = tensor->guard + tensor->bytes;
    rig_ok(lk_buffer_read(tensor->parent, 0, after + tensor->guard, tensor->host), "read");
    for (size_t i = 0; i < tensor->guard; i++) {
        if (tensor->host[i] != GUARD)
            rig_fail("%s was written %zu bytes before its start", name, tensor->guard - i);
        if (tensor->host[after + i] != GUARD)
            rig_fail("%s was written %zu bytes after its end", name, i);
    }
}

/* Fails where an input changed since upload(). */
static void check_unchanged(struct rig_tensor *tensor, const char *name)
{
    if (!tensor->parent)
        return;
    unsigned char *before = malloc(tensor->bytes);
    if (!before)
        rig_fail("no memory for %zu bytes", tensor->bytes);
    memcpy(before, inside(tensor), tensor->bytes);
    download(tensor, name);
    const bool same = memcmp(before, inside(tensor), tensor->bytes) == 0;
    free(before);
    if (!same)
        rig_fail("%s was changed", name);
}

/* source: IEEE 754-2008, binary16 */
static uint16_t half_bits(double value)
{
    const double size = fabs(op_round_to_half(value));
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    const double fraction = frexp(size, &exponent);
    if (isnan(value))
        return 0x7e00;
    if (size > 65504)
        return (uint16_t)(sign | 0x7c00);
    if (exponent <= -14 || size == 0)
        return (uint16_t)(sign | (uint16_t)ldexp(size, 24));
    return (uint16_t)(sign | ((exponent + 14) << 10) | ((uint16_t)ldexp(fraction, 11) & 0x3ff));
}

static double half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    const double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                        : exponent == 0 ? ldexp(fraction, -24)
                                        : ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -size : size;
}

static void put(void *to, enum lk_dtype dtype, size_t i, double value)
{
    if (dtype == LK_F16)
        ((uint16_t *)to)[i] = half_bits(value);
    else if (dtype == LK_F64)
        ((double *)to)[i] = value;
    else if (dtype == LK_F32)
        ((float *)to)[i] = (float)value;
    else
        ((int32_t *)to)[i] = (int32_t)value;
}

/* No operation makes a NaN of these bits. */
static bool is_unwritten(const unsigned char *tensor, enum lk_dtype dtype, size_t i)
{
    static const unsigned char unwritten[] = {NAN_BYTE, NAN_BYTE, NAN_BYTE, NAN_BYTE,
                                              NAN_BYTE, NAN_BYTE, NAN_BYTE, NAN_BYTE};
    const size_t size = lk_dtype_bytes(dtype);
    return memcmp(tensor + i * size, unwritten, size) == 0;
}

static double get(const void *from, enum lk_dtype dtype, size_t i)
{
    if (dtype == LK_F16)
        return half_value(((const uint16_t *)from)[i]);
    return dtype == LK_F64 ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

/* --- batch tiles ----------------------------------------------------------------------- */

enum dead { DEAD_REPEAT, DEAD_ZERO, DEAD_LABEL };

/* The sample of a lane; -1: the lane is dead. */
static int64_t sample_of(const struct rig *rig, int64_t tile, int lane)
{
    const struct lk_tiling *t = &rig->setup.tiling;
    const int64_t number = tile % t->shard_tiles * t->lanes + lane;
    const int64_t n = tile / t->shard_tiles * t->shard_samples + number;
    return number < t->shard_samples && n < rig->samples ? n : -1;
}

/* Where element e of the sample of a plane tile lies. */
static size_t plane_index(const struct lk_tiling *t, const struct lk_shape *shape, int64_t tile,
                          int64_t e)
{
    const int64_t count = lk_shape_count(shape), pixels = count / shape->dim[0];
    if (shape->rank != 3)
        return (size_t)((tile * count + e) * t->lanes);
    const int64_t plane = (pixels + t->lanes - 1) / t->lanes * t->lanes;
    return (size_t)((tile * shape->dim[0] + e / pixels) * plane + e % pixels);
}

static int copies_of(const struct lk_tiling *t, const struct lk_shape *shape)
{
    return shape->rank == 3 ? 1 : t->lanes;
}

/* Dead lanes are NaN: nothing may read them. In training they are finite, of dy zeros. */
static void upload_planes(struct rig *rig, struct rig_tensor *tensor,
                          const struct lk_shape *shape, enum lk_dtype dtype, enum dead dead,
                          const double *from)
{
    const struct lk_tiling *t = &rig->setup.tiling;
    const int64_t count = lk_shape_count(shape);
    const bool is_zero = rig->setup.training && dead == DEAD_ZERO;
    memset(inside(tensor), NAN_BYTE, tensor->bytes);
    for (size_t i = 0; rig->setup.training && i < tensor->bytes / lk_dtype_bytes(dtype); i++)
        put(inside(tensor), dtype, i, is_zero ? 0 : from[i % (size_t)count]);
    for (int64_t tile = 0; tile < (is_zero ? rig->samples : t->tiles); tile++)
        for (int64_t e = 0; e < count; e++)
            for (int copy = 0; copy < copies_of(t, shape); copy++)
                put(inside(tensor), dtype, plane_index(t, shape, tile, e) + (size_t)copy,
                    from[(tile < rig->samples ? tile : 0) * count + e]);
    upload(tensor);
}

/* In training, where dead lanes of images must be finite, or 0. */
static void check_dead_lanes(struct rig *rig, struct rig_tensor *tensor, const char *name,
                             const struct lk_shape *shape, enum lk_dtype dtype,
                             bool must_be_zero)
{
    const struct lk_tiling *t = &rig->setup.tiling;
    const struct lk_shape stored = lk_plane_shape(t, shape);
    const int64_t plane = stored.dim[1] * t->lanes, pixels = shape->dim[1] * shape->dim[2];
    for (int64_t i = 0; i < t->tiles * shape->dim[0] * plane; i++) {
        const double value = get(inside(tensor), dtype, (size_t)i);
        const bool is_dead = i % plane >= pixels || i / plane / shape->dim[0] >= rig->samples;
        if (is_dead && (must_be_zero ? value != 0 : !isfinite(value)))
            rig_fail("%s: plane %lld, dead lane %lld is %g", name, (long long)(i / plane),
                     (long long)(i % plane), value);
    }
}

static void download_planes(struct rig *rig, struct rig_tensor *tensor, const char *name,
                            const struct lk_shape *shape, enum lk_dtype dtype,
                            bool must_be_zero, double *to)
{
    const struct lk_tiling *t = &rig->setup.tiling;
    const int64_t count = lk_shape_count(shape);
    download(tensor, name);
    if (rig->setup.training && shape->rank == 3)
        check_dead_lanes(rig, tensor, name, shape, dtype, must_be_zero);
    for (int64_t tile = 0; tile < rig->samples; tile++)
        for (int64_t e = 0; e < count; e++) {
            const size_t i = plane_index(t, shape, tile, e);
            to[tile * count + e] = get(inside(tensor), dtype, i);
            for (int copy = 0; copy < copies_of(t, shape); copy++) {
                const double value = get(inside(tensor), dtype, i + (size_t)copy);
                if (is_unwritten(inside(tensor), dtype, i + (size_t)copy))
                    rig_fail("%s: tile %lld, element %lld was not written", name,
                             (long long)tile, (long long)e);
                if (value != to[tile * count + e] && !isnan(value))
                    rig_fail("%s: tile %lld, element %lld differs in lane %d", name,
                             (long long)tile, (long long)e, copy);
            }
        }
}

static void upload_tiles(struct rig *rig, struct rig_tensor *tensor,
                         const struct lk_shape *shape, enum lk_dtype dtype, enum dead dead,
                         const double *from)
{
    const struct lk_tiling *t = &rig->setup.tiling;
    const int64_t count = lk_shape_count(shape);
    if (t->planes) {
        upload_planes(rig, tensor, shape, dtype, dead, from);
        return;
    }
    for (int64_t tile = 0; tile < t->tiles; tile++)
        for (int lane = 0; lane < t->lanes; lane++) {
            const int64_t n = sample_of(rig, tile, lane);
            for (int64_t e = 0; e < count; e++) {
                double value = dead == DEAD_ZERO ? 0 : dead == DEAD_LABEL ? -1 : from[e];
                if (n >= 0)
                    value = from[n * count + e];
                put(inside(tensor), dtype, (size_t)((tile * count + e) * t->lanes + lane),
                    value);
            }
        }
    upload(tensor);
}

/* Dead lanes must be finite: they are multiplied by zeros later. must_be_zero: and 0. */
static void download_tiles(struct rig *rig, struct rig_tensor *tensor, const char *name,
                           const struct lk_shape *shape, enum lk_dtype dtype, bool must_be_zero,
                           double *to)
{
    const struct lk_tiling *t = &rig->setup.tiling;
    const int64_t count = lk_shape_count(shape);
    if (t->planes) {
        download_planes(rig, tensor, name, shape, dtype, must_be_zero, to);
        return;
    }
    download(tensor, name);
    for (int64_t tile = 0; tile < t->tiles; tile++)
        for (int lane = 0; lane < t->lanes; lane++) {
            const int64_t n = sample_of(rig, tile, lane);
            for (int64_t e = 0; e < count; e++) {
                const size_t i = (size_t)((tile * count + e) * t->lanes + lane);
                const double value = get(inside(tensor), dtype, i);
                if (n >= 0)
                    to[n * count + e] = value;
                if (is_unwritten(inside(tensor), dtype, i))
                    rig_fail("%s: tile %lld, element %lld, lane %d (%s) was not written", name,
                             (long long)tile, (long long)e, lane, n < 0 ? "dead" : "living");
                if (n < 0 && (must_be_zero ? value != 0 : !isfinite(value)))
                    rig_fail("%s: tile %lld, element %lld, dead lane %d is %g", name,
                             (long long)tile, (long long)e, lane, value);
            }
        }
}

/* --- parameter gradients --------------------------------------------------------------- */

static void upload_dw(struct rig *rig, int j)
{
    struct rig_tensor *dw = &rig->dw[j];
    if (!dw->parent)
        return;
    const size_t size = lk_dtype_bytes(rig->setup.real);
    const size_t count = (size_t)lk_shape_count(&rig->setup.shapes.param[j].shape);
    memset(inside(dw), GUARD, dw->bytes);
    for (int s = 0; s < rig->setup.tiling.shards; s++)
        memset(inside(dw) + (size_t)s * (size_t)rig->run.dw_stride * size, NAN_BYTE,
               count * size);
    upload(dw);
}

static void download_dw(struct rig *rig, int j, double *to)
{
    struct rig_tensor *dw = &rig->dw[j];
    const struct lk_param_spec *param = &rig->setup.shapes.param[j];
    const size_t size = lk_dtype_bytes(rig->setup.real);
    const size_t count = (size_t)lk_shape_count(&param->shape);
    const size_t stride = (size_t)rig->run.dw_stride;
    char name[64];
    snprintf(name, sizeof name, "dw[%d] (%s)", j, param->name);
    download(dw, name);
    for (size_t s = 0; s < (size_t)rig->setup.tiling.shards; s++) {
        for (size_t i = 0; i < count; i++) {
            const double value = get(inside(dw), rig->setup.real, s * stride + i);
            if (is_unwritten(inside(dw), rig->setup.real, s * stride + i))
                rig_fail("%s: shard %zu, element %zu was not written", name, s, i);
            to[s * count + i] = value;
        }
        for (size_t i = count * size; i < stride * size; i++)
            if (inside(dw)[s * stride * size + i] != GUARD)
                rig_fail("%s: written beyond shard %zu's %zu elements", name, s, count);
    }
}

/* The type of y in memory. */
static enum lk_dtype y_dtype(const struct rig *rig)
{
    return rig->setup.shapes.is_loss ? rig->setup.real : lk_op_stored(&rig->setup);
}

/* --- life ------------------------------------------------------------------------------ */

static void make_gradients(struct rig *rig, struct rig_wants wants)
{
    const struct lk_op_shapes *shapes = &rig->setup.shapes;
    const size_t size = lk_dtype_bytes(rig->setup.real);
    const size_t align = lk_device_info(rig->setup.device)->align_bytes / size;
    size_t longest = 0;
    for (int i = 0; i < shapes->inputs; i++)
        if (rig->setup.wants_dx[i])
            make(rig, &rig->dx[i], rig->x[i].bytes);
    for (int j = 0; j < shapes->params; j++) {
        const size_t count = (size_t)lk_shape_count(&shapes->param[j].shape);
        longest = count > longest ? count : longest;
    }
    /* a gap behind every shard's elements, as the other parameters of a model leave one */
    const size_t stride = (longest + align - 1) / align * align + align;
    rig->run.dw_stride = (int64_t)stride;
    for (int j = 0; j < shapes->params && wants.dw; j++)
        make(rig, &rig->dw[j], (size_t)rig->setup.tiling.shards * stride * size);
    if (!rig->setup.shapes.is_loss)
        make(rig, &rig->dy, rig->y.bytes);
}

void rig_prepare(struct rig *rig, struct lk_device *device, const struct lk_op *op,
                 const struct lk_op_setup *setup, int64_t samples, struct rig_wants wants)
{
    *rig = (struct rig){.op = op, .setup = *setup, .samples = samples};
    struct lk_op_setup *s = &rig->setup;
    s->device = device;
    s->arena = &rig->arena;
    s->training = wants.training;
    s->wants_dw = wants.training && wants.dw && s->shapes.params > 0;
    for (int i = 0; i < s->shapes.inputs; i++)
        s->wants_dx[i] = wants.training && wants.dx && s->shapes.x_dtype[i] != LK_I32;
    rig_ok(op->prepare(s), "prepare");
}

void rig_build(struct rig *rig, struct rig_wants wants)
{
    const struct lk_op_setup *s = &rig->setup;
    rig_ok(lk_device_build(s->device), "build");
    const size_t size = lk_dtype_bytes(s->real);
    for (int i = 0; i < s->shapes.inputs; i++)
        make(rig, &rig->x[i],
             lk_tiled_bytes(&s->tiling, &s->shapes.x[i],
                            s->shapes.x_dtype[i] == LK_I32 ? LK_I32 : lk_op_stored(s)));
    for (int j = 0; j < s->shapes.params; j++)
        make(rig, &rig->w[j], (size_t)lk_shape_count(&s->shapes.param[j].shape) * size);
    make(rig, &rig->y, lk_tiled_bytes(&s->tiling, &s->shapes.y, y_dtype(rig)));
    make(rig, &rig->saved, s->saved_bytes);
    make(rig, &rig->workspace, s->workspace_bytes);
    make(rig, &rig->packed, s->packed_bytes);
    upload_nan(&rig->packed);
    rig->run.weights_are_new = true;
    if (wants.training)
        make_gradients(rig, wants);
    rig->run.samples = rig->samples;
    rig->device_bytes = lk_device_bytes(s->device);
}

void rig_set_loss_scale(struct rig *rig, double scale)
{
    make(rig, &rig->loss_scale, lk_dtype_bytes(rig->setup.real));
    put(inside(&rig->loss_scale), rig->setup.real, 0, scale);
    upload(&rig->loss_scale);
    rig->run.loss_scale = rig->loss_scale.view;
    rig->loss_scaled = scale;
    rig->device_bytes = lk_device_bytes(rig->setup.device);
}

void rig_close(struct rig *rig)
{
    for (int i = 0; i < LK_MOST_INPUTS; i++) {
        clear(&rig->x[i]);
        clear(&rig->dx[i]);
    }
    for (int j = 0; j < LK_MOST_PARAMS; j++) {
        clear(&rig->w[j]);
        clear(&rig->dw[j]);
    }
    clear(&rig->y);
    clear(&rig->dy);
    clear(&rig->saved);
    clear(&rig->workspace);
    clear(&rig->packed);
    clear(&rig->loss_scale);
    lk_choices_destroy(rig->setup.choices);
    lk_arena_clear(&rig->arena);
}

void rig_write(struct rig *rig, const struct rig_arrays *arrays)
{
    const struct lk_op_shapes *shapes = &rig->setup.shapes;
    for (int i = 0; i < shapes->inputs; i++) {
        const bool labels = shapes->x_dtype[i] == LK_I32;
        upload_tiles(rig, &rig->x[i], &shapes->x[i],
                     labels ? LK_I32 : lk_op_stored(&rig->setup),
                     labels ? DEAD_LABEL : DEAD_REPEAT, arrays->x[i]);
    }
    for (int j = 0; j < shapes->params; j++) {
        const size_t count = (size_t)lk_shape_count(&shapes->param[j].shape);
        for (size_t k = 0; k < count; k++)
            put(inside(&rig->w[j]), rig->setup.real, k, arrays->w[j][k]);
        upload(&rig->w[j]);
    }
}

/* --- runs ------------------------------------------------------------------------------ */

/* Inputs survive, and nothing was allocated. */
static void check_after(struct rig *rig)
{
    for (int i = 0; i < rig->setup.shapes.inputs; i++)
        check_unchanged(&rig->x[i], "x");
    for (int j = 0; j < rig->setup.shapes.params; j++)
        check_unchanged(&rig->w[j], "w");
    download(&rig->workspace, "the workspace");
    download(&rig->packed, "what is packed");
    if (lk_device_bytes(rig->setup.device) != rig->device_bytes)
        rig_fail("device memory was allocated or released while running");
}

void rig_forward(struct rig *rig, double *y)
{
    const struct lk_op_shapes *shapes = &rig->setup.shapes;
    struct lk_op_run run = rig->run;
    for (int i = 0; i < shapes->inputs; i++)
        run.x[i] = rig->x[i].view;
    for (int j = 0; j < shapes->params; j++)
        run.w[j] = rig->w[j].view;
    run.y = rig->y.view;
    run.saved = rig->saved.view;
    run.workspace = rig->workspace.view;
    run.packed = rig->packed.view;
    rig->run.weights_are_new = rig->setup.training; /* else the next run finds what is packed */
    upload_nan(&rig->y);
    upload_nan(&rig->saved);
    upload_nan(&rig->workspace);
    rig_ok(rig->op->forward(&rig->setup, &run), "forward");
    rig_ok(lk_device_finish(rig->setup.device), "forward");
    download_tiles(rig, &rig->y, "y", &shapes->y, y_dtype(rig), shapes->is_loss, y);
    download(&rig->saved, "saved");
    check_after(rig);
}

static void download_dx(struct rig *rig, int i, double *dx)
{
    const struct lk_shape *shape = &rig->setup.shapes.x[i];
    download_tiles(rig, &rig->dx[i], "dx", shape, lk_op_stored(&rig->setup), true, dx);
    for (int64_t k = 0; rig->loss_scaled != 0 && k < rig->samples * lk_shape_count(shape); k++)
        dx[k] /= rig->loss_scaled;
}

void rig_backward(struct rig *rig, const double *dy, double *const dx[], double *const dw[])
{
    const struct lk_op_shapes *shapes = &rig->setup.shapes;
    struct lk_op_run run = rig->run;
    for (int i = 0; i < shapes->inputs; i++) {
        const bool is_kept = rig->op->takes_length && shapes->x_dtype[i] == LK_I32;
        run.x[i] = shapes->backward_reads_x || is_kept ? rig->x[i].view : NULL;
        run.dx[i] = rig->dx[i].view;
        upload_nan(&rig->dx[i]);
    }
    for (int j = 0; j < shapes->params; j++) {
        run.w[j] = rig->w[j].view;
        run.dw[j] = rig->dw[j].view;
        upload_dw(rig, j);
    }
    run.y = shapes->backward_reads_y && !rig->setup.dy_is_gated ? rig->y.view : NULL;
    run.dy = rig->dy.view;
    run.saved = rig->saved.view;
    run.workspace = rig->workspace.view;
    if (rig->dy.parent)
        upload_tiles(rig, &rig->dy, &shapes->y, y_dtype(rig), DEAD_ZERO, dy);
    upload_nan(&rig->workspace);
    rig_ok(rig->op->backward(&rig->setup, &run), "backward");
    rig_ok(lk_device_finish(rig->setup.device), "backward");
    for (int i = 0; i < shapes->inputs; i++)
        if (rig->dx[i].parent)
            download_dx(rig, i, dx[i]);
    for (int j = 0; j < shapes->params; j++)
        if (rig->dw[j].parent)
            download_dw(rig, j, dw[j]);
    check_unchanged(&rig->y, "y");
    check_unchanged(&rig->dy, "dy");
    download(&rig->saved, "saved");
    check_after(rig);
}
