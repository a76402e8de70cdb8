/* What is left of an operation that another one does as well. */
#include "nn/merged.h"

#include "base/status.h"

#include <stdlib.h>

static hpct_status nothing(hpct_op *op, const hpct_op_call *call)
{
    (void) op;
    (void) call;
    return HPCT_OK;
}

static void destroy(hpct_op *op)
{
    free(op);
}

hpct_status hpct_make_merged(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {
        .forward = nothing, .backward = nothing, .destroy = destroy};
    hpct_op *op = *out = calloc(1, sizeof *op);
    if (op == NULL)
        return hpct_fail_memory(sizeof *op);
    op->class = &class;
    op->spec = *spec;
    op->build = *build;
    return HPCT_OK;
}
