/* agent/train/rate_file.h - learning rates by epoch, from a text file: Keras' LearningRateScheduler
 * without a program. A line is "EPOCH RATE", with a comma or blanks between, # begins a comment;
 * epochs count from 0 and rise; a rate holds until the next line's epoch. A header names the
 * columns `epoch` and `learning_rate` among others: history.csv is such a file. */
#ifndef HPCT_AGENT_TRAIN_RATE_FILE_H
#define HPCT_AGENT_TRAIN_RATE_FILE_H

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hpct_train_rate_line {
    int64_t epoch;
    double rate;
} hpct_train_rate_line;

typedef struct hpct_train_rate_file {
    hpct_train_rate_line *lines; /* [count], the caller's to free */
    size_t count;
} hpct_train_rate_file;

/* HPCT_ERR_NO_INPUT if it cannot be read, HPCT_ERR_DATA naming path and line. */
hpct_status hpct_train_rate_file_read(hpct_train_rate_file *out, const char *path);
/* The same for its text; `path` is for messages. `text` is cut into words. */
hpct_status hpct_train_rate_file_parse(hpct_train_rate_file *out, char *text, const char *path);

/* The rate of an epoch; 0 before the first line. */
double hpct_train_rate_file_at(const hpct_train_rate_file *file, int64_t epoch);

#endif
