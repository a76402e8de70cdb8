/* Reads the runs, makes the page, writes it in a format. */
#include <hpctrain/report.h>

#include "agent/report/content.h"
#include "agent/report/readers.h"
#include "base/file.h"
#include "base/output.h"
#include "base/status.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RELOAD_SECONDS 5

typedef enum format { HTML, MD, CSV, SVG, NUM_FORMATS } format;
static const char *const formats[NUM_FORMATS] = {"html", "md", "csv", "svg"};

typedef struct collection {
    hpct_report_pool pool;
    hpct_report_run *runs;
    size_t count;
    hpct_report_plan plan;
    hpct_report_beside beside;
    hpct_report_page page;
} collection;

/* ---- reading ---- */

/* Names that two runs share are replaced by their paths, and equal paths are numbered. */
static void name_apart(collection *c)
{
    for (size_t i = 0; i < c->count; i++) {
        for (size_t k = i + 1; k < c->count; k++) {
            hpct_report_run *a = &c->runs[i], *b = &c->runs[k];
            if (strcmp(a->name, b->name) != 0)
                continue;
            if (strcmp(a->path, b->path) != 0)
                a->name = a->path, b->name = b->path;
            else
                b->name = hpct_report_print(&c->pool, "%s (%zu)", b->path, k + 1);
        }
    }
}

/* A run that cannot be read is a remark, if others can. */
static hpct_status read_runs(collection *c, const hpct_report_options *options, const char **wrong,
                             size_t *num_wrong)
{
    hpct_status first = HPCT_OK;
    for (int i = 0; i < options->num_runs; i++) {
        hpct_status status = hpct_report_run_read(&c->runs[c->count], &c->pool, options->runs[i]);
        if (status == HPCT_OK) {
            c->count++;
            continue;
        }
        hpct_report_run_free(&c->runs[c->count]);
        wrong[(*num_wrong)++] = hpct_report_print(&c->pool, "%s", hpct_last_error());
        first = first == HPCT_OK ? status : first;
    }
    if (c->count == 0)
        return hpct_fail(first, "%s", wrong[0]);
    name_apart(c);
    return HPCT_OK;
}

static void print_remarks(const collection *c)
{
    for (size_t i = 0; i < c->page.num_items; i++) {
        if (c->page.items[i].kind != HPCT_REPORT_REMARK)
            continue;
        fputs("hpc-train: ", stderr);
        hpct_report_clean(stderr, c->page.items[i].words);
        fputc('\n', stderr);
    }
}

/* *wrong is what cannot be shown; its remarks come first. */
static void make_page(collection *c, const hpct_report_options *options, const char **wrong,
                      size_t num_wrong)
{
    c->page.pool = &c->pool;
    for (size_t i = 0; i < num_wrong; i++)
        hpct_report_add_words(&c->page, HPCT_REPORT_REMARK, wrong[i]);
    if (c->count == 1 && options->num_runs == 1)
        hpct_report_of_one(&c->page, &c->runs[0]);
    else
        hpct_report_of_several(&c->page, c->runs, c->count,
                               options->plan != NULL ? &c->plan : NULL);
    if (options->beside != NULL)
        hpct_report_of_beside(&c->page, c->runs, c->count, &c->beside);
}

static hpct_status collect(collection *c, const hpct_report_options *options)
{
    size_t num_wrong = 0, count = (size_t) options->num_runs;
    const char **wrong = hpct_report_take(&c->pool, count, sizeof *wrong);
    c->runs = hpct_report_take(&c->pool, count, sizeof *c->runs);
    if (wrong == NULL || c->runs == NULL)
        return hpct_fail_memory(0);
    HPCT_TRY(read_runs(c, options, wrong, &num_wrong));
    if (options->plan != NULL)
        HPCT_TRY(hpct_report_plan_read(&c->plan, &c->pool, options->plan));
    if (options->beside != NULL)
        HPCT_TRY(hpct_report_beside_read(&c->beside, &c->pool, options->beside));
    make_page(c, options, wrong, num_wrong);
    return c->pool.failed ? hpct_fail_memory(0) : HPCT_OK;
}

/* ---- formats ---- */

static hpct_status write_format(FILE *out, const hpct_report_page *page, format as)
{
    switch (as) {
    case MD:
        hpct_report_write_md(out, page);
        return HPCT_OK;
    case CSV:
        hpct_report_write_csv(out, page);
        return HPCT_OK;
    case SVG:
        return hpct_report_write_svg(out, page)
                   ? HPCT_OK
                   : hpct_fail(HPCT_ERR_DATA, "there is nothing to draw");
    default:
        hpct_report_write_html(out, page);
        return HPCT_OK;
    }
}

/* A report as text, and what there is to know of it. */
typedef struct content {
    const hpct_report_options *options;
    const char *path;
    format as;
    bool speaks; /* remarks are printed on stderr as well */
    int reload;  /* of the page, as long as a run may change */
    bool may_change;
    char *text;
    size_t size;
} content;

