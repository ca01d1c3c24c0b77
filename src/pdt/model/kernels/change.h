/* A lane's change of low rank: its rows narrowed to a few numbers each, which then widen into the outputs.
 *
 * Beside a weight of blocks it lies in half precision, beside one of floats in floats.
 */

/* Four dot products of one row with rows of `narrow`; n of them are wanted. */
ALWAYS void four_dots(int halves, const void *narrow, long at, const float *x, float *y, long n, long ins) {
    lanes8 sum[4] = {{0}};
    long i = 0, step = n == 4 ? ins : 0;
    for (; i + 8 <= ins; i += 8) {
        lanes8 xs = LOAD(x + i);
        _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++)
            sum[r] = MULTIPLY_ADD(eight_at(halves, narrow, at + r * step + i), xs, sum[r]);
    }
    for (int r = 0; r < n; r++) {
        y[r] = total(sum[r]);
        for (long j = i; j < ins; j++) y[r] = fused(one_at(halves, narrow, at + r * step + j), x[j], y[r]);
    }
}

ALWAYS void narrow_row(int halves, const linear *m, long lane, const float *x, float *out, long from, long to) {
    for (long r = from; r < to;) {
        long n = to - r >= 4 ? 4 : 1;
        four_dots(halves, m->narrow, (lane * m->rank + r) * m->ins, x, out + r, n, m->ins);
        r += n;
    }
}

/* This thread's share of every row times its lane's narrow matrix: the first half of a change. */
static void narrow_rows(const round_of *c, const linear *m, const worker *t, const float *x, float *out) {
    for (long row = 0; row < c->rows; row++) {
        long from = m->rank * t->me / t->team, to = m->rank * (t->me + 1) / t->team;
        const float *own = x + row * m->ins;
        float *y = out + row * m->rank;
        if (m->kind) narrow_row(1, m, c->row[row].lane, own, y, from, to);
        else narrow_row(0, m, c->row[row].lane, own, y, from, to);
    }
}

ALWAYS void widen_row(int halves, const linear *m, long lane, const float *narrowed, float *y, long from, long to) {
    long at = lane * m->rank * m->outs, o = from;
    for (; o + 8 <= to; o += 8) {
        lanes8 sum = LOAD(y + o);
        for (long r = 0; r < m->rank; r++)
            sum = MULTIPLY_ADD(eight_at(halves, m->widen, at + r * m->outs + o), EIGHT(narrowed[r]), sum);
        STORE(y + o) = sum;
    }
    for (; o < to; o++)
        for (long r = 0; r < m->rank; r++) y[o] = fused(one_at(halves, m->widen, at + r * m->outs + o), narrowed[r], y[o]);
}

/* Add the change to outputs of a row, from what `narrow_rows` has left of the row. */
static void add_change(const round_of *c, const linear *m, const float *narrowed, float *y, long row, long from,
                       long to) {
    y += row * m->outs, narrowed += row * m->rank;
    if (m->kind) widen_row(1, m, c->row[row].lane, narrowed, y, from, to);
    else widen_row(0, m, c->row[row].lane, narrowed, y, from, to);
}
