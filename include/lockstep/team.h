/* What is told of the devices that train one model together. Floor 7. */
#ifndef LOCKSTEP_TEAM_H
#define LOCKSTEP_TEAM_H

#include <lockstep/graph.h>
#include <stdbool.h>
#include <stdint.h>

/* What one of the devices did for a step. */
struct lk_device_times {
    bool is_left; /* false: lost, all else is 0 */
    int rank;     /* whose device it is */
    int64_t samples;
    double share;         /* of the batch's shards */
    double samples_per_s; /* while it computed */
    double input_ms, transfer_ms, compute_ms, reduce_ms, wait_ms;

    int places; /* of a group of this rank, whose devices divide the model; 0: no group */
    struct lk_place_times of_place[LK_MOST_PLACES];
};

#endif
