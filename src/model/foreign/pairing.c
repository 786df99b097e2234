/* What names leave over, and names that are numbers. */
#include "model/foreign/pairing.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

/* --- what names leave over ---------------------------------------------------------------- */

int lk_pairing_find_unused(const struct lk_pairing *pairing, const char *name)
{
    const struct lk_naming *naming = pairing->naming;
    const size_t before = strlen(pairing->prefix);
    static const char layers[] = "layers/"; /* where Keras 3 has them */
    if (!naming || strncmp(name, pairing->prefix, before) != 0)
        return -1;
    name += before;
    if (naming->style == LK_NAMING_KERAS_3 && strncmp(name, layers, sizeof layers - 1) == 0)
        name += sizeof layers - 1;
    for (int i = 0; i < naming->unused_count; i++) {
        const size_t bytes = strlen(naming->unused[i].layer);
        if (strncmp(name, naming->unused[i].layer, bytes) == 0 &&
            (name[bytes] == '.' || name[bytes] == '/'))
            return i;
    }
    return -1;
}

/* The first array from number `at` on that is left over; file->count: none is. */
static int next_left(const struct lk_arrays *file, const struct lk_pairing *pairing,
                     const bool *used, int at)
{
    while (at < file->count && (used[at] || lk_array_is_aside(file, &file->arrays[at]) ||
                                lk_pairing_find_unused(pairing, file->arrays[at].name) >= 0))
        at++;
    return at;
}

/* What stands behind the last dot or slash: "kernel". */
static size_t last_word(const char *name, const char **word)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');
    *word = dot ? dot + 1 : slash ? slash + 1 : name;
    return strcspn(*word, ":");
}

bool lk_pairing_has_word(const struct lk_array *array, const struct lk_naming *naming, int p)
{
    const char *own, *expected;
    const size_t bytes = last_word(array->name, &own);
    for (int i = 0; i < LK_MOST_SPELLINGS; i++)
        if (naming->names[p][i] && last_word(naming->names[p][i], &expected) == bytes &&
            memcmp(own, expected, bytes) == 0)
            return true;
    return false;
}

/* Whether as many arrays that are taken stand before array `at` as parameters that have some
 * before place i of the order. Safetensors files sort their arrays. */
static bool is_at_one_place(const struct lk_arrays *file, const struct lk_pairing *pairing,
                            const bool *used, int i, int at)
{
    int theirs = 0, ours = 0;
    for (int a = 0; a < at; a++)
        theirs += used[a];
    for (int k = 0; k < i; k++) {
        const struct lk_pair *pair = &pairing->pair[pairing->naming->order[k]];
        ours += (pair->array >= 0 && pair->layout.first == 0) + (pair->added >= 0);
    }
    return theirs == ours || file->format == LK_ARRAYS_SAFETENSORS;
}

/* The array to each parameter that has none, in order; false: not each fits, or is called as
 * such a parameter is, arrays are left over, or several layers are. */
static bool match_left(const struct lk_arrays *file, const struct lk_namings *namings,
                       struct lk_pairing *pairing, const bool *used)
{
    const struct lk_node *layer = NULL; /* of several nobody knows the order */
    int at = next_left(file, pairing, used, 0);
    for (int i = 0; i < namings->params; i++) {
        const int p = pairing->naming->order[i];
        const struct lk_pair *pair = &pairing->pair[p];
        if (pair->array >= 0 || pair->is_initial)
            continue;
        if (layer ? layer != namings->param[p].node
                  : !is_at_one_place(file, pairing, used, i, at))
            return false;
        layer = namings->param[p].node;
        if (at == file->count || !lk_pairing_has_word(&file->arrays[at], pairing->naming, p) ||
            !lk_layout_fits(&pair->layout, file->arrays[at].rank, file->arrays[at].shape))
            return false;
        lk_pairing_set(pairing, p, file, at);
        pairing->pair[p].by_shape = true;
        at = next_left(file, pairing, used, at + 1);
    }
    return at == file->count;
}

enum lk_status lk_pairing_complete(const struct lk_arrays *file, struct lk_namings *namings,
                                   struct lk_pairing *pairing)
{
    struct lk_pairing whole = *pairing;
    bool *used = NULL;
    if (!pairing->naming || pairing->naming->style == LK_NAMING_KERAS_3 || pairing->is_mixed ||
        pairing->fitting < pairing->paired)
        return LK_OK;
    LK_TRY(lk_pairing_describe(namings, pairing->naming->layout, &whole.pair));
    memcpy(whole.pair, pairing->pair, (size_t)namings->params * sizeof *whole.pair);
    LK_TRY(lk_pairing_used(file, namings, pairing, &used));
    if (match_left(file, namings, &whole, used))
        *pairing = whole;
    free(used);
    return LK_OK;
}

/* --- names that are numbers --------------------------------------------------------------- */

/* Whether parameter p has its array by the name of a node that nobody has named. */
static bool is_by_number(const struct lk_namings *namings, const struct lk_pairing *pairing,
                         int p)
{
    const struct lk_naming *naming = pairing->naming;
    return pairing->pair[p].array >= 0 && naming && !naming->has_table && !naming->is_counted &&
           naming->style != LK_NAMING_OWN && !namings->param[p].node->is_named;
}

bool lk_pairing_has_numbers(const struct lk_namings *namings, const struct lk_pairing *pairing)
{
    for (int p = 0; p < namings->params; p++)
        if (is_by_number(namings, pairing, p))
            return true;
    return false;
}

bool lk_pairing_differs(const struct lk_namings *namings, const struct lk_pairing *pairing,
                        const struct lk_pairing *other)
{
    for (int p = 0; p < namings->params; p++)
        if (is_by_number(namings, pairing, p) && other->pair[p].array >= 0 &&
            other->pair[p].array != pairing->pair[p].array)
            return true;
    return false;
}

void lk_pairing_drop_numbers(const struct lk_namings *namings, struct lk_pairing *pairing)
{
    for (int p = 0; p < namings->params; p++) {
        struct lk_pair *pair = &pairing->pair[p];
        if (!is_by_number(namings, pairing, p))
            continue;
        pairing->paired--;
        pairing->fitting -= pair->fits;
        pair->array = pair->added = -1;
        pair->fits = false;
    }
    pairing->numbers_differ = true;
}
