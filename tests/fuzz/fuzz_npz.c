/* .npz archives, read from memory. */
#include "agent/data/npz.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hpct_dataset dataset = {0};
    volatile int sum = 0;
    struct archive *archive = hpct_data_npz_new_reader();
    must(archive != NULL);
    if (archive_read_open_memory(archive, data, size) == ARCHIVE_OK &&
        hpct_data_npz_read(&dataset, archive, "input", HPCT_TRAIN) == HPCT_OK) {
        for (size_t i = 0; i < dataset.size * dataset.elements; i++)
            sum += dataset.pixels[i];
        for (size_t i = 0; i < dataset.size; i++)
            sum += dataset.labels[i] < 0;
    }
    free(dataset.pixels);
    free(dataset.labels);
    free(dataset.path);
    archive_read_free(archive);
    (void) sum; /* each byte was read */
    return 0;
}
