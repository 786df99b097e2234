/* Sums over the shards of all ranks. The values of a bucket are cut into pieces, each owned by
 * one rank: the others send it their terms of the piece, it adds them along the tree and sends
 * the sum to all (a reduce-scatter and an all-gather). So each rank sends and receives about
 * twice the size of a bucket, however many ranks there are, and pieces travel while others are
 * added. Floor 4. Private to world*.c. */
#ifndef LK_MIRROR_WORLD_SUMS_H
#define LK_MIRROR_WORLD_SUMS_H

#include "mirror/world_internal.h"

/* Tags of a bucket: one for its terms, and one for the sum of each piece that a rank owns. */
enum { LK_MOST_ROUNDS = 64, LK_BUCKET_TAGS = LK_MOST_ROUNDS + 1 };

enum lk_piece_state { LK_PIECE_FREE, LK_PIECE_COLLECTING, LK_PIECE_SENDING };

struct lk_world_piece {
    int bucket, index;    /* of the bucket's */
    int64_t first, count; /* values of the bucket */
    enum lk_piece_state state;
    int pending;  /* transfers of the piece that have not ended */
    size_t inbox; /* of an owned piece: the byte of sums->inbox where the terms of other ranks,
                   * [remote_terms][count], begin */
};

struct lk_world_bucket {
    struct lk_world_piece *pieces;
    int piece_count, left; /* left: pieces whose sum has not come yet */
    bool is_done;
    struct lk_term terms[LK_MOST_SUBTREES];
    char *result;
};

struct lk_world_sums {
    int buckets, pieces, shards;
    enum lk_dtype real;
    size_t real_bytes;
    bool in_any_order;
    struct lk_reducer *reducer;
    int own_first, own_terms, remote_terms;
    int width; /* transfers that a piece may need at once */
    struct lk_world_bucket *bucket;
    struct lk_world_piece *piece; /* the pieces of all buckets */
    char *inbox;
    struct lk_subtree subtree[LK_MOST_SHARDS]; /* of all ranks, in ascending order */
    int first_subtree[LK_MOST_SHARDS + 1];     /* where each rank's begin in `subtree` */
    struct lk_term terms[LK_MOST_SHARDS];      /* of the piece that is being added */
};

#endif
