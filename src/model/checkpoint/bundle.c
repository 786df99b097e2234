/* Writes and checks bundles. */
#include "model/checkpoint/bundle.h"

#include "base/fail.h"
#include "io/file.h"
#include "model/checkpoint/checkpoint.h"
#include <jansson.h>
#include <lockstep/weights.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, MOST_BYTES = 1 << 16, MOST_CONFIG = 1 << 24 };
#define FORMAT "lockstep-bundle-1"

static const char weights_name[] = "model.safetensors", list_name[] = "bundle.json";

static enum lk_status name_file(const char *folder, const char *name, char path[PATH_BYTES])
{
    size_t length = strlen(folder);
    length -= length > 1 && folder[length - 1] == '/';
    if (length >= PATH_BYTES ||
        snprintf(path, PATH_BYTES, "%.*s/%s", (int)length, folder, name) >= PATH_BYTES)
        return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(folder));
    return LK_OK;
}

bool lk_bundle_is_there(const char *folder)
{
    char path[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, list_name);
    return length >= 0 && length < PATH_BYTES && lk_file_exists(path);
}

/* --- checking -----------------------------------------------------------------------------
 */

static enum lk_status check_file(const char *folder, const char *name, const json_t *sum)
{
    char path[PATH_BYTES], found[LK_SHA256_TEXT];
    const char *expected = json_string_value(sum);
    if (strchr(name, '/') || *name == '.' || !expected)
        return lk_fail(LK_E_DATA, "%s/%s: '%.64s' is no file with a sum", folder, list_name,
                       name);
    LK_TRY(name_file(folder, name, path));
    if (!lk_file_exists(path))
        return lk_fail(LK_E_DATA, "%s: missing, the bundle has it in %s", path, list_name);
    LK_TRY(lk_sha256_of_file(path, found));
    if (strcmp(found, expected) != 0)
        return lk_fail(LK_E_DATA,
                       "%s: damaged: it has the SHA-256 sum %.12s..., %s says %.12s...", path,
                       found, list_name, expected);
    return LK_OK;
}

static enum lk_status check_list(const char *folder, json_t *list)
{
    const char *format = json_string_value(json_object_get(list, "format")), *name;
    json_t *files = json_object_get(list, "files"), *sum;
    if (!format || strcmp(format, FORMAT) != 0)
        return lk_fail(LK_E_DATA, "%s/%s: expected format " FORMAT ", found '%.40s'", folder,
                       list_name, format ? format : "");
    if (!json_object_get(files, weights_name))
        return lk_fail(LK_E_DATA, "%s/%s: it lists no %s", folder, list_name, weights_name);
    json_object_foreach(files, name, sum) LK_TRY(check_file(folder, name, sum));
    return LK_OK;
}

enum lk_status lk_bundle_check(const char *folder, char *found, size_t bytes)
{
    char path[PATH_BYTES];
    void *text = NULL;
    size_t length = 0;
    json_error_t error;
    LK_TRY(name_file(folder, list_name, path));
    LK_TRY(lk_file_read(path, MOST_BYTES, &text, &length));
    json_t *list = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!list)
        return lk_fail(LK_E_DATA, "%s: damaged: line %d: %.100s", path, error.line, error.text);
    const enum lk_status status = check_list(folder, list);
    json_decref(list);
    LK_TRY(status);
    LK_TRY(name_file(folder, weights_name, path));
    if (strlen(path) >= bytes)
        return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(path));
    memcpy(found, path, strlen(path) + 1);
    return LK_OK;
}

/* --- writing ------------------------------------------------------------------------------
 */

/* The bundle that is being written. */
struct bundle {
    const char *folder;
    json_t *sums;
};

static enum lk_status note(struct bundle *b, const char *name)
{
    char path[PATH_BYTES], sum[LK_SHA256_TEXT];
    LK_TRY(name_file(b->folder, name, path));
    LK_TRY(lk_sha256_of_file(path, sum));
    return json_object_set_new(b->sums, name, json_string(sum)) == 0
               ? LK_OK
               : lk_fail_memory("a bundle", 0);
}

