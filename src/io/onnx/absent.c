/* ONNX where there was no protobuf-c to build with. */
#include "io/onnx/onnx.h"

#include "base/fail.h"

static enum lk_status refuse(const char *path)
{
    return lk_fail(LK_E_UNSUPPORTED,
                   "'%s': this Lockstep was built without protobuf-c, which ONNX needs", path);
}

enum lk_status lk_onnx_read(const char *path, struct lk_onnx_file *file)
{
    (void)file;
    return refuse(path);
}

enum lk_status lk_onnx_read_tensor(const char *path, struct lk_onnx_file *file,
                                   struct lk_onnx_tensor *tensor)
{
    (void)file, (void)tensor;
    return refuse(path);
}

void lk_onnx_clear(struct lk_onnx_file *file)
{
    (void)file;
}

enum lk_status lk_onnx_write(const char *path, const struct lk_onnx_graph *graph)
{
    (void)graph;
    return refuse(path);
}
