/* compare_weights A B START (safetensors): prints, over all tensors, the largest norm of B - A,
 * once relative to that of A, once to that of A - START: how far training has moved it. Ends with 1
 * when they do not hold the same tensors. */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct weights {
    json_t *header;
    char *data;
    size_t bytes;
} weights;

static void give_up(const char *path, const char *what)
{
    fprintf(stderr, "%s: %s\n", path, what);
    exit(1);
}

static weights load(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint64_t length;
    weights w;
    if (file == NULL || fread(&length, sizeof length, 1, file) != 1 || length > 1 << 24)
        give_up(path, "cannot be read");
    char *text = malloc(length);
    if (text == NULL || fread(text, 1, length, file) != length)
        give_up(path, "its header cannot be read");
    w.header = json_loadb(text, length, 0, NULL);
    free(text);
    long begin = ftell(file);
    fseek(file, 0, SEEK_END);
    w.bytes = (size_t) (ftell(file) - begin);
    fseek(file, begin, SEEK_SET);
    w.data = malloc(w.bytes);
    if (w.header == NULL || w.data == NULL || fread(w.data, 1, w.bytes, file) != w.bytes)
        give_up(path, "its data cannot be read");
    fclose(file);
    return w;
}

static const float *numbers(const weights *w, const json_t *tensor, size_t *count)
{
    const json_t *offsets = json_object_get(tensor, "data_offsets");
    json_int_t begin = json_integer_value(json_array_get(offsets, 0));
    json_int_t end = json_integer_value(json_array_get(offsets, 1));
    if (begin < 0 || end < begin || (size_t) end > w->bytes)
        give_up("tensor", "lies outside the file");
    *count = (size_t) (end - begin) / sizeof(float);
    return (const float *) (const void *) (w->data + begin);
}

/* |a - b|; of what is not a number, infinity. */
static double distance(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double) a[i] - (b == NULL ? 0 : (double) b[i]);
        sum += d * d;
    }
    return isfinite(sum) ? sqrt(sum) : INFINITY;
}

static double relative(double difference, double to)
{
    return difference == 0 ? 0 : to > 0 && isfinite(to) ? difference / to : INFINITY;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        give_up(argv[0], "give three files");
    weights a = load(argv[1]), b = load(argv[2]), start = load(argv[3]);
    const char *name;
    json_t *tensor;
    double worst = 0, worst_of_way = 0;
    int tensors = 0;
    json_object_foreach (a.header, name, tensor) {
        size_t count_a, count_b, count_start;
        if (strcmp(name, "__metadata__") == 0)
            continue;
        const json_t *other = json_object_get(b.header, name);
        const json_t *before = json_object_get(start.header, name);
        if (other == NULL || before == NULL)
            give_up(name, "is not in all of the files");
        const float *x = numbers(&a, tensor, &count_a), *y = numbers(&b, other, &count_b);
        const float *z = numbers(&start, before, &count_start);
        if (count_a != count_b || count_a != count_start)
            give_up(name, "has different sizes");
        double difference = distance(x, y, count_a);
        worst = fmax(worst, relative(difference, distance(x, NULL, count_a)));
        worst_of_way = fmax(worst_of_way, relative(difference, distance(x, z, count_a)));
        tensors++;
    }
    if (tensors == 0 || json_object_size(a.header) != json_object_size(b.header))
        give_up(argv[2], "does not have the same tensors");
    printf("%.3g %.3g\n", worst, worst_of_way);
    json_decref(a.header);
    json_decref(b.header);
    json_decref(start.header);
    free(a.data);
    free(b.data);
    free(start.data);
    return 0;
}
