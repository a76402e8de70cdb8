/* A matrix product for cuBLASLt, which is column-major: a row-major matrix is its transpose, so it
 * computes d^T = b^T a^T.
 *
 * Split-K partial sums are added in fp32 in a fixed order. Factors are host constants, which a
 * captured step may keep, or in device memory, read at each replay. */
#include "nn/backend/cuda/product.h"

#include "base/status.h"
#include "nn/backend/cuda/buffers.h"
#include "nn/backend/cuda/tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 16u /* bytes, of all matrices */
#define MEASURED 6    /* algorithms, at most */
#define ALGORITHM_WORDS (sizeof((cublasLtMatmulAlgo_t *) NULL)->data / sizeof(uint64_t))

struct hpct_cuda_lt_product {
    hpct_cuda_lt_spec spec;
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t first, second, result; /* b^T, a^T, d^T */
    cublasLtMatmulHeuristicResult_t best;
    bool plain; /* no algorithm: uses cuBLAS, which supports everything */
};

static hpct_status set(hpct_cuda_lt_product *p, cublasLtMatmulDescAttributes_t what,
                       const void *value, size_t size)
{
    return HPCT_CUDA_BLAS(cublasLtMatmulDescSetAttribute(p->description, what, value, size));
}

/* Layout of a row-major matrix rows x columns. */
static hpct_status make_layout(cublasLtMatrixLayout_t *out, cudaDataType_t type, size_t rows,
                               size_t columns)
{
    return HPCT_CUDA_BLAS(cublasLtMatrixLayoutCreate(out, type, columns, rows, (int64_t) columns));
}

