/* Products of blocks by vectors, one way of them: included once for each, with WAY, TARGET, WIDE and the vectors' names set.
 *
 * A strip is WIDE outputs, one in each place of a vector. `unpack` turns blocks of the strip into columns, four inputs of every
 * output in each vector, so that one activation meets all outputs at once and nothing is added across a vector.
 * Columns of a few blocks stay in the nearest cache until all rows have met them, while a strip further on is on
 * its way from memory. Whole numbers are added without their offset: those of four bits lie between 0 and 15.
 */
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define OUR(name) JOIN(name, WAY)

enum { OUR(CHUNK) = 24 };

typedef struct {
    INTS number[8];
    FLOATS_ scale, least;
} OUR(column);

ALWAYS int OUR(offset)(kind k) { return k == Q8_0 ? Q8_OFFSET : k == Q4_0 ? 8 : 0; }

/* Blocks of the rows that begin `at` bytes after w. */
TARGET ALWAYS void OUR(unpack)(kind k, const uint8_t *w, const int *at, const uint8_t *ahead, long blocks,
                               OUR(column) * out) {
    INTS rows = WHOLE(loadu)((const void *)at), low = OF(set1_epi8)(15);
    for (long b = 0; b < blocks; b++, out++, w += block_bytes(k)) {
        for (int line = 0; line < WIDE * block_bytes(k); line += 64) __builtin_prefetch(ahead + line, 0, 2);
        ahead += WIDE * block_bytes(k);
        INTS heads = GATHER(w, rows);
        out->scale = OUR(halves)(heads);
        if (k == Q4_1) out->least = OUR(halves)(OF(srli_epi32)(heads, 16));
        OUR(columns)(w + (k == Q4_1 ? 4 : 2), at, out->number);
        if (k == Q8_0) OUR(columns)(w + 18, at, out->number + 4);
        for (int j = 0; j < 4; j++)
            if (k == Q8_0) {
                out->number[j] = OF(add_epi8)(out->number[j], OF(set1_epi8)((char)Q8_OFFSET));
                out->number[j + 4] = OF(add_epi8)(out->number[j + 4], OF(set1_epi8)((char)Q8_OFFSET));
            } else {
                out->number[j + 4] = AND(OF(srli_epi16)(out->number[j], 4), low);
                out->number[j] = AND(out->number[j], low);
            }
    }
}

/* R rows of activations, whose blocks lie `stride` apart, times those columns, added to sums[r]. */
TARGET ALWAYS void OUR(multiply)(kind k, const int R, const OUR(column) * w, const rounded *x, long stride,
                                 long blocks, FLOATS_ *sums) {
    FLOATS_ sum[4];
    for (int r = 0; r < R; r++) sum[r] = sums[r];
    for (long b = 0; b < blocks; b++, w++, x++) {
        INTS whole[4];
        for (int r = 0; r < R; r++) whole[r] = OF(set1_epi32)(-OUR(offset)(k) * x[r * stride].whole);
        _Pragma("GCC unroll 8") for (int j = 0; j < 8; j++) _Pragma("GCC unroll 4") for (int r = 0; r < R; r++) {
            int four;
            memcpy(&four, x[r * stride].number + 4 * j, 4);
            whole[r] = OUR(dot)(whole[r], w->number[j], OF(set1_epi32)(four), k == Q8_0);
        }
        _Pragma("GCC unroll 4") for (int r = 0; r < R; r++) {
            FLOATS_ scales = OF(mul_ps)(w->scale, OF(set1_ps)(x[r * stride].scale));
            sum[r] = OF(fmadd_ps)(OF(cvtepi32_ps)(whole[r]), scales, sum[r]);
            if (k == Q4_1) sum[r] = OF(fmadd_ps)(w->least, OF(set1_ps)(x[r * stride].sum), sum[r]);
        }
    }
    for (int r = 0; r < R; r++) sums[r] = sum[r];
}

/* One strip for some rows: `take` of its outputs, the first of them o. */
TARGET static void OUR(strip)(kind k, const uint8_t *w, const int *at, const uint8_t *ahead, const rounded *x,
                              float *y, long rows, long take, long outs, long blocks) {
    OUR(column) columns[OUR(CHUNK)];
    FLOATS_ sums[AT_ONCE];
    for (long r = 0; r < rows; r++) sums[r] = OF(setzero_ps)();
    for (long b = 0; b < blocks; b += OUR(CHUNK)) {
        long some = blocks - b < OUR(CHUNK) ? blocks - b : OUR(CHUNK);
        const uint8_t *p = w + b * block_bytes(k), *next = ahead + b * WIDE * block_bytes(k);
        if (k == Q8_0) OUR(unpack)(Q8_0, p, at, next, some, columns);
        else if (k == Q4_0) OUR(unpack)(Q4_0, p, at, next, some, columns);
        else OUR(unpack)(Q4_1, p, at, next, some, columns);
        for (long r = 0; r < rows;) {
            long left = rows - r, now = left >= 4 ? 4 : left;
            if (left == 5 || left == 6) now = 3;
#define MULTIPLY(K, R) OUR(multiply)(K, R, columns, x + r * blocks + b, blocks, some, sums + r)
#define OF_ROWS(R) (k == Q8_0 ? MULTIPLY(Q8_0, R) : k == Q4_0 ? MULTIPLY(Q4_0, R) : MULTIPLY(Q4_1, R))
            if (now == 1) OF_ROWS(1);
            else if (now == 2) OF_ROWS(2);
            else if (now == 3) OF_ROWS(3);
            else OF_ROWS(4);
#undef OF_ROWS
#undef MULTIPLY
            r += now;
        }
    }
    for (long r = 0; r < rows; r++) {
        float whole[WIDE];
        OF(storeu_ps)(whole, sums[r]);
        memcpy(y + r * outs, whole, take * sizeof(float));
    }
}

TARGET static void OUR(product)(kind k, const uint8_t *w, const rounded *x, float *y, long rows, long o, long end,
                                long outs, long ins) {
    long bytes = row_bytes(k, ins), blocks = blocks_of(ins);
    for (; o < end; o += WIDE) {
        long take = end - o < WIDE ? end - o : WIDE;
        int at[WIDE]; /* places beyond the last output see it again */
        for (int i = 0; i < WIDE; i++) at[i] = (int)((i < take ? i : take - 1) * bytes);
        for (long r = 0; r < rows; r += AT_ONCE)
            OUR(strip)(k, w + o * bytes, at, w + (o + WIDE) * bytes, x + r * blocks, y + r * outs + o,
                       rows - r < AT_ONCE ? rows - r : AT_ONCE, take, outs, blocks);
    }
}

#undef OUR
#undef JOIN
#undef JOIN_
#undef WAY
#undef TARGET
#undef WIDE
#undef INTS
#undef FLOATS_
#undef OF
#undef WHOLE
#undef GATHER
#undef AND
#undef Q8_OFFSET
