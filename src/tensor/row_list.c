/* The size of row lists. */
#include "tensor/row_list.h"

#include "tensor/elementwise.h"

int64_t lk_row_list_stride(int64_t places, int64_t units)
{
    return lk_elementwise_padded(places * (units + 1));
}
