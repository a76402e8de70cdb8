/* Manifests: what is written is read again; what is changed, missing or hostile is refused. */
#include "agent/checkpoint/manifest.h"
#include "base/digest.h"
#include "tests/unit/cases.h"

#include <jansson.h>

#define HASH "\"xxh3\": \"0123456789abcdef0123456789abcdef\""
#define STATE "{\"name\": \"state.json\", \"bytes\": 2, " HASH "}"

/* The text with the check that it needs. */
static char *with_check(const char *text)
{
    uint64_t hash[2];
    char check[HPCT_DIGEST_TEXT];
    json_t *root = json_loads(text, JSON_ALLOW_NUL, NULL);
    assert_non_null(root);
    char *compact = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    hpct_digest_of(compact, strlen(compact), hash);
    hpct_digest_format(hash, check);
    free(compact);
    json_object_set_new(root, "check", json_string(check));
    char *out = json_dumps(root, 0);
    json_decref(root);
    return out;
}

static hpct_status parse(const parse_case *c, char *got, size_t size)
{
    hpct_ckpt_manifest manifest;
    char *text = c->number == 0 ? with_check(c->text) : strdup(c->text);
    hpct_status status = hpct_ckpt_manifest_parse(&manifest, text, strlen(text));
    free(text);
    if (status != HPCT_OK)
        return status;
    snprintf(got, size, "%lld %lld %zu %s", (long long) manifest.step,
             (long long) manifest.sequence, manifest.count, manifest.files[manifest.state].name);
    hpct_ckpt_manifest_free(&manifest);
    return HPCT_OK;
}

#define MANIFEST(step, sequence, state, files)                                                     \
    "{\"format\": 1, \"step\": " step ", \"sequence\": " sequence                                  \
    ", \"time\": 5, \"state\": " state ", \"files\": [" files "]}"
#define FILES(files) MANIFEST("7", "2", "\"state.json\"", STATE ", " files)
#define NAMED(name) FILES("{\"name\": " name ", \"bytes\": 1, " HASH "}")

TEST(refuses_what_is_not_a_manifest)
{
    static const parse_case cases[] = {
        {MANIFEST("7", "2", "\"state.json\"", STATE), HPCT_OK, "7 2 1 state.json"},
        {NAMED("\"part-00000.safetensors\""), HPCT_OK, "7 2 2 state.json"},
        {NAMED("\"A-Z_0.9.x\""), HPCT_OK, "7 2 2 state.json"},
        {MANIFEST("-1", "2", "\"state.json\"", STATE), HPCT_ERR_DATA, "step"},
        {MANIFEST("10000000000", "2", "\"state.json\"", STATE), HPCT_ERR_DATA, "step"},
        {MANIFEST("1.0", "2", "\"state.json\"", STATE), HPCT_ERR_DATA, "step"},
        {MANIFEST("\"7\"", "2", "\"state.json\"", STATE), HPCT_ERR_DATA, "step"},
        {MANIFEST("7", "-2", "\"state.json\"", STATE), HPCT_ERR_DATA, "sequence"},
        {MANIFEST("7", "9223372036854775807", "\"state.json\"", STATE), HPCT_ERR_DATA, "sequence"},
        {MANIFEST("7", "2", "\"other.json\"", STATE), HPCT_ERR_DATA, "state"},
        {MANIFEST("7", "2", "null", STATE), HPCT_ERR_DATA, "state"},
        {MANIFEST("7", "2", "\"state.json\"", ""), HPCT_ERR_DATA, "files"},
        {"{\"format\": 1, \"step\": 7, \"sequence\": 1, \"time\": 1, \"state\": \"s\"}",
         HPCT_ERR_DATA, "files"},
        {"{\"format\": 2}", HPCT_ERR_DATA, "format|another version"},
        {"{}", HPCT_ERR_DATA, "format"},
        {FILES("7"), HPCT_ERR_DATA, "name"},
        {NAMED("7"), HPCT_ERR_DATA, "name"},
        {NAMED("\"\""), HPCT_ERR_DATA, "name"},
        {NAMED("\"..\""), HPCT_ERR_DATA, "name"},
        {NAMED("\"../x\""), HPCT_ERR_DATA, "name"},
        {NAMED("\"/etc/passwd\""), HPCT_ERR_DATA, "name"},
        {NAMED("\"a/b\""), HPCT_ERR_DATA, "name"},
        {NAMED("\".hidden\""), HPCT_ERR_DATA, "name"},
        {NAMED("\"a b\""), HPCT_ERR_DATA, "name"},
        {NAMED("\"a\\nb\""), HPCT_ERR_DATA, "name"},
        {NAMED("\"manifest.json\""), HPCT_ERR_DATA, "name"},
        {NAMED("\"0123456789012345678901234567890123456789012345678901234567890123\""),
         HPCT_ERR_DATA, "name"},
        {NAMED("\"state.json\""), HPCT_ERR_DATA, "twice"},
        {FILES("{\"name\": \"a\", \"bytes\": -1, " HASH "}"), HPCT_ERR_DATA, "bytes"},
        {FILES("{\"name\": \"a\", " HASH "}"), HPCT_ERR_DATA, "bytes"},
        {FILES("{\"name\": \"a\", \"bytes\": 1}"), HPCT_ERR_DATA, "xxh3"},
        {FILES("{\"name\": \"a\", \"bytes\": 1, \"xxh3\": \"0123\"}"), HPCT_ERR_DATA, "xxh3"},
        {FILES("{\"name\": \"a\", \"bytes\": 1, \"xxh3\": \"0123456789ABCDEF0123456789abcdef\"}"),
         HPCT_ERR_DATA, "xxh3"},
        {"[1]", HPCT_ERR_DATA, "not a JSON object", 1},
        {"", HPCT_ERR_DATA, "not JSON", 1},
        {"{\"format\": 1", HPCT_ERR_DATA, "not JSON", 1},
        {"{\"format\": 1, \"format\": 1}", HPCT_ERR_DATA, "not JSON", 1},
        {"{\"format\": 1}", HPCT_ERR_DATA, "no check", 1},
        {"{\"format\": 1, \"check\": 3}", HPCT_ERR_DATA, "no check", 1},
        {"{\"format\": 1, \"check\": \"0123456789abcdef0123456789abcdef\"}", HPCT_ERR_DATA,
         "changed", 1},
    };
    RUN_CASES(parse, cases);
}

