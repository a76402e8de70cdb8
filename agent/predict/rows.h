/* agent/predict/rows.h - predictions as CSV (RFC 4180), as lines of JSON, and as a table. */
#ifndef HPCT_AGENT_PREDICT_ROWS_H
#define HPCT_AGENT_PREDICT_ROWS_H

#include "agent/data/dataset.h"
#include "agent/predict/scores.h"

#include <stdio.h>

typedef struct hpct_predict_rows {
    const hpct_dataset *dataset;
    char *const *names; /* [num_names] of classes; others are numbers */
    int num_names;
    int top_k;
    bool outputs; /* the names are of top_k outputs: a column with the number of each */
    const hpct_predict_class_score *best; /* [size of the data set][top_k] */
} hpct_predict_rows;

/* Returns HPCT_ERR_USAGE unless the name ends in .csv or .jsonl. */
hpct_status hpct_predict_rows_check_name(const char *path);

/* Writes the file, whole; the format follows its name. */
hpct_status hpct_predict_rows_write(const hpct_predict_rows *rows, const char *path);

/* Prints a table; whether the stream takes it is for its owner to look at. */
hpct_status hpct_predict_rows_print(const hpct_predict_rows *rows, FILE *stream);

#endif
