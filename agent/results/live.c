/* Each call copies under a mutex; the thread copies once more, and writes without it. */
#include "agent/results/live.h"

#include "agent/results/live_losses.h"
#include "agent/results/metrics_file.h"
#include "base/output.h"
#include "base/status.h"
#include "base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAUSE_SECONDS 1 /* between two writes */
#define CLOSE_SECONDS 5 /* for a thread that a file system blocks */

/* A file, and how writing it went. */
typedef struct live_file {
    char *path; /* NULL: not requested */
    int64_t writes, failures;
    char *why; /* of the last failure */
} live_file;

struct hpct_results_live {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ends, has_ended;
    bool is_left; /* by hpct_results_live_close: the thread frees all */
    int64_t news; /* number of changes */
    bool renamed; /* nodes, since the last copy */
    hpct_results_live_report report;
    hpct_results_live_losses losses;
    /* of the thread */
    hpct_results_live_report copy;
    char *strategy;
    live_file status, metrics;
};

/* ---- writing ---- */

/* Takes ownership of `text`. */
static hpct_status replace(const char *path, char *text, bool last)
{
    hpct_status status = hpct_output_put_text(path, text, last);
    free(text);
    return status;
}

static hpct_status write_status(const hpct_results_live *l, bool last)
{
    char *text;
    HPCT_TRY(hpct_results_live_report_format(&text, &l->copy));
    return replace(l->status.path, text, last);
}

static hpct_status write_metrics(const hpct_results_live *l, bool last)
{
    char *text;
    if (last)
        return hpct_output_remove(l->metrics.path);
    HPCT_TRY(hpct_results_metrics_file_format(&text, &l->copy, l->strategy));
    return replace(l->metrics.path, text, false);
}

static void count(live_file *file, hpct_status status)
{
    file->writes++;
    if (status == HPCT_OK)
        return;
    file->failures++;
    free(file->why);
    file->why = hpct_error_keep();
}

static void write_files(hpct_results_live *l, bool last)
{
    if (l->metrics.path != NULL)
        count(&l->metrics, write_metrics(l, last));
    if (l->status.path != NULL)
        count(&l->status, write_status(l, last));
}

/* ---- the thread ---- */

/* The copy has names of its own: those of the report may change while it is written. */
static void copy_ranks(hpct_results_live *l, hpct_results_live_rank *ranks)
{
    for (int i = 0; i < l->report.num_ranks; i++) {
        char *node = ranks[i].node, *now = l->renamed ? strdup(l->report.ranks[i].node) : NULL;
        ranks[i] = l->report.ranks[i];
        ranks[i].node = now != NULL ? now : node;
        if (now != NULL)
            free(node);
    }
    l->renamed = false;
}

static void copy(hpct_results_live *l)
{
    hpct_results_live_rank *ranks = l->copy.ranks;
    copy_ranks(l, ranks);
    l->copy = l->report;
    l->copy.ranks = ranks;
    l->copy.num_losses = l->losses.num;
    memcpy(l->copy.losses, l->losses.means, sizeof l->copy.losses);
}

/* Until it is so; false: it was not for so many seconds. */
static bool wait_until(hpct_results_live *l, const bool *is_so, int seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    while (!*is_so && pthread_cond_timedwait(&l->changed, &l->mutex, &until) != ETIMEDOUT)
        continue;
    return *is_so;
}

static void free_ranks(hpct_results_live_rank *ranks, int count)
{
    for (int i = 0; i < count && ranks != NULL; i++)
        free(ranks[i].node);
    free(ranks);
}

static void free_live(hpct_results_live *l)
{
    free_ranks(l->report.ranks, l->report.workers);
    free_ranks(l->copy.ranks, l->report.workers);
    free(l->report.job);
    free(l->report.model);
    free(l->strategy);
    free(l->status.path);
    free(l->status.why);
    free(l->metrics.path);
    free(l->metrics.why);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

static void write_again(hpct_results_live *l)
{
    int64_t written = -1;
    pthread_mutex_lock(&l->mutex);
    for (bool last = false; !last; wait_until(l, &l->ends, PAUSE_SECONDS)) {
        last = l->ends;
        if (written == l->news && !last)
            continue;
        copy(l);
        written = l->news;
        pthread_mutex_unlock(&l->mutex);
        write_files(l, last);
        pthread_mutex_lock(&l->mutex);
    }
    l->has_ended = true;
    bool is_left = l->is_left;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
    if (is_left)
        free_live(l);
}

/* Numbers have a point, whatever locale the program has chosen. */
static void *write_with_points(void *argument)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t) 0);
    pthread_setname_np(pthread_self(), "live");
    if (plain != (locale_t) 0)
        uselocale(plain);
    write_again(argument);
    uselocale(LC_GLOBAL_LOCALE);
    if (plain != (locale_t) 0)
        freelocale(plain);
    return NULL;
}

/* ---- opening ---- */

/* JSON and Prometheus refuse a file that is not UTF-8; only names of nodes and files may be. */
static char *copy_name(const char *name)
{
    char *own = strdup(name != NULL ? name : "");
    json_t *json = own != NULL ? json_string(own) : NULL;
    for (char *c = own; json == NULL && c != NULL && *c != '\0'; c++) {
        if ((unsigned char) *c > 0x7f)
            *c = '?';
    }
    json_decref(json);
    return own;
}

