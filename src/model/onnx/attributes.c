/* What nodes of ONNX say beside their inputs. */
#include "model/onnx/draft.h"

#include "base/fail.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum lk_status lk_onnx_fail(const struct lk_onnx_draft *draft, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!draft->node)
        return lk_fail(LK_E_MODEL, "%s: %s", draft->where, text);
    const char *name = *draft->node->name              ? draft->node->name
                       : draft->node->output_count > 0 ? draft->node->outputs[0]
                                                       : "";
    return lk_fail(LK_E_MODEL, "%s: node '%.120s' (%.60s): %s", draft->where, name,
                   draft->node->op, text);
}

enum lk_status lk_onnx_text(struct lk_onnx_draft *draft, const char **text, const char *format,
                            ...)
{
    char made[LK_ONNX_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    const int bytes = vsnprintf(made, sizeof made, format, values);
    va_end(values);
    if (bytes < 0 || (size_t)bytes >= sizeof made)
        return lk_onnx_fail(draft, "a text of %d bytes is too long", bytes);
    return lk_arena_text(&draft->arena, made, text);
}

const struct lk_onnx_attribute *lk_onnx_find_attribute(const struct lk_onnx_node *node,
                                                       const char *name)
{
    for (int i = 0; i < node->attribute_count; i++)
        if (strcmp(node->attributes[i].name, name) == 0)
            return &node->attributes[i];
    return NULL;
}

/* The attribute, *found NULL where it is absent. */
static enum lk_status find(const struct lk_onnx_draft *draft, const char *name,
                           enum lk_onnx_kind kind, const struct lk_onnx_attribute **found)
{
    static const char *const kinds[] = {
        [LK_ONNX_REAL] = "a number",
        [LK_ONNX_INTEGER] = "a whole number",
        [LK_ONNX_TEXT] = "a text",
        [LK_ONNX_INTEGERS] = "a list of whole numbers",
    };
    *found = lk_onnx_find_attribute(draft->node, name);
    if (!*found || (*found)->kind == kind)
        return LK_OK;
    return lk_onnx_fail(draft, "'%s' is expected to be %s", name, kinds[kind]);
}

enum lk_status lk_onnx_say_integer(const struct lk_onnx_draft *draft, const char *name,
                                   int64_t standard, int64_t *value)
{
    const struct lk_onnx_attribute *found;
    LK_TRY(find(draft, name, LK_ONNX_INTEGER, &found));
    *value = found ? found->integer : standard;
    return LK_OK;
}

enum lk_status lk_onnx_say_real(const struct lk_onnx_draft *draft, const char *name,
                                double standard, double *value)
{
    const struct lk_onnx_attribute *found;
    LK_TRY(find(draft, name, LK_ONNX_REAL, &found));
    *value = found ? (double)found->real : standard;
    if (!(*value > -1e30 && *value < 1e30))
        return lk_onnx_fail(draft, "'%s' is no number of -1e30..1e30", name);
    return LK_OK;
}

enum lk_status lk_onnx_say_text(const struct lk_onnx_draft *draft, const char *name,
                                const char *standard, const char **value)
{
    const struct lk_onnx_attribute *found;
    LK_TRY(find(draft, name, LK_ONNX_TEXT, &found));
    *value = found ? found->text : standard;
    return LK_OK;
}

enum lk_status lk_onnx_say_list(const struct lk_onnx_draft *draft, const char *name, int count,
                                int64_t standard, int64_t *value)
{
    const struct lk_onnx_attribute *found;
    LK_TRY(find(draft, name, LK_ONNX_INTEGERS, &found));
    if (found && found->count != count)
        return lk_onnx_fail(draft, "'%s' has %d numbers, expected %d", name, found->count,
                            count);
    for (int i = 0; i < count; i++)
        value[i] = found ? found->integers[i] : standard;
    return LK_OK;
}

enum lk_status lk_onnx_numbers(struct lk_onnx_draft *draft, const char *name, int index,
                               int most, int64_t *values, int *count)
{
    const struct lk_onnx_attribute *found;
    const struct lk_onnx_tensor *tensor;
    LK_TRY(find(draft, name, LK_ONNX_INTEGERS, &found));
    LK_TRY(lk_onnx_constant(draft, index, &tensor));
    const int64_t there = found ? found->count : tensor ? tensor->count : 0;
    if (there > most)
        return lk_onnx_fail(draft, "'%s' has %lld numbers, expected at most %d", name,
                            (long long)there, most);
    for (int i = 0; i < (int)there; i++)
        values[i] = found ? found->integers[i] : lk_onnx_integer(tensor, i);
    *count = (int)there;
    return LK_OK;
}

enum lk_status lk_onnx_check_attributes(const struct lk_onnx_draft *draft,
                                        const struct lk_onnx_operator *operator_)
{
    for (int i = 0; i < draft->node->attribute_count; i++) {
        const char *name = draft->node->attributes[i].name;
        int known = 0;
        while (operator_->attributes[known] && strcmp(operator_->attributes[known], name) != 0)
            known++;
        if (!operator_->attributes[known])
            return lk_onnx_fail(draft, "its attribute '%.60s' is not supported", name);
    }
    return LK_OK;
}
