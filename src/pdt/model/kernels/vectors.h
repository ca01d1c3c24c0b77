/* Eight floats at a time: sums, products, exponentials, softmax. */
#include <math.h>
#include <string.h>

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
    for (; i < n; i++) s = __builtin_fmaf(a[i], b[i], s);
    return s;
}

static inline void add_scaled(float *out, const float *x, float scale, long n) {
    lanes8 s = (lanes8){0} + scale;
    long i = 0;
    for (; i + 8 <= n; i += 8) STORE(out + i) = MULTIPLY_ADD(LOAD(x + i), s, LOAD(out + i));
    for (; i < n; i++) out[i] = __builtin_fmaf(x[i], scale, out[i]);
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

/* Softmax in place over n scores; the buffer has room up to the next multiple of eight. */
static void softmax(float *s, long n) {
    float top = s[0];
    for (long i = 1; i < n; i++) top = s[i] > top ? s[i] : top;
    for (long i = n; i & 7; i++) s[i] = -INFINITY;
    lanes8 sum = {0};
    for (long i = 0; i < n; i += 8) {
        lanes8 e = exp8(clamp8(LOAD(s + i) - top));
        for (int l = 0; l < 8; l++)
            if (i + l >= n) e[l] = 0;
        STORE(s + i) = e;
        sum += e;
    }
    lanes8 scale = (lanes8){0} + 1.0f / total(sum);
    for (long i = 0; i < n; i += 8) STORE(s + i) = LOAD(s + i) * scale;
}
