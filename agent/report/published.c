/* The published figures of mnist-cnn with TensorFlow's MultiWorkerMirroredStrategy on cloud Slurm
 * clusters: 8 epochs, 64 pictures per worker and step, learning rate 0.2. */
#include "agent/report/content.h"

#include <math.h>
#include <string.h>

#define SYSTEMS 5

static const char *const systems[SYSTEMS] = {"GCP n1-standard-2 CPU", "AWS m4.large CPU",
                                             "AWS c4.2xlarge CPU", "GCP V100", "AWS V100"};

static const struct row {
    int workers;
    struct {
        double seconds, loss, accuracy; /* seconds 0: not published */
    } of[SYSTEMS];
} rows[] = {
    {1,
     {{393.8, .0041, .9989},
      {381.4, .0035, .9993},
      {112.3, .0029, .9994},
      {24.0, .0047, .9988},
      {27.3, .0024, .9995}}},
    {2,
     {{422.2, .0121, .9968},
      {750.0, .0156, .9958},
      {158.7, .0139, .9963},
      {159.9, .0093, .9977},
      {131.9, .0127, .9966}}},
    {3,
     {{285.4, .0287, .9916},
      {667.0, .0282, .9914},
      {140.5, .0291, .9911},
      {119.1, .0254, .9926},
      {112.6, .0127, .9966}}},
    {4,
     {{209.6, .0397, .9882},
      {563.4, .0369, .9890},
      {110.2, .0383, .9883},
      {94.3, .0376, .9886},
      {94.7, .0392, .9881}}},
    {6,
     {{153.3, .0496, .9845},
      {418.4, .0541, .9833},
      {84.3, .0545, .9838},
      {83.2, .0530, .9838},
      {66.3, .0520, .9844}}},
    {8,
     {{121.6, .0667, .9792},
      {335.3, .0599, .9823},
      {65.3, .0761, .9774},
      {75.4, .0596, .9815},
      {68.6, .0640, .9807}}},
    {10,
     {{101.4, .0849, .9747},
      {272.9, .0712, .9789},
      {55.6, .0710, .9781},
      {0, 0, 0},
      {64.3, .0732, .9782}}},
    {20, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {60.9, .1089, .9676}}},
};
#define NUM_ROWS (sizeof rows / sizeof *rows)

static const char *triple(hpct_report_pool *pool, double seconds, double loss, double accuracy)
{
    char a[HPCT_REPORT_NUMBER], b[HPCT_REPORT_NUMBER], c[HPCT_REPORT_NUMBER];
    return hpct_report_print(pool, "%s / %s / %s", hpct_report_amount(a, seconds),
                             isnan(loss) ? "–" : hpct_report_metric(b, loss),
                             isnan(accuracy) ? "–" : hpct_report_metric(c, accuracy));
}

/* One decimal and .9988, as published. */
static const char *published(hpct_report_pool *pool, double seconds, double loss, double accuracy)
{
    return seconds > 0 ? hpct_report_print(pool, "%.1f / %.4f / %.4f", seconds, loss, accuracy)
                       : "–";
}

static const hpct_report_run *run_with(const hpct_report_run *runs, size_t count, int workers)
{
    for (size_t i = 0; i < count; i++) {
        bool w1 = runs[i].model != NULL && strcmp(runs[i].model, "mnist-cnn") == 0;
        if (w1 && runs[i].workers == workers)
            return &runs[i];
    }
    return NULL;
}

static void add_table(hpct_report_page *page, const hpct_report_run *runs, size_t count)
{
    hpct_report_pool *pool = page->pool;
    hpct_report_table *table =
        hpct_report_add_table(page, "Seconds of the whole program / loss / accuracy", false);
    table->columns = SYSTEMS + 2;
    hpct_report_cell(pool, table, "workers");
    hpct_report_cell(pool, table, "these runs");
    for (int k = 0; k < SYSTEMS; k++)
        hpct_report_cell(pool, table, systems[k]);
    for (size_t i = 0; i < NUM_ROWS; i++) {
        const hpct_report_run *run = run_with(runs, count, rows[i].workers);
        hpct_report_cell(pool, table, hpct_report_print(pool, "%d", rows[i].workers));
        hpct_report_cell(pool, table,
                         run == NULL ? "–"
                                     : triple(pool, hpct_report_run_seconds(run),
                                              *hpct_report_last(run, HPCT_REPORT_LOSS),
                                              *hpct_report_last(run, HPCT_REPORT_ACCURACY)));
        for (int k = 0; k < SYSTEMS; k++)
            hpct_report_cell(
                pool, table,
                published(pool, rows[i].of[k].seconds, rows[i].of[k].loss, rows[i].of[k].accuracy));
    }
}

static bool all_like_published(const hpct_report_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (runs[i].epochs != 8 || runs[i].global_batch != 64 * runs[i].workers)
            return false;
    }
    return true;
}

void hpct_report_of_published(hpct_report_page *page, const hpct_report_run *runs, size_t count)
{
    hpct_report_add_words(page, HPCT_REPORT_HEADING, "Beside published figures");
    hpct_report_add_words(
        page, HPCT_REPORT_WORDS,
        "MNIST CNN with TensorFlow's MultiWorkerMirroredStrategy on cloud Slurm clusters, from "
        "public write-ups on training on Slurm with TensorFlow: 8 epochs of 60,000 pictures, 64 "
        "per "
        "worker and step, SGD with learning rate 0.2; loss and accuracy of training in epoch 8.");
    if (!all_like_published(runs, count))
        hpct_report_add_words(page, HPCT_REPORT_WORDS,
                              "These runs have other numbers of epochs or batches than the "
                              "published ones: their seconds cannot be compared directly.");
    add_table(page, runs, count);
}
