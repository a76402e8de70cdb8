/* Where a run is, in a checkpoint: it comes back, and forged numbers are refused by name. */
#include "agent/train/place.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static json_t *write_place(void)
{
    const hpct_train_place place = {
        .epoch = 3,
        .step = 5,
        .samples = 80,
        .steps = 5,
        .loss = 1.0 / 3,
        .has_loss = true,
        .logs = {{.bytes = 12, .end = "x\n"}, {.bytes = -1}},
        .watch = {.stopping = {true, 0.5, "val_loss", 2, 1, 0}, .rate = 1e-3},
        .halvings = 1};
    json_t *json = hpct_train_place_to_json(&place);
    assert_non_null(json);
    return json;
}

TEST(a_place_comes_back)
{
    json_t *json = write_place();
    hpct_train_place place;
    assert_int_equal(hpct_train_place_from_json(json, &place), HPCT_OK);
    assert_true(place.epoch == 3 && place.step == 5 && place.samples == 80 && place.steps == 5);
    assert_true(place.loss == 1.0 / 3 && place.has_loss && place.halvings == 1);
    assert_true(place.logs.csv.bytes == 12 && place.logs.steps.bytes == -1);
    assert_string_equal(place.logs.csv.end, "x\n");
    assert_true(place.watch.stopping.best_epoch == 2 && place.watch.rate == 1e-3);
    json_decref(json);
}

/* The value at a path of keys is replaced by a JSON text. */
static void replace(json_t *object, const char *path, const char *text)
{
    char key[64];
    for (size_t length; path[length = strcspn(path, "/")] == '/'; path += length + 1) {
        snprintf(key, sizeof key, "%.*s", (int) length, path);
        object = json_object_get(object, key);
    }
    json_object_set_new(object, path, json_loads(text, JSON_DECODE_ANY, NULL));
}

TEST(forged_numbers_are_refused)
{
    static const struct {
        const char *path, *value, *named;
    } cases[] = {
        {"epoch", "4611686018427387904", "epoch"},
        {"epoch", "2147483647", "epoch"},
        {"epoch", "-1", "epoch"},
        {"epoch", "3.5", "epoch"},
        {"epoch", "\"3\"", "epoch"},
        {"step", "4611686018427387904", "step"},
        {"step", "-1", "step"},
        {"samples", "9223372036854775807", "samples"},
        {"steps", "6", "steps"},
        {"halvings", "2", "halvings"},
        {"halvings", "1099511627776", "halvings"}, /* 0 as an int */
        {"csv_bytes", "4611686018427387904", "csv_bytes"},
        {"steps_bytes", "-2", "steps_bytes"},
        {"csv_end", "null", "csv_end"},
        {"watch/early_stopping/best_epoch", "9223372036854775807", "watch"},
        {"watch/early_stopping/wait", "-1", "watch"},
        {"watch/plateau/cooldown", "4611686018427387904", "watch"},
        {"watch/target/best_epoch", "-1", "watch"},
        {"watch/learning_rate", "-1", "watch"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *json = write_place();
        hpct_train_place place;
        char named[64];
        replace(json, cases[i].path, cases[i].value);
        snprintf(named, sizeof named, "its \"%s\"", cases[i].named);
        if (hpct_train_place_from_json(json, &place) != HPCT_ERR_DATA ||
            strstr(hpct_last_error(), named) == NULL)
            fail_msg("%s: %s: %s", cases[i].path, cases[i].value, hpct_last_error());
        json_decref(json);
    }
}
