/* Fuzz target: the header of a safetensors file, as loading weights reads it: u64 length, JSON,
 * data. */
#include "nn/file/safetensors.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t length;
    hpct_weights_st_index index;
    if (size < sizeof length)
        return 0;
    memcpy(&length, data, sizeof length);
    if (length > size - sizeof length)
        return 0;
    uint64_t rest = size - sizeof length - length;
    const char *header = (const char *) data + sizeof length;
    if (hpct_weights_st_parse(&index, header, (size_t) length, rest) != HPCT_OK)
        return 0;
    uint64_t at = 0;
    for (size_t i = 0; i < index.count; i++) { /* what parse promises */
        if (index.entries[i].begin != at || index.entries[i].end < at)
            abort();
        at = index.entries[i].end;
    }
    must(at == rest);
    hpct_weights_st_free(&index);
    return 0;
}
