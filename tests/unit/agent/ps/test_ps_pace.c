/* agent/ps/pace: what is known of a run's workers, by a clock of the test's. */
#include "agent/ps/message.h"
#include "agent/ps/pace.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <unistd.h>

enum { WORKERS = 3 };
static char folder[64], status_path[96], pace_path[96];
static hpct_results_live *shown;
static hpct_train_pace_file *written;

static int make_folder(void **state)
{
    strcpy(folder, "/tmp/hpct-ps-pace-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(status_path, sizeof status_path, "%s/" HPCT_RESULTS_LIVE_FILE, folder);
    snprintf(pace_path, sizeof pace_path, "%s/pace.jsonl", folder);
    return 0;
}

static int remove_folder(void **state)
{
    unlink(status_path);
    unlink(pace_path);
    return rmdir(folder);
}

static hpct_ps_pace *open_pace(void)
{
    hpct_ps_pace *pace;
    const hpct_results_live_options options = {.log_dir = folder,
                                               .model = "mnist-cnn",
                                               .strategy = "parameter-server",
                                               .workers = WORKERS,
                                               .epochs = 9};
    assert_int_equal(hpct_results_live_open(&shown, &options), HPCT_OK);
    assert_int_equal(hpct_train_pace_file_open(&written, folder, false), HPCT_OK);
    assert_int_equal(hpct_ps_pace_open(&pace, WORKERS), HPCT_OK);
    return pace;
}

static void close_pace(hpct_ps_pace *pace)
{
    hpct_results_live_close(shown, HPCT_RESULTS_LIVE_FINISHED);
    hpct_train_pace_file_close(written);
    hpct_ps_pace_close(pace);
}

/* `busy`: ms of forward. */
static void compute(hpct_ps_pace *pace, int worker, float busy)
{
    const float parts[HPCT_PS_PARTS] = {[HPCT_TRAIN_PACE_STEP] = busy + 2,
                                        [HPCT_TRAIN_PACE_FORWARD] = busy,
                                        [HPCT_TRAIN_PACE_WAIT] = 1,
                                        [HPCT_TRAIN_PACE_MEMORY] = (float) (100 + worker)};
    hpct_ps_pace_gradient(pace, worker, parts);
}

static void step(hpct_ps_pace *pace, int64_t number, double now)
{
    hpct_ps_pace_step(pace, 1, number, number == 1000, now, written, shown);
}

/* The line of that number of pace.jsonl; NULL if there are not so many. */
static json_t *line_of(int number)
{
    json_t *line = NULL;
    char text[4096];
    FILE *file = fopen(pace_path, "r");
    for (int i = 0; file != NULL && i <= number; i++) {
        json_decref(line);
        line = fgets(text, sizeof text, file) != NULL ? json_loads(text, 0, NULL) : NULL;
    }
    if (file != NULL)
        fclose(file);
    return line;
}

static double at(const json_t *object, const char *key, size_t index)
{
    const json_t *value = json_array_get(json_object_get(object, key), index);
    assert_non_null(value);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

TEST_WITH(lines_are_means_of_some_seconds, make_folder, remove_folder)
{
    hpct_ps_pace *pace = open_pace();
    hpct_ps_pace_joined(pace, 0, "a", shown);
    hpct_ps_pace_joined(pace, 1, "b", shown);
    compute(pace, 0, 10);
    step(pace, 1, 100);
    compute(pace, 0, 20);
    compute(pace, 1, 7);
    step(pace, 2, 104.9);
    hpct_train_pace_file_settle(written);
    assert_null(line_of(0));
    step(pace, 3, 105);
    compute(pace, 0, 40);
    step(pace, 1000, 106); /* the epoch's last */
    close_pace(pace);
    json_t *first = line_of(0), *second = line_of(1);
    assert_non_null(first);
    assert_int_equal(json_integer_value(json_object_get(first, "steps")), 3);
    assert_int_equal(json_integer_value(json_object_get(first, "step")), 3);
    assert_true(at(first, "step_ms", 0) == 17 && at(first, "forward_ms", 0) == 15);
    assert_true(at(first, "step_ms", 1) == 9 && at(first, "memory_mb", 1) == 101);
    assert_true(isnan(at(first, "step_ms", 2)) && isnan(at(first, "wait_ms", 2)));
    assert_non_null(second);
    assert_int_equal(json_integer_value(json_object_get(second, "steps")), 1);
    assert_true(at(second, "step_ms", 0) == 42);
    assert_true(at(second, "step_ms", 1) == 9); /* nothing new is known of it */
    json_decref(first);
    json_decref(second);
}

TEST_WITH(lost_worker_is_not_known, make_folder, remove_folder)
{
    hpct_ps_pace *pace = open_pace();
    hpct_ps_pace_joined(pace, 0, "a", shown);
    hpct_ps_pace_joined(pace, 2, "c", shown);
    compute(pace, 0, 10);
    compute(pace, 2, 10);
    step(pace, 1000, 100);
    compute(pace, 2, 10);
    hpct_ps_pace_left(pace, 2);
    compute(pace, 0, 10);
    step(pace, 1000, 101);
    close_pace(pace);
    json_t *root = json_load_file(status_path, 0, NULL);
    const json_t *ranks = json_object_get(root, "ranks"), *lost = json_array_get(ranks, 2);
    assert_int_equal(json_array_size(ranks), WORKERS);
    assert_true(json_number_value(json_object_get(json_array_get(ranks, 0), "step_ms")) == 12);
    assert_true(json_is_null(json_object_get(lost, "step_ms")));
    assert_string_equal(json_string_value(json_object_get(lost, "node")), "c");
    json_decref(root);
    json_t *line = line_of(1);
    assert_true(at(line, "step_ms", 0) == 12 && isnan(at(line, "step_ms", 2)));
    json_decref(line);
}

/* Standard error while a worker of three takes so many times as long as the others. */
static void listen_to(double times, char *said, size_t size)
{
    char path[96];
    hpct_ps_pace *pace = open_pace();
    snprintf(path, sizeof path, "%s/said", folder);
    fflush(stderr);
    int before = dup(STDERR_FILENO), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    for (int worker = 0; worker < WORKERS; worker++)
        hpct_ps_pace_joined(pace, worker, (const char *[]){"fast", "slow", "even"}[worker], shown);
    for (int i = 0; i < 30; i++) {
        for (int worker = 0; worker < WORKERS; worker++)
            compute(pace, worker, worker == 1 ? 10 * (float) times : 10);
        step(pace, i + 1, 100 + 5 * i);
    }
    close_pace(pace);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    ssize_t got = pread(file, said, size - 1, 0);
    said[got > 0 ? got : 0] = '\0';
    close(before);
    close(file);
    unlink(path);
}

TEST_WITH(slow_node_is_named, make_folder, remove_folder)
{
    char said[1024] = "";
    listen_to(1.2, said, sizeof said);
    assert_string_equal(said, "");
    listen_to(1.5, said, sizeof said);
    assert_string_equal(said, "hpc-train: node slow is slow: for a minute its steps have taken 1.5 "
                              "times the others'\n");
}

TEST(nothing_is_allowed)
{
    hpct_ps_pace_joined(NULL, 0, "a", NULL);
    hpct_ps_pace_left(NULL, 0);
    compute(NULL, 0, 1);
    step(NULL, 1, 1);
    assert_null(hpct_ps_pace_nodes(NULL));
    hpct_ps_pace_close(NULL);
}
