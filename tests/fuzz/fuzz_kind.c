/* Fuzz target: the first bytes of a file, as loading a model or weights looks at them. */
#include "base/kind.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t length = size < HPCT_KIND_BYTES ? size : HPCT_KIND_BYTES;
    void *exactly = malloc(length > 0 ? length : 1);
    if (exactly == NULL)
        return 0;
    if (length > 0)
        memcpy(exactly, data, length);
    hpct_kind kind = hpct_kind_of(exactly, length);
    if ((hpct_kind_says(kind) == NULL) != (kind == HPCT_KIND_UNKNOWN))
        abort();
    free(exactly);
    return 0;
}
