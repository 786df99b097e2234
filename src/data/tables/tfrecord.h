/* TFRecord files as a table, for the source that reads an image beside its numbers. Floor 4. */
#ifndef LK_DATA_TABLES_TFRECORD_H
#define LK_DATA_TABLES_TFRECORD_H

#include "data/sources/tfrecord.h"

/* The files of an open lk_source_tfrecord_fields. */
const struct lk_records *lk_tfrecord_table_records(const void *state);

#endif
