/* The step waits only while its state is copied; a thread of rank 0 writes the copy. Decisions that
 * depend on time or files are rank 0's, and broadcast. */
#include "agent/train/checkpoints.h"

#include "agent/checkpoint/store.h"
#include "agent/rank/context.h"
#include "agent/rank/largest.h"
#include "base/headway.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/run/state.h"
#include "nn/run/step.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_KEEP 2
#define MOST_SECONDS 600      /* that may be lost, by default */
#define LEAST_SECONDS 10      /* between two checkpoints, by default */
#define FIRST_SECONDS 60      /* until the cost is known */
#define MEASURED_STEPS 4      /* before the first interval is fixed, without the first step */
#define SHARE 0.01            /* of the time that training may wait for copies */
#define STATES "ranks/states" /* [ranks][floats]: each rank's moving statistics */

enum kind { BY_TIME, BY_STEPS, BY_EPOCH };

/* What the thread writes. */
typedef struct job {
    int64_t step;
    char *text; /* state.json */
    bool there, running;
} job;

struct hpct_checkpoints {
    hpct_context *context;
    hpct_model *model;
    char *dir;
    bool speaks;
    json_t *same;
    enum kind kind;
    double seconds;      /* BY_TIME: fixed interval; 0: by cost */
    int64_t steps, next; /* BY_STEPS: interval; BY_TIME: step of the next one */
    int64_t began_step, steps_per_epoch;
    double began;            /* clock after the first step */
    double copied;           /* seconds that training waited for the last copy */
    hpct_state *state, *own; /* rank 0's copy; this rank's moving statistics */
    float *states;           /* [ranks][num_states] */
    size_t num_states;
    bool has_own; /* `states` are of as many ranks, and not restored yet */
    /* rank 0 */
    hpct_store *store;
    pthread_t thread;
    bool has_thread, ends;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    job job;
    hpct_status written; /* of the last write */
    char *why;
    double write_seconds;
    int64_t saved; /* step of the last complete one; -1: none */
    char last[PATH_MAX];
};

static bool leads(const hpct_checkpoints *c)
{
    return hpct_context_rank(c->context) == 0;
}

/* ---- options ---- */

/* "epoch", N, Ns or Nm. */
static bool parse_every(const char *text, enum kind *kind, double *seconds, int64_t *steps)
{
    char *end;
    *seconds = 0;
    *steps = 0;
    *kind = BY_TIME;
    if (text == NULL)
        return true;
    if (strcmp(text, "epoch") == 0) {
        *kind = BY_EPOCH;
        return true;
    }
    long long number = strtoll(text, &end, 10);
    bool good = text[0] >= '0' && text[0] <= '9' && number > 0 && number < INT_MAX;
    if (strcmp(end, "s") == 0 || strcmp(end, "m") == 0) {
        *seconds = (double) number * (*end == 'm' ? 60 : 1);
        return good;
    }
    *kind = BY_STEPS;
    *steps = number;
    return good && *end == '\0';
}

hpct_status hpct_checkpoints_check(const char *dir, const char *every, const char *resume, int keep)
{
    enum kind kind;
    double seconds;
    int64_t steps;
    if (dir == NULL)
        return every == NULL && resume == NULL && keep == 0
                   ? HPCT_OK
                   : hpct_fail(
                         HPCT_ERR_USAGE,
                         "--checkpoint-every, --checkpoint-keep and --resume are for runs with "
                         "--checkpoint-dir");
    if (dir[0] == '\0')
        return hpct_fail(HPCT_ERR_USAGE, "--checkpoint-dir is empty");
    if (!parse_every(every, &kind, &seconds, &steps))
        return hpct_fail(
            HPCT_ERR_USAGE,
            "--checkpoint-every is '%s': it must be epoch, a number of steps, or a time "
            "such as 90s or 10m",
            every);
    if (keep < 0)
        return hpct_fail(HPCT_ERR_USAGE, "--checkpoint-keep is %d, it must be at least 1", keep);
    return HPCT_OK;
}

/* ---- the writing thread ---- */

