/* One checkpoint: opened, verified, read. */
#include "agent/checkpoint/checkpoint.h"

#include "agent/checkpoint/contents.h"
#include "agent/checkpoint/disk.h"
#include "agent/checkpoint/manifest.h"
#include "agent/checkpoint/part.h"
#include "agent/checkpoint/tensors.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t) 4 << 20)
#define MAX_STATE_BYTES ((size_t) 256 << 20)

struct hpct_ckpt {
    char *folder, *state;
    hpct_ckpt_manifest manifest;
    hpct_ckpt_part *parts; /* of each file; the state's is empty */
    bool *verified;        /* each file */
    hpct_ckpt_tensors tensors;
};

/* ---- verifying ---- */

static hpct_status hash_file(int fd, const hpct_ckpt_store_file *file, const char *path,
                             uint64_t hash[2])
{
    hpct_digest *digest = hpct_digest_new();
    char *buffer = malloc(BUFFER_BYTES);
    hpct_status status =
        digest != NULL && buffer != NULL ? HPCT_OK : hpct_fail_memory(BUFFER_BYTES);
    for (uint64_t at = 0; at < file->bytes && status == HPCT_OK; at += BUFFER_BYTES) {
        uint64_t rest = file->bytes - at;
        size_t bytes = rest < BUFFER_BYTES ? (size_t) rest : BUFFER_BYTES;
        status = hpct_file_read_all(fd, buffer, bytes, (long long) at, path);
        if (status == HPCT_OK)
            hpct_digest_add(digest, buffer, bytes);
        hpct_count_progress();
    }
    if (status == HPCT_OK)
        hpct_digest_end(digest, hash);
    free(buffer);
    hpct_digest_free(digest);
    return status;
}

static hpct_status compare(const hpct_ckpt_store_file *file, const char *path,
                           const uint64_t hash[2])
{
    if (hash[0] == file->hash[0] && hash[1] == file->hash[1])
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA, "%s is damaged: its XXH3 is not the manifest's", path);
}

hpct_status hpct_ckpt_verify_file(const char *path, const hpct_ckpt_store_file *file)
{
    struct stat info;
    uint64_t hash[2];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* no pipe is waited for */
    if (fd < 0)
        return hpct_fail(HPCT_ERR_DATA, "%s cannot be opened: %s", path, strerror(errno));
    hpct_status status = HPCT_OK;
    if (fstat(fd, &info) != 0)
        status = hpct_file_failed("reading", path);
    else if (!S_ISREG(info.st_mode) || (uint64_t) info.st_size != file->bytes)
        status = hpct_fail(HPCT_ERR_DATA, "%s is damaged: %lld bytes instead of %llu", path,
                           (long long) info.st_size, (unsigned long long) file->bytes);
    if (status == HPCT_OK)
        status = hash_file(fd, file, path, hash);
    if (status == HPCT_OK)
        status = compare(file, path, hash);
    close(fd);
    return status;
}

static hpct_status verify(hpct_ckpt *c, size_t index)
{
    if (!c->verified[index])
        HPCT_TRY(hpct_ckpt_verify_file(c->parts[index].path, &c->manifest.files[index]));
    c->verified[index] = true;
    return HPCT_OK;
}

/* ---- opening ---- */

static hpct_status read_state(hpct_ckpt *c)
{
    const hpct_ckpt_store_file *file = &c->manifest.files[c->manifest.state];
    size_t length;
    uint64_t hash[2];
    char *path;
    HPCT_TRY(hpct_ckpt_disk_join(&path, c->folder, file->name));
    hpct_status status = hpct_file_read(&c->state, &length, path, MAX_STATE_BYTES);
    if (status != HPCT_OK) {
        c->state = NULL;
        status = status == HPCT_ERR_NO_INPUT ? HPCT_ERR_DATA : status;
    } else if (length != file->bytes) {
        status = hpct_fail(HPCT_ERR_DATA, "%s: it has %zu bytes, and the manifest says %llu", path,
                           length, (unsigned long long) file->bytes);
    } else {
        hpct_digest_of(c->state, length, hash);
        status = compare(file, path, hash);
    }
    c->verified[c->manifest.state] = status == HPCT_OK;
    free(path);
    return status;
}

static hpct_status open_part(hpct_ckpt *c, size_t index, bool verified)
{
    const hpct_ckpt_store_file *file = &c->manifest.files[index];
    if (verified) {
        char *path;
        HPCT_TRY(hpct_ckpt_disk_join(&path, c->folder, file->name));
        hpct_status status = hpct_ckpt_verify_file(path, file);
        free(path);
        HPCT_TRY(status);
    }
    c->verified[index] = verified;
    return hpct_ckpt_part_open(&c->parts[index], c->folder, file->name, file->bytes);
}

static hpct_status open_files(hpct_ckpt *c, bool verified)
{
    const hpct_ckpt_manifest *m = &c->manifest;
    c->parts = calloc(m->count, sizeof *c->parts);
    c->verified = calloc(m->count, sizeof *c->verified);
    if (c->parts == NULL || c->verified == NULL)
        return hpct_fail_memory(m->count * sizeof *c->parts);
    HPCT_TRY(read_state(c));
    for (size_t i = 0; i < m->count; i++) {
        if (i != m->state)
            HPCT_TRY(open_part(c, i, verified));
    }
    hpct_status status = hpct_ckpt_tensors_join(&c->tensors, c->parts, m->count);
    return status == HPCT_OK ? status : hpct_fail_within(status, c->folder);
}

