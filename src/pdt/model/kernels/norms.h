/* RMS norms, of one vector and of every row. */

static void rms_norm(float *out, const float *x, const float *weight, float eps, long n) {
    float scale = 1.0f / sqrtf(dot(x, x, n) / n + eps);
    for (long i = 0; i < n; i++) out[i] = x[i] * scale * (weight ? weight[i] : 1.0f);
}

/* Every thread norms all rows for itself: cheaper than a barrier. */
static void norm_rows(const round_of *c, const layer *l, const float *weight, float *out) {
    for (long r = 0; r < c->rows; r++) {
        long group = l->groups == 1 ? 0 : c->row[r].lane;
        rms_norm(out + r * c->width, c->h + r * c->width, weight + group * c->width, c->eps, c->width);
    }
}
