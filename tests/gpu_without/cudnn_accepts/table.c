/* Tables in Markdown. */
#include "tests/gpu_without/cudnn_accepts/table.h"

#include <cudnn.h>

accepts_device accepts_about[DEVICES_ALL];

void accepts_version(char *text, size_t size)
{
    size_t version = cudnnGetVersion();
    snprintf(text, size, "%zu.%zu.%zu", version / 10000, version % 10000 / 100, version % 100);
}

/* ---- devices ---- */

static void write_devices(FILE *out)
{
    fputs("| device | compute capability | cubins for it in libcudnn_engines_precompiled, "
          "libcudnn_cnn |\n|---|---|---|\n",
          out);
    for (int d = 0; d < DEVICES_ALL; d++) {
        const accepts_device *a = &accepts_about[d];
        fprintf(out, "| `%s` | %d.%d | %d, %d%s |\n", accepts_devices[d], a->major, a->minor,
                a->engines, a->others,
                a->others == 0 ? ": this cuDNN cannot compute on it, whatever it says below" : "");
    }
}

/* ---- by model ---- */

/* Which graphs a line is of; -1: all. */
typedef struct selection {
    int model, kind, device;
    hpct_precision precision;
} selection;

static bool is_selected(const selection *s, const accepts_graph *g)
{
    unsigned models = g->answer[s->device].models;
    return g->precision == s->precision && (s->kind < 0 || (int) g->kind == s->kind) &&
           (s->model < 0 ? models != 0 : (models >> s->model & 1) != 0);
}

static void count(const selection *s, int *asked, int *found)
{
    *asked = *found = 0;
    for (int i = 0; i < accepts_num_graphs; i++) {
        const accepts_graph *g = &accepts_graphs[i];
        if (!is_selected(s, g))
            continue;
        ++*asked;
        *found += g->answer[s->device].accepted;
    }
}

static void write_models(FILE *out)
{
    int asked, found;
    fputs("| model | precision |", out);
    for (int d = 0; d < DEVICES_ALL; d++)
        fprintf(out, " `%s` |", accepts_devices[d]);
    fputs("\n|---|---|", out);
    for (int d = 0; d < DEVICES_ALL; d++)
        fputs("---|", out);
    for (int m = 0; m < MODELS_ALL; m++) {
        for (int p = 0; p < HPCT_PRECISIONS; p++) {
            fprintf(out, "\n| %s | %s |", accepts_models[m],
                    hpct_precision_name((hpct_precision) p));
            for (int d = 0; d < DEVICES_ALL; d++) {
                count(&(selection){m, -1, d, (hpct_precision) p}, &asked, &found);
                if (asked == 0)
                    fputs(" – |", out);
                else
                    fprintf(out, " %d of %d |", found, asked);
            }
        }
    }
    fputs("\n", out);
}

/* ---- by kind ---- */

typedef struct summary {
    int asked, found, uneven;
    size_t workspace_bytes;
    accepts_engines engines, wrong, compiled;
} summary;

static void add_all(accepts_engines *to, const accepts_engines *from)
{
    for (int i = 0; i < from->count; i++)
        accepts_engines_add(to, from->number[i]);
}

static summary summarize(const selection *s)
{
    summary sum = {0};
    count(s, &sum.asked, &sum.found);
    for (int i = 0; i < accepts_num_graphs; i++) {
        const accepts_graph *g = &accepts_graphs[i];
        const accepts_answer *a = &g->answer[s->device];
        if (!is_selected(s, g))
            continue;
        sum.uneven += g->uneven;
        if (a->workspace_bytes > sum.workspace_bytes)
            sum.workspace_bytes = a->workspace_bytes;
        add_all(&sum.engines, &a->engines);
        add_all(&sum.wrong, &a->wrong);
        add_all(&sum.compiled, &a->compiled);
    }
    return sum;
}

static void write_engines(FILE *out, const accepts_engines *e)
{
    for (int i = 0; i < e->count; i++)
        fprintf(out, " e%d", e->number[i]);
    fputs(e->count > 0 ? " |" : " none |", out);
}

static void write_kind(FILE *out, const selection *s)
{
    summary sum = summarize(s);
    if (sum.asked == 0)
        return;
    fprintf(out, "| `%s` | %s | %s | %d of %d |", accepts_devices[s->device],
            hpct_precision_name(s->precision), accepts_kind_names[s->kind], sum.found, sum.asked);
    write_engines(out, &sum.engines);
    write_engines(out, &sum.compiled);
    fprintf(out, " %zu MiB | %d", sum.workspace_bytes >> 20, sum.uneven);
    if (sum.wrong.count > 0)
        fputs(", without", out);
    for (int i = 0; i < sum.wrong.count; i++)
        fprintf(out, " e%d", sum.wrong.number[i]);
    fputs(" |\n", out);
}

void accepts_write_kinds(FILE *out)
{
    for (int d = 0; d < DEVICES_ALL; d++) {
        for (int p = 0; p < HPCT_PRECISIONS; p++) {
            for (int k = 0; k < ACCEPTS_KINDS; k++)
                write_kind(out, &(selection){-1, k, d, (hpct_precision) p});
        }
    }
}

/* ---- refusals ---- */

static const char *way_out(const accepts_graph *g)
{
    return g->kind == ACCEPTS_FUSED || g->kind == ACCEPTS_SUM ? "the convolution alone, own kernels"
           : g->kind == ACCEPTS_ADDED                         ? "a separate gradient, and a pass"
           : accepts_is_last(g)                               ? "**direct kernels: slow**"
                                                              : "a copy with the padding included";
}

static void write_refusals(FILE *out)
{
    int refused = 0;
    for (int i = 0; i < accepts_num_graphs; i++) {
        const accepts_graph *g = &accepts_graphs[i];
        for (int d = 0; d < DEVICES_ALL; d++) {
            const accepts_answer *a = &g->answer[d];
            if (a->models == 0 || a->accepted)
                continue;
            if (refused++ == 0)
                fputs("| device | precision | graph | of | way out |\n|---|---|---|---|---|\n",
                      out);
            fprintf(out, "| `%s` | %s | %s | %s | %s |\n", accepts_devices[d],
                    hpct_precision_name(g->precision), accepts_kind_names[g->kind], g->shape,
                    way_out(g));
        }
    }
    if (refused == 0)
        fputs("None.\n", out);
}

void accepts_write(FILE *out)
{
    char version[32];
    accepts_version(version, sizeof version);
    fprintf(out, "## Devices, with cuDNN %s\n\n", version);
    write_devices(out);
    fputs("\n## Graphs that have engines, by model\n\n", out);
    write_models(out);
    fputs("\n## The same by kind of graph, with engines\n\n", out);
    fputs("| device | precision | graph | found | engines | compiled at run time, not used | "
          "workspace of the first, at most | with paddings that differ |\n"
          "|---|---|---|---|---|---|---|---|\n",
          out);
    accepts_write_kinds(out);
    fputs("\n## Graphs that are refused\n\n", out);
    write_refusals(out);
}
