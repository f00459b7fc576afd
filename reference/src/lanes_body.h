/* The body of lanes.c for one instruction set; included once for each, and clears what it was told. (A vector is taken apart where
 * the function that it stands in lacks the instructions, whatever that is inlined into.) */

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
    return (((*x)[0] + (*x)[1]) + ((*x)[2] + (*x)[3])) + (((*x)[4] + (*x)[5]) + ((*x)[6] + (*x)[7]));
}

/* e^x = 2^k e^r, |r| <= ln 2 / 2: the Taylor series to r^13 is good to 4e-18. 2^k in two steps, as k may leave the exponents. */
TARGET INLINE void NAME(exp_of)(eight *out, const eight *in)
{
    eight x = CHOOSE(*in > 800.0, ALL(800.0), *in);
    x = CHOOSE(x < -800.0, ALL(-800.0), x);
    eight k = (x * LOG2_E + ROUNDER) - ROUNDER;
    eight r = (x - k * LN2_HIGH) - k * LN2_LOW;
    eight sum = ALL(exp_terms[0]);
    for (int n = 1; n < 12; n++)
        sum = sum * r + exp_terms[n];
    sum = (sum * (r * r) + r) + 1.0;
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
        NAME(load_some)(&rest, x + k, n - k, -1e5); /* exp: 0 */
        NAME(exponentiate_some)(&rest, max, sums);
        NAME(store_some)(x + k, &rest, n - k);
    }
    *out = (fref__exp_sums){ NAME(added_up)(&sums[0]), NAME(added_up)(&sums[1]), NAME(added_up)(&sums[2]) };
}

TARGET static void NAME(multiply_all)(double *x, int64_t n, double by)
{
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        AT(x + k) *= by;
    for (; k < n; k++)
        x[k] *= by;
}

TARGET INLINE void NAME(weigh_forward_some)(eight *variance, eight *flushed, const eight *p, const fref__forward_terms *t,
                                            eight_bits *any)
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

TARGET static void NAME(weigh_forward_all)(bool *out, double *variance, double *flushed, const double *p, int64_t n,
                                           const fref__forward_terms *t)
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

TARGET INLINE void NAME(weigh_some)(entries *e, const eight *s, const eight *dp, const fref__entry_terms *t, const bool judged)
{
    eight x = *s * t->scale - t->stats, p;
    NAME(exp_of)(&p, &x);
    eight ds = p * (*dp - t->delta);
    e->p = p;
    e->ds = ds;
    if (!judged)
        return;
    eight size = MAGNITUDE(ds);
    eight_bits underflows = p < FREF__P_FLUSHED, lost = (ds != 0.0) & (underflows | (size < t->limit));
    e->size = size;
    e->bound = (size * t->relative + p * t->of_p) + t->floor + (eight)(underflows & (eight_bits)size);
    e->variance = (ds * ds * t->var_ds + p * p * t->var_p) + t->var_floor;
    e->lost = (eight)(lost & (eight_bits)ds);
    e->any |= lost;
    eight_bits v_lost = (p > 0.0) & (p < t->v_limit);
    e->v_bound = p * t->v_relative + t->v_floor;
    e->v_variance = p * p * t->v_var + t->v_var_floor;
    e->v_lost = (eight)(v_lost & (eight_bits)p);
    e->any_v |= v_lost;
}

TARGET INLINE void NAME(store_entries)(const fref__entry_weights *out, const entries *e, int64_t at, int64_t n, const bool judged)
{
    NAME(store_some)(out->ds + at, &e->ds, n);
    NAME(store_some)(out->p + at, &e->p, n);
    if (!judged)
        return;
    NAME(store_some)(out->size + at, &e->size, n);
    NAME(store_some)(out->bound + at, &e->bound, n);
    NAME(store_some)(out->variance + at, &e->variance, n);
    NAME(store_some)(out->lost + at, &e->lost, n);
    if (!out->v_bound)
        return;
    NAME(store_some)(out->v_bound + at, &e->v_bound, n);
    NAME(store_some)(out->v_variance + at, &e->v_variance, n);
    NAME(store_some)(out->v_lost + at, &e->v_lost, n);
}

TARGET INLINE void NAME(weigh_entries)(fref__entry_weights *out, const double *s, const double *dp, int64_t n,
                                       const fref__entry_terms *t, const bool judged)
{
    entries e = { 0 };
    eight some_s, some_dp;
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
        NAME(weigh_some)(&e, &OF(s + k), &OF(dp + k), t, judged);
        NAME(store_entries)(out, &e, k, 8, judged);
    }
    if (k < n) {
        NAME(load_some)(&some_s, s + k, n - k, 0.0);
        NAME(load_some)(&some_dp, dp + k, n - k, t->delta); /* dS: 0 */
        entries rest = { .any = { 0 } };
        NAME(weigh_some)(&rest, &some_s, &some_dp, t, judged);
        NAME(store_entries)(out, &rest, k, n - k, judged);
        for (int64_t l = 0; l < n - k; l++) {
            e.any[l] |= rest.any[l];
            e.any_v[l] |= rest.any_v[l];
        }
    }
    out->any_lost = NAME(any_of)(&e.any);
    out->any_v_lost = NAME(any_of)(&e.any_v);
}

TARGET static void NAME(weigh_entries_all)(fref__entry_weights *out, const double *s, const double *dp, int64_t n,
                                           const fref__entry_terms *t)
{
    if (out->size)
        NAME(weigh_entries)(out, s, dp, n, t, true);
    else
        NAME(weigh_entries)(out, s, dp, n, t, false);
}

#undef TARGET
#undef NAME
