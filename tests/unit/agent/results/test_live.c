/* The state of a run under way: what is written while it goes on and at its end, and that a file
 * system which blocks or refuses delays nothing. */
#include "agent/results/live.h"
#include "agent/results/live_losses.h"
#include "agent/results/metrics_file.h"
#include "base/output.h"
#include "tests/unit/allocations.h"
#include "tests/unit/cases.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[64], status_path[96], metrics_path[96];

static const hpct_results_live_state some = {.epoch = 2,
                                             .epochs = 8,
                                             .step = 3,
                                             .steps = 469,
                                             .loss = 0.5,
                                             .accuracy = 0.75,
                                             .step_loss = 0.25,
                                             .val_loss = NAN,
                                             .val_accuracy = NAN,
                                             .learning_rate = 0.01,
                                             .step_ms = 12.5,
                                             .images_per_second = 5120,
                                             .seconds_left = 90,
                                             .job_ends = 1800000000};
static const double one[] = {1, 2}, two[] = {3, 4}, three[] = {5, 6}, four[] = {7, NAN};

static int make_folder(void **state)
{
    strcpy(folder, "/tmp/hpct-live-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(status_path, sizeof status_path, "%s/" HPCT_RESULTS_LIVE_FILE, folder);
    snprintf(metrics_path, sizeof metrics_path, "%s/run.prom", folder);
    return 0;
}

static int remove_folder(void **state)
{
    unlink(status_path);
    unlink(metrics_path);
    return rmdir(folder); /* fails if temporary files are left */
}

static hpct_results_live *open_live(const char *log_dir, const char *metrics)
{
    static const char *const nodes[] = {"node0", "node\xff"};
    hpct_results_live *live;
    const hpct_results_live_options options = {.log_dir = log_dir,
                                               .metrics_file = metrics,
                                               .job = "123",
                                               .model = "mnist-cnn",
                                               .strategy = "mirrored",
                                               .workers = 2,
                                               .nodes = nodes,
                                               .epochs = 8};
    assert_int_equal(hpct_results_live_open(&live, &options), HPCT_OK);
    return live;
}

static bool read_text(char *text, size_t size, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    return true;
}

/* Until the thread has written that; the test's own timeout bounds it. */
static void await_text(const char *path, const char *what)
{
    char text[16384];
    while (!read_text(text, sizeof text, path) || strstr(text, what) == NULL)
        usleep(10000);
}

static json_t *load(void)
{
    json_t *root = json_load_file(status_path, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    return root;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void check_ranks(const json_t *ranks)
{
    assert_int_equal(json_array_size(ranks), 2);
    const json_t *first = json_array_get(ranks, 0), *second = json_array_get(ranks, 1);
    assert_int_equal(number(second, "rank"), 1);
    assert_string_equal(json_string_value(json_object_get(first, "node")), "node0");
    assert_string_equal(json_string_value(json_object_get(second, "node")), "node?");
    assert_true(number(second, "step_ms") == 2 && number(second, "wait_ms") == 4 &&
                number(second, "input_ms") == 6 && number(first, "memory_mb") == 7);
    assert_true(json_is_null(json_object_get(second, "memory_mb")));
    assert_true(json_is_null(json_object_get(second, "gpu")));
}

TEST_WITH(last_state_is_written, make_folder, remove_folder)
{
    hpct_results_live *live = open_live(folder, NULL);
    hpct_results_live_update(live, &some);
    hpct_results_live_ranks(live, 2, one, two, three, four, NULL);
    hpct_results_live_close(live, HPCT_RESULTS_LIVE_STOPPED);
    json_t *root = load();
    assert_string_equal(json_string_value(json_object_get(root, "state")), "stopped");
    assert_string_equal(json_string_value(json_object_get(root, "job")), "123");
    assert_string_equal(json_string_value(json_object_get(root, "model")), "mnist-cnn");
    assert_true(number(root, "format") == 1 && number(root, "workers") == 2);
    assert_within(time(NULL) - (time_t) number(root, "time"), 0, 3600);
    assert_true(number(root, "epoch") == 2 && number(root, "epochs") == 8);
    assert_true(number(root, "step") == 3 && number(root, "steps") == 469);
    assert_true(number(root, "loss") == 0.5 && number(root, "accuracy") == 0.75);
    assert_true(number(root, "learning_rate") == 0.01 && number(root, "step_ms") == 12.5);
    assert_true(number(root, "images_per_second") == 5120 && number(root, "seconds_left") == 90);
    assert_true(number(root, "job_ends") == 1800000000);
    assert_true(json_is_null(json_object_get(root, "val_loss")));
    const json_t *losses = json_object_get(root, "losses");
    assert_int_equal(json_array_size(losses), 1);
    assert_true(json_real_value(json_array_get(losses, 0)) == 0.25);
    check_ranks(json_object_get(root, "ranks"));
    json_decref(root);
}

TEST_WITH(nodes_become_known, make_folder, remove_folder)
{
    hpct_results_live *live = open_live(folder, metrics_path);
    await_text(status_path, "node0");
    hpct_results_live_node(live, 1, "later\xff");
    await_text(status_path, "\"later?\"");
    hpct_results_live_node(live, 1, "elsewhere");
    hpct_results_live_ranks(live, 2, one, two, three, four, NULL);
    await_text(metrics_path, "rank=\"1\",node=\"elsewhere\"} 0.002\n");
    hpct_results_live_close(live, HPCT_RESULTS_LIVE_FINISHED);
    await_text(status_path, "elsewhere");
    hpct_results_live_node(NULL, 0, "node0");
}

TEST_WITH(files_follow_the_run, make_folder, remove_folder)
{
    hpct_results_live_state next = some;
    hpct_results_live *live = open_live(folder, metrics_path);
    await_text(status_path, "\"epoch\":0,");
    await_text(metrics_path,
               "hpc_train_loss{job=\"123\",model=\"mnist-cnn\",strategy=\"mirrored\"} "
               "NaN\n");
    hpct_results_live_update(live, &next);
    await_text(status_path, "\"step\":3,");
    await_text(metrics_path,
               "hpc_train_loss{job=\"123\",model=\"mnist-cnn\",strategy=\"mirrored\"} "
               "0.5\n");
    next.step = 4;
    hpct_results_live_update(live, &next);
    await_text(status_path, "\"step\":4,");
    hpct_results_live_close(live, HPCT_RESULTS_LIVE_FINISHED);
    await_text(status_path, "\"state\":\"finished\"");
    assert_int_not_equal(access(metrics_path, F_OK), 0); /* it would stay for ever */
}

TEST(nothing_is_opened_without_files)
{
    hpct_results_live *live = open_live(NULL, NULL);
    assert_null(live);
    hpct_results_live_update(live, &some);
    hpct_results_live_ranks(live, 2, one, two, three, four, NULL);
    hpct_results_live_close(live, HPCT_RESULTS_LIVE_FINISHED);
}

/* What a call prints on standard error; it is read once the call is over. */
static void close_and_listen(hpct_results_live *live, char *said, size_t size)
{
    char path[96];
    snprintf(path, sizeof path, "%s/said", folder);
    fflush(stderr);
    int before = dup(STDERR_FILENO), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    hpct_results_live_close(live, HPCT_RESULTS_LIVE_FINISHED);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    close(file);
    assert_true(read_text(said, size, path));
    unlink(path);
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

/* A pipe that is full and that nobody reads blocks as a file system does that hangs. */
TEST_WITH(hung_file_system_delays_nothing, make_folder, remove_folder)
{
    char said[1024], bytes[4096] = "";
    assert_int_equal(mkfifo(status_path, 0600), 0);
    int pipe = open(status_path, O_RDWR | O_NONBLOCK);
    while (write(pipe, bytes, sizeof bytes) > 0)
        continue;
    hpct_results_live *live = open_live(folder, NULL);
    sleep(1); /* the thread is blocked, or is going to be: what it allocates is over */
    long before = allocations;
    for (int i = 0; i < 100000; i++) {
        hpct_results_live_update(live, &some);
        if (i % 100 == 0)
            hpct_results_live_ranks(live, 2, one, two, three, four, one);
    }
    assert_int_equal(allocations, before);
    close_and_listen(live, said, sizeof said);
    assert_non_null(strstr(said, HPCT_RESULTS_LIVE_FILE));
    assert_non_null(strstr(said, "has not answered"));
    assert_int_equal(count_lines(said), 1);
    for (int i = 0; i < 100; i++) { /* the thread goes on, and ends */
        while (read(pipe, bytes, sizeof bytes) > 0)
            continue;
        usleep(1000);
    }
    close(pipe);
}

TEST_WITH(failures_are_said_once, make_folder, remove_folder)
{
    char said[1024], missing[96];
    snprintf(missing, sizeof missing, "%s/missing", folder);
    hpct_results_live *live = open_live(missing, NULL);
    hpct_results_live_update(live, &some);
    close_and_listen(live, said, sizeof said);
    assert_non_null(strstr(said, "could not be written"));
    assert_non_null(strstr(said, missing));
    assert_int_equal(count_lines(said), 1);
}

/* What another program has put there since is not removed. */
TEST_WITH(foreign_metrics_stay, make_folder, remove_folder)
{
    char said[1024], other[128];
    hpct_output_try(metrics_path, 0);
    hpct_results_live *live = open_live(NULL, metrics_path);
    await_text(metrics_path, "# EOF");
    snprintf(other, sizeof other, "%s.new", metrics_path);
    FILE *file = fopen(other, "w");
    fputs("other 1\n", file);
    fclose(file);
    rename(other, metrics_path);
    close_and_listen(live, said, sizeof said);
    await_text(metrics_path, "other 1");
    assert_non_null(strstr(said, "another program"));
}

/* A pipe is written to, and not removed. */
TEST_WITH(pipes_stay, make_folder, remove_folder)
{
    char said[1024], bytes[16384];
    assert_int_equal(mkfifo(metrics_path, 0600), 0);
    int pipe = open(metrics_path, O_RDWR | O_NONBLOCK);
    close_and_listen(open_live(NULL, metrics_path), said, sizeof said);
    assert_string_equal(said, "");
    while (read(pipe, bytes, sizeof bytes) > 0)
        continue;
    close(pipe);
    assert_int_equal(access(metrics_path, F_OK), 0);
}

TEST(losses_are_means_of_equal_parts)
{
    hpct_results_live_losses losses = {.num = 0};
    for (int step = 0; step < 1000; step++)
        hpct_results_live_losses_add(&losses, step);
    assert_int_equal(losses.length, 32); /* 60 of 16 are 960 */
    assert_int_equal(losses.num, 31);
    for (int i = 0; i < losses.num; i++)
        assert_true(losses.means[i] == 32 * i + 15.5);
}

/* ---- text for Prometheus ---- */

TEST(metrics_have_labels_and_base_units)
{
    char *text, node[] = "a\\b\"c\nd", model[] = "m";
    hpct_results_live_rank rank = {0, node, 250, 100, 1, 2, 0.5};
    hpct_results_live_report report = {.time = 1700000000,
                                       .model = model,
                                       .workers = 1,
                                       .state = some,
                                       .ranks = &rank,
                                       .num_ranks = 1};
    report.state.num_metrics = 2;
    report.state.metrics[0] = (hpct_results_live_metric){"mae", 0.5};
    report.state.metrics[1] = (hpct_results_live_metric){"bad\nname", 0.5};
    assert_int_equal(hpct_results_metrics_file_format(&text, &report, "s"), HPCT_OK);
    static const char *const lines[] = {
        "# HELP hpc_train_step_seconds Time of a step.\n# TYPE hpc_train_step_seconds gauge\n"
        "hpc_train_step_seconds{job=\"\",model=\"m\",strategy=\"s\"} 0.0125\n",
        "\nhpc_train_last_step_timestamp_seconds{job=\"\",model=\"m\",strategy=\"s\"} 1700000000\n",
        "\nhpc_train_mae{job=\"\",model=\"m\",strategy=\"s\"} 0.5\n",
        "\nhpc_train_validation_loss{job=\"\",model=\"m\",strategy=\"s\"} NaN\n",
        "\nhpc_train_rank_step_seconds{job=\"\",model=\"m\",strategy=\"s\",rank=\"0\","
        "node=\"a\\\\b\\\"c\\nd\"} 0.25\n",
        "rank=\"0\",node=\"a\\\\b\\\"c\\nd\"} 2097152\n",
        "hpc_train_rank_gpu_utilization_ratio{",
        "} 0.5\n# EOF\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strstr(text, lines[i]) == NULL)
            fail_msg("missing: %s\nin: %s", lines[i], text);
    }
    assert_null(strstr(text, "name{"));
    free(text);
}

/* ---- status.json, read ---- */

#define BEGIN "{\"format\":1,\"time\":5,\"state\":\"running\","
#define NAMES "\"job\":null,\"model\":\"m\",\"workers\":1,"
#define PLACE "\"epoch\":1,\"epochs\":2,\"step\":3,\"steps\":4,"
#define NUMBERS                                                                                    \
    "\"loss\":1,\"accuracy\":null,\"val_loss\":null,\"val_accuracy\":null,\"learning_rate\":1e-3," \
    "\"step_ms\":1,\"images_per_second\":2,\"seconds_left\":null,\"job_ends\":null,"
#define RANK                                                                                       \
    "{\"rank\":0,\"node\":\"n\",\"step_ms\":1,\"wait_ms\":1,\"input_ms\":1,\"memory_mb\":1,"       \
    "\"gpu\":null}"
#define EIGHT(n)                                                                                   \
    "\"" n "1\":1,\"" n "2\":1,\"" n "3\":1,\"" n "4\":1,\"" n "5\":1,\"" n "6\":1,\"" n           \
    "7\":1,\"" n "8\":1"
#define LAST "\"losses\":[1,null],\"ranks\":[" RANK "]}"

static hpct_status parse(const parse_case *c, char *got, size_t size)
{
    char *text;
    hpct_results_live_report report;
    HPCT_TRY(hpct_results_live_report_parse(&report, c->text, strlen(c->text)));
    assert_int_equal(hpct_results_live_report_format(&text, &report), HPCT_OK);
    snprintf(got, size, "%s", text);
    free(text);
    hpct_results_live_report_free(&report);
    return HPCT_OK;
}

TEST(only_such_files_are_read)
{
    static const parse_case cases[] = {
        {BEGIN NAMES PLACE NUMBERS LAST, HPCT_OK,
         BEGIN NAMES PLACE
         "\"loss\":1.0,\"accuracy\":null,\"val_loss\":null,\"val_accuracy\":null,"
         "\"learning_rate\":0.001,\"step_ms\":1.0,\"images_per_second\":2.0,"
         "\"seconds_left\":null,\"job_ends\":null,\"losses\":[1.0,null],\"ranks\":["
         "{\"rank\":0,\"node\":\"n\",\"step_ms\":1.0,\"wait_ms\":1.0,\"input_ms\":1.0,"
         "\"memory_mb\":1.0,\"gpu\":null}]}"},
        {BEGIN NAMES PLACE NUMBERS "\"new\":1," LAST, HPCT_OK, NULL},
        {BEGIN NAMES PLACE NUMBERS "\"metrics\":{\"mae\":2,\"val_mae\":null}," LAST, HPCT_OK,
         BEGIN NAMES PLACE
         "\"loss\":1.0,\"accuracy\":null,\"val_loss\":null,\"val_accuracy\":null,"
         "\"learning_rate\":0.001,\"step_ms\":1.0,\"images_per_second\":2.0,"
         "\"seconds_left\":null,\"metrics\":{\"mae\":2.0,\"val_mae\":null},\"job_ends\":null,"
         "\"losses\":[1.0,null],\"ranks\":["
         "{\"rank\":0,\"node\":\"n\",\"step_ms\":1.0,\"wait_ms\":1.0,\"input_ms\":1.0,"
         "\"memory_mb\":1.0,\"gpu\":null}]}"},
        {BEGIN NAMES PLACE NUMBERS "\"metrics\":[1]," LAST, HPCT_ERR_DATA, "\"metrics\""},
        {BEGIN NAMES PLACE NUMBERS "\"metrics\":{\"a\":\"1\"}," LAST, HPCT_ERR_DATA, "\"metrics\""},
        {BEGIN NAMES PLACE NUMBERS
         "\"metrics\":{" EIGHT("a") "," EIGHT("b") "," EIGHT("c") "," EIGHT("d") ",\"e\":1}," LAST,
         HPCT_ERR_DATA, "too many"},
        {BEGIN NAMES PLACE NUMBERS "\"metrics\":{\"a-name-that-is-longer-than-63-bytes-which-no-"
                                   "metric-has-so-far-x\":1}," LAST,
         HPCT_ERR_DATA, "too long"},
        {BEGIN NAMES PLACE NUMBERS "\"losses\":[", HPCT_ERR_DATA, "not JSON"},
        {"[]", HPCT_ERR_DATA, "not the state of a run"},
        {"{\"format\":2}", HPCT_ERR_DATA, "another version"},
        {"{\"format\":1,\"state\":\"well\"}", HPCT_ERR_DATA, "\"state\""},
        {BEGIN "\"job\":7,\"model\":\"m\",\"workers\":1," PLACE NUMBERS LAST, HPCT_ERR_DATA,
         "\"job\""},
        {BEGIN NAMES "\"epoch\":3,\"epochs\":2,\"step\":3,\"steps\":4," NUMBERS LAST, HPCT_ERR_DATA,
         "\"epoch\""},
        {BEGIN NAMES "\"epoch\":1,\"epochs\":2,\"step\":5,\"steps\":4," NUMBERS LAST, HPCT_ERR_DATA,
         "\"step\""},
        {BEGIN NAMES "\"epoch\":1,\"epochs\":2,\"step\":-1,\"steps\":4," NUMBERS LAST,
         HPCT_ERR_DATA, "\"step\""},
        {BEGIN NAMES PLACE "\"loss\":\"1\"," LAST, HPCT_ERR_DATA, "\"loss\""},
        {BEGIN NAMES PLACE NUMBERS "\"losses\":1,\"ranks\":[]}", HPCT_ERR_DATA, "\"losses\""},
        {BEGIN NAMES PLACE NUMBERS "\"losses\":[],\"ranks\":[1]}", HPCT_ERR_DATA, "\"ranks\""},
        {BEGIN NAMES PLACE NUMBERS "\"losses\":[],\"ranks\":[" RANK ",{\"rank\":1}]}",
         HPCT_ERR_DATA, "\"step_ms\""},
    };
    RUN_CASES(parse, cases);
}

int main(void)
{
    alarm(300);
    return unit_run(NULL, NULL);
}
