/* Recordings of a step: lookup, when to record, agreement with other replicas. */
#include "nn/run/replay.h"

#include "base/progress.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 16 /* recordings per run; further parts are executed by calls */

typedef struct entry {
    hpct_run_recording_key key;
    void *recording; /* NULL: called once, or refused */
    bool refused;
} entry;

struct hpct_run_recordings {
    entry entries[MOST];
    int num;
    entry *noting; /* being recorded; else NULL */
};

static bool is_alone(const hpct_model *model)
{
    return model->peers.sum == NULL && model->peers.judge == NULL && model->peers.advance == NULL &&
           model->peers.pause == NULL;
}

/* Not while profiling or emulating; with other replicas only whole steps, with `agree`. */
static bool may_record(const hpct_model *model, hpct_run_recorded_part part)
{
    const hpct_run *run = model->run;
    const hpct_backend_device *device = run->backend->device;
    return device != NULL && device->record != NULL && run->times == NULL &&
           run->emulation == NULL &&
           (is_alone(model) || (part == HPCT_RUN_RECORDED_STEP && model->peers.agree != NULL));
}

static bool is_same(const hpct_run_recording_key *a, const hpct_run_recording_key *b)
{
    return a->part == b->part && a->n == b->n && a->stale == b->stale && a->scale == b->scale &&
           a->gradients == b->gradients && a->resident == b->resident;
}

static entry *find(hpct_run_recordings *all, const hpct_run_recording_key *key)
{
    for (int i = 0; i < all->num; i++) {
        if (is_same(&all->entries[i].key, key))
            return &all->entries[i];
    }
    return NULL;
}

static void note_first(hpct_run_recordings *all, const hpct_run_recording_key *key)
{
    if (all->num < MOST)
        all->entries[all->num++] = (entry){.key = *key};
}

/* HPC_TRAIN_RECORD=0 disables recordings, for incompatible libraries. */
static bool is_allowed(void)
{
    const char *wanted = getenv("HPC_TRAIN_RECORD");
    return wanted == NULL || strcmp(wanted, "0") != 0;
}

/* Tells the other replicas that this one cannot record. */
static hpct_run_recording_way refuse_all(const hpct_model *model, hpct_status *status)
{
    bool can = false;
    *status = model->peers.agree(model->peers.argument, &can);
    return *status == HPCT_OK ? HPCT_RUN_RECORDING_CALL : HPCT_RUN_RECORDING_DONE;
}

hpct_run_recording_way hpct_run_recording_begin(const hpct_model *model,
                                                const hpct_run_recording_key *key,
                                                hpct_status *status)
{
    hpct_run *run = model->run;
    *status = HPCT_OK;
    if (!may_record(model, key->part))
        return HPCT_RUN_RECORDING_CALL;
    if (run->recordings == NULL) {
        run->recordings = calloc(1, sizeof *run->recordings);
        hpct_run_at_end(run, hpct_run_recordings_free);
    }
    hpct_run_recordings *all = run->recordings;
    if (all == NULL) {
        *status = hpct_fail_memory(sizeof *all);
        return HPCT_RUN_RECORDING_DONE;
    }
    entry *e = find(all, key);
    if (e == NULL)
        note_first(all, key);
    if (e == NULL || e->refused)
        return HPCT_RUN_RECORDING_CALL;
    if (e->recording != NULL) {
        hpct_count_progress();
        *status = run->backend->device->replay(e->recording);
        return HPCT_RUN_RECORDING_DONE;
    }
    e->refused = !is_allowed() || run->backend->device->record() != HPCT_OK;
    if (!e->refused)
        all->noting = e;
    if (is_alone(model))
        return HPCT_RUN_RECORDING_CALL;
    return e->refused ? refuse_all(model, status) : HPCT_RUN_RECORDING_REHEARSE;
}

hpct_run_recording_way hpct_run_recording_rehearsed(const hpct_model *model, hpct_status *status)
{
    const hpct_backend_device *device = model->run->backend->device;
    entry *e = model->run->recordings->noting;
    void *rehearsal = NULL;
    hpct_status ended = device->end_record(&rehearsal);
    bool can = *status == HPCT_OK && ended == HPCT_OK;
    if (ended == HPCT_OK)
        device->drop_recording(rehearsal);
    model->run->recordings->noting = NULL;
    *status = model->peers.agree(model->peers.argument, &can);
    e->refused = !can;
    if (*status == HPCT_OK && can)
        *status = device->record();
    if (*status != HPCT_OK)
        return HPCT_RUN_RECORDING_DONE;
    model->run->recordings->noting = can ? e : NULL;
    return HPCT_RUN_RECORDING_CALL;
}

/* With other replicas: none continues before all have the recording. `own`: this replica's status;
 * `why`: its error message. */
static bool all_have(const hpct_model *model, hpct_status *status, hpct_status own, const char *why)
{
    bool all = own == HPCT_OK;
    *status = model->peers.agree(model->peers.argument, &all);
    if (own != HPCT_OK)
        *status = hpct_fail(own, "%s%s",
                            own != HPCT_ERR_PEER
                                ? "this step cannot be recorded (HPC_TRAIN_RECORD=0 goes without): "
                                : "",
                            why);
    else if (*status == HPCT_OK && !all)
        *status = hpct_fail(HPCT_ERR_PEER, "another rank or replica could not record its step, and "
                                           "says why (HPC_TRAIN_RECORD=0 goes without)");
    return *status == HPCT_OK;
}

bool hpct_run_recording_end(const hpct_model *model, hpct_status *status)
{
    const hpct_run *run = model->run;
    entry *e = run->recordings != NULL ? run->recordings->noting : NULL;
    if (e == NULL)
        return false;
    run->recordings->noting = NULL;
    char why[512]; /* the first error: after a failed call end_record fails too */
    if (*status != HPCT_OK)
        snprintf(why, sizeof why, "%s", hpct_last_error());
    hpct_status ended = run->backend->device->end_record(&e->recording);
    if (*status == HPCT_OK)
        snprintf(why, sizeof why, "%s", hpct_last_error());
    hpct_status own = *status != HPCT_OK ? *status : ended;
    if (!is_alone(model) && !all_have(model, status, own, why))
        return false;
    if (*status == HPCT_OK && ended == HPCT_OK) {
        *status = run->backend->device->replay(e->recording);
        return false;
    }
    if (ended == HPCT_OK)
        run->backend->device->drop_recording(e->recording);
    e->recording = NULL;
    e->refused = true;
    *status = HPCT_OK; /* not recordable: repeat as calls */
    return true;
}

void hpct_run_recordings_free(hpct_run *run)
{
    hpct_run_recordings *all = run->recordings;
    for (int i = 0; all != NULL && i < all->num; i++) {
        if (all->entries[i].recording != NULL)
            run->backend->device->drop_recording(all->entries[i].recording);
    }
    free(all);
    run->recordings = NULL;
}
