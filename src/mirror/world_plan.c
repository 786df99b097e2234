/* Cuts the buckets of sums over ranks into pieces and allocates memory for them. */
#include "base/fail.h"
#include "mirror/world_sums.h"
#include "tensor/tensor.h"
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 64 << 10, /* values: small enough that sending one piece and adding another overlap,
                       * large enough that a message is worth its cost */
    ALIGNMENT = 32,   /* values */
};

static enum lk_status check_runs(const struct lk_world *world, const struct lk_world_plan *plan)
{
    int left = plan->shards;
    bool is_right = world->size <= LK_MOST_SHARDS;
    for (int i = 0; i < world->size && is_right; i++) {
        is_right = plan->runs[i] >= 0 && plan->runs[i] <= left;
        left -= plan->runs[i];
    }
    return is_right && left == 0
               ? LK_OK
               : lk_fail(LK_E_ARGUMENT, "%d ranks whose runs do not add up to %d shards",
                         world->size, plan->shards);
}

static enum lk_status check(const struct lk_world *world, const struct lk_world_plan *plan)
{
    LK_TRY(check_runs(world, plan));
    if (plan->shards < 1 || plan->shards > LK_MOST_SHARDS || plan->shards & (plan->shards - 1))
        return lk_fail(LK_E_ARGUMENT, "%d shards: expected a power of two, at most %d",
                       plan->shards, LK_MOST_SHARDS);
    if (plan->real != LK_F32 && plan->real != LK_F64)
        return lk_fail(LK_E_ARGUMENT, "ranks add float32 or float64 only");
    if (plan->buckets < 1 || plan->buckets > (LK_TRANSPORT_TAGS - LK_TAG_SUMS) / LK_BUCKET_TAGS)
        return lk_fail(LK_E_ARGUMENT, "%d buckets for the sum over ranks, expected 1 to %d",
                       plan->buckets, (LK_TRANSPORT_TAGS - LK_TAG_SUMS) / LK_BUCKET_TAGS);
    for (int i = 0; i < plan->buckets; i++)
        if (plan->counts[i] < 1 || plan->counts[i] > INT64_MAX / 16)
            return lk_fail(LK_E_ARGUMENT, "a bucket of %lld values for the sum over ranks",
                           (long long)plan->counts[i]);
    return LK_OK;
}

static void plan_terms(const struct lk_world *world, const int *runs,
                       struct lk_world_sums *sums)
{
    int used = 0, first = 0;
    for (int rank = 0; rank < world->size; rank++) {
        struct lk_subtree subtrees[LK_MOST_SUBTREES];
        const int made = lk_subtrees_of(first, runs[rank], subtrees);
        memcpy(sums->subtree + used, subtrees, (size_t)made * sizeof *subtrees);
        sums->first_subtree[rank] = used;
        used += made;
        first += runs[rank];
    }
    sums->first_subtree[world->size] = used;
    sums->own_first = sums->first_subtree[world->rank];
    sums->own_terms = sums->first_subtree[world->rank + 1] - sums->own_first;
    sums->remote_terms = used - sums->own_terms;
    /* Transfers of a piece: its owner receives all remote terms, then sends the sum to all; any
     * other rank sends its own terms and receives the sum. */
    sums->width = sums->own_terms + 1;
    if (sums->width < sums->remote_terms)
        sums->width = sums->remote_terms;
    if (sums->width < world->size - 1)
        sums->width = world->size - 1;
}

/* The values of a piece, for as many pieces as are wanted but at most LK_MOST_ROUNDS a rank;
 * the last one may be shorter. */
static int64_t piece_values(const struct lk_world *world, int64_t count)
{
    int64_t rounds = lk_divide_up(count, (int64_t)world->size * PIECE);
    if (rounds > LK_MOST_ROUNDS)
        rounds = LK_MOST_ROUNDS;
    return lk_divide_up(lk_divide_up(count, world->size * rounds), ALIGNMENT) * ALIGNMENT;
}

