/* The body of lanes.c for one instruction set. It is included once for each set, and undefines its
 * parameters at the end. (A compiler splits a vector if the function that contains it lacks the
 * instructions, even if it is inlined into one that has them.) */

/* Loads fewer than eight, the rest `fill`. */
TARGET INLINE void NAME(load_some)(eight *out, const double *x, int64_t n, double fill)
{
    double some[8] = { fill, fill, fill, fill, fill, fill, fill, fill };
    memcpy(some, x, (size_t)n * sizeof *some);
    *out = OF(some);
}

TARGET INLINE void NAME(store_some)(double *out, const eight *x, int64_t n)
{
    memcpy(out, x, (size_t)n * sizeof *out);
}

TARGET INLINE double NAME(added_up)(const eight *x)
{
    return (((*x)[0] + (*x)[1]) + ((*x)[2] + (*x)[3])) +
           (((*x)[4] + (*x)[5]) + ((*x)[6] + (*x)[7]));
}

/* x y + z, rounded once. */
TARGET INLINE void NAME(fuse)(eight *out, const eight *x, const eight *y, const eight *z)
{
    for (int n = 0; n < 8; n += WIDTH)
        STORE((double *)out + n, FMA(LOAD((const double *)x + n), LOAD((const double *)y + n),
                                     LOAD((const double *)z + n)));
}

/* e^x = 2^k e^r, |r| <= ln 2 / 2: the Taylor series to r^13 is good to 4e-18. 2^k in two steps, as
 * k may leave the exponents. */
TARGET INLINE void NAME(exp_of)(eight *out, const eight *in)
{
    eight x = CHOOSE(*in > 800.0, ALL(800.0), *in);
    x = CHOOSE(x < -800.0, ALL(-800.0), x);
    eight k, r, sum = ALL(exp_terms[0]);
    NAME(fuse)(&k, &x, &ALL(LOG2_E), &ALL(ROUNDER));
    k -= ROUNDER;
    NAME(fuse)(&r, &k, &ALL(-LN2_HIGH), &x);
    NAME(fuse)(&r, &k, &ALL(-LN2_LOW), &r);
    for (int n = 1; n < (int)(sizeof exp_terms / sizeof exp_terms[0]); n++)
        NAME(fuse)(&sum, &sum, &r, &ALL(exp_terms[n]));
    eight half = k * 0.5 + ROUNDER, rest = (k - (half - ROUNDER)) + ROUNDER;
    eight_bits one = (eight_bits)ALL(1.0);
    *out = sum * (eight)(((eight_bits)half << 52) + one) * (eight)(((eight_bits)rest << 52) + one);
}

TARGET static void NAME(exp_all)(double *out, const double *x, int64_t n)
{
    eight e;
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        NAME(exp_of)(&AT(out + k), &OF(x + k));
    if (k == n)
        return;
    NAME(load_some)(&e, x + k, n - k, 0.0);
    NAME(exp_of)(&e, &e);
    NAME(store_some)(out + k, &e, n - k);
}

TARGET INLINE void NAME(scale_some)(eight *x, double scale, eight *max, eight *magnitude)
{
    *x *= scale;
    eight size = MAGNITUDE(*x);
    *max = CHOOSE((*x > *max) | (*x != *x), *x, *max);
    *magnitude = CHOOSE(size > *magnitude, size, *magnitude);
}

TARGET static void NAME(scale_all)(fref__extremes *out, double *x, int64_t n, double scale)
{
    eight max = ALL(-INFINITY), magnitude = ALL(0.0);
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        NAME(scale_some)(&AT(x + k), scale, &max, &magnitude);
    *out = (fref__extremes){ .max = -INFINITY };
    for (int64_t rest = k; rest < n; rest++) {
        x[rest] *= scale;
        out->max = x[rest] > out->max || x[rest] != x[rest] ? x[rest] : out->max;
        out->magnitude = fabs(x[rest]) > out->magnitude ? fabs(x[rest]) : out->magnitude;
    }
    for (int l = 0; l < 8; l++) {
        out->max = max[l] > out->max || max[l] != max[l] ? max[l] : out->max;
        out->magnitude = magnitude[l] > out->magnitude ? magnitude[l] : out->magnitude;
    }
}

TARGET INLINE void NAME(exponentiate_some)(eight *x, double max, eight sums[3])
{
    eight size = MAGNITUDE(*x), e = *x - max;
    NAME(exp_of)(&e, &e);
    sums[0] += e;
    sums[1] += e * e;
    sums[2] += e * size;
    *x = e;
}

TARGET static void NAME(exponentiate_all)(fref__exp_sums *out, double *x, int64_t n, double max)
{
    eight sums[3] = { ALL(0.0), ALL(0.0), ALL(0.0) }, rest;
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        NAME(exponentiate_some)(&AT(x + k), max, sums);
    if (k < n) {
        NAME(load_some)(&rest, x + k, n - k,
                        max < 0.0 ? 2.0 * max - 1e3 : -1e3); /* exp: 0, and finite */
        NAME(exponentiate_some)(&rest, max, sums);
        NAME(store_some)(x + k, &rest, n - k);
    }
    *out = (fref__exp_sums){ NAME(added_up)(&sums[0]), NAME(added_up)(&sums[1]),
                             NAME(added_up)(&sums[2]) };
}

