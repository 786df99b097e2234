/* The inside of a world, for the files that make it up. Floor 4. */
#ifndef LK_MIRROR_WORLD_PARTS_H
#define LK_MIRROR_WORLD_PARTS_H

#include "mirror/wire.h"
#include "mirror/world.h"

/* A rank that has failed tells the others. */
struct lk_notice {
    int rank, status;
    char text[2000];
};

enum { LK_TAG_NOTICE, LK_TAG_SUMS }; /* tags of sums begin there */

/* Transfers: a notice coming in, one that all take part in, notices to each rank; then sums. */
enum { LK_TRANSFER_NOTICE, LK_TRANSFER_TOGETHER, LK_TRANSFER_TOLD };

enum { LK_STAGING = 1 << 20 }; /* bytes */

struct lk_world {
    const struct lk_wire_kind *kind; /* NULL: a world of one */
    struct lk_wire *wire;
    int rank, size;
    struct lk_notice heard, told;
    bool is_over; /* a rank has failed: */
    enum lk_status status;
    char text[2100];
    bool is_together; /* LK_TRANSFER_TOGETHER has ended */
    int untold;       /* notices on their way */
    char *staging;    /* [LK_STAGING]: of LK_TRANSFER_TOGETHER, which may outlive its call */
    struct lk_world_sums *sums;
};

/* Deals with all transfers that have ended. */
LK_MUST_CHECK enum lk_status lk_world_poll(struct lk_world *world);

/* Polls until *is_done; leaves the processor to the devices while nothing comes. */
LK_MUST_CHECK enum lk_status lk_world_wait(struct lk_world *world, const bool *is_done);

/* From now on all calls fail with this; returns `status`. */
enum lk_status lk_world_end(struct lk_world *world, enum lk_status status, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));

/* Together: the memory of rank `root` to all. */
LK_MUST_CHECK enum lk_status lk_world_share_from(struct lk_world *world, int root, size_t bytes,
                                                 void *memory);

/* How many transfers there are beside those of sums. */
int lk_world_transfers(const struct lk_world *world);

/* A transfer of a sum has ended. */
LK_MUST_CHECK enum lk_status lk_world_sums_ended(struct lk_world *world, int transfer);
void lk_world_sums_destroy(struct lk_world_sums *sums);

#endif
