/* The inner loop: the same bits from every instruction set, which are those of a plain loop. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "problems.h"
#include "ref_product.h"

enum { ROWS = 13, COLUMNS = 48, INNER = 37 };

static double after(fref__of of, double b)
{
    return of == FREF__OF_VALUE ? b : of == FREF__OF_MAGNITUDE ? fabs(b) : b * b;
}

Test(product, gives_the_bits_of_a_plain_loop_on_every_processor)
{
    static double a[ROWS * INNER], b[INNER * COLUMNS], start[ROWS * COLUMNS], want[ROWS * COLUMNS],
        got[ROWS * COLUMNS];
    uint64_t state = 1;
    for (int n = 0; n < ROWS * INNER; n++)
        a[n] = random_normal(&state);
    for (int n = 0; n < INNER * COLUMNS; n++)
        b[n] = random_normal(&state);
    for (int n = 0; n < ROWS * COLUMNS; n++)
        start[n] = random_normal(&state);
    for (int of = FREF__OF_VALUE; of <= FREF__OF_SQUARE; of++)
        for (int transposed = 0; transposed < 2; transposed++) {
            int64_t a_row = transposed ? 1 : INNER, a_inner = transposed ? ROWS : 1;
            memcpy(want, start, sizeof want);
            for (int m = 0; m < ROWS; m++)
                for (int n = 0; n < COLUMNS; n++)
                    for (int k = 0; k < INNER; k++)
                        want[m * COLUMNS + n] =
                            fma(a[m * a_row + k * a_inner], after((fref__of)of, b[k * COLUMNS + n]),
                                want[m * COLUMNS + n]);
            for (int processor = FREF__PROCESSOR_ANY; processor <= FREF__PROCESSOR_AVX512;
                 processor++) {
                memcpy(got, start, sizeof got);
                fref__operands x = { ROWS, COLUMNS,     INNER,   a,   a_row,  a_inner,
                                     b,    FREF__LANES, COLUMNS, got, COLUMNS };
                if (fref__add_product_on(&x, (fref__of)of, (fref__processor)processor))
                    cr_expect_arr_eq(got, want, sizeof want, "f %d, transposed %d, processor %d",
                                     of, transposed, processor);
            }
        }
}
