/* One decode round on a CPU: every weight is read from memory once, for all lanes and documents.
 *
 * A round pushes K rows (one a lane) through each shared weight and one row through each lane's own.
 * General matrix products are built for many rows; for a handful they run far below the memory's speed,
 * and at this size the calls between them cost more than the arithmetic. So the products are tiles that
 * keep their sums in registers, and a whole round is one call: the layer of model/layer.py, step by step.
 * tests/parity/test_kernels.py holds it equal to that file.
 *
 * A row is one token of one lane of one document. A shared weight sees all rows, a lane's own weight the rows
 * of that lane, which stand together. A row's arithmetic does not depend on the rows beside it, and each
 * document brings caches, plan, notes and length of its own: documents may come and go between rounds, lanes
 * may take several tokens at once or none, and each is written as it would be alone, one token a round.
 *
 * The parts, one idea each, build on those above them and are compiled as one.
 */
#include "vectors.h"
#include "products.h"
#include "blocks.h"
#include "structs.h"
#include "team.h"
#include "norms.h"
#include "change.h"
#include "linear.h"
#include "attention.h"
#include "reads.h"

/* Four buffers of rows, and one for what the first half of up to three changes leaves of them. */
static void run_layer(const round_of *c, const layer *l, const worker *t, float *a, float *b, float *d,
                      float *e, float *f) {
    long rows = c->rows, D = c->width, FF = c->feed_forward;
    float *second = f + rows * c->rank, *third = second + rows * c->rank;
    norm_rows(c, l, l->input_norm, t->normed);
    if (l->q.rank) {
        narrow_rows(c, &l->q, t, t->normed, f);
        narrow_rows(c, &l->k, t, t->normed, second);
        narrow_rows(c, &l->v, t, t->normed, third);
        meet(t);
    }
    take_rows(c, t, t->normed, D, l->q.kind | l->k.kind | l->v.kind);
    SHARE(l->q, t->normed, f, a, add_bias(a + row * l->q.outs, bias, from, to));
    SHARE(l->k, t->normed, second, b, add_bias(b + row * l->k.outs, bias, from, to));
    SHARE(l->v, t->normed, third, d, add_bias(d + row * l->v.outs, bias, from, to));
    meet(t);
    attend_all(c, l, t, a, b, d, e);
    meet(t);
    if (l->o.rank) {
        narrow_rows(c, &l->o, t, e, f);
        meet(t);
    }
    take_rows(c, t, e, l->o.ins, l->o.kind);
    SHARE(l->o, e, f, a, add_residual(c->h + row * D, a + row * D, bias, 1.0f, from, to));
    meet(t);
    norm_rows(c, l, l->post_norm, t->normed);
    if (l->up.rank) {
        narrow_rows(c, &l->up, t, t->normed, f);
        narrow_rows(c, &l->gate, t, t->normed, second);
        meet(t);
    }
    take_rows(c, t, t->normed, D, l->up.kind | l->gate.kind);
    SHARE(l->up, t->normed, f, b, (void)bias);
    SHARE(l->gate, t->normed, second, a, ((void)bias, swiglu(a + row * FF, b + row * FF, from, to)));
    meet(t);
    if (l->down.rank) {
        narrow_rows(c, &l->down, t, a, f);
        meet(t);
    }
    take_rows(c, t, a, FF, l->down.kind);
    SHARE(l->down, a, f, d, add_residual(c->h + row * D, d + row * D, bias, 1.0f, from, to));
    meet(t);
    for (memory_kind kind = PLAN; kind <= NOTES; kind++) add_read(c, l, kind, t, a, b);
}

/* Floats of scratch for one thread: rows in blocks, normed rows, their sizes, scores. */
static long of_a_thread(const round_of *c) {
    long blocks = c->rows * blocks_of(c->widest);
    return blocks * (long)(sizeof(rounded) / sizeof(float)) + c->rows * (c->width + 1) + score_room(c);
}

/* Floats of scratch for a round: those buffers, then what each thread has for itself. */
long pdt_round_scratch(const round_of *c) {
    return 4 * c->rows * c->widest + 3 * c->rows * c->rank + c->threads * of_a_thread(c);
}

void pdt_round(const round_of *c, const layer *layers) {
    long rows = c->rows, buffer = rows * c->widest;
    float *a = c->scratch, *b = a + buffer, *d = b + buffer, *e = d + buffer;
    float *f = e + buffer, *private = f + 3 * rows * c->rank;
    meeting all = {0, 0, 0};
#pragma omp parallel num_threads(c->threads)
    {
        worker t = {omp_get_thread_num(), omp_get_num_threads(), 0, 0, 0, 0, &all};
        t.rounded = (rounded *)(private + t.me * of_a_thread(c));
        t.normed = (float *)(t.rounded + rows * blocks_of(c->widest));
        t.unit = t.normed + rows * c->width;
        t.scores = t.unit + rows;
        for (long i = 0; i < c->layers; i++) run_layer(c, layers + i, &t, a, b, d, e, f);
    }
}
