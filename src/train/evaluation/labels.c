/* Labels as an output takes them: classes matched by name, values within the loss's limits. */
#include "train/evaluation/labels.h"

#include "base/fail.h"
#include "data/labels.h"
#include "model/classes.h"
#include <stdio.h>
#include <stdlib.h>

/* Maps the classes unless each has its number already. */
static enum lk_status map(struct lk_data *data, const struct lk_model_output *output, int field,
                          int32_t *numbers)
{
    const struct lk_field *found = &lk_data_info(data)->fields[field];
    bool is_matched = false, is_same = found->classes == output->class_count;
    LK_TRY(lk_output_find_classes(output, found->class_names, found->classes, numbers,
                                  &is_matched));
    if (!is_matched) /* then there are no numbers */
        return LK_OK;
    for (int64_t i = 0; i < found->classes; i++)
        is_same = is_same && numbers[i] == i;
    return is_same ? LK_OK
                   : lk_data_map_classes(data, field, numbers, output->class_names,
                                         output->class_count);
}

/* numbers: room for one of each class. */
static enum lk_status compare(const struct lk_field *field,
                              const struct lk_model_output *output, int32_t *numbers,
                              enum lk_class_order *order)
{
    bool is_matched = false;
    const enum lk_status status = lk_output_find_classes(output, field->class_names,
                                                         field->classes, numbers, &is_matched);
    if (status == LK_E_DATA)
        lk_error_clear();
    else if (status != LK_OK)
        return status;
    if (status != LK_OK || !is_matched)
        return LK_OK;
    *order = LK_CLASSES_IN_ORDER;
    for (int64_t i = 0; i < field->classes; i++)
        if (numbers[i] != i)
            *order = LK_CLASSES_IN_OTHER_ORDER;
    return LK_OK;
}

enum lk_status lk_labels_compare(const struct lk_field *field,
                                 const struct lk_model_output *output,
                                 enum lk_class_order *order)
{
    const size_t bytes = (size_t)field->classes * sizeof(int32_t);
    *order = LK_CLASSES_DIFFER;
    if (!field->class_names || output->class_count == 0)
        return LK_OK;
    int32_t *numbers = malloc(bytes + 1);
    if (!numbers)
        return lk_fail_memory("classes", bytes);
    const enum lk_status status = compare(field, output, numbers, order);
    free(numbers);
    return status;
}

enum lk_status lk_labels_match(struct lk_data *data, const struct lk_model_output *output,
                               int field)
{
    const struct lk_data_info *info = lk_data_info(data);
    const struct lk_field *found = &info->fields[field];
    const size_t bytes = (size_t)found->classes * sizeof(int32_t);
    if (!found->class_names || output->class_count == 0)
        return LK_OK;
    int32_t *numbers = malloc(bytes + 1);
    if (!numbers)
        return lk_fail_memory("classes", bytes);
    const enum lk_status status = map(data, output, field, numbers);
    free(numbers);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "data '%s'", info->name);
}

enum lk_status lk_labels_limit(struct lk_data *data, const struct lk_model_output *output,
                               int field)
{
    const struct lk_field *found = &lk_data_info(data)->fields[field];
    const int64_t classes = lk_output_classes(output);
    char taker[128];
    snprintf(taker, sizeof taker, "%.50s of output '%.50s'", output->loss.kind->name,
             output->name);
    if (output->shape.form == LK_FORM_UNITS)
        return lk_data_limit_labels(data, field, 0, 1, taker);
    if (found->dtype == LK_I32 && found->classes == 0 && classes > 0) /* below 0: masked */
        return lk_data_limit_labels(data, field, INT32_MIN, (double)classes - 1, taker);
    return LK_OK;
}
