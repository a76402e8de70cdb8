/* The step waits only while the state is copied; a thread of each rank writes its part of the copy.
 * Rank 0 completes the checkpoint once all parts are written, which the ranks tell each other after
 * one of the next steps. Decisions that depend on time or files are rank 0's, and broadcast. */
#include "agent/train/checkpoints.h"

#include "agent/checkpoint/store.h"
#include "agent/rank/context.h"
#include "agent/rank/largest.h"
#include "agent/train/identity.h"
#include "agent/train/run_state.h"
#include "agent/train/writer.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/status.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_KEEP 2
#define MOST_SECONDS 600 /* that may be lost, by default */
#define LEAST_SECONDS 10 /* between two checkpoints, by default */
#define FIRST_SECONDS 60 /* until the cost is known */
#define MEASURED_STEPS 4 /* before the first interval is fixed, without the first step */
#define SHARE 0.01       /* of the time that training may wait for copies */

enum kind { BY_TIME, BY_STEPS, BY_EPOCH };

/* What the ranks are waiting for; the same on all. */
enum phase { IDLE, PARTS, COMPLETION };

struct hpct_train_checkpoints {
    hpct_context *context;
    hpct_model *model;
    char *dir;
    bool speaks;
    json_t *identity;
    enum kind kind;
    double seconds;      /* BY_TIME: fixed interval; 0: by cost */
    int64_t steps, next; /* BY_STEPS: interval; BY_TIME: step of the next one */
    int64_t began_step, steps_per_epoch;
    double began;  /* clock after the first step */
    double copied; /* seconds that training waited for the last copy */
    bool wanted;   /* one is due, as soon as the state can be taken */
    hpct_train_run_state *state;
    hpct_train_writer *writer; /* NULL: this rank writes nothing */
    enum phase phase;
    int64_t ask, ask_after; /* step after which the ranks compare, and the next interval */
    int64_t step;           /* being written, and */
    bool best;              /* whether it is the best so far */
    hpct_status written;    /* of the last one, on the rank that failed */
    char *why;
    int64_t saved; /* step of the last complete one; -1: none */
    /* rank 0 */
    hpct_ckpt_store *store;
    hpct_ckpt_store_file *files; /* [ranks] */
    char *text;                  /* state.json of the one being written */
    hpct_ckpt *from;             /* until it is restored */
    json_t *description;         /* hpct_train_run_state_describe of that */
    char last[PATH_MAX];
};

static bool leads(const hpct_train_checkpoints *c)
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

hpct_status hpct_train_checkpoints_check(const char *dir, const char *every, const char *resume,
                                         int keep)
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

/* ---- state.json ---- */

/* For those who use the weights; JSON null if there is none. */
static json_t *parse_text(const char *text)
{
    json_t *value = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    return value != NULL ? value : json_null();
}

/* NULL if out of memory. */
static char *state_text(const hpct_train_checkpoints *c, const hpct_train_place *place)
{
    json_t *root = json_pack("{s:i,s:I,s:o,s:o,s:O,s:o,s:o}", "format", 1, "epoch",
                             (json_int_t) place->epoch, "place", hpct_train_place_to_json(place),
                             "state", hpct_train_run_state_describe(c->state), "run", c->identity,
                             "class_names", parse_text(hpct_model_names_text(c->model)),
                             "trained_with", parse_text(hpct_model_trained_with(c->model)));
    char *text = root != NULL ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    return text;
}

/* A reference to *description is `root`'s. */
static hpct_status state_parse(const json_t *root, hpct_train_place *place, json_t **description)
{
    json_t *from;
    int format;
    json_int_t ranks;
    if (json_unpack((json_t *) (uintptr_t) root, "{s:i,s:o,s:o}", "format", &format, "place", &from,
                    "state", description) != 0 ||
        format != 1)
        return hpct_fail(HPCT_ERR_DATA, "it is not that of a run of fit");
    if (json_unpack(*description, "{s:I}", "ranks", &ranks) != 0 || ranks < 1 || ranks > INT_MAX)
        return hpct_fail(HPCT_ERR_DATA, "its \"ranks\" is missing or out of range");
    return hpct_train_place_from_json(from, place);
}

