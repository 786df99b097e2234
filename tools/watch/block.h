/* What is shown of one run. */
#ifndef TOOLS_BLOCK_H
#define TOOLS_BLOCK_H

#include "terminal/scene.h"
#include "watch/watched.h"

/* Adds the lines of a run, of which scene_fit() may leave some out. */
void block_add(struct scene *scene, const struct watched *watched);

/* Adds it as one line, its name in `name_columns` columns. */
void block_add_line(struct scene *scene, const struct watched *watched, int name_columns);

#endif
