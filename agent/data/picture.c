/* Reads a picture by the codec that recognizes its first bytes. */
#include "agent/data/picture.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static const hpct_data_codec *const codecs[] = {&hpct_data_codec_jpeg, &hpct_data_codec_png};
#define NUM_CODECS (sizeof codecs / sizeof codecs[0])

struct hpct_data_decoder {
    void *states[NUM_CODECS]; /* created on first use */
    uint8_t *pixels;
    size_t room;
};

hpct_status hpct_data_decoder_new(hpct_data_decoder **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? HPCT_OK : hpct_fail_memory(sizeof **out);
}

void hpct_data_decoder_free(hpct_data_decoder *decoder)
{
    if (decoder == NULL)
        return;
    for (size_t i = 0; i < NUM_CODECS; i++) {
        if (decoder->states[i] != NULL)
            codecs[i]->destroy(decoder->states[i]);
    }
    free(decoder->pixels);
    free(decoder);
}

hpct_status hpct_data_decoder_room(hpct_data_decoder *decoder, const hpct_data_coded *coded,
                                   const hpct_data_picture *picture, uint8_t **out)
{
    size_t height = (size_t) picture->height, width = (size_t) picture->width;
    *out = NULL;
    if (picture->height < 1 || picture->width < 1 ||
        height > HPCT_DATA_PICTURE_MAX_BYTES / 3 / width)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: a picture of %dx%d cannot be read: make it smaller, up to %d million "
                         "pixels are possible",
                         coded->name, picture->width, picture->height,
                         (int) (HPCT_DATA_PICTURE_MAX_BYTES / 3 / 1000000));
    if (decoder == NULL)
        return HPCT_OK;
    size_t bytes = height * width * (size_t) picture->channels;
    if (bytes > decoder->room) {
        free(decoder->pixels);
        decoder->room = 0;
        decoder->pixels = malloc(bytes);
        if (decoder->pixels == NULL)
            return hpct_fail_memory(bytes);
        decoder->room = bytes;
    }
    *out = decoder->pixels;
    return HPCT_OK;
}

#define CAN_BE_READ ": " HPCT_DATA_PICTURE_FORMATS " can be read"

/* Describes data in none of the formats. */
static const char *other_kind(const hpct_data_coded *coded)
{
    static const struct {
        const char *begins, *kind;
    } kinds[] = {
        {"RIFF", "perhaps a WebP" CAN_BE_READ},
        {"GIF8", "a GIF" CAN_BE_READ},
        {"BM", "perhaps a BMP" CAN_BE_READ},
        {"II*", "a TIFF" CAN_BE_READ},
        {"MM", "perhaps a TIFF" CAN_BE_READ},
        {"version https://git-lfs", "a pointer of Git LFS, not the picture (git lfs pull gets it)"},
        {"<", "HTML or XML, not a picture: its download went wrong"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t length = strlen(kinds[i].begins);
        if (coded->num_bytes >= length && memcmp(coded->bytes, kinds[i].begins, length) == 0)
            return kinds[i].kind;
    }
    return coded->num_bytes == 0 ? "empty" : "of an unknown format" CAN_BE_READ;
}

bool hpct_data_picture_begins(const uint8_t *bytes, size_t num_bytes)
{
    for (size_t i = 0; i < NUM_CODECS; i++) {
        if (codecs[i]->claims(bytes, num_bytes))
            return true;
    }
    return false;
}

static hpct_status find_codec(hpct_data_decoder *decoder, const hpct_data_coded *coded,
                              size_t *found)
{
    for (size_t i = 0; i < NUM_CODECS; i++) {
        if (!codecs[i]->claims(coded->bytes, coded->num_bytes))
            continue;
        *found = i;
        if (codecs[i]->lacks != NULL)
            return hpct_fail(HPCT_ERR_CONFIG, "%s", codecs[i]->lacks);
        bool made = decoder->states[i] != NULL || codecs[i]->make == NULL;
        return made ? HPCT_OK : codecs[i]->make(&decoder->states[i]);
    }
    return hpct_fail(HPCT_ERR_DATA, "%s: it is %s", coded->name, other_kind(coded));
}

hpct_status hpct_data_picture_size(hpct_data_decoder *decoder, const hpct_data_coded *coded,
                                   hpct_data_picture *out)
{
    size_t codec;
    HPCT_TRY(find_codec(decoder, coded, &codec));
    return codecs[codec]->read(decoder->states[codec], NULL, coded, 3, out);
}

hpct_status hpct_data_picture_decode(hpct_data_decoder *decoder, const hpct_data_coded *coded,
                                     int channels, hpct_data_picture *out)
{
    size_t codec;
    HPCT_TRY(find_codec(decoder, coded, &codec));
    return codecs[codec]->read(decoder->states[codec], decoder, coded, channels, out);
}