/* After the comparison of steps per epoch: the manifest says which step it is. */
static hpct_status check_step(const hpct_train_checkpoints *c, const hpct_train_place *place)
{
    int64_t step = place->epoch * c->steps_per_epoch + place->step;
    return place->step <= c->steps_per_epoch && step == hpct_ckpt_step(c->from)
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_DATA, "it is of step %" PRId64 ", its manifest of %" PRId64,
                           step, hpct_ckpt_step(c->from));
}

/* ---- continuing ---- */

static void note(void *context, const char *text)
{
    (void) context;
    fprintf(stderr, "hpc-train: %s\n", text);
}

/* Whether this run may continue it. */
static hpct_status compare(const hpct_train_checkpoints *c, const json_t *root, const char *folder)
{
    char *unknown = NULL;
    hpct_status status =
        hpct_train_identity_continue(c->identity, json_object_get(root, "run"),
                                     json_object_get(root, "class_names"), folder, &unknown);
    if (status == HPCT_OK && unknown != NULL)
        fprintf(stderr,
                "hpc-train: %s is of an earlier release, which did not note %s: these are not "
                "compared\n",
                folder, unknown);
    free(unknown);
    return status;
}

/* Rank 0 alone. */
static hpct_status load(hpct_train_checkpoints *c, const char *path, hpct_train_place *place)
{
    json_error_t error;
    json_t *description = NULL;
    bool given = path != NULL;
    hpct_status status = hpct_ckpt_store_load(&c->from, given ? path : c->dir, note, NULL);
    if (status == HPCT_ERR_NO_INPUT && !given)
        return HPCT_OK;
    HPCT_TRY(status);
    const char *folder = hpct_ckpt_folder(c->from);
    json_t *root = json_loads(hpct_ckpt_state(c->from), JSON_REJECT_DUPLICATES, &error);
    status = state_parse(root, place, &description);
    if (status == HPCT_OK && (status = compare(c, root, folder)) == HPCT_OK)
        status = check_step(c, place);
    if (status == HPCT_ERR_DATA)
        hpct_fail(status, "%s/state.json: %s", folder, hpct_last_error());
    if (status == HPCT_OK) {
        c->description = json_incref(description);
        c->saved = hpct_ckpt_step(c->from);
        snprintf(c->last, sizeof c->last, "%s", folder);
    }
    json_decref(root);
    return status;
}

/* What rank 0 has found. */
typedef struct found {
    hpct_train_place place;
    int64_t saved;
    int is;
} found;

static hpct_status find(hpct_train_checkpoints *c, const char *how, hpct_train_training *t)
{
    found f = {.is = 0};
    bool automatic = how == NULL || strcmp(how, "auto") == 0;
    hpct_comm *comm = hpct_context_comm(c->context);
    hpct_status status = HPCT_OK;
    if (how != NULL && strcmp(how, "never") == 0)
        return HPCT_OK;
    if (leads(c))
        status = load(c, automatic ? NULL : how, &f.place);
    HPCT_TRY(hpct_context_agree(c->context, status));
    f.is = c->from != NULL;
    f.saved = c->saved;
    HPCT_TRY(comm->ops->broadcast(comm, &f, sizeof f, 0));
    if (!f.is)
        return HPCT_OK;
    c->saved = f.saved;
    t->begin = f.place;
    t->continued = true;
    return HPCT_OK;
}

hpct_status hpct_train_checkpoints_attach(hpct_train_checkpoints *c, hpct_strategy *strategy)
{
    HPCT_TRY(hpct_train_run_state_open(&c->state, c->context, c->model, strategy));
    hpct_status status = HPCT_OK;
    if (hpct_train_run_state_writes(c->state))
        status = hpct_train_writer_open(&c->writer, c->dir, c->store);
    HPCT_TRY(hpct_context_agree(c->context, status));
    if (c->saved < 0)
        return HPCT_OK;
    status = hpct_train_run_state_restore(c->state, c->from, c->description);
    hpct_ckpt_free(c->from);
    json_decref(c->description);
    c->from = NULL;
    c->description = NULL;
    return status;
}