static hpct_store_tensor tensor_of(const hpct_state_tensor *from)
{
    hpct_store_tensor t = {.name = from->name, .type = HPCT_STORE_F32, .data = from->values};
    t.rank = from->shape.rank;
    for (int k = 0; k < t.rank; k++)
        t.shape[k] = from->shape.size[k];
    return t;
}

static hpct_store_tensor states_tensor(const hpct_checkpoints *c, int64_t ranks)
{
    return (hpct_store_tensor){.name = STATES,
                               .type = HPCT_STORE_F32,
                               .rank = 2,
                               .shape = {ranks, (int64_t) c->num_states},
                               .data = c->states};
}

static hpct_status write_job(hpct_checkpoints *c)
{
    const hpct_state *state = c->state;
    hpct_store_file file;
    size_t count = (size_t) state->num_tensors;
    hpct_store_tensor *tensors = calloc(count + 1, sizeof *tensors);
    if (tensors == NULL)
        return hpct_fail_memory((count + 1) * sizeof *tensors);
    for (size_t i = 0; i < count; i++)
        tensors[i] = tensor_of(&state->tensors[i]);
    if (c->num_states > 0 && hpct_context_size(c->context) > 1)
        tensors[count++] = states_tensor(c, hpct_context_size(c->context));
    hpct_status status = hpct_store_check(c->store);
    if (status == HPCT_OK)
        status = hpct_store_write_part(c->dir, c->job.step, 0, tensors, count, &file);
    if (status == HPCT_OK)
        status = hpct_store_commit(c->store, c->job.step, c->job.text, &file, 1, false);
    free(tensors);
    return status;
}

static void *write_all(void *argument)
{
    hpct_checkpoints *c = argument;
    pthread_setname_np(pthread_self(), "checkpoint");
    pthread_mutex_lock(&c->mutex);
    for (;;) {
        while (!c->job.there && !c->ends)
            pthread_cond_wait(&c->changed, &c->mutex);
        if (!c->job.there)
            break;
        c->job.there = false;
        c->job.running = true;
        pthread_mutex_unlock(&c->mutex);
        double began = hpct_process_clock();
        hpct_status status = write_job(c);
        char *why = status != HPCT_OK ? hpct_error_keep() : NULL;
        pthread_mutex_lock(&c->mutex);
        c->write_seconds = hpct_process_clock() - began;
        c->written = status;
        free(c->why);
        c->why = why;
        if (status == HPCT_OK) {
            c->saved = c->job.step;
            snprintf(c->last, sizeof c->last, "%s/step-%010" PRId64, c->dir, c->job.step);
        }
        c->job.running = false;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* Until nothing is written. Without a timeout, as ending now would lose what is written. */
static void await_writer(hpct_checkpoints *c)
{
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_UNSEEN);
    pthread_mutex_lock(&c->mutex);
    while (c->job.there || c->job.running)
        pthread_cond_wait(&c->changed, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
    hpct_headway_enter(before);
}

static bool is_busy(hpct_checkpoints *c)
{
    pthread_mutex_lock(&c->mutex);
    bool busy = c->job.there || c->job.running;
    pthread_mutex_unlock(&c->mutex);
    return busy;
}

/* ---- state.json ---- */

/* For `hpc-train checkpoint export`; JSON null if there are none. */
static json_t *class_names(const hpct_model *model)
{
    char **names = NULL;
    int count = 0;
    json_t *list = NULL;
    if (hpct_model_class_names(model, &names, &count) == HPCT_OK && names != NULL)
        list = json_array();
    for (int i = 0; list != NULL && i < count; i++)
        json_array_append_new(list, json_string(names[i]));
    free(names);
    return list != NULL ? list : json_null();
}

/* NULL if out of memory. */
static char *state_text(const hpct_checkpoints *c, const hpct_place *place)
{
    const hpct_state_scaling *s = &c->state->scaling;
    json_t *root = json_pack(
        "{s:i,s:I,s:I,s:o,s:I,s:{s:f,s:f,s:f,s:I,s:I},s:O,s:o}", "format", 1, "epoch",
        (json_int_t) place->epoch, "ranks", (json_int_t) hpct_context_size(c->context), "place",
        hpct_place_to_json(place), "optimizer_steps", (json_int_t) c->state->steps, "loss_scale",
        "scale", s->scale, "undo_1", s->undo_1, "undo_2", s->undo_2, "good", (json_int_t) s->good,
        "left_out", (json_int_t) s->left_out, "run", c->same, "class_names", class_names(c->model));
    char *text = root != NULL ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    return text;
}

static bool state_parse(const json_t *root, hpct_state *state, hpct_place *place, int *ranks)
{
    json_int_t steps, good, left_out;
    json_t *from;
    hpct_state_scaling *s = &state->scaling;
    int format;
    bool parsed =
        json_unpack((json_t *) (uintptr_t) root, "{s:i,s:i,s:o,s:I,s:{s:F,s:F,s:F,s:I,s:I}}",
                    "format", &format, "ranks", ranks, "place", &from, "optimizer_steps", &steps,
                    "loss_scale", "scale", &s->scale, "undo_1", &s->undo_1, "undo_2", &s->undo_2,
                    "good", &good, "left_out", &left_out) == 0 &&
        format == 1 && *ranks >= 1 && hpct_place_from_json(from, place);
    if (!parsed)
        return false;
    state->steps = steps;
    s->good = good;
    s->left_out = left_out;
    return true;
}

/* ---- continuing ---- */

static void note(void *context, const char *text)
{
    (void) context;
    fprintf(stderr, "hpc-train: %s\n", text);
}

/* Names the first property of this run that the checkpoint's does not have. */
static hpct_status compare(const json_t *own, const json_t *root, const char *folder)
{
    const json_t *theirs = json_object_get(root, "run");
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *) (uintptr_t) own, key, value) {
        const json_t *other = json_object_get(theirs, key);
        if (json_equal(value, (json_t *) (uintptr_t) other))
            continue;
        char *mine = json_dumps(value, JSON_ENCODE_ANY);
        char *other_text = other != NULL ? json_dumps(other, JSON_ENCODE_ANY) : NULL;
        hpct_status status = hpct_fail(
            HPCT_ERR_CONFIG,
            "%s is of a run with %s %s, this one has %s: continue it with the same options, give "
            "another --checkpoint-dir, or begin anew with --resume never",
            folder, key, other_text != NULL ? other_text : "unknown", mine != NULL ? mine : "?");
        free(other_text);
        free(mine);
        return status;
    }
    return HPCT_OK;
}

