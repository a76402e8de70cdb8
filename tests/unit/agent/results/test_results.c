/* What rank 0 shows and writes: progress, history.csv, metrics.jsonl, the summary; and how many
 * threads a rank takes. */
#include "agent/rank/threads.h"
#include "agent/results/history.h"
#include "agent/results/progress.h"
#include "agent/results/summary.h"
#include "base/progress.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/unit.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

static const hpct_metrics train = {.loss = 0.0612, .accuracy = 0.98123, .top_k_accuracy = 0.9975};
static const hpct_results_metric_choice train_only = {.classes = true},
                                        both = {.validation = true, .classes = true},
                                        all = {.validation = true, .classes = true, .top_k = true};
static const hpct_metrics validation = {.loss = 0.1, .accuracy = 0.97, .top_k_accuracy = 0.995};

/* What an epoch of 4 steps prints. */
static char *shown(int verbose, const hpct_results_metric_choice *choice, const hpct_metrics *last,
                   double step_seconds)
{
    char *text = NULL;
    size_t size;
    hpct_results_progress progress;
    FILE *stream = open_memstream(&text, &size);
    hpct_results_progress_init(&progress, stream, verbose, choice);
    hpct_results_progress_begin(&progress, 1, 8, 4);
    hpct_results_progress_step(&progress, 1, 1.0, step_seconds, &train);
    hpct_results_progress_step(&progress, 2, 1.05, step_seconds,
                               &train); /* too soon to be drawn again */
    hpct_results_progress_end(&progress, 4, 12.3, step_seconds, &train, last);
    fclose(stream);
    return text;
}

#define EPOCH "Epoch 1/8\n"
#define TRAIN "accuracy: 0.9812 - loss: 0.0612"
#define VALIDATION "val_accuracy: 0.9700 - val_loss: 0.1000"
#define TOP_K "top_k_categorical_accuracy: "

