/* The tiles of one way: included once for each, with WAY, TARGET, NUMBERS and DOT set. */
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define TILE_(K, R, OT) JOIN(K##_##R##_##OT, WAY)

#define TILE_OF_BLOCKS(K, R, OT)                                                                     \
    TARGET static void TILE_(K, R, OT)(const uint8_t *w, long bytes, const rounded *x, long blocks,  \
                                       float *y, long outs) {                                        \
        lanes8 sum[OT][R];                                                                           \
        for (int t = 0; t < OT; t++)                                                                 \
            for (int r = 0; r < R; r++) sum[t][r] = (lanes8){0};                                     \
        for (long b = 0; b < blocks; b++) {                                                          \
            _Pragma("GCC unroll 4") for (int t = 0; t < OT; t++) {                                   \
                const uint8_t *p = w + t * bytes + b * block_bytes(K);                               \
                if (b % 3 == 0) __builtin_prefetch(p + OT * bytes);                                  \
                bytes32 numbers = NUMBERS(K, p)  ;                                                  \
                float scale = half_at(p), least = K == Q4_1 ? half_at(p + 2) : 0.0f;                 \
                _Pragma("GCC unroll 4") for (int r = 0; r < R; r++) {                                \
                    const rounded *own = x + r * blocks + b;                                         \
                    ints8 whole = DOT(numbers, *(const bytes32 *)own->number, K == Q4_1);            \
                    lanes8 by = EIGHT(scale * own->scale);                                           \
                    sum[t][r] = MULTIPLY_ADD(__builtin_convertvector(whole, lanes8), by, sum[t][r]); \
                    if (K == Q4_1)                                                                   \
                        sum[t][r] = MULTIPLY_ADD(EIGHT(least), EIGHT(own->eighth), sum[t][r]);   \
                }                                                                                    \
            }                                                                                        \
        }                                                                                            \
        for (int r = 0; r < R; r++)                                                                  \
            for (int t = 0; t < OT; t++) y[r * outs + t] = total(sum[t][r]);                         \
    }

#define TILES_OF(K)                                                                                  \
    TILE_OF_BLOCKS(K, 1, 1) TILE_OF_BLOCKS(K, 2, 1) TILE_OF_BLOCKS(K, 3, 1) TILE_OF_BLOCKS(K, 4, 1)  \
    TILE_OF_BLOCKS(K, 1, 4) TILE_OF_BLOCKS(K, 2, 4) TILE_OF_BLOCKS(K, 3, 4) TILE_OF_BLOCKS(K, 4, 4)

TILES_OF(Q8_0) TILES_OF(Q4_0) TILES_OF(Q4_1)

#ifndef WAY_OF_BLOCKS
#define WAY_OF_BLOCKS
typedef struct {
    tile_of_blocks *tile[3][2][4]; /* by kind, one or four outputs, rows */
} way_of_blocks;
#endif

#define OF_KIND(K)                                                                                   \
    {                                                                                                \
        {TILE_(K, 1, 1), TILE_(K, 2, 1), TILE_(K, 3, 1), TILE_(K, 4, 1)},                            \
        {TILE_(K, 1, 4), TILE_(K, 2, 4), TILE_(K, 3, 4), TILE_(K, 4, 4)},                            \
    }

static const way_of_blocks JOIN(of_blocks, WAY) = {{OF_KIND(Q8_0), OF_KIND(Q4_0), OF_KIND(Q4_1)}};

#undef OF_KIND
#undef TILES_OF
#undef TILE_OF_BLOCKS
#undef TILE_
#undef JOIN
#undef JOIN_
#undef WAY
#undef TARGET
#undef DOT
#undef NUMBERS
