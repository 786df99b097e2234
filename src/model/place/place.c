/* Reads what `--place` says, and puts the nodes of a model there. */
#include "model/place/place.h"

#include "base/fail.h"
#include "graph/place/choose.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the text's devices --------------------------------------------------------------------
 */

/* Whether a node before this one names the same device. */
static bool is_known(const struct lk_model *model, int node)
{
    for (int i = 0; i < node; i++)
        if (model->graph->nodes[i]->device &&
            strcmp(model->graph->nodes[i]->device, model->graph->nodes[node]->device) == 0)
            return true;
    return false;
}

const char *lk_model_device(const struct lk_model *model, int index)
{
    for (int i = 0; i < model->node_count; i++)
        if (model->graph->nodes[i]->device && !is_known(model, i) && index-- == 0)
            return model->graph->nodes[i]->device;
    return NULL;
}

/* The number of that device in the text; -1: it names none so. */
static int find_device(const struct lk_model *model, const char *word)
{
    const char *device;
    for (int i = 0; (device = lk_model_device(model, i)) != NULL; i++)
        if (strcmp(device, word) == 0)
            return i;
    return -1;
}

static void put_device(struct lk_model *model, const char *device, int place)
{
    for (int i = 0; i < model->node_count; i++) {
        struct lk_node *node = model->graph->nodes[i];
        if (node->device && strcmp(node->device, device) == 0)
            lk_node_set_place(node, place);
    }
}

/* "a, b, c" */
static const char *list_devices(const struct lk_model *model, char text[256])
{
    const char *device;
    size_t used = 0;
    for (int i = 0; used < 255 && (device = lk_model_device(model, i)) != NULL; i++)
        used += (size_t)snprintf(text + used, 256 - used, "%s%s", i ? ", " : "", device);
    return text;
}

static enum lk_status put_in_order(struct lk_model *model, int devices)
{
    char names[256] = "";
    int count = 0;
    while (lk_model_device(model, count))
        count++;
    if (count != devices)
        return lk_fail(LK_E_ARGUMENT,
                       "model '%s' names %d devices (%s), the group has %d: say which is which "
                       "by place, as in %s=0",
                       model->name, count, list_devices(model, names), devices,
                       lk_model_device(model, 0));
    for (int i = 0; i < count; i++)
        put_device(model, lk_model_device(model, i), i);
    return LK_OK;
}

/* --- entries -------------------------------------------------------------------------------
 */

static void put_nodes(struct lk_model *model, int first, int end, int place)
{
    for (int i = first; i < end; i++)
        lk_node_set_place(model->graph->nodes[i], place);
}

/* The first node of an entry: both directions of a recurrent one stand before what joins them.
 */
static int first_of_entry(const struct lk_node *node)
{
    static const char *const suffixes[] = {"_forward", "_backward"};
    char name[96];
    if (node->inputs != LK_COUNT(suffixes))
        return node->index;
    for (int i = 0; i < LK_COUNT(suffixes); i++) {
        snprintf(name, sizeof name, "%s%s", node->name, suffixes[i]);
        if (strcmp(node->input_nodes[i]->name, name) != 0)
            return node->index;
    }
    return node->input_nodes[0]->index;
}

/* All words that may stand before a '='. */
static const char *known_word(const void *context, int i)
{
    const struct lk_model *model = context;
    for (int device = 0; lk_model_device(model, device); device++)
        if (i-- == 0)
            return lk_model_device(model, device);
    if (i < model->node_count)
        return model->graph->nodes[i]->name;
    return i - model->node_count < model->name_count ? model->names[i - model->node_count].name
                                                     : NULL;
}

static enum lk_status refuse_word(const struct lk_model *model, const char *word)
{
    const char *near = lk_nearest_name(word, known_word, model);
    return lk_fail(LK_E_ARGUMENT,
                   "place: the text of model '%s' names no device and has no entry '%s'%s%s%s",
                   model->name, word, near ? "; did you mean '" : "", near ? near : "",
                   near ? "'?" : "");
}

/* Of entries with one name, such as two of which a parameter leaves one, those that are not
 * there have no nodes to put. */
