/* Carries sums over ranks: sends and receives terms, adds owned pieces, spreads the sums. */
#include "base/fail.h"
#include "mirror/world_sums.h"
#include <stdint.h>
#include <string.h>

static struct lk_world_bucket *bucket_of(const struct lk_world_sums *sums,
                                         const struct lk_world_piece *piece)
{
    return &sums->bucket[piece->bucket];
}

static int owner_of(const struct lk_world *world, const struct lk_world_piece *piece)
{
    return piece->index % world->size;
}

static size_t piece_bytes(const struct lk_world_sums *sums, const struct lk_world_piece *piece)
{
    return (size_t)piece->count * sums->real_bytes;
}

static const char *own_term(const struct lk_world_sums *sums,
                            const struct lk_world_piece *piece, int term)
{
    const char *values = bucket_of(sums, piece)->terms[term].values;
    return values + (size_t)piece->first * sums->real_bytes;
}

static char *result_of(const struct lk_world_sums *sums, const struct lk_world_piece *piece)
{
    return bucket_of(sums, piece)->result + (size_t)piece->first * sums->real_bytes;
}

static int first_transfer(const struct lk_world *world, const struct lk_world_piece *piece)
{
    return lk_world_transfers(world) + (int)(piece - world->sums->piece) * world->sums->width;
}

static int terms_tag(const struct lk_world_piece *piece)
{
    return LK_TAG_SUMS + piece->bucket * LK_BUCKET_TAGS;
}

/* The tag of a piece's sum. Each piece of an owner has its own, since sums are sent in the
 * order in which they are finished. */
static int result_tag(const struct lk_world *world, const struct lk_world_piece *piece)
{
    return terms_tag(piece) + 1 + piece->index / world->size;
}

static void finish(struct lk_world_sums *sums, struct lk_world_piece *piece)
{
    struct lk_world_bucket *bucket = bucket_of(sums, piece);
    piece->state = LK_PIECE_FREE;
    bucket->is_done = --bucket->left == 0;
}

/* Lists all terms of an owned piece in ascending order: this rank's own, and those of the
 * others in the inbox. */
static const struct lk_term *gather_terms(struct lk_world_sums *sums,
                                          const struct lk_world_piece *piece)
{
    const char *inbox = sums->inbox + piece->inbox;
    for (int i = 0; i < sums->own_terms + sums->remote_terms; i++) {
        const int own = i - sums->own_first;
        const bool is_own = own >= 0 && own < sums->own_terms;
        sums->terms[i].subtree = sums->subtree[i];
        sums->terms[i].values = is_own ? own_term(sums, piece, own) : inbox;
        inbox += is_own ? 0 : piece_bytes(sums, piece);
    }
    return sums->terms;
}

static enum lk_status send_result(struct lk_world *world, struct lk_world_piece *piece)
{
    const struct lk_world_sums *sums = world->sums;
    int transfer = first_transfer(world, piece);
    piece->state = LK_PIECE_SENDING;
    piece->pending = world->size - 1;
    for (int peer = 0; peer < world->size; peer++)
        if (peer != world->rank)
            LK_TRY(world->kind->send(world->wire, transfer++, peer, result_tag(world, piece),
                                     piece_bytes(sums, piece), result_of(sums, piece)));
    return LK_OK;
}

static enum lk_status add(struct lk_world *world, struct lk_world_piece *piece)
{
    struct lk_world_sums *sums = world->sums;
    const struct lk_term *terms = gather_terms(sums, piece);
    void *result = result_of(sums, piece);
    struct lk_reduction_result whole = {
        .subtree = {0, sums->shards}, .copies = &result, .copy_count = 1};
    LK_TRY(lk_reducer_sum(sums->reducer, &(struct lk_reduction_job){
                                             .dtype = sums->real,
                                             .count = piece->count,
                                             .terms = terms,
                                             .term_count = sums->own_terms + sums->remote_terms,
                                             .sums = &whole,
                                             .sum_count = 1}));
    if (world->size > 1)
        return send_result(world, piece);
    finish(sums, piece);
    return LK_OK;
}

static enum lk_status begin_owned(struct lk_world *world, struct lk_world_piece *piece)
{
    const struct lk_world_sums *sums = world->sums;
    char *inbox = sums->inbox + piece->inbox;
    const size_t bytes = piece_bytes(sums, piece);
    int transfer = first_transfer(world, piece);
    piece->state = LK_PIECE_COLLECTING;
    piece->pending = sums->remote_terms;
    for (int peer = 0; peer < world->size; peer++) {
        const int terms = sums->first_subtree[peer + 1] - sums->first_subtree[peer];
        for (int i = 0; peer != world->rank && i < terms; i++, inbox += bytes)
            LK_TRY(world->kind->receive(world->wire, transfer++, peer, terms_tag(piece), bytes,
                                        inbox));
    }
    return piece->pending == 0 ? add(world, piece) : LK_OK;
}

