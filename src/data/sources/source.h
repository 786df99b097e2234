/* A source: a kind of data set, which opens and reads what the SPEC "kind:text" names. Floor 4.
 * A new kind is one file that defines a const struct lk_source, and one row of the table.
 * Sources know no shuffling and no chance: sample i is always the same. */
#ifndef LK_DATA_SOURCES_SOURCE_H
#define LK_DATA_SOURCES_SOURCE_H

#include "base/option.h"
#include "io/sha256.h"
#include <lockstep/data.h>

/* Options of sources of image files: what stands behind the commas of "folder:DIR,size=96x96".
 * Each source's table has LK_IMAGE_OPTIONS and may have rows of its own. */
struct lk_image_options {
    char size[32]; /* "96x96": height x width; "": as the caller asks, else as the first
                    * image */
    int64_t channels;
    char max_bad[16];             /* "1%" of the samples, or how many */
    char classes[512];            /* a file of names, or their number; "": as they are found */
    char cache[512];              /* "memory", or a file; "": as the caller asks, else "none" */
    int decode;                   /* enum lk_image_decoding */
    char part[64];                /* folder: the subfolder to read */
    char image[128], label[1024]; /* tfrecord: keys */
    int64_t offset;               /* added to labels as they are in the file */
    char fields[8192];            /* tfrecord: keys of numbers beside the image */
    char label_type[16];
};

enum lk_image_decoding { LK_DECODE_SCALED, LK_DECODE_FULL };

extern const char *const lk_image_decodings[];

#define LK_IMAGE_OPTION(field)                                                                 \
    .name = #field, .offset = offsetof(struct lk_image_options, field)
#define LK_IMAGE_TEXT(field)                                                                   \
    LK_IMAGE_OPTION(field), .kind = LK_OPTION_TEXT,                                            \
                            .count = sizeof((struct lk_image_options *)0)->field
#define LK_IMAGE_OPTIONS                                                                       \
    {LK_IMAGE_TEXT(size), .standard = ""},                                                     \
        {LK_IMAGE_OPTION(channels), .kind = LK_OPTION_INT, .count = 1, .max = 4,               \
         .standard = "0"},                                                                     \
        {LK_IMAGE_TEXT(max_bad), .standard = ""}, {LK_IMAGE_TEXT(classes), .standard = ""},    \
        {LK_IMAGE_TEXT(cache), .standard = ""},                                                \
    {                                                                                          \
        LK_IMAGE_OPTION(decode), .kind = LK_OPTION_CHOICE, .standard = "scaled",               \
                                 .choices = lk_image_decodings                                 \
    }

enum { LK_MOST_CLASSES = 1 << 20 };

/* What a source is asked to open. */
struct lk_data_request {
    const char *text; /* what stands behind the colon, without options of images */
    enum lk_data_part part;
    const struct lk_image_options *options; /* NULL for sources without `options` */
    const struct lk_data_options *wanted;   /* what the caller asks for where the SPEC says
                                             * nothing; NULL: the usual */
    int64_t lost;     /* set by open: samples known to be broken that it does not even count */
    char max_bad[16]; /* set by open: how many samples may be broken; "": the SPEC does not say
                       */
};

/* The fields of a source that leaves them open. */
enum { LK_FIELD_IMAGE, LK_FIELD_CLASS };

/* An image file in memory. */
struct lk_encoded {
    void *data; /* the reader frees it */
    size_t bytes;
    int64_t label;
    char where[512]; /* names it in messages */
};

/* What a conversion keeps of a sample beside its image. */
struct lk_sample_metadata {
    int64_t label;
    uint32_t stamp;       /* a checksum that differs if the sample differs */
    char name[512];       /* a path below the folder of its class; "": none */
    char class_name[256]; /* "": not known */
};

struct lk_texts;

struct lk_source {
    const char *kind;                /* what stands before the colon */
    const char *usage;               /* for messages: "idx:DIR" */
    const struct lk_option *options; /* of a source that fetches */

    /* Opens one part of what the request names, and fills `info`, with the part that it is; a
     * name and class names that are there already stay. A source fills in either the fields,
     * which live as long as the state, or height, width, channels and classes: the fields are
     * then an image and its class. A source that fetches files leaves the shape open, and
     * classes 0 where it does not know them. `state` is the source's own.
     * fails: see lk_data_open() */
    enum lk_status (*open)(struct lk_data_request *request, struct lk_data_info *info,
                           void **state);
    void (*close)(void *state);

