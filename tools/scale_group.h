/* A part of `lockstep scale`: with --place. */
#ifndef TOOLS_SCALE_GROUP_H
#define TOOLS_SCALE_GROUP_H

#include "command.h"
#include <lockstep/scale.h>

/* Predicts and prints a step of options->model in batches of options->batch, divided by the
 * words `place` among the devices that the arguments name. Returns an exit status. */
int scale_group(const struct arguments *arguments, const char *place,
                struct lk_scale_group_options *options);

#endif
