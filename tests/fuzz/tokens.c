/* Texts as tokens, of lines with labels or one long text, and files of vocabularies. */
#include "data/text/file.h"
#include "data/text/texts.h"
#include "files.h"
#include "fuzz.h"
#include <lockstep/data.h>

/* All tokens lie within the vocabulary, lengths within the length. */
static void look_at(const char *spec)
{
    enum { LENGTH = 7 };
    struct lk_data *set;
    if (lk_data_open(spec, LK_DATA_TRAIN, &set) == LK_OK) {
        const struct lk_data_info *info = lk_data_info(set);
        const int64_t size = info->fields[1].classes;
        for (int64_t i = 0; i < info->count; i++) {
            int32_t label[LENGTH], tokens[LENGTH], count;
            void *to[LK_MOST_FIELDS] = {label, tokens, &count};
            if (lk_data_read_fields(set, &i, 1, to) != LK_OK || count < 0 || count > LENGTH)
                abort();
            for (int k = 0; k < LENGTH; k++)
                if (tokens[k] < 0 || tokens[k] >= size || (k >= count && tokens[k] != 0))
                    abort();
        }
        lk_data_close(set);
    }
    lk_error_clear();
}

/* What a vocabulary makes of any bytes stands for them, if it is one of pairs. */
static void encode(const struct lk_vocabulary *v, const char *text, size_t bytes)
{
    struct lk_tokens tokens = {0};
    struct lk_text_room room = {0};
    if (lk_vocabulary_encode(v, text, bytes, &tokens) != LK_OK)
        abort();
    for (int64_t i = 0; i < tokens.count && room.used < (1 << 20); i++)
        if (lk_vocabulary_decode(v, tokens.items[i], &room) != LK_OK)
            abort();
    if (v->unit == LK_UNIT_PAIRS &&
        (room.used != bytes || (bytes > 0 && memcmp(room.bytes, text, bytes) != 0)))
        abort();
    free(tokens.items);
    free(room.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const units[] = {"word", "char", "byte,labels=next"};
    struct lk_vocabulary vocabulary = {0};
    const char *path = fuzz_put("a.txt", data, bytes);
    for (int i = 0; i < 3; i++) {
        char spec[300];
        snprintf(spec, sizeof spec, "text:%s,length=7,max_bad=100%%,unit=%s", path, units[i]);
        look_at(spec);
    }
    if (lk_vocabulary_read(&vocabulary, path) == LK_OK)
        encode(&vocabulary, (const char *)data, bytes);
    lk_vocabulary_clear(&vocabulary);
    lk_error_clear();
    return 0;
}