static enum lk_status put_entry(struct lk_model *model, const char *word, int place)
{
    bool is_absent = false, is_put = false;
    for (int i = 0; i < model->name_count; i++) {
        const struct lk_model_name *name = &model->names[i];
        if (is_put || strcmp(name->name, word) != 0)
            continue;
        is_put = name->first < name->end;
        is_absent |= !is_put;
        put_nodes(model, name->first, name->end, place);
    }
    if (is_put)
        return LK_OK;
    const struct lk_node *node = lk_graph_find(model->graph, word);
    if (!node && is_absent)
        return lk_fail(LK_E_ARGUMENT, "place: '%s' is not there: its 'when' is false", word);
    if (!node || node->index >= model->node_count)
        return refuse_word(model, word);
    if (!node->op)
        return lk_fail(LK_E_ARGUMENT,
                       "place: '%s' is an input: every device gets those that it reads", word);
    put_nodes(model, first_of_entry(node), node->index + 1, place);
    return LK_OK;
}

/* --- words ------------------------------------------------------------------------------- */

struct part {
    char word[64];
    int place;
};

/* Reads "WORD=NUMBER" up to the next comma; *at is moved behind it. */
static enum lk_status read_part(const char **at, int devices, struct part *part)
{
    const size_t length = strcspn(*at, ",");
    const char *equals = memchr(*at, '=', length);
    char *end = NULL;
    const long place = equals ? strtol(equals + 1, &end, 10) : -1;
    if (!equals || equals == *at || (size_t)(equals - *at) >= sizeof part->word ||
        end == equals + 1 || end != *at + length || equals[1] < '0' || equals[1] > '9')
        return lk_fail(LK_E_ARGUMENT,
                       "place: '%.*s' is not NAME=NUMBER, as in encoder=0,decoder=1; 'auto' "
                       "and 'off' stand alone",
                       (int)(length < 80 ? length : 80), *at);
    if (place >= devices)
        return lk_fail(LK_E_ARGUMENT, "place: '%.*s': %s %d device%s, counted from 0",
                       (int)(length < 80 ? length : 80), *at,
                       devices < LK_MOST_PLACES ? "the group has" : "a group has at most",
                       devices, devices > 1 ? "s" : "");
    snprintf(part->word, sizeof part->word, "%.*s", (int)(equals - *at), *at);
    part->place = (int)place;
    *at += length + ((*at)[length] == ',');
    return LK_OK;
}

/* Goes through the words, those of devices before those of entries. The text's devices have to
 * be named all or not at all. */
static enum lk_status put_words(struct lk_model *model, const char *words, int devices,
                                bool of_devices, int *named)
{
    struct part part;
    *named = 0;
    for (const char *at = words; *at;) {
        const char *begin = at;
        LK_TRY(read_part(&at, devices, &part));
        for (const char *before = words; before < begin;) {
            struct part other;
            LK_TRY(read_part(&before, devices, &other));
            if (strcmp(other.word, part.word) == 0)
                return lk_fail(LK_E_ARGUMENT, "place: '%s' stands in '%.200s' twice", part.word,
                               words);
        }
        const bool is_device = find_device(model, part.word) >= 0;
        *named += is_device;
        if (of_devices && is_device)
            put_device(model, part.word, part.place);
        if (!of_devices && !is_device)
            LK_TRY(put_entry(model, part.word, part.place));
    }
    return LK_OK;
}

static enum lk_status check_all_named(const struct lk_model *model, const char *words)
{
    for (int i = 0; lk_model_device(model, i); i++) {
        const char *device = lk_model_device(model, i);
        const size_t length = strlen(device);
        const char *at = words;
        while (at && (strncmp(at, device, length) != 0 || at[length] != '='))
            at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
        if (!at)
            return lk_fail(LK_E_ARGUMENT,
                           "place: '%.200s' does not say where '%s' is, a device that the text "
                           "of model '%s' names",
                           words, device, model->name);
    }
    return LK_OK;
}

