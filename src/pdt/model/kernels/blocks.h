/* Weights in GGUF's blocks of 32, as they lie in a file, times rows rounded to eight bits.
 *
 * A block is scale * number (Q8_0, Q4_0) or scale * number + least (Q4_1), scale and least in half precision.
 * A row of activations is cut into the same blocks, each rounded to 127 steps of its largest value. Products
 * of whole numbers are exact, and every way adds the blocks of a row one after another: the ways differ in
 * speed and in no bit. blocks.py says what the rounding costs at most.
 */
enum { BLOCK = 32, AT_ONCE = 64 }; /* rows that meet a strip of outputs before the next */
typedef enum { FLOATS, Q8_0, Q4_0, Q4_1 } kind;

ALWAYS long block_bytes(kind k) { return k == Q8_0 ? 34 : k == Q4_0 ? 18 : 20; }
static inline long blocks_of(long ins) { return (ins + BLOCK - 1) / BLOCK; }
static inline long row_bytes(kind k, long ins) {
    return k == FLOATS ? ins * (long)sizeof(float) : blocks_of(ins) * block_bytes(k);
}

typedef struct { /* 32 activations: scale * number */
    int8_t number[BLOCK];
    float scale, sum; /* `sum` of the activations, `whole` of the numbers */
    int whole;
} rounded;

typedef int8_t bytes8 __attribute__((vector_size(8), aligned(1), may_alias));

/* One block of activations; a vector at a time, as every product begins with it. */
static void round_block(const float *x, rounded *out) {
    lanes8 top = {0};
    for (int j = 0; j < BLOCK; j += 8) {
        top = larger8((lanes8)((ints8)LOAD(x + j) & 0x7fffffff), top);
    }
    float most = 0;
    for (int l = 0; l < 8; l++) most = top[l] > most ? top[l] : most;
    float inverse = most > 0 ? 127.0f / most : 0.0f;
    ints8 whole = {0};
    for (int j = 0; j < BLOCK; j += 8) {
        lanes8 nearest = (LOAD(x + j) * inverse + 12582912.0f) - 12582912.0f; /* 1.5 * 2^23: to a whole number */
        ints8 number = __builtin_convertvector(nearest, ints8);
        *(bytes8 *)(out->number + j) = __builtin_convertvector(number, bytes8);
        whole += number;
    }
    out->scale = most / 127.0f;
    out->whole = ((whole[0] + whole[1]) + (whole[2] + whole[3])) + ((whole[4] + whole[5]) + (whole[6] + whole[7]));
    out->sum = out->scale * (float)out->whole;
}

/* Rows of activations into blocks; the last of a row is filled up with nothing. */
static void round_rows(const float *x, rounded *out, long rows, long ins) {
    for (long r = 0; r < rows; r++, x += ins) {
        long i = 0;
        for (; i + BLOCK <= ins; i += BLOCK) round_block(x + i, out++);
        if (i == ins) continue;
        float own[BLOCK] = {0};
        memcpy(own, x + i, (ins - i) * sizeof(float));
        round_block(own, out++);
    }
}

/* Outputs o to end of one weight for all rows: y[r][o]. */
typedef void product_of_blocks(kind k, const uint8_t *w, const rounded *x, float *y, long rows, long o, long end,
                               long outs, long ins);

/* ---- plain C ---- */

/* The 32 whole numbers of a block; of 4 bits, the first sixteen lie in the lower halves. */
ALWAYS void numbers_of(kind k, const uint8_t *p, int8_t *out) {
    if (k == Q8_0) {
        memcpy(out, p + 2, BLOCK);
        return;
    }
    p += k == Q4_1 ? 4 : 2;
    int zero = k == Q4_0 ? 8 : 0;
    for (int j = 0; j < 16; j++) out[j] = (p[j] & 15) - zero, out[j + 16] = (p[j] >> 4) - zero;
}

static void product_portable(kind k, const uint8_t *w, const rounded *x, float *y, long rows, long o, long end,
                             long outs, long ins) {
    long blocks = blocks_of(ins);
    for (; o < end; o++)
        for (long r = 0; r < rows; r++) {
            const uint8_t *p = w + o * row_bytes(k, ins);
            const rounded *own = x + r * blocks;
            float sum = 0;
            for (long b = 0; b < blocks; b++, own++, p += block_bytes(k)) {
                int8_t numbers[BLOCK];
                numbers_of(k, p, numbers);
                int whole = 0;
                for (int j = 0; j < BLOCK; j++) whole += numbers[j] * own->number[j];
                sum = fused((float)whole, half_at(p) * own->scale, sum);
                if (k == Q4_1) sum = fused(half_at(p + 2), own->sum, sum);
            }
            y[r * outs + o] = sum;
        }
}

/* ---- vectors ---- */

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_AVX2 __attribute__((target("avx2,fma,f16c")))
#define HAS_VNNI __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")))

