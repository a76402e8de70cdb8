/* Writes part files, and reads their headers, which are untrusted. */
#include "agent/checkpoint/part.h"

#include "agent/checkpoint/contents.h"
#include "agent/checkpoint/disk.h"
#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const dtypes[] = {
    [HPCT_CKPT_STORE_F32] = "F32", [HPCT_CKPT_STORE_F64] = "F64", [HPCT_CKPT_STORE_I64] = "I64",
    [HPCT_CKPT_STORE_U64] = "U64", [HPCT_CKPT_STORE_U8] = "U8",
};
#define NUM_TYPES (sizeof dtypes / sizeof *dtypes)

const char *hpct_ckpt_part_dtype(hpct_ckpt_store_type type)
{
    return dtypes[type];
}

unsigned hpct_ckpt_part_type_bytes(hpct_ckpt_store_type type)
{
    return hpct_weights_st_element_bytes(dtypes[type]);
}

uint64_t hpct_ckpt_part_row_bytes(const hpct_ckpt_store_tensor *tensor)
{
    uint64_t bytes = hpct_ckpt_part_type_bytes(tensor->type);
    for (int i = 1; i < tensor->rank; i++)
        bytes *= (uint64_t) tensor->shape[i];
    return bytes;
}

/* ---- writing ---- */

static hpct_status check_tensor(const hpct_ckpt_store_tensor *t, uint64_t *bytes)
{
    bool right = t->name != NULL && t->name[0] != '\0' && strcmp(t->name, "__metadata__") != 0 &&
                 (unsigned) t->type < NUM_TYPES && t->rank >= 0 &&
                 t->rank <= HPCT_CKPT_STORE_MAX_RANK;
    *bytes = right ? hpct_ckpt_part_type_bytes(t->type) : 0;
    for (int i = 0; right && i < t->rank; i++)
        right = t->shape[i] >= 0 && !__builtin_mul_overflow(*bytes, (uint64_t) t->shape[i], bytes);
    if (right && t->of != 0)
        right = t->rank > 0 && t->begin >= 0 && t->of > 0 && t->begin <= t->of &&
                t->shape[0] <= t->of - t->begin;
    if (right && *bytes <= INT64_MAX)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE, "tensor \"%.80s\" cannot be saved: its type, shape or rows",
                     t->name != NULL ? t->name : "");
}

/* The text of the metadata; NULL: there are no slices. */
static hpct_status format_slices(char **out, const hpct_ckpt_store_tensor *tensors, size_t count)
{
    json_t *slices = json_object();
    int failed = slices == NULL;
    *out = NULL;
    for (size_t i = 0; i < count && !failed; i++) {
        const hpct_ckpt_store_tensor *t = &tensors[i];
        if (t->of != 0)
            failed = json_object_set_new(
                         slices, t->name,
                         json_pack("[I, I]", (json_int_t) t->begin, (json_int_t) t->of)) != 0;
    }
    if (!failed && json_object_size(slices) > 0) {
        *out = json_dumps(slices, JSON_COMPACT);
        failed = *out == NULL;
    }
    json_decref(slices);
    return failed ? hpct_fail_memory(0) : HPCT_OK;
}

static int by_name(const void *a, const void *b)
{
    const hpct_weights_st_entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static hpct_status check_names(const hpct_weights_st_entry *entries, size_t count)
{
    const hpct_weights_st_entry **sorted = calloc(count + 1, sizeof *sorted);
    hpct_status status = sorted != NULL ? HPCT_OK : hpct_fail_memory((count + 1) * sizeof *sorted);
    for (size_t i = 0; i < count && sorted != NULL; i++)
        sorted[i] = &entries[i];
    if (sorted != NULL)
        qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 1; i < count && status == HPCT_OK; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            status =
                hpct_fail(HPCT_ERR_USAGE, "tensor \"%.80s\" is to be saved twice", sorted[i]->name);
    }
    free(sorted);
    return status;
}

