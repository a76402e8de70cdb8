/* Fuzz target: the headers of a checkpoint's parts, and their tensors joined. Lines in turn: how
 * many bytes of data, and the header of such a part. */
#include "agent/checkpoint/part.h"
#include "agent/checkpoint/tensors.h"
#include "tests/fuzz/fuzz.h"

#define MOST_PARTS 4

/* Every row of every tensor is in one slice, within its part's data. */
static void look(const hpct_ckpt_tensors *tensors, const uint64_t *bytes)
{
    for (size_t i = 0; i < tensors->count; i++) {
        const hpct_ckpt_tensors_whole *whole = &tensors->wholes[i];
        int64_t at = 0, rows = whole->tensor.rank > 0 ? whole->tensor.shape[0] : 1;
        for (size_t k = whole->first; k < whole->first + whole->count; k++) {
            const hpct_ckpt_tensors_slice *slice = &tensors->slices[k];
            int64_t own = slice->tensor->rank > 0 ? slice->tensor->shape[0] : 1;
            if (slice->tensor->begin != at || slice->at > bytes[slice->part])
                abort();
            if (own > 0 && hpct_ckpt_part_row_bytes(slice->tensor) >
                               (bytes[slice->part] - slice->at) / (uint64_t) own)
                abort();
            at += own;
        }
        if (at != rows || hpct_ckpt_tensors_find(tensors, whole->tensor.name) != whole)
            abort();
    }
}

static const char *next_line(const char **at, const char *end, size_t *length)
{
    const char *line = *at, *stop = memchr(line, '\n', (size_t) (end - line));
    *length = (size_t) ((stop != NULL ? stop : end) - line);
    *at = stop != NULL ? stop + 1 : end;
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *) data, *end = at + size;
    hpct_ckpt_part parts[MOST_PARTS] = {{0}};
    uint64_t bytes[MOST_PARTS];
    size_t count = 0, length;
    for (bool good = true; good && count < MOST_PARTS && at < end; count++) {
        char number[24] = "";
        const char *line = next_line(&at, end, &length);
        memcpy(number, line, length < sizeof number - 1 ? length : sizeof number - 1);
        bytes[count] = strtoull(number, NULL, 10) & INT64_MAX;
        line = next_line(&at, end, &length);
        good = hpct_ckpt_part_parse(&parts[count], line, length, bytes[count]) == HPCT_OK;
        if (!good)
            hpct_ckpt_part_free(&parts[count--]);
    }
    hpct_ckpt_tensors tensors;
    if (hpct_ckpt_tensors_join(&tensors, parts, count) == HPCT_OK) {
        look(&tensors, bytes);
        hpct_ckpt_tensors_free(&tensors);
    }
    for (size_t i = 0; i < count; i++)
        hpct_ckpt_part_free(&parts[i]);
    return 0;
}
