/* Fourier transforms of batches of images by clFFT. */
#include "device/library/fft.h"

#include "base/fail.h"
#include "device/opencl.h"
#include <clFFT.h>
#include <stdlib.h>

enum { FORWARD, INVERSE, DIRECTIONS };

struct lk_fft {
    struct lk_device *device;
    int real_bytes;
    int64_t images, spectra; /* reals of all the batch */
    clfftPlanHandle plans[DIRECTIONS];
    bool has_plan[DIRECTIONS], is_user;
    cl_mem temporary; /* what the larger of the two plans needs; NULL: nothing */
};

/* Held while a plan is made, since clFFT is not thread-safe there; also guards the number of
 * plans: clFFT is set up while there is one. */
static pthread_mutex_t planning = PTHREAD_MUTEX_INITIALIZER;
static int users;

static enum lk_status check(clfftStatus status, const char *what)
{
    if (status == CLFFT_SUCCESS)
        return LK_OK;
    if ((int)status < 0) /* OpenCL's codes are passed through */
        return lk_opencl_fail((cl_int)status, what);
    return lk_fail(LK_E_DEVICE, "%s: clFFT error %d", what, (int)status);
}

/* Describes the plan to clFFT, whose lengths and strides have the fastest axis first. */
static enum lk_status describe(struct lk_fft *fft, int direction, size_t h, size_t w,
                               size_t batch)
{
    size_t lengths[] = {w, h}, image[] = {1, w}, spectrum[] = {1, w / 2 + 1};
    const bool forward = direction == FORWARD;
    const size_t image_all = h * w, spectrum_all = h * (w / 2 + 1);
    clfftPlanHandle *plan = &fft->plans[direction];
    LK_TRY(check(clfftCreateDefaultPlan(plan, fft->device->context, CLFFT_2D, lengths),
                 "a plan of transforms"));
    fft->has_plan[direction] = true;
    LK_TRY(
        check(clfftSetPlanPrecision(*plan, fft->real_bytes == 8 ? CLFFT_DOUBLE : CLFFT_SINGLE),
              "its precision"));
    LK_TRY(check(forward ? clfftSetLayout(*plan, CLFFT_REAL, CLFFT_HERMITIAN_INTERLEAVED)
                         : clfftSetLayout(*plan, CLFFT_HERMITIAN_INTERLEAVED, CLFFT_REAL),
                 "its layout"));
    LK_TRY(check(clfftSetResultLocation(*plan, CLFFT_OUTOFPLACE), "its place"));
    LK_TRY(check(clfftSetPlanBatchSize(*plan, batch), "its batch"));
    LK_TRY(check(clfftSetPlanInStride(*plan, CLFFT_2D, forward ? image : spectrum),
                 "its strides"));
    LK_TRY(check(clfftSetPlanOutStride(*plan, CLFFT_2D, forward ? spectrum : image),
                 "its strides"));
    return check(clfftSetPlanDistance(*plan, forward ? image_all : spectrum_all,
                                      forward ? spectrum_all : image_all),
                 "its distances");
}

static enum lk_status plan(struct lk_fft *fft, int64_t h, int64_t w, int64_t batch)
{
    size_t most = 0;
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        size_t bytes = 0;
        LK_TRY(describe(fft, direction, (size_t)h, (size_t)w, (size_t)batch));
        LK_TRY(check(clfftBakePlan(fft->plans[direction], 1, &fft->device->queue, NULL, NULL),
                     "building transforms"));
        LK_TRY(check(clfftGetTmpBufSize(fft->plans[direction], &bytes), "their memory"));
        most = bytes > most ? bytes : most;
    }
    cl_int error = CL_SUCCESS;
    if (most)
        fft->temporary =
            clCreateBuffer(fft->device->context, CL_MEM_READ_WRITE, most, NULL, &error);
    return error == CL_SUCCESS ? LK_OK : lk_opencl_fail(error, "memory of transforms");
}

static bool has_small_factors(int64_t n)
{
    static const int factors[] = {2, 3, 5, 7, 11, 13};
    for (int i = 0; i < LK_COUNT(factors); i++)
        while (n > 1 && n % factors[i] == 0)
            n /= factors[i];
    return n == 1;
}

bool lk_fft_is_possible(const struct lk_device *device)
{
    return device->info.group_items >= 256;
}