/* Fills entries; those of larger elements have the first offsets. */
static hpct_status lay_out(hpct_weights_st_entry *entries, const hpct_ckpt_store_tensor *tensors,
                           size_t count)
{
    uint64_t at = 0, bytes;
    for (unsigned size = 8; size > 0; size /= 2) {
        for (size_t i = 0; i < count; i++) {
            const hpct_ckpt_store_tensor *t = &tensors[i];
            HPCT_TRY(check_tensor(t, &bytes));
            if (hpct_ckpt_part_type_bytes(t->type) != size)
                continue;
            entries[i] =
                (hpct_weights_st_entry){.name = strdup(t->name), .rank = t->rank, .begin = at};
            if (entries[i].name == NULL)
                return hpct_fail_memory(strlen(t->name) + 1);
            strcpy(entries[i].dtype, hpct_ckpt_part_dtype(t->type));
            memcpy(entries[i].shape, t->shape, (size_t) t->rank * sizeof t->shape[0]);
            if (__builtin_add_overflow(at, bytes, &at) || at > INT64_MAX)
                return hpct_fail(HPCT_ERR_USAGE, "the tensors are too large for one file");
            entries[i].end = at;
        }
    }
    return check_names(entries, count);
}

hpct_status hpct_ckpt_part_lay_out(hpct_weights_st_entry **out,
                                   const hpct_ckpt_store_tensor *tensors, size_t count)
{
    *out = calloc(count + 1, sizeof **out);
    hpct_status status =
        *out != NULL ? lay_out(*out, tensors, count) : hpct_fail_memory((count + 1) * sizeof **out);
    if (status != HPCT_OK) {
        hpct_ckpt_part_free_entries(*out, count);
        *out = NULL;
    }
    return status;
}

void hpct_ckpt_part_free_entries(hpct_weights_st_entry *entries, size_t count)
{
    for (size_t i = 0; i < count && entries != NULL; i++)
        free(entries[i].name);
    free(entries);
}

static hpct_status write_header(hpct_ckpt_disk_file *file, const hpct_weights_st_entry *entries,
                                const hpct_ckpt_store_tensor *tensors, size_t count)
{
    char *header = NULL, *slices = NULL;
    size_t length = 0;
    hpct_status status = format_slices(&slices, tensors, count);
    if (status == HPCT_OK)
        status = hpct_weights_st_format(
            &header, &length, entries, count,
            (const hpct_weights_st_text[]){{"slices", slices}, {NULL, NULL}});
    if (status == HPCT_OK)
        status = hpct_ckpt_disk_write(file, header, length);
    free(header);
    free(slices);
    return status;
}

static hpct_status write_data(hpct_ckpt_disk_file *file, const hpct_weights_st_entry *entries,
                              const hpct_ckpt_store_tensor *tensors, size_t count)
{
    for (unsigned size = 8; size > 0; size /= 2) {
        for (size_t i = 0; i < count; i++) {
            if (hpct_ckpt_part_type_bytes(tensors[i].type) == size)
                HPCT_TRY(hpct_ckpt_disk_write(file, tensors[i].data,
                                              (size_t) (entries[i].end - entries[i].begin)));
        }
    }
    return HPCT_OK;
}

static hpct_status write_part(const char *folder, int part, const hpct_weights_st_entry *entries,
                              const hpct_ckpt_store_tensor *tensors, size_t count,
                              hpct_ckpt_store_file *written)
{
    char stem[32];
    hpct_ckpt_disk_file file;
    snprintf(stem, sizeof stem, "part-%05d", part);
    HPCT_TRY(hpct_ckpt_disk_create(&file, folder, stem));
    hpct_status status = write_header(&file, entries, tensors, count);
    if (status == HPCT_OK)
        status = write_data(&file, entries, tensors, count);
    if (status == HPCT_OK)
        status = hpct_ckpt_disk_place(&file, stem, "safetensors", written);
    hpct_ckpt_disk_discard(&file);
    return status;
}

hpct_status hpct_ckpt_store_write_part(const char *dir, int64_t step, int part,
                                       const hpct_ckpt_store_tensor *tensors, size_t count,
                                       hpct_ckpt_store_file *written)
{
    char *folder = NULL;
    hpct_weights_st_entry *entries;
    *written = (hpct_ckpt_store_file){.bytes = 0};
    if (step < 0 || step > HPCT_CKPT_STORE_MAX_STEP || part < 0 ||
        part >= HPCT_CKPT_STORE_MAX_PARTS)
        return hpct_fail(HPCT_ERR_USAGE, "part %d of step %" PRId64 " cannot be saved", part, step);
    HPCT_TRY(hpct_ckpt_part_lay_out(&entries, tensors, count));
    hpct_status status = hpct_ckpt_contents_make(&folder, dir, step);
    if (status == HPCT_OK)
        status = write_part(folder, part, entries, tensors, count, written);
    free(folder);
    hpct_ckpt_part_free_entries(entries, count);
    return status;
}

