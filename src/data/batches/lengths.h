/* How long the sequences of samples are, by which batches of similar length are made. Floor 4.
 * Knows no batch. */
#ifndef LK_DATA_BATCHES_LENGTHS_H
#define LK_DATA_BATCHES_LENGTHS_H

#include <lockstep/data.h>

/* Reads the length of each sample: the sum of those of all its inputs that have one. The caller
 * frees `lengths`, [count]. fails: LK_E_ARGUMENT no input has a length; LK_E_MEMORY; as
 * lk_data_read_fields() */
LK_MUST_CHECK enum lk_status lk_lengths_read(const struct lk_data *data, int64_t **lengths);

#endif
