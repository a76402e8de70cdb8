/* agent/data/picture.h - decodes one encoded picture in memory to bytes [height][width][channels].
 * Its first bytes determine the format. Independent of files and data sets. */
#ifndef HPCT_AGENT_DATA_PICTURE_H
#define HPCT_AGENT_DATA_PICTURE_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_DATA_PICTURE_FORMATS "JPEG and PNG"         /* those supported, for messages */
#define HPCT_DATA_PICTURE_MAX_BYTES ((uint64_t) 1 << 26) /* of a decoded picture */

/* An encoded picture; `name` is for messages. */
typedef struct hpct_data_coded {
    const uint8_t *bytes;
    size_t num_bytes;
    const char *name;
} hpct_data_coded;

typedef struct hpct_data_picture {
    const uint8_t *pixels; /* [height][width][channels] */
    int height, width, channels;
    bool deep;    /* stored with 16 bits per value */
    bool suspect; /* extraneous bytes were skipped: it may be damaged */
} hpct_data_picture;

/* State of one thread's decoder, reused from picture to picture. */
typedef struct hpct_data_decoder hpct_data_decoder;
hpct_status hpct_data_decoder_new(hpct_data_decoder **out);
void hpct_data_decoder_free(hpct_data_decoder *decoder);

/* Whether bytes begin like one of HPCT_DATA_PICTURE_FORMATS. */
#define HPCT_DATA_PICTURE_MAGIC 8
bool hpct_data_picture_begins(const uint8_t *bytes, size_t num_bytes);

/* Reads the header: sizes, and channels as stored (1: grey, else 3), no pixels. HPCT_ERR_DATA,
 * naming the picture, if it is in no such format, is damaged, or is too large; HPCT_ERR_CONFIG
 * if this build lacks the codec. */
hpct_status hpct_data_picture_size(hpct_data_decoder *decoder, const hpct_data_coded *coded,
                                   hpct_data_picture *out);

/* Decodes to 3 channels (RGB; grey is repeated, transparency dropped) or 1 (grey: the JPEG's
 * luminance, or 0.299 R + 0.587 G + 0.114 B), 16 bits cut to 8. The pixels are valid until the
 * decoder is used again. Errors as above; a truncated picture is damaged. */
hpct_status hpct_data_picture_decode(hpct_data_decoder *decoder, const hpct_data_coded *coded,
                                     int channels, hpct_data_picture *out);

/* ---- the codecs ---- */

/* A codec: `make` allocates the state kept between pictures, if there is one; `read` sets out's
 * sizes, and decodes its pixels into room of `decoder`; if that is NULL, it only sets sizes, and
 * channels as stored. */
typedef struct hpct_data_codec {
    bool (*claims)(const uint8_t *bytes, size_t num_bytes);
    hpct_status (*make)(void **state);
    void (*destroy)(void *state);
    hpct_status (*read)(void *state, hpct_data_decoder *decoder, const hpct_data_coded *coded,
                        int channels, hpct_data_picture *out);
    const char *lacks; /* why this build cannot read it; then there is only `claims` */
} hpct_data_codec;

extern const hpct_data_codec hpct_data_codec_jpeg;
extern const hpct_data_codec hpct_data_codec_png;

/* Room for a picture of this size; HPCT_ERR_DATA if it is empty or too large. *out is NULL if
 * `decoder` is NULL. */
hpct_status hpct_data_decoder_room(hpct_data_decoder *decoder, const hpct_data_coded *coded,
                                   const hpct_data_picture *picture, uint8_t **out);

#endif
