/* The inside of struct lk_world. Floor 4. Private to world*.c. Sums (world_sum.c) wait by
 * polling the transport (world.c), which hands transfers that have ended back to the sums. */
#ifndef LK_MIRROR_WORLD_INTERNAL_H
#define LK_MIRROR_WORLD_INTERNAL_H

#include "mirror/transport.h"
#include "mirror/world.h"

/* The message of a rank that has failed to all others. */
struct lk_notice {
    int rank, status;
    char text[2000];
};

enum { LK_TAG_NOTICE, LK_TAG_SUMS }; /* LK_TAG_SUMS: the first of many */

/* Numbers of transfers: receiving a notice; a call of all ranks together; sending notices, one
 * for each rank; then those of sums. */
enum { LK_TRANSFER_NOTICE, LK_TRANSFER_TOGETHER, LK_TRANSFER_TOLD };

enum { LK_STAGING = 1 << 20 }; /* bytes */

struct lk_world {
    const struct lk_transport_kind *kind; /* NULL: a world of one */
    struct lk_transport *wire;
    int rank, size;
    struct lk_notice heard, told;
    bool is_over; /* a rank has failed, with this status and text: */
    enum lk_status status;
    char text[2100];
    bool is_together; /* LK_TRANSFER_TOGETHER has ended */
    int untold;       /* notices that are still being sent */
    char *staging; /* [LK_STAGING]: memory of LK_TRANSFER_TOGETHER, for longer than its call */
    struct lk_world_sums *sums;
};

/* Handles all transfers that have ended; does not wait. */
LK_MUST_CHECK enum lk_status lk_world_poll(struct lk_world *world);

/* Polls until *is_done, sleeping a little in between, since devices may need the processor. */
LK_MUST_CHECK enum lk_status lk_world_wait(struct lk_world *world, const bool *is_done);

/* Ends the job: from now on all calls fail with this status and text. Returns `status`. */
enum lk_status lk_world_end(struct lk_world *world, enum lk_status status, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));

/* Together: copies the memory of rank `root` to all ranks. */
LK_MUST_CHECK enum lk_status lk_world_broadcast_from(struct lk_world *world, int root,
                                                     size_t bytes, void *memory);

/* The number of transfers before those of sums. */
int lk_world_transfers(const struct lk_world *world);

/* Handles the end of a transfer that belongs to a sum. */
LK_MUST_CHECK enum lk_status lk_world_sums_ended(struct lk_world *world, int transfer);
void lk_world_sums_destroy(struct lk_world_sums *sums);

#endif
