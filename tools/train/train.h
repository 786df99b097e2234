/* The parts of lockstep train. */
#ifndef TOOLS_TRAIN_H
#define TOOLS_TRAIN_H

#include "command.h"

struct lk_settings;

/* Sets what run files, then the environment, then the command line say: the later goes before
 * the earlier. Returns the exit status; a failure has been said. */
int train_settings(const struct arguments *arguments, struct lk_settings *settings);

/* Sets what each --set KEY=VALUE says. Returns the exit status; a failure has been said. */
int train_set_pairs(const struct arguments *arguments, struct lk_settings *settings);

/* Makes settings that name the command's first word as model and hold what --set says; NULL
 * where there is no --set. The caller destroys them, after a failure too. Returns the exit
 * status; a failure has been said. */
int train_model_settings(const struct arguments *arguments, struct lk_settings **settings);

#endif
