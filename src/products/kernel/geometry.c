/* The geometry of a convolution as a struct and as options of kernels. */
#include "products/kernel/geometry.h"

#include <stdio.h>

struct lk_geometry lk_geometry_of(const struct lk_product_axis axis[2])
{
    const struct lk_product_axis *y = &axis[0], *x = &axis[1];
    return (struct lk_geometry){.taps_y = y->taps,
                                .taps_x = x->taps,
                                .stride_y = y->stride,
                                .stride_x = x->stride,
                                .gap_y = y->gap,
                                .gap_x = x->gap,
                                .pad_y = y->pad,
                                .pad_x = x->pad,
                                .in_h = y->in,
                                .in_w = x->in,
                                .out_h = y->out,
                                .out_w = x->out};
}

void lk_geometry_print(const struct lk_geometry *geometry, int kinds,
                       char text[LK_GEOMETRY_BYTES])
{
#define ROW(kind, name, member) {LK_GEOMETRY_##kind, #name, geometry->member},
    const struct {
        int kind;
        const char *name;
        int64_t number;
    } rows[] = {LK_GEOMETRY(ROW)};
#undef ROW
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind & kinds)
            length += (size_t)snprintf(text + length, LK_GEOMETRY_BYTES - length, "%s-D%s=%lld",
                                       length > 0 ? " " : "", rows[i].name,
                                       (long long)rows[i].number);
}