/* ---- opening ---- */

static hpct_status open_store(hpct_train_checkpoints *c, const hpct_fit_options *o)
{
    size_t ranks = (size_t) hpct_context_size(c->context);
    c->dir = strdup(o->checkpoint_dir);
    c->files = calloc(ranks, sizeof *c->files);
    if (c->dir == NULL || c->files == NULL)
        return hpct_fail_memory(ranks * sizeof *c->files);
    return leads(c)
               ? hpct_ckpt_store_open(&c->store, c->dir,
                                      o->checkpoint_keep > 0 ? o->checkpoint_keep : DEFAULT_KEEP,
                                      note, NULL)
               : HPCT_OK;
}

static void say_continued(const hpct_train_checkpoints *c, const hpct_train_training *t)
{
    if (!c->speaks || !t->continued)
        return;
    printf("continues %s: %" PRId64 " of %d epochs are done, and %" PRId64 " steps of the next\n",
           hpct_train_checkpoints_last(c), t->begin.epoch, t->options.epochs, t->begin.step);
    fflush(stdout);
}

static hpct_status open_folder(hpct_train_checkpoints *c, hpct_train_training *t)
{
    const hpct_fit_options *o = &t->options;
    c->context = t->context;
    c->model = t->model;
    c->speaks = o->verbose != 0 && t->leads;
    c->identity = json_incref(t->identity);
    c->steps_per_epoch = t->steps_per_epoch;
    c->saved = -1;
    parse_every(o->checkpoint_every, &c->kind, &c->seconds, &c->steps);
    HPCT_TRY(hpct_context_agree(c->context, open_store(c, o)));
    HPCT_TRY(find(c, o->resume, t));
    c->began_step = hpct_train_training_first_step(t);
    c->next = c->began_step + 1 + MEASURED_STEPS;
    say_continued(c, t);
    return HPCT_OK;
}

hpct_status hpct_train_checkpoints_open(hpct_train_checkpoints **out, hpct_train_training *t)
{
    *out = NULL;
    t->begin =
        (hpct_train_place){.epoch = t->options.initial_epoch, .logs = HPCT_RESULTS_HISTORY_NONE};
    if (t->options.checkpoint_dir == NULL)
        return HPCT_OK;
    hpct_train_checkpoints *c = calloc(1, sizeof *c);
    hpct_status status = c != NULL ? HPCT_OK : hpct_fail_memory(sizeof *c);
    HPCT_TRY(hpct_context_agree(t->context, status));
    status = open_folder(c, t);
    if (status == HPCT_OK)
        *out = c;
    else
        hpct_train_checkpoints_close(c);
    return status;
}

/* ---- completing ---- */

/* What a rank says of its writer. */
typedef struct report {
    int busy, failed;
    hpct_ckpt_store_file file;
} report;

static report own_report(hpct_train_checkpoints *c)
{
    report mine = {.busy = c->writer != NULL && !hpct_train_writer_is_idle(c->writer)};
    if (c->writer == NULL || mine.busy)
        return mine;
    hpct_train_writer_result result = hpct_train_writer_last(c->writer);
    mine.failed = result.status != HPCT_OK;
    mine.file = result.file;
    return mine;
}

/* The rank that failed says why: now, and as the run's error if no later one is complete. */
static void note_failure(hpct_train_checkpoints *c)
{
    hpct_train_writer_result result = hpct_train_writer_last(c->writer);
    free(c->why);
    c->why = strdup(result.why != NULL ? result.why : "");
    c->written = result.status;
    fprintf(stderr, "hpc-train: checkpoint: %s; earlier ones stay\n", c->why);
}

static void complete(hpct_train_checkpoints *c, const report *reports)
{
    size_t count = 0;
    c->phase = COMPLETION;
    c->ask_after = 1;
    if (!leads(c))
        return;
    for (int rank = 0; rank < hpct_context_size(c->context); rank++) {
        if (reports[rank].file.bytes > 0)
            c->files[count++] = reports[rank].file;
    }
    hpct_train_writer_begin(c->writer, &(hpct_train_writer_job){.step = c->step,
                                                                .text = c->text,
                                                                .files = c->files,
                                                                .num_files = count,
                                                                .best = c->best});
}

