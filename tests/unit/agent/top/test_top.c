/* The lines of hpc-train top, and where it looks for a job's run. */
#include "agent/results/status_file.h"
#include "agent/top/find.h"
#include "agent/top/screen.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW 1800000000

static char text[1 << 14];

/* Names of an exemplary run. */
static char job[] = "123", model[] = "mnist-cnn", first[] = "node0", second[] = "node1";
static hpct_results_live_rank ranks[] = {{0, first, 20, 4, 1, 812, NAN},
                                         {1, second, 20, 10, 0, 640, 0.5}};
static const hpct_results_live_report run = {.how = HPCT_RESULTS_LIVE_RUNNING,
                                             .time = NOW - 2,
                                             .job = job,
                                             .model = model,
                                             .workers = 2,
                                             .state = {.epoch = 2,
                                                       .epochs = 4,
                                                       .step = 50,
                                                       .steps = 100,
                                                       .loss = 0.25,
                                                       .accuracy = 0.9,
                                                       .val_loss = 0.3,
                                                       .val_accuracy = 0.8,
                                                       .learning_rate = 0.01,
                                                       .step_ms = 20,
                                                       .images_per_second = 6400,
                                                       .seconds_left = 3700,
                                                       .job_ends = NOW + 4000},
                                             .losses = {1, 0.5, NAN, 0.25},
                                             .num_losses = 4,
                                             .ranks = ranks,
                                             .num_ranks = 2};
static const hpct_top_screen plain = {.width = 80, .now = NOW};

static const char *draw(const hpct_top_screen *screen, const hpct_results_live_report *report)
{
    FILE *out = fmemopen(text, sizeof text, "w");
    hpct_top_screen_draw(out, screen, report);
    fclose(out);
    return text;
}

static void contains(const hpct_top_screen *screen, const hpct_results_live_report *report,
                     const char *what)
{
    if (strstr(draw(screen, report), what) == NULL)
        fail_msg("'%s' is not in:\n%s", what, text);
}

static void lacks(const hpct_top_screen *screen, const hpct_results_live_report *report,
                  const char *what)
{
    if (strstr(draw(screen, report), what) != NULL)
        fail_msg("'%s' is in:\n%s", what, text);
}

TEST(plain_form_is_this)
{
    assert_string_equal(draw(&plain, &run),
                        "mnist-cnn, 2 ranks, job 123: running\n"
                        " 37 % [===============                         ]\n"
                        "epoch 2/4, step 50/100\n"
                        "loss      0.2500     #,?_\n"
                        "accuracy  0.9000\n"
                        "val_loss 0.3000, val_accuracy 0.8000\n"
                        "20.0 ms per step, 6400 images/s, learning rate 0.01\n"
                        "1:01:40 left, the job ends in 1:06:40\n"
                        "\n"
                        " rank  node               ms/step   waits   input    memory     GPU\n"
                        "    0  node0                 20.0    20 %     5 %    812 MB       -\n"
                        "    1  node1                 20.0    50 %     0 %    640 MB    50 %\n");
}

/* What the run logs: of numbers no accuracy. */
TEST(other_metrics_are_shown)
{
    hpct_results_live_report numbers = run;
    numbers.state.accuracy = numbers.state.val_accuracy = NAN;
    numbers.state.num_metrics = 3;
    numbers.state.metrics[0] = (hpct_results_live_metric){"mae", 0.5};
    numbers.state.metrics[1] = (hpct_results_live_metric){"mse", 1e7};
    numbers.state.metrics[2] = (hpct_results_live_metric){"val_mae", NAN};
    contains(&plain, &numbers, "\nmae 0.5000, mse 1.0e+07\nval_loss 0.3000, val_mae -\n");
    lacks(&plain, &numbers, "accuracy");
    hpct_results_live_report classes = run;
    classes.state.num_metrics = 2;
    classes.state.metrics[0] = (hpct_results_live_metric){"top_k_categorical_accuracy", 0.95};
    classes.state.metrics[1] = (hpct_results_live_metric){"val_f1", 0.75};
    contains(&plain, &classes,
             "\naccuracy  0.9000, top_k_categorical_accuracy 0.9500\n"
             "val_loss 0.3000, val_accuracy 0.8000, val_f1 0.7500\n");
}

TEST(utf8_has_blocks)
{
    hpct_top_screen screen = plain;
    screen.utf8 = true;
    contains(&screen, &run, "0.2500     █▃?▁\n");
    contains(&screen, &run, "[━━━━━━━━━━━━━━━  ");
}

TEST(run_that_will_not_fit_is_red)
{
    hpct_results_live_report late = run;
    hpct_top_screen screen = plain;
    late.state.job_ends = NOW + 3600;
    contains(&screen, &late, "1:01:40 left, the job ends in 1:00:00: too soon\n");
    lacks(&screen, &late, "\033");
    screen.colour = true;
    contains(&screen, &late, "\033[31m1:01:40 left, the job ends in 1:00:00: too soon\033[0m\n");
    lacks(&screen, &run, "\033[31m");
}

TEST(silence_is_said)
{
    hpct_results_live_report silent = run;
    silent.time = NOW - 45;
    contains(&plain, &silent, ": running, no news for 45 s\n");
    silent.state.step_ms = 20000; /* long steps */
    lacks(&plain, &silent, "no news");
    silent.state.step_ms = 20;
    silent.how = HPCT_RESULTS_LIVE_FINISHED;
    contains(&plain, &silent, ": finished\n");
    lacks(&plain, &silent, " left");
}

