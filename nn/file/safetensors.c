/* Parses and formats the header of a safetensors file. The input is untrusted. */
#include "nn/file/safetensors.h"

#include "base/file.h"
#include "base/status.h"

#include <endian.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "numbers are written as they lie in memory");

static hpct_status bad(const char *name, const char *what)
{
    return hpct_fail(HPCT_ERR_DATA, "tensor \"%.80s\": %s", name, what);
}

unsigned hpct_weights_st_element_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        unsigned bytes;
    } types[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                 {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U64", 8},  {"U32", 4},
                 {"U16", 2}, {"U8", 1},  {"BOOL", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, dtype) == 0)
            return types[i].bytes;
    }
    return 0;
}

static hpct_status read_shape(hpct_weights_st_entry *entry, const json_t *shape, uint64_t *elements)
{
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > HPCT_WEIGHTS_ST_MAX_RANK)
        return bad(entry->name, "its shape is not a list of at most 8 sizes");
    entry->rank = (int) rank;
    *elements = 1;
    for (size_t i = 0; i < rank; i++) {
        const json_t *size = json_array_get(shape, i);
        json_int_t value = json_integer_value(size);
        if (!json_is_integer(size) || value < 0)
            return bad(entry->name, "a size in its shape is not a whole number from 0 on");
        entry->shape[i] = value;
        if (__builtin_mul_overflow(*elements, (uint64_t) value, elements))
            return bad(entry->name, "its shape is too large");
    }
    return HPCT_OK;
}

static hpct_status read_offsets(hpct_weights_st_entry *entry, const json_t *offsets,
                                uint64_t data_bytes)
{
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return bad(entry->name, "its data_offsets are not [begin, end]");
    entry->begin = (uint64_t) json_integer_value(begin);
    entry->end = (uint64_t) json_integer_value(end);
    if (entry->end > data_bytes)
        return bad(entry->name, "its data would lie behind the end of the file");
    return HPCT_OK;
}

static hpct_status read_entry(hpct_weights_st_entry *entry, const char *name, const json_t *value,
                              uint64_t data_bytes)
{
    uint64_t elements = 0, bytes;
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    entry->name = strdup(name);
    if (entry->name == NULL)
        return hpct_fail_memory(strlen(name) + 1);
    unsigned size = dtype != NULL ? hpct_weights_st_element_bytes(dtype) : 0;
    if (size == 0)
        return bad(name, "its dtype is missing or unknown");
    snprintf(entry->dtype, sizeof entry->dtype, "%s", dtype);
    entry->is_f32 = strcmp(dtype, "F32") == 0;
    HPCT_TRY(read_shape(entry, json_object_get(value, "shape"), &elements));
    HPCT_TRY(read_offsets(entry, json_object_get(value, "data_offsets"), data_bytes));
    if (__builtin_mul_overflow(elements, (uint64_t) size, &bytes) ||
        bytes != entry->end - entry->begin)
        return bad(name, "its shape and its data_offsets disagree");
    return HPCT_OK;
}

static int by_begin(const void *a, const void *b)
{
    const hpct_weights_st_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end); /* empty ones first */
}

static hpct_status check_cover(const hpct_weights_st_index *index, uint64_t data_bytes)
{
    uint64_t at = 0;
    for (size_t i = 0; i < index->count; i++) {
        const hpct_weights_st_entry *entry = &index->entries[i];
        if (entry->begin < at)
            return bad(entry->name, "its data overlaps another tensor's");
        if (entry->begin > at)
            return bad(entry->name, "there is a gap before its data");
        at = entry->end;
    }
    if (at != data_bytes)
        return hpct_fail(HPCT_ERR_DATA, "the file is longer than its tensors");
    return HPCT_OK;
}

static hpct_status read_text(char **out, const json_t *metadata, const char *key)
{
    const char *text = json_string_value(json_object_get(metadata, key));
    if (text == NULL)
        return HPCT_OK;
    *out = strdup(text);
    return *out != NULL ? HPCT_OK : hpct_fail_memory(strlen(text) + 1);
}

/* Metadata of other programs may have any content. */
static hpct_status read_metadata(hpct_weights_st_index *out, const json_t *metadata)
{
    HPCT_TRY(read_text(&out->class_names, metadata, "class_names"));
    HPCT_TRY(read_text(&out->trained_with, metadata, "trained_with"));
    return read_text(&out->slices, metadata, "slices");
}

