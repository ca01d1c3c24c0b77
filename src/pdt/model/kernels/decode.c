/* One decode round on a CPU: every weight is read from memory once, for all lanes and documents.
 *
 * A round pushes K rows (one a lane) through each shared weight and one row through each lane's own.
 * General matrix products are built for many rows; for a handful they run far below the memory's speed,
 * and at this size the calls between them cost more than the arithmetic. So the products are tiles that
 * keep their sums in registers, and a whole round is one call: the layer of model/layer.py, step by step.
 * tests/parity/test_kernels.py holds it equal to that file.
 *
 * Rows are lane-major, [K][B][width]: a shared weight sees K*B rows, a lane's own weight its B rows. A row's
 * arithmetic does not depend on the rows beside it, and each document brings caches, plan, notes and length
 * of its own: documents may come and go between rounds, and each is written as it would be alone.
 */
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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
                    sums[t] = __builtin_fmaf(w[t * ins + j], x[r * ins + j], sums[t]);               \
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
        long at = all * me / team, stop = all * (me + 1) / team;
        while (at < stop) {
            long g = at / outs, o = at - g * outs;
            long end = o + (stop - at) < outs ? o + (stop - at) : outs;
            few_rows(weight + g * outs * ins, x + g * rows * ins, y + g * rows * outs, rows, o, end,
                     outs, ins);
            at += end - o;
        }
    }
}

/* ---- a whole round; the structs are mirrored in round.py ---- */

typedef struct {
    const float *weight, *bias;  /* [groups][outs][ins], [groups][outs] or NULL */
    const float *narrow, *widen; /* a lane's change, with a rank: [K][rank][ins], [K][outs][rank] */
    long outs, ins, groups, rank; /* groups 1: one weight for all lanes; K: each lane its own */
} linear;

typedef struct { /* Plan-KV or SNC: a gated read of a small memory, which each document has its own of */
    linear q, o;
    long heads;
} gated_read;

typedef struct {
    const float *k, *v;            /* [K][heads][slots][outs / heads] */
    const unsigned char *readable; /* [K][slots] */
    long slots;                    /* none: no read */
    float gate;
    int pad;
} memory;

typedef enum { PLAN, NOTES } memory_kind;

typedef struct { /* what one document holds of one layer */
    const float *prompt_k, *prompt_v; /* [prompt_lanes][G][prompt_tokens][X] */
    float *suffix_k, *suffix_v;       /* [K][G][capacity][X] */
    memory read[2];
} held;

typedef struct {
    linear q, k, v, o, gate, up, down;
    const float *input_norm, *post_norm, *q_norm, *k_norm; /* [groups][width] */
    const held *const *held;                               /* [B] */
    long groups, prompt_lanes;                             /* 1: shared by all lanes; K: each its own */
    gated_read read[2];
} layer;

typedef struct {
    long prompt_tokens, prompt_length, capacity, written; /* prompt_tokens is the padded length */
    const float *cos, *sin;                               /* [capacity][X] */
} document;

typedef struct {
    long documents, lanes, width, query_heads, kv_heads, head_width, feed_forward;
    long layers, rank, widest, longest; /* the widest row, and the most that one query scores */
    const document *const *document;    /* [B] */
    float *h;                           /* [K][B][width], in and out */
    float *scratch;
    float eps;
    int threads;
} round_of;

/* Threads meet a few hundred times a round. They spin for a moment, then sleep: where another program
 * has a core, a thread that spins on keeps its own partner from running (seen: 760 ms a round, not 65). */
typedef struct {
    atomic_int arrived, phase, asleep;
} meeting;

enum { SPINS = 6000 };

typedef struct { /* what one thread works with */
    long me, team;
    float *normed, *scores;
    meeting *all;
} worker;

