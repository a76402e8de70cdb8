/* The input pipeline: a ring of buffers. Threads fill the oldest buffer that is not full, a few
 * samples at a time; the step takes buffers in order. Samples do not depend on the thread that
 * prepares them. */
#include "agent/data/pipeline.h"

#include "agent/data/augment.h"
#include "agent/data/prepare.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NUM_BUFFERS 3 /* one is used by the step, two are prefetched */
#define MAX_THREADS 64
#define PIECE 8 /* maximal number of samples that a thread takes at a time */

typedef struct buffer {
    float *pixels;
    int32_t *labels;
    int32_t *others;   /* [largest], of mixed samples: the other label … */
    float *shares;     /* … and the share of the own one; NULL: not mixed */
    uint32_t *indices; /* [largest] */
    int64_t position;  /* position of the first sample in the stream of passes */
    int count, global_count;
    int taken, left; /* samples taken by threads; samples not finished */
} buffer;

/* State of one thread. */
typedef struct hands {
    hpct_data_pipeline *pipeline;
    pthread_t thread;
    hpct_data_preparer *preparer;
} hands;

struct hpct_data_pipeline {
    hpct_data_pipeline_options options;
    bool mixes;
    buffer buffers[NUM_BUFFERS]; /* batch t is in buffer t % NUM_BUFFERS */
    float *own_pixels;
    int32_t *own_labels, *own_others;
    float *own_shares;
    uint32_t *own_indices;
    int64_t planned, delivered; /* numbers of batches */
    double waited;

    hands caller, *workers;
    int num_workers;
    pthread_mutex_t lock; /* protects the following, and taken and left */
    pthread_cond_t work, done;
    bool closing;
    hpct_status status; /* the first error, and its message */
    char *message;
};

/* ---- one sample ---- */

static uint64_t pass_of(const hpct_data_pipeline *p, int64_t position)
{
    return (uint64_t) position / p->options.dataset->size;
}

static hpct_status prepare_sample(hands *h, const buffer *b, int sample)
{
    const hpct_data_pipeline *p = h->pipeline;
    const hpct_dataset *dataset = p->options.dataset;
    hpct_data_to_prepare what = {.index = b->indices[sample],
                                 .training = p->options.training,
                                 .seed = p->options.seed,
                                 .pass = pass_of(p, b->position + sample)};
    hpct_data_prepared out = {.pixels = b->pixels + (size_t) sample * dataset->elements};
    hpct_count_progress();
    HPCT_TRY(hpct_data_prepare(h->preparer, &what, &out));
    b->labels[sample] = out.label;
    if (p->mixes) {
        b->others[sample] = out.other;
        b->shares[sample] = out.share;
    }
    return HPCT_OK;
}

/* ---- pieces ---- */

/* Takes some samples of the oldest batch that has any left; false if there are none. */
static bool take_piece(hpct_data_pipeline *p, buffer **b, int *first, int *count)
{
    for (int64_t t = p->delivered; t < p->planned; t++) {
        buffer *candidate = &p->buffers[t % NUM_BUFFERS];
        int rest = candidate->count - candidate->taken;
        if (rest == 0)
            continue;
        *b = candidate;
        *first = candidate->taken;
        *count = rest / (2 * p->num_workers) + 1;
        *count = *count > PIECE ? PIECE : *count;
        candidate->taken += *count;
        return true;
    }
    return false;
}

/* Called with the lock held; releases it during the work. */
static void do_piece(hands *h, buffer *b, int first, int count)
{
    hpct_data_pipeline *p = h->pipeline;
    hpct_status status = p->status;
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < count && status == HPCT_OK; i++)
        status = prepare_sample(h, b, first + i);
    pthread_mutex_lock(&p->lock);
    if (status != HPCT_OK && p->status == HPCT_OK) {
        p->status = status;
        p->message = strdup(hpct_last_error());
    }
    b->left -= count;
    if (b->left == 0)
        pthread_cond_signal(&p->done);
}

