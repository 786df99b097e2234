/* Writes HDF5 files by libhdf5: in memory first, since a file must be whole or not there. */
#include "io/arrays/hdf5_write.h"

#include "base/fail.h"
#include "io/file.h"

#ifdef LK_HDF5
#include <hdf5.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { GROWTH = 1 << 22 }; /* bytes by which the file in memory grows */

/* Not every build of libhdf5 may be called by several threads. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* Closes what libhdf5 has opened; `kind` is one of its functions. */
#define CLOSE(kind, id)                                                                        \
    do {                                                                                       \
        if ((id) >= 0)                                                                         \
            kind(id);                                                                          \
    } while (0)

static enum lk_status refuse(const char *what)
{
    return lk_fail(LK_E_UNSUPPORTED, "libhdf5 cannot write '%.100s'", what);
}

static enum lk_status write_array(hid_t file, hid_t parents, hid_t plain,
                                  const struct lk_safetensor *array)
{
    hsize_t dims[LK_SAFETENSOR_AXES];
    const hid_t type = array->type == LK_SAFETENSOR_F64 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE;
    if (array->type != LK_SAFETENSOR_F64 && array->type != LK_SAFETENSOR_F32)
        return refuse(array->name);
    for (int i = 0; i < array->rank; i++)
        dims[i] = (hsize_t)array->shape[i];
    const hid_t space =
        array->rank ? H5Screate_simple(array->rank, dims, NULL) : H5Screate(H5S_SCALAR);
    const hid_t set = H5Dcreate2(file, array->name, type, space, parents, plain, H5P_DEFAULT);
    const herr_t written =
        set < 0 ? -1 : H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array->data);
    CLOSE(H5Dclose, set);
    CLOSE(H5Sclose, space);
    return written < 0 ? refuse(array->name) : LK_OK;
}

static enum lk_status write_group(hid_t file, hid_t parents, const char *name)
{
    hid_t group = H5Lexists(file, name, H5P_DEFAULT) > 0
                      ? H5Gopen2(file, name, H5P_DEFAULT)
                      : H5Gcreate2(file, name, parents, H5P_DEFAULT, H5P_DEFAULT);
    CLOSE(H5Gclose, group);
    return group < 0 ? refuse(name) : LK_OK;
}

/* All texts in as many bytes as the longest has, as h5py does: [count][longest]. */
static char *pack(const struct lk_hdf5_texts *list, size_t *longest)
{
    const int count = list->count < 0 ? 1 : list->count;
    *longest = 1;
    for (int i = 0; i < count; i++)
        if (strlen(list->texts[i]) > *longest)
            *longest = strlen(list->texts[i]);
    char *packed = calloc((size_t)count + 1, *longest);
    for (int i = 0; packed && i < count; i++)
        memcpy(packed + (size_t)i * *longest, list->texts[i], strlen(list->texts[i]));
    return packed;
}

static enum lk_status write_texts(hid_t file, const struct lk_hdf5_texts *list)
{
    size_t longest;
    const hsize_t count = (hsize_t)(list->count < 0 ? 1 : list->count);
    char *packed = pack(list, &longest);
    if (!packed)
        return lk_fail_memory("an HDF5 file", 0);
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, longest);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    const hid_t space =
        list->count < 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, NULL);
    const hid_t at = H5Oopen(file, *list->group ? list->group : "/", H5P_DEFAULT);
    const hid_t attribute =
        at < 0 ? -1 : H5Acreate2(at, list->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const herr_t written = attribute < 0 ? -1 : H5Awrite(attribute, type, packed);
    CLOSE(H5Aclose, attribute);
    CLOSE(H5Oclose, at);
    CLOSE(H5Sclose, space);
    CLOSE(H5Tclose, type);
    free(packed);
    return written < 0 ? refuse(list->name) : LK_OK;
}

/* The file in memory as bytes, which the caller frees. */
static enum lk_status take_image(hid_t file, void **image, size_t *bytes)
{
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    const ssize_t size = H5Fget_file_image(file, NULL, 0);
    void *made = size > 0 ? malloc((size_t)size) : NULL;
    if (!made)
        return size > 0 ? lk_fail_memory("an HDF5 file", (size_t)size) : refuse("the file");
    if (H5Fget_file_image(file, made, (size_t)size) != size) {
        free(made);
        return refuse("the file");
    }
    *image = made;
    *bytes = (size_t)size;
    return LK_OK;
}

/* What a file is made of. */
struct contents {
    const struct lk_safetensor *arrays;
    int count;
    const char *const *groups;
    const struct lk_hdf5_texts *texts;
    int lists;
};

static enum lk_status fill(hid_t file, const struct contents *c, void **image, size_t *bytes)
{
    const hid_t parents = H5Pcreate(H5P_LINK_CREATE), plain = H5Pcreate(H5P_DATASET_CREATE);
    enum lk_status status = LK_OK;
    H5Pset_create_intermediate_group(parents, 1);
    H5Pset_obj_track_times(plain, 0); /* equal contents make equal bytes */
    for (int i = 0; c->groups && c->groups[i] && status == LK_OK; i++)
        status = write_group(file, parents, c->groups[i]);
    for (int i = 0; i < c->count && status == LK_OK; i++)
        status = write_array(file, parents, plain, &c->arrays[i]);
    for (int i = 0; i < c->lists && status == LK_OK; i++)
        status = write_texts(file, &c->texts[i]);
    H5Pclose(plain);
    H5Pclose(parents);
    return status == LK_OK ? take_image(file, image, bytes) : status;
}

static enum lk_status make_image(const struct contents *contents, void **image, size_t *bytes)
{
    const hid_t in_memory = H5Pcreate(H5P_FILE_ACCESS);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* what fails is said by us */
    H5Pset_fapl_core(in_memory, GROWTH, 0);
    const hid_t file = H5Fcreate("weights.h5", H5F_ACC_TRUNC, H5P_DEFAULT, in_memory);
    const enum lk_status status =
        file < 0 ? refuse("a file in memory") : fill(file, contents, image, bytes);
    CLOSE(H5Fclose, file);
    H5Pclose(in_memory);
    return status;
}

enum lk_status lk_hdf5_write(const char *path, const struct lk_safetensor *arrays, int count,
                             const char *const *groups, const struct lk_hdf5_texts *texts,
                             int lists)
{
    const struct contents contents = {arrays, count, groups, texts, lists};
    void *image = NULL;
    size_t bytes = 0;
    LK_TRY(lk_file_check(path)); /* before the work */
    pthread_mutex_lock(&one_at_a_time);
    enum lk_status status = make_image(&contents, &image, &bytes);
    pthread_mutex_unlock(&one_at_a_time);
    if (status == LK_OK)
        status = lk_file_write(path, image, bytes);
    free(image);
    return status;
}

#else

enum lk_status lk_hdf5_write(const char *path, const struct lk_safetensor *arrays, int count,
                             const char *const *groups, const struct lk_hdf5_texts *texts,
                             int lists)
{
    (void)arrays, (void)count, (void)groups, (void)texts, (void)lists;
    return lk_fail(LK_E_UNSUPPORTED,
                   "'%s': this program was built without libhdf5, by which HDF5 files are "
                   "written",
                   path);
}

#endif
