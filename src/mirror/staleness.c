/* Bounds how stale asynchronous updates may become. */
#include "mirror/staleness.h"

#include "base/fail.h"
#include <assert.h>

enum lk_status lk_staleness_init(struct lk_staleness *staleness, int64_t most, int workers,
                                 int64_t updates)
{
    if (most < 0 || most > LK_MOST_STALENESS)
        return lk_fail(LK_E_ARGUMENT, "staleness is 0 to %d updates, asked for is %lld",
                       LK_MOST_STALENESS, (long long)most);
    if (workers < 1 || workers > LK_MOST_STALE_WORKERS || updates < 0)
        return lk_fail(LK_E_ARGUMENT, "1 to %d devices can update, found %d",
                       LK_MOST_STALE_WORKERS, workers);
    *staleness =
        (struct lk_staleness){.most = (int)most, .workers = workers, .updates = updates};
    return LK_OK;
}

/* Whether work with these bases can become updates `next` + 1, `next` + 2 ... within the bound.
 * Only the order with the lowest base first has to be tried, as with jobs by earliest deadline:
 * if it breaks the bound, every order does. */
static bool fits(const int64_t *ascending, int count, int64_t next, int most)
{
    for (int i = 0; i < count; i++)
        if (next + i - ascending[i] > most)
            return false;
    return true;
}

static int insert(int64_t *ascending, int count, int64_t base)
{
    int at = count;
    for (; at > 0 && ascending[at - 1] > base; at--)
        ascending[at] = ascending[at - 1];
    ascending[at] = base;
    return count + 1;
}

/* Lists the bases of all work in progress but that of worker `left_out`. */
static int list_bases(const struct lk_staleness *staleness, int left_out, int64_t *ascending)
{
    int count = 0;
    for (int i = 0; i < staleness->workers; i++)
        if (staleness->is_working[i] && i != left_out)
            count = insert(ascending, count, staleness->bases[i]);
    return count;
}

bool lk_staleness_may_begin(const struct lk_staleness *staleness, int64_t base)
{
    int64_t bases[LK_MOST_STALE_WORKERS + 1];
    const int count = insert(bases, list_bases(staleness, -1, bases), base);
    return fits(bases, count, staleness->updates, staleness->most);
}

void lk_staleness_begin(struct lk_staleness *staleness, int worker, int64_t base)
{
    staleness->bases[worker] = base;
    staleness->is_working[worker] = true;
}

bool lk_staleness_may_apply(const struct lk_staleness *staleness, int worker)
{
    int64_t bases[LK_MOST_STALE_WORKERS];
    const int count = list_bases(staleness, worker, bases);
    return fits(bases, count, staleness->updates + 1, staleness->most);
}

void lk_staleness_apply(struct lk_staleness *staleness, int worker)
{
    const int64_t missed = staleness->updates - staleness->bases[worker];
    assert(missed >= 0 && missed <= staleness->most);
    staleness->counts[missed]++;
    staleness->updates++;
    staleness->is_working[worker] = false;
}

void lk_staleness_abandon(struct lk_staleness *staleness, int worker)
{
    staleness->is_working[worker] = false;
}