    /* At least one of the two, for sample `index` of the set; any thread. `read` copies each
     * field to to[i], unless that is NULL; LK_E_DATA says that the sample is broken as a whole.
     * `fetch` gives the image file, which others decode, and the label where it is known
     * without the file, even if that cannot be read. A source with both leaves the image to
     * `fetch` and all else, the label too, to `read`. */
    enum lk_status (*read)(const void *state, int64_t index, void *const to[]);
    enum lk_status (*fetch)(const void *state, int64_t index, struct lk_encoded *encoded);
    bool can_break;    /* samples may turn out to be broken: they are counted and replaced */
    bool knows_broken; /* which ones are is known without reading: asking for no field of one
                        * tells */

    /* The source that takes over where the SPEC has the option fields=, and the one that does
     * where image= stands beside it. They may read files as this one does. NULL: there is no
     * such option. */
    const struct lk_source *of_fields, *of_image_and_fields;

    /* The one that takes over where a SPEC asks for tokens of a vocabulary, or for those that
     * come next in a text, or where the caller has a vocabulary. NULL: there is none. */
    const struct lk_source *of_tokens;

    /* Reads the label alone; NULL: it is known only when the sample is read. */
    int64_t (*label)(const void *state, int64_t index);

    /* Of a source of texts: all of them, with their vocabulary; NULL: it has none. Before any
     * other verb is called, `learn` learns the vocabulary of those samples, all of a training
     * part, unless there is one, and makes tokens of all texts. fails: as lk_texts_encode() */
    struct lk_texts *(*texts)(void *state);
    enum lk_status (*learn)(void *state, const int64_t *indices, int64_t count);
    bool (*is_ordered)(
        const void *state); /* held out are the last samples, as of one long text */
    /* How many tokens sample `index` has before it is cut or filled, and how many of them are
     * unknown; any thread. fails: LK_E_DATA it is broken */
    enum lk_status (*measure)(const void *state, int64_t index, struct lk_text_size *size);

    /* Of a source that fetches: tells about a sample; any thread. */
    enum lk_status (*about)(const void *state, int64_t index, struct lk_sample_metadata *about);

    /* Of a source that fetches: adds to the hash what identifies its samples, so that it
     * changes when they do: names, lengths and times of files. */
    void (*identify)(const void *state, struct lk_sha256 *sum);
};

extern const struct lk_source lk_source_idx, lk_source_synthetic, lk_source_folder,
    lk_source_csv, lk_source_tfrecord, lk_source_npy, lk_source_text;

/* Sources that take over from one of image files: see of_fields. */
extern const struct lk_source lk_source_csv_fields, lk_source_tfrecord_fields,
    lk_source_tfrecord_image_and_fields;

/* What takes over from the source of texts. */
extern const struct lk_source lk_source_tokens;

/* Finds ",name=" of the first option in the text of a SPEC; the text's end where there is
 * none. */
char *lk_source_find_options(char *text);

/* Cuts "DIR,size=96x96,max_bad=3" behind DIR and reads the options into the table's struct.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_source_parse_options(const struct lk_option *table, char *text,
                                                     void *options);

/* The value of an option in the text of a SPEC; false: it is not there, or too long. */
bool lk_source_find_option(const char *text, const char *name, char *value, size_t bytes);

/* Of an option that no source reads, which has no comma in its value: where the value begins
 * in a SPEC, and ends; NULL: it is not there. Cutting takes it out, with its name. */
char *lk_source_find_value(char *spec, const char *name, char **end);
void lk_source_cut_value(const char *name, char *value, const char *end);

/* Whether ",name=" of that option is in the text of a SPEC. */
bool lk_source_has_option(const char *text, const char *name);

/* The last part of a path: a data set's short name. */
void lk_source_name(const char *path, char name[64]);

/* The names that a part other than the training part may have among files and folders, the
 * most fitting first; NULL ends them. */
const char *const *lk_source_part_names(enum lk_data_part part);

/* The part that one of these names is of. */
enum lk_data_part lk_source_part_named(const char *name);

/* Whether a set without parts is what was asked for. */
bool lk_source_takes_all(enum lk_data_part part);

/* Finds the file of a part: what the SPEC names, or of its folder "train.txt" with the ending
 * ".txt", and so on. fails: LK_E_IO there is none; LK_E_ARGUMENT the path is too long */
enum { LK_SOURCE_PATH = 4096 };
LK_MUST_CHECK enum lk_status lk_source_find_file(const char *kind, const char *spec,
                                                 const char *ending, enum lk_data_part part,
                                                 char path[LK_SOURCE_PATH],
                                                 enum lk_data_part *found);

/* Returns lk_fail(LK_E_IO, ...) with the text that `text` has no part to validate or test with,
 * and how to name one. */
enum lk_status lk_source_fail_no_test(const char *kind, const char *text);

#endif
