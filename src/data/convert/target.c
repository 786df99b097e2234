/* The target's folder. Nothing that was there is touched without being told. What an earlier
 * conversion left, whole or not, is recognized by its plan, in a hidden folder or file. */
#include "base/fail.h"
#include "base/log.h"
#include "data/convert/convert.h"
#include "data/sources/names.h"
#include "io/file.h"
#include "io/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char work_name[] = ".lockstep-convert", names_file[] = "labels.txt",
                  skipped_file[] = "skipped.txt", plan_file[] = "plan", done_file[] = "done",
                  converted_name[] = ".lockstep-converted";

void lk_convert_shard_name(const struct lk_convert_part *part, int shard, char name[128])
{
    snprintf(name, 128, "%s-%05d-of-%05d.tfrecord", part->name, shard, part->shards);
}

static enum lk_status in_folder(const char *folder, const char *name,
                                char path[LK_CONVERT_PATH])
{
    if (snprintf(path, LK_CONVERT_PATH, "%s/%s", folder, name) >= LK_CONVERT_PATH)
        return lk_fail(LK_E_ARGUMENT, "'%.100s.../%.100s': too long a path", folder, name);
    return LK_OK;
}

/* Names in a folder, but "." and "..": for lk_names_clear(), after a failure too. */
static enum lk_status list(const char *path, struct lk_names *names)
{
    DIR *folder = opendir(path);
    if (!folder)
        return lk_file_fail("open the folder", path);
    enum lk_status status = LK_OK;
    errno = 0;
    for (const struct dirent *entry; status == LK_OK && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = lk_names_add(names, entry->d_name);
    closedir(folder);
    return status;
}

/* Removes those files of a folder that is_ours() accepts. */
static enum lk_status remove_files(const struct lk_conversion *c, const char *folder,
                                   bool (*is_ours)(const struct lk_conversion *c,
                                                   const char *name))
{
    struct lk_names names = {0};
    enum lk_status status = list(folder, &names);
    for (int i = 0; i < names.count && status == LK_OK; i++) {
        char path[LK_CONVERT_PATH];
        if (!is_ours(c, names.items[i]))
            continue;
        status = in_folder(folder, names.items[i], path);
        if (status == LK_OK && unlink(path) != 0)
            status = lk_file_fail("remove", path);
    }
    lk_names_clear(&names);
    return status;
}

static bool is_any(const struct lk_conversion *c, const char *name)
{
    (void)c;
    (void)name;
    return true;
}

/* Whether a file was being written when an earlier conversion ended. Plans and lists of skipped
 * samples are none. */
static bool is_draft(const struct lk_conversion *c, const char *name)
{
    (void)c;
    const size_t length = strlen(name), ending = strlen(".skipped");
    return strcmp(name, plan_file) != 0 && strcmp(name, done_file) != 0 &&
           (length < ending || strcmp(name + length - ending, ".skipped") != 0);
}

/* The part a file would be read as: "train*". */
static const struct lk_convert_part *part_of(const struct lk_conversion *c, const char *name)
{
    for (int i = 0; i < c->part_count; i++)
        if (strncmp(name, c->parts[i].name, strlen(c->parts[i].name)) == 0)
            return &c->parts[i];
    return NULL;
}

/* "-00003-of-00016.tfrecord" behind the name of the part. */
static bool is_shard(const struct lk_conversion *c, const char *name)
{
    const struct lk_convert_part *part = part_of(c, name);
    int shard, shards, length = 0;
    return part &&
           sscanf(name + strlen(part->name), "-%d-of-%d.tfrecord%n", &shard, &shards,
                  &length) == 2 &&
           length > 0 && !name[strlen(part->name) + (size_t)length];
}

static bool is_shard_or_list(const struct lk_conversion *c, const char *name)
{
    return is_shard(c, name) || strcmp(name, skipped_file) == 0;
}

static enum lk_status check_entry(const struct lk_conversion *c, const char *name)
{
    const bool is_records = strstr(name, ".tfrecord") != NULL || strstr(name, "-of-") != NULL;
    if (strcmp(name, work_name) == 0 || strcmp(name, converted_name) == 0)
        return LK_OK;
    if (c->kind == LK_CONVERT_SHARDS && part_of(c, name) && !is_shard(c, name))
        return lk_fail(LK_E_ARGUMENT,
                       "'%s/%s' is in the way: it would be read as a part of the set",
                       c->folder, name);
    if (!c->options.force && (c->kind == LK_CONVERT_FOLDER || is_records ||
                              strcmp(name, names_file) == 0 || strcmp(name, skipped_file) == 0))
        return lk_fail(LK_E_ARGUMENT,
                       "'%s' is there already, with '%s' in it; --force replaces what it must",
                       c->folder, name);
    return LK_OK;
}

static enum lk_status check_entries(const struct lk_conversion *c)
{
    struct lk_names names = {0};
    enum lk_status status = list(c->folder, &names);
    lk_names_sort(&names);
    for (int i = 0; i < names.count && status == LK_OK; i++)
        status = check_entry(c, names.items[i]);
    lk_names_clear(&names);
    return status;
}

/* Writes the plan: everything that decides what the target becomes. Another source or other
 * options have another plan. */
static enum lk_status print_plan(const struct lk_conversion *c, struct lk_text *plan)
{
    char text[LK_SHA256_TEXT];
    struct lk_sha256 sum;
    LK_TRY(lk_sha256_init(&sum));
    for (int i = 0; i < c->class_count; i++) {
        const char *name = c->classes[i] ? c->classes[i] : "";
        lk_sha256_add(&sum, name, strlen(name) + 1);
    }
    for (int i = 0; i < c->part_count; i++)
        for (int64_t k = 0; k < c->parts[i].count; k++) {
            const struct lk_convert_sample *s = &c->parts[i].samples[k];
            lk_sha256_add(&sum, s->name, strlen(s->name) + 1);
            lk_sha256_add(&sum, &s->label, sizeof s->label);
            lk_sha256_add(&sum, &s->stamp, sizeof s->stamp);
        }
    lk_sha256_finish(&sum, text);
    lk_sha256_clear(&sum);
    lk_text_append(plan, "lockstep convert 1\nsource %s\nsamples %s\nsize %dx%d\n", c->source,
                   text, c->options.height, c->options.width);
    if (c->kind == LK_CONVERT_SHARDS)
        lk_text_append(plan, "keys %s %s %lld\n", c->keys.image, c->keys.label,
                       (long long)c->keys.offset);
    for (int i = 0; i < c->part_count; i++)
        lk_text_append(plan, "part %s of %lld in %d\n", c->parts[i].name,
                       (long long)c->parts[i].count, c->parts[i].shards);
    return plan->failed ? lk_fail_memory("a plan", plan->used) : LK_OK;
}

/* Where the plan of a conversion that is complete is kept. Beside folders of classes it is a
 * file: other programs take every folder there for a class, hidden ones too. */
static enum lk_status find_done(const struct lk_conversion *c, char path[LK_CONVERT_PATH])
{
    return c->kind == LK_CONVERT_FOLDER ? in_folder(c->folder, converted_name, path)
                                        : in_folder(c->work, done_file, path);
}

/* Begins anew: a work folder with nothing but the plan. */
static enum lk_status start(struct lk_conversion *c, const char *path, const char *done,
                            const char *plan)
{
    LK_TRY(check_entries(c));
    LK_TRY(lk_folder_make(c->work));
    LK_TRY(remove_files(c, c->work, is_any));
    if (unlink(done) != 0 && errno != ENOENT)
        return lk_file_fail("remove", done);
    if (c->options.force && c->kind == LK_CONVERT_SHARDS)
        LK_TRY(remove_files(c, c->folder, is_shard_or_list));
    return lk_file_write(path, plan, strlen(plan));
}

static enum lk_status is_same_plan(const char *path, const char *plan, bool *is_same)
{
    enum { MOST_BYTES = 1 << 16 };
    void *found = NULL;
    size_t bytes = 0;
    *is_same = false;
    if (!lk_file_exists(path))
        return LK_OK;
    LK_TRY(lk_file_read(path, MOST_BYTES, &found, &bytes));
    *is_same = strcmp(found, plan) == 0;
    free(found);
    return LK_OK;
}

/* A conversion that is complete is gone through like one that was interrupted: what has been
 * lost or changed since is written anew. */
static enum lk_status compare(struct lk_conversion *c, const char *plan)
{
    char path[LK_CONVERT_PATH], done[LK_CONVERT_PATH];
    bool is_done;
    LK_TRY(in_folder(c->work, plan_file, path));
    LK_TRY(find_done(c, done));
    LK_TRY(is_same_plan(done, plan, &is_done));
    if (is_done && !lk_file_exists(path) && !c->options.force) {
        c->resumes = true;
        return lk_folder_make(c->work);
    }
    if (!lk_file_exists(path) || c->options.force)
        return start(c, path, done, plan);
    LK_TRY(is_same_plan(path, plan, &c->resumes));
    if (!c->resumes)
        return lk_fail(LK_E_ARGUMENT,
                       "'%s' holds a conversion that was interrupted, of other samples or with "
                       "other options; --force starts over",
                       c->folder);
    lk_log(LK_LOG_INFO, "going on with the conversion in '%s' that was interrupted", c->folder);
    return remove_files(c, c->work, is_draft);
}

enum lk_status lk_convert_begin(struct lk_conversion *c)
{
    struct lk_text plan = {0};
    LK_TRY(in_folder(c->folder, work_name, c->work));
    LK_TRY(lk_folder_make(c->folder));
    if (access(c->folder, W_OK) != 0)
        return lk_file_fail("write in", c->folder);
    c->lock = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->lock < 0)
        return lk_file_fail("open", c->folder);
    if (flock(c->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return lk_fail(LK_E_IO, "another process converts into '%s'", c->folder);
    enum lk_status status = print_plan(c, &plan);
    if (status == LK_OK)
        status = compare(c, plan.bytes);
    free(plan.bytes);
    return status;
}

/* Writes the names of all classes, if any class has one. */
static enum lk_status write_names(const struct lk_conversion *c)
{
    char path[LK_CONVERT_PATH];
    struct lk_text text = {0};
    int known = 0;
    for (int i = 0; i < c->class_count; i++) {
        known += c->classes[i] != NULL;
        if (c->classes[i])
            lk_text_append(&text, "%d:%s\n", i, c->classes[i]);
        else
            lk_text_append(&text, "%d:%d\n", i, i);
    }
    enum lk_status status = in_folder(c->folder, names_file, path);
    if (text.failed)
        status = lk_fail_memory("names of classes", text.used);
    if (status == LK_OK && known > 0)
        status = lk_file_write(path, text.bytes, text.used);
    free(text.bytes);
    return status;
}

enum lk_status lk_convert_finish(struct lk_conversion *c)
{
    char path[LK_CONVERT_PATH], done[LK_CONVERT_PATH];
    LK_TRY(write_names(c));
    LK_TRY(in_folder(c->folder, skipped_file, path));
    if (c->skipped.used > 0)
        LK_TRY(lk_file_write(path, c->skipped.bytes, c->skipped.used));
    LK_TRY(remove_files(c, c->work, is_draft));
    LK_TRY(in_folder(c->work, plan_file, path));
    LK_TRY(find_done(c, done));
    if (lk_file_exists(path))
        LK_TRY(lk_file_move(path, done));
    if (c->kind != LK_CONVERT_FOLDER)
        return LK_OK;
    LK_TRY(remove_files(c, c->work, is_any));
    return rmdir(c->work) == 0 ? LK_OK : lk_file_fail("remove the folder", c->work);
}
