/* tests/fuzz/fuzz.h - what every fuzz target is. */
#ifndef HPCT_TESTS_FUZZ_FUZZ_H
#define HPCT_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What holds for every input. */
static inline void must(bool holds)
{
    if (!holds)
        abort();
}

#endif
