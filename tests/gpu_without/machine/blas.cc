/* cuBLAS and cuBLASLt: products as their manuals define them, column-major. */
#include "tests/gpu_without/machine/numbers.h"
#include "tests/gpu_without/machine/streams.h"

#include <algorithm>
#include <cublas_v2.h>
#include <cublasLt.h>
#include <vector>

using namespace emulated;

namespace
{

constexpr uint64_t MAGIC = 0x6d756c74; /* of an algorithm's first word */
constexpr int ALGORITHMS = 3;

struct blas {
    int device;
    cudaStream_t stream;
    void *workspace;
    size_t bytes;
};

struct description {
    cublasOperation_t a, b;
    cublasLtPointerMode_t mode;
};

struct layout {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t ld;
};

struct preference {
    uint64_t bytes;
};

number number_of(cudaDataType_t type)
{
    switch (type) {
    case CUDA_R_32F:
        return FP32;
    case CUDA_R_16BF:
        return BF16;
    case CUDA_R_16F:
        return FP16;
    default:
        broken("cuBLAS: type %d is not emulated", (int) type);
    }
}

struct matrix {
    const void *at;
    number type;
    size_t ld;
    bool transposed;

    /* What it stands for, [columns][rows]. */
    std::vector<float> load(size_t rows, size_t columns) const
    {
        size_t lines = transposed ? rows : columns, length = transposed ? columns : rows;
        std::vector<float> all(rows * columns), one(length);
        for (size_t line = 0; line < lines; line++) {
            read(at, type, line * ld, length, transposed ? one.data() : &all[line * length]);
            for (size_t i = 0; i < length && transposed; i++)
                all[i * lines + line] = one[i];
        }
        return all;
    }
};

/* d = a b */
struct product {
    matrix a, b;
    void *d;
    number type;
    size_t ld, rows, columns, depth;
    const float *alpha, *beta; /* the device's; NULL: 1 and 0 */

    HPCT_FOR_EACH_CPU void run() const
    {
        std::vector<float> of_a = a.load(rows, depth), of_b = b.load(depth, columns), column(rows);
        for (size_t j = 0; j < columns; j++) {
            std::fill(column.begin(), column.end(), 0.f);
            for (size_t k = 0; k < depth; k++)
                add(rows, of_b[j * depth + k], &of_a[k * rows], column.data());
            for (size_t i = 0; i < rows && alpha != nullptr; i++)
                column[i] = *alpha * column[i] + *beta * read(d, type, j * ld + i);
            write(d, type, j * ld, rows, column.data());
        }
    }
};

void check_place(const void *at, const char *what)
{
    if (device_of(at) != current_device())
        broken("cuBLAS: %s is not in memory of the device", what);
}

void check_aligned(const void *at, const char *what)
{
    check_place(at, what);
    if ((uintptr_t) at % 16 != 0)
        broken("cuBLASLt: %s is not aligned as the preference says", what);
}

bool fits(const layout *l, cublasOperation_t how, size_t rows, size_t columns)
{
    return how == CUBLAS_OP_N ? l->rows == rows && l->columns == columns
                              : l->rows == columns && l->columns == rows;
}

/* What an algorithm wants: none, some, and more of it. */
size_t workspace_of(uint64_t algorithm)
{
    return algorithm == 0 ? 0 : algorithm * 4096 - 256;
}

bool is_known(const cublasLtMatmulAlgo_t *algo, const layout *d)
{
    return algo->data[0] == MAGIC && algo->data[1] < ALGORITHMS && algo->data[2] == d->rows;
}

} // namespace

