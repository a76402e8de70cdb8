/* The table of `hpc-train bench --profile`. */
#include "agent/cost/profile.h"

#include <string.h>

#define NAME_WIDTH 28

static void print_part(FILE *stream, double seconds, double flops)
{
    if (seconds <= 0)
        fprintf(stream, " %10s %8s", "", "");
    else if (flops <= 0)
        fprintf(stream, " %10.3f %8s", 1e3 * seconds, "");
    else
        fprintf(stream, " %10.3f %8.1f", 1e3 * seconds, 1e-9 * flops / seconds);
}

static void print_row(FILE *stream, const hpct_run_profile_row *row, double step_seconds)
{
    char name[NAME_WIDTH + 1];
    snprintf(name, sizeof name, row->type[0] != '\0' ? "%s (%s)" : "%s%s", row->name, row->type);
    fprintf(stream, "%-*s", NAME_WIDTH, name);
    print_part(stream, row->forward_seconds, row->forward_flops);
    print_part(stream, row->backward_seconds, row->backward_flops);
    fprintf(stream, " %6.1f%%%s%s\n",
            100 * (row->forward_seconds + row->backward_seconds) / step_seconds,
            row->kernels[0] != '\0' ? "  " : "", row->kernels);
}

void hpct_cost_profile_print(FILE *stream, const hpct_run_profile_row *rows, int num_rows,
                             double step_seconds, const hpct_backend_rates *rates)
{
    hpct_run_profile_row sum = {.name = "step", .type = ""}, rest = {.name = "rest", .type = ""};
    double flops = 0;
    fprintf(stream, "%-*s %10s %8s %10s %8s %7s\n", NAME_WIDTH, "layer", "forward ms", "GFLOP/s",
            "backw. ms", "GFLOP/s", "share");
    for (int i = 0; i < num_rows; i++) {
        print_row(stream, &rows[i], step_seconds);
        sum.forward_seconds += rows[i].forward_seconds;
        sum.backward_seconds += rows[i].backward_seconds;
        sum.bytes += rows[i].bytes;
        flops += rows[i].forward_flops + rows[i].backward_flops;
    }
    rest.backward_seconds = step_seconds - sum.forward_seconds - sum.backward_seconds;
    sum.backward_seconds += rest.backward_seconds;
    print_row(stream, &rest, step_seconds);
    print_row(stream, &sum, step_seconds);
    double by_flops = flops / rates->flops, by_bytes = sum.bytes / rates->bytes;
    double floor = by_flops > by_bytes ? by_flops : by_bytes;
    fprintf(stream,
            "step  %9.3f ms: %.4f GFLOP (%.1f GFLOP/s), %.1f MB\n"
            "floor %9.3f ms: the larger of %.3f ms at %.1f GFLOP/s (matrix product) and %.3f ms at "
            "%.1f GB/s (copying)\n"
            "ratio %9.2f\n",
            1e3 * step_seconds, 1e-9 * flops, 1e-9 * flops / step_seconds, 1e-6 * sum.bytes,
            1e3 * floor, 1e3 * by_flops, 1e-9 * rates->flops, 1e3 * by_bytes, 1e-9 * rates->bytes,
            step_seconds / floor);
}
