/* Models of other programs, made into model text and weights. Floor 6. */
#ifndef LOCKSTEP_IMPORT_H
#define LOCKSTEP_IMPORT_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* {0} is fine. */
struct lk_import_options {
    int height, width; /* of images where the file leaves them open; 0: it must not */
    bool may_replace;  /* what is in the folder already */
};

struct lk_import_report {
    int layers, arrays;
    int64_t parameters;
    bool has_weights; /* false: the file has a model alone */
};

/* Makes FOLDER/model.yaml and FOLDER/weights.safetensors (our names and layouts) of an ONNX
 * model, or of a Keras model, Sequential or Functional: JSON, a whole-model .h5 or a .keras
 * archive of Keras 2 or 3. Nothing in the file is executed. fails: LK_E_MODEL what is not
 * supported, by name; LK_E_DATA malformed, or an array missing; LK_E_IO, also where files are
 * there that may not be replaced; LK_E_UNSUPPORTED types of numbers, or built without what
 * reads the file. Nothing is written then. report: NULL is fine */
LK_API LK_MUST_CHECK enum lk_status lk_import(const char *file, const char *folder,
                                              const struct lk_import_options *options,
                                              struct lk_import_report *report);

#ifdef __cplusplus
}
#endif
#endif
