/* Predicts the training speed for each number of devices of a list. */
#include "base/fail.h"
#include "bench/scale/scale.h"
#include "mirror/shards.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = LK_MOST_SHARDS, MOST_BATCH = 1 << 24, MOST_ADDED = 64 << 20 };

static const double SECONDS = 0.7; /* on each number of shards */

const char *lk_scale_limit_name(enum lk_scale_limit limit)
{
    static const char *const names[] = {
        [LK_SCALE_COMPUTE] = "compute",         [LK_SCALE_LINK] = "link",
        [LK_SCALE_ADDITION] = "host addition",  [LK_SCALE_NETWORK] = "network",
        [LK_SCALE_UPDATE] = "update",           [LK_SCALE_FIXED] = "fixed cost",
        [LK_SCALE_READING] = "reading samples", [LK_SCALE_SHARDS] = "too few shards",
    };
    return (unsigned)limit < LK_COUNT(names) ? names[limit] : "?";
}

static bool is_rate(double gbs)
{
    return isfinite(gbs) && gbs > 0;
}

static enum lk_status check(const struct lk_scale_options *o)
{
    if (o->count < 1)
        return lk_fail(LK_E_ARGUMENT, "no number of devices is asked for");
    for (int i = 0; i < o->count; i++)
        if (o->devices[i] < 1 || o->devices[i] > MOST_DEVICES)
            return lk_fail(LK_E_ARGUMENT, "%d devices; expected 1 to %d", o->devices[i],
                           MOST_DEVICES);
    if (o->shards < 0 || o->shards > LK_MOST_SHARDS || (o->shards & (o->shards - 1)))
        return lk_fail(LK_E_ARGUMENT, "%d shards; expected a power of two, at most %d",
                       o->shards, LK_MOST_SHARDS);
    if ((o->batch == 0) == (o->each == 0))
        return lk_fail(LK_E_ARGUMENT, "expected the batch of all devices or of each, not %s",
                       o->batch ? "both" : "neither");
    if (o->batch < 0 || o->batch > MOST_BATCH || o->each < 0 || o->each > MOST_BATCH)
        return lk_fail(LK_E_ARGUMENT, "a batch of %lld samples; expected 1 to %d",
                       (long long)(o->batch ? o->batch : o->each), MOST_BATCH);
    if (o->link_gbs != 0 && !is_rate(o->link_gbs))
        return lk_fail(LK_E_ARGUMENT, "a link of %g GB/s; expected more than 0", o->link_gbs);
    if (o->hosts < 1 || o->hosts > MOST_DEVICES)
        return lk_fail(LK_E_ARGUMENT, "%d hosts; expected 1 to %d", o->hosts, MOST_DEVICES);
    if (o->hosts > 1 && !is_rate(o->net_gbs))
        return lk_fail(LK_E_ARGUMENT,
                       "a network of %g GB/s between %d hosts; expected more "
                       "than 0",
                       o->net_gbs, o->hosts);
    return LK_OK;
}

struct prediction {
    struct lk_device *device;
    const struct lk_scale_options *options;
    struct lk_scale_report *report;
    struct lk_scale_costs *costs; /* of the shards and batch of a row */
    struct lk_scale_links wires;
    struct lk_scale_reading reading;
    double alone_spread;
};

static struct lk_scale_row begin_row(const struct lk_scale_options *o, int devices)
{
    const int64_t batch = o->batch ? o->batch : o->each * devices;
    return (struct lk_scale_row){.devices = devices,
                                 .shards = o->shards ? o->shards : lk_shards_choose(batch),
                                 .batch = batch};
}

static bool is_alike(const struct lk_scale_row *a, const struct lk_scale_row *b)
{
    return a->batch == b->batch && a->shards == b->shards;
}

/* Measures once for all rows with the same batch and number of shards. */
static enum lk_status measure_for(struct prediction *p, const struct lk_scale_row *row)
{
    const struct lk_scale_row *rows = p->report->rows;
    struct lk_scale_subject subject = {.model = p->options->model,
                                       .settings = p->options->settings,
                                       .batch = row->batch,
                                       .shards = row->shards};
    lk_scale_want(row->shards, row->devices, subject.wanted);
    for (int i = 0; i < p->options->count; i++)
        if (is_alike(row, &rows[i]))
            lk_scale_want(row->shards, rows[i].devices, subject.wanted);
    return lk_scale_measure(p->device, &subject, SECONDS, p->costs);
}

/* Measures how fast the host adds, on buckets of the mean size, and copies. A copy counts
 * twice: it reads as many bytes as it writes. */