static enum lk_status put_by_words(struct lk_model *model, const char *words, int devices)
{
    int named = 0;
    LK_TRY(put_words(model, words, devices, true, &named));
    if (named > 0)
        LK_TRY(check_all_named(model, words));
    return put_words(model, words, devices, false, &named);
}

/* --- the sum of losses ---------------------------------------------------------------------
 */

/* The places that read what is made at `place`, or what comes from that; a bit each. */
static uint32_t readers_of(const struct lk_graph *graph, int place)
{
    uint32_t reached = UINT32_C(1) << place, before = 0;
    while (reached != before) {
        before = reached;
        for (int i = 0; i < graph->count; i++) {
            const struct lk_node *node = graph->nodes[i];
            for (int j = 0; j < node->inputs; j++)
                if (node->input_nodes[j]->op &&
                    reached >> lk_node_place(node->input_nodes[j]) & 1)
                    reached |= UINT32_C(1) << lk_node_place(node);
        }
    }
    return reached;
}

/* No entry stands for the sum of several losses, so nobody can say where it is computed: at the
 * first of their places that none of the others waits for. */
static void put_sum(struct lk_model *model)
{
    struct lk_node *sum = model->loss;
    if (!sum || sum->place >= 0)
        return;
    for (int i = 0; i < sum->inputs; i++) {
        const int place = lk_node_place(sum->input_nodes[i]);
        bool is_last = true;
        lk_node_set_place(sum, place);
        const uint32_t readers = readers_of(model->graph, place);
        for (int j = 0; j < sum->inputs; j++) {
            const struct lk_node *loss = sum->input_nodes[j];
            const int other = loss->op ? lk_node_place(loss) : place;
            is_last &= other == place || !(readers >> other & 1);
        }
        if (is_last)
            return;
    }
    lk_node_set_place(sum, -1);
}

/* --- all -----------------------------------------------------------------------------------
 */

static enum lk_status check_none_idle(const struct lk_model *model, int devices)
{
    for (int place = 0; place < devices; place++) {
        bool is_idle = true;
        for (int i = 0; i < model->node_count; i++) {
            const struct lk_node *node = model->graph->nodes[i];
            is_idle &= !node->op || node->op->is_view || lk_node_place(node) != place;
        }
        if (is_idle)
            return lk_fail(LK_E_ARGUMENT,
                           "place: device %d of a group of %d has nothing to compute of model "
                           "'%s'",
                           place, devices, model->name);
    }
    return LK_OK;
}

static void clear_places(struct lk_model *model)
{
    for (int i = 0; i < model->graph->count; i++)
        lk_node_set_place(model->graph->nodes[i], -1);
}

enum lk_status lk_model_count_places(struct lk_model *model, const char *words, int *count)
{
    struct part part;
    int most = 0;
    clear_places(model);
    const enum lk_status status = put_by_words(model, words, LK_MOST_PLACES);
    clear_places(model);
    LK_TRY(status);
    for (const char *at = words; *at;) {
        LK_TRY(read_part(&at, LK_MOST_PLACES, &part));
        most = part.place > most ? part.place : most;
    }
    *count = most + 1;
    return LK_OK;
}

enum lk_status lk_model_place(struct lk_model *model, const char *words, int devices,
                              const struct lk_placing *placing)
{
    const bool is_silent = !words || !*words;
    if (devices < 1 || devices > LK_MOST_PLACES)
        return lk_fail(LK_E_ARGUMENT, "place: a group of %d devices: 1 to %d", devices,
                       LK_MOST_PLACES);
    clear_places(model);
    const bool chooses = is_silent ? !lk_model_device(model, 0) : strcmp(words, "auto") == 0;
    if (devices == 1 && (is_silent || chooses))
        return LK_OK;
    if (chooses && !placing)
        return lk_fail(LK_E_ARGUMENT,
                       "place: nothing says which of %d devices computes what of model '%s'",
                       devices, model->name);
    if (chooses)
        return lk_group_choose(placing->config, placing->devices, devices, placing->in_flight,
                               placing->measured);
    LK_TRY(is_silent ? put_in_order(model, devices) : put_by_words(model, words, devices));
    put_sum(model);
    return check_none_idle(model, devices);
}
