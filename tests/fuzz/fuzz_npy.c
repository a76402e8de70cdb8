/* The text of an .npy header, alone: inside a zip a checksum keeps most changes away from it. */
#include "agent/data/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hpct_data_npy header;
    size_t prefix, text;
    if (size >= HPCT_DATA_NPY_PREFIX &&
        hpct_data_npy_read_prefix(data, &prefix, &text, "input") == HPCT_OK &&
        (prefix > HPCT_DATA_NPY_PREFIX || text < 2))
        abort();
    if (hpct_data_npy_read_text(&header, (const char *) data, size, "input") != HPCT_OK)
        return 0;
    if (header.rank > HPCT_DATA_NPY_MAX_RANK || (header.kind != 'u' && header.kind != 'i'))
        abort();
    uint64_t bytes = (uint64_t) header.item_size;
    for (int i = 0; i < header.rank; i++)
        bytes *= header.sizes[i];
    must(bytes == header.bytes);
    return 0;
}
