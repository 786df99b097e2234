/* Models of ONNX, made into model text and weights of ours. Floor 6. Pairs ONNX's operators
 * with our operations, both as words; knows no operation and no device. Files are read by
 * io/onnx/onnx.h, which checks sizes; what nodes say of shapes is checked here.
 *
 * A value is computed for each sample, or a constant. ONNX counts the batch as its first axis,
 * and our nodes have only those behind it. Shapes that reshaping, flattening and the like give
 * a value are only noted: an entry that needs another shape than its node has settles it.
 * Private to the rooms of ONNX. */
#ifndef LK_MODEL_ONNX_DRAFT_H
#define LK_MODEL_ONNX_DRAFT_H

#include "io/onnx/onnx.h"
#include "model/import/import.h"
#include "model/onnx/batch.h"

enum { LK_ONNX_TEXT_BYTES = 256, LK_ONNX_MOST_EQUAL = 1 << 28 };

struct lk_onnx_value {
    const char *name;                      /* as the file has it */
    const struct lk_onnx_tensor *constant; /* NULL: it is computed */
    const struct lk_onnx_tensor *known; /* of an input: its numbers, which may be parameters */
    enum lk_onnx_type type;             /* of whole arrays; 0: floats */
    struct lk_node *node;               /* of the draft graph */
    const char *entry;                  /* that makes it, or of an input its name */
    int rank, at;  /* at: the axis of samples, mostly 0; -1: the same for all */
    int64_t outer; /* of the numbers along that axis, those outside of the samples; 0: 1 */
    const struct lk_onnx_tensor *next; /* of a constant: another one for the second sample */
    int64_t dim[LK_ONNX_AXES];         /* as ONNX has it */
    bool is_last;                      /* an image of which ONNX has the channels last */
    int readers;
};

struct lk_onnx_draft {
    struct lk_arena arena;
    const char *where; /* the file, for messages */
    const struct lk_import_options *options;
    const struct lk_onnx_graph *file;
    struct lk_imported *made;
    struct lk_graph *graph;
    struct lk_text inputs, layers;
    struct lk_onnx_value **table; /* [slots], by name */
    size_t slots;
    int64_t batch;                      /* LK_ONNX_OPEN, or a number */
    bool is_whole;                      /* a node has all of an array, which need be no batch */
    const struct lk_onnx_value *anchor; /* of whole arrays: any input; NULL: there is none */
    const struct lk_onnx_node *node;    /* at work; NULL: none */
    bool *done;                         /* [nodes]: not needed, or part of an entry before */
    const char *before;                 /* the entry made last; NULL: none */
    int entries, input_count, tensor_room;
    int64_t budget; /* elements of constants that may still be made */
    int64_t equal;  /* elements of parameters made of one number, at most MOST_EQUAL */
};

/* What becomes of a node. */
typedef enum lk_status lk_onnx_convert(struct lk_onnx_draft *draft);

struct lk_onnx_operator {
    const char *name;
    lk_onnx_convert *convert;
    const char *const *attributes; /* that it knows, ends with NULL */
};

/* The attributes of a row: names, or NULL alone. */
#define LK_ONNX_KNOWS(...)                                                                     \
    (const char *const[])                                                                      \
    {                                                                                          \
        __VA_ARGS__, NULL                                                                      \
    }

