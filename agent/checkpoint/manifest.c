/* Parses and formats manifests. The input is untrusted. */
#include "agent/checkpoint/manifest.h"

#include "base/digest.h"
#include "base/status.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT 1
#define CHECKED (JSON_COMPACT | JSON_SORT_KEYS) /* the form that the check is of */

static hpct_status bad(const char *what)
{
    return hpct_fail(HPCT_ERR_DATA, "%s", what);
}

bool hpct_ckpt_manifest_name_ok(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  ".-_";
    size_t length = strlen(name);
    return length > 0 && length < HPCT_CKPT_STORE_NAME && name[0] != '.' &&
           strspn(name, letters) == length && strcmp(name, HPCT_CKPT_MANIFEST) != 0;
}

/* ---- what both files have ---- */

static hpct_status check_of(const json_t *root, char check[HPCT_DIGEST_TEXT])
{
    uint64_t hash[2];
    char *text = json_dumps(root, CHECKED);
    if (text == NULL)
        return hpct_fail_memory(0);
    hpct_digest_of(text, strlen(text), hash);
    hpct_digest_format(hash, check);
    free(text);
    return HPCT_OK;
}

static hpct_status verify_check(json_t *root)
{
    char check[HPCT_DIGEST_TEXT], want[HPCT_DIGEST_TEXT];
    const char *given = json_string_value(json_object_get(root, "check"));
    if (given == NULL || strlen(given) != HPCT_DIGEST_TEXT - 1)
        return bad("it has no check");
    memcpy(want, given, sizeof want);
    json_object_del(root, "check");
    HPCT_TRY(check_of(root, check));
    return strcmp(check, want) == 0 ? HPCT_OK : bad("it was changed: its check differs");
}

/* Takes ownership of `root`; NULL: out of memory. */
static hpct_status format_checked(char **out, json_t *root)
{
    char check[HPCT_DIGEST_TEXT];
    *out = NULL;
    hpct_status status = root != NULL ? check_of(root, check) : hpct_fail_memory(0);
    if (status == HPCT_OK && json_object_set_new(root, "check", json_string(check)) == 0)
        *out = json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    return status != HPCT_OK || *out != NULL ? status : hpct_fail_memory(0);
}

static hpct_status parse_checked(json_t **out, const char *text, size_t length)
{
    json_error_t error;
    *out = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (*out == NULL)
        return hpct_fail(HPCT_ERR_DATA, "it is not JSON: %s", error.text);
    hpct_status status = json_is_object(*out) ? HPCT_OK : bad("it is not a JSON object");
    if (status == HPCT_OK && json_integer_value(json_object_get(*out, "format")) != FORMAT)
        status = bad("its format is not 1: it was written by another version of hpc-train");
    if (status == HPCT_OK)
        status = verify_check(*out);
    if (status != HPCT_OK)
        json_decref(*out);
    return status;
}

static hpct_status get_number(int64_t *out, const json_t *object, const char *key, int64_t most)
{
    const json_t *value = json_object_get(object, key);
    *out = json_integer_value(value);
    if (json_is_integer(value) && *out >= 0 && *out <= most)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA, "its \"%s\" is missing or out of range", key);
}

/* ---- manifest.json ---- */

static int by_name(const void *a, const void *b)
{
    const hpct_ckpt_store_file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* A name that occurs twice; NULL: none. Sorts. */
static const char *find_double(hpct_ckpt_store_file *files, size_t count)
{
    if (count > 1)
        qsort(files, count, sizeof *files, by_name);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(files[i - 1].name, files[i].name) == 0)
            return files[i].name;
    }
    return NULL;
}

static hpct_status read_file(hpct_ckpt_store_file *file, const json_t *value)
{
    int64_t bytes;
    const char *name = json_string_value(json_object_get(value, "name"));
    if (name == NULL || !hpct_ckpt_manifest_name_ok(name))
        return bad("a file has no name, or one that may not be a checkpoint's");
    strcpy(file->name, name);
    HPCT_TRY(get_number(&bytes, value, "bytes", INT64_MAX));
    file->bytes = (uint64_t) bytes;
    if (!hpct_digest_parse(json_string_value(json_object_get(value, "xxh3")), file->hash))
        return bad("a file's \"xxh3\" is not 32 hexadecimal digits");
    return HPCT_OK;
}

