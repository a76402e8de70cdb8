/* JPEG and PNG: what is accepted has all of its pixels. */
#include <stdint.h>
#include <stdlib.h>

#include "agent/data/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hpct_decoder *decoder; /* kept, as the pipeline keeps it */
    hpct_coded coded = {data, size, "input"};
    hpct_picture picture;
    volatile int sum = 0;
    int shape[3];
    if (decoder == NULL && hpct_decoder_new(&decoder) != HPCT_OK)
        abort();
    /* Large ones take long without telling more. */
    if (hpct_picture_size(decoder, &coded, shape) != HPCT_OK ||
        shape[0] * (int64_t) shape[1] > 10000)
        return 0;
    if (shape[2] != 1 && shape[2] != 3)
        abort();
    for (int channels = 1; channels <= 3; channels += 2) {
        if (hpct_picture_decode(decoder, &coded, channels, &picture) != HPCT_OK)
            continue;
        if (picture.height != shape[0] || picture.width != shape[1])
            abort();
        for (int i = 0; i < picture.height * picture.width * channels; i++)
            sum += picture.pixels[i];
    }
    (void) sum; /* each byte was read */
    return 0;
}