TEST(refuses_too_many_files)
{
    hpct_ckpt_manifest manifest;
    json_t *files = json_array(), *none = json_object();
    for (int i = 0; i < HPCT_CKPT_STORE_MAX_PARTS + 2; i++)
        json_array_append(files, none);
    json_t *root = json_pack("{s:i, s:i, s:i, s:i, s:s, s:o}", "format", 1, "step", 1, "sequence",
                             1, "time", 1, "state", "f0", "files", files);
    char *plain = json_dumps(root, 0), *text = with_check(plain);
    assert_int_equal(hpct_ckpt_manifest_parse(&manifest, text, strlen(text)), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "too many"));
    free(text);
    free(plain);
    json_decref(none);
    json_decref(root);
}

/* Any change of a digit or letter is found by the check; of blanks none. */
TEST(finds_every_change)
{
    hpct_ckpt_store_file files[] = {{"state.json", 20, {1, 2}},
                                    {"part-00000.safetensors", 99, {3, 4}}};
    hpct_ckpt_manifest manifest = {.step = 1234567890, .sequence = 7, .files = files, .count = 2};
    char *text;
    assert_int_equal(hpct_ckpt_manifest_format(&text, &manifest), HPCT_OK);
    assert_string_equal(files[manifest.state].name, "state.json");
    size_t length = strlen(text);
    int changed = 0;
    for (size_t i = 0; i < length; i++) {
        char kept = text[i];
        if (kept == ' ' || kept == '\n')
            continue;
        text[i] = kept == '1' ? '2' : '1';
        hpct_ckpt_manifest read;
        assert_int_equal(hpct_ckpt_manifest_parse(&read, text, length), HPCT_ERR_DATA);
        text[i] = kept;
        changed++;
    }
    assert_true(changed > 200);
    hpct_ckpt_manifest read;
    assert_int_equal(hpct_ckpt_manifest_parse(&read, text, length), HPCT_OK);
    assert_int_equal(read.step, manifest.step);
    assert_int_equal(read.sequence, 7);
    assert_int_equal(read.count, 2);
    assert_memory_equal(read.files, files, sizeof files);
    hpct_ckpt_manifest_free(&read);
    free(text);
}

TEST(writes_no_wrong_manifest)
{
    char *text;
    hpct_ckpt_store_file twice[] = {{"a", 1, {0, 0}}, {"b", 1, {0, 0}}, {"a", 1, {0, 0}}};
    hpct_ckpt_manifest manifest = {.files = twice, .count = 3, .state = 1};
    assert_int_equal(hpct_ckpt_manifest_format(&text, &manifest), HPCT_ERR_USAGE);
    hpct_ckpt_store_file outside[] = {{"state.json", 1, {0, 0}}, {"../a", 1, {0, 0}}};
    manifest = (hpct_ckpt_manifest){.files = outside, .count = 2};
    assert_int_equal(hpct_ckpt_manifest_format(&text, &manifest), HPCT_ERR_USAGE);
}

TEST(reads_the_best_it_wrote)
{
    char *text;
    int64_t step = 0, sequence = 0;
    assert_int_equal(hpct_ckpt_manifest_format_best(&text, 12, 34), HPCT_OK);
    assert_int_equal(hpct_ckpt_manifest_parse_best(&step, &sequence, text, strlen(text)), HPCT_OK);
    assert_int_equal(step, 12);
    assert_int_equal(sequence, 34);
    *strstr(text, "12") = '2';
    assert_int_equal(hpct_ckpt_manifest_parse_best(&step, &sequence, text, strlen(text)),
                     HPCT_ERR_DATA);
    free(text);
}