static hpct_status read_files(hpct_ckpt_manifest *out, const json_t *files)
{
    size_t count = json_array_size(files);
    if (count == 0 || count > HPCT_CKPT_STORE_MAX_PARTS + 1)
        return bad("its \"files\" are missing or too many");
    out->files = calloc(count, sizeof *out->files);
    if (out->files == NULL)
        return hpct_fail_memory(count * sizeof *out->files);
    for (; out->count < count; out->count++)
        HPCT_TRY(read_file(&out->files[out->count], json_array_get(files, out->count)));
    const char *twice = find_double(out->files, count);
    return twice == NULL ? HPCT_OK : hpct_fail(HPCT_ERR_DATA, "it has %s twice", twice);
}

static hpct_status read_manifest(hpct_ckpt_manifest *out, const json_t *root)
{
    HPCT_TRY(get_number(&out->step, root, "step", HPCT_CKPT_STORE_MAX_STEP));
    HPCT_TRY(get_number(&out->sequence, root, "sequence", HPCT_CKPT_STORE_MAX_SEQUENCE));
    HPCT_TRY(get_number(&out->time, root, "time", INT64_MAX));
    HPCT_TRY(read_files(out, json_object_get(root, "files")));
    const char *state = json_string_value(json_object_get(root, "state"));
    while (state != NULL && out->state < out->count &&
           strcmp(out->files[out->state].name, state) != 0)
        out->state++;
    return state != NULL && out->state < out->count ? HPCT_OK
                                                    : bad("its \"state\" is none of its files");
}

hpct_status hpct_ckpt_manifest_parse(hpct_ckpt_manifest *out, const char *text, size_t length)
{
    json_t *root;
    *out = (hpct_ckpt_manifest){0};
    HPCT_TRY(parse_checked(&root, text, length));
    hpct_status status = read_manifest(out, root);
    json_decref(root);
    if (status != HPCT_OK)
        hpct_ckpt_manifest_free(out);
    return status;
}

void hpct_ckpt_manifest_free(hpct_ckpt_manifest *manifest)
{
    free(manifest->files);
    *manifest = (hpct_ckpt_manifest){0};
}

static int add_file(json_t *files, const hpct_ckpt_store_file *file)
{
    char hash[HPCT_DIGEST_TEXT];
    hpct_digest_format(file->hash, hash);
    return json_array_append_new(files, json_pack("{s:s, s:I, s:s}", "name", file->name, "bytes",
                                                  (json_int_t) file->bytes, "xxh3", hash));
}

hpct_status hpct_ckpt_manifest_format(char **out, hpct_ckpt_manifest *manifest)
{
    char state[HPCT_CKPT_STORE_NAME];
    strcpy(state, manifest->files[manifest->state].name);
    const char *twice = find_double(manifest->files, manifest->count);
    if (twice != NULL)
        return hpct_fail(HPCT_ERR_USAGE, "a checkpoint cannot have %s twice", twice);
    json_t *files = json_array();
    int failed = files == NULL;
    for (size_t i = 0; i < manifest->count && !failed; i++) {
        const hpct_ckpt_store_file *file = &manifest->files[i];
        if (!hpct_ckpt_manifest_name_ok(file->name) || file->bytes > INT64_MAX) {
            json_decref(files);
            return hpct_fail(HPCT_ERR_USAGE, "\"%.63s\" is not a file of a checkpoint", file->name);
        }
        if (strcmp(file->name, state) == 0)
            manifest->state = i;
        failed = add_file(files, file);
    }
    if (failed) {
        json_decref(files);
        return hpct_fail_memory(0);
    }
    return format_checked(
        out, json_pack("{s:i, s:I, s:I, s:I, s:s, s:o}", "format", FORMAT, "step",
                       (json_int_t) manifest->step, "sequence", (json_int_t) manifest->sequence,
                       "time", (json_int_t) manifest->time, "state", state, "files", files));
}

/* ---- best.json ---- */

hpct_status hpct_ckpt_manifest_parse_best(int64_t *step, int64_t *sequence, const char *text,
                                          size_t length)
{
    json_t *root;
    HPCT_TRY(parse_checked(&root, text, length));
    hpct_status status = get_number(step, root, "step", HPCT_CKPT_STORE_MAX_STEP);
    if (status == HPCT_OK)
        status = get_number(sequence, root, "sequence", HPCT_CKPT_STORE_MAX_SEQUENCE);
    json_decref(root);
    return status;
}

hpct_status hpct_ckpt_manifest_format_best(char **out, int64_t step, int64_t sequence)
{
    return format_checked(out, json_pack("{s:i, s:I, s:I}", "format", FORMAT, "step",
                                         (json_int_t) step, "sequence", (json_int_t) sequence));
}
