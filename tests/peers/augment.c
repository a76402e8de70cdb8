/* tests/peers/augment.c - one operation of augmentation on a picture that another framework has
 * made, with what that has drawn. FOLDER/picture.f32 is read, for mixing other.f32 too; result.f32
 * is left there.
 *
 *   augment FOLDER HEIGHT WIDTH CHANNELS rotation DEGREES 0 | zoom FACTOR 0 | contrast FACTOR 0
 *   augment FOLDER HEIGHT WIDTH CHANNELS translation RIGHT DOWN   parts of width and height
 *   augment FOLDER HEIGHT WIDTH CHANNELS NUMBER A B     that of RandAugment, with its parameters
 *   augment FOLDER HEIGHT WIDTH CHANNELS mixup SHARE 0 | cutmix SHARE PLACE   prints the share
 *   augment FOLDER HEIGHT WIDTH CHANNELS rand-augment BITS STRENGTH   three; prints them
 *   augment FOLDER 1 1 1 draws NUMBER STRENGTH          prints 4096 draws of an operation */
#include "agent/data/augment.h"
#include "agent/data/colour.h"
#include "agent/data/mix.h"
#include "agent/data/sampler.h"
#include "tests/peers/peers.h"

#define DRAWS 4096
#define OPERATIONS 3

static hpct_data_canvas canvas;
static hpct_data_affine_sampler *sampler;

static float *read_picture(const char *name)
{
    size_t bytes = hpct_data_canvas_floats(&canvas) * sizeof(float);
    float *values = malloc(bytes);
    FILE *file = open_file(name, "rb");
    if (values == NULL)
        exit(HPCT_ERR_INTERNAL);
    read_next(file, values, bytes);
    fclose(file);
    return values;
}

static void move(hpct_data_affine how, float *room)
{
    must(hpct_data_affine_apply(sampler, &how, &canvas, room));
}

static void mix(bool cut, double share, double place)
{
    hpct_data_mixing mixing = {.cut = cut, .share = (float) share};
    float *other = read_picture("other.f32");
    if (cut)
        hpct_data_mixing_place(&mixing, place, place, canvas.height, canvas.width);
    hpct_data_mixing_apply(&mixing, &canvas, other);
    printf("%.9g\n", (double) mixing.share);
    free(other);
}

static void rand_augment(uint64_t bits, double strength, float *room)
{
    hpct_data_rand_draw draws[OPERATIONS];
    hpct_data_rand_augment_draw(bits, OPERATIONS, strength, draws);
    for (int i = 0; i < OPERATIONS; i++) {
        printf("%d %.17g %.17g\n", (int) draws[i].operation, draws[i].a, draws[i].b);
        must(hpct_data_rand_augment_apply(sampler, &draws[i], &canvas, room));
    }
}

static void print_draws(int operation, double strength)
{
    for (uint32_t i = 0; i < DRAWS; i++) {
        hpct_data_rand_draw draw = hpct_data_rand_draw_for(
            hpct_data_sample_bits(1, 2, i), (hpct_data_rand_operation) operation, strength);
        printf("%.9g %.9g\n", draw.a, draw.b);
    }
}

static void apply(const char *name, double a, double b, float *room)
{
    if (strcmp(name, "rotation") == 0)
        move(hpct_data_affine_rotation(a, canvas.height, canvas.width), room);
    else if (strcmp(name, "zoom") == 0)
        move(hpct_data_affine_zoom(a, canvas.height, canvas.width), room);
    else if (strcmp(name, "translation") == 0)
        move(hpct_data_affine_translation(a * canvas.width, b * canvas.height), room);
    else if (strcmp(name, "contrast") == 0)
        hpct_data_colour_contrast(&canvas, a);
    else if (strcmp(name, "mixup") == 0 || strcmp(name, "cutmix") == 0)
        mix(name[0] == 'c', a, b);
    else if (strcmp(name, "rand-augment") == 0)
        rand_augment((uint64_t) a, b, room);
    else
        must(hpct_data_rand_augment_apply(
            sampler, &(hpct_data_rand_draw){(hpct_data_rand_operation) atoi(name), a, b}, &canvas,
            room));
}

int main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "usage: augment FOLDER HEIGHT WIDTH CHANNELS OPERATION A B\n");
        return HPCT_ERR_USAGE;
    }
    folder = argv[1];
    if (strcmp(argv[5], "draws") == 0) {
        print_draws(atoi(argv[6]), atof(argv[7]));
        return 0;
    }
    canvas = (hpct_data_canvas){NULL, atoi(argv[2]), atoi(argv[3]), atoi(argv[4])};
    canvas.values = read_picture("picture.f32");
    float *room = read_picture("picture.f32");
    must(hpct_data_affine_sampler_new(&sampler));
    apply(argv[5], atof(argv[6]), atof(argv[7]), room);
    write_file("result.f32", canvas.values, hpct_data_canvas_floats(&canvas) * sizeof(float));
    hpct_data_affine_sampler_free(sampler);
    free(canvas.values);
    free(room);
    return 0;
}
