/* The image files that words of a command line name. */
#ifndef TOOLS_FILES_H
#define TOOLS_FILES_H

#include <stdbool.h>

/* {0} is empty. */
struct files {
    char **paths; /* [count] */
    int count, room;
};

/* Appends the file of that name; of a folder all .png, .jpg and .jpeg files below it; of a
 * pattern such as "*.jpg", where no file has that name, those that match. Folders and patterns
 * in the order of their names. Returns DONE, or the exit status with the message said. */
int files_add(struct files *files, const char *word);
void files_clear(struct files *files);

/* Whether anything of that name is there. */
bool file_is_there(const char *path);

#endif
