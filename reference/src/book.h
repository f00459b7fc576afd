/* Parts of the codebook evaluation (fref/codebook.h): one query head at a time.
 *
 * An item is a key (for O and dQ) or a row (for dK and dV). Items add a vector of numbers to the sums of their code; a window holds
 * the sums of the items in a range, and moves.
 */
#ifndef FREF_BOOK_H
#define FREF_BOOK_H

#include <fref/codebook.h>
#include <math.h>

#include "backward.h"

/* Names of such functions are unique in the library: older clang's resolvers are global, those of static functions too. */
#if defined(__x86_64__)
#define FREF__CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FREF__CLONES
#endif

/* Below so many items of a code, sums that do not separate into the code's are taken item by item. */
#define FREF__BOOK_FEW 64
#define FREF__BOOK_BLOCK 1024 /* items whose sums are kept */
#define FREF__BOOK_TILE 512   /* rows or keys of one task */

/* One query head. */
typedef struct fref__book {
    const fref__shape *shape;
    const fref_rounding *rounding;
    const fref_codes *codes;
    int64_t b, h;
    const uint8_t *code_q, *code_k;              /* of each row, each key */
    double *score;                               /* [count, count]: scale rho[a] . kappa[b] */
    double *rho, *kappa, *norm_rho, *norm_kappa; /* [count, ld_qk]; [count] */
    double *top;                                 /* [count]: the largest score of a query code */
    double *v, *d_o;                             /* [keys, ld_v], [rows, ld_v]; d_o of a backward pass */
    fref__norms norms_v;
    double *moment_v, *moment_d_o;        /* [ld_v, ld_v]: means of v v^T and dO dO^T */
    double *stats;                        /* [rows]; -INFINITY: dead */
    fref__row_facts *facts;               /* [rows] */
    int64_t *keys_of_code, *rows_of_code; /* places of code 0, of code 1 ... */
    int64_t *first_key, *first_row;       /* [count + 1]: where each code begins there */
    bool backward;
    double *row;    /* of each thread, ld_v */
    double *memory; /* of all of these but the lists */
} fref__book;

/* Allocates for any head; ENOMEM. */
int fref__book_create(fref__book *out, const fref__shape *shape, const fref_codes *codes, const fref_rounding *rounding,
                      bool backward);
void fref__book_destroy(fref__book *book);
/* Decodes head h of batch b. `in` has o, stats and d_o for a backward pass; the facts of rows are then filled. */
void fref__book_load(fref__book *book, const fref__inputs *in, int64_t b, int64_t h);

/* The rows (in the problem) that may read key j. */
fref__range fref__rows_of_key(const fref_problem *p, int64_t b, int64_t j);

/* What item n adds to its code's sums; false: nothing, it is dead. */
typedef bool (*fref__item)(double *out, const fref__book *book, int64_t n);

/* The items and the sums of each FREF__BOOK_BLOCK of them. */
typedef struct fref__items {
    const fref__book *book;
    fref__item item;
    const uint8_t *code;
    int64_t count, codes, width;
    bool of_keys;
    double *block; /* [block, code, width + 1]; the last is the number of items */
    double *ones;  /* [thread, width + 1] */
} fref__items;

int fref__items_create(fref__items *out, const fref__book *book, fref__item item, bool of_keys, int64_t width);
void fref__items_fill(fref__items *items); /* after each load */
void fref__items_destroy(fref__items *items);

typedef struct fref__window {
    fref__range range;
    int64_t built; /* items when it was last built */
    double *sums;  /* [code, width + 1] */
    double *one;   /* [width + 1] */
} fref__window;

int64_t fref__window_doubles(const fref__items *items);
void fref__window_start(fref__window *out, const fref__items *items, double *memory);
void fref__window_move(fref__window *window, const fref__items *items, fref__range to);

/* The answers of the loaded head. */
int fref__book_forward(const fref__book *book, fref__items *keys, const fref_forward_out *out);
int fref__book_rows(const fref__book *book, fref__items *keys, const fref__backward *x);

/* dK and dV of one key (or value) head so far, [listed key, dim]: value, variance, bound. */
typedef struct fref__book_total {
    double *value, *variance, *bound;
} fref__book_total;
int fref__book_keys(const fref__book *book, fref__items *rows, const fref__backward *x, const fref__book_total *k,
                    const fref__book_total *v);
int64_t fref__book_width_of_rows(const fref__shape *shape);
void fref__book_finish(const fref__book_total *total, int64_t count, const fref__precision *to);

double fref__dot(const double *x, const double *y, int64_t n); /* n a multiple of 16 */

/* x_r^T M x_r for rows of x, `ld` doubles each; scratch: rows * ld doubles. */
void fref__quadratic(double *out, const double *x, const double *moment, int64_t rows, int64_t ld, double *scratch);

/* The places of `code` within `range`: places[first], ... */
fref__range fref__places_of(const int64_t *places, const int64_t *first, int64_t code, fref__range range);

#endif
