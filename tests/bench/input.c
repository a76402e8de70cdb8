/* How fast pictures become batches: input WHAT FOLDER SIDE BATCH SECONDS prints images per second,
 * and per second of processor time. WHAT is one of
 *   files    read, decoded, resized and scaled for each batch
 *   encoded  kept as JPEG in memory, the rest for each batch
 *   decoded  decoded once, the rest for each batch
 *   rotated, contrasted, rand-augmented, mixed  decoded once, and augmented so, the rest for each
 * batch and what bounds them: decode   libjpeg alone, from memory write    writing batches of
 * floats that are known */
#include "agent/data/augment.h"
#include "agent/data/encoded.h"
#include "agent/data/pipeline.h"
#include "base/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static hpct_data_sampler *sampler;

typedef struct rates {
    double wall, cpu;
} rates;

/* Seconds of processor time of all threads. */
static double cpu_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static hpct_data_batch next_batch(void *from, int64_t number)
{
    (void) from;
    int64_t steps = hpct_data_sampler_steps_per_epoch(sampler);
    return hpct_data_sampler_batch(sampler, number / steps, number % steps);
}

static _Noreturn void give_up(void)
{
    fprintf(stderr, "input: %s\n", hpct_last_error());
    exit(1);
}

static rates run_pipeline(const hpct_dataset *dataset, int batch, double seconds)
{
    hpct_data_pipeline *pipeline;
    hpct_data_input input;
    hpct_data_sampler_options sampling = {
        .samples = dataset->size, .global_batch = batch, .size = 1, .steps_per_epoch = 1000};
    if (hpct_data_sampler_new(&sampler, &sampling) != HPCT_OK)
        give_up();
    const char *threads = getenv("HPC_TRAIN_BENCH_THREADS");
    hpct_data_pipeline_options options = {
        .way = hpct_data_input_from_host(dataset, true),
        .dataset = dataset,
        .batches = INT64_MAX,
        .largest = batch,
        .training = true,
        .threads = threads != NULL ? atoi(threads) : 1,
        .batch = next_batch,
    };
    if (hpct_data_pipeline_open(&pipeline, &options) != HPCT_OK)
        give_up();
    int64_t images = 0;
    double began = 0, now = 0, cpu = 0;
    for (int i = 0; i < 3 || now - began < seconds; i++) {
        if (hpct_data_pipeline_next(pipeline, &input) != HPCT_OK)
            give_up();
        now = hpct_process_clock();
        if (i == 2) { /* the first batches were made ahead */
            began = now;
            cpu = cpu_clock();
        } else if (i > 2)
            images += batch;
    }
    rates found = {(double) images / (now - began), (double) images / (cpu_clock() - cpu)};
    hpct_data_pipeline_close(pipeline);
    return found;
}

static rates run_decode(const hpct_dataset *dataset, double seconds)
{
    hpct_data_room room = {0};
    hpct_data_picture picture;
    size_t images = 0;
    double began = hpct_process_clock(), now = began, cpu = cpu_clock();
    for (; now - began < seconds; now = hpct_process_clock()) {
        for (int i = 0; i < 100; i++, images++) {
            if (hpct_dataset_fetch(dataset, images % dataset->size, &room, &picture) != HPCT_OK)
                give_up();
        }
    }
    hpct_data_room_free(&room);
    return (rates){(double) images / (now - began), (double) images / (cpu_clock() - cpu)};
}

static rates run_write(size_t elements, int batch, double seconds)
{
    size_t count = elements * (size_t) batch;
    float *buffers = aligned_alloc(64, 3 * count * sizeof(float));
    int64_t batches = 0;
    if (buffers == NULL)
        exit(1);
    memset(buffers, 1, 3 * count * sizeof(float));
    double began = hpct_process_clock(), now = began, cpu = cpu_clock();
    for (; now - began < seconds; now = hpct_process_clock(), batches++) {
        float *to = buffers + (size_t) (batches % 3) * count, value = (float) batches;
#pragma omp simd
        for (size_t i = 0; i < count; i++)
            to[i] = value;
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    free(buffers);
    double images = (double) batches * batch;
    return (rates){images / (now - began), images / (cpu_clock() - cpu)};
}

/* Words of augmentation; others change nothing. */
static void augment(const char *what, hpct_dataset_options *options)
{
    options->rand_augment_factor = 0.5;
    if (strcmp(what, "rotated") == 0)
        options->rotation = 0.1;
    else if (strcmp(what, "contrasted") == 0)
        options->contrast = 0.5;
    else if (strcmp(what, "mixed") == 0)
        options->mixup = 0.2;
    else if (strcmp(what, "rand-augmented") == 0)
        options->rand_augment = 2;
    if (hpct_data_augment_is_deep(options))
        options->memory = 0;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr,
                "usage: input files|encoded|decoded|rotated|contrasted|rand-augmented|mixed|decode|"
                "write FOLDER SIDE BATCH SECONDS\n");
        return 64;
    }
    const char *what = argv[1];
    int side = atoi(argv[3]), batch = atoi(argv[4]);
    double seconds = atof(argv[5]);
    rates found;
    /* Twice what the pictures take as JPEG, but less than decoded. */
    size_t memory = strcmp(what, "files") == 0     ? 1
                    : strcmp(what, "decoded") == 0 ? 0
                                                   : (size_t) 120 << 20;
    hpct_dataset *dataset;
    hpct_dataset_options options = {.height = side, .width = side, .memory = memory};
    augment(what, &options);
    if (strcmp(what, "write") == 0) {
        found = run_write((size_t) side * (size_t) side * 3, batch, seconds);
        printf("%.0f %.0f\n", found.wall, found.cpu);
        return 0;
    }
    if (hpct_dataset_open_as(&dataset, argv[2], HPCT_TRAIN, &options) != HPCT_OK)
        give_up();
    found = strcmp(what, "decode") == 0 ? run_decode(dataset, seconds)
                                        : run_pipeline(dataset, batch, seconds);
    fprintf(stderr, "%s\n",
            dataset->pixels != NULL          ? "decoded"
            : dataset->encoded.bytes != NULL ? "encoded"
                                             : "files");
    printf("%.0f %.0f\n", found.wall, found.cpu);
    hpct_dataset_free(dataset);
    return 0;
}
