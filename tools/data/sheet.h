/* A contact sheet: samples in rows, each with the name of its class below it. */
#ifndef TOOLS_SHEET_H
#define TOOLS_SHEET_H

#include <lockstep/lockstep.h>

/* Draws the first samples as a training with these options would read them (but for their size
 * and threads) and writes a PNG file, with `title` above them. fails: as lk_batches_create(),
 * lk_batches_read() and lk_image_write() */
enum lk_status sheet_write(const struct lk_data *data, const struct lk_batches_options *options,
                           const char *title, const char *path);

#endif