static void end_phase(hpct_train_checkpoints *c, const report *reports)
{
    bool failed = false;
    for (int rank = 0; rank < hpct_context_size(c->context); rank++)
        failed |= reports[rank].failed != 0;
    if (reports[hpct_context_rank(c->context)].failed)
        note_failure(c);
    if (!failed && c->phase == PARTS) {
        complete(c, reports);
        return;
    }
    c->phase = IDLE;
    if (failed)
        return;
    c->saved = c->step;
    c->written = HPCT_OK;
    snprintf(c->last, sizeof c->last, "%s/step-%010" PRId64, c->dir, c->step);
}

/* Whether all ranks have written. Collective. */
static hpct_status ask(hpct_train_checkpoints *c, int64_t done)
{
    hpct_comm *comm = hpct_context_comm(c->context);
    size_t ranks = (size_t) comm->size;
    report mine = own_report(c), *reports = calloc(ranks, sizeof *reports);
    bool busy = false;
    hpct_status status = hpct_context_agree(
        c->context, reports != NULL ? HPCT_OK : hpct_fail_memory(ranks * sizeof *reports));
    if (status == HPCT_OK)
        status = comm->ops->allgather(comm, &mine, reports, sizeof mine);
    for (size_t rank = 0; rank < ranks && status == HPCT_OK; rank++)
        busy |= reports[rank].busy != 0;
    if (status == HPCT_OK && !busy)
        end_phase(c, reports);
    c->ask_after *= busy ? 2 : 1;
    c->ask = done + c->ask_after;
    free(reports);
    return status;
}

/* Until nothing is written. Without a timeout, as ending now would lose what is written. */
static hpct_status await_all(hpct_train_checkpoints *c)
{
    hpct_status status = HPCT_OK;
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_UNSEEN);
    while (c->phase != IDLE && status == HPCT_OK) {
        if (c->writer != NULL)
            hpct_train_writer_await(c->writer);
        status = ask(c, c->step);
    }
    hpct_enter_wait(before);
    return status;
}

/* ---- saving ---- */

/* Interval in steps, from the slowest rank's step and rank 0's costs. */
static hpct_status plan_next(hpct_train_checkpoints *c, int64_t done)
{
    int64_t timed = done - c->began_step - 1;
    bool idle = c->writer != NULL && hpct_train_writer_is_idle(c->writer);
    double values[3] = {(hpct_process_clock() - c->began) / (double) (timed > 0 ? timed : 1),
                        c->copied, idle ? hpct_train_writer_last(c->writer).seconds : 0};
    HPCT_TRY(hpct_rank_largest(c->context, values, 3));
    double seconds = c->seconds;
    if (seconds == 0 && values[2] == 0)
        seconds = FIRST_SECONDS;
    else if (seconds == 0)
        seconds = fmin(MOST_SECONDS, fmax(LEAST_SECONDS, fmax(values[1] / SHARE, 2 * values[2])));
    double steps = values[0] > 0 ? seconds / values[0] : 1;
    c->next = done + (int64_t) fmax(1, fmin(steps, 1e9));
    return HPCT_OK;
}

static hpct_status is_time(hpct_train_checkpoints *c, int64_t done, bool epoch_ended, bool *is)
{
    *is = false;
    if (c->began == 0)
        c->began = hpct_process_clock(); /* without the first step */
    if (c->kind != BY_TIME) {
        *is = c->kind == BY_EPOCH ? epoch_ended : done % c->steps == 0;
        return HPCT_OK;
    }
    if (done < c->next)
        return HPCT_OK;
    *is = done != c->began_step + 1 + MEASURED_STEPS;
    return plan_next(c, done);
}

