/* The geometry of a convolution as a struct and as options of kernels. */
#include "products/kernel/geometry.h"

#include <stdio.h>

struct lk_geometry lk_geometry_of(const struct lk_product_axis axis[2])
{
    const struct lk_product_axis *y = &axis[0], *x = &axis[1];
    return (struct lk_geometry){.taps_y = y->taps,
                                .taps_x = x->taps,
                                .step_y = y->step,
                                .step_x = x->step,
                                .gap_y = y->gap,
                                .gap_x = x->gap,
                                .pad_y = y->pad,
                                .pad_x = x->pad,
                                .in_h = y->in,
                                .in_w = x->in,
                                .out_h = y->out,
                                .out_w = x->out};
}

void lk_geometry_print(const struct lk_geometry *geometry, int parts,
                       char text[LK_GEOMETRY_BYTES])
{
#define ROW(part, name, member) {LK_GEOMETRY_##part, #name, geometry->member},
    const struct {
        int part;
        const char *name;
        int64_t number;
    } rows[] = {LK_GEOMETRY(ROW)};
#undef ROW
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].part & parts)
            length += (size_t)snprintf(text + length, LK_GEOMETRY_BYTES - length, "%s-D%s=%lld",
                                       length > 0 ? " " : "", rows[i].name,
                                       (long long)rows[i].number);
}
