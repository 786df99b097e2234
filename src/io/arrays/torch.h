/* The tensors of PyTorch's files, whichever way their storages lie. Floor 1. Private to this
 * room. A tensor is a view of a storage: an offset, a shape and strides. A storage is a run of
 * numbers with a key, which the pickle names by a persistent id.
 * source: torch/serialization.py and torch/_utils.py of PyTorch 2 */
#ifndef LK_IO_ARRAYS_TORCH_H
#define LK_IO_ARRAYS_TORCH_H

#include "io/arrays/file.h"
#include "io/arrays/pickle.h"
#include "io/arrays/zip.h"

/* part, offset: where its bytes begin, as in struct lk_array_place; -1: not known yet. */
struct lk_torch_storage {
    const char *key; /* borrowed from the pickle, not ended by '\0' */
    uint32_t key_bytes;
    enum lk_safetensor_type type;
    uint64_t bytes;
    int part;
    uint64_t offset;
};

/* Sorted by key, each key once. */
struct lk_torch_storages {
    struct lk_torch_storage *at;
    int count;
};

/* The storages that the last pickle names; the caller frees storages->at.
 * fails: LK_E_DATA, LK_E_UNSUPPORTED a type, by name; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_torch_list(const struct lk_pickle *pickle,
                                           struct lk_torch_storages *storages);

/* The storage of that key, a text; NULL: absent. */
struct lk_torch_storage *lk_torch_find(const struct lk_torch_storages *storages,
                                       const struct lk_pickle_value *key);

/* Adds the tensors of a dictionary, and of those within it, to the file; entries of other kinds
 * are left out. fails: LK_E_DATA a tensor outside its storage, cycles; as lk_torch_list() */
LK_MUST_CHECK enum lk_status lk_torch_add(struct lk_arrays_file *file,
                                          struct lk_pickle_value *root,
                                          const struct lk_torch_storages *storages);

/* Reads array i, whose storage lies in `bytes`, into to[count * bytes of an element]. */
LK_MUST_CHECK enum lk_status lk_torch_read(const struct lk_arrays_file *file, int i,
                                           const struct lk_bytes *bytes, void *to);

/* Opens the older format, a stream of pickles with the storages behind them. */
LK_MUST_CHECK enum lk_status lk_torch_open_stream(struct lk_arrays_file *file);

/* Opens the newer format; the file takes over the archive, also on failure. The entry with the
 * pickle; -1: this is no archive of PyTorch's. */
LK_MUST_CHECK enum lk_status lk_torch_open_archive(struct lk_arrays_file *file,
                                                   struct lk_zip *zip);
int lk_torch_find_pickle(const struct lk_zip *zip);

/* Whether a file's first two bytes are those of a pickle. */
bool lk_torch_is_stream(const unsigned char *begin);

#endif
