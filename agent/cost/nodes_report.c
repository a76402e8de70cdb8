/* The table has a row per node, and below it a line for each figure that is slow. */
#include "agent/cost/nodes_report.h"

#include "agent/results/json_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HALF 0.5
#define MOST_REMARKS 400

/* ---- the table ---- */

/* Columns of names: as wide as the longest. */
static int name_width(const hpct_cost_nodes_report *r)
{
    int width = (int) strlen("median");
    for (int i = 0; i < r->num; i++) {
        int length = (int) strlen(r->rows[i].name);
        width = length > width ? length : width;
    }
    return width;
}

/* Enough digits for small and for large figures. */
static void print_figures(FILE *stream, const double figures[HPCT_COST_FIGURES])
{
    for (int i = 0; i < HPCT_COST_FIGURES; i++) {
        const hpct_cost_figure_form *form = &hpct_cost_figure_forms[i];
        double value = figures[i] / form->unit;
        if (isnan(value))
            fprintf(stream, "  %*s", form->width, "-");
        else
            fprintf(stream, "  %*.*f", form->width, value < 10 ? 2 : value < 1000 ? 1 : 0, value);
    }
}

/* The rate of a link from both of its ends, the better one; 0: unknown. */
static double link_rate(const hpct_cost_nodes_report *r, int node, int round)
{
    const hpct_cost_pair *pair = &r->pairs[node * r->rounds + round];
    return pair->node < 0 ? 0
                          : fmax(pair->bytes_per_second,
                                 r->pairs[pair->node * r->rounds + round].bytes_per_second);
}

static void remark(char *text, const char *words)
{
    size_t used = strlen(text);
    snprintf(text + used, MOST_REMARKS - used, "%s%s", used > 0 ? ", " : "", words);
}

/* Links that are slow although neither of their nodes is. */
static void remark_links(const hpct_cost_nodes_report *r, int node, char *text)
{
    double median = r->medians[HPCT_COST_FIGURE_LINK];
    for (int round = 0; round < r->rounds && !r->rows[node].slow[HPCT_COST_FIGURE_LINK]; round++) {
        double rate = link_rate(r, node, round);
        char words[128];
        if (rate == 0 || !(rate < HALF * median))
            continue;
        const hpct_cost_node_row *other = &r->rows[r->pairs[node * r->rounds + round].node];
        if (other->slow[HPCT_COST_FIGURE_LINK])
            continue;
        snprintf(words, sizeof words, "%.1f MB/s to %s", rate / 1e6, other->name);
        remark(text, words);
    }
}

static void print_row(const hpct_cost_nodes_report *r, int node, int width, FILE *stream)
{
    const hpct_cost_node_row *row = &r->rows[node];
    char text[MOST_REMARKS] = "";
    for (int i = 0; i < HPCT_COST_FIGURES; i++) {
        char words[64];
        snprintf(words, sizeof words, "slow %s", hpct_cost_figure_forms[i].name);
        if (row->slow[i])
            remark(text, words);
    }
    remark_links(r, node, text);
    if (row->scratch[0] != '\0')
        remark(text, row->scratch);
    fprintf(stream, "%-*s  %5d", width, row->name, row->ranks);
    print_figures(stream, row->figures);
    fprintf(stream, "%s%s\n", text[0] != '\0' ? "  " : "", text);
}

/* "node2: compute 10.1 GFLOP/s, the median is 45.2: REASON" */
static void print_slow(const hpct_cost_nodes_report *r, const hpct_cost_node_row *row, int i,
                       FILE *stream)
{
    const hpct_cost_figure_form *form = &hpct_cost_figure_forms[i];
    const char *unit = strchr(form->head, ' ') != NULL ? strchr(form->head, ' ') + 1 : form->head,
               *why = i == HPCT_COST_FIGURE_SCRATCH && row->scratch[0] != '\0' ? row->scratch
                                                                               : row->state;
    fprintf(stream, "%s is slow: %s %.1f %s, %s is %.1f: %s\n", row->name, form->name,
            row->figures[i] / form->unit, unit, r->num == 2 ? "the mean of both" : "the median",
            r->medians[i] / form->unit,
            why[0] != '\0' ? why : "nothing in its /proc and /sys says why");
}

