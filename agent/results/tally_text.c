/* Metrics by class as JSON and text, and the confusion matrix as CSV. */
#include "agent/results/tally.h"

#include "agent/results/json_file.h"
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

/* A folder's name need not be UTF-8. */
static json_t *class_to_json(const hpct_results_tally *tally, int class, char *const *names,
                             int num_names)
{
    char text[16];
    hpct_results_class_metrics m = hpct_results_tally_class(tally, class);
    json_t *name = json_string(name_of(text, class, names, num_names));
    json_t *object = json_pack("{s:o,s:I}", "class", name != NULL ? name : json_integer(class),
                               "samples", (json_int_t) m.samples);
    for (const hpct_results_metric *k = hpct_results_metric_table;
         object != NULL && k->name != NULL; k++) {
        if (hpct_results_tally_has(tally, k))
            json_object_set_new(object, k->name,
                                hpct_results_json_number(hpct_results_metric_get(k, &m.of)));
    }
    return object;
}

json_t *hpct_results_tally_to_json(const hpct_results_tally *tally, char *const *names,
                                   int num_names)
{
    json_t *list = json_array();
    for (int i = 0; list != NULL && i < hpct_results_tally_classes(tally); i++)
        json_array_append_new(list, class_to_json(tally, i, names, num_names));
    return list;
}

/* A name must not control a terminal. */
static void print_visible(const char *name, FILE *stream)
{
    for (; *name != '\0'; name++)
        fputc((unsigned char) *name < 0x20 || *name == 0x7f ? '?' : *name, stream);
}

void hpct_results_tally_print(const hpct_results_tally *tally, char *const *names, int num_names,
                              FILE *stream)
{
    char text[16];
    for (int i = 0; i < hpct_results_tally_classes(tally); i++) {
        hpct_results_class_metrics m = hpct_results_tally_class(tally, i);
        fputs("class ", stream);
        print_visible(name_of(text, i, names, num_names), stream);
        fprintf(stream, ": %" PRId64 " samples", m.samples);
        for (const hpct_results_metric *k = hpct_results_metric_table; k->name != NULL; k++) {
            if (hpct_results_tally_has(tally, k) && isfinite(hpct_results_metric_get(k, &m.of)))
                fprintf(stream, " - %s: %.4f", k->name, hpct_results_metric_get(k, &m.of));
        }
        fputc('\n', stream);
    }
}

/* ---- the confusion matrix ---- */

typedef struct writing {
    const hpct_results_tally *tally;
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
    int classes = hpct_results_tally_classes(w->tally);
    fputs("true", stream);
    for (int i = 0; i < classes; i++) {
        fputc(',', stream);
        print_name(w, i, stream);
    }
    for (int i = 0; i < classes; i++) {
        const int64_t *row = hpct_results_tally_row(w->tally, i);
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

hpct_status hpct_results_tally_write(const hpct_results_tally *tally, char *const *names,
                                     int num_names, const char *path)
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
