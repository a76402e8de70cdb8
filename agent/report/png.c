/* The only user of librsvg and cairo. They bring some forty libraries along: loaded with dlopen. */
#include "agent/report/png.h"

#include "base/status.h"
#include "config.h"

#include <stdbool.h>

#ifdef HAVE_LIBRSVG
#include <dlfcn.h>
#include <librsvg/rsvg.h>
#include <stddef.h>

#define RSVG "librsvg-2.so.2"
#define CAIRO "libcairo.so.2"
#define GOBJECT "libgobject-2.0.so.0"
#define SCALE 2.0

#define FUNCTIONS(X)                                                                               \
    X(RSVG, rsvg_handle_new_from_data)                                                             \
    X(RSVG, rsvg_handle_get_intrinsic_size_in_pixels)                                              \
    X(RSVG, rsvg_handle_render_document)                                                           \
    X(GOBJECT, g_object_unref)                                                                     \
    X(CAIRO, cairo_image_surface_create)                                                           \
    X(CAIRO, cairo_surface_destroy)                                                                \
    X(CAIRO, cairo_surface_write_to_png_stream)                                                    \
    X(CAIRO, cairo_create)                                                                         \
    X(CAIRO, cairo_destroy)                                                                        \
    X(CAIRO, cairo_scale)                                                                          \
    X(CAIRO, cairo_status)

static struct {
#define MEMBER(library, name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} lib;

static hpct_status load(void)
{
    const struct {
        const char *library, *name;
        size_t place;
    } functions[] = {
#define ROW(library, name) {library, #name, offsetof(__typeof__(lib), name)},
        FUNCTIONS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *handle = dlopen(functions[i].library, RTLD_NOW | RTLD_LOCAL);
        void *found = handle != NULL ? dlsym(handle, functions[i].name) : NULL;
        if (found == NULL)
            return hpct_fail(
                HPCT_ERR_CONFIG,
                "PNG needs %s on this machine (Debian: librsvg2-2): install it, or use "
                "--format svg",
                functions[i].library);
        *(void **) (void *) ((char *) &lib + functions[i].place) = found;
    }
    return HPCT_OK;
}

hpct_status hpct_report_png_check(void)
{
    return load();
}

static cairo_status_t put(void *out, const unsigned char *data, unsigned int bytes)
{
    return fwrite(data, 1, bytes, out) == bytes ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static bool draw(FILE *out, RsvgHandle *picture, double width, double height)
{
    cairo_surface_t *surface = lib.cairo_image_surface_create(
        CAIRO_FORMAT_ARGB32, (int) (SCALE * width), (int) (SCALE * height));
    cairo_t *cairo = lib.cairo_create(surface);
    const RsvgRectangle all = {0, 0, width, height};
    lib.cairo_scale(cairo, SCALE, SCALE);
    bool drawn = lib.rsvg_handle_render_document(picture, cairo, &all, NULL) &&
                 lib.cairo_status(cairo) == CAIRO_STATUS_SUCCESS &&
                 lib.cairo_surface_write_to_png_stream(surface, put, out) == CAIRO_STATUS_SUCCESS;
    lib.cairo_destroy(cairo);
    lib.cairo_surface_destroy(surface);
    return drawn;
}

hpct_status hpct_report_write_png(FILE *out, const char *svg, size_t size)
{
    double width = 0, height = 0;
    HPCT_TRY(load());
    RsvgHandle *picture = lib.rsvg_handle_new_from_data((const guint8 *) svg, size, NULL);
    bool drawn = picture != NULL &&
                 lib.rsvg_handle_get_intrinsic_size_in_pixels(picture, &width, &height) &&
                 draw(out, picture, width, height);
    if (picture != NULL)
        lib.g_object_unref(picture);
    return drawn ? HPCT_OK : hpct_fail(HPCT_ERR_INTERNAL, "librsvg could not draw the picture");
}

#else

hpct_status hpct_report_png_check(void)
{
    return hpct_fail(HPCT_ERR_CONFIG,
                     "PNG cannot be written: hpc-train was built without librsvg (librsvg2-dev, "
                     "librsvg2-devel); use --format svg");
}

hpct_status hpct_report_write_png(FILE *out, const char *svg, size_t size)
{
    (void) out;
    (void) svg;
    (void) size;
    return hpct_report_png_check();
}

#endif
