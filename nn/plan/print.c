/* hpct_model_print_plan: nodes, fusions and offsets of a built model. */
#include "nn/plan/fusions.h"

#include "base/status.h"

#include <stdio.h>

static const char *const fusion_names[] = {
    [HPCT_BACKEND_FUSION_POOL] = "does the pooling of",
    [HPCT_BACKEND_FUSION_BIAS] = "leaves its bias to",
    [HPCT_BACKEND_FUSION_ADD_NORM] = "is applied by",
    [HPCT_BACKEND_FUSION_SUM] = "does the sum of",
};

static const char *const mode_names[] = {
    [HPCT_RUN_DIFF_NONE] = "none",        [HPCT_RUN_DIFF_WRITE] = "write",
    [HPCT_RUN_DIFF_PASS] = "pass",        [HPCT_RUN_DIFF_ADD] = "add",
    [HPCT_RUN_DIFF_ADD_AFTER] = "add-to",
};

static const char *layer_of(const hpct_model *model, int node)
{
    return model->layers[model->nodes[node].layer].name;
}

/* Offset in the block in bytes, or "-" if the tensor is not stored there. */
static void offset_text(char text[24], size_t offset, bool lies)
{
    if (lies)
        snprintf(text, 24, "%zu", offset);
    else
        snprintf(text, 24, "-");
}

static void print_node(const hpct_model *model, const hpct_run *run, int i, FILE *stream)
{
    const hpct_graph_node *node = &model->nodes[i];
    const hpct_run_node *built = &run->nodes[i];
    int root = hpct_run_root(model, run, node->output);
    const hpct_op_build *build = &built->op->build;
    bool lies = root != hpct_run_root(model, run, 0);
    bool stored = lies && !build->fused_downstream && !build->adds;
    char value[24], diff[24], modes[96];
    size_t used = 0;
    offset_text(value, run->plan.value_offsets[node->output], stored);
    offset_text(diff, run->plan.diff_offsets[node->output], lies && built->backward);
    for (int k = 0; k < node->num_inputs && used < sizeof modes; k++)
        used += (size_t) snprintf(modes + used, sizeof modes - used, "%s%s", k > 0 ? "," : "",
                                  mode_names[built->mode[k]]);
    fprintf(stream, "%5d  %-24.24s %-20s %-8s %12s %12s  %s\n", i, layer_of(model, i),
            hpct_op_kind_name(node->spec.kind),
            built->fused_away ? "merged" : (built->fused_forward ? "fused" : "runs"), value, diff,
            modes);
}

void hpct_run_print_plan(const hpct_model *model, const hpct_run *run, FILE *stream)
{
    fprintf(stream, "Plan of '%s' on %s, batches of %d: %zu bytes of activations and gradients\n",
            model->name, run->backend->name, run->batches.largest, run->plan.block_bytes);
    fprintf(stream, "%5s  %-24s %-20s %-8s %12s %12s  %s\n", "node", "layer", "operation",
            "forward", "value at", "gradient at", "gradients of inputs");
    for (int i = 0; i < run->num_nodes; i++)
        print_node(model, run, i, stream);
    for (int i = 0; i < run->plan.num_links; i++) {
        const hpct_run_link *link = &run->plan.links[i];
        fprintf(stream, "fusion: node %d (%s) %s node %d (%s)\n", link->from,
                layer_of(model, link->from), fusion_names[link->fusion], link->to,
                layer_of(model, link->to));
    }
}

hpct_status hpct_model_print_plan(const hpct_model *model, int batch_size, FILE *stream)
{
    hpct_run *run = NULL;
    hpct_run_memory_plan plan = {0};
    const hpct_run_build_options options = {.batch_sizes = &batch_size, .num_batch_sizes = 1};
    hpct_status status = hpct_run_prepare(&run, model, &options);
    if (status == HPCT_OK)
        status = hpct_run_place(model, run, &plan);
    if (status == HPCT_OK)
        hpct_run_print_plan(model, run, stream);
    hpct_run_free(run);
    if (status == HPCT_OK && ferror(stream))
        status = hpct_fail(HPCT_ERR_IO, "writing the plan failed");
    return status;
}