static void meet(const worker *t) {
    meeting *m = t->all;
    int phase = atomic_load(&m->phase);
    if (atomic_fetch_add(&m->arrived, 1) + 1 == t->team) {
        atomic_store(&m->arrived, 0);
        atomic_store(&m->phase, phase + 1);
        if (atomic_load(&m->asleep)) syscall(SYS_futex, &m->phase, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
        return;
    }
    for (int spin = 0; atomic_load(&m->phase) == phase; spin++) {
        if (spin < SPINS) {
            RELAX();
            continue;
        }
        atomic_fetch_add(&m->asleep, 1);
        syscall(SYS_futex, &m->phase, FUTEX_WAIT_PRIVATE, phase, 0, 0, 0);
        atomic_fetch_sub(&m->asleep, 1);
    }
}

static void rms_norm(float *out, const float *x, const float *weight, float eps, long n) {
    float scale = 1.0f / sqrtf(dot(x, x, n) / n + eps);
    for (long i = 0; i < n; i++) out[i] = x[i] * scale * (weight ? weight[i] : 1.0f);
}

/* Every thread norms all rows for itself: cheaper than a barrier. */
static void norm_rows(const round_of *c, const layer *l, const float *weight, float *out) {
    long rows = c->lanes * c->documents, per = rows / l->groups;
    for (long r = 0; r < rows; r++)
        rms_norm(out + r * c->width, c->h + r * c->width, weight + (r / per) * c->width, c->eps, c->width);
}

/* Add a lane's change to outputs of a row, from what `narrow_rows` has left of the row. */
static void add_change(const round_of *c, const linear *m, const float *narrowed, float *y, long row,
                       long from, long to) {
    const float *widen = m->widen + row / c->documents * m->outs * m->rank, *n = narrowed + row * m->rank;
    for (long o = from; o < to; o++) y[row * m->outs + o] += dot(widen + o * m->rank, n, m->rank);
}

/* This thread's share of a product: runs AFTER for each row and run of outputs it has computed. */
#define SHARE(m, all_rows, x, narrowed, y, AFTER)                                                    \
    do {                                                                                             \
        long rows_ = (all_rows) / (m).groups, all_ = (m).groups * (m).outs;                          \
        long at_ = all_ * t->me / t->team, stop_ = all_ * (t->me + 1) / t->team;                     \
        while (at_ < stop_) {                                                                        \
            long g = at_ / (m).outs, from = at_ - g * (m).outs;                                      \
            long to = from + (stop_ - at_) < (m).outs ? from + (stop_ - at_) : (m).outs;             \
            const float *w_ = (m).weight + g * (m).outs * (m).ins;                                   \
            const float *bias = (m).bias ? (m).bias + g * (m).outs : 0;                              \
            few_rows(w_, (x) + g * rows_ * (m).ins, (y) + g * rows_ * (m).outs, rows_, from, to,     \
                     (m).outs, (m).ins);                                                             \
            for (long row = g * rows_; row < (g + 1) * rows_; row++) {                               \
                if ((m).rank) add_change(c, &(m), narrowed, y, row, from, to);                       \
                AFTER;                                                                               \
            }                                                                                        \
            at_ += to - from;                                                                        \
        }                                                                                            \
    } while (0)

/* This thread's share of every row times its lane's narrow matrix: the first half of a change. */
static void narrow_rows(const round_of *c, const linear *m, const worker *t, const float *x, float *out) {
    linear narrow = {m->narrow, 0, 0, 0, m->rank, m->ins, c->lanes, 0};
    SHARE(narrow, c->lanes * c->documents, x, 0, out, (void)bias);
}

static void add_bias(float *y, const float *bias, long from, long to) {
    if (bias)
        for (long o = from; o < to; o++) y[o] += bias[o];
}

static void add_residual(float *h, const float *y, const float *bias, float scale, long from, long to) {
    for (long o = from; o < to; o++) h[o] += scale * (y[o] + (bias ? bias[o] : 0.0f));
}

static void swiglu(float *gate, const float *up, long from, long to) {
    long o = from;
    for (; o + 8 <= to; o += 8) {
        lanes8 x = LOAD(gate + o);
        STORE(gate + o) = x / (exp8(clamp8(-x)) + 1.0f) * LOAD(up + o);
    }
    for (; o < to; o++) gate[o] = gate[o] / (1.0f + expf(-gate[o])) * up[o];
}

static void turn(float *x, const float *cos, const float *sin, long n) {
    for (long i = 0; i < n / 2; i++) {
        float a = x[i], b = x[i + n / 2];
        x[i] = a * cos[i] - b * sin[i];
        x[i + n / 2] = b * cos[i + n / 2] + a * sin[i + n / 2];
    }
}

/* One key-value head of one lane of one document: take in the new token, then read for its queries. */
static void attend(const round_of *c, const layer *l, const worker *t, float *q, float *k, float *v,
                   float *out, long item) {
    long X = c->head_width, G = c->kv_heads, share = c->query_heads / G;
    long g = item % G, row = item / G, lane = row / c->documents, b = row % c->documents;
    long group = l->groups == 1 ? 0 : lane;
    const document *doc = c->document[b];
    const held *own = l->held[b];
    const float *cos = doc->cos + doc->written * X, *sin = doc->sin + doc->written * X;
    float *key = k + (row * G + g) * X;
    if (l->k_norm) rms_norm(key, key, l->k_norm + group * X, c->eps, X);
    turn(key, cos, sin, X);
    long first = (lane * G + g) * doc->capacity * X;
    float *sk = own->suffix_k + first, *sv = own->suffix_v + first;
    memcpy(sk + doc->written * X, key, X * sizeof(float));
    memcpy(sv + doc->written * X, v + (row * G + g) * X, X * sizeof(float));
    long shared = ((l->prompt_lanes == 1 ? 0 : lane) * G + g) * doc->prompt_tokens * X;
    const float *pk = own->prompt_k + shared, *pv = own->prompt_v + shared;
    long prompt = doc->prompt_length, suffix = doc->written + 1;
    for (long j = g * share; j < (g + 1) * share; j++) {
        float *query = q + (row * c->query_heads + j) * X, *sum = out + (row * c->query_heads + j) * X;
        float *s = t->scores, scale = 1.0f / sqrtf((float)X);
        if (l->q_norm) rms_norm(query, query, l->q_norm + group * X, c->eps, X);
        turn(query, cos, sin, X);
        for (long i = 0; i < prompt; i++) s[i] = dot(query, pk + i * X, X) * scale;
        for (long i = 0; i < suffix; i++) s[prompt + i] = dot(query, sk + i * X, X) * scale;
        softmax(s, prompt + suffix);
        memset(sum, 0, X * sizeof(float));
        for (long i = 0; i < prompt; i++) add_scaled(sum, pv + i * X, s[i], X);
        for (long i = 0; i < suffix; i++) add_scaled(sum, sv + i * X, s[prompt + i], X);
    }
}

/* Whether a lane of a document may read anything: if not, its read is exactly nothing. */
static float opened(const round_of *c, const layer *l, memory_kind kind, long row) {
    const memory *own = &l->held[row % c->documents]->read[kind];
    const unsigned char *readable = own->readable + row / c->documents * own->slots;
    for (long s = 0; s < own->slots; s++)
        if (readable[s]) return own->gate;
    return 0.0f;
}

static void read_head(const round_of *c, const layer *l, memory_kind kind, const worker *t, const float *q,
                      float *out, long item) {
    const gated_read *m = &l->read[kind];
    long W = m->q.outs / m->heads, head = item % m->heads, row = item / m->heads;
    long lane = row / c->documents;
    const memory *own = &l->held[row % c->documents]->read[kind];
    const unsigned char *readable = own->readable + lane * own->slots;
    const float *k = own->k + (lane * m->heads + head) * own->slots * W;
    const float *v = own->v + (lane * m->heads + head) * own->slots * W;
    const float *query = q + row * m->q.outs + head * W;
    float *sum = out + row * m->q.outs + head * W, *s = t->scores;
    long n = 0;
    for (long i = 0; i < own->slots; i++)
        if (readable[i]) s[n++] = dot(query, k + i * W, W) / sqrtf((float)W);
    memset(sum, 0, W * sizeof(float));
    if (n == 0) return;
    softmax(s, n);
    n = 0;
    for (long i = 0; i < own->slots; i++)
        if (readable[i]) add_scaled(sum, v + i * W, s[n++], W);
}

static void add_read(const round_of *c, const layer *l, memory_kind kind, const worker *t, float *a,
                     float *b) {
    const gated_read *m = &l->read[kind];
    long rows = c->lanes * c->documents, D = c->width, A = m->q.outs, items = rows * m->heads, slots = 0;
    for (long d = 0; d < c->documents; d++) slots += l->held[d]->read[kind].slots;
    if (!slots) return;
    SHARE(m->q, rows, c->h, 0, a, add_bias(a + row * A, bias, from, to));
    meet(t);
    for (long i = items * t->me / t->team; i < items * (t->me + 1) / t->team; i++)
        read_head(c, l, kind, t, a, b, i);
    meet(t);
    SHARE(m->o, rows, b, 0, a,
          add_residual(c->h + row * D, a + row * D, bias, opened(c, l, kind, row), from, to));
    meet(t);
}

/* Four buffers of rows, and one for what the first half of up to three changes leaves of them. */
static void run_layer(const round_of *c, const layer *l, const worker *t, float *a, float *b, float *d,
                      float *e, float *f) {
    long rows = c->lanes * c->documents, D = c->width, FF = c->feed_forward, items = rows * c->kv_heads;
    float *second = f + rows * c->rank, *third = second + rows * c->rank;
    norm_rows(c, l, l->input_norm, t->normed);
    if (l->q.rank) {
        narrow_rows(c, &l->q, t, t->normed, f);
        narrow_rows(c, &l->k, t, t->normed, second);
        narrow_rows(c, &l->v, t, t->normed, third);
        meet(t);
    }
    SHARE(l->q, rows, t->normed, f, a, add_bias(a + row * l->q.outs, bias, from, to));
    SHARE(l->k, rows, t->normed, second, b, add_bias(b + row * l->k.outs, bias, from, to));
    SHARE(l->v, rows, t->normed, third, d, add_bias(d + row * l->v.outs, bias, from, to));
    meet(t);
    for (long i = items * t->me / t->team; i < items * (t->me + 1) / t->team; i++)
        attend(c, l, t, a, b, d, e, i);
    meet(t);
    if (l->o.rank) {
        narrow_rows(c, &l->o, t, e, f);
        meet(t);
    }
    SHARE(l->o, rows, e, f, a, add_residual(c->h + row * D, a + row * D, bias, 1.0f, from, to));
    meet(t);
    norm_rows(c, l, l->post_norm, t->normed);
    if (l->up.rank) {
        narrow_rows(c, &l->up, t, t->normed, f);
        narrow_rows(c, &l->gate, t, t->normed, second);
        meet(t);
    }
    SHARE(l->up, rows, t->normed, f, b, (void)bias);
    SHARE(l->gate, rows, t->normed, second, a, ((void)bias, swiglu(a + row * FF, b + row * FF, from, to)));
    meet(t);
    if (l->down.rank) {
        narrow_rows(c, &l->down, t, a, f);
        meet(t);
    }
    SHARE(l->down, rows, a, f, d, add_residual(c->h + row * D, d + row * D, bias, 1.0f, from, to));
    meet(t);
    for (memory_kind kind = PLAN; kind <= NOTES; kind++) add_read(c, l, kind, t, a, b);
}

/* Floats of scratch for a round: those buffers, then each thread's normed rows and scores. */
long pdt_round_scratch(const round_of *c) {
    long rows = c->lanes * c->documents;
    return 4 * rows * c->widest + 3 * rows * c->rank + c->threads * (rows * c->width + c->longest + 16);
}

void pdt_round(const round_of *c, const layer *layers) {
    long rows = c->lanes * c->documents, buffer = rows * c->widest;
    float *a = c->scratch, *b = a + buffer, *d = b + buffer, *e = d + buffer;
    float *f = e + buffer, *private = f + 3 * rows * c->rank;
    meeting all = {0, 0, 0};
#pragma omp parallel num_threads(c->threads)
    {
        worker t = {omp_get_thread_num(), omp_get_num_threads(), 0, 0, &all};
        t.normed = private + t.me * (rows * c->width + c->longest + 16);
        t.scores = t.normed + rows * c->width;
        for (long i = 0; i < c->layers; i++) run_layer(c, layers + i, &t, a, b, d, e, f);
    }
}