void hpct_cost_nodes_print(const hpct_cost_nodes_report *r, FILE *stream)
{
    int width = name_width(r);
    fprintf(stream, "%-*s  ranks", width, "node");
    for (int i = 0; i < HPCT_COST_FIGURES; i++)
        fprintf(stream, "  %*s", hpct_cost_figure_forms[i].width, hpct_cost_figure_forms[i].head);
    fputs("  remark\n", stream);
    for (int node = 0; node < r->num; node++)
        print_row(r, node, width, stream);
    fprintf(stream, "%-*s  %5s", width, "median", "");
    print_figures(stream, r->medians);
    fputc('\n', stream);
    for (int node = 0; node < r->num; node++) {
        for (int i = 0; i < HPCT_COST_FIGURES; i++) {
            if (r->rows[node].slow[i])
                print_slow(r, &r->rows[node], i, stream);
        }
    }
    fflush(stream);
}

/* ---- JSON ---- */

static json_t *number(double value, double unit)
{
    return isfinite(value) ? json_real(value / unit) : json_null();
}

/* Paths may have bytes that are not UTF-8, which JSON does not allow. */
static json_t *text_to_json(const char *text)
{
    char plain[HPCT_COST_NODE_TEXT];
    json_t *string = json_string(text);
    if (string != NULL)
        return string;
    snprintf(plain, sizeof plain, "%s", text);
    for (char *c = plain; *c != '\0'; c++)
        *c = (unsigned char) *c < 0x80 ? *c : '?';
    return json_string(plain);
}

static json_t *figures_to_json(const double figures[HPCT_COST_FIGURES])
{
    json_t *object = json_object();
    for (int i = 0; i < HPCT_COST_FIGURES; i++)
        json_object_set_new(object, hpct_cost_figure_forms[i].key,
                            number(figures[i], hpct_cost_figure_forms[i].unit));
    return object;
}

static json_t *row_to_json(const hpct_cost_node_row *row)
{
    json_t *object = figures_to_json(row->figures), *slow = json_array();
    for (int i = 0; i < HPCT_COST_FIGURES; i++) {
        if (row->slow[i])
            json_array_append_new(slow, json_string(hpct_cost_figure_forms[i].name));
    }
    json_object_set_new(object, "node", text_to_json(row->name));
    json_object_set_new(object, "ranks", json_integer(row->ranks));
    json_object_set_new(object, "threads", json_integer(row->threads));
    json_object_set_new(object, "slow", slow);
    json_object_set_new(object, "state", text_to_json(row->state));
    json_object_set_new(object, "scratch_error",
                        row->scratch[0] != '\0' ? text_to_json(row->scratch) : json_null());
    return object;
}

/* Each link once. */
static json_t *links_to_json(const hpct_cost_nodes_report *r)
{
    json_t *links = json_array();
    for (int i = 0; i < r->num * r->rounds; i++) {
        const hpct_cost_pair *pair = &r->pairs[i];
        int node = i / r->rounds;
        if (pair->node <= node)
            continue;
        json_array_append_new(links, json_pack("{s:[o, o] s:o s:o}", "nodes",
                                               text_to_json(r->rows[node].name),
                                               text_to_json(r->rows[pair->node].name), "latency_us",
                                               number(pair->latency_seconds, 1e-6), "mb_per_second",
                                               number(link_rate(r, node, i % r->rounds), 1e6)));
    }
    return links;
}

hpct_status hpct_cost_nodes_write(const hpct_cost_nodes_report *r, const char *path)
{
    json_t *nodes = json_array(), *slow = json_array();
    for (int i = 0; i < r->num; i++) {
        json_array_append_new(nodes, row_to_json(&r->rows[i]));
        if (hpct_cost_node_is_slow(&r->rows[i]))
            json_array_append_new(slow, text_to_json(r->rows[i].name));
    }
    return hpct_results_json_write(json_pack("{s:i s:o s:o s:o s:o}", "version", 1, "nodes", nodes,
                                             "median", figures_to_json(r->medians), "links",
                                             links_to_json(r), "slow", slow),
                                   path);
}
