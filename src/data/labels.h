/* What happens to labels between a source and whoever reads them: classes get the numbers that
 * a model has for them, and values that its loss does not take are refused. Floor 4. */
#ifndef LK_DATA_LABELS_H
#define LK_DATA_LABELS_H

#include "data/sources/names.h"
#include <lockstep/data.h>
#include <stdbool.h>

/* Of one field; {0} changes and refuses nothing. */
struct lk_label_rule {
    int32_t *numbers;      /* [count]: of each of the source's classes; NULL: as they are */
    int64_t count;         /* of the source's classes */
    struct lk_names names; /* of all classes of the model */
    bool is_limited;
    double low, high; /* the values that are taken */
    char taker[128];  /* who takes them, for messages */
};

void lk_label_rule_clear(struct lk_label_rule *rule);

/* Does what the rule says to the label of sample `index`.
 * fails: LK_E_DATA naming the value and the sample */
LK_MUST_CHECK enum lk_status lk_label_rule_apply(const struct lk_label_rule *rule,
                                                 const char *data, const struct lk_field *field,
                                                 int64_t index, void *values);

/* From now on samples have the class numbers[c] where the source has c; `names` are those of
 * all `classes` of the model. Before anybody reads; all is copied. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_data_map_classes(struct lk_data *data, int field,
                                                 const int32_t *numbers,
                                                 const char *const *names, int64_t classes);

/* From now on values of the field outside low..high are a failure; `taker` says who takes no
 * others. All samples are looked at now if none has to be decoded for it.
 * fails: LK_E_DATA naming the value and the sample; as lk_data_read_fields() */
LK_MUST_CHECK enum lk_status lk_data_limit_labels(struct lk_data *data, int field, double low,
                                                  double high, const char *taker);

#endif
