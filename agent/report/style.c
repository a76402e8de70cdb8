/* Colours, dashes, markers and patterns. Series differ by all three of the first, parts of bars by
 * colour and pattern. Contrast with the page is 4.5:1 or more for text and 3:1 for lines. */
#include "agent/report/chart.h"

#include <stdlib.h>
#include <string.h>

static const struct palette {
    const char *series[HPCT_REPORT_LOOKS], *text, *faint, *grid, *card, *ideal;
} light = {{"#0b5cad", "#b3470b", "#0a7a55", "#8331a7", "#b8143c", "#4d5b00"},
           "#1b2430",
           "#55606e",
           "#dfe4ea",
           "#ffffff",
           "#6b7683"},
  dark = {{"#74b5ff", "#ffad66", "#5cd6a3", "#d6a5ff", "#ff92a6", "#c6d46a"},
          "#e8edf3",
          "#a9b4c0",
          "#343d49",
          "#1a2029",
          "#98a4b1"};

const char *hpct_report_dashes(int look)
{
    static const char *const dashes[HPCT_REPORT_LOOKS] = {"",         "7 4", "2 3",
                                                          "10 3 2 3", "5 2", "12 4"};
    return dashes[look % HPCT_REPORT_LOOKS];
}

void hpct_report_marker_draw(FILE *out, int look, double x, double y, const char *tip)
{
    static const char *const shapes[HPCT_REPORT_LOOKS] = {
        "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
        "M-3.2 -3.2h6.4v6.4h-6.4z",
        "M0 -4.2l4 7.2h-8z",
        "M0 -4.6l4.2 4.6l-4.2 4.6l-4.2 -4.6z",
        "M0 4.2l4 -7.2h-8z",
        "M-1.4 -4h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6v-2.8h2.6z"};
    int i = look % HPCT_REPORT_LOOKS;
    fprintf(out, "<path class=\"f%d\" transform=\"translate(%.1f %.1f)\" d=\"%s\"", i, x, y,
            shapes[i]);
    if (tip == NULL) {
        fputs("/>", out);
        return;
    }
    fputs("><title>", out);
    hpct_report_escape(out, tip);
    fputs("</title></path>\n", out);
}

static void write_palette(FILE *out, const struct palette *p)
{
    for (int i = 0; i < HPCT_REPORT_LOOKS; i++)
        fprintf(out, ".s%d{stroke:%s}.f%d{fill:%s}", i, p->series[i], i, p->series[i]);
    fprintf(out,
            ".t{fill:%s}.m{fill:%s}.g{stroke:%s}.ax{stroke:%s}.ideal{stroke:%s}.k,.part{stroke:%s}"
            ".kf{fill:%s}.rest{fill:%s}.bg{fill:%s}\n",
            p->text, p->faint, p->grid, p->faint, p->ideal, p->card, p->card, p->ideal, p->card);
}

void hpct_report_chart_style(FILE *out, bool both)
{
    fputs("svg text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
          "svg .h{font-size:15px;font-weight:600}svg .n{font-size:11px}"
          ".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
          ".ideal{fill:none;stroke-width:1.5;stroke-dasharray:3 4}.g,.ax{stroke-width:1}"
          ".k{stroke-width:1.2}.wide{stroke-width:3}.part{stroke-width:1}svg .b{font-weight:600}\n",
          out);
    write_palette(out, &light);
    if (both) {
        fputs("@media (prefers-color-scheme:dark){", out);
        write_palette(out, &dark);
        fputs("}\n", out);
    }
}

void hpct_report_chart_patterns(FILE *out)
{
    static const struct {
        const char *fill, *over;
        int turn, size; /* degrees; of a tile */
    } parts[] = {
        {"f1", "<circle class=\"kf\" cx=\"2.5\" cy=\"2.5\" r=\"1\"/>", 0, 5}, /* input */
        {"f0", "", 0, 6},                                                     /* forward */
        {"f2", "<path class=\"k\" d=\"M0 2.5h5\"/>", 0, 5},                   /* backward */
        {"f4", "<path class=\"k wide\" d=\"M3 0v6\"/>", 45, 6},               /* waiting */
        {"f3", "<path class=\"k\" d=\"M2 0v4\"/>", 0, 4},                     /* update */
        {"rest", "<path class=\"k\" d=\"M2 0v4\"/>", -45, 4},                 /* rest */
    };
    fputs("<defs>", out);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        fprintf(out,
                "<pattern id=\"part%zu\" width=\"%d\" height=\"%d\" "
                "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(%d)\">"
                "<rect class=\"%s\" width=\"%d\" height=\"%d\"/>%s</pattern>",
                i, parts[i].size, parts[i].size, parts[i].turn, parts[i].fill, parts[i].size,
                parts[i].size, parts[i].over);
    fputs("</defs>\n", out);
}

/* ---- text ---- */

void hpct_report_label(FILE *out, double x, double y, const char *anchor, const char *class,
                       const char *text, int room)
{
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\"", class, x, y);
    if (strcmp(anchor, "start") != 0)
        fprintf(out, " text-anchor=\"%s\"", anchor);
    fputc('>', out);
    if (room > 0 && hpct_report_width(text) > room) {
        size_t bytes = 0;
        for (int i = 0; i < room - 1 && text[bytes] != '\0'; i++) {
            bytes++;
            while ((text[bytes] & 0xc0) == 0x80)
                bytes++;
        }
        char *begin = strndup(text, bytes);
        hpct_report_escape(out, begin != NULL ? begin : "");
        fputs("…", out);
        free(begin);
        fputs("<title>", out);
        hpct_report_escape(out, text);
        fputs("</title>", out);
    } else {
        hpct_report_escape(out, text);
    }
    fputs("</text>\n", out);
}
