/* Activations that are several nodes of ONNX, or one with attributes. */
#include "nn/file/onnx/rows.h"

#include <math.h>

void hpct_onnx_add_silu(hpct_onnx *b, const hpct_node *node, const char *type)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    const char *sigmoid = hpct_onnx_name(b, e.to, "sigmoid");
    hpct_onnx_add(b, "Sigmoid", e.from, NULL, sigmoid);
    hpct_onnx_add(b, type, e.from, sigmoid, e.to);
}

void hpct_onnx_add_hard_sigmoid(hpct_onnx *b, const hpct_node *node, const char *type)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    hpct_onnx_begin(b, type, (const char *const[]){e.from, NULL}, e.to);
    hpct_onnx_float(b, "alpha", 1.0F / 6); /* ONNX' default is 0.2 */
    hpct_onnx_float(b, "beta", 0.5F);
    hpct_onnx_end(b);
}

void hpct_onnx_add_elu(hpct_onnx *b, const hpct_node *node, const char *type)
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
void hpct_onnx_add_leaky_relu(hpct_onnx *b, const hpct_node *node, const char *type)
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