TEST(epochs_are_as_keras_writes_them)
{
    static const struct {
        int verbose;
        const hpct_results_metric_choice *choice;
        const hpct_metrics *last;
        double step_seconds;
        const char *no_colour, *want;
    } cases[] = {
        {2, &both, NULL, 0.034, "", EPOCH "4/4 - 12s - 34ms/step - " TRAIN "\n"},
        {2, &both, &validation, 0.0002, "",
         EPOCH "4/4 - 12s - 200us/step - " TRAIN " - " VALIDATION "\n"},
        {2, &all, &validation, 0.0002, "",
         EPOCH "4/4 - 12s - 200us/step - " TRAIN " - " TOP_K "0.9975 - " VALIDATION " - val_" TOP_K
               "0.9950\n"},
        {0, &both, &validation, 1, "", ""},
        {1, &both, NULL, 30, "",
         EPOCH "\r1/4 \033[32m━━━━━\033[37m━━━━━━━━━━━━━━━\033[0m 1:30 30s/step - " TRAIN "\033[K"
               "\r4/4 \033[32m━━━━━━━━━━━━━━━━━━━━\033[0m 12s 30s/step - " TRAIN "\033[K\n"},
        {1, &both, NULL, 30, "1",
         EPOCH "\r1/4 ━━━━━─────────────── 1:30 30s/step - " TRAIN "\033[K"
               "\r4/4 ━━━━━━━━━━━━━━━━━━━━ 12s 30s/step - " TRAIN "\033[K\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("NO_COLOR", cases[i].no_colour, 1);
        char *text = shown(cases[i].verbose, cases[i].choice, cases[i].last, cases[i].step_seconds);
        assert_string_equal(text, cases[i].want);
        free(text);
    }
    unsetenv("NO_COLOR");
}

TEST(numbers_have_four_digits)
{
    const struct {
        double value;
        const char *text;
    } cases[] = {{2.30258509, "2.3026"}, {0.00123456, "0.0012"}, {0.001, "1.0000e-03"},
                 {-4e-5, "-4.0000e-05"}, {0, "0.0000"},          {2.4e32, "2.4e+32"},
                 {NAN, "nan"},           {-NAN, "nan"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[HPCT_RESULTS_METRIC_TEXT];
        assert_string_equal(hpct_results_progress_metric(text, cases[i].value), cases[i].text);
    }
}

TEST(progress_bar_is_for_terminals)
{
    hpct_results_progress progress;
    FILE *file = tmpfile();
    assert_non_null(file);
    hpct_results_progress_init(&progress, file, 1, &train_only);
    assert_int_equal(progress.verbose, 2);
    hpct_results_progress_init(&progress, file, 0, &train_only);
    assert_int_equal(progress.verbose, 0);
    fclose(file);
}

static void read_file(char *out, size_t size, const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    out[fread(out, 1, size - 1, file)] = '\0';
    fclose(file);
}

static hpct_waits while_shown;

static ssize_t look(void *cookie, const char *bytes, size_t size)
{
    (void) cookie;
    (void) bytes;
    hpct_read_progress(&while_shown);
    return (ssize_t) size;
}

/* The watch judges nobody while rank 0 writes to its reader. */
TEST(blocked_terminal_is_not_a_standstill)
{
    hpct_waits after;
    hpct_results_progress progress;
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = look});
    hpct_enter_wait(HPCT_WAITS_FOR_NOBODY);
    hpct_results_progress_init(&progress, stream, 1, &train_only);
    for (int i = 0; i < 3; i++) {
        while_shown = HPCT_WAITS_FOR_NOBODY;
        if (i == 0)
            hpct_results_progress_begin(&progress, 1, 8, 4);
        else if (i == 1)
            hpct_results_progress_step(&progress, 1, 1.0, 1.0, &train);
        else
            hpct_results_progress_end(&progress, 4, 12.3, 1.0, &train, NULL);
        assert_int_equal(while_shown, HPCT_WAITS_UNSEEN);
        hpct_read_progress(&after);
        assert_int_equal(after, HPCT_WAITS_FOR_NOBODY);
    }
    hpct_enter_wait(HPCT_WAITS_UNSEEN);
    fclose(stream);
}

TEST(history_is_as_keras_writes_it)
{
    char text[4096];
    const char *folder = pictures_folder();
    hpct_results_history *history;
    const hpct_metrics nan = {.loss = NAN, .accuracy = 0.5};
    assert_int_equal(hpct_results_history_open(&history, folder, &both, &HPCT_RESULTS_HISTORY_NONE),
                     HPCT_OK);
    hpct_results_history_step(history, 1, 1, &train);
    hpct_results_history_step(history, 1, 2, &nan);
    assert_int_equal(hpct_results_history_epoch(history, 0, &train, &validation, 0.05, true),
                     HPCT_OK);
    assert_int_equal(hpct_results_history_close(history), HPCT_OK);
    read_file(text, sizeof text, folder, "history.csv");
    assert_string_equal(text, "epoch,accuracy,learning_rate,loss,val_accuracy,val_loss\n"
                              "0,0.98123,0.05,0.0612,0.97,0.1\n");
    read_file(text, sizeof text, folder, "metrics.jsonl");
    assert_string_equal(text,
                        "{\"epoch\": 1, \"step\": 1, \"loss\": 0.0612, \"accuracy\": 0.98123}\n"
                        "{\"epoch\": 1, \"step\": 2, \"loss\": null, \"accuracy\": 0.5}\n");
    assert_int_equal(hpct_results_history_open(&history, folder, &all, &HPCT_RESULTS_HISTORY_NONE),
                     HPCT_OK);
    assert_int_equal(hpct_results_history_epoch(history, 1, &train, &validation, 0.05, true),
                     HPCT_OK);
    assert_int_equal(hpct_results_history_close(history), HPCT_OK);
    read_file(text, sizeof text, folder, "history.csv");
    assert_string_equal(text, "epoch,accuracy,learning_rate,loss,top_k_categorical_accuracy,"
                              "val_accuracy,val_loss,val_top_k_categorical_accuracy\n"
                              "1,0.98123,0.05,0.0612,0.9975,0.97,0.1,0.995\n");
    assert_int_equal(
        hpct_results_history_open(&history, "/dev/null/logs", &both, &HPCT_RESULTS_HISTORY_NONE),
        HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), "/dev/null/logs"));
}

