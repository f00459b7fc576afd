/* Operands of block-scaled types: codes and the scale factors of their blocks of 32, as fp32. */
#include "graph_fp8.h"

enum { BLOCK = 32, TILE_ROWS = 128, TILE_COLUMNS = 4 };

static int64_t rounded(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* The extents of the scale factors as cuDNN reads them: [b,h,rows,blocks of channels], or
 * [b,h,blocks of rows,channels]. In memory both are tiles of 128 rows (or channels) and 4 blocks.
 */
static void lay_out(const fattn_problem *p, const fattn__mx_operand *operand, int64_t dim[4],
                    int64_t strides[4])
{
    const fattn__shape x = fattn__problem_shape(p, operand->role);
    const bool along_rows = operand->along_rows;
    const int64_t b = x.dim[0], h = x.dim[1];
    const int64_t length = rounded(along_rows ? x.dim[3] : x.dim[2], TILE_ROWS);
    const int64_t blocks =
        rounded(((along_rows ? x.dim[2] : x.dim[3]) + BLOCK - 1) / BLOCK, TILE_COLUMNS);
    const int64_t height = along_rows ? blocks : length, width = along_rows ? length : blocks;
    dim[0] = b, dim[1] = h, dim[2] = height, dim[3] = width;
    strides[0] = h * height * width, strides[1] = height * width, strides[2] = width,
    strides[3] = 1;
    if (p->scale_format == FATTN_FORMAT_BSHD)
        strides[1] = width, strides[2] = h * width;
    if (p->scale_format == FATTN_FORMAT_SBHD)
        strides[0] = h * width, strides[1] = width, strides[2] = b * h * width;
    /* The stride of s of a second quantisation's factors goes from one tile of channels to the next; of a single tile it is the
     * end. */
    if (operand->second &&
        (p->scale_format == FATTN_FORMAT_UNSET || p->scale_format == FATTN_FORMAT_BHSD))
        strides[2] = length == TILE_ROWS ? b * h * height * width : blocks * TILE_ROWS;
}

static void transpose(int64_t x[4])
{
    const int64_t rows = x[2];
    x[2] = x[3];
    x[3] = rows;
}

fattn__desc fattn__mx_factors(const fattn__chain *c, const fattn__mx_operand *operand)
{
    int64_t dim[4], strides[4];
    lay_out(c->problem, operand, dim, strides);
    if (operand->transposed) {
        transpose(dim);
        transpose(strides);
    }
    return fattn__tensor_with(c->g, fattn__slot_of_auxiliary(operand->factors), DNN_DATA_FP8_E8M0,
                              dim, strides, &(fattn__traits){ .tiled = true });
}

fattn__desc fattn__mx_dequantized(const fattn__chain *c, const fattn__mx_operand *operand)
{
    fattn__shape x = fattn__problem_shape(c->problem, operand->role);
    if (operand->transposed) {
        transpose(x.dim);
        transpose(x.strides);
    }
    const fattn__traits packing = fattn__chain_traits(c, operand->role);
    fattn__block_scale op = { 0 };
    op.x = fattn__tensor_with(c->g, operand->data, fattn__data_type(x.dtype), x.dim, x.strides,
                              &packing);
    op.scale = fattn__mx_factors(c, operand);
    op.y = fattn__virtual_with(c->g, DNN_DATA_FLOAT, x.dim, x.strides, &packing);
    fattn__op_block_scale(c->g, &op);
    return op.y;
}