static enum lk_status measure_host(struct prediction *p)
{
    struct lk_scale_report *r = p->report;
    struct lk_bench_averaging sum;
    r->buckets = p->costs->buckets;
    r->bytes = 0;
    for (int b = 0; b < r->buckets; b++)
        r->bytes += p->costs->bytes[b];
    const double each = r->bytes / r->buckets;
    LK_TRY(lk_bench_averaging((int64_t)(each < MOST_ADDED ? each : MOST_ADDED), &sum));
    r->add_gbs = p->costs->add_gbs = sum.checked_gbs;
    if (p->options->link_gbs == 0) {
        LK_TRY(lk_bench_averaging(0, &sum));
        r->link_gbs = p->wires.link_gbs = sum.copy_gbs / 2;
    }
    return LK_OK;
}

/* What else the cores of the host with the most devices do: devices that are cores of the host
 * share them with what gives them work, a fixed cost, and with reading. Whether the step is as
 * long as reading alone. */
static bool add_host(const struct prediction *p, const struct lk_scale_row *row,
                     struct lk_scale_moment *end)
{
    const struct lk_scale_reading none = {.cores = p->reading.cores};
    const struct lk_device_info *info = lk_device_info(p->device);
    const bool is_cpu = info->device_class == LK_CLASS_CPU;
    const int working = (int)lk_least(row->devices, row->shards);
    const int hosts = (int)lk_least(p->wires.hosts, working);
    const int most = (int)lk_divide_up(working, hosts);
    const double samples = (double)row->batch * most / working;
    const double cores = is_cpu ? most * info->compute_units : 0;
    const double busy = is_cpu ? lk_scale_cores_time(p->costs, working, most) : 0;
    const double given = lk_scale_read_beside(&none, samples, end->at, busy, cores);
    const double step = lk_scale_read_beside(&p->reading, samples, end->at, busy, cores);
    end->seconds[LK_SCALE_FIXED] += given - end->at;
    end->seconds[LK_SCALE_READING] = step - given;
    end->at = step;
    return p->reading.alone > 0 && lk_scale_read_alone(&p->reading, samples) >= step;
}

static void fill_row(const struct prediction *p, struct lk_scale_row *row)
{
    struct lk_scale_moment end = lk_scale_simulate(p->costs, &p->wires, row->devices);
    const bool is_reading = add_host(p, row, &end);
    row->step_ms = 1e3 * end.at;
    row->samples_per_s = (double)row->batch / end.at;
    row->limit =
        is_reading ? LK_SCALE_READING : lk_scale_limit_of(&end, row->shards, row->devices);
    for (int i = 0; i < LK_SCALE_LIMITS; i++)
        row->ms[i] = 1e3 * end.seconds[i];
}

static enum lk_status predict(struct prediction *p)
{
    const struct lk_scale_options *o = p->options;
    struct lk_scale_row *alone = &p->report->alone;
    const struct lk_scale_row *measured = alone;
    for (int i = 0; i < o->count; i++)
        p->report->rows[i] = begin_row(o, o->devices[i]);
    *alone = begin_row(o, 1);
    LK_TRY(lk_scale_measure_reading(o->settings, alone->batch, &p->reading));
    p->report->reading_ms = 1e3 * p->reading.cores_time;
    LK_TRY(measure_for(p, alone));
    LK_TRY(measure_host(p));
    fill_row(p, alone);
    alone->percent = 100;
    p->alone_spread = lk_scale_spread(p->costs, 1);
    for (int i = 0; i < o->count; i++) {
        struct lk_scale_row *row = &p->report->rows[i];
        if (!is_alike(measured, row))
            LK_TRY(measure_for(p, row));
        measured = row;
        fill_row(p, row);
        row->percent = 100 * row->samples_per_s / (row->devices * alone->samples_per_s);
        row->noise =
            row->percent * (lk_scale_spread(p->costs, row->devices) + p->alone_spread) / 2;
    }
    return LK_OK;
}

enum lk_status lk_bench_scale(struct lk_device *device, const struct lk_scale_options *options,
                              struct lk_scale_report *report)
{
    LK_TRY(check(options));
    struct prediction p = {.device = device, .options = options, .report = report};
    p.wires = (struct lk_scale_links){options->link_gbs, options->hosts, options->net_gbs};
    p.costs = calloc(1, sizeof *p.costs);
    if (!p.costs)
        return lk_fail_memory("times of steps", sizeof *p.costs);
    report->link_gbs = options->link_gbs;
    const enum lk_status status = predict(&p);
    free(p.costs);
    return status;
}
