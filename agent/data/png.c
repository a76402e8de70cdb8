/* PNG, by libpng. The only file that uses it. */
#include "config.h"

#include "agent/data/picture.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static bool claims(const uint8_t *bytes, size_t num_bytes)
{
    return num_bytes >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

#ifdef HAVE_LIBPNG

#include <png.h>

typedef struct source {
    const hpct_data_coded *coded;
    size_t at;
    char why[128];
} source;

static _Noreturn void on_error(png_structp png, png_const_charp why)
{
    source *from = png_get_error_ptr(png);
    strncpy(from->why, why, sizeof from->why - 1);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp why)
{
    (void) png;
    (void) why;
}

static void read_bytes(png_structp png, png_bytep out, size_t count)
{
    source *from = png_get_io_ptr(png);
    if (count > from->coded->num_bytes - from->at)
        png_error(png, "its end is missing");
    memcpy(out, from->coded->bytes + from->at, count);
    from->at += count;
}

/* Converts to 8 bits of grey or RGB. */
static void set_conversions(png_structp png, png_infop info, int channels)
{
    int type = png_get_color_type(png, info);
    if (png_get_bit_depth(png, info) == 16)
        png_set_strip_16(png);
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    if (type == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(png);
    if (png_get_valid(png, info, PNG_INFO_tRNS) != 0)
        png_set_tRNS_to_alpha(png);
    png_set_strip_alpha(png);
    if (channels == 3 && (type & PNG_COLOR_MASK_COLOR) == 0)
        png_set_gray_to_rgb(png);
    if (channels == 1 && (type & PNG_COLOR_MASK_COLOR) != 0)
        png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
}

/* The part that may longjmp to read_picture's setjmp. */
static hpct_status decode(png_structp png, png_infop info, hpct_data_decoder *decoder,
                          const hpct_data_coded *coded, int channels, hpct_data_picture *out)
{
    uint8_t *pixels;
    png_set_user_limits(png, 1 << 16, 1 << 16);
    /* Ignore gAMA and sRGB: with them libpng would compute grey in linear light. */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(png, info);
    *out = (hpct_data_picture){.height = (int) png_get_image_height(png, info),
                               .width = (int) png_get_image_width(png, info),
                               .channels = channels,
                               .deep = png_get_bit_depth(png, info) == 16};
    hpct_status status = hpct_data_decoder_room(decoder, coded, out, &pixels);
    if (pixels == NULL)
        out->channels = (png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
    if (status != HPCT_OK || pixels == NULL)
        return status;
    set_conversions(png, info, channels);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    size_t stride = (size_t) out->width * (size_t) channels;
    if (png_get_rowbytes(png, info) != stride)
        png_error(png, "its colours are of an unknown form");
    for (int pass = 0; pass < passes; pass++) {
        for (int y = 0; y < out->height; y++)
            png_read_row(png, pixels + (size_t) y * stride, NULL);
    }
    png_read_end(png, NULL);
    out->pixels = pixels;
    return HPCT_OK;
}

static hpct_status read_picture(void *state, hpct_data_decoder *decoder,
                                const hpct_data_coded *coded, int channels, hpct_data_picture *out)
{
    (void) state;
    source from = {.coded = coded};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &from, on_error, on_warning);
    if (png == NULL)
        return hpct_fail_memory(0);
    png_infop info = png_create_info_struct(png);
    volatile hpct_status status = HPCT_OK;
    if (info == NULL) {
        status = hpct_fail_memory(0);
    } else if (setjmp(png_jmpbuf(png)) != 0) {
        status = hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: %s", coded->name, from.why);
    } else {
        png_set_read_fn(png, &from, read_bytes);
        status = decode(png, info, decoder, coded, channels, out);
    }
    png_destroy_read_struct(&png, &info, NULL);
    return status;
}

const hpct_data_codec hpct_data_codec_png = {.claims = claims, .read = read_picture};

#else

const hpct_data_codec hpct_data_codec_png = {
    .claims = claims,
    .lacks = "PNG pictures cannot be read: this hpc-train was built without libpng (libpng-dev, "
             "libpng-devel)",
};

#endif
