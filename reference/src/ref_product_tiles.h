/* The body of ref_product.c for one instruction set. It is included once for each set, and
 * undefines its parameters at the end. A tile of ROWS rows x a panel of C stays in registers while
 * k runs. The counts are constants after inlining. */

TARGET INLINE void NAME(add_tile)(const fref__operands *x, const fref__of of, const int rows,
                                  int64_t m, int64_t n)
{
    VECTOR sum[ROWS][PER_PANEL];
    const double *a[ROWS];
    for (int r = 0; r < rows; r++) {
        a[r] = x->a + (m + r) * x->a_row;
        for (int w = 0; w < PER_PANEL; w++)
            sum[r][w] = x->from_zero ? ALL(0.0) : LOAD(x->c + (m + r) * x->c_row + n + WIDTH * w);
    }
    const double *b = x->b + n / FREF__LANES * x->b_panel;
    for (int64_t k = 0; k < x->inner; k++, b += x->b_inner) {
        VECTOR factor[PER_PANEL];
        for (int w = 0; w < PER_PANEL; w++) {
            factor[w] = LOAD(b + WIDTH * w);
            if (of == FREF__OF_MAGNITUDE)
                factor[w] = MAGNITUDE(factor[w]);
            else if (of == FREF__OF_SQUARE)
                factor[w] = SQUARE(factor[w]);
        }
        for (int r = 0; r < rows; r++) {
            VECTOR one = ALL(a[r][k * x->a_inner]);
            for (int w = 0; w < PER_PANEL; w++)
                sum[r][w] = FMA(one, factor[w], sum[r][w]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int w = 0; w < PER_PANEL; w++)
            STORE(x->c + (m + r) * x->c_row + n + WIDTH * w, sum[r][w]);
}

TARGET INLINE void NAME(add_tiles)(const fref__operands *x, const fref__of of)
{
    for (int64_t n = 0; n < x->columns; n += FREF__LANES) {
        int64_t m = 0;
        for (; m + ROWS <= x->rows; m += ROWS)
            NAME(add_tile)(x, of, ROWS, m, n);
        for (; m < x->rows; m++)
            NAME(add_tile)(x, of, 1, m, n);
    }
}

TARGET static void NAME(add_product)(const fref__operands *x, fref__of of)
{
    switch (of) {
    case FREF__OF_VALUE:
        NAME(add_tiles)(x, FREF__OF_VALUE);
        break;
    case FREF__OF_MAGNITUDE:
        NAME(add_tiles)(x, FREF__OF_MAGNITUDE);
        break;
    case FREF__OF_SQUARE:
        NAME(add_tiles)(x, FREF__OF_SQUARE);
        break;
    }
}

#undef TARGET
#undef NAME
#undef VECTOR
#undef WIDTH
#undef ROWS
#undef PER_PANEL
#undef LOAD
#undef STORE
#undef ALL
#undef FMA
#undef SQUARE
#undef MAGNITUDE
