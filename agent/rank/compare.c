/* Ranks compare hashes of their texts; the texts are sent only to name a difference. */
#include "agent/rank/compare.h"

#include "agent/rank/context.h"
#include "base/digest.h"
#include "base/status.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- differences of JSON values ---- */

static void print_value(char *out, size_t size, const json_t *value)
{
    char *text = value != NULL && !json_is_string(value)
                     ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9))
                     : NULL;
    const char *shown = value == NULL           ? "not given"
                        : json_is_null(value)   ? "none"
                        : json_is_string(value) ? json_string_value(value)
                        : text != NULL          ? text
                                                : "?";
    bool cut = strlen(shown) >= size;
    snprintf(out, size, "%.*s%s", (int) size - 4, shown, cut ? "..." : "");
    free(text);
}

static void append(char *to, size_t size, const char *text)
{
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%s%s", used > 0 ? ", " : "", text);
}

static bool differ(const json_t *own, const json_t *other, hpct_rank_difference *out);

static bool lists_differ(const json_t *own, const json_t *other, hpct_rank_difference *out)
{
    size_t count = json_array_size(own), others = json_array_size(other);
    for (size_t i = 0; i < count && i < others; i++) {
        const json_t *element = json_array_get(own, i);
        const char *name = json_string_value(json_object_get(element, "name"));
        char number[32];
        if (json_equal((json_t *) (uintptr_t) element, json_array_get(other, i)))
            continue;
        snprintf(number, sizeof number, "number %zu", i);
        append(out->where, sizeof out->where, name != NULL ? name : number);
        return differ(element, json_array_get(other, i), out);
    }
    if (count == others)
        return false;
    append(out->where, sizeof out->where, "length");
    snprintf(out->own, sizeof out->own, "%zu", count);
    snprintf(out->others, sizeof out->others, "%zu", others);
    return true;
}

/* The first key whose values differ; *of: the object that it was found in. */
static const char *differing_key(const json_t *own, const json_t *other)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *) (uintptr_t) own, key, value) {
        const json_t *there = json_object_get(other, key);
        if (there == NULL || !json_equal(value, (json_t *) (uintptr_t) there))
            return key;
    }
    return NULL;
}

static bool objects_differ(const json_t *own, const json_t *other, hpct_rank_difference *out)
{
    const char *key = differing_key(own, other);
    if (key == NULL)
        key = differing_key(other, own);
    if (key == NULL)
        return false;
    append(out->where, sizeof out->where, key);
    return differ(json_object_get(own, key), json_object_get(other, key), out);
}

static bool differ(const json_t *own, const json_t *other, hpct_rank_difference *out)
{
    if (json_is_object(own) && json_is_object(other))
        return objects_differ(own, other, out);
    if (json_is_array(own) && json_is_array(other))
        return lists_differ(own, other, out);
    print_value(out->own, sizeof out->own, own);
    print_value(out->others, sizeof out->others, other);
    return own == NULL || other == NULL ||
           !json_equal((json_t *) (uintptr_t) own, (json_t *) (uintptr_t) other);
}

bool hpct_rank_find_difference(const json_t *own, const json_t *other, hpct_rank_difference *out)
{
    *out = (hpct_rank_difference){.key = ""};
    const char *key = differing_key(own, other);
    if (key == NULL)
        key = differing_key(other, own);
    if (key != NULL)
        snprintf(out->key, sizeof out->key, "%s", key);
    return objects_differ(own, other, out);
}

/* ---- ranks ---- */

typedef struct record {
    uint64_t hash, bytes; /* of the text */
    char node[64];
} record;

/* *text: that of `rank`, which the caller frees. Collective. */
static hpct_status receive_text(hpct_context *context, int rank, const record *records,
                                const char *own, char **text)
{
    hpct_comm *comm = hpct_context_comm(context);
    size_t bytes = (size_t) records[rank].bytes;
    *text = calloc(1, bytes + 1);
    HPCT_TRY(hpct_context_agree(context, *text != NULL ? HPCT_OK : hpct_fail_memory(bytes)));
    if (rank == comm->rank)
        memcpy(*text, own, bytes);
    return comm->ops->broadcast(comm, *text, bytes, rank);
}

