/* One line after the other. */
#include "agent/train/rate_file.h"

#include "base/kind.h"
#include "base/status.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t) 16 << 20)
#define SEPARATORS ", \t\r"

typedef struct columns {
    int epoch, rate;
} columns;

/* The word of that number; NULL if there are not so many. `line` is not changed. */
static const char *word_at(const char *line, int number, size_t *length)
{
    for (int i = 0;; i++) {
        line += strspn(line, SEPARATORS);
        *length = strcspn(line, SEPARATORS);
        if (*length == 0)
            return NULL;
        if (i == number)
            return line;
        line += *length;
    }
}

static int find_column(const char *line, const char *name)
{
    size_t length;
    const char *word;
    for (int i = 0; (word = word_at(line, i, &length)) != NULL; i++) {
        if (length == strlen(name) && strncmp(word, name, length) == 0)
            return i;
    }
    return -1;
}

static bool is_header(const char *line)
{
    line += strspn(line, SEPARATORS);
    return isalpha((unsigned char) line[0]) != 0;
}

static bool read_number(double *out, const char *line, int column)
{
    size_t length;
    char *end;
    const char *word = word_at(line, column, &length);
    if (word == NULL)
        return false;
    errno = 0;
    *out = strtod(word, &end);
    return end == word + length && errno == 0 && isfinite(*out);
}

static hpct_status add(hpct_train_rate_file *out, const char *line, columns at, const char *path,
                       int number)
{
    double epoch, rate;
    if (!read_number(&epoch, line, at.epoch) || !read_number(&rate, line, at.rate))
        return hpct_fail(HPCT_ERR_DATA, "%s: line %d is not an epoch and a learning rate", path,
                         number);
    if (!(epoch >= 0 && epoch <= 1e9 && epoch == floor(epoch)) || !(rate > 0))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: line %d: the epoch must be a whole number from 0 on, and the "
                         "learning rate positive",
                         path, number);
    if (out->count > 0 && (int64_t) epoch <= out->lines[out->count - 1].epoch)
        return hpct_fail(HPCT_ERR_DATA, "%s: line %d: epoch %.0f is not after the line before",
                         path, number, epoch);
    out->lines[out->count++] = (hpct_train_rate_line){(int64_t) epoch, rate};
    return HPCT_OK;
}

static hpct_status parse_lines(hpct_train_rate_file *out, char *text, const char *path)
{
    columns at = {0, 1};
    int number = 0;
    bool first = true;
    for (char *line = text, *next; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        line[strcspn(line, "#")] = '\0';
        number++;
        if (line[strspn(line, SEPARATORS)] == '\0')
            continue;
        if (first && is_header(line)) {
            at = (columns){find_column(line, "epoch"), find_column(line, "learning_rate")};
            if (at.epoch < 0 || at.rate < 0)
                return hpct_fail(HPCT_ERR_DATA,
                                 "%s: line %d has no columns epoch and learning_rate", path,
                                 number);
        } else {
            HPCT_TRY(add(out, line, at, path, number));
        }
        first = false;
    }
    return out->count > 0
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_DATA, "%s has no learning rate: a line is EPOCH RATE", path);
}

hpct_status hpct_train_rate_file_parse(hpct_train_rate_file *out, char *text, const char *path)
{
    size_t lines = 1;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    *out = (hpct_train_rate_file){.lines = calloc(lines, sizeof *out->lines)};
    if (out->lines == NULL)
        return hpct_fail_memory(lines * sizeof *out->lines);
    hpct_status status = parse_lines(out, text, path);
    if (status != HPCT_OK) {
        free(out->lines);
        *out = (hpct_train_rate_file){0};
    }
    return status;
}

hpct_status hpct_train_rate_file_read(hpct_train_rate_file *out, const char *path)
{
    char *data, *text;
    *out = (hpct_train_rate_file){0};
    HPCT_TRY(hpct_kind_read_text(&data, &text, path, MOST_BYTES));
    hpct_status status = hpct_train_rate_file_parse(out, text, path);
    free(data);
    return status;
}

double hpct_train_rate_file_at(const hpct_train_rate_file *file, int64_t epoch)
{
    double rate = 0;
    for (size_t i = 0; i < file->count && file->lines[i].epoch <= epoch; i++)
        rate = file->lines[i].rate;
    return rate;
}
