/* Prints the text of --metrics-file of a run with awkward names and numbers, for
 * tests/peers/metrics_file.py. */
#include "agent/results/metrics_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char job[] = "123", model[] = "back\\slash \"quoted\"\nof two lines, é", plain[] = "node0",
         odd[] = "no}de=\"1\",x";
    char *text;
    hpct_results_live_rank ranks[] = {{0, plain, 250, 100, 1.5, 2, NAN},
                                      {1, odd, INFINITY, 0, -0.0, 1e6, 0.5}};
    const hpct_results_live_report report = {
        .time = 1800000000,
        .job = job,
        .model = model,
        .workers = 2,
        .state = {.epoch = 2,
                  .epochs = 8,
                  .step = 3,
                  .steps = INT64_C(123456789012),
                  .loss = NAN,
                  .accuracy = 0.75,
                  .val_loss = -INFINITY,
                  .val_accuracy = 1e-30,
                  .learning_rate = 0.01,
                  .step_ms = 12.5,
                  .images_per_second = 1.5e7,
                  .seconds_left = 90,
                  .job_ends = 1800000100},
        .ranks = ranks,
        .num_ranks = 2,
    };
    if (hpct_results_metrics_file_format(&text, &report, "auto") != HPCT_OK)
        return 1;
    fputs(text, stdout);
    free(text);
    return 0;
}
