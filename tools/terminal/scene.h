/* What a window shows: lines of coloured text, of which those that matter least are left out
 * where there is no room for all. */
#ifndef TOOLS_SCENE_H
#define TOOLS_SCENE_H

#include <stdbool.h>

enum { SCENE_COLUMNS = 400, SCENE_BYTES = 4 * SCENE_COLUMNS + 1024, SCENE_LINES = 256 };

enum ink { INK_PLAIN, INK_DIM, INK_BOLD, INK_GOOD, INK_WARN, INK_BAD, INK_BLUE, INK_INKS };

struct scene_line {
    char text[SCENE_BYTES];
    int used, columns; /* bytes, columns */
    int rank;          /* the highest are left out first; 0: never */
};

struct scene {
    struct scene_line lines[SCENE_LINES];
    int count;
    int columns; /* of the window, at most SCENE_COLUMNS */
    bool has_colour, has_unicode;
};

/* Without lines. */
void scene_start(struct scene *scene, int columns, bool has_colour, bool has_unicode);

/* The text that follows stands on a new line; what does not fit a scene is left out. */
void scene_line(struct scene *scene, int rank);

/* Adds to the last line, cut where the window ends. What comes from files may be in it. */
void scene_add(struct scene *scene, enum ink ink, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, left in `columns` columns; a longer one loses its beginning. */
void scene_name(struct scene *scene, enum ink ink, int columns, const char *text);

/* Columns that are left on the last line. */
int scene_room(const struct scene *scene);

/* Blanks up to that column, from 0. */
void scene_to(struct scene *scene, int column);

/* Leaves out lines from line `first` on until they are `most`. */
void scene_fit(struct scene *scene, int first, int most);

#endif
