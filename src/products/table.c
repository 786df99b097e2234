/* The table of products, and how a pass chooses from it.
 *
 * A row's name begins with its family. Of a family a pass has one row: the first in the table
 * that fits. `order` says in which order a row adds; rows that share the word add the same
 * terms in the same order, so they give the same bits. kernel/README.md has the words. */
#include "products/table.h"

#include "base/fail.h"
#include "products/gpu/units.h"
#include <stdio.h>
#include <string.h>

enum { USUAL_SHARD_TILES = 4 };

#define ROW(path_, verbs_, name_, pass_, class_, math_, takes_, order_, ...)                   \
    {.name = name_,                                                                            \
     .pass = LK_PASS_##pass_,                                                                  \
     .device_class = LK_ON_##class_,                                                           \
     .math = LK_MATH_##math_,                                                                  \
     .order = order_,                                                                          \
     .verbs = &verbs_,                                                                         \
     .takes = LK_DZ_##takes_,                                                                  \
     __VA_ARGS__},

const struct lk_product lk_products[] = {LK_PRODUCT_ROWS(ROW){0}};

static bool is_of_class(const struct lk_product *row, const struct lk_product_setup *setup)
{
    return row->device_class == LK_ON_ANY ||
           (row->device_class == LK_ON_CPU) == (setup->tiling.vector > 1);
}

static bool can(const struct lk_product_setup *setup, const struct lk_product *row,
                const struct lk_product_job *job)
{
    struct lk_product_job of = *job;
    of.product = row;
    return row->pass == job->pass && is_of_class(row, setup) &&
           (!row->verbs->fits || row->verbs->fits(setup, &of));
}

/* Whether one of those rows fits that leave nothing to others. */
static bool has_only(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    for (const struct lk_product *row = lk_products; row->name; row++)
        if (row->is_only && can(setup, row, job))
            return true;
    return false;
}

bool lk_product_fits(const struct lk_product_setup *setup, const struct lk_product *row,
                     const struct lk_product_job *job)
{
    return row->is_only == has_only(setup, job) && can(setup, row, job);
}

static bool has_family(const struct lk_choice *choice, const char *name)
{
    for (int i = 0; i < choice->count; i++)
        if (lk_candidate_is_kin(choice->candidates[i].name, name))
            return true;
    return false;
}

static void add_candidates(const struct lk_product_setup *setup, const struct lk_product *row,
                           const struct lk_product_job *job, struct lk_choice *choice)
{
    char text[LK_BLOCKING_BYTES];
    struct lk_product_job of = *job;
    of.product = row;
    struct lk_candidate made = {.cost = row->verbs->cost(setup, &of), .math = row->math};
    if (choice->count == LK_MOST_CANDIDATES)
        return;
    snprintf(made.name, sizeof made.name, "%s", row->name);
    choice->candidates[choice->count++] = made;
    made.cost *= 1.01; /* by rule, the kernel's own one */
    for (int i = 0; choice->count < LK_MOST_CANDIDATES && row->verbs->blocking &&
                    row->verbs->blocking(setup, &of, i, text);
         i++) {
        snprintf(made.name, sizeof made.name, "%s %s", row->name, text);
        choice->candidates[choice->count++] = made;
    }
}

void lk_product_describe(const struct lk_product_setup *setup, const struct lk_product_job *job,
                         struct lk_choice *choice)
{
    static const char *const passes[] = {"forward", "dgrad", "wgrad"};
    const struct lk_device_info *info = lk_device_info(setup->device);
    struct lk_product_setup usual = *setup; /* a choice is the same whatever the batch */
    usual.tiling.shard_tiles = USUAL_SHARD_TILES;
    usual.run_tiles = 0; /* nor does it depend on time steps */
    *choice = (struct lk_choice){.is_backward = job->pass != LK_PASS_FORWARD,
                                 .dx = job->pass == LK_PASS_DATA,
                                 .dw = job->pass == LK_PASS_WEIGHTS};
    const bool only = has_only(&usual, job);
    for (const struct lk_product *row = lk_products; row->name; row++)
        if (row->is_only == only && !has_family(choice, row->name) && can(&usual, row, job))
            add_candidates(&usual, row, job, choice);
    if (!only || choice->count > 1) /* where one row alone can, there is nothing to keep */
        snprintf(choice->key, sizeof choice->key, "conv2d %s %s %s lanes=%d%s on %s, %s",
                 passes[job->pass], setup->problem, lk_dtype_name(lk_product_stored(setup)),
                 setup->tiling.lanes, setup->tiling.planes ? " of planes" : "", info->name,
                 info->driver);
}

bool lk_product_is_kept(const struct lk_choice *choice)
{
    return *choice->key != '\0';
}

/* The row that a candidate is of. */
static const struct lk_product *row_of(const char *candidate, enum lk_pass pass)
{
    for (const struct lk_product *row = lk_products; row->name; row++)
        if (row->pass == pass && lk_candidate_is_same(row->name, candidate))
            return row;
    return NULL;
}

enum lk_status lk_product_choose(const struct lk_product_setup *setup,
                                 const struct lk_product_job *job,
                                 struct lk_product_selection *way)
{
    struct lk_choice from;
    int place;
    lk_product_describe(setup, job, &from);
    LK_TRY(lk_choices_make(lk_product_is_kept(&from) ? setup->choices : NULL, &from, &place));
    const char *name = from.candidates[place].name;
    way->product = row_of(name, job->pass);
    snprintf(way->blocking, sizeof way->blocking, "%s", lk_candidate_blocking(name));
    return LK_OK;
}
