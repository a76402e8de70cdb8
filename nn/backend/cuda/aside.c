/* The side stream, and which operations use it. */
#include "nn/backend/cuda/aside.h"

#include "base/status.h"
#include "nn/backend/cuda/tune.h"
#include "nn/backend/without.h"

#include <stdio.h>
#include <string.h>

/* Lowest priority: side work fills gaps of the compute stream, which others wait for. It has its
 * own cuDNN handle, because changing a handle's stream may create streams inside, which is not
 * allowed during capture. */
hpct_status hpct_cuda_open_aside(void)
{
    int least = 0, greatest = 0;
    HPCT_TRY(HPCT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest)));
    HPCT_TRY(HPCT_CUDA(
        cudaStreamCreateWithPriority(&hpct_gpu.aside.stream, cudaStreamNonBlocking, least)));
    HPCT_TRY(HPCT_DNN(cudnnCreate(&hpct_gpu.aside.dnn)));
    HPCT_TRY(HPCT_DNN(cudnnSetStream(hpct_gpu.aside.dnn, hpct_gpu.aside.stream)));
    HPCT_TRY(HPCT_CUDA(cudaEventCreateWithFlags(&hpct_gpu.aside.begin, cudaEventDisableTiming)));
    for (int i = 0; i < 2; i++)
        HPCT_TRY(
            HPCT_CUDA(cudaEventCreateWithFlags(&hpct_gpu.aside.end[i], cudaEventDisableTiming)));
    return HPCT_OK;
}

/* Exchanges both streams and handles. */
static void change_places(void)
{
    cudaStream_t stream = hpct_gpu.stream;
    cudnnHandle_t dnn = hpct_gpu.dnn;
    hpct_gpu.stream = hpct_gpu.aside.stream;
    hpct_gpu.aside.stream = stream;
    hpct_gpu.dnn = hpct_gpu.aside.dnn;
    hpct_gpu.aside.dnn = dnn;
}

hpct_status hpct_cuda_aside(void)
{
    hpct_status status = HPCT_CUDA(cudaEventRecord(hpct_gpu.aside.begin, hpct_gpu.stream));
    if (status == HPCT_OK)
        status = HPCT_CUDA(cudaStreamWaitEvent(hpct_gpu.aside.stream, hpct_gpu.aside.begin, 0));
    change_places();
    return status;
}

/* Also records the end after an error: some of the work may be running. */
hpct_status hpct_cuda_back(hpct_status status)
{
    unsigned last = hpct_gpu.aside.pieces % 2;
    hpct_status ended = HPCT_CUDA(cudaEventRecord(hpct_gpu.aside.end[last], hpct_gpu.stream));
    change_places();
    hpct_gpu.aside.pieces += ended == HPCT_OK;
    hpct_gpu.aside.open += ended == HPCT_OK;
    return status == HPCT_OK ? ended : status;
}

hpct_status hpct_cuda_join(bool but_last)
{
    unsigned kept = but_last && hpct_gpu.aside.open > 0 ? 1 : 0;
    if (hpct_gpu.aside.open <= kept)
        return HPCT_OK;
    hpct_gpu.aside.open = kept;
    unsigned piece = hpct_gpu.aside.pieces - 1 - kept; /* earlier pieces are in the same stream */
    return HPCT_CUDA(cudaStreamWaitEvent(hpct_gpu.stream, hpct_gpu.aside.end[piece % 2], 0));
}

void hpct_cuda_forget_aside(void)
{
    hpct_gpu.aside.open = 0;
}

/* ---- measurement of the benefit ---- */

#define APART ((size_t) 256) /* bytes, alignment of buffers for measuring */
#define GAIN 0.97            /* maximum fraction of the sequential time, to pay for the scratch */

typedef struct trial {
    hpct_op *op;
    hpct_op_call call;
} trial;

static hpct_status run_trial(void *argument)
{
    trial *t = argument;
    HPCT_TRY(t->op->class->backward(t->op, &t->call));
    return hpct_cuda_join(false);
}

static void *take(char **at, size_t bytes)
{
    char *memory = *at;
    *at = memory != NULL ? memory + (bytes + APART - 1) / APART * APART : NULL;
    return memory;
}

/* Seconds of a backward on separate buffers, sequential and with side stream; 0 without memory, or
 * on error. */
static void measure(hpct_op *op, double seconds[2])
{
    const hpct_op_spec *spec = &op->spec;
    size_t n = (size_t) op->build.batch_sizes[0], each = hpct_cuda_value_bytes(op->build.values),
           src = n * hpct_op_src_floats(spec, 0) * each, dst = n * hpct_op_dst_floats(spec) * each;
    size_t all = 2 * src + 2 * dst + op->copies_bytes + op->workspace_bytes +
                 2 * op->scratch_bytes + (7 + 2 * HPCT_OP_MAX_PARAMS) * APART;
    for (int i = 0; i < op->num_params; i++)
        all += 2 * op->param_floats[i] * sizeof(float);
    char *memory = hpct_tune_memory(all), *at = memory;
    float *param[HPCT_OP_MAX_PARAMS], *grad[HPCT_OP_MAX_PARAMS];
    const float *from[] = {take(&at, src)};
    float *to[] = {take(&at, src)};
    trial t = {.op = op,
               .call = {.n = (int) n,
                        .src = from,
                        .diff_src = to,
                        .param = param,
                        .grad = grad,
                        .dst = take(&at, dst),
                        .diff_dst = take(&at, dst),
                        .copies = take(&at, op->copies_bytes),
                        .workspace = take(&at, op->workspace_bytes),
                        .scratch = take(&at, op->scratch_bytes),
                        .scratch_aside = take(&at, op->scratch_bytes),
                        .learning_rate = 0.01F}};
    for (int i = 0; i < op->num_params; i++) {
        param[i] = take(&at, op->param_floats[i] * sizeof(float));
        grad[i] = take(&at, op->param_floats[i] * sizeof(float));
    }
    seconds[0] = seconds[1] = 0;
    for (int aside = 0; aside < 2 && memory != NULL; aside++) {
        op->lingers = aside != 0;
        if (hpct_tune_time(run_trial, &t, 0, &seconds[aside]) != HPCT_OK)
            seconds[aside] = 0;
    }
    op->lingers = false;
    hpct_cuda_forget_aside();
    hpct_tune_release(memory);
}

static hpct_status choose(hpct_op *op, const char *key)
{
    static const char *const ways[] = {"in line", "aside"};
    hpct_choices *choices = NULL;
    double seconds[2];
    hpct_status status = hpct_tune_choices(&choices);
    const char *kept = status == HPCT_OK ? hpct_choices_find(choices, key) : NULL;
    if (status != HPCT_OK || kept != NULL) {
        op->lingers = kept != NULL && strcmp(kept, ways[1]) == 0;
        return status;
    }
    measure(op, seconds);
    if (seconds[0] <= 0 || seconds[1] <= 0)
        return HPCT_OK;
    op->lingers = seconds[1] < GAIN * seconds[0];
    return hpct_choices_keep(choices, key, ways[op->lingers]);
}

hpct_status hpct_cuda_may_linger(hpct_op *op, const char *what)
{
    char key[320];
    if (hpct_without(HPCT_WITHOUT_ASIDE))
        return HPCT_OK;
    snprintf(key, sizeof key, "backward of %s", what);
    hpct_tune_lock();
    hpct_status status = choose(op, key);
    hpct_tune_unlock();
    return status;
}