TEST(slowest_ranks_come_first_where_not_all_fit)
{
    hpct_results_live_rank many[10];
    hpct_results_live_report large = run;
    hpct_top_screen screen = {.width = 80, .height = 14, .now = NOW};
    for (int i = 0; i < 10; i++) /* all wait for rank 7, then 2 */
        many[i] = (hpct_results_live_rank){i, first, 20, i == 7 ? 0 : i == 2 ? 1 : 5, 0, 100, NAN};
    many[4].wait_ms = NAN; /* not known: last */
    large.ranks = many;
    large.num_ranks = 10;
    contains(&screen, &large,
             "    7  node0                 20.0     0 %     0 %    100 MB       -\n"
             "    2  node0                 20.0     5 %     0 %    100 MB       -\n"
             "    0  node0                 20.0    25 %     0 %    100 MB       -\n"
             "and 7 more, which are faster");
    screen.remark = "a remark";
    contains(&screen, &large, "and 8 more, which are faster\na remark");
    for (screen.height = 1; screen.height < 30; screen.height++) {
        int lines = 1;
        for (const char *c = draw(&screen, &large); *c != '\0'; c++)
            lines += *c == '\n';
        assert_within(lines, 1, screen.height);
    }
}

TEST(ranks_are_shown_once_they_are_known)
{
    hpct_results_live_rank unknown = {0, first, NAN, NAN, NAN, NAN, NAN};
    hpct_results_live_report young = run;
    young.ranks = &unknown;
    young.num_ranks = 1;
    lacks(&plain, &young, "node");
    unknown.memory_mb = 5;
    contains(&plain, &young, "    0  node0                    -       -       -      5 MB       -");
}

TEST(run_without_a_step_has_no_numbers)
{
    const hpct_results_live_report begun = {.model = model,
                                            .time = NOW,
                                            .workers = 1,
                                            .state = {.epochs = 4,
                                                      .loss = NAN,
                                                      .accuracy = NAN,
                                                      .val_loss = NAN,
                                                      .val_accuracy = NAN,
                                                      .learning_rate = NAN,
                                                      .step_ms = NAN,
                                                      .images_per_second = NAN,
                                                      .seconds_left = NAN,
                                                      .job_ends = NAN}};
    assert_string_equal(draw(&plain, &begun), "mnist-cnn, 1 rank: running\n"
                                              "  0 % [                                        ]\n"
                                              "epoch 0/4, step 0/0\n"
                                              "loss      -\n"
                                              "accuracy  -\n"
                                              "- per step, - images/s\n"
                                              "time left unknown\n");
}

TEST(lines_are_cut_to_the_width)
{
    hpct_top_screen screen = {.width = 30, .height = 50, .now = NOW, .utf8 = true, .colour = true};
    contains(&screen, &run, "mnist-cnn, 2 ranks, job 123: \033[32mr\033[0m\n");
    contains(&screen, &run, " 37 % [━━━━━━━━━━━━━━━        \033[0m\n");
    screen.width = 23;
    contains(&screen, &run, "0.2500     ?▁\n"); /* the last losses */
}

TEST(foreign_text_sends_no_escapes)
{
    char node[] = "n\033[2J\007\xc2\x9b"
                  "1m",
         name[] = "ä\nb\x7f";
    hpct_results_live_rank rank = {0, node, 1, 1, 1, 1, 1};
    hpct_results_live_report foreign = run;
    foreign.model = name;
    foreign.job = node;
    foreign.ranks = &rank;
    foreign.num_ranks = 1;
    hpct_top_screen screen = plain;
    screen.remark = "x\033[2J";
    contains(&screen, &foreign, "??b?, 2 ranks, job n?[2J??1m: ");
    contains(&screen, &foreign, "    0  n?[2J??1m ");
    for (const char *c = text; *c != '\0'; c++)
        assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
}

/* ---- where it is ---- */

static char folder[64];

static void put(const char *name, const char *of_job, int at)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/" HPCT_RESULTS_LIVE_FILE, folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    if (at < 0) {
        fputs("{", file);
    } else {
        char *json, own_job[32];
        hpct_results_live_report report = run;
        snprintf(own_job, sizeof own_job, "%s", of_job);
        report.job = own_job;
        report.time = at;
        assert_int_equal(hpct_results_live_report_format(&json, &report), HPCT_OK);
        fputs(json, file);
        free(json);
    }
    fclose(file);
}

TEST(newest_run_of_a_job_is_found)
{
    char *path, command[128], want[128];
    strcpy(folder, "/tmp/hpct-top-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(hpct_top_find_run(&path, folder), HPCT_ERR_NO_INPUT);
    assert_int_equal(hpct_top_find_below(&path, folder, "5"), HPCT_ERR_NO_INPUT);
    put("other", "6", 100);
    put("older", "5", 1);
    put("newest", "5", 3);
    put("cut", "5", -1);
    assert_int_equal(hpct_top_find_below(&path, folder, "5"), HPCT_OK);
    snprintf(want, sizeof want, "%s/newest/" HPCT_RESULTS_LIVE_FILE, folder);
    assert_string_equal(path, want);
    free(path);
    put(".", "5", 4);
    assert_int_equal(hpct_top_find_below(&path, folder, "5"), HPCT_OK);
    snprintf(want, sizeof want, "%s/" HPCT_RESULTS_LIVE_FILE, folder);
    assert_string_equal(path, want);
    free(path);
    assert_int_equal(hpct_top_find_below(&path, folder, "7"), HPCT_ERR_NO_INPUT);
    assert_int_equal(hpct_top_find_run(&path, folder), HPCT_OK);
    assert_string_equal(path, want);
    free(path);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}
