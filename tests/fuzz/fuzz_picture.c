/* Encoded pictures: what is accepted has all of its pixels. */
#include "agent/data/picture.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hpct_data_decoder *decoder; /* kept, as the pipeline keeps it */
    hpct_data_coded coded = {data, size, "input"};
    hpct_data_picture picture, header;
    volatile int sum = 0;
    if (decoder == NULL && hpct_data_decoder_new(&decoder) != HPCT_OK)
        abort();
    /* Large ones take long without telling more. */
    if (hpct_data_picture_size(decoder, &coded, &header) != HPCT_OK ||
        header.height * (int64_t) header.width > 10000)
        return 0;
    if (header.channels != 1 && header.channels != 3)
        abort();
    for (int channels = 1; channels <= 3; channels += 2) {
        if (hpct_data_picture_decode(decoder, &coded, channels, &picture) != HPCT_OK)
            continue;
        if (picture.height != header.height || picture.width != header.width)
            abort();
        for (int i = 0; i < picture.height * picture.width * channels; i++)
            sum += picture.pixels[i];
    }
    (void) sum; /* each byte was read */
    return 0;
}
