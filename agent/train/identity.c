/* The table of keys, and where descriptions are compared. */
#include "agent/train/identity.h"

#include "agent/rank/compare.h"
#include "agent/rank/context.h"
#include "base/digest.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA HPCT_ERR_DATA
#define SETTING HPCT_ERR_CONFIG
#define LAYERS "layers"
#define CLASS_NAMES "class names"

const hpct_train_identity_key hpct_train_identity_keys[] = {
    /* name, status, ranks, continued, newer */
    {CLASS_NAMES, DATA, true, true, false},
    {"training samples", DATA, true, true, false},
    {"training data", DATA, true, true, true},
    {"validation data", DATA, true, false, false},
    {"data", DATA, true, false, false},
    {"hash of the weights", DATA, true, false, false},
    {"model", SETTING, false, true, false}, /* its name; with layers they are compared instead */
    {LAYERS, SETTING, true, true, true},
    {"frozen layers", SETTING, true, true, false},
    {"learning rates of layers", SETTING, true, true, false},
    {"regularizers", SETTING, true, true, false},
    {"precision", SETTING, true, false, false},
    {"loss", SETTING, true, true, false},
    {"label smoothing", SETTING, true, true, false},
    {"class weights", SETTING, true, true, false},
    {"top-k accuracy", SETTING, true, false, false},
    {"scale of images", SETTING, true, true, false},
    {"offset of images", SETTING, true, true, false},
    {"random flip", SETTING, true, true, false},
    {"random crop", SETTING, true, true, false},
    {"random rotation", SETTING, true, true, false},
    {"random zoom", SETTING, true, true, false},
    {"random translation", SETTING, true, true, false},
    {"random contrast", SETTING, true, true, false},
    {"operations of RandAugment", SETTING, true, true, false},
    {"strength of RandAugment", SETTING, true, true, false},
    {"alpha of mixup", SETTING, true, true, false},
    {"alpha of cutmix", SETTING, true, true, false},
    {"global batch", SETTING, true, true, false},
    {"steps per epoch", SETTING, true, true, false},
    {"steps", SETTING, true, false, false},
    {"seed", SETTING, true, true, false},
    {"epochs", SETTING, true, false, false},
    {"first epoch", SETTING, true, false, false},
    {"optimizer", SETTING, true, true, false},
    {"learning rate", SETTING, true, true, false},
    {"momentum", SETTING, true, true, false},
    {"nesterov", SETTING, true, true, false},
    {"beta_1", SETTING, true, true, false},
    {"beta_2", SETTING, true, true, false},
    {"epsilon", SETTING, true, true, false},
    {"rho", SETTING, true, true, false},
    {"centered", SETTING, true, true, true},
    {"trust coefficient", SETTING, true, true, true},
    {"trust all", SETTING, true, true, true},
    {"weight decay", SETTING, true, true, false},
    {"clipvalue", SETTING, true, true, false},
    {"clipnorm", SETTING, true, true, false},
    {"global clipnorm", SETTING, true, true, false},
    {"gradient accumulation", SETTING, true, true, false},
    {"schedule", SETTING, true, true, false},
    {"first step of the schedule", SETTING, true, true, false},
    {"numbers of the schedule", SETTING, true, false, false},
    {"strategy", SETTING, true, false, false},
    {HPCT_TRAIN_IDENTITY_OPTIONS, SETTING, true, false, false},
    {.name = NULL},
};

static const hpct_train_identity_key *find_key(const char *name)
{
    const hpct_train_identity_key *key = hpct_train_identity_keys;
    while (key->name != NULL && strcmp(key->name, name) != 0)
        key++;
    return key->name != NULL ? key : NULL;
}

/* ---- between ranks ---- */

static hpct_status status_of_key(const char *name)
{
    const hpct_train_identity_key *key = find_key(name);
    return key != NULL ? key->status : HPCT_ERR_INTERNAL;
}

static const char *advise(hpct_status status)
{
    return status == HPCT_ERR_DATA ? "all ranks need the same data, complete before the run begins"
                                   : "start all ranks with the same options and the same model";
}

json_t *hpct_train_identity_of_ranks(const json_t *description)
{
    json_t *part = json_object();
    for (const hpct_train_identity_key *key = hpct_train_identity_keys; key->name != NULL; key++) {
        json_t *value = json_object_get(description, key->name);
        if (key->ranks && value != NULL && json_object_set(part, key->name, value) != 0) {
            json_decref(part);
            return NULL;
        }
    }
    return part;
}

hpct_status hpct_train_identity_agree(hpct_context *context, const hpct_train_identity_of *of)
{
    json_t *whole = NULL, *part = NULL;
    if (hpct_context_size(context) == 1)
        return HPCT_OK;
    hpct_status status = hpct_train_identity_describe(&whole, of);
    if (status == HPCT_OK)
        part = hpct_train_identity_of_ranks(whole);
    if (status == HPCT_OK && part == NULL)
        status = hpct_fail_memory(0);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = hpct_rank_compare_ranks(context, part, status_of_key, advise);
    json_decref(part);
    json_decref(whole);
    return status;
}

