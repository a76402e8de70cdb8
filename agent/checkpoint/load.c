/* Chooses the checkpoint to go on from: the newest that is valid. */
#include "agent/checkpoint/checkpoint.h"
#include "agent/checkpoint/contents.h"
#include "base/alloc.h"
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ATTEMPTS 3 /* while another run removes what is being read */

/* ---- a folder of them ---- */

typedef struct search {
    hpct_ckpt_store_note *note;
    void *context;
    char *faults;  /* of all that are damaged, "; " between them */
    bool vanished; /* a checkpoint was removed while it was read */
} search;

static hpct_status add_fault(search *s, const char *fault)
{
    char *all;
    HPCT_TRY(hpct_alloc_text(&all, "%s%s%s", s->faults != NULL ? s->faults : "",
                             s->faults != NULL ? "; " : "", fault));
    free(s->faults);
    s->faults = all;
    return HPCT_OK;
}

/* *out stays NULL if it is damaged, which is noted. */
static hpct_status try_one(hpct_ckpt **out, const hpct_ckpt_contents_entry *entry, search *s)
{
    hpct_status status = HPCT_ERR_DATA;
    if (entry->kind == HPCT_CKPT_CONTENTS_COMPLETE)
        status = hpct_ckpt_open_verified(out, entry->folder);
    if (status == HPCT_OK || status == HPCT_ERR_INTERNAL)
        return status;
    *out = NULL;
    if (!hpct_ckpt_contents_has_manifest(entry->folder)) {
        s->vanished = true;
        return HPCT_OK;
    }
    const char *reason = entry->reason != NULL ? entry->reason : hpct_last_error();
    char *line;
    HPCT_TRY(hpct_alloc_text(&line, "%s is damaged and left out: %s", entry->name, reason));
    status = add_fault(s, reason);
    if (s->note != NULL)
        s->note(s->context, line);
    free(line);
    return status;
}

static hpct_status try_all(hpct_ckpt **out, const char *dir, search *s)
{
    hpct_ckpt_contents all;
    HPCT_TRY(hpct_ckpt_contents_read(&all, dir));
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < all.count && status == HPCT_OK; i++) { /* to be noted */
        if (all.entries[i].kind == HPCT_CKPT_CONTENTS_DAMAGED)
            status = try_one(out, &all.entries[i], s);
    }
    for (size_t i = 0; i < all.count && status == HPCT_OK && *out == NULL; i++) {
        if (all.entries[i].kind == HPCT_CKPT_CONTENTS_COMPLETE)
            status = try_one(out, &all.entries[i], s);
    }
    hpct_ckpt_contents_free(&all);
    return status;
}

static hpct_status load_newest(hpct_ckpt **out, const char *dir, search *s)
{
    hpct_status status = HPCT_OK;
    *out = NULL;
    for (int i = 0; i < ATTEMPTS && status == HPCT_OK && *out == NULL; i++) {
        free(s->faults);
        s->faults = NULL;
        s->vanished = false;
        status = try_all(out, dir, s);
        if (!s->vanished)
            break;
    }
    if (status != HPCT_OK || *out != NULL)
        return status;
    if (s->faults != NULL)
        return hpct_fail(HPCT_ERR_DATA, "%s: all checkpoints are damaged: %s", dir, s->faults);
    return hpct_fail(HPCT_ERR_NO_INPUT, "%s: there is no checkpoint", dir);
}

/* ---- either ---- */

static hpct_status load_given(hpct_ckpt **out, const char *folder)
{
    struct stat info;
    if (stat(folder, &info) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be opened: %s", folder, strerror(errno));
    if (!hpct_ckpt_contents_has_manifest(folder))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s has no " HPCT_CKPT_MANIFEST ": its run ended before it was complete",
                         folder);
    return hpct_ckpt_open_verified(out, folder);
}

hpct_status hpct_ckpt_store_load(hpct_ckpt **out, const char *path, hpct_ckpt_store_note *note,
                                 void *context)
{
    search s = {.note = note, .context = context};
    char *folder = strdup(path);
    if (folder == NULL)
        return hpct_fail_memory(0);
    for (size_t length = strlen(folder); length > 1 && folder[length - 1] == '/';)
        folder[--length] = '\0';
    hpct_status status =
        hpct_ckpt_contents_is_one(folder) ? load_given(out, folder) : load_newest(out, folder, &s);
    free(s.faults);
    free(folder);
    return status;
}
