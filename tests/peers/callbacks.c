/* tests/peers/callbacks.c - early stopping or a plateau on values from standard input, an epoch a
 * line. Prints for each whether training ends, and the best epoch; or the learning rate.
 *
 *   callbacks stopping TEXT
 *   callbacks plateau TEXT RATE */
#include "agent/train/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    hpct_train_watch_options options;
    hpct_train_watch watch = {0};
    const hpct_results_metric_choice all = HPCT_RESULTS_METRIC_ANY;
    bool stopping = argc == 3 && strcmp(argv[1], "stopping") == 0, is_best;
    double value, rate = argc == 4 ? strtod(argv[3], NULL) : 0;
    if ((stopping ? hpct_train_watch_parse_stopping(&options, argv[2], all)
                  : hpct_train_watch_parse_plateau(&options, argv[2], all)) != HPCT_OK) {
        fprintf(stderr, "%s\n", hpct_last_error());
        return 64;
    }
    for (int epoch = 0; scanf("%lf", &value) == 1; epoch++) {
        if (stopping) {
            bool stop = hpct_train_watch_stops(&watch, &options, epoch, value, &is_best);
            printf("%d %lld\n", stop, (long long) watch.best_epoch);
            if (stop)
                break;
        } else {
            rate = hpct_train_watch_rate(&watch, &options, value, rate);
            printf("%.9g\n", rate);
        }
    }
    return 0;
}
