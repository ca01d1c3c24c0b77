/* Plan-KV and SNC: gated reads of a small memory. */

/* Whether a lane of a document may read anything: if not, its read is exactly nothing. */
static float opened(const round_of *c, const layer *l, memory_kind kind, long row) {
    const memory *own = &l->held[c->row[row].document]->read[kind];
    const unsigned char *readable = own->readable + c->row[row].lane * own->slots;
    for (long s = 0; s < own->slots; s++)
        if (readable[s]) return own->gate;
    return 0.0f;
}

static void read_head(const round_of *c, const layer *l, memory_kind kind, const worker *t, const float *q,
                      float *out, long item) {
    const gated_read *m = &l->read[kind];
    long W = m->q.outs / m->heads, head = item % m->heads, row = item / m->heads;
    long lane = c->row[row].lane;
    const memory *own = &l->held[c->row[row].document]->read[kind];
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

/* What a read asks with: the states as they are, or each over its size, which `unit` keeps. Every thread does
 * all rows for itself, as norms do. */
static const float *asking_rows(const round_of *c, const gated_read *m, const worker *t) {
    for (long r = 0; r < c->rows; r++) {
        const float *h = c->h + r * c->width;
        float size = m->in_state_units ? sqrtf(dot(h, h, c->width) / c->width) : 1.0f;
        t->unit[r] = size > 1e-6f ? size : 1e-6f;
        if (m->in_state_units)
            for (long i = 0; i < c->width; i++) t->normed[r * c->width + i] = h[i] / t->unit[r];
    }
    return m->in_state_units ? t->normed : c->h;
}

static void add_read(const round_of *c, const layer *l, memory_kind kind, const worker *t, float *a,
                     float *b) {
    const gated_read *m = &l->read[kind];
    long rows = c->rows, D = c->width, A = m->q.outs, items = rows * m->heads, slots = 0;
    for (long d = 0; d < c->documents; d++) slots += l->held[d]->read[kind].slots;
    if (!slots) return;
    const float *asking = asking_rows(c, m, t);
    take_rows(c, t, asking, D, m->q.kind);
    SHARE(m->q, asking, 0, a, add_bias(a + row * A, bias, from, to));
    meet(t);
    for (long i = items * t->me / t->team; i < items * (t->me + 1) / t->team; i++)
        read_head(c, l, kind, t, a, b, i);
    meet(t);
    take_rows(c, t, b, A, m->o.kind);
    SHARE(m->o, b, 0, a,
          add_residual(c->h + row * D, a + row * D, bias, opened(c, l, kind, row) * t->unit[row], from, to));
    meet(t);
}
