/* tests/results/called.c - a program with callbacks: rank 0 prints the calls with their epoch, step
 * and learning rate. DATA, then what happens: "first-rank": rank 0 alone has them; "rates" sets the
 * learning rate at each epoch's begin; "stop-epoch" and "stop-batch" ask for the end, on the last
 * rank alone; "fail" fails there. */
#include <hpctrain/hpctrain.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *what;
static bool first, last;
static int epoch_calls;

static hpct_status note(const char *name, hpct_callback_state *s)
{
    if (first)
        printf("%s %d %lld %g %d%d\n", name, s->epoch, (long long) s->step, s->learning_rate,
               isfinite(s->train.loss), isfinite(s->validation.loss));
    return HPCT_OK;
}

static hpct_status epoch_begin(void *context, hpct_callback_state *s)
{
    if (context != &epoch_calls)
        return HPCT_ERR_INTERNAL;
    if (strcmp(what, "rates") == 0)
        s->learning_rate = first ? 0.5 / (s->epoch + 1) : 77; /* rank 0's is taken */
    return note("epoch_begin", s);
}

static hpct_status batch_begin(void *context, hpct_callback_state *s)
{
    (void) context;
    return note("batch_begin", s);
}

static hpct_status batch_end(void *context, hpct_callback_state *s)
{
    (void) context;
    s->stop = last && strcmp(what, "stop-batch") == 0 && s->epoch == 1 && s->step == 0;
    return note("batch_end", s);
}

static hpct_status epoch_end(void *context, hpct_callback_state *s)
{
    (void) context;
    s->stop = last && strcmp(what, "stop-epoch") == 0 && s->epoch == 1;
    note("epoch_end", s);
    return last && strcmp(what, "fail") == 0 ? HPCT_ERR_CONFIG : HPCT_OK;
}

static hpct_status train(hpct_context *context, hpct_model *model, const hpct_dataset *data)
{
    const hpct_callbacks callbacks = {&epoch_calls, epoch_begin, batch_begin, batch_end, epoch_end};
    hpct_fit_result result;
    hpct_fit_options options = {.epochs = 3,
                                .steps_per_epoch = 3,
                                .global_batch_size = 8,
                                .validation = data,
                                .callbacks =
                                    first || strcmp(what, "first-rank") != 0 ? &callbacks : NULL};
    hpct_status status = hpct_fit(context, model, data, &options, &result);
    if (first)
        printf("fit %d %lld %d %d\n", (int) status, (long long) result.steps, result.stopped_epoch,
               result.signal);
    return status;
}

int main(int argc, char **argv)
{
    hpct_context *context;
    hpct_dataset *data = NULL;
    hpct_model *model = hpct_model_new("small", HPCT_SHAPE(28, 28));
    what = argv[argc - 1];
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 10});
    hpct_status status = hpct_context_open(&context);
    if (status != HPCT_OK)
        return (int) status;
    first = hpct_context_rank(context) == 0;
    last = hpct_context_rank(context) == hpct_context_size(context) - 1;
    status = hpct_dataset_open(&data, argv[1], HPCT_TRAIN);
    if (status == HPCT_OK)
        status = hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                    &(hpct_optimizer){.learning_rate = 0.1});
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, 1);
    if (status == HPCT_OK)
        status = train(context, model, data);
    hpct_dataset_free(data);
    status = hpct_context_finish(context, "called", status);
    hpct_model_free(model);
    return (int) status;
}
