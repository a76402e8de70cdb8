/* JPEG, by libjpeg(-turbo) with its defaults (accurate integer DCT, smooth chroma), which are also
 * Pillow's. The only file that uses libjpeg. */
#include "config.h"

#include "agent/data/picture.h"
#include "base/status.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static bool claims(const uint8_t *bytes, size_t num_bytes)
{
    return num_bytes > 2 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

#ifdef HAVE_LIBJPEG

#include <jerror.h>
#include <jpeglib.h>

#define MAX_SCANS 200 /* of a progressive picture, each of which processes the whole picture */

typedef struct jpeg_state {
    struct jpeg_decompress_struct info; /* first: libjpeg passes its address to the callbacks */
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    char why[JMSG_LENGTH_MAX];
    uint8_t *row; /* [width][4], for CMYK pictures */
    size_t row_bytes;
    bool suspect;
} jpeg_state;

static _Noreturn void on_error(j_common_ptr common)
{
    jpeg_state *state = (jpeg_state *) common;
    common->err->format_message(common, state->why);
    longjmp(state->escape, 1);
}

/* Warnings about damage, which libjpeg would fill with grey, are errors; extraneous bytes may be
 * harmless. */
static void on_message(j_common_ptr common, int level)
{
    int code = common->err->msg_code;
    if (level < 0 && code == JWRN_EXTRANEOUS_DATA)
        ((jpeg_state *) common)->suspect = true;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR &&
        code != JWRN_ADOBE_XFORM)
        on_error(common);
}

static void on_progress(j_common_ptr common)
{
    jpeg_state *state = (jpeg_state *) common;
    if (state->info.input_scan_number > MAX_SCANS) {
        snprintf(state->why, sizeof state->why, "more than %d scans", MAX_SCANS);
        longjmp(state->escape, 1);
    }
}

static hpct_status make(void **out)
{
    jpeg_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return hpct_fail_memory(sizeof *state);
    state->info.err = jpeg_std_error(&state->errors);
    state->errors.error_exit = on_error;
    state->errors.emit_message = on_message;
    if (setjmp(state->escape) != 0) {
        hpct_status status = hpct_fail(HPCT_ERR_INTERNAL, "libjpeg: %s", state->why);
        free(state);
        return status;
    }
    jpeg_create_decompress(&state->info);
    state->progress.progress_monitor = on_progress;
    state->info.progress = &state->progress;
    *out = state;
    return HPCT_OK;
}

static void destroy(void *argument)
{
    jpeg_state *state = argument;
    jpeg_destroy_decompress(&state->info);
    free(state->row);
    free(state);
}

/* Adobe's CMYK is inverted: 255 is no ink. */
static void cmyk_to_pixels(const uint8_t *src, int width, int channels, uint8_t *dst)
{
    for (int x = 0; x < width; x++, src += 4, dst += channels) {
        int rgb[3];
        for (int c = 0; c < 3; c++)
            rgb[c] = src[c] * src[3] / 255;
        if (channels == 1) {
            dst[0] = (uint8_t) ((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
            continue;
        }
        for (int c = 0; c < 3; c++)
            dst[c] = (uint8_t) rgb[c];
    }
}

static void read_rows(jpeg_state *state, const hpct_data_picture *out, uint8_t *pixels)
{
    struct jpeg_decompress_struct *info = &state->info;
    size_t stride = (size_t) out->width * (size_t) out->channels;
    bool cmyk = info->out_color_space == JCS_CMYK;
    while (info->output_scanline < info->output_height) {
        uint8_t *first = pixels + info->output_scanline * stride;
        if (cmyk) {
            jpeg_read_scanlines(info, &state->row, 1);
            cmyk_to_pixels(state->row, out->width, out->channels, first);
            continue;
        }
        JSAMPROW rows[8];
        unsigned left = info->output_height - info->output_scanline, count = left < 8 ? left : 8;
        for (unsigned i = 0; i < count; i++)
            rows[i] = first + i * stride;
        jpeg_read_scanlines(info, rows, count);
    }
}

static hpct_status room_for_row(jpeg_state *state, int width)
{
    size_t bytes = (size_t) width * 4;
    if (bytes <= state->row_bytes)
        return HPCT_OK;
    free(state->row);
    state->row = malloc(bytes);
    state->row_bytes = state->row != NULL ? bytes : 0;
    return state->row != NULL ? HPCT_OK : hpct_fail_memory(bytes);
}

/* The part that may longjmp to read's setjmp. */
static hpct_status decode(jpeg_state *state, hpct_data_decoder *decoder,
                          const hpct_data_coded *coded, int channels, hpct_data_picture *out)
{
    struct jpeg_decompress_struct *info = &state->info;
    uint8_t *pixels;
    state->suspect = false;
    jpeg_mem_src(info, coded->bytes, coded->num_bytes);
    jpeg_read_header(info, TRUE);
    *out = (hpct_data_picture){
        .height = (int) info->image_height, .width = (int) info->image_width, .channels = channels};
    hpct_status status = hpct_data_decoder_room(decoder, coded, out, &pixels);
    bool cmyk = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
    if (status == HPCT_OK && pixels != NULL && cmyk)
        status = room_for_row(state, out->width);
    if (pixels == NULL)
        out->channels = info->jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    if (status != HPCT_OK || pixels == NULL) {
        jpeg_abort_decompress(info);
        return status;
    }
    info->out_color_space = cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(info);
    read_rows(state, out, pixels);
    jpeg_finish_decompress(info);
    out->pixels = pixels;
    out->suspect = state->suspect;
    return HPCT_OK;
}

static hpct_status read_picture(void *argument, hpct_data_decoder *decoder,
                                const hpct_data_coded *coded, int channels, hpct_data_picture *out)
{
    jpeg_state *state = argument;
    if (setjmp(state->escape) != 0) {
        jpeg_abort_decompress(&state->info);
        return hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: %s", coded->name, state->why);
    }
    return decode(state, decoder, coded, channels, out);
}

const hpct_data_codec hpct_data_codec_jpeg = {claims, make, destroy, read_picture, NULL};

#else

const hpct_data_codec hpct_data_codec_jpeg = {
    .claims = claims,
    .lacks = "JPEG pictures cannot be read: this hpc-train was built without libjpeg (libjpeg-dev, "
             "libjpeg-turbo-devel)",
};

#endif
