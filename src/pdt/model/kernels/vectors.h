/* Eight floats at a time: sums, products, exponentials, softmax. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))

typedef float lanes8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int ints8 __attribute__((vector_size(32)));

/* Spelled out where there is one: a compiler may fuse in one tile and not in another, and then a row's
 * sum would depend on how many rows it shares the call with. */
#if defined(__AVX__)
#include <immintrin.h>
#define RELAX() _mm_pause()
#else
#define RELAX() ((void)0)
#endif
#if defined(__AVX__) && defined(__FMA__)
#define MULTIPLY_ADD(a, b, c) ((lanes8)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif
#define LOAD(p) (*(const lanes8 *)(p))
#define STORE(p) (*(lanes8 *)(p))
#define EIGHT(v) ((lanes8){v, v, v, v, v, v, v, v})

ALWAYS float fused(float a, float b, float c) {
#if defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

ALWAYS float half_at(const void *p) {
    uint16_t h;
    memcpy(&h, p, 2);
#if defined(__F16C__)
    return _cvtsh_ss(h);
#else
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff, bits;
    if (rest >= 0x7c00) bits = sign | 0x7f800000 | (rest & 0x3ff) << 13; /* infinite or none */
    else if (rest >= 0x400) bits = sign | ((rest << 13) + 0x38000000);
    else { /* below the smallest normal half: exact in fp32 */
        float small = rest * 0x1p-24f;
        return sign ? -small : small;
    }
    float value;
    memcpy(&value, &bits, 4);
    return value;
#endif
}

/* Eight numbers from place i on, of halves or of floats. */
ALWAYS lanes8 eight_at(int halves, const void *numbers, long i) {
    if (!halves) return LOAD((const float *)numbers + i);
    const uint16_t *p = (const uint16_t *)numbers + i;
#if defined(__F16C__)
    return (lanes8)_mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
#else
    lanes8 out;
    for (int l = 0; l < 8; l++) out[l] = half_at(p + l);
    return out;
#endif
}
ALWAYS float one_at(int halves, const void *numbers, long i) {
    return halves ? half_at((const uint16_t *)numbers + i) : ((const float *)numbers)[i];
}

static inline float total(lanes8 a) {
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
}

/* The totals of n sums, each added up in the order of `total`; four at a time where hadd does just that. */
static inline void totals(float *out, const lanes8 *sums, long stride, int n) {
#if defined(__AVX__)
    if (n == 4) {
        __m256 ab = _mm256_hadd_ps((__m256)sums[0], (__m256)sums[stride]);
        __m256 cd = _mm256_hadd_ps((__m256)sums[2 * stride], (__m256)sums[3 * stride]);
        __m256 all = _mm256_hadd_ps(ab, cd);
        _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
        return;
    }
#endif
    for (int t = 0; t < n; t++) out[t] = total(sums[t * stride]);
}

static inline float dot(const float *a, const float *b, long n) {
    lanes8 sum = {0};
    long i = 0;
    for (; i + 8 <= n; i += 8) sum = MULTIPLY_ADD(LOAD(a + i), LOAD(b + i), sum);
    float s = total(sum);
    for (; i < n; i++) s = fused(a[i], b[i], s);
    return s;
}

static inline void add_scaled(float *out, const float *x, float scale, long n) {
    lanes8 s = (lanes8){0} + scale;
    long i = 0;
    for (; i + 8 <= n; i += 8) STORE(out + i) = MULTIPLY_ADD(LOAD(x + i), s, LOAD(out + i));
    for (; i < n; i++) out[i] = fused(x[i], scale, out[i]);
}

/* e^x for x in [-87, 87]: halve the exponent away, then a polynomial; relative error below 2e-7. */
static inline lanes8 exp8(lanes8 x) {
    lanes8 n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    lanes8 r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    lanes8 p = {0};
    p = p + 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    ints8 power = (__builtin_convertvector(n, ints8) + 127) << 23;
    return p * (lanes8)power;
}

static inline lanes8 clamp8(lanes8 x) {
    ints8 below = x < -87.0f, above = x > 87.0f;
    ints8 bits = ((ints8)x & ~below & ~above) | ((ints8)((lanes8){0} - 87.0f) & below);
    return (lanes8)(bits | ((ints8)((lanes8){0} + 87.0f) & above));
}

static inline lanes8 larger8(lanes8 a, lanes8 b) {
    ints8 more = a > b;
    return (lanes8)(((ints8)a & more) | ((ints8)b & ~more));
}

/* Softmax in place over n scores; the buffer has room up to the next multiple of eight. */
static void softmax(float *s, long n) {
    long whole = n & ~7L, all = (n + 7) & ~7L;
    for (long i = n; i < all; i++) s[i] = -INFINITY;
    lanes8 most = LOAD(s), sum = {0};
    for (long i = 8; i < all; i += 8) most = larger8(most, LOAD(s + i));
    float top = most[0];
    for (int l = 1; l < 8; l++) top = most[l] > top ? most[l] : top;
    for (long i = 0; i < whole; i += 8) sum += STORE(s + i) = exp8(clamp8(LOAD(s + i) - top));
    if (whole < n) {
        lanes8 e = exp8(clamp8(LOAD(s + whole) - top));
        for (int l = 0; l < 8; l++)
            if (whole + l >= n) e[l] = 0;
        sum += STORE(s + whole) = e;
    }
    lanes8 scale = (lanes8){0} + 1.0f / total(sum);
    for (long i = 0; i < all; i += 8) STORE(s + i) = LOAD(s + i) * scale;
}
