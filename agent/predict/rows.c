/* One row per sample, in the data's order. */
#include "agent/predict/rows.h"

#include "agent/data/listing.h"
#include "base/file.h"
#include "base/output.h"
#include "base/status.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef hpct_status put_row(const hpct_predict_rows *rows, size_t index, FILE *stream);

static const hpct_predict_class_score *best_of(const hpct_predict_rows *rows, size_t index)
{
    return rows->best + index * (size_t) rows->top_k;
}

static const char *class_name(const hpct_predict_rows *rows, const hpct_predict_class_score *of)
{
    return of->class < rows->num_names ? rows->names[of->class] : NULL;
}

static const char *key_of(const hpct_predict_rows *rows)
{
    return hpct_dataset_sample_name(rows->dataset, 0) != NULL ? "file" : "index";
}

/* ---- CSV ---- */

/* Quoted if it has to be. */
static void put_field(FILE *stream, const char *text)
{
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

static void put_csv_header(const hpct_predict_rows *rows, FILE *stream)
{
    fputs(key_of(rows), stream);
    for (int k = 0; rows->outputs && k < rows->top_k; k++) {
        fputc(',', stream);
        put_field(stream, rows->names[k]);
    }
    if (rows->outputs) {
        fputc('\n', stream);
        return;
    }
    if (rows->top_k == 1)
        fputs(",class,probability", stream);
    for (int k = 1; k <= rows->top_k && rows->top_k > 1; k++)
        fprintf(stream, ",class_%d,probability_%d", k, k);
    fputc('\n', stream);
}

static hpct_status put_csv_row(const hpct_predict_rows *rows, size_t index, FILE *stream)
{
    const char *name = hpct_dataset_sample_name(rows->dataset, index);
    if (name != NULL)
        put_field(stream, name);
    else
        fprintf(stream, "%zu", index);
    for (int k = 0; k < rows->top_k; k++) {
        const hpct_predict_class_score *one = &best_of(rows, index)[k];
        const char *class = class_name(rows, one);
        fputc(',', stream);
        if (rows->outputs) {
            fprintf(stream, "%.9g", (double) one->probability);
            continue;
        }
        if (class != NULL)
            put_field(stream, class);
        else
            fprintf(stream, "%d", (int) one->class);
        fprintf(stream, ",%.6g", (double) one->probability);
    }
    fputc('\n', stream);
    return HPCT_OK;
}

/* ---- JSON lines ---- */

static hpct_status put_string(FILE *stream, const char *text)
{
    char *utf8 = hpct_data_name_text(text, strlen(text));
    json_t *string = utf8 != NULL ? json_string(utf8) : NULL;
    char *line = string != NULL ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    if (line != NULL)
        fputs(line, stream);
    free(utf8);
    json_decref(string);
    hpct_status status = line != NULL ? HPCT_OK : hpct_fail_memory(strlen(text));
    free(line);
    return status;
}

static hpct_status put_class(const hpct_predict_rows *rows, const hpct_predict_class_score *one,
                             FILE *stream)
{
    const char *class = class_name(rows, one);
    fputs("\"class\": ", stream);
    if (class != NULL)
        HPCT_TRY(put_string(stream, class));
    else
        fprintf(stream, "%d", (int) one->class);
    fprintf(stream, ", \"probability\": %.6g", (double) one->probability);
    return HPCT_OK;
}

static hpct_status put_json_outputs(const hpct_predict_rows *rows, size_t index, FILE *stream)
{
    fputs("\"outputs\": {", stream);
    for (int k = 0; k < rows->top_k; k++) {
        fputs(k > 0 ? ", " : "", stream);
        HPCT_TRY(put_string(stream, rows->names[k]));
        fprintf(stream, ": %.9g", (double) best_of(rows, index)[k].probability);
    }
    fputs("}}\n", stream);
    return HPCT_OK;
}

static hpct_status put_json_row(const hpct_predict_rows *rows, size_t index, FILE *stream)
{
    const char *name = hpct_dataset_sample_name(rows->dataset, index);
    fprintf(stream, "{\"%s\": ", key_of(rows));
    if (name != NULL)
        HPCT_TRY(put_string(stream, name));
    else
        fprintf(stream, "%zu", index);
    fputs(", ", stream);
    if (rows->outputs)
        return put_json_outputs(rows, index, stream);
    HPCT_TRY(put_class(rows, best_of(rows, index), stream));
    for (int k = 0; k < rows->top_k && rows->top_k > 1; k++) {
        fputs(k == 0 ? ", \"top\": [{" : ", {", stream);
        HPCT_TRY(put_class(rows, &best_of(rows, index)[k], stream));
        fputs(k + 1 < rows->top_k ? "}" : "}]", stream);
    }
    fputs("}\n", stream);
    return HPCT_OK;
}

/* ---- files ---- */

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), size = strlen(end);
    return length > size && strcmp(path + length - size, end) == 0;
}