static hpct_status describe(hpct_cuda_lt_product *p)
{
    const hpct_cuda_lt_spec *s = &p->spec;
    cublasOperation_t first = s->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                      second = s->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t compute =
        s->in == CUDA_R_32F ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    HPCT_TRY(HPCT_CUDA_BLAS(cublasLtMatmulDescCreate(&p->description, compute, CUDA_R_32F)));
    HPCT_TRY(set(p, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
    HPCT_TRY(set(p, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
    if (s->update) {
        const cublasLtPointerMode_t mode = CUBLASLT_POINTER_MODE_DEVICE;
        HPCT_TRY(set(p, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode));
    }
    HPCT_TRY(make_layout(&p->first, s->in, s->b_transposed ? s->columns : s->depth,
                         s->b_transposed ? s->depth : s->columns));
    HPCT_TRY(make_layout(&p->second, s->in, s->a_transposed ? s->depth : s->rows,
                         s->a_transposed ? s->rows : s->depth));
    return make_layout(&p->result, s->out, s->rows, s->columns);
}

static hpct_status prefer(cublasLtMatmulPreference_t preference,
                          cublasLtMatmulPreferenceAttributes_t what, const void *value, size_t size)
{
    return HPCT_CUDA_BLAS(cublasLtMatmulPreferenceSetAttribute(preference, what, value, size));
}

static hpct_status make_preference(cublasLtMatmulPreference_t *out, size_t workspace)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint32_t alignment = ALIGNMENT, reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint64_t bytes = workspace;
    HPCT_TRY(HPCT_CUDA_BLAS(cublasLtMatmulPreferenceCreate(out)));
    HPCT_TRY(prefer(*out, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
    HPCT_TRY(
        prefer(*out, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction));
    for (int i = 0; i < 4; i++)
        HPCT_TRY(prefer(*out, alignments[i], &alignment, sizeof alignment));
    return HPCT_OK;
}

/* The library's candidates, most promising first. */
static hpct_status propose(const hpct_cuda_lt_product *p, cublasLtMatmulHeuristicResult_t *results,
                           int *count)
{
    cublasLtMatmulPreference_t preference = NULL;
    size_t limit = 0;
    hpct_status status = hpct_cuda_tune_workspace_limit(&limit);
    if (status == HPCT_OK)
        status = make_preference(&preference, limit);
    *count = 0;
    if (status == HPCT_OK &&
        cublasLtMatmulAlgoGetHeuristic(hpct_cuda_gpu.lt, p->description, p->first, p->second,
                                       p->result, p->result, preference, MEASURED, results,
                                       count) != CUBLAS_STATUS_SUCCESS)
        *count = 0;
    if (preference != NULL)
        cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

static hpct_status multiply(const hpct_cuda_lt_product *p,
                            const cublasLtMatmulHeuristicResult_t *how, const void *a,
                            const void *b, void *d, void *workspace)
{
    static const float one = 1, zero = 0;
    const float *alpha = p->spec.update ? &hpct_cuda_gpu.now->minus_rate : &one,
                *beta = p->spec.update ? &hpct_cuda_gpu.now->one : &zero;
    return HPCT_CUDA_BLAS(cublasLtMatmul(hpct_cuda_gpu.lt, p->description, alpha, b, p->first, a,
                                         p->second, beta, d, p->result, d, p->result, &how->algo,
                                         workspace, how->workspaceSize, hpct_cuda_gpu.stream));
}

typedef struct trial {
    const hpct_cuda_lt_product *product;
    const cublasLtMatmulHeuristicResult_t *how;
    char *a, *b, *d, *workspace;
} trial;

static hpct_status run_trial(void *argument)
{
    const trial *t = argument;
    return multiply(t->product, t->how, t->a, t->b, t->d, t->workspace);
}

static size_t bytes_of(cudaDataType_t type, size_t count)
{
    return hpct_cuda_align_up(count * (type == CUDA_R_32F ? 4 : 2));
}

/* Times all candidates on separate buffers; *best: the fastest, -1 if none runs. Without memory the
 * first one is used unmeasured: *timed is false. */
static hpct_status measure(hpct_cuda_lt_product *p, const cublasLtMatmulHeuristicResult_t *results,
                           int count, int *best, bool *timed)
{
    const hpct_cuda_lt_spec *s = &p->spec;
    size_t a = bytes_of(s->in, s->rows * s->depth), b = bytes_of(s->in, s->depth * s->columns),
           d = bytes_of(s->out, s->rows * s->columns), workspace = 0;
    double least = 0;
    for (int i = 0; i < count; i++)
        workspace = results[i].workspaceSize > workspace ? results[i].workspaceSize : workspace;
    char *memory = hpct_cuda_tune_memory(a + b + d + workspace);
    *timed = memory != NULL;
    *best = *timed ? -1 : 0;
    /* cuBLASLt skips products with factor 0 */
    hpct_status status = s->update ? hpct_cuda_set_rate(0.01F) : HPCT_OK;
    for (int i = 0; i < count && *timed && status == HPCT_OK; i++) {
        double seconds = 0;
        trial t = {.product = p,
                   .how = &results[i],
                   .a = memory,
                   .b = memory + a,
                   .d = memory + a + b,
                   .workspace = memory + a + b + d};
        if (results[i].state == CUBLAS_STATUS_SUCCESS &&
            hpct_cuda_tune_time(run_trial, &t, least, &seconds) == HPCT_OK &&
            (*best < 0 || seconds < least)) {
            *best = i;
            least = seconds;
        }
    }
    hpct_cuda_tune_release(memory);
    return status;
}

/* ---- kept choices: the words of an algorithm, valid for the same library version ---- */

static void write_key(const hpct_cuda_lt_spec *s, char *key, size_t size)
{
    snprintf(key, size, "product %zux%zux%zu %s%s types %d %d%s", s->rows, s->columns, s->depth,
             s->a_transposed ? "t" : "n", s->b_transposed ? "t" : "n", (int) s->in, (int) s->out,
             s->update ? " update" : "");
}

static bool take_kept(hpct_cuda_lt_product *p, const char *kept, size_t limit)
{
    cublasLtMatmulHeuristicResult_t found;
    cublasLtMatmulAlgo_t algorithm = {{0}};
    int used = 0;
    for (size_t i = 0; i < ALGORITHM_WORDS; i++, kept += used) {
        if (kept == NULL || sscanf(kept, " %" SCNx64 "%n", &algorithm.data[i], &used) != 1)
            return false;
    }
    if (cublasLtMatmulAlgoCheck(hpct_cuda_gpu.lt, p->description, p->first, p->second, p->result,
                                p->result, &algorithm, &found) != CUBLAS_STATUS_SUCCESS ||
        found.state != CUBLAS_STATUS_SUCCESS || found.workspaceSize > limit)
        return false;
    p->best = found;
    p->best.algo = algorithm;
    return true;
}

static hpct_status keep(hpct_cuda_choices *choices, const char *key,
                        const cublasLtMatmulAlgo_t *how)
{
    char value[17 * ALGORITHM_WORDS + 1] = "";
    size_t used = 0;
    for (size_t i = 0; i < ALGORITHM_WORDS; i++)
        used += (size_t) snprintf(value + used, sizeof value - used, "%s%" PRIx64, i > 0 ? " " : "",
                                  how->data[i]);
    return hpct_cuda_choices_keep(choices, key, value);
}

static hpct_status choose_alone(hpct_cuda_lt_product *p, bool *any)
{
    cublasLtMatmulHeuristicResult_t results[MEASURED];
    hpct_cuda_choices *choices = NULL;
    char key[192];
    size_t limit = 0;
    int count = 0, best = -1;
    bool timed = false;
    write_key(&p->spec, key, sizeof key);
    HPCT_TRY(hpct_cuda_tune_choices(&choices));
    HPCT_TRY(hpct_cuda_tune_workspace_limit(&limit));
    *any = take_kept(p, hpct_cuda_choices_find(choices, key), limit);
    if (*any)
        return HPCT_OK;
    hpct_status status = propose(p, results, &count);
    if (status == HPCT_OK && count > 0)
        status = measure(p, results, count, &best, &timed);
    *any = status == HPCT_OK && best >= 0;
    if (*any)
        p->best = results[best];
    return *any && timed ? keep(choices, key, &p->best.algo) : status;
}

/* *any: whether there is an algorithm. */
static hpct_status choose(hpct_cuda_lt_product *p, bool *any)
{
    hpct_cuda_tune_lock();
    hpct_status status = choose_alone(p, any);
    hpct_cuda_tune_unlock();
    return status;
}

static hpct_status multiply_plain(const hpct_cuda_lt_product *p, const void *a, const void *b,
                                  void *d)
{
    static const float one = 1, zero = 0;
    const hpct_cuda_lt_spec *s = &p->spec;
    int rows = (int) s->rows, columns = (int) s->columns, depth = (int) s->depth;
    cublasComputeType_t compute =
        s->in == CUDA_R_32F ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return HPCT_CUDA_BLAS(cublasGemmEx(
        hpct_cuda_gpu.blas, s->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        s->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, columns, rows, depth, &one, b, s->in,
        s->b_transposed ? depth : columns, a, s->in, s->a_transposed ? rows : depth, &zero, d,
        s->out, columns, compute, CUBLAS_GEMM_DEFAULT));
}

hpct_status hpct_cuda_lt_make(hpct_cuda_lt_product **out, const hpct_cuda_lt_spec *spec)
{
    bool any = false;
    hpct_cuda_lt_product *p = *out = calloc(1, sizeof *p);
    if (p == NULL)
        return hpct_fail_memory(sizeof *p);
    p->spec = *spec;
    hpct_status status = describe(p);
    if (status == HPCT_OK)
        status = choose(p, &any);
    p->plain = !any && !spec->update;
    if (status != HPCT_OK || !(any || p->plain)) {
        hpct_cuda_lt_free(p);
        *out = NULL;
    }
    return status;
}

void hpct_cuda_lt_free(hpct_cuda_lt_product *p)
{
    if (p == NULL)
        return;
    if (p->result != NULL)
        cublasLtMatrixLayoutDestroy(p->result);
    if (p->second != NULL)
        cublasLtMatrixLayoutDestroy(p->second);
    if (p->first != NULL)
        cublasLtMatrixLayoutDestroy(p->first);
    if (p->description != NULL)
        cublasLtMatmulDescDestroy(p->description);
    free(p);
}

size_t hpct_cuda_lt_workspace_bytes(const hpct_cuda_lt_product *p)
{
    return p->best.workspaceSize;
}

hpct_status hpct_cuda_lt_run(const hpct_cuda_lt_product *p, const void *a, const void *b, void *d,
                             void *workspace)
{
    return p->plain ? multiply_plain(p, a, b, d) : multiply(p, &p->best, a, b, d, workspace);
}