enum lk_status lk_fft_create(struct lk_device *device, int real_bytes, int64_t h, int64_t w,
                             int64_t batch, struct lk_fft **fft)
{
    enum { MOST = 4096 };
    if (h < 1 || w < 1 || h > MOST || w > MOST || !has_small_factors(h) ||
        !has_small_factors(w) || batch < 1 || batch > INT32_MAX)
        return lk_fail(LK_E_ARGUMENT,
                       "transforms of %lld images of %lldx%lld: sides of at most %d with no "
                       "prime factor above 13 are expected",
                       (long long)batch, (long long)h, (long long)w, MOST);
    if (real_bytes == 8 && !device->info.has_fp64)
        return lk_fail(LK_E_UNSUPPORTED, "%s has no double precision", device->info.name);
    if (!lk_fft_is_possible(device))
        return lk_fail(LK_E_UNSUPPORTED, "clFFT wants work-groups of 256, %s has %zu",
                       device->info.name, device->info.group_items);
    struct lk_fft *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("transforms", sizeof *made);
    made->device = device;
    made->real_bytes = real_bytes;
    made->images = h * w * batch;
    made->spectra = 2 * h * (w / 2 + 1) * batch;
    pthread_mutex_lock(&planning);
    clfftSetupData setup = {0};
    enum lk_status status = check(clfftInitSetupData(&setup), "starting clFFT");
    if (status == LK_OK && users == 0)
        status = check(clfftSetup(&setup), "starting clFFT");
    made->is_user = status == LK_OK;
    users += made->is_user;
    if (status == LK_OK)
        status = plan(made, h, w, batch);
    pthread_mutex_unlock(&planning);
    if (status != LK_OK) {
        lk_fft_destroy(made);
        return status;
    }
    *fft = made;
    return LK_OK;
}

void lk_fft_destroy(struct lk_fft *fft)
{
    if (!fft)
        return;
    clFinish(fft->device->queue);
    pthread_mutex_lock(&planning);
    for (int direction = 0; direction < DIRECTIONS; direction++)
        if (fft->has_plan[direction])
            clfftDestroyPlan(&fft->plans[direction]);
    if (fft->is_user && --users == 0)
        clfftTeardown();
    pthread_mutex_unlock(&planning);
    if (fft->temporary)
        clReleaseMemObject(fft->temporary);
    free(fft);
}

int64_t lk_fft_image_count(const struct lk_fft *fft)
{
    return fft->images;
}

int64_t lk_fft_spectrum_count(const struct lk_fft *fft)
{
    return fft->spectra;
}

static enum lk_status enqueue(struct lk_fft *fft, int direction, cl_mem from, cl_mem to)
{
    LK_TRY(lk_chain_flush(fft->device)); /* clFFT enqueues by itself */
    return check(clfftEnqueueTransform(fft->plans[direction],
                                       direction == FORWARD ? CLFFT_FORWARD : CLFFT_BACKWARD, 1,
                                       &fft->device->queue, 0, NULL, NULL, &from, &to,
                                       fft->temporary),
                 "a transform");
}

static enum lk_status check_buffers(const struct lk_fft *fft, const struct lk_buffer *image,
                                    const struct lk_buffer *spectrum)
{
    const size_t real = (size_t)fft->real_bytes;
    if (image->bytes >= (size_t)fft->images * real &&
        spectrum->bytes >= (size_t)fft->spectra * real)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT,
                   "transforms of %lld reals in a buffer of %zu bytes, spectra of "
                   "%lld in one of %zu",
                   (long long)fft->images, image->bytes, (long long)fft->spectra,
                   spectrum->bytes);
}

enum lk_status lk_fft_enqueue_forward(struct lk_fft *fft, const struct lk_buffer *image,
                                      struct lk_buffer *spectrum)
{
    LK_TRY(check_buffers(fft, image, spectrum));
    return enqueue(fft, FORWARD, image->mem, spectrum->mem);
}

enum lk_status lk_fft_enqueue_inverse(struct lk_fft *fft, struct lk_buffer *spectrum,
                                      struct lk_buffer *image)
{
    LK_TRY(check_buffers(fft, image, spectrum));
    return enqueue(fft, INVERSE, spectrum->mem, image->mem);
}
