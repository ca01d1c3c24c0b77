/* What a round is told; mirrored field by field in structs.py. */

typedef struct {
    const void *weight;          /* [groups][outs] rows of floats or of blocks, as `kind` says */
    const float *bias;           /* [groups][outs] or NULL */
    const void *narrow, *widen;  /* a lane's change, with a rank: [K][rank][ins], [K][rank][outs], of halves
                                    where the weight is of blocks */
    long outs, ins, groups, rank; /* groups 1: one weight for all lanes; K: each lane its own */
    long kind;
} linear;

typedef struct { /* Plan-KV or SNC: a gated read of a small memory, which each document has its own of */
    linear q, o;
    long heads, in_state_units;
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
    long prompt_tokens, prompt_length, capacity; /* prompt_tokens is the padded length */
    const float *cos, *sin;                               /* [capacity][X] */
} document;

typedef struct { /* one token that a lane of a document takes in, at its place in what that lane writes */
    long lane, document, position;
} row_of;

typedef struct {
    long rows, runs, writing, documents, lanes, width, query_heads, kv_heads, head_width, feed_forward;
    long layers, rank, widest, longest; /* the widest row, and the most that one query scores */
    const document *const *document;    /* [B] */
    const row_of *row;                  /* [rows], by lane, then by document, then by position */
    const long *run;                    /* [runs + 1] where each run of one lane of one document begins */
    const long *lane, *first;           /* [writing] the lanes that have rows, [writing + 1] their first rows */
    float *h;                           /* [rows][width], in and out */
    float *scratch;
    float eps;
    int threads;
} round_of;
