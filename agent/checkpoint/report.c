/* hpct_checkpoint_list and hpct_checkpoint_verify. */
#include "agent/checkpoint/checkpoint.h"
#include "agent/checkpoint/contents.h"
#include "agent/checkpoint/disk.h"
#include "base/status.h"

#include <hpctrain/checkpoint.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- list ---- */

static const char *size_text(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double size = (double) bytes;
    int unit = 0;
    for (; size >= 1024 && unit < 6; unit++)
        size /= 1024;
    snprintf(text, 32, "%.*f %s", unit > 0, size, units[unit]);
    return text;
}

static const char *time_text(int64_t seconds, char text[32])
{
    time_t time = (time_t) seconds;
    struct tm local;
    if (localtime_r(&time, &local) == NULL || strftime(text, 32, "%Y-%m-%d %H:%M:%S", &local) == 0)
        strcpy(text, "-");
    return text;
}

static const char *epoch_text(const hpct_ckpt *checkpoint, char text[32])
{
    json_t *state = checkpoint != NULL ? json_loads(hpct_ckpt_state(checkpoint), 0, NULL) : NULL;
    const json_t *epoch = json_object_get(state, "epoch");
    if (json_is_number(epoch))
        snprintf(text, 32, "%g", json_number_value(epoch));
    else
        strcpy(text, "-");
    json_decref(state);
    return text;
}

static hpct_status print_entry(const hpct_ckpt_contents_entry *entry, FILE *stream)
{
    static const char *const kinds[] = {"complete", "damaged", "incomplete"};
    char epoch[32], saved[32] = "-", size[32] = "-";
    hpct_ckpt *checkpoint = NULL;
    hpct_ckpt_contents_kind kind = entry->kind;
    uint64_t bytes = 0;
    if (kind == HPCT_CKPT_CONTENTS_COMPLETE) {
        for (size_t i = 0; i < entry->manifest.count; i++)
            bytes += entry->manifest.files[i].bytes;
        size_text(bytes, size);
        time_text(entry->manifest.time, saved);
        if (hpct_ckpt_open(&checkpoint, entry->folder) != HPCT_OK) {
            checkpoint = NULL;
            kind = HPCT_CKPT_CONTENTS_DAMAGED;
        }
    }
    fprintf(stream, "%10lld  %6s  %-19s  %10s  %s%s\n", (long long) entry->step,
            epoch_text(checkpoint, epoch), saved, size, kinds[kind], entry->best ? ", best" : "");
    if (kind == HPCT_CKPT_CONTENTS_DAMAGED)
        fprintf(stream, "            %s\n",
                entry->reason != NULL ? entry->reason : hpct_last_error());
    hpct_ckpt_free(checkpoint);
    return HPCT_OK;
}

static hpct_status read_some(hpct_ckpt_contents *out, const char *dir)
{
    HPCT_TRY(hpct_ckpt_contents_read(out, dir));
    if (out->count > 0)
        return HPCT_OK;
    hpct_ckpt_contents_free(out);
    return hpct_fail(HPCT_ERR_NO_INPUT, "%s: there is no checkpoint", dir);
}

hpct_status hpct_checkpoint_list(const char *dir, FILE *stream)
{
    hpct_ckpt_contents all;
    HPCT_TRY(read_some(&all, dir));
    hpct_status status = HPCT_OK;
    fprintf(stream, "%10s  %6s  %-19s  %10s  %s\n", "step", "epoch", "saved", "size", "state");
    for (size_t i = 0; i < all.count && status == HPCT_OK; i++)
        status = print_entry(&all.entries[i], stream);
    if (all.best_fault != NULL)
        fprintf(stream, "which one is the best is not known: %s\n", all.best_fault);
    hpct_ckpt_contents_free(&all);
    return status;
}

/* ---- verify ---- */

/* Keeps the message of the first fault. */
typedef struct faults {
    char *first;
    int count;
} faults;

static void print_fault_of(faults *f, const char *fault, FILE *stream)
{
    fprintf(stream, "DAMAGED %s\n", fault);
    if (f->first == NULL)
        f->first = strdup(fault);
    f->count++;
}

static void print_fault(faults *f, FILE *stream)
{
    print_fault_of(f, hpct_last_error(), stream);
}

static void verify_one(const char *folder, faults *f, FILE *stream)
{
    hpct_ckpt_manifest manifest;
    hpct_ckpt *checkpoint;
    int before = f->count;
    if (hpct_ckpt_contents_manifest(&manifest, folder) != HPCT_OK) {
        print_fault(f, stream);
        return;
    }
    for (size_t i = 0; i < manifest.count; i++) {
        char *path;
        if (hpct_ckpt_disk_join(&path, folder, manifest.files[i].name) != HPCT_OK ||
            hpct_ckpt_verify_file(path, &manifest.files[i]) != HPCT_OK)
            print_fault(f, stream);
        else
            fprintf(stream, "ok %s\n", path);
        free(path);
    }
    hpct_ckpt_manifest_free(&manifest);
    if (f->count > before)
        return;
    if (hpct_ckpt_open(&checkpoint, folder) == HPCT_OK) /* the tensors, too */
        hpct_ckpt_free(checkpoint);
    else
        print_fault(f, stream);
}

static hpct_status verify_all(const char *dir, faults *f, FILE *stream)
{
    hpct_ckpt_contents all;
    HPCT_TRY(read_some(&all, dir));
    for (size_t i = 0; i < all.count; i++) {
        if (all.entries[i].kind != HPCT_CKPT_CONTENTS_INCOMPLETE)
            verify_one(all.entries[i].folder, f, stream);
        else
            fprintf(stream, "incomplete %s\n", all.entries[i].folder);
    }
    if (all.best_fault != NULL)
        print_fault_of(f, all.best_fault, stream);
    hpct_ckpt_contents_free(&all);
    return HPCT_OK;
}

hpct_status hpct_checkpoint_verify(const char *path, FILE *stream)
{
    faults f = {.count = 0};
    hpct_status status = HPCT_OK;
    if (hpct_ckpt_contents_is_one(path))
        verify_one(path, &f, stream);
    else
        status = verify_all(path, &f, stream);
    if (status == HPCT_OK && f.count > 0)
        status = hpct_fail(HPCT_ERR_DATA, "%s%s", f.first != NULL ? f.first : "out of memory",
                           f.count > 1 ? "; others are damaged, too" : "");
    free(f.first);
    return status;
}
