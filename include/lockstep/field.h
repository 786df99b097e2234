/* Fields: the named, typed values of every sample of a data set. Floor 4. Knows no data set. */
#ifndef LOCKSTEP_FIELD_H
#define LOCKSTEP_FIELD_H

#include <lockstep/status.h>
#include <lockstep/tensor.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LK_MOST_FIELDS = 16 };

/* A field is what a model takes, or what its output is compared with. */
enum lk_field_role { LK_FIELD_INPUT, LK_FIELD_LABEL };

/* One named value of every sample: numbers of one type that lie together. An image is LK_U8 [h,
 * w, c]. */
struct lk_field {
    const char *name;      /* "image", "label", "numbers", "culmen_depth_mm" */
    enum lk_dtype dtype;   /* LK_U8, LK_F32 or LK_I32 (lockstep/tensor.h) */
    struct lk_shape shape; /* of one sample: [h, w, c]; [t]; []: a single number */
    enum lk_field_role role;
    int length;      /* the field (LK_I32, []) that tells how many of shape.dim[0] there
                      * are, the rest being 0; -1: all are */
    int64_t classes; /* LK_I32: values lie in [0, classes); 0: they are no classes */
    const char *const *class_names; /* [classes]; NULL: not known */
    /* [shape.dim[0]] what the numbers of a field [n] are called, such as a table's columns;
     * NULL: nothing */
    const char *const *element_names;
};

/* Bytes of one sample's field. */
LK_API size_t lk_field_bytes(const struct lk_field *field);

/* The place of the field of that name; -1: absent. */
LK_API int lk_field_find(const struct lk_field *fields, int count, const char *name);

#ifdef __cplusplus
}
#endif
#endif
