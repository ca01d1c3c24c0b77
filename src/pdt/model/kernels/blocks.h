/* Weights in GGUF's blocks of 32, as they lie in a file, times rows rounded to eight bits.
 *
 * A block is scale * number (Q8_0, Q4_0) or scale * number + least (Q4_1), scale and least in half precision.
 * A row of activations is cut into the same blocks, each rounded to 127 steps of its largest value. Products
 * of whole numbers are exact, and every way of forming them adds eight partial sums in one order: the ways
 * differ in speed and in no bit. blocks.py says what the rounding costs at most.
 */
#include <stdint.h>

#define ALWAYS static inline __attribute__((always_inline))

enum { BLOCK = 32 };
typedef enum { FLOATS, Q8_0, Q4_0, Q4_1 } kind;

ALWAYS long block_bytes(kind k) { return k == Q8_0 ? 34 : k == Q4_0 ? 18 : 20; }
static inline long blocks_of(long ins) { return (ins + BLOCK - 1) / BLOCK; }
static inline long row_bytes(kind k, long ins) {
    return k == FLOATS ? ins * (long)sizeof(float) : blocks_of(ins) * block_bytes(k);
}

typedef struct { /* 32 activations: scale * number; `eighth` is an eighth of their sum */
    int8_t number[BLOCK];
    float scale, eighth;
} rounded;

typedef int8_t bytes32 __attribute__((vector_size(32), aligned(1), may_alias));

ALWAYS float half_at(const uint8_t *p) {
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

/* Rows of activations into blocks; the last is filled up with nothing. */
static void round_rows(const float *x, rounded *out, long rows, long ins) {
    for (long r = 0; r < rows; r++) {
        const float *row = x + r * ins;
        for (long i = 0; i < ins; i += BLOCK, out++) {
            float own[BLOCK] = {0}, top = 0;
            memcpy(own, row + i, (ins - i < BLOCK ? ins - i : BLOCK) * sizeof(float));
            for (int j = 0; j < BLOCK; j++) top = fmaxf(top, fabsf(own[j]));
            float scale = top / 127.0f, inverse = top > 0 ? 127.0f / top : 0.0f;
            int sum = 0;
            for (int j = 0; j < BLOCK; j++) {
                int number = (int)__builtin_rintf(own[j] * inverse);
                out->number[j] = (int8_t)number;
                sum += number;
            }
            out->scale = scale;
            out->eighth = scale * (float)sum * 0.125f;
        }
    }
}

/* The 32 whole numbers of a block; of 4 bits, the first sixteen lie in the lower halves. */
ALWAYS bytes32 numbers_portable(kind k, const uint8_t *p) {
    bytes32 out;
    if (k == Q8_0) return *(const bytes32 *)(p + 2);
    p += k == Q4_1 ? 4 : 2;
    for (int j = 0; j < 16; j++) out[j] = p[j] & 15, out[j + 16] = p[j] >> 4;
    if (k == Q4_0) out -= 8;
    return out;
}

/* Outputs `outs` apart: y[r][t] for OT rows of blocks and R rows of activations. */
typedef void tile_of_blocks(const uint8_t *w, long bytes, const rounded *x, long blocks, float *y, long outs);

/* Four products of bytes in each of eight sums. */
ALWAYS ints8 dot_portable(bytes32 w, bytes32 x) {
    ints8 sum;
    for (int l = 0; l < 8; l++) {
        sum[l] = 0;
        for (int j = 0; j < 4; j++) sum[l] += w[4 * l + j] * x[4 * l + j];
    }
    return sum;
}
#define WAY portable
#define TARGET
#define NUMBERS(k, p) numbers_portable(k, p)
#define DOT(w, x, positive) dot_portable(w, x)
#include "block_tiles.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_AVX2 __attribute__((target("avx2,fma,f16c")))
#define HAS_VNNI __attribute__((target("avx2,fma,f16c,avx512vl,avx512vnni")))

HAS_AVX2 ALWAYS bytes32 numbers_avx2(kind k, const uint8_t *p) {
    if (k == Q8_0) return (bytes32)_mm256_loadu_si256((const void *)(p + 2));
    __m128i pairs = _mm_loadu_si128((const void *)(p + (k == Q4_1 ? 4 : 2)));
    __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(pairs), _mm_srli_epi16(pairs, 4), 1);
    both = _mm256_and_si256(both, _mm256_set1_epi8(15));
    return (bytes32)(k == Q4_0 ? _mm256_sub_epi8(both, _mm256_set1_epi8(8)) : both);
}

/* Of a signed byte and another: the size of the one, and the other with its sign. */
#define SIGNED(w, x, positive)                                                                       \
    __m256i a = (__m256i)(w), b = (__m256i)(x);                                                      \
    if (!(positive)) b = _mm256_sign_epi8(b, a), a = _mm256_abs_epi8(a);

