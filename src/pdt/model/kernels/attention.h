/* Causal attention of one lane over the prompt and its own text. */
#include <string.h>

static void turn(float *x, const float *cos, const float *sin, long n) {
    for (long i = 0; i < n / 2; i++) {
        float a = x[i], b = x[i + n / 2];
        x[i] = a * cos[i] - b * sin[i];
        x[i + n / 2] = b * cos[i + n / 2] + a * sin[i + n / 2];
    }
}

/* out[r] += sum_i s[r][i] v[i], each of width X, for R heads that read the same values: 32 numbers of each stay in
 * registers over all n positions. */
#define MIX(R)                                                                                       \
    static void mix_##R(float *out, const float *s, long stride, const float *v, long n, long X) {   \
        long x = 0;                                                                                  \
        for (; x + 32 <= X; x += 32) {                                                               \
            lanes8 sum[R][4];                                                                        \
            _Pragma("GCC unroll 4") for (int r = 0; r < R; r++)                                      \
                _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) sum[r][l] = LOAD(out + r * X + x + 8 * l); \
            for (long i = 0; i < n; i++) {                                                           \
                const float *value = v + i * X + x;                                                  \
                _Pragma("GCC unroll 4") for (int r = 0; r < R; r++) {                                \
                    lanes8 share = EIGHT(s[r * stride + i]);                                         \
                    _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++)                              \
                        sum[r][l] = MULTIPLY_ADD(LOAD(value + 8 * l), share, sum[r][l]);             \
                }                                                                                    \
            }                                                                                        \
            _Pragma("GCC unroll 4") for (int r = 0; r < R; r++)                                      \
                _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) STORE(out + r * X + x + 8 * l) = sum[r][l]; \
        }                                                                                            \
        for (int r = 0; r < R; r++)                                                                  \
            for (long i = 0; x < X && i < n; i++) add_scaled(out + r * X + x, v + i * X + x, s[r * stride + i], X - x); \
    }
MIX(1) MIX(2) MIX(3) MIX(4)

static void mix(float *out, const float *s, long stride, const float *v, long n, long X, long heads) {
    for (long r = 0; r < heads;) {
        long left = heads - r, take = left >= 4 ? 4 : left;
        float *o = out + r * X;
        const float *own = s + r * stride;
        if (take == 1) mix_1(o, own, stride, v, n, X);
        else if (take == 2) mix_2(o, own, stride, v, n, X);
        else if (take == 3) mix_3(o, own, stride, v, n, X);
        else mix_4(o, own, stride, v, n, X);
        r += take;
    }
}

/* Room for the scores of one query, and of all that share a key-value head. */
static long score_stride(const round_of *c) { return (c->longest + 15) & ~7L; }
static long score_room(const round_of *c) { return c->query_heads / c->kv_heads * score_stride(c); }

/* One key-value head of one token: take it in, then read for its queries. A token reads those before it in
 * the same order whether they were taken in by this round or by an earlier one. */
static void attend(const round_of *c, const layer *l, const worker *t, float *q, float *k, float *v,
                   float *out, long row, long g) {
    long X = c->head_width, G = c->kv_heads, share = c->query_heads / G, stride = score_stride(c);
    long lane = c->row[row].lane, b = c->row[row].document, position = c->row[row].position;
    long group = l->groups == 1 ? 0 : lane;
    const document *doc = c->document[b];
    const held *own = l->held[b];
    const float *cos = doc->cos + position * X, *sin = doc->sin + position * X;
    float *key = k + (row * G + g) * X;
    if (l->k_norm) rms_norm(key, key, l->k_norm + group * X, c->eps, X);
    turn(key, cos, sin, X);
    long first = (lane * G + g) * doc->capacity * X;
    float *sk = own->suffix_k + first, *sv = own->suffix_v + first;
    memcpy(sk + position * X, key, X * sizeof(float));
    memcpy(sv + position * X, v + (row * G + g) * X, X * sizeof(float));
    long shared = ((l->prompt_lanes == 1 ? 0 : lane) * G + g) * doc->prompt_tokens * X;
    const float *pk = own->prompt_k + shared, *pv = own->prompt_v + shared;
    long prompt = doc->prompt_length, suffix = position + 1;
    float *queries = q + (row * c->query_heads + g * share) * X, *s = t->scores;
    float *sums = out + (row * c->query_heads + g * share) * X, scale = 1.0f / sqrtf((float)X);
    for (long j = 0; j < share; j++) {
        float *query = queries + j * X;
        if (l->q_norm) rms_norm(query, query, l->q_norm + group * X, c->eps, X);
        turn(query, cos, sin, X);
    }
    few_rows(pk, queries, s, share, 0, prompt, stride, X);
    few_rows(sk, queries, s + prompt, share, 0, suffix, stride, X);
    for (long j = 0; j < share; j++) {
        float *scores = s + j * stride;
        for (long i = 0; i < prompt + suffix; i++) scores[i] *= scale;
        softmax(scores, prompt + suffix);
    }
    memset(sums, 0, share * X * sizeof(float));
    mix(sums, s, stride, pv, prompt, X, share);
    mix(sums, s + prompt, stride, sv, suffix, X, share);
}

/* This thread's heads of all runs: the tokens of a run one after another, as later ones read earlier ones. */
static void attend_all(const round_of *c, const layer *l, const worker *t, float *q, float *k, float *v,
                       float *out) {
    long G = c->kv_heads, items = c->runs * G;
    for (long i = items * t->me / t->team; i < items * (t->me + 1) / t->team; i++)
        for (long row = c->run[i / G]; row < c->run[i / G + 1]; row++) attend(c, l, t, q, k, v, out, row, i % G);
}
