/* Products of a few rows with a large weight, each weight read once for all rows. */
#include <omp.h>

/* Where thread `me` of a team begins its share of so many outputs: at a multiple of 16, so that no vector is cut. */
static inline long share_of(long outputs, long me, long team) {
    return me == team ? outputs : outputs * me / team & ~15L;
}

/* OT weight rows times R activation rows; OT * R sums stay in registers, and while they are formed the
 * next tile's rows, which follow in memory, are on their way. */
#define TILE(R, OT)                                                                                  \
    static void tile_##R##_##OT(const float *w, const float *x, float *y, long outs, long ins) {     \
        lanes8 sum[OT][R];                                                                           \
        float sums[OT];                                                                              \
        long i = 0;                                                                                  \
        for (int t = 0; t < OT; t++)                                                                 \
            for (int r = 0; r < R; r++) sum[t][r] = (lanes8){0};                                     \
        for (; i + 8 <= ins; i += 8) {                                                               \
            lanes8 xs[R];                                                                            \
            _Pragma("GCC unroll 4") for (int r = 0; r < R; r++) xs[r] = LOAD(x + r * ins + i);       \
            _Pragma("GCC unroll 4") for (int t = 0; t < OT; t++) {                                   \
                lanes8 ws = LOAD(w + t * ins + i);                                                   \
                if (!(i & 8)) __builtin_prefetch(w + (t + OT) * ins + i);                            \
                _Pragma("GCC unroll 4") for (int r = 0; r < R; r++)                                  \
                    sum[t][r] = MULTIPLY_ADD(ws, xs[r], sum[t][r]);                                  \
            }                                                                                        \
        }                                                                                            \
        for (int r = 0; r < R; r++) {                                                                \
            totals(sums, &sum[0][r], R, OT);                                                         \
            for (int t = 0; t < OT; t++) {                                                           \
                for (long j = i; j < ins; j++)                                                       \
                    sums[t] = fused(w[t * ins + j], x[r * ins + j], sums[t]);               \
                y[r * outs + t] = sums[t];                                                           \
            }                                                                                        \
        }                                                                                            \
    }

TILE(1, 4) TILE(2, 4) TILE(3, 4) TILE(4, 2)
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1)

/* Outputs o to end of one weight for all rows; rows beyond four find the tile in the nearest cache. */
static void few_rows(const float *w, const float *x, float *y, long rows, long o, long end, long outs,
                     long ins) {
    while (o < end) {
        const float *tile = w + o * ins;
        long step = end - o >= 4 ? 4 : 1;
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

/* y[g][r][o] = sum_i weight[g][o][i] x[g][r][i]. */
void pdt_rows_linear(const float *weight, const float *x, float *y, long groups, long rows, long outs,
                     long ins, int threads) {
    long all = groups * outs;
    if (all * ins < 16384) threads = 1; /* waking a thread costs more than the work */
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        long me = omp_get_thread_num(), team = omp_get_num_threads();
        long at = share_of(all, me, team), stop = share_of(all, me + 1, team);
        while (at < stop) {
            long g = at / outs, o = at - g * outs;
            long end = o + (stop - at) < outs ? o + (stop - at) : outs;
            few_rows(weight + g * outs * ins, x + g * rows * ins, y + g * rows * outs, rows, o, end,
                     outs, ins);
            at += end - o;
        }
    }
}
