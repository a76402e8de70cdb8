#include "nn/backend/without.h"

#include "base/word_list.h"

#include <pthread.h>

static const char *const names[] = {
    [HPCT_BACKEND_WITHOUT_ADD_NORM] = "add-norm",
    [HPCT_BACKEND_WITHOUT_BIAS] = "bias",
    [HPCT_BACKEND_WITHOUT_POOL] = "pool",
    [HPCT_BACKEND_WITHOUT_SUM] = "sum",
    [HPCT_BACKEND_WITHOUT_FUSED_UPDATE] = "fused-update",
    [HPCT_BACKEND_WITHOUT_SHARED_GRADIENT] = "shared-gradient",
    [HPCT_BACKEND_WITHOUT_SMALL] = "small",
    [HPCT_BACKEND_WITHOUT_UNPADDED] = "unpadded",
};
#define NUM_NAMES ((int) (sizeof names / sizeof *names))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned without; /* a bit each */

static void read_list(void)
{
    without = hpct_word_list("HPC_TRAIN_WITHOUT", names, NUM_NAMES, "the ways in doc/gpu.md");
}

bool hpct_backend_without(hpct_backend_way_out way)
{
    pthread_once(&once, read_list);
    return (without >> way & 1U) != 0;
}
