/* Models of ONNX: none breaks the reader or the importer. Nothing is written, as the folder
 * cannot be made. */
#include "files.h"
#include "fuzz.h"
#include <lockstep/import.h>
#include <lockstep/lockstep.h>

static void keep_quiet(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    (void)level;
    (void)text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    lk_log_set(keep_quiet, NULL);
    const char *path = fuzz_put("m.onnx", data, bytes);
    const struct lk_import_options options = {.height = 8, .width = 8};
    (void)!lk_import(path, "/dev/null/none", &options, NULL);
    lk_error_clear();
    return 0;
}