hpct_status hpct_train_checkpoints_due(hpct_train_checkpoints *c, int64_t done, bool epoch_ended,
                                       bool *due)
{
    bool is;
    if (c->phase != IDLE && done >= c->ask)
        HPCT_TRY(ask(c, done));
    HPCT_TRY(is_time(c, done, epoch_ended, &is));
    c->wanted |= is;
    *due = c->wanted && hpct_train_run_state_ready(c->state);
    c->wanted &= !*due;
    return HPCT_OK;
}

/* Hands the copy to the writers. A checkpoint that rank 0 alone writes is completed at once. */
static hpct_status hand_over(hpct_train_checkpoints *c, const hpct_train_place *place)
{
    hpct_train_writer_job job = {
        .step = c->step, .part = hpct_context_rank(c->context), .best = c->best};
    bool alone = hpct_train_run_state_writers(c->state) == 1;
    job.tensors = hpct_train_run_state_tensors(c->state, &job.count);
    if (leads(c)) {
        free(c->text);
        c->text = state_text(c, place);
    }
    HPCT_TRY(hpct_context_agree(c->context,
                                leads(c) && c->text == NULL ? hpct_fail_memory(0) : HPCT_OK));
    if (alone)
        job.text = c->text;
    if (c->writer != NULL)
        hpct_train_writer_begin(c->writer, &job);
    c->phase = alone ? COMPLETION : PARTS;
    c->ask_after = 1;
    c->ask = c->step + 1;
    return HPCT_OK;
}

static hpct_status save(hpct_train_checkpoints *c, const hpct_train_place *place, int64_t step)
{
    double began = hpct_process_clock();
    HPCT_TRY(hpct_train_run_state_take(c->state));
    c->step = step;
    HPCT_TRY(hand_over(c, place));
    c->copied = hpct_process_clock() - began;
    return HPCT_OK;
}

hpct_status hpct_train_checkpoints_save(hpct_train_checkpoints *c, const hpct_train_place *place,
                                        bool best, bool last)
{
    const int64_t step = place->epoch * c->steps_per_epoch + place->step;
    if (last)
        HPCT_TRY(await_all(c));
    else if (c->phase != IDLE)
        HPCT_TRY(ask(c, step));
    if (c->phase != IDLE) {
        if (c->speaks)
            puts("checkpoint skipped: the previous one is still being written");
        return HPCT_OK;
    }
    c->best = best;
    if (c->saved != step)
        HPCT_TRY(save(c, place, step));
    return last ? await_all(c) : HPCT_OK;
}

void hpct_train_checkpoints_waited(hpct_train_checkpoints *c, double seconds)
{
    c->copied += seconds;
}

hpct_status hpct_train_checkpoints_finish(hpct_train_checkpoints *c)
{
    if (c == NULL)
        return HPCT_OK;
    HPCT_TRY(await_all(c));
    if (c->written == HPCT_OK)
        return HPCT_OK;
    return hpct_fail(c->written, "checkpoint: %s%s%s", c->why != NULL ? c->why : c->dir,
                     c->last[0] != '\0' ? "; the last complete one is " : "", c->last);
}

double hpct_train_checkpoints_seconds(const hpct_train_checkpoints *c)
{
    bool any = c != NULL && c->writer != NULL && hpct_train_writer_is_idle(c->writer);
    return any ? c->copied + hpct_train_writer_last(c->writer).seconds : 0;
}

hpct_status hpct_train_checkpoints_any(hpct_train_checkpoints *c, bool *any)
{
    HPCT_TRY(await_all(c));
    *any = c->saved >= 0;
    return HPCT_OK;
}

const char *hpct_train_checkpoints_last(const hpct_train_checkpoints *c)
{
    return c->last;
}

void hpct_train_checkpoints_close(hpct_train_checkpoints *c)
{
    if (c == NULL)
        return;
    hpct_train_writer_close(c->writer);
    hpct_train_run_state_close(c->state);
    hpct_ckpt_store_close(c->store);
    hpct_ckpt_free(c->from);
    json_decref(c->description);
    json_decref(c->identity);
    free(c->files);
    free(c->text);
    free(c->why);
    free(c->dir);
    free(c);
}