extern "C" {

const char *cublasGetStatusString(cublasStatus_t)
{
    return "an emulated error";
}

size_t cublasLtGetVersion(void)
{
    return 130000;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = (cublasHandle_t) new blas{current_device(), nullptr, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
}

/* Takes the workspace away. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    blas *b = (blas *) handle;
    b->stream = stream;
    b->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    blas *b = (blas *) handle;
    b->workspace = workspace;
    b->bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType type_a, int lda, const void *b,
                            cudaDataType type_b, int ldb, const void *beta, void *c,
                            cudaDataType type_c, int ldc, cublasComputeType_t, cublasGemmAlgo_t)
{
    turn t;
    blas *h = (blas *) handle;
    if (h->device != current_device())
        broken("cublasGemmEx: a handle of another device");
    if (*(const float *) alpha != 1 || *(const float *) beta != 0)
        broken("cublasGemmEx: other factors are not emulated");
    if (refuses("cublasGemmEx") || is_faulty(h->device))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (h->workspace == nullptr) { /* it would allocate */
        if (!may("cublasGemmEx without a workspace"))
            return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    product p = {{a, number_of(type_a), (size_t) lda, transa != CUBLAS_OP_N},
                 {b, number_of(type_b), (size_t) ldb, transb != CUBLAS_OP_N},
                 c,
                 number_of(type_c),
                 (size_t) ldc,
                 (size_t) m,
                 (size_t) n,
                 (size_t) k,
                 nullptr,
                 nullptr};
    check_place(a, "a");
    check_place(b, "b");
    check_place(c, "c");
    void *workspace = h->workspace;
    size_t bytes = workspace != nullptr ? 4096 : 0;
    enqueue(h->stream, with_workspace(workspace, bytes, [p] { p.run(); }));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = (cublasLtHandle_t) new blas{current_device(), nullptr, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t,
                                        cudaDataType_t)
{
    *made = (cublasLtMatmulDesc_t) new description{CUBLAS_OP_N, CUBLAS_OP_N,
                                                   CUBLASLT_POINTER_MODE_HOST};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    delete (description *) d;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t what,
                                              const void *value, size_t size)
{
    description *d = (description *) desc;
    void *to = nullptr;
    size_t room = 0;
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        to = &d->a, room = sizeof d->a;
        break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
        to = &d->b, room = sizeof d->b;
        break;
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
        to = &d->mode, room = sizeof d->mode;
        break;
    default:
        broken("cuBLASLt: attribute %d is not emulated", (int) what);
    }
    if (size != room)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    if (ld < (int64_t) rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *made = (cublasLtMatrixLayout_t) new layout{type, rows, columns, ld};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    delete (layout *) l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made)
{
    *made = (cublasLtMatmulPreference_t) new preference{0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    delete (preference *) p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void *value, size_t size)
{
    if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && size == sizeof(uint64_t))
        memcpy(&((preference *) p)->bytes, value, size);
    return size == sizeof(uint64_t) || size == sizeof(uint32_t) ? CUBLAS_STATUS_SUCCESS
                                                                : CUBLAS_STATUS_INVALID_VALUE;
}

/* Odd depths of 16-bit numbers have no algorithm, as with the library's alignments. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t p, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    const layout *first = (const layout *) a, *result = (const layout *) d;
    *count = 0;
    if (first->type != CUDA_R_32F && first->ld % 2 != 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (uint64_t i = 0; i < ALGORITHMS && *count < most; i++) {
        if (workspace_of(i) > ((preference *) p)->bytes)
            continue;
        cublasLtMatmulHeuristicResult_t *r = &results[(*count)++];
        *r = {};
        r->algo.data[0] = MAGIC;
        r->algo.data[1] = i;
        r->algo.data[2] = result->rows;
        r->workspaceSize = workspace_of(i);
        r->state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    *result = {};
    if (!is_known(algo, (const layout *) d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    result->workspaceSize = workspace_of(algo->data[1]);
    result->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t layout_a, const void *b,
                              cublasLtMatrixLayout_t layout_b, const void *beta, const void *c,
                              cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes,
                              cudaStream_t stream)
{
    turn t;
    count_library();
    const description *how = (const description *) desc;
    const layout *la = (const layout *) layout_a, *lb = (const layout *) layout_b,
                 *ld = (const layout *) layout_d;
    if (((blas *) handle)->device != current_device() || stream->device != current_device())
        broken("cublasLtMatmul: a handle or stream of another device");
    if (refuses("cublasLtMatmul") || is_faulty(stream->device))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    size_t rows = ld->rows, columns = ld->columns,
           depth = how->a == CUBLAS_OP_N ? la->columns : la->rows;
    bool by_device = how->mode == CUBLASLT_POINTER_MODE_DEVICE;
    if (by_device) {
        check_place(alpha, "alpha");
        check_place(beta, "beta");
    } else if (*(const float *) alpha != 1 || *(const float *) beta != 0) {
        broken("cublasLtMatmul: other factors of the host are not emulated");
    }
    if (by_device && c != d)
        broken("cublasLtMatmul: what is added to is not what is written");
    if (!is_known(algo, ld) || bytes < workspace_of(algo->data[1]) ||
        !fits(la, how->a, rows, depth) || !fits(lb, how->b, depth, columns))
        return CUBLAS_STATUS_INVALID_VALUE;
    check_aligned(a, "a");
    check_aligned(b, "b");
    check_aligned(d, "d");
    product p = {{a, number_of(la->type), (size_t) la->ld, how->a != CUBLAS_OP_N},
                 {b, number_of(lb->type), (size_t) lb->ld, how->b != CUBLAS_OP_N},
                 d,
                 number_of(ld->type),
                 (size_t) ld->ld,
                 rows,
                 columns,
                 depth,
                 by_device ? (const float *) alpha : nullptr,
                 by_device ? (const float *) beta : nullptr};
    size_t used = workspace_of(algo->data[1]);
    if (used > 0)
        check_place(workspace, "the workspace");
    size_t traffic = rows * depth * bytes_of(p.a.type) + depth * columns * bytes_of(p.b.type) +
                     rows * columns * bytes_of(p.type) * (by_device ? 2 : 1);
    enqueue(stream, with_workspace(workspace, used, [p, traffic] {
                count_traffic("product", traffic);
                p.run();
            }));
    return CUBLAS_STATUS_SUCCESS;
}
}
