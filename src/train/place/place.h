/* How many devices compute a model together, and which of them computes what. Floor 8. */
#ifndef LK_TRAIN_PLACE_PLACE_H
#define LK_TRAIN_PLACE_PLACE_H

#include "model/model.h"
#include "team/team.h"

/* Devices in a group, by `words` as lk_model_place() takes them, or "off", and by the list of
 * devices: as many as its groups have ("0+1,2+3"); where it has none, as many as the words or
 * the model's text name, and with "auto" all. 1: each device computes all of the model.
 * fails: LK_E_ARGUMENT groups where nothing is divided, too few devices, words that say
 * nothing */
LK_MUST_CHECK enum lk_status lk_place_count(struct lk_model *model, const char *words,
                                            const char *devices, int *places);

/* Gives the model's nodes their places, once the team's devices are open and the losses are
 * added; with groups of one device does nothing. Together: all ranks of a job take the places
 * of rank 0. fails: as lk_model_place(); LK_E_ARGUMENT groups of other devices, or of
 * another size on another rank */
LK_MUST_CHECK enum lk_status lk_place_nodes(struct lk_team *team, struct lk_world *world,
                                            struct lk_model *model, const char *words);

/* Anew on one rank, for as many shards at a time as its devices compute by now; what all ranks
 * take from rank 0 then. */
LK_MUST_CHECK enum lk_status lk_place_again(struct lk_team *team, struct lk_model *model,
                                            const char *words);
LK_MUST_CHECK enum lk_status lk_place_share(struct lk_world *world, struct lk_model *model);

/* Sets how many shards of a batch groups compute at a time where they have room; find: by the
 * places of nodes, lk_team_most_of_group(). */
LK_MUST_CHECK enum lk_status lk_place_set_most_shards(struct lk_team *team, int most);
LK_MUST_CHECK enum lk_status
lk_place_find_most_shards(struct lk_team *team, const struct lk_model *model, int shards);

#endif
