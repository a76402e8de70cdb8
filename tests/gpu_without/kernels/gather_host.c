/* One picture of a batch, by hpct_data_resize. */
#include "tests/gpu_without/kernels/gather_host.h"

#include "agent/data/resize.h"

bool gather_host(const hpct_backend_pictures *p, hpct_drawn d, float *to)
{
    size_t bytes = (size_t) p->height * (size_t) p->width * (size_t) p->channels;
    hpct_data_picture picture = {.pixels = (uint8_t *) (uintptr_t) p->pixels + d.index * bytes,
                                 .height = p->height,
                                 .width = p->width,
                                 .channels = p->channels};
    hpct_data_preparation how = {.height = p->to_height,
                                 .width = p->to_width,
                                 .factor = p->factor,
                                 .offset = p->offset,
                                 .flip = d.flip != 0,
                                 .move_y = d.move_y,
                                 .move_x = d.move_x};
    hpct_data_resizer *resizer;
    bool done = hpct_data_resizer_new(&resizer) == HPCT_OK;
    done = done && hpct_data_resize(resizer, &picture, &how, to) == HPCT_OK;
    hpct_data_resizer_free(resizer);
    return done;
}
