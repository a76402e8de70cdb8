/* tests/peers/scores.c - precision, recall, F1, AUC and the confusion matrix of outputs and labels
 * that another framework has drawn: FOLDER/outputs.f32 and labels.i32. Prints a line with the four
 * of all classes, then one for each class, with its row of the matrix behind them.
 *
 *   scores SAMPLES OUTPUTS FOLDER [logits] */
#include "agent/results/tally.h"
#include "tests/peers/peers.h"

#define ALL_METRICS (HPCT_METRIC_PRECISION | HPCT_METRIC_RECALL | HPCT_METRIC_F1 | HPCT_METRIC_AUC)

static void *read_all(const char *name, size_t size, size_t count)
{
    FILE *file = open_file(name, "rb");
    void *values = malloc(size * count);
    if (values == NULL || fread(values, size, count, file) != count) {
        fprintf(stderr, "scores: %s is too short\n", name);
        exit(HPCT_ERR_DATA);
    }
    fclose(file);
    return values;
}

static void print_class(const hpct_results_tally *tally, int class)
{
    hpct_results_class_metrics m = hpct_results_tally_class(tally, class);
    const int64_t *row = hpct_results_tally_row(tally, class);
    printf("%.12g %.12g %.12g %.12g", m.of.precision, m.of.recall, m.of.f1, m.of.auc);
    for (int i = 0; i < hpct_results_tally_classes(tally); i++)
        printf(" %lld", (long long) row[i]);
    printf("\n");
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: scores SAMPLES OUTPUTS FOLDER [logits]\n");
        return HPCT_ERR_USAGE;
    }
    int samples = atoi(argv[1]), outputs = atoi(argv[2]);
    folder = argv[3];
    hpct_results_tally *tally;
    hpct_metrics all;
    must(hpct_results_tally_open(&tally,
                                 &(hpct_results_tally_options){.outputs = outputs,
                                                               .labels = outputs == 1 ? 2 : outputs,
                                                               .logits = argc > 4,
                                                               .metrics = ALL_METRICS,
                                                               .matrix = true}));
    float *x = read_all("outputs.f32", sizeof *x, (size_t) samples * (size_t) outputs);
    int32_t *y = read_all("labels.i32", sizeof *y, (size_t) samples);
    must(hpct_results_tally_add(tally, x, y, samples));
    hpct_results_tally_get(tally, &all);
    printf("%.12g %.12g %.12g %.12g\n", all.precision, all.recall, all.f1, all.auc);
    for (int i = 0; i < hpct_results_tally_classes(tally); i++)
        print_class(tally, i);
    hpct_results_tally_close(tally);
    free(x);
    free(y);
    return 0;
}