static hpct_status read_tensors(hpct_checkpoints *c, hpct_checkpoint *from, int ranks)
{
    for (int i = 0; i < c->state->num_tensors; i++) {
        hpct_store_tensor t = tensor_of(&c->state->tensors[i]);
        HPCT_TRY(hpct_checkpoint_read(from, &t, c->state->tensors[i].values));
    }
    if (c->num_states == 0 || ranks == 1 || ranks != hpct_context_size(c->context))
        return HPCT_OK;
    hpct_store_tensor t = states_tensor(c, ranks);
    return hpct_checkpoint_read(from, &t, c->states);
}

/* Rank 0 alone. */
static hpct_status load(hpct_checkpoints *c, const char *path, hpct_place *place, int *ranks,
                        bool *found)
{
    hpct_checkpoint *from = NULL;
    json_error_t error;
    bool given = path != NULL;
    hpct_status status = hpct_store_load(&from, given ? path : c->dir, note, NULL);
    if (status == HPCT_ERR_NO_INPUT && !given)
        return HPCT_OK;
    HPCT_TRY(status);
    const char *folder = hpct_checkpoint_folder(from);
    json_t *root = json_loads(hpct_checkpoint_state(from), JSON_REJECT_DUPLICATES, &error);
    if (root == NULL || !state_parse(root, c->state, place, ranks))
        status = hpct_fail(HPCT_ERR_DATA, "%s/state.json is not that of a run of fit", folder);
    if (status == HPCT_OK)
        status = compare(c->same, root, folder);
    if (status == HPCT_OK)
        status = read_tensors(c, from, *ranks);
    if (status == HPCT_OK) {
        *found = true;
        c->saved = hpct_checkpoint_step(from);
        snprintf(c->last, sizeof c->last, "%s", folder);
    }
    json_decref(root);
    hpct_checkpoint_free(from);
    return status;
}