static enum lk_status begin_remote(struct lk_world *world, struct lk_world_piece *piece)
{
    const struct lk_world_sums *sums = world->sums;
    const int owner = owner_of(world, piece);
    const size_t bytes = piece_bytes(sums, piece);
    int transfer = first_transfer(world, piece);
    piece->state = LK_PIECE_SENDING;
    piece->pending = sums->own_terms + 1;
    LK_TRY(world->kind->receive(world->wire, transfer++, owner, result_tag(world, piece), bytes,
                                result_of(sums, piece)));
    for (int i = 0; i < sums->own_terms; i++)
        LK_TRY(world->kind->send(world->wire, transfer++, owner, terms_tag(piece), bytes,
                                 own_term(sums, piece, i)));
    return LK_OK;
}

/* to += values, by the reducer: the two are taken for the halves of a subtree. */
static enum lk_status add_two(const struct lk_world_sums *sums, int64_t count,
                              const void *values, void *to)
{
    const struct lk_term halves[] = {{{0, 1}, to}, {{1, 1}, values}};
    struct lk_reduction_result whole = {.subtree = {0, 2}, .copies = &to, .copy_count = 1};
    return lk_reducer_sum(sums->reducer, &(struct lk_reduction_job){.dtype = sums->real,
                                                                    .count = count,
                                                                    .terms = halves,
                                                                    .term_count = 2,
                                                                    .sums = &whole,
                                                                    .sum_count = 1});
}

/* Begins a sum by MPI's all-reduce, which adds the ranks' sums in any order; this rank's own
 * terms are added before, in ascending order. */
static enum lk_status begin_in_any_order(struct lk_world *world, struct lk_world_piece *piece)
{
    const struct lk_world_sums *sums = world->sums;
    char *result = result_of(sums, piece);
    memset(result, 0, piece_bytes(sums, piece));
    if (sums->own_terms > 0)
        memcpy(result, own_term(sums, piece, 0), piece_bytes(sums, piece));
    for (int i = 1; i < sums->own_terms; i++)
        LK_TRY(add_two(sums, piece->count, own_term(sums, piece, i), result));
    if (!world->kind) {
        finish(world->sums, piece);
        return LK_OK;
    }
    piece->state = LK_PIECE_SENDING;
    piece->pending = 1;
    return world->kind->sum(world->wire, first_transfer(world, piece), (int)sums->real_bytes,
                            (size_t)piece->count, result);
}

static enum lk_status begin(struct lk_world *world, struct lk_world_piece *piece)
{
    if (world->sums->in_any_order)
        return begin_in_any_order(world, piece);
    if (owner_of(world, piece) == world->rank)
        return begin_owned(world, piece);
    return begin_remote(world, piece);
}

static enum lk_status check_terms(const struct lk_world_sums *sums, const struct lk_term *terms)
{
    for (int i = 0; i < sums->own_terms; i++) {
        const struct lk_subtree *wanted = &sums->subtree[sums->own_first + i];
        if (terms[i].subtree.first != wanted->first || terms[i].subtree.count != wanted->count)
            return lk_fail(LK_E_ARGUMENT,
                           "term %d of a rank's sum is of %d shards from %d, expected %d from "
                           "%d",
                           i, terms[i].subtree.count, terms[i].subtree.first, wanted->count,
                           wanted->first);
    }
    return LK_OK;
}

enum lk_status lk_world_sum_begin(struct lk_world *world, int bucket,
                                  const struct lk_term *terms, void *result)
{
    struct lk_world_sums *sums = world->sums;
    if (!sums || bucket < 0 || bucket >= sums->buckets || !sums->bucket[bucket].is_done)
        return lk_fail(LK_E_ARGUMENT, "bucket %d: not planned, or its sum is on its way",
                       bucket);
    LK_TRY(check_terms(sums, terms));
    struct lk_world_bucket *b = &sums->bucket[bucket];
    memcpy(b->terms, terms, (size_t)sums->own_terms * sizeof *terms);
    b->result = result;
    b->left = b->piece_count;
    b->is_done = false;
    for (int i = 0; i < b->piece_count; i++)
        LK_TRY(begin(world, &b->pieces[i]));
    return LK_OK;
}

enum lk_status lk_world_sums_ended(struct lk_world *world, int transfer)
{
    struct lk_world_sums *sums = world->sums;
    struct lk_world_piece *piece =
        &sums->piece[(transfer - lk_world_transfers(world)) / sums->width];
    if (--piece->pending > 0)
        return LK_OK;
    if (piece->state == LK_PIECE_COLLECTING)
        return add(world, piece);
    finish(sums, piece);
    return LK_OK;
}

enum lk_status lk_world_sum_advance(struct lk_world *world)
{
    return lk_world_poll(world);
}

enum lk_status lk_world_sum_end(struct lk_world *world, int bucket)
{
    const struct lk_world_sums *sums = world->sums;
    if (!sums || bucket < 0 || bucket >= sums->buckets)
        return lk_fail(LK_E_ARGUMENT, "bucket %d is not planned", bucket);
    return lk_world_wait(world, &sums->bucket[bucket].is_done);
}
