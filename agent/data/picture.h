/* agent/data/picture.h - one JPEG or PNG in memory, decoded to bytes [height][width][channels].
 * Which of the two it is, its first bytes say. Knows no files and no data sets. */
#ifndef HPCT_DATA_PICTURE_H
#define HPCT_DATA_PICTURE_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_PICTURE_MAX_BYTES ((uint64_t) 1 << 26) /* decoded */

/* A picture as it was stored; `name` is for messages. */
typedef struct hpct_coded {
    const uint8_t *bytes;
    size_t num_bytes;
    const char *name;
} hpct_coded;

typedef struct hpct_picture {
    const uint8_t *pixels; /* [height][width][channels] */
    int height, width, channels;
} hpct_picture;

/* What one thread needs to decode, used again from picture to picture. */
typedef struct hpct_decoder hpct_decoder;
hpct_status hpct_decoder_new(hpct_decoder **out);
void hpct_decoder_free(hpct_decoder *decoder);

/* Height, width and channels as stored (1: grey, else 3), from the header alone. HPCT_ERR_DATA,
 * naming the picture, for what is neither JPEG nor PNG, is damaged, or is too large;
 * HPCT_ERR_CONFIG where this build cannot read it. */
hpct_status hpct_picture_size(hpct_decoder *decoder, const hpct_coded *coded, int size[3]);

/* Decodes to 3 channels (RGB; grey is repeated, transparency dropped) or 1 (grey: the JPEG's
 * luminance, or 0.299 R + 0.587 G + 0.114 B), 16 bits cut to 8. The pixels stay valid until the
 * decoder is used again. Errors as above; a picture whose end is missing is damaged. */
hpct_status hpct_picture_decode(hpct_decoder *decoder, const hpct_coded *coded, int channels,
                                hpct_picture *out);

/* ---- the two kinds ---- */

/* A kind of picture: `make` allocates what is kept between pictures; `read` fills out's sizes, and
 * its pixels with room from `decoder`; where that is NULL, channels are those that are stored. */
typedef struct hpct_codec {
    bool (*claims)(const uint8_t *bytes, size_t num_bytes);
    hpct_status (*make)(void **state);
    void (*destroy)(void *state);
    hpct_status (*read)(void *state, hpct_decoder *decoder, const hpct_coded *coded, int channels,
                        hpct_picture *out);
} hpct_codec;

extern const hpct_codec hpct_codec_jpeg;
extern const hpct_codec hpct_codec_png;

/* Room for a picture of this size; HPCT_ERR_DATA when it would be empty or too large. *out is NULL
 * when `decoder` is. */
hpct_status hpct_decoder_room(hpct_decoder *decoder, const hpct_coded *coded,
                              const hpct_picture *picture, uint8_t **out);

#endif