/* What rank 0 has read. */
typedef struct found {
    hpct_place place;
    hpct_state_scaling scaling;
    int64_t steps, saved;
    int ranks, is;
} found;

hpct_status hpct_checkpoints_restore_own(hpct_checkpoints *c)
{
    size_t at = 0;
    const float *row = c->states + (size_t) hpct_context_rank(c->context) * c->num_states;
    if (!c->has_own)
        return HPCT_OK;
    for (int i = 0; i < c->own->num_tensors; at += c->own->tensors[i++].count)
        memcpy(c->own->tensors[i].values, row + at, c->own->tensors[i].count * sizeof *row);
    return hpct_state_put(c->own, c->model);
}

/* Every rank receives the state, and its own moving statistics if there were as many ranks. */
static hpct_status share(hpct_checkpoints *c, const found *f)
{
    hpct_comm *comm = hpct_context_comm(c->context);
    size_t ranks = (size_t) comm->size;
    for (int i = 0; i < c->state->num_tensors; i++) {
        hpct_state_tensor *t = &c->state->tensors[i];
        HPCT_TRY(comm->ops->broadcast(comm, t->values, t->count * sizeof *t->values, 0));
        if (t->is_accumulated && comm->rank != 0) /* rank 0 has the sum of all */
            memset(t->values, 0, t->count * sizeof *t->values);
    }
    c->state->steps = f->steps;
    c->state->scaling = f->scaling;
    HPCT_TRY(hpct_context_agree(c->context, hpct_state_put(c->state, c->model)));
    if (c->num_states == 0 || ranks == 1 || f->ranks != comm->size)
        return HPCT_OK;
    size_t bytes = ranks * c->num_states * sizeof *c->states;
    c->has_own = true;
    return comm->ops->broadcast(comm, c->states, bytes, 0);
}

static hpct_status resume(hpct_checkpoints *c, const char *how, hpct_place *place, bool *continues)
{
    found f = {.ranks = 1};
    bool is = false, automatic = how == NULL || strcmp(how, "auto") == 0;
    hpct_comm *comm = hpct_context_comm(c->context);
    hpct_status status = HPCT_OK;
    if (how != NULL && strcmp(how, "never") == 0)
        return HPCT_OK;
    if (leads(c))
        status = load(c, automatic ? NULL : how, &f.place, &f.ranks, &is);
    HPCT_TRY(hpct_context_agree(c->context, status));
    f.is = is;
    f.steps = c->state->steps;
    f.scaling = c->state->scaling;
    f.saved = c->saved;
    HPCT_TRY(comm->ops->broadcast(comm, &f, sizeof f, 0));
    if (!f.is)
        return HPCT_OK;
    HPCT_TRY(hpct_context_agree(c->context, share(c, &f)));
    c->saved = f.saved;
    *place = f.place;
    *continues = true;
    return HPCT_OK;
}

/* ---- opening ---- */

static hpct_status allocate(hpct_checkpoints *c, const hpct_checkpoints_options *o)
{
    size_t ranks = (size_t) hpct_context_size(c->context);
    c->dir = strdup(o->dir);
    if (c->dir == NULL)
        return hpct_fail_memory(0);
    HPCT_TRY(hpct_state_new(&c->state, o->model, false));
    HPCT_TRY(hpct_state_new(&c->own, o->model, true));
    for (int i = 0; i < c->own->num_tensors; i++)
        c->num_states += c->own->tensors[i].count;
    c->states = calloc(ranks * c->num_states + 1, sizeof *c->states);
    return c->states != NULL ? HPCT_OK : hpct_fail_memory(ranks * c->num_states * sizeof(float));
}

static hpct_status open_store(hpct_checkpoints *c, int keep)
{
    if (!leads(c))
        return HPCT_OK;
    HPCT_TRY(hpct_store_open(&c->store, c->dir, keep > 0 ? keep : DEFAULT_KEEP, note, NULL));
    sigset_t all, before;
    sigfillset(&all); /* signals interrupt no write */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&c->thread, NULL, write_all, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    c->has_thread = error == 0;
    return error == 0
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_INTERNAL, "no thread can be started: %s", strerror(error));
}

