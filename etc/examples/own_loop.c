/* A training loop of one's own, over data of one's own: the parts of a step are separate calls.
 * Learns z = sin(3 x) cos(2 y) from random points. The same program runs alone and over all tasks
 * of a Slurm step, which share each batch:
 *
 *   cc own_loop.c -lhpctrain -lm -o own_loop
 *   ./own_loop
 *   srun -n4 --hpc-train ./own_loop
 */
#include <hpctrain/hpctrain.h>
#include <math.h>
#include <stdio.h>

#define BATCH 120 /* points in a step, over all ranks */
#define STEPS 400

/* The n-th of a sequence of points that fill the square from -1 to 1 evenly. */
static void point(long n, float *x, float *y)
{
    *x = (float) (2 * fmod(0.7548776662 * (double) n, 1) - 1);
    *y = (float) (2 * fmod(0.5698402910 * (double) n, 1) - 1);
}

static hpct_model *make_model(void)
{
    hpct_model *model = hpct_model_new("waves", HPCT_SHAPE(2));
    hpct_model_add_dense(model, &(hpct_dense){.units = 32, .activation = HPCT_TANH});
    hpct_model_add_dense(model, &(hpct_dense){.units = 32, .activation = HPCT_TANH});
    hpct_model_add_dense(model, &(hpct_dense){.units = 1});
    return model;
}

/* Points first … first + count - 1 and what belongs to them. */
static void fill(hpct_trainer *trainer, long first, int count)
{
    float *input = hpct_trainer_input(trainer), *target = hpct_trainer_targets(trainer);
    for (int i = 0; i < count; i++) {
        float x, y;
        point(first + i, &x, &y);
        input[2 * i] = x;
        input[2 * i + 1] = y;
        target[i] = sinf(3 * x) * cosf(2 * y);
    }
}

static hpct_status loop(hpct_context *context, hpct_trainer *trainer, int share)
{
    int rank = hpct_context_rank(context), size = hpct_context_size(context);
    hpct_status status = HPCT_OK;
    for (int step = 0; step < STEPS && status == HPCT_OK; step++) {
        hpct_metrics metrics;
        fill(trainer, (long) (step * size + rank) * share, share);
        status = hpct_trainer_forward(trainer, share, true);
        if (status == HPCT_OK)
            status = hpct_trainer_backward(trainer, share * size);
        if (status == HPCT_OK)
            status = hpct_trainer_reduce(trainer, &metrics);
        if (status == HPCT_OK)
            status = hpct_trainer_apply(trainer);
        if (status == HPCT_OK && rank == 0 && (step + 1) % 100 == 0)
            printf("step %d: mean squared error %.4f\n", step + 1, metrics.loss);
    }
    return status;
}

int main(int argc, char **argv)
{
    (void) argc;
    static const hpct_compile_options compile = {
        .loss = HPCT_MEAN_SQUARED_ERROR,
        .optimizer = {.kind = HPCT_ADAM,
                      .learning_rate = 0.01,
                      .schedule = {.kind = HPCT_COSINE_DECAY, .decay_steps = STEPS}},
    };
    hpct_context *context = NULL;
    hpct_trainer *trainer = NULL;
    hpct_model *model = make_model();
    int share = 0;
    hpct_status status = hpct_context_open(&context);
    if (status == HPCT_OK)
        status = hpct_model_compile_with(model, &compile);
    if (status == HPCT_OK)
        status = hpct_model_initialize(model, 1);
    if (status == HPCT_OK) {
        share = BATCH / hpct_context_size(context);
        hpct_trainer_options options = {.batch_sizes = {share}, .dense_targets = true};
        status = hpct_trainer_open(&trainer, context, model, &options);
    }
    if (status == HPCT_OK)
        status = loop(context, trainer, share);
    hpct_trainer_close(trainer);
    status = hpct_context_finish(context, argv[0], status);
    hpct_model_free(model);
    return (int) status;
}
