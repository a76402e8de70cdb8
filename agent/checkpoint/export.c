/* hpct_checkpoint_export: the weights of a checkpoint as one file. */
#include "agent/checkpoint/part.h"
#include "agent/checkpoint/store.h"
#include "base/file.h"
#include "base/links.h"
#include "base/output.h"
#include "base/status.h"
#include "nn/file/weights.h"

#include <hpctrain/checkpoint.h>
#include <jansson.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WEIGHTS "weights/" /* before their names in a checkpoint */

typedef struct export
{
    hpct_ckpt *checkpoint;
    const char *path;
    hpct_ckpt_store_tensor *tensors; /* with their names in the checkpoint */
    hpct_weights_st_entry *entries;
    size_t count;
    char *class_names, *trained_with;
}
export;

static hpct_status choose_tensors(export *e)
{
    size_t count = hpct_ckpt_count(e->checkpoint);
    e->tensors = calloc(count + 1, sizeof *e->tensors);
    if (e->tensors == NULL)
        return hpct_fail_memory((count + 1) * sizeof *e->tensors);
    for (size_t i = 0; i < count; i++) {
        hpct_ckpt_store_tensor *tensor = &e->tensors[e->count];
        hpct_ckpt_tensor(e->checkpoint, i, tensor);
        e->count += strncmp(tensor->name, WEIGHTS, strlen(WEIGHTS)) == 0;
    }
    if (e->count == 0)
        return hpct_fail(HPCT_ERR_DATA, "%s has no weights: no tensor's name begins with " WEIGHTS,
                         hpct_ckpt_folder(e->checkpoint));
    return HPCT_OK;
}

/* Entries have the names without the prefix. */
static hpct_status lay_out(export *e)
{
    hpct_status status;
    for (size_t i = 0; i < e->count; i++)
        e->tensors[i].name += strlen(WEIGHTS);
    status = hpct_ckpt_part_lay_out(&e->entries, e->tensors, e->count);
    for (size_t i = 0; i < e->count; i++)
        e->tensors[i].name -= strlen(WEIGHTS);
    return status;
}

/* A text beside the weights: JSON, or, of earlier releases, its text. */
static hpct_status find_text(const export *e, const char *key, char **text)
{
    json_t *state = json_loads(hpct_ckpt_state(e->checkpoint), 0, NULL);
    const json_t *value = json_object_get(state, key);
    bool structured = json_is_array(value) || json_is_object(value);
    bool there = structured || json_is_string(value);
    if (structured)
        *text = json_dumps(value, JSON_COMPACT);
    else if (json_is_string(value))
        *text = strdup(json_string_value(value));
    json_decref(state);
    return !there || *text != NULL ? HPCT_OK : hpct_fail_memory(0);
}

static hpct_status write_tensor(const export *e, size_t index, int fd)
{
    size_t bytes = (size_t) (e->entries[index].end - e->entries[index].begin);
    void *data = malloc(bytes + 1);
    if (data == NULL)
        return hpct_fail_memory(bytes + 1);
    hpct_status status = hpct_ckpt_read(e->checkpoint, &e->tensors[index], data);
    if (status == HPCT_OK)
        status = hpct_file_write_all(fd, data, bytes, e->path);
    free(data);
    return status;
}

static hpct_status write_file(void *arg, int fd)
{
    const export *e = arg;
    char *header;
    size_t length;
    const hpct_weights_st_text texts[] = {
        {"class_names", e->class_names}, {"trained_with", e->trained_with}, {NULL, NULL}};
    HPCT_TRY(hpct_weights_st_format(&header, &length, e->entries, e->count, texts));
    hpct_status status = hpct_file_write_all(fd, header, length, e->path);
    free(header);
    for (unsigned size = 8; size > 0; size /= 2) {
        for (size_t i = 0; i < e->count && status == HPCT_OK; i++) {
            if (hpct_ckpt_part_type_bytes(e->tensors[i].type) == size)
                status = write_tensor(e, i, fd);
        }
    }
    return status;
}

/* What is written is safetensors, and no checkpoint is replaced. */
static hpct_status check_file(const export *e)
{
    struct stat folder, parent;
    size_t length = strlen(e->path);
    HPCT_TRY(hpct_model_check_weights_name(e->path));
    if (length >= 3 && strcmp(e->path + length - 3, ".h5") == 0)
        return hpct_fail(HPCT_ERR_USAGE, "%s: export writes safetensors: give a name that ends so",
                         e->path);
    char *target = hpct_links_follow(e->path);
    if (target == NULL)
        return hpct_fail_memory(length + 1);
    bool within = stat(hpct_ckpt_folder(e->checkpoint), &folder) == 0 &&
                  stat(dirname(target), &parent) == 0 && hpct_file_same(&folder, &parent);
    free(target);
    return within
               ? hpct_fail(HPCT_ERR_USAGE, "%s is in the checkpoint: give another folder", e->path)
               : HPCT_OK;
}

static void note(void *context, const char *text)
{
    fprintf(context, "%s\n", text);
}

static hpct_status write_weights(export *e, FILE *stream)
{
    HPCT_TRY(check_file(e));
    HPCT_TRY(choose_tensors(e));
    HPCT_TRY(lay_out(e));
    HPCT_TRY(find_text(e, "class_names", &e->class_names));
    HPCT_TRY(find_text(e, "trained_with", &e->trained_with));
    HPCT_TRY(hpct_output_replace(e->path, write_file, e));
    fprintf(stream, "%s: %zu tensor%s of step %lld\n", e->path, e->count, e->count == 1 ? "" : "s",
            (long long) hpct_ckpt_step(e->checkpoint));
    return HPCT_OK;
}

hpct_status hpct_checkpoint_export(const char *path, const char *file, FILE *stream)
{
    export e = {.path = file};
    HPCT_TRY(hpct_ckpt_store_load(&e.checkpoint, path, note, stream));
    hpct_status status = write_weights(&e, stream);
    free(e.class_names);
    free(e.trained_with);
    hpct_ckpt_part_free_entries(e.entries, e.count);
    free(e.tensors);
    hpct_ckpt_free(e.checkpoint);
    return status;
}