hpct_status hpct_checkpoints_open(hpct_checkpoints **out, const hpct_checkpoints_options *options,
                                  hpct_place *place, bool *continues)
{
    *place = (hpct_place){.logs = HPCT_HISTORY_NONE};
    *continues = false;
    hpct_checkpoints *c = calloc(1, sizeof *c);
    hpct_status status = c != NULL ? HPCT_OK : hpct_fail_memory(sizeof *c);
    HPCT_TRY(hpct_context_agree(options->context, status));
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->context = options->context;
    c->model = options->model;
    c->speaks = options->speaks;
    c->same = json_incref(options->same);
    c->steps_per_epoch = options->steps_per_epoch;
    c->saved = -1;
    parse_every(options->every, &c->kind, &c->seconds, &c->steps);
    status = allocate(c, options);
    if (status == HPCT_OK)
        status = open_store(c, options->keep);
    status = hpct_context_agree(c->context, status);
    if (status == HPCT_OK)
        status = resume(c, options->resume, place, continues);
    if (status != HPCT_OK) {
        hpct_checkpoints_close(c);
        return status;
    }
    c->began_step = place->epoch * c->steps_per_epoch + place->step;
    c->next = c->began_step + 1 + MEASURED_STEPS;
    *out = c;
    return HPCT_OK;
}

/* ---- saving ---- */

/* Interval in steps, from the slowest rank's step and rank 0's costs. */
static hpct_status plan_next(hpct_checkpoints *c, int64_t done)
{
    int64_t timed = done - c->began_step - 1;
    pthread_mutex_lock(&c->mutex);
    double values[3] = {(hpct_process_clock() - c->began) / (double) (timed > 0 ? timed : 1),
                        c->copied, c->write_seconds};
    pthread_mutex_unlock(&c->mutex);
    HPCT_TRY(hpct_largest(c->context, values, 3));
    double seconds = c->seconds;
    if (seconds == 0 && values[2] == 0)
        seconds = FIRST_SECONDS;
    else if (seconds == 0)
        seconds = fmin(MOST_SECONDS, fmax(LEAST_SECONDS, fmax(values[1] / SHARE, 2 * values[2])));
    double steps = values[0] > 0 ? seconds / values[0] : 1;
    c->next = done + (int64_t) fmax(1, fmin(steps, 1e9));
    return HPCT_OK;
}

hpct_status hpct_checkpoints_due(hpct_checkpoints *c, int64_t done, bool epoch_ended, bool *due)
{
    *due = false;
    if (c->began == 0)
        c->began = hpct_process_clock(); /* without the first step */
    if (c->kind != BY_TIME) {
        *due = c->kind == BY_EPOCH ? epoch_ended : done % c->steps == 0;
        return HPCT_OK;
    }
    if (done < c->next)
        return HPCT_OK;
    *due = done != c->began_step + 1 + MEASURED_STEPS;
    return plan_next(c, done);
}

/* The mean of the moving statistics goes into the state, in the order of the ranks. */
static void average_states(hpct_checkpoints *c)
{
    size_t ranks = (size_t) hpct_context_size(c->context), at = 0;
    for (int i = 0; i < c->state->num_tensors; i++) {
        hpct_state_tensor *t = &c->state->tensors[i];
        if (!t->is_state)
            continue;
        for (size_t k = 0; k < t->count; k++, at++) {
            double sum = 0;
            for (size_t rank = 0; rank < ranks; rank++)
                sum += (double) c->states[rank * c->num_states + at];
            t->values[k] = (float) (sum / (double) ranks);
        }
    }
}