/* The same message on all ranks. */
static hpct_status name_difference(const record *records, int rank, const json_t *theirs,
                                   const json_t *first, hpct_status (*judge)(const char *key),
                                   const char *(*advise)(hpct_status status))
{
    hpct_rank_difference d;
    if (!hpct_rank_find_difference(theirs, first, &d))
        return hpct_fail(HPCT_ERR_INTERNAL, "the settings of rank %d cannot be compared", rank);
    hpct_status status = judge(d.key);
    return hpct_fail(status, "ranks disagree: %s is %s on rank %d (%s), %s on rank 0 (%s): %s",
                     d.where, d.own, rank, records[rank].node, d.others, records[0].node,
                     advise(status));
}

static hpct_status explain(hpct_context *context, const record *records, int rank, const char *own,
                           hpct_status (*judge)(const char *key),
                           const char *(*advise)(hpct_status status))
{
    char *theirs = NULL, *first = NULL;
    hpct_status status = receive_text(context, 0, records, own, &first);
    if (status == HPCT_OK)
        status = receive_text(context, rank, records, own, &theirs);
    if (status == HPCT_OK) {
        json_t *a = json_loads(theirs, 0, NULL), *b = json_loads(first, 0, NULL);
        status = name_difference(records, rank, a, b, judge, advise);
        json_decref(a);
        json_decref(b);
        status = hpct_context_agree(context, status);
    }
    free(theirs);
    free(first);
    return status;
}

/* The first rank whose text is another than rank 0's; 0 if there is none. */
static int first_that_differs(const record *records, int size)
{
    int rank = 1;
    while (rank < size && records[rank].hash == records[0].hash &&
           records[rank].bytes == records[0].bytes)
        rank++;
    return rank < size ? rank : 0;
}

static hpct_status compare_texts(hpct_context *context, const char *own, record *records,
                                 hpct_status (*judge)(const char *key),
                                 const char *(*advise)(hpct_status status))
{
    hpct_comm *comm = hpct_context_comm(context);
    record mine = {.hash = hpct_digest_64(own, strlen(own)), .bytes = strlen(own)};
    snprintf(mine.node, sizeof mine.node, "%s", hpct_context_node(context));
    HPCT_TRY(comm->ops->allgather(comm, &mine, records, sizeof mine));
    int rank = first_that_differs(records, comm->size);
    return rank == 0 ? HPCT_OK : explain(context, records, rank, own, judge, advise);
}

hpct_status hpct_rank_compare_ranks(hpct_context *context, const json_t *own,
                                    hpct_status (*judge)(const char *key),
                                    const char *(*advise)(hpct_status status))
{
    size_t size = (size_t) hpct_context_comm(context)->size;
    if (size == 1)
        return HPCT_OK;
    char *text = json_dumps(own, JSON_COMPACT | JSON_REAL_PRECISION(17));
    record *records = calloc(size, sizeof *records);
    hpct_status status = hpct_context_agree(
        context, text != NULL && records != NULL ? HPCT_OK : hpct_fail_memory(size));
    if (status == HPCT_OK)
        status = compare_texts(context, text, records, judge, advise);
    free(records);
    free(text);
    return status;
}

/* ---- settings of a program ---- */

static hpct_status judge_setting(const char *key)
{
    (void) key;
    return HPCT_ERR_CONFIG;
}

static const char *advise_setting(hpct_status status)
{
    (void) status;
    return "start all ranks with the same options";
}

hpct_status hpct_context_compare(hpct_context *context, const char *const *settings)
{
    json_t *object = json_object();
    for (; object != NULL && *settings != NULL; settings++) {
        const char *equals = strchr(*settings, '=');
        size_t length = equals != NULL ? (size_t) (equals - *settings) : strlen(*settings);
        char *name = strndup(*settings, length);
        json_object_set_new(object, name != NULL ? name : "",
                            json_string(equals != NULL ? equals + 1 : "given"));
        free(name);
    }
    hpct_status status = hpct_rank_compare_ranks(context, object, judge_setting, advise_setting);
    json_decref(object);
    return status;
}
