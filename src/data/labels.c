/* Labels as a model wants them: classes matched by name, values within the limits of its loss.
 */
#include "data/labels.h"

#include "base/fail.h"
#include "data/data.h"
#include "data/sources/field.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lk_label_rule_clear(struct lk_label_rule *rule)
{
    free(rule->numbers);
    lk_names_clear(&rule->names);
    *rule = (struct lk_label_rule){0};
}

static enum lk_status refuse(const struct lk_label_rule *rule, const char *data,
                             const struct lk_field *field, int64_t index, double value)
{
    return lk_fail(LK_E_DATA,
                   "data '%s': %s '%s' of sample %lld is %.10g; %s takes %.10g..%.10g", data,
                   field->role == LK_FIELD_LABEL ? "label" : "field", field->name,
                   (long long)index, value, rule->taker, rule->low, rule->high);
}

/* What is no class, such as a masked step, stays as it is. */
static int32_t renumber(const struct lk_label_rule *rule, int32_t class)
{
    return rule->numbers && class >= 0 && class < rule->count ? rule->numbers[class] : class;
}

enum lk_status lk_label_rule_apply(const struct lk_label_rule *rule, const char *data,
                                   const struct lk_field *field, int64_t index, void *values)
{
    const int64_t count = lk_field_count(field);
    if (!rule->is_limited && !rule->numbers)
        return LK_OK;
    for (int64_t i = 0; i < count; i++) {
        double value;
        if (field->dtype == LK_I32) {
            int32_t *class = (int32_t *)values + i;
            *class = renumber(rule, *class);
            value = *class;
        } else {
            value = ((const float *)values)[i];
        }
        if (rule->is_limited && !(value >= rule->low && value <= rule->high))
            return refuse(rule, data, field, index, value);
    }
    return LK_OK;
}

enum lk_status lk_data_map_classes(struct lk_data *data, int field, const int32_t *numbers,
                                   const char *const *names, int64_t classes)
{
    struct lk_label_rule *rule = &data->rules[field];
    struct lk_field *changed = &data->fields[field];
    const size_t bytes = (size_t)changed->classes * sizeof *numbers;
    int32_t *copy = malloc(bytes + 1);
    struct lk_names taken = {0};
    enum lk_status status = copy ? LK_OK : lk_fail_memory("classes", bytes);
    for (int64_t i = 0; i < classes && status == LK_OK; i++)
        status = lk_names_add(&taken, names[i]);
    if (status != LK_OK) {
        free(copy);
        lk_names_clear(&taken);
        return status;
    }
    memcpy(copy, numbers, bytes);
    free(rule->numbers);
    lk_names_clear(&rule->names);
    rule->numbers = copy;
    rule->count = changed->classes;
    rule->names = taken;
    changed->classes = classes;
    changed->class_names = taken.items;
    data->has_rules = true;
    if (lk_data_first_classes(data) == field) {
        data->info.classes = (int)classes;
        data->info.class_names = taken.items;
    }
    return LK_OK;
}

/* Reads the field of every sample, which is refused where the rule does not hold. */
static enum lk_status look_at_all(const struct lk_data *data, int field)
{
    const size_t bytes = data->field_bytes[field];
    void *to[LK_MOST_FIELDS] = {NULL};
    enum lk_status status = LK_OK;
    to[field] = malloc(bytes);
    if (!to[field])
        return lk_fail_memory("a label", bytes);
    for (int64_t i = 0; i < data->info.count && status == LK_OK; i++)
        status = lk_data_read_fields(data, &i, 1, to);
    free(to[field]);
    return status;
}

enum lk_status lk_data_limit_labels(struct lk_data *data, int field, double low, double high,
                                    const char *taker)
{
    struct lk_label_rule *rule = &data->rules[field];
    const bool is_known = rule->is_limited && rule->low >= low && rule->high <= high;
    if (is_known)
        return LK_OK;
    rule->is_limited = true;
    rule->low = low;
    rule->high = high;
    snprintf(rule->taker, sizeof rule->taker, "%s", taker);
    data->has_rules = true;
    return data->images ? LK_OK : look_at_all(data, field);
}
