/* Labels as an output takes them: classes matched by name, values within the loss's limits. */
#include "train/evaluation/labels.h"

#include "base/fail.h"
#include "data/labels.h"
#include "model/classes.h"
#include <stdio.h>
#include <stdlib.h>

/* The output's number of each class of the field, and how both are ordered; *numbers is to be
 * freed. fails: LK_E_DATA for a class that the output does not know; LK_E_MEMORY */
static enum lk_status find_numbers(const struct lk_field *field,
                                   const struct lk_model_output *output, int32_t **numbers,
                                   enum lk_class_order *order)
{
    const size_t bytes = (size_t)field->classes * sizeof **numbers;
    bool is_matched = false;
    *order = LK_CLASSES_DIFFER;
    *numbers = NULL;
    if (!field->class_names || output->class_count == 0)
        return LK_OK;
    *numbers = malloc(bytes + 1);
    if (!*numbers)
        return lk_fail_memory("classes", bytes);
    LK_TRY(lk_output_find_classes(output, field->class_names, field->classes, *numbers,
                                  &is_matched));
    if (!is_matched) /* then there are no numbers */
        return LK_OK;
    *order = LK_CLASSES_IN_ORDER;
    for (int64_t i = 0; i < field->classes; i++)
        if ((*numbers)[i] != i)
            *order = LK_CLASSES_IN_OTHER_ORDER;
    return LK_OK;
}

enum lk_status lk_labels_compare(const struct lk_field *field,
                                 const struct lk_model_output *output,
                                 enum lk_class_order *order)
{
    int32_t *numbers;
    const enum lk_status status = find_numbers(field, output, &numbers, order);
    free(numbers);
    if (status != LK_E_DATA)
        return status;
    lk_error_clear();
    return LK_OK;
}

enum lk_status lk_labels_match(struct lk_data *data, const struct lk_model_output *output,
                               int field)
{
    const struct lk_data_info *info = lk_data_info(data);
    const struct lk_field *found = &info->fields[field];
    enum lk_class_order order;
    int32_t *numbers;
    enum lk_status status = find_numbers(found, output, &numbers, &order);
    const bool has_all = order == LK_CLASSES_IN_ORDER && found->classes == output->class_count;
    if (status == LK_OK && order != LK_CLASSES_DIFFER && !has_all)
        status =
            lk_data_map_classes(data, field, numbers, output->class_names, output->class_count);
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
