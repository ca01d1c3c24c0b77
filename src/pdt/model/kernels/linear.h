/* A linear map of all rows, shared between the threads, and what is done to its outputs while they are at hand. */

/* Outputs of one group for its rows, `row` to `end`, whatever the weight is made of. */
static void some_rows(const linear *m, const worker *t, const float *x, float *y, long row, long end, long g,
                      long from, long to) {
    const char *w = (const char *)m->weight + g * m->outs * row_bytes(m->kind, m->ins);
    y += row * m->outs;
    if (m->kind)
        rows_of_blocks(m->kind, (const uint8_t *)w, t->rounded + row * blocks_of(m->ins), y, end - row, from,
                           to, m->outs, m->ins);
    else few_rows((const float *)w, x + row * m->ins, y, end - row, from, to, m->outs, m->ins);
}

/* Make rows ready for products with weights of blocks, if one of them is: every thread rounds all for itself. */
static void take_rows(const round_of *c, const worker *t, const float *x, long ins, long of_blocks) {
    if (of_blocks) round_rows(x, t->rounded, c->rows, ins);
}

/* This thread's share of a product of rows taken before: runs AFTER for each row and run of outputs it has computed. A weight that
 * belongs to a lane is read only where the lane has rows. */
#define SHARE(m, x, narrowed, y, AFTER)                                                              \
    do {                                                                                             \
        long groups_ = (m).groups == 1 ? 1 : c->writing, all_ = groups_ * (m).outs;                  \
        long at_ = share_of(all_, t->me, t->team), stop_ = share_of(all_, t->me + 1, t->team);                     \
        while (at_ < stop_) {                                                                        \
            long i_ = at_ / (m).outs, from = at_ - i_ * (m).outs;                                    \
            long to = from + (stop_ - at_) < (m).outs ? from + (stop_ - at_) : (m).outs;             \
            long g_ = (m).groups == 1 ? 0 : c->lane[i_];                                             \
            long row_ = (m).groups == 1 ? 0 : c->first[i_];                                          \
            long end_ = (m).groups == 1 ? c->rows : c->first[i_ + 1];                                \
            const float *bias = (m).bias ? (m).bias + g_ * (m).outs : 0;                             \
            some_rows(&(m), t, x, y, row_, end_, g_, from, to);                                      \
            for (long row = row_; row < end_; row++) {                                               \
                if ((m).rank) add_change(c, &(m), narrowed, y, row, from, to);                       \
                AFTER;                                                                               \
            }                                                                                        \
            at_ += to - from;                                                                        \
        }                                                                                            \
    } while (0)

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
