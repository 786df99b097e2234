/* What lockstep data tells of texts: how long they are, and how many of their words the
 * vocabulary has. */
#ifndef TOOLS_DATA_TEXT_H
#define TOOLS_DATA_TEXT_H

#include "data/data.h"
#include "terminal/json.h"

/* Measures the texts of a part that has a vocabulary, those of broken samples left out.
 * part->lengths is then NULL where there is none. */
enum lk_status data_measure_texts(struct data_part *part);

/* Prints a table; nothing where there are no texts. */
void data_print_texts(const struct data_report *report);

/* The same as JSON; null where there are no texts. */
json_t *data_texts_json(const struct data_part *part);

#endif
