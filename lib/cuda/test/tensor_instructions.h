/* ptx.cuh's instructions, emulated. Included by it, in its namespace. */

inline float from_f16(uint16_t x)
{
    const uint32_t exponent = x >> 10 & 31, fraction = x & 1023,
                   sign = (uint32_t)(x & 0x8000) << 16;
    if (exponent == 0)
        return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    return __uint_as_float(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) |
                           fraction << 13);
}

inline uint32_t to_f16(float x)
{
    const uint32_t bits = __float_as_uint(x), sign = bits >> 16 & 0x8000,
                   magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000u)
        return 0x7fff;
    if (magnitude >= 0x477ff000u)
        return sign | 0x7c00;
    if (magnitude < 0x38800000u)
        return sign | (uint32_t)nearbyintf(__uint_as_float(magnitude) * 0x1p24f);
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return sign | ((rounded >> 13) - (112u << 10));
}

inline uint32_t to_bf16(float x)
{
    const uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7fffffff) > 0x7f800000u)
        return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

inline uint32_t pack_bf16(float low, float high)
{
    return to_bf16(low) | to_bf16(high) << 16;
}

inline uint32_t pack_f16(float low, float high)
{
    return to_f16(low) | to_f16(high) << 16;
}

inline float larger(float a, float b)
{
    return a != a || b != b ? __uint_as_float(0x7fffffff) : a > b ? a : b;
}

template <int BYTES> inline void copy_async(void *to, const void *from, int bytes)
{
    if ((uintptr_t)to % BYTES != 0 || (bytes > 0 && (uintptr_t)from % BYTES != 0) || bytes < 0 ||
        bytes > BYTES)
        abort();
    memset(to, 0, BYTES);
    memcpy(to, from, (size_t)bytes);
}

inline void write_16(void *to, const float x[4])
{
    if ((uintptr_t)to % 16 != 0)
        abort();
    memcpy(to, x, 16);
}

inline void write_8(void *to, uint32_t low, uint32_t high)
{
    const uint32_t x[2] = { low, high };
    if ((uintptr_t)to % 8 != 0)
        abort();
    memcpy(to, x, 8);
}

inline void wait_for_copies()
{
}

template <bool TRANSPOSED> inline void load_matrices(uint32_t out[4], const uint16_t *at)
{
    if ((uintptr_t)at % 16 != 0)
        abort();
    *emulate::given<const uint16_t *>() = at;
    emulate::together([](emulate::warp &w) {
        for (int l = 0; l < 32; l++)
            for (int m = 0; m < 4; m++) {
                const int a = l / 4, b = l % 4 * 2;
                const uint32_t low = TRANSPOSED ? (*w.given<const uint16_t *>(m * 8 + b))[a]
                                                : (*w.given<const uint16_t *>(m * 8 + a))[b];
                const uint32_t high = TRANSPOSED ? (*w.given<const uint16_t *>(m * 8 + b + 1))[a]
                                                 : (*w.given<const uint16_t *>(m * 8 + a))[b + 1];
                w.taken<uint32_t>(l)[m] = low | high << 16;
            }
    });
    memcpy(out, emulate::taken<uint32_t>(), 16);
}

template <class T> inline float half_of(uint32_t pair, int which)
{
    const uint16_t x = (uint16_t)(pair >> (which * 16));
    return T::dtype == FATTN__BF16 ? __uint_as_float((uint32_t)x << 16) : from_f16(x);
}

template <class T> inline void multiply_warp(emulate::warp &w)
{
    static float a[16][16], b[16][8];
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 2; i++) {
            for (int r = 0; r < 4; r++)
                a[l / 4 + r % 2 * 8][l % 4 * 2 + i + r / 2 * 8] =
                    half_of<T>(w.given<uint32_t>(l)[r], i);
            for (int r = 0; r < 2; r++)
                b[l % 4 * 2 + i + r * 8][l / 4] = half_of<T>(w.given<uint32_t>(l)[4 + r], i);
        }
    for (int l = 0; l < 32; l++)
        for (int r = 0; r < 4; r++) {
            const int row = l / 4 + r / 2 * 8, column = l % 4 * 2 + r % 2;
            float sum = __uint_as_float(w.given<uint32_t>(l)[6 + r]);
            for (int k = 0; k < 16; k++)
                sum += a[row][k] * b[k][column];
            w.taken<uint32_t>(l)[r] = __float_as_uint(sum);
        }
}

template <class T> inline void multiply(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    uint32_t *given = emulate::given<uint32_t>();
    memcpy(given, a, 16);
    memcpy(given + 4, b, 8);
    memcpy(given + 6, c, 16);
    emulate::together(multiply_warp<T>);
    memcpy(c, emulate::taken<uint32_t>(), 16);
}

/* What the hardware does with a sum: products exact, truncated at the end. */
inline float towards_zero(double x)
{
    const float y = (float)x;
    return std::isfinite(y) && fabs((double)y) > fabs(x) ? nextafterf(y, 0) : y;
}

inline float tf32_of(uint32_t x)
{
    return __uint_as_float(x & 0xffffe000u);
}

/* given: the high and low parts of a, then of b. */
inline void multiply_split_warp(emulate::warp &w)
{
    static double a[2][16][8], b[2][8][8];
    for (int l = 0; l < 32; l++)
        for (int part = 0; part < 2; part++) {
            for (int r = 0; r < 4; r++)
                a[part][l / 4 + r % 2 * 8][l % 4 + r / 2 * 4] =
                    tf32_of(w.given<uint32_t>(l)[part * 4 + r]);
            for (int r = 0; r < 2; r++)
                b[part][l % 4 + r * 4][l / 4] = tf32_of(w.given<uint32_t>(l)[8 + part * 2 + r]);
        }
    for (int l = 0; l < 32; l++)
        for (int r = 0; r < 4; r++) {
            const int row = l / 4 + r / 2 * 8, column = l % 4 * 2 + r % 2;
            float sum = 0;
            for (int step = 0; step < 3; step++) { /* low * high, high * low, high * high */
                double exact = sum;
                for (int k = 0; k < 8; k++)
                    exact += a[step == 0][row][k] * b[step == 1][k][column];
                sum = towards_zero(exact);
            }
            w.taken<uint32_t>(l)[r] = __float_as_uint(sum);
        }
}

inline void multiply_split(float c[4], const uint32_t a_high[4], const uint32_t a_low[4],
                           const uint32_t b_high[2], const uint32_t b_low[2])
{
    uint32_t *given = emulate::given<uint32_t>();
    memcpy(given, a_high, 16);
    memcpy(given + 4, a_low, 16);
    memcpy(given + 8, b_high, 8);
    memcpy(given + 10, b_low, 8);
    emulate::together(multiply_split_warp);
    memcpy(c, emulate::taken<uint32_t>(), 16);
}