static bool fill_names(hpct_results_live *l, const hpct_results_live_options *o)
{
    l->report.job = o->job != NULL ? copy_name(o->job) : NULL;
    l->report.model = copy_name(o->model);
    l->strategy = copy_name(o->strategy);
    bool whole = (l->report.job != NULL) == (o->job != NULL) && l->report.model != NULL &&
                 l->strategy != NULL;
    if (o->log_dir != NULL &&
        asprintf(&l->status.path, "%s/" HPCT_RESULTS_LIVE_FILE, o->log_dir) < 0)
        l->status.path = NULL;
    if (o->metrics_file != NULL)
        l->metrics.path = strdup(o->metrics_file);
    return whole && (l->status.path != NULL) == (o->log_dir != NULL) &&
           (l->metrics.path != NULL) == (o->metrics_file != NULL);
}

static bool fill_ranks(hpct_results_live *l, const hpct_results_live_options *o)
{
    size_t num = (size_t) o->workers;
    bool whole = (l->copy.ranks = calloc(num + 1, sizeof *l->copy.ranks)) != NULL &&
                 (l->report.ranks = calloc(num + 1, sizeof *l->report.ranks)) != NULL;
    for (int i = 0; i < o->workers && whole; i++) {
        char *node = copy_name(o->nodes != NULL ? o->nodes[i] : NULL);
        l->report.ranks[i] = (hpct_results_live_rank){i, node, NAN, NAN, NAN, NAN, NAN};
        whole = node != NULL && (l->copy.ranks[i].node = strdup(node)) != NULL;
    }
    return whole;
}

static void fill_state(hpct_results_live *l, const hpct_results_live_options *o)
{
    l->report.time = (int64_t) time(NULL);
    l->report.workers = l->report.num_ranks = o->workers;
    l->report.state = (hpct_results_live_state){
        .epochs = o->epochs,
        .loss = NAN,
        .accuracy = NAN,
        .step_loss = NAN,
        .val_loss = NAN,
        .val_accuracy = NAN,
        .learning_rate = NAN,
        .step_ms = NAN,
        .images_per_second = NAN,
        .seconds_left = NAN,
        .job_ends = NAN,
    };
}

static hpct_status start(hpct_results_live *l)
{
    int error = hpct_thread_start(&l->thread, write_with_points, l);
    return error == 0
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_INTERNAL, "no thread can be started: %s", strerror(error));
}

hpct_status hpct_results_live_open(hpct_results_live **out,
                                   const hpct_results_live_options *options)
{
    *out = NULL;
    if (options->log_dir == NULL && options->metrics_file == NULL)
        return HPCT_OK;
    hpct_results_live *l = calloc(1, sizeof *l);
    if (l == NULL)
        return hpct_fail_memory(sizeof *l);
    pthread_mutex_init(&l->mutex, NULL);
    hpct_thread_condition(&l->changed);
    fill_state(l, options);
    hpct_status status =
        fill_names(l, options) && fill_ranks(l, options) ? HPCT_OK : hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = start(l);
    if (status == HPCT_OK)
        *out = l;
    else
        free_live(l);
    return status;
}

/* ---- what the training loop calls ---- */

void hpct_results_live_update(hpct_results_live *l, const hpct_results_live_state *state)
{
    if (l == NULL)
        return;
    int64_t now = (int64_t) time(NULL);
    pthread_mutex_lock(&l->mutex);
    l->report.state = *state;
    l->report.time = now;
    if (!isnan(state->step_loss))
        hpct_results_live_losses_add(&l->losses, state->step_loss);
    l->news++;
    pthread_mutex_unlock(&l->mutex);
}

void hpct_results_live_ranks(hpct_results_live *l, int num, const double *step_ms,
                             const double *wait_ms, const double *input_ms, const double *memory_mb,
                             const double *gpu)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->mutex);
    for (int i = 0; i < num && i < l->report.num_ranks; i++) {
        char *node = l->report.ranks[i].node;
        l->report.ranks[i] = (hpct_results_live_rank){
            i, node, step_ms[i], wait_ms[i], input_ms[i], memory_mb[i], gpu != NULL ? gpu[i] : NAN};
    }
    l->news++;
    pthread_mutex_unlock(&l->mutex);
}

void hpct_results_live_node(hpct_results_live *l, int rank, const char *node)
{
    char *name = l != NULL ? copy_name(node) : NULL;
    if (name == NULL)
        return;
    pthread_mutex_lock(&l->mutex);
    char *before = l->report.ranks[rank].node;
    l->report.ranks[rank].node = name;
    l->renamed = true;
    l->news++;
    pthread_mutex_unlock(&l->mutex);
    free(before);
}

/* ---- closing ---- */

static void say_failures(const live_file *file)
{
    if (file->failures > 0)
        fprintf(stderr,
                "hpc-train: the state of the run could not be written %" PRId64 " of %" PRId64
                " times: %s\n",
                file->failures, file->writes, file->why != NULL ? file->why : file->path);
}

void hpct_results_live_close(hpct_results_live *l, hpct_results_live_how how)
{
    if (l == NULL)
        return;
    pthread_t thread = l->thread;
    pthread_mutex_lock(&l->mutex);
    l->report.how = how;
    l->ends = true;
    l->news++;
    pthread_cond_broadcast(&l->changed);
    bool ended = wait_until(l, &l->has_ended, CLOSE_SECONDS);
    l->is_left = !ended; /* a file system blocks the thread, which from now on is on its own */
    if (!ended)
        fprintf(stderr,
                "hpc-train: %s: the last state of the run is not written: the file system has not "
                "answered for %d s\n",
                l->status.path != NULL ? l->status.path : l->metrics.path, CLOSE_SECONDS);
    pthread_mutex_unlock(&l->mutex);
    if (!ended) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    say_failures(&l->status);
    say_failures(&l->metrics);
    free_live(l);
}