/* ---- briefs ---- */

#define DIGITS 3 /* of each key */
#define NUM_KEYS (sizeof hpct_train_identity_keys / sizeof hpct_train_identity_keys[0] - 1)
_Static_assert(DIGITS *NUM_KEYS < HPCT_TRAIN_IDENTITY_BRIEF, "a brief has all keys");

static unsigned hash_value(const json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    uint64_t hash = text != NULL ? hpct_digest_64(text, strlen(text)) : 0;
    free(text);
    return (unsigned) (hash >> 32) & 0xfff;
}

void hpct_train_identity_brief(const json_t *description, char text[HPCT_TRAIN_IDENTITY_BRIEF])
{
    for (size_t i = 0; i < NUM_KEYS; i++) {
        const hpct_train_identity_key *key = &hpct_train_identity_keys[i];
        const json_t *value = key->ranks ? json_object_get(description, key->name) : NULL;
        snprintf(text + DIGITS * i, DIGITS + 1, "%03x", hash_value(value));
    }
}

int hpct_train_identity_compare_briefs(const char *own, const char *other)
{
    if (strlen(own) != DIGITS * NUM_KEYS || strlen(other) != DIGITS * NUM_KEYS)
        return -1;
    for (size_t i = 0; i < NUM_KEYS; i++) {
        if (strncmp(own + DIGITS * i, other + DIGITS * i, DIGITS) != 0)
            return (int) i;
    }
    return -1;
}

const char *hpct_train_identity_print(const json_t *description, int key,
                                      char text[HPCT_TRAIN_IDENTITY_VALUE])
{
    const json_t *value = json_object_get(description, hpct_train_identity_keys[key].name);
    char *dump = value != NULL ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : NULL;
    bool is_short = dump != NULL && strlen(dump) < HPCT_TRAIN_IDENTITY_VALUE;
    snprintf(text, HPCT_TRAIN_IDENTITY_VALUE, "%s", is_short ? dump : "another");
    free(dump);
    return text;
}

hpct_status hpct_train_identity_fail(const json_t *own, int key, const char *theirs,
                                     const char *name, const char *who)
{
    char value[HPCT_TRAIN_IDENTITY_VALUE];
    if (key < 0 || key >= (int) NUM_KEYS)
        return hpct_fail(HPCT_ERR_CONFIG, "%s: %s has another run", name, who);
    hpct_status status = hpct_train_identity_keys[key].status;
    return hpct_fail(status, "%s disagrees with %s: %s is %s here, %s there: %s", name, who,
                     hpct_train_identity_keys[key].name, hpct_train_identity_print(own, key, value),
                     theirs, advise(status));
}

/* ---- with a checkpoint ---- */

/* Of one key; a missing value is null, as releases without the key had nothing of its kind. */
static bool differs(const char *name, json_t *own, json_t *theirs, hpct_rank_difference *out)
{
    json_t *a = json_pack("{s:O?}", name, own), *b = json_pack("{s:O?}", name, theirs);
    bool found = hpct_rank_find_difference(a, b, out);
    json_decref(a);
    json_decref(b);
    return found;
}

static json_t *value_of(const json_t *theirs, const json_t *class_names, const char *name)
{
    json_t *value = json_object_get(theirs, name);
    bool beside = value == NULL && strcmp(name, CLASS_NAMES) == 0 && json_is_array(class_names);
    return beside ? (json_t *) (uintptr_t) class_names : value;
}

static bool is_compared(const hpct_train_identity_key *key, const json_t *theirs)
{
    bool named_only = strcmp(key->name, "model") == 0;
    return key->continued && !(named_only && json_object_get(theirs, LAYERS) != NULL);
}

/* Appends ", NAME". */
static void note_unknown(char **list, const char *name)
{
    char *longer = NULL;
    if (asprintf(&longer, "%s%s%s", *list != NULL ? *list : "", *list != NULL ? ", " : "", name) <
        0)
        return;
    free(*list);
    *list = longer;
}

hpct_status hpct_train_identity_continue(const json_t *own, const json_t *theirs,
                                         const json_t *class_names, const char *folder,
                                         char **unknown)
{
    hpct_rank_difference d;
    *unknown = NULL;
    for (const hpct_train_identity_key *key = hpct_train_identity_keys; key->name != NULL; key++) {
        json_t *mine = json_object_get(own, key->name);
        json_t *there = value_of(theirs, class_names, key->name);
        if (!is_compared(key, theirs) || mine == NULL)
            continue;
        if (key->newer && there == NULL) {
            note_unknown(unknown, key->name);
            continue;
        }
        if (differs(key->name, mine, there, &d))
            return hpct_fail(HPCT_ERR_CONFIG,
                             "%s is of a run with %s %s, this one has %s: continue it with the "
                             "same options, model and data, give another --checkpoint-dir, or "
                             "begin anew with --resume never",
                             folder, d.where, d.others, d.own);
    }
    return HPCT_OK;
}
