/* tests/bench/step.c - what one training step costs: time of each layer, GFLOP/s, and the step over
 * its floor, the step's FLOPs at the rate of a 2048^3 matrix product measured in the same run.
 *
 *   step [--model NAME] [--batch N] [--steps N] [--threads N] [--momentum M] [--no-fuse]
 *
 * Knows nn's insides (nn/run.h), so that it times the very operations that the step runs. */
#include "nn/cpu/shim.h"
#include "nn/run.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GEMM_SIZE = 2048, GEMM_RUNS = 3, MAX_STEPS = 2000 };

static struct settings {
    const char *model;
    int batch, steps, threads;
    double momentum;
    bool fuse;
} settings = {.model = "mnist-cnn", .batch = 64, .steps = 101, .fuse = true};

typedef struct times {
    double seconds[MAX_STEPS];
    int count;
} times;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void add(times *t, double started)
{
    if (t->count < MAX_STEPS)
        t->seconds[t->count++] = now() - started;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static double median(times *t)
{
    qsort(t->seconds, (size_t) t->count, sizeof *t->seconds, compare);
    return t->count > 0 ? t->seconds[t->count / 2] : 0;
}

static void check(hpct_status status)
{
    if (status == HPCT_OK)
        return;
    fprintf(stderr, "step: %s\n", hpct_last_error());
    exit((int) status);
}

/* Multiplications and additions of one sample forward; as many again for each gradient. */
static double forward_flops(const hpct_op_spec *spec)
{
    const hpct_window *w = &spec->window;
    if (spec->kind == HPCT_OP_CONV2D)
        return 2.0 * w->out_h * w->out_w * w->out_c * w->kernel_h * w->kernel_w * w->in_c;
    if (spec->kind == HPCT_OP_DENSE)
        return 2.0 * spec->dense.rows * spec->dense.in * spec->dense.out;
    return 0;
}

static double backward_flops(const hpct_run_node *node)
{
    double flops = forward_flops(&node->op->spec);
    return !node->backward ? 0 : node->op->build.needs_diff_src ? 2 * flops : flops;
}

/* One product of each round, between the steps: both see the same machine. */
static void time_gemm(times *t)
{
    static float *a, *b, *c;
    size_t size = (size_t) GEMM_SIZE * GEMM_SIZE * sizeof(float);
    if (a == NULL) {
        a = hpct_host_allocate(size);
        b = hpct_host_allocate(size);
        c = hpct_host_allocate(size);
        if (a == NULL || b == NULL || c == NULL)
            exit(HPCT_ERR_INTERNAL);
        for (size_t i = 0; i < (size_t) GEMM_SIZE * GEMM_SIZE; i++)
            a[i] = b[i] = (float) (i % 17) * 0.01f;
    }
    hpct_gemm gemm = {.trans_a = 'N',
                      .trans_b = 'N',
                      .m = GEMM_SIZE,
                      .n = GEMM_SIZE,
                      .k = GEMM_SIZE,
                      .alpha = 1,
                      .a = a,
                      .b = b,
                      .c = c,
                      .lda = GEMM_SIZE,
                      .ldb = GEMM_SIZE,
                      .ldc = GEMM_SIZE};
    double started = now();
    check(hpct_shim_gemm(&gemm));
    add(t, started);
}

static void fill(hpct_model *model)
{
    hpct_shape input = hpct_model_input_shape(model);
    size_t count = (size_t) settings.batch * hpct_shape_count(&input);
    int classes = hpct_model_output_shape(model).size[0];
    for (size_t i = 0; i < count; i++)
        hpct_model_input(model)[i] = (float) (i * 7919 % 255) / 255.0f;
    for (int i = 0; i < settings.batch; i++)
        hpct_model_labels(model)[i] = i % classes;
}

static void whole_step(hpct_model *model)
{
    hpct_batch_sums sums;
    check(hpct_model_forward(model, settings.batch, true));
    check(hpct_model_loss(model, settings.batch, 1.0f / (float) settings.batch, &sums));
    check(hpct_model_backward(model, settings.batch));
    check(hpct_model_update(model));
}

/* The same once more, node by node. */
static void timed_step(hpct_model *model, times *forward, times *backward, times *loss,
                       times *update)
{
    hpct_run *run = model->run;
    hpct_batch_sums sums;
    check(hpct_model_forward(model, settings.batch, true)); /* sets the stage */
    for (int i = 0; i < 2 * run->num_nodes; i++) {
        bool back = i >= run->num_nodes;
        int k = back ? 2 * run->num_nodes - 1 - i : i;
        hpct_run_node *node = &run->nodes[k];
        hpct_op_call call = {
            .n = settings.batch,
            .src = node->src,
            .dst = node->dst,
            .diff_dst = node->diff_dst,
            .diff_src = node->diff_src,
            .add = node->add,
            .param = node->param,
            .grad = node->grad,
            .workspace = node->workspace,
            .scratch = run->scratch,
            .learning_rate = (float) model->optimizer.learning_rate,
            .training = true,
        };
        if (i == run->num_nodes) {
            double started = now();
            check(hpct_model_loss(model, settings.batch, 1.0f / (float) settings.batch, &sums));
            add(loss, started);
        }
        if (back && !node->backward)
            continue;
        double started = now();
        check(back ? node->op->class->backward(node->op, &call)
                   : node->op->class->forward(node->op, &call));
        add(back ? &backward[k] : &forward[k], started);
    }
    double started = now();
    check(hpct_model_update(model));
    add(update, started);
}

static void print_line(const char *what, const char *part, double seconds, double flops)
{
    printf("%-16s %-9s %8.3f ms", what, part, seconds * 1e3);
    if (flops > 0)
        printf(" %8.1f GFLOP/s", flops / seconds * 1e-9);
    printf("\n");
}

static void parse(int argc, char **argv)
{
    static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                            {"batch", required_argument, NULL, 'b'},
                                            {"steps", required_argument, NULL, 's'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"momentum", required_argument, NULL, 'M'},
                                            {"no-fuse", no_argument, NULL, 'F'},
                                            {0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'm':
            settings.model = optarg;
            break;
        case 'b':
            settings.batch = atoi(optarg);
            break;
        case 's':
            settings.steps = atoi(optarg);
            break;
        case 't':
            settings.threads = atoi(optarg);
            break;
        case 'M':
            settings.momentum = atof(optarg);
            break;
        case 'F':
            settings.fuse = false;
            break;
        default:
            exit(HPCT_ERR_USAGE);
        }
    }
    if (settings.batch < 1 || settings.steps < 1 || settings.steps > MAX_STEPS)
        exit(HPCT_ERR_USAGE);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    if (settings.threads > 0)
        hpct_cpu_set_threads(settings.threads);
    hpct_model *model;
    check(hpct_model_builtin(&model, settings.model));
    bool logits = strcmp(settings.model, "mnist-cnn") == 0;
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 1e-3, .momentum = settings.momentum};
    check(hpct_model_compile(model,
                             logits ? HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS
                                    : HPCT_SPARSE_CATEGORICAL_CROSSENTROPY,
                             &sgd));
    check(hpct_model_initialize(model, 1));
    hpct_build_options build = {.backend = "cpu",
                                .batch_sizes = &settings.batch,
                                .num_batch_sizes = 1,
                                .fuse_update = settings.fuse};
    check(hpct_model_build(model, &build));
    fill(model);

    hpct_run *run = model->run;
    times *forward = calloc((size_t) run->num_nodes, sizeof *forward),
          *backward = calloc((size_t) run->num_nodes, sizeof *backward),
          *rest = calloc(4, sizeof *rest);
    times *loss = &rest[0], *update = &rest[1], *step = &rest[2], *gemm = &rest[3];
    for (int i = 0; i < 5; i++)
        whole_step(model);
    time_gemm(gemm);
    gemm->count = 0;
    for (int i = 0; i < settings.steps; i++) {
        if (i % (settings.steps / GEMM_RUNS + 1) == 0) {
            time_gemm(gemm);
            whole_step(model);
        }
        double started = now();
        whole_step(model);
        add(step, started);
    }
    time_gemm(gemm);
    for (int i = 0; i < settings.steps; i++)
        timed_step(model, forward, backward, loss, update);

    double flops = 0;
    for (int i = 0; i < run->num_nodes; i++) {
        const hpct_run_node *node = &run->nodes[i];
        flops += forward_flops(&node->op->spec) + backward_flops(node);
    }
    flops *= settings.batch;
    double rate = 2.0 * GEMM_SIZE * GEMM_SIZE * GEMM_SIZE / median(gemm), floor = flops / rate;
    printf("%s, batch %d, %d threads, %s\n", settings.model, settings.batch, hpct_cpu_threads(),
           hpct_shim_version());
    for (int i = 0; i < run->num_nodes; i++) {
        const char *name = model->layers[model->nodes[i].layer].name;
        print_line(name, "forward", median(&forward[i]),
                   forward_flops(&run->nodes[i].op->spec) * settings.batch);
        if (run->nodes[i].backward)
            print_line(name, "backward", median(&backward[i]),
                       backward_flops(&run->nodes[i]) * settings.batch);
    }
    print_line("loss", "", median(loss), 0);
    print_line("update", "", median(update), 0);
    printf("step    %8.3f ms (%.4f GFLOP, %.1f GFLOP/s)\n", median(step) * 1e3, flops * 1e-9,
           flops / median(step) * 1e-9);
    printf("floor   %8.3f ms (dnnl_sgemm %d^3: %.1f GFLOP/s)\n", floor * 1e3, GEMM_SIZE,
           rate * 1e-9);
    printf("ratio   %8.2f\n", median(step) / floor);
    free(forward);
    free(backward);
    free(rest);
    hpct_model_free(model);
    return 0;
}
