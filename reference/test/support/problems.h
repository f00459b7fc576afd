/* Problems with data, for the tests of the reference. */
#ifndef FREF_TESTING_PROBLEMS_H
#define FREF_TESTING_PROBLEMS_H

#include <fref/fref.h>

typedef enum data_fill { FILL_GAUSS, FILL_NEEDLE, FILL_NEGLSE, FILL_STAIR, FILL_COUNT } data_fill;

/* Owner of a problem's inputs; dense b,h,s,d unless a test changes the strides. */
typedef struct data {
    fref_problem problem;
    int32_t len_q[8], len_kv[8];
    fref_type type;
    uint64_t seed;
    fref_tensor q, k, v, o, stats, d_o;
    fref_tensor bias;     /* problem.bias points here once data_bias was called */
    int64_t dbias_dim[4]; /* of its gradient; [1, heads_q, rows, keys] unless a test changes it */
} data;

/* A problem of the given sizes: no mask, no lengths, scale 1/sqrt(dim_qk). */
fref_problem dense_problem(int64_t batch, int64_t heads_q, int64_t heads_kv, int64_t rows,
                           int64_t keys, int64_t dim_qk, int64_t dim_v);

/* Allocates and fills q, k, v, d_o; o and stats are zero. Lengths (may be NULL) are copied. */
void data_create(data *out, const fref_problem *problem, fref_type type, data_fill fill,
                 uint64_t seed);
/* A bias of dims `dim` (1: broadcast) and ordinary values, times `size`; dbias_dim too. `d` may not
 * move afterwards. */
void data_bias(data *d, const int64_t dim[4], fref_type type, double size);
/* Fills o (in the input type) and stats (fp32) with the reference's own answers, rounded. */
void data_answer(data *d);
void data_destroy(data *d);

int64_t offset_of(const fref_tensor *t, int64_t b, int64_t h, int64_t s, int64_t c);

/* Element access with a decoder of its own, so that a test does not trust what it tests. */
double element(const fref_tensor *t, int64_t b, int64_t h, int64_t s, int64_t c);
void set_element(fref_tensor *t, int64_t b, int64_t h, int64_t s, int64_t c, double value);
double unit_roundoff_of(fref_type type);

uint64_t random_bits(uint64_t *state);
double random_normal(uint64_t *state);

#endif