static hpct_status make_text(content *made)
{
    collection c = {.count = 0};
    FILE *out = open_memstream(&made->text, &made->size);
    hpct_status status = out != NULL ? collect(&c, made->options) : hpct_fail_memory(0);
    if (status == HPCT_OK) {
        made->may_change = c.page.may_change;
        c.page.reload = made->may_change ? made->reload : 0;
        if (made->speaks)
            print_remarks(&c);
        status = write_format(out, &c.page, made->as);
    }
    if (status == HPCT_OK && c.pool.failed)
        status = hpct_fail_memory(0);
    bool written = out == NULL || !ferror(out);
    if (out != NULL && (fclose(out) != 0 || !written) && status == HPCT_OK)
        status = hpct_fail_memory(0);
    for (size_t i = 0; i < c.count; i++)
        hpct_report_run_free(&c.runs[i]);
    hpct_report_release(&c.pool);
    return status;
}

/* ---- output ---- */

static hpct_status find_format(format *out, const hpct_report_options *options)
{
    const char *suffix = strrchr(options->output, '.');
    const char *name = options->format != NULL ? options->format
                       : suffix != NULL        ? suffix + 1
                                               : "html";
    for (int i = 0; i < NUM_FORMATS; i++) {
        if (strcmp(name, formats[i]) == 0) {
            *out = (format) i;
            return HPCT_OK;
        }
    }
    if (options->format == NULL && strcmp(name, "htm") != 0 && suffix != NULL)
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s: its suffix is not .html, .md, .csv or .svg: give --format",
                         options->output);
    *out = HTML;
    return options->format == NULL
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_USAGE,
                           "--format: '%s' is unknown; there are: html, md, csv, svg",
                           options->format);
}

/* A file can be read by those alone who can read what it shows. */
static hpct_status restrict_readers(const hpct_report_options *options, int fd, const char *path)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return HPCT_OK;
    mode_t mode = 0077;
    for (int i = 0; i < options->num_runs; i++)
        mode &= hpct_report_run_readers(options->runs[i], info.st_gid);
    if (options->plan != NULL)
        mode &= hpct_report_readers(options->plan, info.st_gid);
    if (options->beside != NULL)
        mode &= hpct_report_readers(options->beside, info.st_gid);
    return fchmod(fd, info.st_mode & (0700 | mode)) == 0
               ? HPCT_OK
               : hpct_file_failed("setting the mode of", path);
}

static hpct_status write_content(void *arg, int fd)
{
    const content *c = arg;
    if (fd != STDOUT_FILENO)
        HPCT_TRY(restrict_readers(c->options, fd, c->path));
    return hpct_file_write_all(fd, c->text, c->size, c->path);
}

static hpct_status write_once(content *c, bool standard)
{
    hpct_status status = make_text(c);
    if (status == HPCT_OK)
        status = standard         ? write_content(c, STDOUT_FILENO)
                 : c->reload != 0 ? hpct_output_refresh(c->path, write_content, c)
                                  : hpct_output_replace(c->path, write_content, c);
    free(c->text);
    c->text = NULL;
    return status;
}

/* Until all runs have finished, or Ctrl-C; the last page does not reload itself. */
static hpct_status write_again_and_again(content *c)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    c->reload = RELOAD_SECONDS;
    HPCT_TRY(write_once(c, false));
    if (c->may_change)
        printf("%s: written every %d s until %s finished; Ctrl-C ends this\n", c->path,
               RELOAD_SECONDS, c->options->num_runs == 1 ? "the run has" : "all runs have");
    fflush(stdout);
    c->speaks = false;
    const struct timespec pause = {.tv_sec = RELOAD_SECONDS};
    while (c->may_change && sigtimedwait(&ends, NULL, &pause) < 0)
        HPCT_TRY(write_once(c, false));
    c->reload = 0;
    return write_once(c, false);
}

/* The report must not replace what it is made of. */
static hpct_status keep_inputs(const hpct_report_options *options)
{
    bool same = options->plan != NULL && hpct_output_same(options->output, options->plan);
    same |= options->beside != NULL && hpct_output_same(options->output, options->beside);
    for (int i = 0; i < options->num_runs; i++)
        same |= hpct_output_same(options->output, options->runs[i]) ||
                hpct_report_run_has_file(options->runs[i], options->output);
    return same ? hpct_fail(HPCT_ERR_USAGE, "--output: %s is a file of a run: give another name",
                            options->output)
                : HPCT_OK;
}

static hpct_status check_watch(const hpct_report_options *options, format as)
{
    return as == HTML && strcmp(options->output, "-") != 0
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_USAGE,
                           "--watch writes a page again and again: give it the name of an .html "
                           "file, or leave out --output and --format");
}

hpct_status hpct_report_write(const hpct_report_options *given)
{
    hpct_report_options options = *given;
    content c = {.options = &options, .speaks = true};
    char name[32];
    snprintf(name, sizeof name, "report.%s", options.format != NULL ? options.format : "html");
    if (options.output == NULL)
        options.output = name;
    bool standard = strcmp(options.output, "-") == 0;
    c.path = standard ? "standard output" : options.output;
    HPCT_TRY(find_format(&c.as, &options));
    if (options.watch)
        HPCT_TRY(check_watch(&options, c.as));
    if (!standard)
        HPCT_TRY(keep_inputs(&options));
    return options.watch ? write_again_and_again(&c) : write_once(&c, standard);
}
