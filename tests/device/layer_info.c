/* What every OpenCL layer of the tests tells the loader about itself. */
#include "device/layer_info.h"

#include <CL/cl_layer.h>
#include <stdbool.h>
#include <string.h>

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t bytes, void *value,
                                               size_t *need)
{
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const bool is_name = what == CL_LAYER_NAME;
    const size_t size = is_name ? strlen(layer_name) + 1 : sizeof version;
    if ((!is_name && what != CL_LAYER_API_VERSION) || (value && bytes < size))
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, is_name ? (const void *)layer_name : &version, size);
    if (need)
        *need = size;
    return CL_SUCCESS;
}
