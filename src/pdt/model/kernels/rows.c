/* y[g][r][o] = sum_i weight[g][o][i] * x[g][r][i] for a few rows r: every weight is read once.
 *
 * A decode round pushes K rows through each shared weight and one row through each lane's own. General
 * matrix products are built for many rows; for a handful they run far below the memory's speed, and the
 * weights' journey from memory is the whole cost of a round. Here each tile of weight rows is loaded once
 * and used for all activation rows while it is in registers.
 */
#include <omp.h>

typedef float lanes8 __attribute__((vector_size(32), aligned(4), may_alias));

/* Spelled out where there is one: a compiler may fuse in one tile and not in another, and then a row's
 * sum would depend on how many rows it shares the call with. */
#if defined(__AVX__) && defined(__FMA__)
#include <immintrin.h>
#define MULTIPLY_ADD(a, b, c) ((lanes8)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

static inline float total(lanes8 a) {
    return ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]));
}

/* OT weight rows times R activation rows; OT * R accumulators stay in registers. */
#define TILE(R, OT)                                                                                  \
    static void tile_##R##_##OT(const float *w, const float *x, float *y, long outs, long ins) {     \
        lanes8 sum[OT][R];                                                                           \
        long i = 0;                                                                                  \
        for (int t = 0; t < OT; t++)                                                                 \
            for (int r = 0; r < R; r++) sum[t][r] = (lanes8){0};                                     \
        for (; i + 8 <= ins; i += 8) {                                                               \
            lanes8 xs[R];                                                                            \
            _Pragma("GCC unroll 4") for (int r = 0; r < R; r++)                                      \
                xs[r] = *(const lanes8 *)(x + r * ins + i);                                          \
            _Pragma("GCC unroll 4") for (int t = 0; t < OT; t++) {                                   \
                lanes8 ws = *(const lanes8 *)(w + t * ins + i);                                      \
                _Pragma("GCC unroll 4") for (int r = 0; r < R; r++)                                  \
                    sum[t][r] = MULTIPLY_ADD(ws, xs[r], sum[t][r]);                                  \
            }                                                                                        \
        }                                                                                            \
        for (int t = 0; t < OT; t++)                                                                 \
            for (int r = 0; r < R; r++) {                                                            \
                float s = total(sum[t][r]);                                                          \
                for (long j = i; j < ins; j++)                                                       \
                    s = __builtin_fmaf(w[t * ins + j], x[r * ins + j], s);                           \
                y[r * outs + t] = s;                                                                 \
            }                                                                                        \
    }

TILE(1, 4) TILE(2, 4) TILE(3, 4) TILE(4, 2)
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1)

static void few(const float *w, const float *x, float *y, long rows, long o, long end, long outs, long ins) {
    for (; o < end;) {
        const float *tile = w + o * ins;
        long step = end - o >= 4 ? 4 : 1;
        /* Rows beyond four find the tile in the first-level cache. */
        for (long r = 0; r < rows;) {
            const float *xr = x + r * ins;
            float *yr = y + r * outs + o;
            long left = rows - r, take = left >= 4 ? 4 : left;
            if (left == 5 || left == 6) take = 3;
            if (step == 1) {
                if (take == 1) tile_1_1(tile, xr, yr, outs, ins);
                else if (take == 2) tile_2_1(tile, xr, yr, outs, ins);
                else if (take == 3) tile_3_1(tile, xr, yr, outs, ins);
                else tile_4_1(tile, xr, yr, outs, ins);
            } else if (take == 1) tile_1_4(tile, xr, yr, outs, ins);
            else if (take == 2) tile_2_4(tile, xr, yr, outs, ins);
            else if (take == 3) tile_3_4(tile, xr, yr, outs, ins);
            else {
                tile_4_2(tile, xr, yr, outs, ins);
                tile_4_2(tile + 2 * ins, xr, yr + 2, outs, ins);
            }
            r += take;
        }
        o += step;
    }
}

void pdt_rows_linear(const float *weight, const float *x, float *y, long groups, long rows, long outs,
                     long ins, int threads) {
    long all = groups * outs;
    if (all * ins < 16384) threads = 1; /* waking a thread costs more than the work */
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        long me = omp_get_thread_num(), team = omp_get_num_threads();
        long at = all * me / team, stop = all * (me + 1) / team;
        while (at < stop) {
            long g = at / outs, o = at - g * outs;
            long end = o + (stop - at) < outs ? o + (stop - at) : outs;
            few(weight + g * outs * ins, x + g * rows * ins, y + g * rows * outs, rows, o, end, outs, ins);
            at += end - o;
        }
    }
}
