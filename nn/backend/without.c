#include "nn/backend/without.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    [HPCT_WITHOUT_ADD_NORM] = "add-norm",
    [HPCT_WITHOUT_BIAS] = "bias",
    [HPCT_WITHOUT_POOL] = "pool",
    [HPCT_WITHOUT_SUM] = "sum",
    [HPCT_WITHOUT_FUSED_UPDATE] = "fused-update",
    [HPCT_WITHOUT_SHARED_GRADIENT] = "shared-gradient",
    [HPCT_WITHOUT_SMALL] = "small",
};
#define NUM_NAMES ((int) (sizeof names / sizeof *names))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned without; /* a bit each */

static void read_word(const char *word, size_t length)
{
    for (int i = 0; i < NUM_NAMES; i++) {
        if (length == strlen(names[i]) && strncmp(word, names[i], length) == 0) {
            without |= 1U << i;
            return;
        }
    }
    if (length > 0)
        fprintf(stderr, "hpc-train: HPC_TRAIN_WITHOUT: '%.*s' is none of the ways in doc/gpu.md\n",
                (int) length, word);
}

static void read_list(void)
{
    const char *list = getenv("HPC_TRAIN_WITHOUT");
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ",");
        read_word(list, length);
        list += length + (list[length] == ',');
    }
}

bool hpct_without(hpct_way_out way)
{
    pthread_once(&once, read_list);
    return (without >> way & 1U) != 0;
}