static hpct_status read_entries(hpct_weights_st_index *out, json_t *root, uint64_t data_bytes)
{
    const char *name;
    json_t *value;
    size_t size = json_object_size(root) + 1;
    out->entries = calloc(size, sizeof *out->entries);
    if (out->entries == NULL)
        return hpct_fail_memory(size * sizeof *out->entries);
    json_object_foreach (root, name, value)
        HPCT_TRY(strcmp(name, "__metadata__") == 0
                     ? read_metadata(out, value)
                     : read_entry(&out->entries[out->count++], name, value, data_bytes));
    qsort(out->entries, out->count, sizeof *out->entries, by_begin);
    return check_cover(out, data_bytes);
}

hpct_status hpct_weights_st_parse(hpct_weights_st_index *out, const char *header, size_t length,
                                  uint64_t data_bytes)
{
    json_error_t error;
    *out = (hpct_weights_st_index){0};
    json_t *root = json_loadb(header, length, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return hpct_fail(HPCT_ERR_DATA, "the header is not JSON: %s", error.text);
    hpct_status status = json_is_object(root)
                             ? read_entries(out, root, data_bytes)
                             : hpct_fail(HPCT_ERR_DATA, "the header is not a JSON object");
    json_decref(root);
    if (status != HPCT_OK)
        hpct_weights_st_free(out);
    return status;
}

hpct_status hpct_weights_st_read(hpct_weights_st_index *out, int fd, uint64_t bytes,
                                 const char *path)
{
    uint64_t length;
    if (bytes < sizeof length)
        return hpct_fail(HPCT_ERR_DATA, "%s: too short for a safetensors file", path);
    HPCT_TRY(hpct_file_read_all(fd, &length, sizeof length, 0, path));
    if (length > HPCT_WEIGHTS_ST_MAX_HEADER || length > bytes - sizeof length)
        return hpct_fail(HPCT_ERR_DATA, "%s: not a safetensors file (header of %llu bytes)", path,
                         (unsigned long long) length);
    char *header = malloc(length + 1);
    if (header == NULL)
        return hpct_fail_memory(length + 1);
    hpct_status status = hpct_file_read_all(fd, header, length, sizeof length, path);
    if (status == HPCT_OK) {
        status = hpct_weights_st_parse(out, header, length, bytes - sizeof length - length);
        if (status != HPCT_OK)
            hpct_fail_within(status, path);
    }
    free(header);
    out->data_at = sizeof length + length;
    return status;
}

const hpct_weights_st_entry *hpct_weights_st_find(const hpct_weights_st_index *index,
                                                  const char *name)
{
    for (size_t i = 0; i < index->count; i++) {
        if (strcmp(index->entries[i].name, name) == 0)
            return &index->entries[i];
    }
    return NULL;
}

void hpct_weights_st_free(hpct_weights_st_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        free(index->entries[i].name);
    free(index->entries);
    free(index->class_names);
    free(index->trained_with);
    free(index->slices);
    *index = (hpct_weights_st_index){0};
}

static int add_entry(json_t *root, const hpct_weights_st_entry *entry)
{
    json_t *shape = json_array();
    for (int i = 0; i < entry->rank; i++)
        json_array_append_new(shape, json_integer(entry->shape[i]));
    json_t *value = json_pack("{s:s, s:o, s:[I, I]}", "dtype", entry->dtype, "shape", shape,
                              "data_offsets", (json_int_t) entry->begin, (json_int_t) entry->end);
    return json_object_set_new(root, entry->name, value);
}

static int add_texts(json_t *root, const hpct_weights_st_text *texts)
{
    json_t *metadata = json_object();
    int failed = metadata == NULL;
    for (; texts->key != NULL && !failed; texts++)
        failed = texts->text != NULL &&
                 json_object_set_new(metadata, texts->key, json_string(texts->text)) != 0;
    if (!failed && json_object_size(metadata) > 0)
        failed = json_object_set(root, "__metadata__", metadata) != 0;
    json_decref(metadata);
    return failed;
}

hpct_status hpct_weights_st_format(char **out, size_t *length, const hpct_weights_st_entry *entries,
                                   size_t count, const hpct_weights_st_text *texts)
{
    json_t *root = json_object();
    int failed = root == NULL || add_texts(root, texts);
    for (size_t i = 0; i < count && !failed; i++)
        failed = add_entry(root, &entries[i]) != 0;
    size_t used = failed ? 0 : json_dumpb(root, NULL, 0, JSON_COMPACT);
    uint64_t padded = (used + 7) & ~(size_t) 7;
    *length = sizeof padded + padded;
    *out = used > 0 ? malloc(*length) : NULL;
    if (*out != NULL) {
        memcpy(*out, &padded, sizeof padded);
        json_dumpb(root, *out + sizeof padded, used, JSON_COMPACT);
        memset(*out + sizeof padded + used, ' ', padded - used);
    }
    json_decref(root);
    return *out != NULL ? HPCT_OK : hpct_fail_memory(*length);
}
