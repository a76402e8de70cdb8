/* Pictures: the codec that claims the first bytes reads them. */
#include "agent/data/picture.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static const hpct_codec *const codecs[] = {&hpct_codec_jpeg, &hpct_codec_png};
#define NUM_CODECS (sizeof codecs / sizeof codecs[0])

struct hpct_decoder {
    void *states[NUM_CODECS]; /* made when first needed */
    uint8_t *pixels;
    size_t room;
};

hpct_status hpct_decoder_new(hpct_decoder **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? HPCT_OK : hpct_fail_memory(sizeof **out);
}

void hpct_decoder_free(hpct_decoder *decoder)
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

hpct_status hpct_decoder_room(hpct_decoder *decoder, const hpct_coded *coded,
                              const hpct_picture *picture, uint8_t **out)
{
    size_t height = (size_t) picture->height, width = (size_t) picture->width;
    *out = NULL;
    if (picture->height < 1 || picture->width < 1 || height > HPCT_PICTURE_MAX_BYTES / 3 / width)
        return hpct_fail(HPCT_ERR_DATA, "%s: a picture of %dx%d cannot be read", coded->name,
                         picture->width, picture->height);
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

/* What else it may be. */
static const char *other_kind(const hpct_coded *coded)
{
    static const struct {
        const char *begins, *kind;
    } kinds[] = {
        {"RIFF", "perhaps a WebP, but no JPEG or PNG"},
        {"GIF8", "a GIF, no JPEG or PNG"},
        {"BM", "perhaps a BMP, but no JPEG or PNG"},
        {"II*", "a TIFF, no JPEG or PNG"},
        {"MM", "perhaps a TIFF, but no JPEG or PNG"},
        {"version https://git-lfs", "a pointer of Git LFS, not the picture (git lfs pull gets it)"},
        {"<", "HTML or XML, not a picture: its download went wrong"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t length = strlen(kinds[i].begins);
        if (coded->num_bytes >= length && memcmp(coded->bytes, kinds[i].begins, length) == 0)
            return kinds[i].kind;
    }
    return coded->num_bytes == 0 ? "empty" : "neither a JPEG nor a PNG";
}

static hpct_status find_codec(hpct_decoder *decoder, const hpct_coded *coded, size_t *found)
{
    for (size_t i = 0; i < NUM_CODECS; i++) {
        if (!codecs[i]->claims(coded->bytes, coded->num_bytes))
            continue;
        *found = i;
        return decoder->states[i] != NULL ? HPCT_OK : codecs[i]->make(&decoder->states[i]);
    }
    return hpct_fail(HPCT_ERR_DATA, "%s: it is %s", coded->name, other_kind(coded));
}

hpct_status hpct_picture_size(hpct_decoder *decoder, const hpct_coded *coded, int size[3])
{
    size_t codec;
    hpct_picture picture;
    hpct_status status = find_codec(decoder, coded, &codec);
    if (status == HPCT_OK)
        status = codecs[codec]->read(decoder->states[codec], NULL, coded, 3, &picture);
    if (status != HPCT_OK)
        return status;
    size[0] = picture.height;
    size[1] = picture.width;
    size[2] = picture.channels;
    return HPCT_OK;
}

hpct_status hpct_picture_decode(hpct_decoder *decoder, const hpct_coded *coded, int channels,
                                hpct_picture *out)
{
    size_t codec;
    hpct_status status = find_codec(decoder, coded, &codec);
    if (status == HPCT_OK)
        status = codecs[codec]->read(decoder->states[codec], decoder, coded, channels, out);
    return status;
}
