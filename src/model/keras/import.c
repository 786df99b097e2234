/* Imports a model of Keras: a file in, model text and weights out. */
#include "model/import/import.h"

#include "base/fail.h"
#include "io/arrays/arrays.h"
#include "io/file.h"
#include "model/keras/keras.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_JSON_BYTES = 4 << 20 };

/* What is opened and made on the way. */
struct work {
    const char *file;
    const struct lk_import_options *options;
    struct lk_arrays *arrays; /* NULL: the file is JSON alone */
    void *text;               /* of such a file */
    json_t *root;
    struct lk_keras_draft draft;
    struct lk_imported *made;
};

/* --- reading ----------------------------------------------------------------------------- */

static bool is_json(const char *path)
{
    char bytes[64] = "";
    FILE *file = lk_file_exists(path) ? fopen(path, "rb") : NULL;
    const size_t got = file ? fread(bytes, 1, sizeof bytes - 1, file) : 0;
    if (file)
        fclose(file);
    bytes[got] = '\0';
    return bytes[strspn(bytes, " \t\r\n")] == '{';
}

static enum lk_status read_config(struct work *w)
{
    const char *text;
    size_t bytes = 0;
    if (is_json(w->file)) {
        LK_TRY(lk_file_read(w->file, MOST_JSON_BYTES, &w->text, &bytes));
        return lk_keras_parse(w->text, bytes, w->file, &w->root);
    }
    LK_TRY(lk_arrays_open(w->file, &w->arrays));
    text = lk_arrays_text(w->arrays, "model_config");
    if (!text)
        return lk_fail(LK_E_DATA,
                       "'%s' has weights, but no model: a Keras model as .json, a whole-model "
                       ".h5 or a .keras archive is expected",
                       w->file);
    return lk_keras_parse(text, strlen(text), w->file, &w->root);
}

/* Keras 3 tells the module of each class, and, as Keras 2 does, its version in most files. */
static int find_major(const struct work *w)
{
    const char *version = json_string_value(json_object_get(w->root, "keras_version"));
    if (!version && w->arrays)
        version = lk_arrays_text(w->arrays, "keras_version");
    if (version)
        return version[0] >= '3' ? 3 : 2;
    return json_object_get(w->root, "module") ? 3 : 2;
}

/* --- the text ---------------------------------------------------------------------------- */

static void append_name(struct lk_text *text, json_t *root)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(root, "config"), "name"));
    char kept[LK_KERAS_NAME] = "";
    for (size_t i = 0; name && name[i] && i + 1 < sizeof kept; i++)
        kept[i] =
            strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", name[i])
                ? name[i]
                : '_';
    lk_text_append(text, "name: \"%s\"\n", *kept ? kept : "keras");
}

static enum lk_status make_text(struct work *w, const struct lk_keras_tensor *outputs,
                                int count)
{
    struct lk_text *text = &w->made->text;
    if (w->draft.entries == 0)
        return lk_keras_fail(&w->draft, "none of its layers computes anything");
    lk_text_append(text, "# A model of Keras %d, made by lockstep import\n", w->draft.major);
    append_name(text, w->root);
    lk_text_append(text, "input:\n");
    for (int i = 0; i < w->draft.input_count; i++)
        lk_text_append(text, "%s%s}\n", w->draft.inputs[i],
                       w->draft.masks[i] == LK_KERAS_MASKED ? ", length: true" : "");
    lk_text_append(text, "layers:\n%s", w->draft.layers.bytes);
    /* an entry with an activation is not the node of its name, which would name the output */
    const bool is_plain = count == 1 && strcmp(outputs[0].node->name, outputs[0].name) == 0;
    lk_text_append(text, "output:%s%s\n", is_plain ? " " : "", is_plain ? outputs[0].name : "");
    for (int i = 0; !is_plain && i < count; i++)
        lk_text_append(text, "  %s: %s\n", outputs[i].name, outputs[i].name);
    return text->failed || w->draft.layers.failed ? lk_fail_memory("a model text", text->used)
                                                  : LK_OK;
}

static enum lk_status make_model(struct work *w)
{
    struct lk_keras_tensor outputs[LK_MOST_OUTPUTS];
    struct lk_keras_draft *d = &w->draft;
    int count = 0;
    d->where = w->file;
    d->last_array = &d->arrays;
    d->major = find_major(w);
    d->has_arrays = w->arrays != NULL;
    d->size[0] = w->options->height;
    d->size[1] = w->options->width;
    LK_TRY(lk_graph_create(&d->graph));
    LK_TRY(lk_keras_read_model(d, w->root, outputs, &count));
    LK_TRY(make_text(w, outputs, count));
    return lk_model_read(w->made->text.bytes, w->made->text.used, "model.yaml",
                         &w->made->model);
}

static void clear(struct work *w)
{
    free(w->draft.layers.bytes);
    lk_graph_destroy(w->draft.graph);
    lk_arena_clear(&w->draft.arena);
    json_decref(w->root);
    lk_arrays_close(w->arrays);
    free(w->text);
}

enum lk_status lk_keras_make(const char *file, const struct lk_import_options *options,
                             struct lk_imported *made)
{
    struct work w = {.file = file, .options = options, .made = made};
    enum lk_status status;
    LK_TRY_OUT(read_config(&w));
    LK_TRY_OUT(make_model(&w));
    made->source = "keras";
    made->layers = w.draft.entries;
    made->has_weights = w.arrays != NULL;
    if (w.arrays)
        LK_TRY_OUT(lk_keras_take_weights(&w.draft, w.arrays, made));
out:
    clear(&w);
    return status;
}