/* Sixteen bytes of eight rows: out[j] holds the j-th four of every row. */
HAS_AVX2 ALWAYS void columns_avx2(const uint8_t *p, const int *at, __m256i out[4]) {
    __m256i v[4];
    for (int i = 0; i < 4; i++) {
        __m128i low = _mm_loadu_si128((const void *)(p + at[i])), high = _mm_loadu_si128((const void *)(p + at[4 + i]));
        v[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
    __m256i a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
    __m256i c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
    out[0] = _mm256_unpacklo_epi64(a, c), out[1] = _mm256_unpackhi_epi64(a, c);
    out[2] = _mm256_unpacklo_epi64(b, d), out[3] = _mm256_unpackhi_epi64(b, d);
}
/* The lower half of each number, read as half precision. */
HAS_AVX2 ALWAYS __m256 halves_avx2(__m256i v) {
    __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff)), both = _mm256_packus_epi32(low, low);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(both, 0x08)));
}
/* Four products of bytes a sum. Two products of the sizes of whole bytes still fit the 16 bits between. */
HAS_AVX2 ALWAYS __m256i dot_avx2(__m256i sum, __m256i w, __m256i x, int is_signed) {
    if (is_signed) x = _mm256_sign_epi8(x, w), w = _mm256_abs_epi8(w);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
}
#define WAY avx2
#define TARGET HAS_AVX2
#define WIDE 8
#define INTS __m256i
#define FLOATS_ __m256
#define OF(name) _mm256_##name
#define WHOLE(name) _mm256_##name##_si256
#define AND _mm256_and_si256
#define GATHER(p, at) _mm256_i32gather_epi32((const void *)(p), at, 1)
#define Q8_OFFSET 0
#include "strips.h"

/* The same of sixteen rows. */
HAS_VNNI ALWAYS void columns_vnni(const uint8_t *p, const int *at, __m512i out[4]) {
    __m512i v[4];
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(p + at[i])));
        v[i] = _mm512_inserti32x4(v[i], _mm_loadu_si128((const void *)(p + at[4 + i])), 1);
        v[i] = _mm512_inserti32x4(v[i], _mm_loadu_si128((const void *)(p + at[8 + i])), 2);
        v[i] = _mm512_inserti32x4(v[i], _mm_loadu_si128((const void *)(p + at[12 + i])), 3);
    }
    __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
    __m512i c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    out[0] = _mm512_unpacklo_epi64(a, c), out[1] = _mm512_unpackhi_epi64(a, c);
    out[2] = _mm512_unpacklo_epi64(b, d), out[3] = _mm512_unpackhi_epi64(b, d);
}
HAS_VNNI ALWAYS __m512 halves_vnni(__m512i v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
HAS_VNNI ALWAYS __m512i dot_vnni(__m512i sum, __m512i w, __m512i x, int is_signed) {
    (void)is_signed; /* never: a weight of eight bits comes with 128 added to it */
    return _mm512_dpbusd_epi32(sum, w, x);
}
#define WAY vnni
#define TARGET HAS_VNNI
#define WIDE 16
#define INTS __m512i
#define FLOATS_ __m512
#define OF(name) _mm512_##name
#define WHOLE(name) _mm512_##name##_si512
#define AND _mm512_and_si512
#define GATHER(p, at) _mm512_i32gather_epi32(at, (const void *)(p), 1)
#define Q8_OFFSET 128
#include "strips.h"
#endif

/* ---- which way, chosen when the first product is asked for ---- */

typedef enum { PORTABLE, AVX2, VNNI, WAYS } way;

static int way_runs(way w) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (w == AVX2) return avx2;
    if (w == VNNI)
        return avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
#endif
    return w == PORTABLE;
}

static product_of_blocks *const ways[WAYS] = {
    product_portable,
#if defined(__x86_64__)
    product_avx2,
    product_vnni,
#endif
};
static product_of_blocks *used;

/* Use this way from now on, or with -1 the best that runs here; the way in use, or -1 where it does not run. */
int pdt_block_way(int wanted) {
    if (wanted < 0)
        for (wanted = WAYS - 1; !way_runs(wanted);) wanted--;
    else if (wanted >= WAYS || !way_runs(wanted)) return -1;
    used = ways[wanted];
    return wanted;
}

/* What `few_rows` is for floats. */
static void rows_of_blocks(kind k, const uint8_t *w, const rounded *x, float *y, long rows, long o, long end,
                           long outs, long ins) {
    if (!used) pdt_block_way(-1);
    used(k, w, x, y, rows, o, end, outs, ins);
}

/* y[g][r][o] = sum_i weight[g][o][i] x[g][r][i]; `rounded_x` has room for every row. */
void pdt_blocks_linear(int k, const uint8_t *weight, const float *x, float *y, long groups, long rows,
                       long outs, long ins, rounded *rounded_x, int threads) {
    long all = groups * outs, blocks = blocks_of(ins), bytes = row_bytes(k, ins);
    if (all * ins < 65536) threads = 1; /* waking a thread costs more than the work */
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        long me = omp_get_thread_num(), team = omp_get_num_threads(), n = groups * rows;
        long first = n * me / team, last = n * (me + 1) / team;
        round_rows(x + first * ins, rounded_x + first * blocks, last - first, ins);
#pragma omp barrier
        long at = share_of(all, me, team), stop = share_of(all, me + 1, team);
        while (at < stop) {
            long g = at / outs, o = at - g * outs;
            long end = o + (stop - at) < outs ? o + (stop - at) : outs;
            rows_of_blocks(k, weight + g * outs * bytes, rounded_x + g * rows * blocks,
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
        int8_t numbers[BLOCK];
        numbers_of(k, p, numbers);
        long from = n % blocks * BLOCK, take = ins - from < BLOCK ? ins - from : BLOCK;
        for (long j = 0; j < take; j++) {
            float scaled = scale * (float)numbers[j]; /* rounded before it is added to */
            __asm__("" : "+g"(scaled));
            out[n / blocks * ins + from + j] = scaled + least;
        }
    }
}