TARGET static void NAME(multiply_all)(double *x, int64_t n, double by)
{
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        AT(x + k) *= by;
    for (; k < n; k++)
        x[k] *= by;
}

TARGET INLINE void NAME(weigh_forward_some)(eight *variance, eight *flushed, const eight *p,
                                            const fref__forward_terms *t, eight_bits *any)
{
    eight_bits lost = (*p < t->limit) & (*p > 0.0);
    *variance = *p * *p * t->variance_p + t->variance_floor;
    *flushed = (eight)(lost & (eight_bits)*p);
    *any |= lost;
}

TARGET INLINE bool NAME(any_of)(const eight_bits *x)
{
    int64_t all = 0;
    for (int l = 0; l < 8; l++)
        all |= (*x)[l];
    return all != 0;
}

TARGET static void NAME(weigh_forward_all)(bool *out, double *variance, double *flushed,
                                           const double *p, int64_t n, const fref__forward_terms *t)
{
    eight_bits any = { 0 };
    eight of_p, rest[2];
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        NAME(weigh_forward_some)(&AT(variance + k), &AT(flushed + k), &OF(p + k), t, &any);
    if (k < n) {
        NAME(load_some)(&of_p, p + k, n - k, 0.0);
        NAME(weigh_forward_some)(&rest[0], &rest[1], &of_p, t, &any);
        NAME(store_some)(variance + k, &rest[0], n - k);
        NAME(store_some)(flushed + k, &rest[1], n - k);
    }
    *out = NAME(any_of)(&any);
}

TARGET INLINE void NAME(entries_some)(eight *p, eight *ds, const eight *s,
                                      const fref__entry_row *row)
{
    eight x = *s * row->scale - row->stats;
    NAME(exp_of)(p, &x);
    *ds = *p * (*ds - row->delta);
}

TARGET static void NAME(entries_all)(double *p, double *ds, const double *s, int64_t n,
                                     const fref__entry_row *row)
{
    eight some_s, some_p, some_ds;
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        NAME(entries_some)(&AT(p + k), &AT(ds + k), &OF(s + k), row);
    if (k == n)
        return;
    NAME(load_some)(&some_s, s + k, n - k, 0.0);
    NAME(load_some)(&some_ds, ds + k, n - k, 0.0);
    NAME(entries_some)(&some_p, &some_ds, &some_s, row);
    NAME(store_some)(p + k, &some_p, n - k);
    NAME(store_some)(ds + k, &some_ds, n - k);
}

TARGET INLINE void NAME(weigh_some)(weights *w, const eight *p, const eight *ds,
                                    const fref__entry_terms *t)
{
    eight size = MAGNITUDE(*ds);
    eight_bits underflows = *p < FREF__P_FLUSHED,
               lost = (*ds != 0.0) & (underflows | (size < t->limit));
    w->size = size;
    w->bound =
        (size * t->relative + *p * t->of_p) + t->floor + (eight)(underflows & (eight_bits)size);
    w->variance = (*ds * *ds * t->var_ds + *p * *p * t->var_p) + t->var_floor;
    w->lost = (eight)(lost & (eight_bits)*ds);
    w->any |= lost;
    eight_bits v_lost = (*p > 0.0) & (*p < t->v_limit);
    w->v_bound = *p * t->v_relative + t->v_floor;
    w->v_variance = *p * *p * t->v_var + t->v_var_floor;
    w->v_lost = (eight)(v_lost & (eight_bits)*p);
    w->any_v |= v_lost;
}

TARGET INLINE void NAME(store_weights)(const fref__entry_weights *out, const weights *w, int64_t at,
                                       int64_t n)
{
    NAME(store_some)(out->size + at, &w->size, n);
    NAME(store_some)(out->bound + at, &w->bound, n);
    NAME(store_some)(out->variance + at, &w->variance, n);
    NAME(store_some)(out->lost + at, &w->lost, n);
    if (!out->v_bound)
        return;
    NAME(store_some)(out->v_bound + at, &w->v_bound, n);
    NAME(store_some)(out->v_variance + at, &w->v_variance, n);
    NAME(store_some)(out->v_lost + at, &w->v_lost, n);
}

TARGET static void NAME(weigh_all)(fref__entry_weights *out, const double *p, const double *ds,
                                   int64_t n, const fref__entry_terms *t)
{
    weights w = { .any = { 0 } };
    eight some_p, some_ds;
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
        NAME(weigh_some)(&w, &OF(p + k), &OF(ds + k), t);
        NAME(store_weights)(out, &w, k, 8);
    }
    if (k < n) {
        NAME(load_some)(&some_p, p + k, n - k, 0.0);
        NAME(load_some)(&some_ds, ds + k, n - k, 0.0);
        NAME(weigh_some)(&w, &some_p, &some_ds, t);
        NAME(store_weights)(out, &w, k, n - k);
    }
    out->any_lost = NAME(any_of)(&w.any);
    out->any_v_lost = NAME(any_of)(&w.any_v);
}

#undef TARGET
#undef NAME
#undef WIDTH
#undef LOAD
#undef STORE
#undef FMA
