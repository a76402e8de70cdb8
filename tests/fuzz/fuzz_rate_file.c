/* A file of learning rates: what is taken of it rises by epoch, and is positive. */
#include <math.h>

#include "agent/train/rate_file.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *) data, size);
    hpct_train_rate_file file;
    must(text != NULL);
    if (hpct_train_rate_file_parse(&file, text, "rates") == HPCT_OK) {
        for (size_t i = 0; i < file.count; i++) {
            const hpct_train_rate_line *line = &file.lines[i];
            if (line->epoch < 0 || !(line->rate > 0) || !isfinite(line->rate) ||
                (i > 0 && line->epoch <= line[-1].epoch) ||
                hpct_train_rate_file_at(&file, line->epoch) != line->rate)
                abort();
        }
        free(file.lines);
    }
    free(text);
    return 0;
}
