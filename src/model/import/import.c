/* Imports a model of another program: a file in, a folder with model text and weights out.
 * Nothing is written before all of the model is understood. */
#include "model/import/import.h"

#include "base/fail.h"
#include "io/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, ONNX_BEGINS = 0x08 /* field 1, a number: its version */ };

/* The length of a safetensors header, 8 bytes before its "{", may begin with the same byte. */
static bool is_onnx(const char *path)
{
    unsigned char begin[9] = {0};
    FILE *file = lk_file_exists(path) ? fopen(path, "rb") : NULL;
    const size_t found = file ? fread(begin, 1, sizeof begin, file) : 0;
    if (file)
        fclose(file);
    const bool is_safetensors = found == sizeof begin && begin[7] == 0 && begin[8] == '{';
    return begin[0] == ONNX_BEGINS && !is_safetensors;
}

static enum lk_status name_file(const char *folder, const char *name, bool may_replace,
                                char path[PATH_BYTES])
{
    if ((size_t)snprintf(path, PATH_BYTES, "%s/%s", folder, name) >= PATH_BYTES)
        return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(folder));
    if (lk_file_exists(path) && !may_replace)
        return lk_fail(LK_E_IO, "'%s' is there already; --force replaces it", path);
    return LK_OK;
}

/* The text comes last: a folder with one is whole. */
static enum lk_status write_files(const struct lk_imported *made, const char *folder,
                                  bool may_replace)
{
    const struct lk_safetensors_text source = {"source", made->source};
    char text[PATH_BYTES], weights[PATH_BYTES];
    LK_TRY(name_file(folder, "model.yaml", may_replace, text));
    LK_TRY(name_file(folder, "weights.safetensors", may_replace, weights));
    LK_TRY(lk_folder_make(folder));
    if (made->has_weights)
        LK_TRY(lk_safetensors_write(weights, made->tensors, made->tensor_count, &source, 1));
    else if (lk_file_exists(weights) && unlink(weights) != 0) /* those of another model */
        return lk_file_fail("remove", weights);
    return lk_file_write(text, made->text.bytes, made->text.used);
}

const struct lk_safetensor *lk_imported_find(const struct lk_imported *made, const char *name)
{
    for (int i = 0; i < made->tensor_count; i++)
        if (strcmp(made->tensors[i].name, name) == 0)
            return &made->tensors[i];
    return NULL;
}

static void fill_report(const struct lk_imported *made, struct lk_import_report *report)
{
    *report = (struct lk_import_report){
        .layers = made->layers, .arrays = made->tensor_count, .has_weights = made->has_weights};
    for (int i = 0; i < made->model->graph->count; i++)
        report->parameters += lk_node_info(made->model->graph->nodes[i]).parameters;
}

enum lk_status lk_import(const char *file, const char *folder,
                         const struct lk_import_options *options,
                         struct lk_import_report *report)
{
    static const struct lk_import_options none;
    const struct lk_import_options *chosen = options ? options : &none;
    struct lk_imported made = {0};
    enum lk_status status;
    const bool was_there = lk_folder_exists(folder);
    LK_TRY_OUT(is_onnx(file) ? lk_onnx_make(file, chosen, &made)
                             : lk_keras_make(file, chosen, &made));
    LK_TRY_OUT(write_files(&made, folder, chosen->may_replace));
    if (report)
        fill_report(&made, report);
out:
    if (status != LK_OK && !was_there)
        (void)rmdir(folder); /* if nothing is in it */
    lk_model_destroy(made.model);
    free(made.text.bytes);
    lk_arena_clear(&made.arena);
    return status;
}
