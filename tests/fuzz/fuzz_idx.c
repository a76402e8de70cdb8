/* IDX files, plain and gzip: what is accepted has as many bytes as its header says. */
#include <sys/mman.h>
#include <unistd.h>

#include "agent/data/idx.h"
#include "tests/fuzz/fuzz.h"

/* The first byte says how many dimensions are wanted. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hpct_data_idx idx;
    volatile uint8_t sum = 0;
    int rank = size > 0 && (data[0] & 1) ? 3 : 1;
    int fd = memfd_create("idx", MFD_CLOEXEC);
    must(fd >= 0);
    if (size > 1 && write(fd, data + 1, size - 1) != (ssize_t) size - 1)
        abort();
    lseek(fd, 0, SEEK_SET);
    if (hpct_data_idx_read(&idx, fd, rank, "input") != HPCT_OK)
        return 0;
    uint64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= idx.sizes[i];
    for (uint64_t i = 0; i < count; i++)
        sum = (uint8_t) (sum + idx.bytes[i]);
    free(idx.bytes);
    return 0;
}
