/* The losses of nn/backend/ref, in pieces on all threads. The pieces depend on the call only, and
 * their sums are added in order: results are bitwise independent of the number of threads. */
#include "nn/backend/cpu/cpu.h"

#include "nn/backend/cpu/loops.h"
#include "nn/backend/ref/ref.h"

#define PIECE_OUTPUTS 4096 /* about 0.1 ms: smaller pieces do not pay */
#define MAX_PIECES 64

typedef struct pieces {
    const hpct_backend_loss_call *call;
    int samples; /* per piece, except the last */
    hpct_backend_batch_sums sums[MAX_PIECES];
} pieces;

static void piece(size_t index, void *arg)
{
    pieces *p = arg;
    hpct_backend_loss_call call = *p->call;
    int first = (int) index * p->samples, left = call.n - first;
    size_t at = (size_t) first * (size_t) call.classes;
    call.n = left < p->samples ? left : p->samples;
    call.src += at;
    call.sums = &p->sums[index];
    if (call.labels != NULL)
        call.labels += first;
    if (call.targets != NULL)
        call.targets += at;
    if (call.diff_src != NULL)
        call.diff_src += at;
    hpct_ref_loss(&call);
}

hpct_status hpct_cpu_loss(const hpct_backend_loss_call *call)
{
    int enough = (PIECE_OUTPUTS - 1) / call->classes + 1, even = (call->n - 1) / MAX_PIECES + 1;
    pieces p = {.call = call, .samples = enough > even ? enough : even};
    if (call->n <= p.samples)
        return hpct_ref_loss(call);
    int num = (call->n - 1) / p.samples + 1;
    hpct_cpu_loops_each((size_t) num, piece, &p);
    *call->sums = p.sums[0];
    for (int i = 1; i < num; i++) {
        call->sums->loss += p.sums[i].loss;
        call->sums->correct += p.sums[i].correct;
        call->sums->in_top_k += p.sums[i].in_top_k;
    }
    return HPCT_OK;
}