static void *work(void *argument)
{
    hands *h = argument;
    hpct_data_pipeline *p = h->pipeline;
    buffer *b;
    int first, count;
    pthread_mutex_lock(&p->lock);
    while (!p->closing) {
        if (take_piece(p, &b, &first, &count))
            do_piece(h, b, first, count);
        else
            pthread_cond_wait(&p->work, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- batches ---- */

static void plan(hpct_data_pipeline *p)
{
    buffer *b = &p->buffers[p->planned % NUM_BUFFERS];
    hpct_data_batch batch = p->options.batch(p->options.from, p->planned);
    memcpy(b->indices, batch.indices, (size_t) batch.count * sizeof *b->indices);
    b->position = batch.position;
    b->global_count = batch.global_count;
    pthread_mutex_lock(&p->lock);
    b->count = b->left = batch.count;
    b->taken = 0;
    p->planned++;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
}

static hpct_status next_direct(hpct_data_pipeline *p, hpct_data_input *out)
{
    const buffer *b = &p->buffers[0];
    hpct_data_batch batch = p->options.batch(p->options.from, p->delivered++);
    hpct_dataset_gather(p->options.dataset, batch.indices, batch.count, b->pixels, b->labels);
    *out = (hpct_data_input){.pixels = b->pixels,
                             .labels = b->labels,
                             .indices = batch.indices,
                             .count = batch.count,
                             .global_count = batch.global_count};
    return HPCT_OK;
}

static hpct_status next_drawn(hpct_data_pipeline *p, hpct_data_input *out)
{
    hpct_data_batch batch = p->options.batch(p->options.from, p->delivered++);
    for (int i = 0; i < batch.count; i++) {
        hpct_data_preparation how = {0};
        if (p->options.training)
            hpct_data_prepare_draw(&p->options.dataset->options,
                                   hpct_data_sample_bits(p->options.seed,
                                                         pass_of(p, batch.position + i),
                                                         batch.indices[i]),
                                   &how);
        p->options.drawn[i] = (hpct_drawn){.index = batch.indices[i],
                                           .move_y = (int16_t) how.move_y,
                                           .move_x = (int16_t) how.move_x,
                                           .flip = how.flip};
    }
    *out = (hpct_data_input){.count = batch.count, .global_count = batch.global_count};
    return HPCT_OK;
}

static hpct_status next_prepared(hpct_data_pipeline *p, hpct_data_input *out)
{
    buffer *b = &p->buffers[p->delivered % NUM_BUFFERS], *piece;
    int first, count;
    pthread_mutex_lock(&p->lock);
    while (b->left > 0 && b->taken < b->count && take_piece(p, &piece, &first, &count))
        do_piece(&p->caller, piece, first, count);
    while (b->left > 0)
        pthread_cond_wait(&p->done, &p->lock);
    p->delivered++;
    hpct_status status = p->status;
    pthread_mutex_unlock(&p->lock);
    *out = (hpct_data_input){.pixels = b->pixels,
                             .labels = b->labels,
                             .indices = b->indices,
                             .others = b->others,
                             .shares = b->shares,
                             .count = b->count,
                             .global_count = b->global_count};
    if (status != HPCT_OK)
        return hpct_fail(status, "%s", p->message != NULL ? p->message : "out of memory");
    return HPCT_OK;
}

hpct_status hpct_data_pipeline_next(hpct_data_pipeline *pipeline, hpct_data_input *out)
{
    double began = hpct_process_clock();
    int ahead = pipeline->options.on_demand ? 1 : NUM_BUFFERS;
    hpct_status status;
    if (pipeline->options.way == HPCT_DATA_INPUT_DEVICE) {
        status = next_drawn(pipeline, out);
    } else if (pipeline->options.way == HPCT_DATA_INPUT_DIRECT) {
        status = next_direct(pipeline, out);
    } else {
        /* the buffer that the model has read can be reused */
        while (pipeline->planned < pipeline->options.batches &&
               pipeline->planned < pipeline->delivered + ahead)
            plan(pipeline);
        status = next_prepared(pipeline, out);
    }
    pipeline->waited += hpct_process_clock() - began;
    return status;
}

double hpct_data_pipeline_waited(const hpct_data_pipeline *pipeline)
{
    return pipeline->waited;
}

/* ---- opening and closing ---- */

/* Size of one buffer's pixels, a multiple of 64. */
static size_t pixel_bytes(const hpct_dataset *dataset, size_t samples)
{
    return (samples * dataset->elements * sizeof(float) + 63) & ~(size_t) 63;
}

hpct_data_input_way hpct_data_input_from_host(const hpct_dataset *dataset, bool training)
{
    return hpct_dataset_is_plain(dataset, training) ? HPCT_DATA_INPUT_DIRECT
                                                    : HPCT_DATA_INPUT_WORKERS;
}

size_t hpct_data_pipeline_bytes(const hpct_dataset *dataset, int largest, bool training)
{
    size_t samples = (size_t) largest + 1;
    if (hpct_data_input_from_host(dataset, training) == HPCT_DATA_INPUT_DIRECT)
        return 0;
    size_t mixed = training && hpct_data_augment_mixes(&dataset->options);
    return NUM_BUFFERS *
           (pixel_bytes(dataset, samples) + samples * (sizeof(int32_t) + sizeof(uint32_t)) +
            mixed * samples * (sizeof(int32_t) + sizeof(float)));
}

static void *allocate_buffer(const hpct_data_pipeline_memory *from, size_t bytes)
{
    return from->take != NULL ? from->take(from->owner, bytes)
                              : aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void give_back(const hpct_data_pipeline_memory *from, void *memory)
{
    if (from->take != NULL)
        from->give_back(from->owner, memory);
    else
        free(memory);
}

static hpct_status allocate(hpct_data_pipeline *p)
{
    const hpct_data_pipeline_options *o = &p->options;
    size_t largest = (size_t) o->largest + 1,
           buffers = o->way == HPCT_DATA_INPUT_WORKERS ? NUM_BUFFERS : 1;
    size_t bytes = pixel_bytes(o->dataset, largest);
    if (o->way == HPCT_DATA_INPUT_DEVICE)
        return HPCT_OK;
    if (o->way == HPCT_DATA_INPUT_DIRECT && o->pixels != NULL) {
        p->buffers[0] = (buffer){.pixels = o->pixels, .labels = o->labels};
        return HPCT_OK;
    }
    p->own_pixels = allocate_buffer(&o->memory, buffers * bytes);
    p->own_labels = allocate_buffer(&o->memory, buffers * largest * sizeof *p->own_labels);
    p->own_indices = malloc(buffers * largest * sizeof *p->own_indices);
    p->own_others = p->mixes ? malloc(buffers * largest * sizeof *p->own_others) : NULL;
    p->own_shares = p->mixes ? malloc(buffers * largest * sizeof *p->own_shares) : NULL;
    bool mixed = p->own_others != NULL && p->own_shares != NULL;
    if (p->own_pixels == NULL || p->own_labels == NULL || p->own_indices == NULL ||
        mixed != p->mixes)
        return hpct_fail_memory(buffers * bytes);
    for (size_t i = 0; i < buffers; i++)
        p->buffers[i] = (buffer){
            .pixels = p->own_pixels + i * (bytes / sizeof(float)),
            .labels = p->own_labels + i * largest,
            .others = mixed ? p->own_others + i * largest : NULL,
            .shares = mixed ? p->own_shares + i * largest : NULL,
            .indices = p->own_indices + i * largest,
        };
    return HPCT_OK;
}

static hpct_status make_hands(hpct_data_pipeline *p, hands *h)
{
    h->pipeline = p;
    return hpct_data_preparer_new(&h->preparer, p->options.dataset);
}

static void free_hands(hands *h)
{
    hpct_data_preparer_free(h->preparer);
}

static hpct_status start(hpct_data_pipeline *p, int threads)
{
    hpct_status status = HPCT_OK;
    p->workers = calloc((size_t) threads, sizeof *p->workers);
    if (p->workers == NULL)
        return hpct_fail_memory((size_t) threads * sizeof *p->workers);
    while (p->num_workers < threads && status == HPCT_OK) {
        hands *h = &p->workers[p->num_workers];
        status = make_hands(p, h);
        if (status == HPCT_OK && hpct_thread_start(&h->thread, work, h) != 0)
            status = hpct_fail(HPCT_ERR_INTERNAL, "no more threads can be made");
        if (status == HPCT_OK)
            p->num_workers++;
        else
            free_hands(h);
    }
    return status;
}

hpct_status hpct_data_pipeline_open(hpct_data_pipeline **out,
                                    const hpct_data_pipeline_options *options)
{
    const hpct_dataset *dataset = options->dataset;
    int threads = dataset->options.threads > 0 ? dataset->options.threads : options->threads;
    hpct_data_pipeline *p = calloc(1, sizeof *p);
    if (p == NULL)
        return hpct_fail_memory(sizeof *p);
    p->options = *options;
    p->mixes = options->training && hpct_data_augment_mixes(&dataset->options);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    bool workers = options->way == HPCT_DATA_INPUT_WORKERS;
    hpct_status status = allocate(p);
    if (status == HPCT_OK && workers)
        status = make_hands(p, &p->caller);
    if (status == HPCT_OK && workers)
        status = start(p, threads > MAX_THREADS ? MAX_THREADS : threads);
    if (status != HPCT_OK) {
        hpct_data_pipeline_close(p);
        return status;
    }
    while (workers && !options->on_demand && p->planned < options->batches &&
           p->planned < NUM_BUFFERS - 1)
        plan(p);
    *out = p;
    return HPCT_OK;
}

void hpct_data_pipeline_close(hpct_data_pipeline *pipeline)
{
    if (pipeline == NULL)
        return;
    pthread_mutex_lock(&pipeline->lock);
    pipeline->closing = true;
    pthread_cond_broadcast(&pipeline->work);
    pthread_mutex_unlock(&pipeline->lock);
    for (int i = 0; i < pipeline->num_workers; i++) {
        pthread_join(pipeline->workers[i].thread, NULL);
        free_hands(&pipeline->workers[i]);
    }
    free_hands(&pipeline->caller);
    pthread_cond_destroy(&pipeline->done);
    pthread_cond_destroy(&pipeline->work);
    pthread_mutex_destroy(&pipeline->lock);
    free(pipeline->workers);
    give_back(&pipeline->options.memory, pipeline->own_pixels);
    give_back(&pipeline->options.memory, pipeline->own_labels);
    free(pipeline->own_indices);
    free(pipeline->own_others);
    free(pipeline->own_shares);
    free(pipeline->message);
    free(pipeline);
}