static enum lk_status count_pieces(const struct lk_world *world,
                                   const struct lk_world_plan *plan, struct lk_world_sums *sums)
{
    for (int i = 0; i < plan->buckets; i++) {
        const int64_t values = piece_values(world, plan->counts[i]);
        if (world->size > 1 && values > LK_TRANSPORT_MOST / (int64_t)sums->real_bytes)
            return lk_fail(LK_E_ARGUMENT, "a bucket of %lld values is too large to send",
                           (long long)plan->counts[i]);
        sums->bucket[i].piece_count = (int)lk_divide_up(plan->counts[i], values);
        sums->pieces += sums->bucket[i].piece_count;
    }
    return LK_OK;
}

/* Numbers the pieces of all buckets; returns the bytes of the inbox for the owned ones. */
static size_t lay_out(const struct lk_world *world, const struct lk_world_plan *plan,
                      struct lk_world_sums *sums)
{
    struct lk_world_piece *piece = sums->piece;
    size_t inbox = 0;
    for (int i = 0; i < plan->buckets; i++) {
        const int64_t values = piece_values(world, plan->counts[i]);
        sums->bucket[i].pieces = piece;
        sums->bucket[i].is_done = true;
        for (int p = 0; p < sums->bucket[i].piece_count; p++, piece++) {
            const int64_t first = p * values, left = plan->counts[i] - first;
            *piece = (struct lk_world_piece){.bucket = i,
                                             .index = p,
                                             .first = first,
                                             .count = left < values ? left : values};
            if (p % world->size != world->rank)
                continue;
            piece->inbox = inbox;
            inbox += (size_t)(sums->remote_terms * piece->count) * sums->real_bytes;
        }
    }
    return inbox;
}

static enum lk_status create(struct lk_world *world, const struct lk_world_plan *plan,
                             struct lk_world_sums *sums)
{
    *sums = (struct lk_world_sums){.buckets = plan->buckets,
                                   .shards = plan->shards,
                                   .real = plan->real,
                                   .real_bytes = lk_dtype_bytes(plan->real),
                                   .in_any_order = plan->in_any_order,
                                   .reducer = plan->reducer};
    plan_terms(world, plan->runs, sums);
    sums->bucket = calloc((size_t)plan->buckets, sizeof *sums->bucket);
    if (!sums->bucket)
        return lk_fail_memory("buckets", (size_t)plan->buckets * sizeof *sums->bucket);
    LK_TRY(count_pieces(world, plan, sums));
    sums->piece = calloc((size_t)sums->pieces, sizeof *sums->piece);
    if (!sums->piece)
        return lk_fail_memory("pieces of buckets", (size_t)sums->pieces * sizeof *sums->piece);
    const size_t inbox = lay_out(world, plan, sums);
    sums->inbox = malloc(inbox && !plan->in_any_order ? inbox : 1);
    if (!sums->inbox)
        return lk_fail_memory("the terms of other ranks", inbox);
    if (!world->kind)
        return LK_OK;
    return world->kind->reserve(world->wire,
                                lk_world_transfers(world) + sums->pieces * sums->width);
}

enum lk_status lk_world_plan(struct lk_world *world, const struct lk_world_plan *plan)
{
    LK_TRY(check(world, plan));
    struct lk_world_sums *sums = calloc(1, sizeof *sums);
    if (!sums)
        return lk_fail_memory("sums over ranks", sizeof *sums);
    const enum lk_status status = create(world, plan, sums);
    if (status != LK_OK) {
        lk_world_sums_destroy(sums);
        return status;
    }
    lk_world_sums_destroy(world->sums);
    world->sums = sums;
    return LK_OK;
}

void lk_world_sums_destroy(struct lk_world_sums *sums)
{
    if (!sums)
        return;
    free(sums->bucket);
    free(sums->piece);
    free(sums->inbox);
    free(sums);
}
