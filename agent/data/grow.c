/* Reads in pieces, each as long as everything read so far. */
#include "agent/data/grow.h"

#include "base/status.h"

#include <stdlib.h>

#define FIRST_PIECE ((size_t) 1 << 20)

hpct_status hpct_data_read_growing(uint8_t **out, size_t bytes, hpct_data_read_function *read,
                                   void *from)
{
    uint8_t *buffer = NULL;
    size_t filled = 0;
    *out = NULL;
    do {
        size_t piece = filled < FIRST_PIECE ? FIRST_PIECE : filled;
        if (piece > bytes - filled)
            piece = bytes - filled;
        uint8_t *grown = realloc(buffer, filled + piece > 0 ? filled + piece : 1);
        if (grown == NULL) {
            free(buffer);
            return hpct_fail_memory(filled + piece);
        }
        buffer = grown;
        hpct_status status = read(from, buffer + filled, piece);
        if (status != HPCT_OK) {
            free(buffer);
            return status;
        }
        filled += piece;
    } while (filled < bytes);
    *out = buffer;
    return HPCT_OK;
}
