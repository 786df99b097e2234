/* The plan of sums over the ranks' shards. A bucket's values are cut into pieces, each owned by
 * a rank: all send it their terms of the piece, it adds them along the tree and sends the sum
 * to all. So every rank sends and receives no more than it must, and pieces travel while others
 * are added. Floor 4. */
#ifndef LK_MIRROR_WORLD_SUMS_H
#define LK_MIRROR_WORLD_SUMS_H

#include "mirror/world_parts.h"

/* Tags of a bucket: its terms, and the sum of each piece that a rank owns */
enum { LK_MOST_ROUNDS = 64, LK_BUCKET_TAGS = LK_MOST_ROUNDS + 1 };

enum lk_piece_state { LK_PIECE_FREE, LK_PIECE_COLLECTING, LK_PIECE_SENDING };

struct lk_world_piece {
    int bucket, index;    /* of the bucket's */
    int64_t first, count; /* values of the bucket */
    enum lk_piece_state state;
    int pending;  /* transfers */
    size_t inbox; /* byte of `inbox` where [remote_terms][count] begin, for its owner */
};

struct lk_world_bucket {
    struct lk_world_piece *pieces;
    int piece_count, left; /* left: pieces whose sum is not there */
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
    int width; /* transfers of a piece */
    struct lk_world_bucket *bucket;
    struct lk_world_piece *piece; /* of all buckets */
    char *inbox;
    struct lk_subtree subtree[LK_MOST_SHARDS]; /* of all ranks, ascending */
    int first_subtree[LK_MOST_SHARDS + 1];     /* of each rank, in `subtree` */
    struct lk_term terms[LK_MOST_SHARDS];      /* of a piece being added */
};

#endif
