/* Pairs the layers of models within models, as files of Keras 3 have them. */
#include "model/foreign/nested.h"

#include "base/fail.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MODELS = 32, MOST_CLASSES = 32, CLASS_BYTES = 64 };

static const char layers[] = "layers/";
enum { LAYERS_BYTES = sizeof layers - 1 };

/* What stands before the layers of a model: "", "layers/functional/". */
struct inner {
    char prefix[LK_PREFIX_BYTES];
    int depth; /* of models */
};

struct search {
    const struct lk_arrays *file;
    const struct lk_namings *namings;
    const struct lk_naming *naming;
    struct lk_pairing *pairing;
    struct inner inner[MOST_MODELS];
    int models;
    char class[MOST_CLASSES][CLASS_BYTES];
    int next[MOST_CLASSES][MOST_MODELS]; /* the number of the layer that is to be taken */
    int classes;
    int last; /* the model that the layer before was taken from; -1: none */
};

/* --- the models --------------------------------------------------------------------------- */

/* The bytes before the last "layers/" of a name; -1: it has none. */
static int prefix_bytes(const char *name, int *depth)
{
    int bytes = -1;
    *depth = 0;
    for (const char *at = strstr(name, layers); at; at = strstr(at + 1, layers))
        if (at == name || at[-1] == '/') {
            bytes = (int)(at - name);
            ++*depth;
        }
    return bytes;
}

/* False: there are too many, or names too long. */
static bool list_models(struct search *s)
{
    for (int i = 0; i < s->file->count; i++) {
        int depth;
        const char *name = s->file->arrays[i].name;
        const int bytes = prefix_bytes(name, &depth);
        bool is_known = bytes < 0 || lk_array_is_aside(s->file, &s->file->arrays[i]);
        for (int m = 0; m < s->models && !is_known; m++)
            is_known = (int)strlen(s->inner[m].prefix) == bytes &&
                       memcmp(s->inner[m].prefix, name, (size_t)bytes) == 0;
        if (is_known)
            continue;
        if (s->models == MOST_MODELS || bytes >= LK_PREFIX_BYTES)
            return false;
        struct inner *made = &s->inner[s->models++];
        snprintf(made->prefix, sizeof made->prefix, "%.*s", bytes, name);
        made->depth = depth;
    }
    return true;
}

/* --- classes ------------------------------------------------------------------------------ */

/* Takes "layers/conv2d_1/vars/0" apart: the class, and what stands behind the layer. */
static bool split_name(const char *name, char class[CLASS_BYTES], const char **behind)
{
    if (strncmp(name, layers, LAYERS_BYTES) != 0)
        return false;
    size_t bytes = strcspn(name + LAYERS_BYTES, "/"), digits = 0;
    *behind = name + LAYERS_BYTES + bytes;
    while (digits < bytes && isdigit((unsigned char)name[LAYERS_BYTES + bytes - 1 - digits]))
        digits++;
    if (digits > 0 && digits < bytes && name[LAYERS_BYTES + bytes - 1 - digits] == '_')
        bytes -= digits + 1;
    if (bytes >= CLASS_BYTES)
        return false;
    snprintf(class, CLASS_BYTES, "%.*s", (int)bytes, name + LAYERS_BYTES);
    return true;
}

/* Its number; -1: there are too many. */
static int class_number(struct search *s, const char *class)
{
    for (int c = 0; c < s->classes; c++)
        if (strcmp(s->class[c], class) == 0)
            return c;
    if (s->classes == MOST_CLASSES)
        return -1;
    snprintf(s->class[s->classes], CLASS_BYTES, "%s", class);
    return s->classes++;
}

/* Whether two parameters are of one layer there. */
static bool is_same_layer(const char *a, const char *b)
{
    const size_t bytes = LAYERS_BYTES + strcspn(a + LAYERS_BYTES, "/");
    return strncmp(a, b, bytes) == 0 && b[bytes] == '/';
}

/* --- pairing ------------------------------------------------------------------------------ */

