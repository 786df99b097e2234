/* What `lockstep summary --place` shows: a model that is divided among the devices of a group.
 * Sees include/lockstep only. */
#ifndef TOOLS_PLACES_H
#define TOOLS_PLACES_H

#include "command.h"
#include "terminal/json.h"

/* The devices of a group, or one that stands for several of its kind. */
struct group {
    int count, opened;
    int groups;                    /* so many that the list has */
    struct lk_device *devices[16]; /* [count] */
};

/* Opens the first group of `list`; number 0: as many devices as it has, or as `place` names;
 * else so many, of which the only device of a list stands for all. memory_limit as in
 * lk_device_limit_memory(), 0: none. Returns DONE, or the exit status with the message said;
 * close it in any case. */
int group_open(const struct arguments *arguments, const char *list, const char *place,
               int64_t number, size_t memory_limit, struct group *group);
void group_close(struct group *group);

/* Divides the model and prints where its first `nodes` nodes are, what each device holds, and
 * what crosses. Returns DONE, or the exit status with the message said. */
int places_print(struct lk_model *model, const struct lk_division_options *options, int nodes);

/* The same as an object; NULL: failed, *result is the exit status. */
json_t *places_json(struct lk_model *model, const struct lk_division_options *options,
                    int nodes, int *result);

/* --- of summary.c --------------------------------------------------------------------------
 */

/* "1,234,567"; "1.5 MiB". */
const char *count_text(int64_t count, char text[32]);
const char *bytes_text(double bytes, char text[32]);

#endif