static hpct_status gather_states(hpct_checkpoints *c)
{
    hpct_comm *comm = hpct_context_comm(c->context);
    size_t at = 0;
    if (comm->size == 1 || c->num_states == 0)
        return HPCT_OK;
    float *mine = calloc(c->num_states, sizeof *mine);
    hpct_status status = mine != NULL ? hpct_state_take(c->own, c->model)
                                      : hpct_fail_memory(c->num_states * sizeof *mine);
    status = hpct_context_agree(c->context, status);
    for (int i = 0; i < c->own->num_tensors && status == HPCT_OK; at += c->own->tensors[i++].count)
        memcpy(mine + at, c->own->tensors[i].values, c->own->tensors[i].count * sizeof *mine);
    if (status == HPCT_OK)
        status = comm->ops->allgather(comm, mine, c->states, c->num_states * sizeof *mine);
    free(mine);
    return status;
}

/* Between updates each rank has gradients of its own samples: their sum is saved. */
static hpct_status take_state(hpct_checkpoints *c)
{
    hpct_comm *comm = hpct_context_comm(c->context);
    bool sums = comm->size > 1 && hpct_model_gradient_accumulation(c->model) > 1;
    hpct_status status = leads(c) || sums ? hpct_state_take(c->state, c->model) : HPCT_OK;
    if (!sums)
        return status;
    status = hpct_context_agree(c->context, status);
    for (int i = 0; i < c->state->num_tensors && status == HPCT_OK; i++) {
        const hpct_state_tensor *t = &c->state->tensors[i];
        if (t->is_accumulated)
            status = comm->ops->allreduce_sum(comm, t->values, t->count);
    }
    return status;
}

/* Rank 0: hands the copy to the thread. */
static hpct_status hand_over(hpct_checkpoints *c, const hpct_place *place, int64_t step)
{
    if (hpct_context_size(c->context) > 1)
        average_states(c);
    char *text = state_text(c, place);
    if (text == NULL)
        return hpct_fail_memory(0);
    pthread_mutex_lock(&c->mutex);
    free(c->job.text);
    c->job.text = text;
    c->job.step = step;
    c->job.there = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
    return HPCT_OK;
}

/* A failed write is named when the next one begins. */
static void say_failed(hpct_checkpoints *c)
{
    pthread_mutex_lock(&c->mutex);
    if (c->written != HPCT_OK && c->why != NULL && c->speaks)
        printf("checkpoint: %s; it is tried again\n", c->why);
    pthread_mutex_unlock(&c->mutex);
}

hpct_status hpct_checkpoints_save(hpct_checkpoints *c, const hpct_place *place, bool last)
{
    hpct_comm *comm = hpct_context_comm(c->context);
    const int64_t step = place->epoch * c->steps_per_epoch + place->step;
    double began = hpct_process_clock();
    int busy = 0;
    if (leads(c) && last)
        await_writer(c);
    if (leads(c))
        busy = is_busy(c) ? 1 : c->saved == step ? 2 : 0;
    HPCT_TRY(comm->ops->broadcast(comm, &busy, sizeof busy, 0));
    if (busy == 1 && c->speaks)
        puts("checkpoint skipped: the previous one is still being written");
    if (busy != 0)
        return HPCT_OK;
    HPCT_TRY(gather_states(c));
    hpct_status status = take_state(c);
    if (status == HPCT_OK && leads(c)) {
        say_failed(c);
        status = hand_over(c, place, step);
    }
    c->copied = hpct_process_clock() - began;
    return hpct_context_agree(c->context, status);
}

hpct_status hpct_checkpoints_finish(hpct_checkpoints *c)
{
    if (!leads(c))
        return HPCT_OK;
    await_writer(c);
    return c->written == HPCT_OK
               ? HPCT_OK
               : hpct_fail(c->written, "checkpoint: %s%s%s", c->why != NULL ? c->why : c->dir,
                           c->last[0] != '\0' ? "; the last complete one is " : "", c->last);
}

const char *hpct_checkpoints_last(const hpct_checkpoints *c)
{
    return c->last;
}

void hpct_checkpoints_close(hpct_checkpoints *c)
{
    if (c == NULL)
        return;
    if (c->has_thread) {
        pthread_mutex_lock(&c->mutex);
        c->ends = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->mutex);
        pthread_join(c->thread, NULL);
    }
    hpct_store_close(c->store);
    hpct_state_free(c->state);
    hpct_state_free(c->own);
    free(c->states);
    json_decref(c->same);
    free(c->job.text);
    free(c->why);
    free(c->dir);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}