/* NULL or "": the model has none, and a file of a bundle before is removed. */
static enum lk_status write_text(struct bundle *b, const char *name, const char *text)
{
    char path[PATH_BYTES];
    LK_TRY(name_file(b->folder, name, path));
    if (!text || !*text) {
        if (lk_file_exists(path) && unlink(path) != 0)
            return lk_file_fail("remove", path);
        return LK_OK;
    }
    LK_TRY(lk_file_write(path, text, strlen(text)));
    return note(b, name);
}

/* With the run's settings, training that begins with the bundle need not be told its data. */
static enum lk_status copy_config(struct bundle *b, const char *run)
{
    char path[PATH_BYTES];
    void *text = NULL;
    size_t bytes = 0;
    LK_TRY(name_file(run, "config.yaml", path));
    if (lk_file_exists(path))
        LK_TRY(lk_file_read(path, MOST_CONFIG, &text, &bytes));
    const enum lk_status status = write_text(b, "config.yaml", text);
    free(text);
    return status;
}

static enum lk_status write_list(const struct bundle *b, const struct lk_checkpoint *about,
                                 const char *sum)
{
    char path[PATH_BYTES];
    LK_TRY(name_file(b->folder, list_name, path));
    json_t *list = json_pack("{s:s, s:s, s:s, s:I, s:s, s:O}", "format", FORMAT, "lockstep",
                             LK_VERSION, "model", about->model, "step", (json_int_t)about->step,
                             "parameters_sha256", sum, "files", b->sums);
    char *text = list ? json_dumps(list, JSON_INDENT(2)) : NULL;
    json_decref(list);
    if (!text)
        return lk_fail(LK_E_DATA, "the name of model '%s' is no UTF-8", about->model);
    const enum lk_status status = lk_file_write(path, text, strlen(text));
    free(text);
    return status;
}

/* Without its list the folder is no bundle until all is there. */
static enum lk_status write_all(struct bundle *b, const struct lk_checkpoint_file *file,
                                const char *run)
{
    const struct lk_checkpoint *about = lk_checkpoint_metadata(file);
    char path[PATH_BYTES], sum[LK_SHA256_TEXT];
    LK_TRY(name_file(b->folder, list_name, path));
    if (lk_file_exists(path) && unlink(path) != 0)
        return lk_file_fail("remove", path);
    LK_TRY(name_file(b->folder, weights_name, path));
    LK_TRY(lk_checkpoint_write_weights(file, path, sum));
    LK_TRY(note(b, weights_name));
    LK_TRY(write_text(b, "model.yaml", about->model_text));
    LK_TRY(write_text(b, "labels.json", about->classes));
    LK_TRY(write_text(b, "vocabulary.json", about->vocabulary));
    LK_TRY(write_text(b, "preprocessing.txt", about->eval_pipeline));
    LK_TRY(write_text(b, "tuning.txt", about->choices));
    LK_TRY(copy_config(b, run));
    return write_list(b, about, sum);
}

/* Files of others in the folder would be taken for the bundle's, or lost. */
static enum lk_status check_folder(const char *folder, bool may_replace)
{
    char path[PATH_BYTES];
    LK_TRY(name_file(folder, list_name, path));
    if (lk_folder_exists(folder) && !may_replace && rmdir(folder) != 0)
        return lk_fail(LK_E_IO, "'%s' is there already and not empty; --force replaces %s",
                       folder, lk_file_exists(path) ? "the bundle" : "what has names of ours");
    return LK_OK;
}

enum lk_status lk_bundle_export(const char *run, const char *folder, bool may_replace)
{
    char found[PATH_BYTES];
    struct lk_checkpoint_file *file = NULL;
    struct bundle b = {.folder = folder, .sums = json_object()};
    enum lk_status status;
    LK_TRY_OUT(check_folder(folder, may_replace));
    LK_TRY_OUT(lk_checkpoint_find(run, found, sizeof found));
    LK_TRY_OUT(lk_checkpoint_open(found, &file));
    LK_TRY_OUT(lk_folder_make(folder));
    status = write_all(&b, file, run);
out:
    lk_checkpoint_close(file);
    json_decref(b.sums);
    return status;
}