TEST(full_disk_is_reported)
{
    char csv[4096];
    const char *folder = pictures_folder();
    hpct_results_history *history;
    snprintf(csv, sizeof csv, "%s/history.csv", folder);
    assert_int_equal(symlink("/dev/full", csv), 0);
    assert_int_equal(
        hpct_results_history_open(&history, folder, &train_only, &HPCT_RESULTS_HISTORY_NONE),
        HPCT_OK);
    assert_int_equal(hpct_results_history_epoch(history, 0, &train, NULL, 0.05, true), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), csv));
    hpct_results_history_close(history);
}

TEST(summary_has_all_documented_keys)
{
    char keys[] = "model strategy device precision workers replicas global_batch epochs steps "
                  "parameters start_seconds train_seconds epoch_seconds step_ms images_per_second "
                  "loss accuracy val_loss val_accuracy peak_rss_mb bytes_sent_per_step optimizer "
                  "learning_rate top_k_categorical_accuracy val_top_k_categorical_accuracy";
    char path[4096], wrong[] = "/no/such/folder/s.json";
    const double seconds[] = {1.5, 2.5};
    hpct_results_summary summary = {.model = "m",
                                    .strategy = "s",
                                    .device = "cpu",
                                    .precision = HPCT_FP32,
                                    .optimizer = "lamb",
                                    .learning_rate = 0.05,
                                    .workers = 2,
                                    .epochs = 2,
                                    .epoch_seconds = seconds,
                                    .train = train,
                                    .validation = HPCT_RESULTS_NO_METRICS,
                                    .parameters = 2770634};
    snprintf(path, sizeof path, "%s/s.json", pictures_folder());
    assert_int_equal(hpct_results_summary_write(&summary, path), HPCT_OK);
    json_t *object = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    for (char *rest = keys, *key; (key = strsep(&rest, " ")) != NULL;) {
        if (json_object_get(object, key) == NULL)
            fail_msg("'%s' is missing", key);
    }
    assert_int_equal(json_integer_value(json_object_get(object, "parameters")), 2770634);
    assert_int_equal(json_array_size(json_object_get(object, "epoch_seconds")), 2);
    assert_true(json_is_null(json_object_get(object, "val_loss")));
    json_decref(object);
    assert_int_equal(hpct_results_summary_write(&summary, wrong), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), wrong));
}

TEST(threads_are_what_the_task_was_given)
{
    static const struct {
        int cores, ranks;
        const char *per_task, *on_node;
        int local, want;
    } cases[] = {
        {8, 1, NULL, NULL, 1, 8},   {8, 4, NULL, NULL, 4, 2}, /* mpirun, not bound */
        {8, 16, NULL, NULL, 16, 1}, {8, 1, "3", "64", 1, 3},  /* srun -c3 */
        {2, 1, "3", "64", 1, 2},                              /* bound to fewer */
        {8, 1, NULL, "1", 1, 1},                              /* srun without -c, not bound */
        {64, 1, NULL, "16", 4, 4},  {64, 1, NULL, "2", 4, 1},
        {64, 1, "4", "1", 1, 1},                             /* srun --exact in sbatch -c4 */
        {64, 1, "4", "8", 2, 4},    {64, 1, "2", "4", 4, 1}, /* srun -O */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(hpct_rank_threads_share(cases[i].cores, cases[i].ranks, cases[i].per_task,
                                                 cases[i].on_node, cases[i].local),
                         cases[i].want);
}
