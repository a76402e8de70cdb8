/* Activations of single elements (nn/graph/elements.h). */
#include "nn/file/onnx/rows.h"

#include <math.h>

/* One operation without attributes. */
void hpct_onnx_add_element(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    hpct_onnx_add(b, type, e.from, NULL, e.to);
}

void hpct_onnx_add_relu6(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    const char *zero = hpct_onnx_scalar(b, 0), *six = hpct_onnx_scalar(b, 6);
    hpct_onnx_begin(b, type, (const char *const[]){e.from, zero, six, NULL}, e.to);
    hpct_onnx_end(b);
}

/* x (1 + erf(x / sqrt 2)) / 2; opset 20 would have a Gelu. */
void hpct_onnx_add_gelu(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    const char *scaled = hpct_onnx_name(b, e.to, "scaled"), *erf = hpct_onnx_name(b, e.to, "erf"),
               *sum = hpct_onnx_name(b, e.to, "sum"), *half = hpct_onnx_name(b, e.to, "half");
    hpct_onnx_add(b, "Mul", e.from, hpct_onnx_scalar(b, (float) M_SQRT1_2), scaled);
    hpct_onnx_add(b, type, scaled, NULL, erf);
    hpct_onnx_add(b, "Add", erf, hpct_onnx_scalar(b, 1), sum);
    hpct_onnx_add(b, "Mul", e.from, hpct_onnx_scalar(b, 0.5f), half);
    hpct_onnx_add(b, "Mul", half, sum, e.to);
}

void hpct_onnx_add_silu(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    const char *sigmoid = hpct_onnx_name(b, e.to, "sigmoid");
    hpct_onnx_add(b, "Sigmoid", e.from, NULL, sigmoid);
    hpct_onnx_add(b, type, e.from, sigmoid, e.to);
}

void hpct_onnx_add_hard_sigmoid(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    hpct_onnx_begin(b, type, (const char *const[]){e.from, NULL}, e.to);
    hpct_onnx_float(b, "alpha", 1.0F / 6); /* ONNX' default is 0.2 */
    hpct_onnx_float(b, "beta", 0.5F);
    hpct_onnx_end(b);
}

void hpct_onnx_add_elu(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    hpct_onnx_begin(b, type, (const char *const[]){e.from, NULL}, e.to);
    hpct_onnx_float(b, "alpha", node->spec.slope);
    hpct_onnx_end(b);
}

/* min(from, most); `from` itself if there is no bound. */
static const char *add_bound(hpct_onnx *b, const char *from, float most, const char *to)
{
    if (!isfinite(most))
        return from;
    hpct_onnx_add(b, "Min", from, hpct_onnx_scalar(b, most), to);
    return to;
}

/* min(x, most) above the threshold, else slope (x - threshold). */
static void add_threshold(hpct_onnx *b, const hpct_op_spec *spec, const hpct_onnx_ends *e)
{
    const char *above = hpct_onnx_name(b, e->to, "above"),
               *under = hpct_onnx_name(b, e->to, "under"),
               *sloped = hpct_onnx_name(b, e->to, "sloped"),
               *threshold = hpct_onnx_scalar(b, spec->threshold),
               *top = add_bound(b, e->from, spec->most, hpct_onnx_name(b, e->to, "bounded"));
    hpct_onnx_add(b, "Greater", e->from, threshold, above);
    hpct_onnx_add(b, "Sub", e->from, threshold, under);
    hpct_onnx_add(b, "Mul", under, hpct_onnx_scalar(b, spec->slope), sloped);
    hpct_onnx_begin(b, "Where", (const char *const[]){above, top, sloped, NULL}, e->to);
    hpct_onnx_end(b);
}

/* A bound is never below what is left of 0: a layer with one has no negative slope. */
void hpct_onnx_add_leaky_relu(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    const hpct_op_spec *spec = &node->spec;
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    const char *leaky = isfinite(spec->most) ? hpct_onnx_name(b, e.to, "leaky") : e.to;
    if (spec->threshold != 0) {
        add_threshold(b, spec, &e);
        return;
    }
    hpct_onnx_begin(b, type, (const char *const[]){e.from, NULL}, leaky);
    hpct_onnx_float(b, "alpha", spec->slope);
    hpct_onnx_end(b);
    add_bound(b, leaky, spec->most, e.to);
}