HAS_AVX2 ALWAYS ints8 dot_avx2(bytes32 w, bytes32 x, int positive) {
    SIGNED(w, x, positive)
    return (ints8)_mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1));
}
#define WAY avx2
#define TARGET HAS_AVX2
#define NUMBERS(k, p) numbers_avx2(k, p)
#define DOT(w, x, positive) dot_avx2(w, x, positive)
#include "block_tiles.h"

HAS_VNNI ALWAYS ints8 dot_vnni(bytes32 w, bytes32 x, int positive) {
    SIGNED(w, x, positive)
    return (ints8)_mm256_dpbusd_epi32(_mm256_setzero_si256(), a, b);
}
#define WAY vnni
#define TARGET HAS_VNNI
#define NUMBERS(k, p) numbers_avx2(k, p)
#define DOT(w, x, positive) dot_vnni(w, x, positive)
#include "block_tiles.h"
#endif

/* ---- which way, chosen when the first product is asked for ---- */

typedef enum { PORTABLE, AVX2, VNNI, WAYS } way;

static int way_runs(way w) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (w == AVX2) return avx2;
    if (w == VNNI)
        return avx2 && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#endif
    return w == PORTABLE;
}

static const way_of_blocks *ways[WAYS] = {
    &of_blocks_portable,
#if defined(__x86_64__)
    &of_blocks_avx2,
    &of_blocks_vnni,
#endif
};
static const way_of_blocks *used;

/* Use this way from now on, or with -1 the best that runs here; the way in use, or -1 where it does not run. */
int pdt_block_way(int wanted) {
    if (wanted < 0)
        for (wanted = WAYS - 1; !way_runs(wanted);) wanted--;
    else if (wanted >= WAYS || !way_runs(wanted)) return -1;
    used = ways[wanted];
    return wanted;
}

/* Outputs o to end of one weight for all rows; what `few_rows` is for floats. */
static void few_rows_of_blocks(kind k, const uint8_t *w, const rounded *x, float *y, long rows, long o,
                               long end, long outs, long ins) {
    long bytes = row_bytes(k, ins), blocks = blocks_of(ins);
    if (!used) pdt_block_way(-1);
    while (o < end) {
        int step = end - o >= 4 ? 4 : 1;
        for (long r = 0; r < rows;) {
            long left = rows - r, take = left >= 4 ? 4 : left;
            if (left == 5 || left == 6) take = 3;
            used->tile[k - Q8_0][step == 4][take - 1](w + o * bytes, bytes, x + r * blocks, blocks,
                                                      y + r * outs + o, outs);
            r += take;
        }
        o += step;
    }
}

/* y[g][r][o] = sum_i weight[g][o][i] x[g][r][i]; `rounded_x` has room for every row. */
void pdt_blocks_linear(int k, const uint8_t *weight, const float *x, float *y, long groups, long rows,
                       long outs, long ins, rounded *rounded_x, int threads) {
    long all = groups * outs, blocks = blocks_of(ins), bytes = row_bytes(k, ins);
    if (all * ins < 65536) threads = 1; /* waking a thread costs more than the work */
    if (!used) pdt_block_way(-1);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        long me = omp_get_thread_num(), team = omp_get_num_threads(), n = groups * rows;
        long first = n * me / team, last = n * (me + 1) / team;
        round_rows(x + first * ins, rounded_x + first * blocks, last - first, ins);
#pragma omp barrier
        long at = all * me / team, stop = all * (me + 1) / team;
        while (at < stop) {
            long g = at / outs, o = at - g * outs;
            long end = o + (stop - at) < outs ? o + (stop - at) : outs;
            few_rows_of_blocks(k, weight + g * outs * bytes, rounded_x + g * rows * blocks,
                               y + g * rows * outs, rows, o, end, outs, ins);
            at += end - o;
        }
    }
}

/* Every number of these blocks in fp32: what torch multiplies by where it must. */
void pdt_blocks_expand(int k, const uint8_t *weight, float *out, long rows, long ins) {
    long blocks = blocks_of(ins), size = block_bytes(k);
    for (long n = 0; n < rows * blocks; n++) {
        const uint8_t *p = weight + n * size;
        float scale = half_at(p), least = k == Q4_1 ? half_at(p + 2) : 0.0f;
        bytes32 numbers = numbers_portable(k, p);
        long from = n % blocks * BLOCK, take = ins - from < BLOCK ? ins - from : BLOCK;
        for (long j = 0; j < take; j++) {
            float scaled = scale * (float)numbers[j]; /* rounded before it is added to */
            __asm__("" : "+g"(scaled));
            out[n / blocks * ins + from + j] = scaled + least;
        }
    }
}