static hpct_status open_checkpoint(hpct_ckpt **out, const char *folder, bool verified)
{
    hpct_ckpt *c = calloc(1, sizeof *c);
    if (c == NULL)
        return hpct_fail_memory(sizeof *c);
    c->folder = strdup(folder);
    hpct_status status =
        c->folder != NULL ? hpct_ckpt_contents_manifest(&c->manifest, folder) : hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = open_files(c, verified);
    if (status == HPCT_OK)
        *out = c;
    else
        hpct_ckpt_free(c);
    return status;
}

hpct_status hpct_ckpt_open(hpct_ckpt **out, const char *folder)
{
    return open_checkpoint(out, folder, false);
}

hpct_status hpct_ckpt_open_verified(hpct_ckpt **out, const char *folder)
{
    return open_checkpoint(out, folder, true);
}

void hpct_ckpt_free(hpct_ckpt *checkpoint)
{
    if (checkpoint == NULL)
        return;
    hpct_ckpt_tensors_free(&checkpoint->tensors);
    for (size_t i = 0; i < checkpoint->manifest.count && checkpoint->parts != NULL; i++)
        hpct_ckpt_part_free(&checkpoint->parts[i]);
    free(checkpoint->parts);
    free(checkpoint->verified);
    hpct_ckpt_manifest_free(&checkpoint->manifest);
    free(checkpoint->state);
    free(checkpoint->folder);
    free(checkpoint);
}

/* ---- what it has ---- */

const char *hpct_ckpt_folder(const hpct_ckpt *checkpoint)
{
    return checkpoint->folder;
}

const char *hpct_ckpt_state(const hpct_ckpt *checkpoint)
{
    return checkpoint->state;
}

int64_t hpct_ckpt_step(const hpct_ckpt *checkpoint)
{
    return checkpoint->manifest.step;
}

size_t hpct_ckpt_count(const hpct_ckpt *checkpoint)
{
    return checkpoint->tensors.count;
}

void hpct_ckpt_tensor(const hpct_ckpt *checkpoint, size_t index, hpct_ckpt_store_tensor *out)
{
    *out = checkpoint->tensors.wholes[index].tensor;
}

bool hpct_ckpt_find(const hpct_ckpt *checkpoint, const char *name, hpct_ckpt_store_tensor *out)
{
    const hpct_ckpt_tensors_whole *whole = hpct_ckpt_tensors_find(&checkpoint->tensors, name);
    if (whole != NULL && out != NULL)
        *out = whole->tensor;
    return whole != NULL;
}

/* ---- reading ---- */

static hpct_status check_wanted(const hpct_ckpt *c, const hpct_ckpt_store_tensor *have,
                                const hpct_ckpt_store_tensor *want)
{
    if (have->type != want->type)
        return hpct_fail(HPCT_ERR_DATA, "%s: tensor \"%.80s\" is %s, not %s", c->folder, want->name,
                         hpct_ckpt_part_dtype(have->type), hpct_ckpt_part_dtype(want->type));
    bool same = have->rank == want->rank;
    for (int i = want->of != 0 ? 1 : 0; i < want->rank && same; i++)
        same = have->shape[i] == want->shape[i];
    if (same && want->of != 0)
        same = want->rank > 0 && want->of == have->shape[0] && want->begin >= 0 &&
               want->begin <= want->of && want->shape[0] >= 0 &&
               want->shape[0] <= want->of - want->begin;
    return same
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_DATA, "%s: tensor \"%.80s\" has another shape than the model's",
                           c->folder, want->name);
}

/* Reads rows [begin, end) of the tensor as far as the slice has them; `data` is that of `begin`. */
static hpct_status read_slice(hpct_ckpt *c, const hpct_ckpt_tensors_slice *slice, int64_t begin,
                              int64_t end, char *data)
{
    const hpct_ckpt_store_tensor *t = slice->tensor;
    int64_t rows = t->rank > 0 ? t->shape[0] : 1;
    int64_t from = t->begin > begin ? t->begin : begin;
    int64_t to = t->begin + rows < end ? t->begin + rows : end;
    const char *path = c->parts[slice->part].path;
    if (from >= to)
        return HPCT_OK;
    HPCT_TRY(verify(c, slice->part));
    uint64_t row = hpct_ckpt_part_row_bytes(t);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_DATA, "%s cannot be opened: %s", path, strerror(errno));
    hpct_status status = hpct_file_read_all(
        fd, data + (uint64_t) (from - begin) * row, (size_t) ((uint64_t) (to - from) * row),
        (long long) (slice->at + (uint64_t) (from - t->begin) * row), path);
    close(fd);
    return status;
}

hpct_status hpct_ckpt_read(hpct_ckpt *checkpoint, const hpct_ckpt_store_tensor *tensor, void *data)
{
    const hpct_ckpt_tensors_whole *whole =
        hpct_ckpt_tensors_find(&checkpoint->tensors, tensor->name);
    if (whole == NULL)
        return hpct_fail(HPCT_ERR_DATA, "%s: there is no tensor \"%.80s\"", checkpoint->folder,
                         tensor->name);
    HPCT_TRY(check_wanted(checkpoint, &whole->tensor, tensor));
    int64_t begin = tensor->of != 0 ? tensor->begin : 0;
    int64_t end = begin + (tensor->rank > 0 ? tensor->shape[0] : 1);
    for (size_t i = 0; i < whole->count; i++)
        HPCT_TRY(read_slice(checkpoint, &checkpoint->tensors.slices[whole->first + i], begin, end,
                            data));
    return HPCT_OK;
}
