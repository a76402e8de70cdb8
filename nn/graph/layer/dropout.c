/* Dropout (Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov, 2014), inverted: in training a
 * fraction of the elements becomes zero and the others are scaled up, so that inference is the
 * identity. */
#include "nn/graph/graph.h"

static void add_dropout(hpct_model *model, double rate, bool per_sample)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Dropout", "dropout", &input))
        return;
    if (!(rate >= 0 && rate <= 1)) {
        hpct_layer_fail(model, "the rate must lie between 0 and 1, but it is %g", rate);
        return;
    }
    hpct_layer_config_of(model)->dropout.rate = rate;
    hpct_layer_config_of(model)->dropout.per_sample = per_sample;
    if (rate == 0) {
        hpct_layer_add_view(model, &input);
        return;
    }
    int count = (int) hpct_shape_count(&input);
    hpct_op_spec spec = {.kind = HPCT_OP_DROPOUT,
                         .rate = rate,
                         .per_sample = per_sample,
                         .dense = {.rows = 1, .in = count, .out = count}};
    hpct_layer_add_node(model, &spec, &input);
}

void hpct_model_add_dropout(hpct_model *model, double rate)
{
    add_dropout(model, rate, false);
}

/* Stochastic depth (Huang, Sun, Liu, Sedra, Weinberger, 2016), before an Add with a shortcut. */
void hpct_model_add_sample_dropout(hpct_model *model, double rate)
{
    add_dropout(model, rate, true);
}