hpct_status hpct_predict_rows_check_name(const char *path)
{
    if (ends_in(path, ".csv") || ends_in(path, ".jsonl"))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "--output %s: predictions are written as .csv or .jsonl: give a name that "
                     "ends so",
                     path);
}

typedef struct writing {
    const hpct_predict_rows *rows;
    const char *path;
} writing;

static hpct_status put_all(const hpct_predict_rows *rows, bool csv, FILE *stream)
{
    put_row *put = csv ? put_csv_row : put_json_row;
    if (csv)
        put_csv_header(rows, stream);
    for (size_t i = 0; i < rows->dataset->size && !ferror(stream); i++)
        HPCT_TRY(put(rows, i, stream));
    return HPCT_OK;
}

static hpct_status write_rows(void *argument, int fd)
{
    const writing *w = argument;
    int own = dup(fd);
    FILE *stream = own >= 0 ? fdopen(own, "w") : NULL;
    if (stream == NULL) {
        hpct_status status = hpct_file_failed("writing", w->path);
        if (own >= 0)
            close(own);
        return status;
    }
    hpct_status status = put_all(w->rows, ends_in(w->path, ".csv"), stream);
    bool bad = fflush(stream) != 0 || ferror(stream);
    if (bad && status == HPCT_OK)
        status = hpct_file_failed("writing", w->path);
    fclose(stream);
    return status;
}

hpct_status hpct_predict_rows_write(const hpct_predict_rows *rows, const char *path)
{
    return hpct_output_replace(path, write_rows, &(writing){rows, path});
}

/* ---- the table ---- */

/* Text of a cell for a terminal, which control characters would affect. */
static char *cell(const char *text, size_t number)
{
    char *out = NULL;
    if (text != NULL)
        out = strdup(text);
    else if (asprintf(&out, "%zu", number) < 0)
        out = NULL;
    for (char *c = out; c != NULL && *c != '\0'; c++) {
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            *c = '?';
    }
    return out;
}

static int width_of(const char *text, size_t number, int before)
{
    char digits[24];
    int width = (int) (text != NULL ? strlen(text)
                                    : (size_t) snprintf(digits, sizeof digits, "%zu", number));
    return width > before ? width : before;
}

#define NUMBER_WIDTH 11 /* "-1.2345e-05" */

typedef struct widths {
    int name, class;
} widths;

static widths find_widths(const hpct_predict_rows *rows)
{
    widths w = {(int) strlen(key_of(rows)), (int) strlen("class")};
    size_t count = rows->dataset->size;
    for (size_t i = 0; i < count; i++)
        w.name = width_of(hpct_dataset_sample_name(rows->dataset, i), i, w.name);
    for (size_t i = 0; i < count * (size_t) rows->top_k; i++)
        w.class = width_of(class_name(rows, &rows->best[i]), (size_t) rows->best[i].class, w.class);
    return w;
}

static hpct_status print_cell(FILE *stream, const char *text, size_t number, int width)
{
    char *out = cell(text, number);
    if (out == NULL)
        return hpct_fail_memory(0);
    fprintf(stream, "%-*s", width, out);
    free(out);
    return HPCT_OK;
}

static hpct_status print_row(const hpct_predict_rows *rows, const widths *w, size_t index,
                             FILE *stream)
{
    HPCT_TRY(print_cell(stream, hpct_dataset_sample_name(rows->dataset, index), index, w->name));
    for (int k = 0; k < rows->top_k; k++) {
        const hpct_predict_class_score *one = &best_of(rows, index)[k];
        fputs("  ", stream);
        if (rows->outputs) {
            fprintf(stream, "%-*.6g", width_of(rows->names[k], 0, NUMBER_WIDTH),
                    (double) one->probability);
            continue;
        }
        HPCT_TRY(print_cell(stream, class_name(rows, one), (size_t) one->class, w->class));
        fprintf(stream, k + 1 < rows->top_k ? "  %-11.6g" : "  %.6g", (double) one->probability);
    }
    fputc('\n', stream);
    return HPCT_OK;
}

hpct_status hpct_predict_rows_print(const hpct_predict_rows *rows, FILE *stream)
{
    widths w = find_widths(rows);
    fprintf(stream, "%-*s", w.name, key_of(rows));
    for (int k = 0; k < rows->top_k && rows->outputs; k++) {
        fputs("  ", stream);
        HPCT_TRY(print_cell(stream, rows->names[k], 0, NUMBER_WIDTH));
    }
    for (int k = 0; k < rows->top_k && !rows->outputs; k++)
        fprintf(stream, "  %-*s  %s", w.class, "class", "probability");
    fputc('\n', stream);
    for (size_t i = 0; i < rows->dataset->size && !ferror(stream); i++)
        HPCT_TRY(print_row(rows, &w, i, stream));
    return HPCT_OK;
}