/* ---- reading ---- */

static hpct_status bad(const char *name, const char *what)
{
    return hpct_fail(HPCT_ERR_DATA, "tensor \"%.80s\": %s", name, what);
}

static hpct_status read_slice(hpct_ckpt_store_tensor *tensor, const json_t *rows)
{
    const json_t *begin = json_array_get(rows, 0), *of = json_array_get(rows, 1);
    tensor->begin = json_integer_value(begin);
    tensor->of = json_integer_value(of);
    if (json_array_size(rows) != 2 || !json_is_integer(begin) || !json_is_integer(of) ||
        tensor->rank < 1 || tensor->begin < 0 || tensor->of < 1 || tensor->begin > tensor->of ||
        tensor->shape[0] > tensor->of - tensor->begin)
        return bad(tensor->name, "its slice is not [first row, rows of the whole tensor]");
    return HPCT_OK;
}

static hpct_status describe(hpct_ckpt_store_tensor *out, const hpct_weights_st_entry *entry,
                            const json_t *slices)
{
    size_t type = 0;
    while (type < NUM_TYPES && strcmp(dtypes[type], entry->dtype) != 0)
        type++;
    if (type == NUM_TYPES)
        return bad(entry->name, "its type is none of a checkpoint's: F32, F64, I64, U64, U8");
    *out = (hpct_ckpt_store_tensor){
        .name = entry->name, .type = (hpct_ckpt_store_type) type, .rank = entry->rank};
    memcpy(out->shape, entry->shape, sizeof out->shape);
    const json_t *rows = json_object_get(slices, entry->name);
    return rows != NULL ? read_slice(out, rows) : HPCT_OK;
}

static hpct_status parse_tensors(hpct_ckpt_part *part)
{
    json_t *slices = NULL;
    if (part->index.slices != NULL) {
        slices = json_loads(part->index.slices, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(slices)) {
            json_decref(slices);
            return hpct_fail(HPCT_ERR_DATA, "its \"slices\" are not a JSON object");
        }
    }
    hpct_status status = HPCT_OK;
    part->tensors = calloc(part->index.count + 1, sizeof *part->tensors);
    if (part->tensors == NULL)
        status = hpct_fail_memory((part->index.count + 1) * sizeof *part->tensors);
    for (size_t i = 0; i < part->index.count && status == HPCT_OK; i++)
        status = describe(&part->tensors[i], &part->index.entries[i], slices);
    json_decref(slices);
    return status;
}

hpct_status hpct_ckpt_part_parse(hpct_ckpt_part *part, const char *header, size_t length,
                                 uint64_t data_bytes)
{
    HPCT_TRY(hpct_weights_st_parse(&part->index, header, length, data_bytes));
    return parse_tensors(part);
}

static hpct_status read_header(hpct_ckpt_part *part, int fd, uint64_t bytes)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return hpct_file_failed("reading", part->path);
    if (!S_ISREG(info.st_mode))
        return hpct_fail(HPCT_ERR_DATA, "%s is not a file", part->path);
    if ((uint64_t) info.st_size != bytes)
        return hpct_fail(HPCT_ERR_DATA, "%s: it has %lld bytes, and the manifest says %" PRIu64,
                         part->path, (long long) info.st_size, bytes);
    HPCT_TRY(hpct_weights_st_read(&part->index, fd, bytes, part->path));
    hpct_status status = parse_tensors(part);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, part->path);
}

hpct_status hpct_ckpt_part_open(hpct_ckpt_part *out, const char *folder, const char *name,
                                uint64_t bytes)
{
    *out = (hpct_ckpt_part){.path = NULL};
    HPCT_TRY(hpct_ckpt_disk_join(&out->path, folder, name));
    int fd = open(out->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* no pipe is waited for */
    hpct_status status =
        fd >= 0 ? read_header(out, fd, bytes)
                : hpct_fail(HPCT_ERR_DATA, "%s cannot be opened: %s", out->path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (status != HPCT_OK)
        hpct_ckpt_part_free(out);
    return status;
}

void hpct_ckpt_part_free(hpct_ckpt_part *part)
{
    free(part->tensors);
    hpct_weights_st_free(&part->index);
    free(part->path);
    *part = (hpct_ckpt_part){.path = NULL};
}
