/* CIFAR's binary files; the first byte says whether of 10 or 100 classes. */
#include <stdio.h>

#include "agent/data/cifar.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[] = "input";
    hpct_dataset dataset = {.path = path};
    int label_bytes = size > 0 && (data[0] & 1) != 0 ? 1 : 2;
    FILE *file = size > 0 ? fmemopen((void *) (uintptr_t) data, size, "rb") : NULL;
    if (file == NULL)
        return 0;
    if (hpct_data_cifar_read_binary(&dataset, file, label_bytes, "input") == HPCT_OK &&
        dataset.size * ((size_t) label_bytes + HPCT_DATA_CIFAR_BYTES) != size)
        abort();
    fclose(file);
    free(dataset.pixels);
    free(dataset.labels);
    return 0;
}
