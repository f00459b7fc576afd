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

/* C += A B of a warp whose lanes have given a, b and c: sum = F::add(sum, x, y) for each product,
 * in the order of k. */
template <class F> inline void multiply_given(emulate::warp &w)
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
                sum = F::add(sum, left[l / 4 + n / 2 * 8][k], right[k][l % 4 * 2 + n % 2]);
            w.taken<double>(l)[n] = sum;
        }
}

struct exactly {
    static double add(double sum, double x, double y)
    {
        return sum + x * y;
    }
};

inline void multiply(double c[4], const double a[4], const double b[2])
{
    double *given = emulate::given<double>();
    memcpy(given, a, 4 * sizeof *a);
    memcpy(given + 4, b, 2 * sizeof *b);
    memcpy(given + 6, c, 4 * sizeof *c);
    emulate::together([](emulate::warp &w) { multiply_given<exactly>(w); });
    memcpy(c, emulate::taken<double>(), 4 * sizeof *c);
}

/* As little as the unit may make of it: whatever a sum cannot hold is cut off after each addition,
 * and what is subnormal is 0. */
inline float cut_off(double x)
{
    const float y = (float)x;
    return std::fabs(x) < 0x1p-126               ? 0.0f
           : std::fabs((double)y) > std::fabs(x) ? std::nextafter(y, 0.0f)
                                                 : y;
}

struct roughly {
    static double add(double sum, double x, double y)
    {
        return cut_off(sum + (double)cut_off(x * y));
    }
};

inline void multiply_roughly(float c[4], const float a[4], const float b[2])
{
    double *given = emulate::given<double>();
    for (int n = 0; n < 4; n++) {
        given[n] = a[n];
        given[6 + n] = c[n];
    }
    given[4] = b[0];
    given[5] = b[1];
    for (int n = 0; n < 6; n++)
        if ((__float_as_uint((float)given[n]) & 0x1fff) != 0)
            abort();
    emulate::together([](emulate::warp &w) { multiply_given<roughly>(w); });
    for (int n = 0; n < 4; n++)
        c[n] = (float)emulate::taken<double>()[n];
}