/* The parameters of one layer there: those at places `from` up to `to` of the naming's order
 * that have names. */
struct layer {
    int from, to, class;
};

/* The array of a parameter, if the layer is the next one of its class in model m; NULL: there
 * is none. */
static const struct lk_array *find(const struct search *s, const struct layer *layer, int p,
                                   int m)
{
    char class[CLASS_BYTES], number[16] = "", name[LK_PREFIX_BYTES + 256];
    const char *behind;
    const int at = s->next[layer->class][m];
    if (at > 0)
        snprintf(number, sizeof number, "_%d", at);
    if (!split_name(s->naming->names[p][0], class, &behind))
        return NULL;
    snprintf(name, sizeof name, "%s%s%s%s%s", s->inner[m].prefix, layers, class, number,
             behind);
    return lk_arrays_find(s->file, name);
}

static bool fits(const struct search *s, const struct layer *layer, int m)
{
    for (int i = layer->from; i < layer->to; i++) {
        const int p = s->naming->order[i];
        if (!s->naming->names[p][0])
            continue;
        const struct lk_array *array = find(s, layer, p, m);
        if (!array || !lk_layout_fits(&s->pairing->pair[p].layout, array->rank, array->shape))
            return false;
    }
    return true;
}

/* Whether model `inner` lies within model `outer`. */
static bool is_within(const struct search *s, int inner, int outer)
{
    const char *prefix = s->inner[outer].prefix;
    return inner != outer && strncmp(s->inner[inner].prefix, prefix, strlen(prefix)) == 0;
}

/* The model to take the layer from; -1: none has it, or nothing decides. The inner model at
 * work goes on, unless one within it has such a layer too. */
static int choose(const struct search *s, const struct layer *layer)
{
    int found = -1, count = 0;
    bool goes_on = false, has_inner = false;
    for (int m = 0; m < s->models; m++) {
        if (!fits(s, layer, m))
            continue;
        goes_on |= m == s->last && s->inner[m].depth > 1;
        has_inner |= s->last >= 0 && is_within(s, m, s->last);
        found = m;
        count++;
    }
    if (goes_on && !has_inner)
        return s->last;
    return count == 1 ? found : -1;
}

static void take(struct search *s, const struct layer *layer, int m)
{
    for (int i = layer->from; i < layer->to; i++) {
        const int p = s->naming->order[i];
        struct lk_pair *pair = &s->pairing->pair[p];
        if (!s->naming->names[p][0])
            continue;
        pair->array = (int)(find(s, layer, p, m) - s->file->arrays);
        pair->fits = true;
        s->pairing->paired++;
        s->pairing->fitting++;
    }
    s->next[layer->class][m]++;
    s->last = m;
}

static void pair_layers(struct search *s)
{
    const int *order = s->naming->order;
    struct layer layer = {0};
    for (int i = 0; i < s->namings->params; i = layer.to) {
        char class[CLASS_BYTES];
        const char *behind, *name = s->naming->names[order[i]][0];
        layer = (struct layer){.from = i, .to = i + 1};
        if (!name || !split_name(name, class, &behind) ||
            (layer.class = class_number(s, class)) < 0)
            continue;
        while (layer.to < s->namings->params &&
               (!s->naming->names[order[layer.to]][0] ||
                is_same_layer(name, s->naming->names[order[layer.to]][0])))
            layer.to++;
        const int m = choose(s, &layer);
        if (m >= 0)
            take(s, &layer, m);
    }
}

enum lk_status lk_pair_nested(const struct lk_arrays *file, const struct lk_namings *namings,
                              const struct lk_naming *naming, struct lk_pairing *pairing)
{
    struct search *s = calloc(1, sizeof *s);
    if (!s)
        return lk_fail_memory("names of arrays", sizeof *s);
    s->file = file;
    s->namings = namings;
    s->naming = naming;
    s->pairing = pairing;
    s->last = -1;
    if (list_models(s) && s->models > 1)
        pair_layers(s);
    free(s);
    return LK_OK;
}
