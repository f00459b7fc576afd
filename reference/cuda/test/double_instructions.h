/* ptx.cuh's instructions, emulated. Included by it, in its namespace. */

/* As much as the largest kernel may have on every GPU. */
#define FREF_SHARED(name) alignas(16) static double name[(160 << 10) / 8]

inline void copy_async(double *to, const double *from)
{
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0)
        abort();
    memcpy(to, from, 16);
}

inline void prefetch(const double *)
{
}

inline void commit_copies()
{
}

template <int n> inline void wait_for_copies()
{
}

/* C += A B of a warp whose lanes have given a, b and c: each product in the order of k. */
inline void multiply_given(emulate::warp &w)
{
    static double left[16][8], right[8][8];
    for (int l = 0; l < 32; l++) {
        for (int n = 0; n < 4; n++)
            left[l / 4 + n % 2 * 8][l % 4 + n / 2 * 4] = w.given<double>(l)[n];
        for (int n = 0; n < 2; n++)
            right[l % 4 + n * 4][l / 4] = w.given<double>(l)[4 + n];
    }
    for (int l = 0; l < 32; l++)
        for (int n = 0; n < 4; n++) {
            double sum = w.given<double>(l)[6 + n];
            for (int k = 0; k < 8; k++)
                sum += left[l / 4 + n / 2 * 8][k] * right[k][l % 4 * 2 + n % 2];
            w.taken<double>(l)[n] = sum;
        }
}

inline void multiply(double c[4], const double a[4], const double b[2])
{
    double *given = emulate::given<double>();
    memcpy(given, a, 4 * sizeof *a);
    memcpy(given + 4, b, 2 * sizeof *b);
    memcpy(given + 6, c, 4 * sizeof *c);
    emulate::together(multiply_given);
    memcpy(c, emulate::taken<double>(), 4 * sizeof *c);
}
