/* Metrics by class as JSON and text, and the confusion matrix as CSV. */
#include "agent/results/tally.h"

#include "base/file.h"
#include "base/output.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of a class: its name, or number. */
static const char *name_of(char text[16], int class, char *const *names, int num_names)
{
    snprintf(text, 16, "%d", class);
    return class < num_names ? names[class] : text;
}

static void values_of(const hpct_class_metrics *m, double values[HPCT_METRIC_BITS])
{
    const double all[HPCT_METRIC_BITS] = {m->precision, m->recall, m->f1, m->auc};
    memcpy(values, all, sizeof all);
}

/* A folder's name need not be UTF-8. */
static json_t *class_to_json(const hpct_tally *tally, int class, char *const *names, int num_names)
{
    char text[16];
    double values[HPCT_METRIC_BITS];
    hpct_class_metrics m = hpct_tally_class(tally, class);
    json_t *name = json_string(name_of(text, class, names, num_names));
    json_t *object = json_pack("{s:o,s:I}", "class", name != NULL ? name : json_integer(class),
                               "samples", (json_int_t) m.samples);
    values_of(&m, values);
    for (int k = 0; object != NULL && k < HPCT_METRIC_BITS; k++) {
        if (hpct_tally_has(tally, k))
            json_object_set_new(object, hpct_metric_names[k],
                                isfinite(values[k]) ? json_real(values[k]) : json_null());
    }
    return object;
}

json_t *hpct_tally_to_json(const hpct_tally *tally, char *const *names, int num_names)
{
    json_t *list = json_array();
    for (int i = 0; list != NULL && i < hpct_tally_classes(tally); i++)
        json_array_append_new(list, class_to_json(tally, i, names, num_names));
    return list;
}

/* A name must not control a terminal. */
static void print_visible(const char *name, FILE *stream)
{
    for (; *name != '\0'; name++)
        fputc((unsigned char) *name < 0x20 || *name == 0x7f ? '?' : *name, stream);
}

void hpct_tally_print(const hpct_tally *tally, char *const *names, int num_names, FILE *stream)
{
    char text[16];
    for (int i = 0; i < hpct_tally_classes(tally); i++) {
        double values[HPCT_METRIC_BITS];
        hpct_class_metrics m = hpct_tally_class(tally, i);
        values_of(&m, values);
        fputs("class ", stream);
        print_visible(name_of(text, i, names, num_names), stream);
        fprintf(stream, ": %" PRId64 " samples", m.samples);
        for (int k = 0; k < HPCT_METRIC_BITS; k++) {
            if (hpct_tally_has(tally, k) && isfinite(values[k]))
                fprintf(stream, " - %s: %.4f", hpct_metric_names[k], values[k]);
        }
        fputc('\n', stream);
    }
}

/* ---- the confusion matrix ---- */

typedef struct writing {
    const hpct_tally *tally;
    char *const *names;
    int num_names;
    const char *path;
    char *text;
    size_t bytes;
} writing;

/* RFC 4180: with a comma, quote or line end in it a field is quoted. */
static void print_name(const writing *w, int class, FILE *stream)
{
    char text[16];
    const char *name = name_of(text, class, w->names, w->num_names);
    if (strpbrk(name, ",\"\r\n") == NULL) {
        fputs(name, stream);
        return;
    }
    fputc('"', stream);
    for (; *name != '\0'; name++) {
        if (*name == '"')
            fputc('"', stream);
        fputc(*name, stream);
    }
    fputc('"', stream);
}

static void print_matrix(const writing *w, FILE *stream)
{
    int classes = hpct_tally_classes(w->tally);
    fputs("true", stream);
    for (int i = 0; i < classes; i++) {
        fputc(',', stream);
        print_name(w, i, stream);
    }
    for (int i = 0; i < classes; i++) {
        const int64_t *row = hpct_tally_row(w->tally, i);
        fputc('\n', stream);
        print_name(w, i, stream);
        for (int k = 0; k < classes; k++)
            fprintf(stream, ",%" PRId64, row[k]);
    }
    fputc('\n', stream);
}

/* hpct_output_writer */
static hpct_status write_matrix(void *arg, int fd)
{
    const writing *w = arg;
    return hpct_file_write_all(fd, w->text, w->bytes, w->path);
}

hpct_status hpct_tally_write(const hpct_tally *tally, char *const *names, int num_names,
                             const char *path)
{
    writing w = {.tally = tally, .names = names, .num_names = num_names, .path = path};
    FILE *stream = open_memstream(&w.text, &w.bytes);
    if (stream == NULL)
        return hpct_fail_memory(0);
    print_matrix(&w, stream);
    bool failed = ferror(stream);
    hpct_status status = fclose(stream) != 0 || failed ? hpct_fail_memory(w.bytes) : HPCT_OK;
    if (status == HPCT_OK)
        status = hpct_output_replace(path, write_matrix, &w);
    free(w.text);
    return status;
}
