#include "nn/run/slow_ways.h"

#include "nn/graph/graph.h"
#include "nn/plan/run.h"

void hpct_model_print_slow_ways(const hpct_model *model, FILE *stream)
{
    for (int i = 0; model->run != NULL && i < model->run->num_nodes; i++) {
        const hpct_op *op = model->run->nodes[i].op;
        if (op != NULL && op->slow != NULL)
            fprintf(stream, "hpc-train: slow: layer %s: %s\n",
                    model->layers[model->nodes[i].layer].name, op->slow);
    }
}
