/* Causal attention of one lane over the prompt and its own text. */
#include <string.h>

static void turn(float *x, const float *cos, const float *sin, long n) {
    for (long i = 0; i < n / 2; i++) {
        float a = x[i], b = x[i + n / 2];
        x[i] = a * cos[i] - b * sin[i];
        x[i + n / 2] = b * cos[i + n / 2] + a * sin[i + n / 2];
    }
}

/* One key-value head of one token: take it in, then read for its queries. A token reads those before it in
 * the same order whether they were taken in by this round or by an earlier one. */
static void attend(const round_of *c, const layer *l, const worker *t, float *q, float *k, float *v,
                   float *out, long row, long g) {
    long X = c->head_width, G = c->kv_heads, share = c->query_heads / G;
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

/* This thread's heads of all runs: the tokens of a run one after another, as later ones read earlier ones. */
static void attend_all(const round_of *c, const layer *l, const worker *t, float *q, float *k, float *v,
                       float *out) {
    long G = c->kv_heads, items = c->runs * G;
    for (long i = items * t->me / t->team; i < items * (t->me + 1) / t->team; i++)
        for (long row = c->run[i / G]; row < c->run[i / G + 1]; row++) attend(c, l, t, q, k, v, out, row, i % G);
}
