/* The threads of a round, and how they meet. */
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Threads meet a few hundred times a round. They spin for a moment, then sleep: where another program
 * has a core, a thread that spins on keeps its own partner from running (seen: 760 ms a round, not 65). */
typedef struct {
    atomic_int arrived, phase, asleep;
} meeting;

enum { SPINS = 6000 };

typedef struct { /* what one thread works with */
    long me, team;
    float *normed, *unit, *scores; /* unit: the size of each row's state */
    rounded *rounded; /* the rows of the product at hand, where its weight is of blocks */
    meeting *all;
} worker;

static void meet(const worker *t) {
    meeting *m = t->all;
    int phase = atomic_load(&m->phase);
    if (atomic_fetch_add(&m->arrived, 1) + 1 == t->team) {
        atomic_store(&m->arrived, 0);
        atomic_store(&m->phase, phase + 1);
        if (atomic_load(&m->asleep)) syscall(SYS_futex, &m->phase, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
        return;
    }
    for (int spin = 0; atomic_load(&m->phase) == phase; spin++) {
        if (spin < SPINS) {
            RELAX();
            continue;
        }
        atomic_fetch_add(&m->asleep, 1);
        syscall(SYS_futex, &m->phase, FUTEX_WAIT_PRIVATE, phase, 0, 0, 0);
        atomic_fetch_sub(&m->asleep, 1);
    }
}
