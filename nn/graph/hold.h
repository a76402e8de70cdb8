/* nn/graph/hold.h - lifetime of a model. */
#ifndef HPCT_NN_GRAPH_HOLD_H
#define HPCT_NN_GRAPH_HOLD_H

#include <hpctrain/model.h>

/* Reference count: hpct_model_free defers the free until the last holder releases. */
void hpct_model_hold(hpct_model *model);
void hpct_model_let_go(hpct_model *model);

#endif
