/* Pickled batches of CIFAR: what is accepted has a label for each picture. */
#include "agent/data/cifar.h"
#include "agent/data/pickle.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hpct_dataset dataset = {0};
    volatile int sum = 0;
    if (hpct_data_cifar_read_pickle(&dataset, data, size, 10, "input") == HPCT_OK) {
        for (size_t i = 0; i < dataset.size; i++) {
            if (dataset.labels[i] < 0 || dataset.labels[i] > 9)
                abort();
            sum += dataset.pixels[i * HPCT_DATA_CIFAR_BYTES + HPCT_DATA_CIFAR_BYTES - 1];
        }
    }
    free(dataset.pixels);
    free(dataset.labels);
    (void) sum; /* each byte was read */
    return 0;
}