/* "FILE: node 'conv1' (Conv): ..." Returns LK_E_MODEL. */
enum lk_status lk_onnx_fail(const struct lk_onnx_draft *draft, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A formatted text in the draft's arena. */
LK_MUST_CHECK enum lk_status lk_onnx_text(struct lk_onnx_draft *draft, const char **text,
                                          const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- attributes.c: of the node at work --------------------------------------------------- */

/* What is absent has the value `standard`. fails: LK_E_MODEL another kind of value */
LK_MUST_CHECK enum lk_status lk_onnx_say_integer(const struct lk_onnx_draft *draft,
                                                 const char *name, int64_t standard,
                                                 int64_t *value);
LK_MUST_CHECK enum lk_status lk_onnx_say_real(const struct lk_onnx_draft *draft,
                                              const char *name, double standard, double *value);
LK_MUST_CHECK enum lk_status lk_onnx_say_text(const struct lk_onnx_draft *draft,
                                              const char *name, const char *standard,
                                              const char **value);

/* A list of `count` numbers, all `standard` where it is absent. fails: also another count */
LK_MUST_CHECK enum lk_status lk_onnx_say_list(const struct lk_onnx_draft *draft,
                                              const char *name, int count, int64_t standard,
                                              int64_t *value);

const struct lk_onnx_attribute *lk_onnx_find_attribute(const struct lk_onnx_node *node,
                                                       const char *name); /* NULL: absent */

/* Numbers that old operators have as an attribute and new ones as input `index`: at most `most`
 * of them. *count 0: absent. fails: LK_E_MODEL where they are computed, or more */
LK_MUST_CHECK enum lk_status lk_onnx_numbers(struct lk_onnx_draft *draft, const char *name,
                                             int index, int most, int64_t *values, int *count);

/* Refuses attributes beside those that the operator knows. */
LK_MUST_CHECK enum lk_status lk_onnx_check_attributes(const struct lk_onnx_draft *draft,
                                                      const struct lk_onnx_operator *operator_);

/* --- values.c ---------------------------------------------------------------------------- */

/* Makes room for all names of the file. */
LK_MUST_CHECK enum lk_status lk_onnx_open_values(struct lk_onnx_draft *draft);

/* The value of that name, which nothing may have made yet; NULL: no such name. */
struct lk_onnx_value *lk_onnx_find(const struct lk_onnx_draft *draft, const char *name);

bool lk_onnx_is_made(const struct lk_onnx_value *value); /* computed, or a constant */

/* Input `index` of the node at work; NULL: absent. */
struct lk_onnx_value *lk_onnx_input(const struct lk_onnx_draft *draft, int index);

/* The same, which must be computed. fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_onnx_computed(const struct lk_onnx_draft *draft, int index,
                                              const struct lk_onnx_value **value);

/* The same, a constant; *tensor NULL: absent. fails: LK_E_MODEL it is computed */
LK_MUST_CHECK enum lk_status lk_onnx_constant(const struct lk_onnx_draft *draft, int index,
                                              const struct lk_onnx_tensor **tensor);

/* Output `index` of the node at work becomes `value`; nothing where it has none. */
LK_MUST_CHECK enum lk_status lk_onnx_give(struct lk_onnx_draft *draft, int index,
                                          const struct lk_onnx_value *value);
LK_MUST_CHECK enum lk_status lk_onnx_give_constant(struct lk_onnx_draft *draft,
                                                   const struct lk_onnx_tensor *tensor);

/* A constant with room for its numbers, halves as floats. fails: LK_E_MODEL absurdly large */
LK_MUST_CHECK enum lk_status lk_onnx_new_tensor(struct lk_onnx_draft *draft,
                                                enum lk_onnx_type type, int rank,
                                                const int64_t *dim,
                                                struct lk_onnx_tensor **tensor);
void lk_onnx_put_real(struct lk_onnx_tensor *tensor, int64_t index, double value);
void lk_onnx_put_integer(struct lk_onnx_tensor *tensor, int64_t index, int64_t value);

/* Axis, which may count from the end, of `rank`. fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_onnx_axis(const struct lk_onnx_draft *draft, int64_t axis,
                                          int rank, int *found);

/* --- fold.c, arithmetic.c ---------------------------------------------------------------- */

/* Computes the node at work where it reads constants alone, or asks for a shape. *done: it was
 * computed. */
LK_MUST_CHECK enum lk_status lk_onnx_fold(struct lk_onnx_draft *draft, bool *done);

/* Functions of numbers, one by one, with broadcasting. *done as above. */
LK_MUST_CHECK enum lk_status lk_onnx_fold_numbers(struct lk_onnx_draft *draft, bool *done);

/* A tensor with its axes in another order. */
LK_MUST_CHECK enum lk_status lk_onnx_turn(struct lk_onnx_draft *draft,
                                          const struct lk_onnx_tensor *x, const int *order,
                                          struct lk_onnx_tensor **turned);

/* --- inputs.c, entries.c ----------------------------------------------------------------- */

/* What the graph or an operation has refused is said of the node at work. */
enum lk_status lk_onnx_say_where(const struct lk_onnx_draft *draft, enum lk_status status);

/* Adds an entry that reads x[count], named after the node at work: made->node, ->entry, and the
 * shape that it has. fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_onnx_add(struct lk_onnx_draft *draft, const char *op,
                                         const char *options, int count,
                                         const struct lk_onnx_value *x,
                                         struct lk_onnx_value *made);

/* As lk_onnx_add() for one input, frozen: parameters are constants of the file. */
LK_MUST_CHECK enum lk_status lk_onnx_add_frozen(struct lk_onnx_draft *draft, const char *op,
                                                const char *options,
                                                const struct lk_onnx_value *x,
                                                struct lk_onnx_value *made);

/* x as a node of the shape that it is noted to have behind the batch. */
LK_MUST_CHECK enum lk_status lk_onnx_settle(struct lk_onnx_draft *draft,
                                            const struct lk_onnx_value *x,
                                            struct lk_onnx_value *settled);

/* Input `index` of the node at work as an image [c, h, w]. */
LK_MUST_CHECK enum lk_status lk_onnx_image(struct lk_onnx_draft *draft, int index,
                                           struct lk_onnx_value *image);

/* Gives a parameter of an entry its numbers, in PyTorch's order of axes (is_ours: in ours),
 * each times `factor`. Axes of length 1 may be more. fails: LK_E_MODEL another shape */
LK_MUST_CHECK enum lk_status lk_onnx_set(struct lk_onnx_draft *draft,
                                         const struct lk_onnx_value *entry, const char *param,
                                         const struct lk_onnx_tensor *numbers, bool is_ours,
                                         double factor);

/* Gives all elements of a parameter one number. */
LK_MUST_CHECK enum lk_status lk_onnx_set_all(struct lk_onnx_draft *draft,
                                             const struct lk_onnx_value *entry,
                                             const char *param, double number);

#endif
