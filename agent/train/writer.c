/* A thread of its own, so that training goes on. */
#include "agent/train/writer.h"

#include "base/process.h"
#include "base/status.h"
#include "base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE 5 /* seconds until a wait is said */

struct hpct_train_writer {
    const char *dir;
    hpct_ckpt_store *store;
    pthread_t thread;
    bool has_thread, ends;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool busy;
    hpct_train_writer_job job;
    double began;
    char *why;
    hpct_train_writer_result last;
};

static hpct_status write_job(hpct_train_writer *w)
{
    const hpct_train_writer_job *job = &w->job;
    const hpct_ckpt_store_file *files = job->files != NULL ? job->files : &w->last.file;
    size_t num_files = job->files != NULL ? job->num_files : 1;
    if (w->store != NULL)
        HPCT_TRY(hpct_ckpt_store_check(w->store));
    if (job->tensors != NULL)
        HPCT_TRY(hpct_ckpt_store_write_part(w->dir, job->step, job->part, job->tensors, job->count,
                                            &w->last.file));
    return job->text != NULL
               ? hpct_ckpt_store_commit(w->store, job->step, job->text, files, num_files, job->best)
               : HPCT_OK;
}

static void *write_all(void *argument)
{
    hpct_train_writer *w = argument;
    pthread_setname_np(pthread_self(), "checkpoint");
    pthread_mutex_lock(&w->mutex);
    for (;;) {
        while (!w->busy && !w->ends)
            pthread_cond_wait(&w->changed, &w->mutex);
        if (!w->busy)
            break;
        pthread_mutex_unlock(&w->mutex);
        double began = hpct_process_clock();
        hpct_status status = write_job(w);
        char *why = status != HPCT_OK ? hpct_error_keep() : NULL;
        double seconds = hpct_process_clock() - began;
        pthread_mutex_lock(&w->mutex);
        free(w->why);
        w->why = why;
        w->last.status = status;
        w->last.why = why;
        w->last.seconds = seconds;
        w->busy = false;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

hpct_status hpct_train_writer_open(hpct_train_writer **out, const char *dir, hpct_ckpt_store *store)
{
    hpct_train_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return hpct_fail_memory(sizeof *w);
    w->dir = dir;
    w->store = store;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, NULL);
    int error = hpct_thread_start(&w->thread, write_all, w);
    w->has_thread = error == 0;
    if (error == 0) {
        *out = w;
        return HPCT_OK;
    }
    hpct_train_writer_close(w);
    return hpct_fail(HPCT_ERR_INTERNAL, "no thread can be started: %s", strerror(error));
}

void hpct_train_writer_close(hpct_train_writer *w)
{
    if (w == NULL)
        return;
    if (w->has_thread) {
        pthread_mutex_lock(&w->mutex);
        w->ends = true;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->mutex);
        pthread_join(w->thread, NULL);
    }
    free(w->why);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

void hpct_train_writer_begin(hpct_train_writer *w, const hpct_train_writer_job *job)
{
    pthread_mutex_lock(&w->mutex);
    w->job = *job;
    w->began = hpct_process_clock();
    w->busy = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

bool hpct_train_writer_is_idle(hpct_train_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    bool idle = !w->busy;
    pthread_mutex_unlock(&w->mutex);
    return idle;
}

void hpct_train_writer_await(hpct_train_writer *w)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    pthread_mutex_lock(&w->mutex);
    while (w->busy && pthread_cond_timedwait(&w->changed, &w->mutex, &until) != ETIMEDOUT)
        continue;
    if (w->busy)
        fprintf(stderr,
                "hpc-train: %s: the checkpoint of step %" PRId64
                " has been written for %.0f s (a slow or hung file system): waiting for it\n",
                w->dir, w->job.step, hpct_process_clock() - w->began);
    while (w->busy)
        pthread_cond_wait(&w->changed, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
}

hpct_train_writer_result hpct_train_writer_last(const hpct_train_writer *w)
{
    return w->last;
}
