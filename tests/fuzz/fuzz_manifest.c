/* Fuzz target: manifest.json and best.json, with the check they have and with the right one, and a
 * lock's text. */
#include "agent/checkpoint/holder.h"
#include "agent/checkpoint/manifest.h"
#include "base/digest.h"
#include "tests/fuzz/fuzz.h"

#include <jansson.h>

/* What parsing promises, and that the same comes back from what is written of it. */
static void look(hpct_ckpt_manifest *manifest)
{
    char *text;
    hpct_ckpt_manifest again;
    if (manifest->state >= manifest->count || manifest->step < 0 ||
        manifest->step > HPCT_CKPT_STORE_MAX_STEP ||
        manifest->count > HPCT_CKPT_STORE_MAX_PARTS + 1)
        abort();
    for (size_t i = 0; i < manifest->count; i++) {
        const hpct_ckpt_store_file *file = &manifest->files[i];
        if (!hpct_ckpt_manifest_name_ok(file->name) || strchr(file->name, '/') != NULL ||
            file->name[0] == '.' || file->bytes > INT64_MAX ||
            (i > 0 && strcmp(file[-1].name, file->name) >= 0))
            abort();
    }
    if (hpct_ckpt_manifest_format(&text, manifest) != HPCT_OK ||
        hpct_ckpt_manifest_parse(&again, text, strlen(text)) != HPCT_OK ||
        again.state != manifest->state || again.sequence != manifest->sequence ||
        memcmp(again.files, manifest->files, again.count * sizeof *again.files) != 0)
        abort();
    free(text);
    hpct_ckpt_manifest_free(&again);
}

static void parse(const char *text, size_t length)
{
    int64_t step, sequence;
    hpct_ckpt_manifest manifest;
    if (hpct_ckpt_manifest_parse(&manifest, text, length) == HPCT_OK) {
        look(&manifest);
        hpct_ckpt_manifest_free(&manifest);
    }
    if (hpct_ckpt_manifest_parse_best(&step, &sequence, text, length) == HPCT_OK &&
        (step < 0 || sequence < 0))
        abort();
}

static void parse_with_check(const char *text, size_t length)
{
    uint64_t hash[2];
    char check[HPCT_DIGEST_TEXT];
    json_t *root = json_loadb(text, length, 0, NULL);
    json_object_del(root, "check");
    char *compact = json_is_object(root) ? json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (compact != NULL) {
        hpct_digest_of(compact, strlen(compact), hash);
        hpct_digest_format(hash, check);
        json_object_set_new(root, "check", json_string(check));
        free(compact);
        compact = json_dumps(root, 0);
        parse(compact, strlen(compact));
        free(compact);
    }
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *holder = json_loadb((const char *) data, size, 0, NULL);
    char words[512];
    parse((const char *) data, size);
    parse_with_check((const char *) data, size);
    hpct_ckpt_holder_look(holder);
    hpct_ckpt_holder_describe(holder, words, sizeof words);
    json_decref(holder);
    return 0;
}
