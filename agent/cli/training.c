/* Optimizer, schedule and loss: their options, and the compilation that they ask for. */
#include "agent/cli/cli.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_OPTIMIZER = 512,
    KEY_LEARNING_RATE,
    KEY_LR_SCALING,
    KEY_SCHEDULE,
    KEY_WARMUP_EPOCHS,
    KEY_MOMENTUM,
    KEY_RHO,
    KEY_CENTERED,
    KEY_EPSILON,
    KEY_NESTEROV,
    KEY_WEIGHT_DECAY,
    KEY_CLIP_VALUE,
    KEY_CLIP_NORM,
    KEY_GLOBAL_CLIP_NORM,
    KEY_GRADIENT_ACCUMULATION,
    KEY_LABEL_SMOOTHING,
    KEY_TOP_K,
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Optimizer and loss:", 3},
    {"optimizer", KEY_OPTIMIZER, "NAME", 0, "sgd, adam, adamw, lars, lamb or rmsprop (default sgd)",
     3},
    {"learning-rate", KEY_LEARNING_RATE, "X", 0,
     "default: sgd with mnist-cnn 0.2, with others 0.01; adam, adamw, lamb and rmsprop 0.001", 3},
    {"lr", 0, NULL, OPTION_ALIAS, NULL, 3},
    {"lr-scaling", KEY_LR_SCALING, "HOW", 0,
     "multiply the learning rate by the number of ranks (linear) or its root (sqrt); default none",
     3},
    {"schedule", KEY_SCHEDULE, "HOW", 0,
     "constant, step:E1,E2,...[:FACTOR], exponential:RATE[:EPOCHS], staircase:RATE[:EPOCHS], "
     "cosine[:ALPHA] or polynomial[:POWER[:END]] (default constant)",
     3},
    {"warmup-epochs", KEY_WARMUP_EPOCHS, "X", 0,
     "the learning rate rises from 0 during the first X epochs", 3},
    {"momentum", KEY_MOMENTUM, "X", 0, "of sgd and rmsprop (default 0) and lars (default 0.9)", 3},
    {"rho", KEY_RHO, "X", 0, "of rmsprop: how much of the squares stays (default 0.9)", 3},
    {"centered", KEY_CENTERED, NULL, 0, "rmsprop goes by the gradients' variance", 3},
    {"epsilon", KEY_EPSILON, "X", 0, "of adam, adamw, lamb and rmsprop (default 1e-7)", 3},
    {"nesterov", KEY_NESTEROV, NULL, 0, "sgd looks ahead", 3},
    {"weight-decay", KEY_WEIGHT_DECAY, "X", 0, "default: adamw 0.004, else 0", 3},
    {"clip-value", KEY_CLIP_VALUE, "X", 0, "limit of each number of the gradient", 3},
    {"clip-norm", KEY_CLIP_NORM, "X", 0, "limit of the norm of each parameter's gradient", 3},
    {"global-clip-norm", KEY_GLOBAL_CLIP_NORM, "X", 0, "limit of the norm of the whole gradient",
     3},
    {"gradient-accumulation", KEY_GRADIENT_ACCUMULATION, "N", 0,
     "steps whose mean gradient makes one update (default 1)", 3},
    {"label-smoothing", KEY_LABEL_SMOOTHING, "X", 0, "0 to 1, default 0", 3},
    {"top-k", KEY_TOP_K, "K", 0, "also count pictures whose class is among the K best", 3},
    {0},
};

/* ---- schedules ---- */

/* The next number of TEXT, which ends with one of `ends`; goes on behind it. */
static double next_number(const char *whole, const char **text, const char *ends, double least,
                          double most)
{
    char *end;
    bool plain = strspn(*text, "+-.0123456789eE") == strcspn(*text, ends); /* no blanks, no 0x10 */
    double value = strtod(*text, &end);
    if (!plain || end == *text || (*end != '\0' && strchr(ends, *end) == NULL) ||
        !(value >= least) || !(value <= most))
        hpct_cli_usage("--schedule: '%s': '%s' should begin with a number from %g to %g", whole,
                       *text, least, most);
    *text = *end == '\0' ? end : end + 1;
    return value;
}

static void parse_steps(hpct_cli_training *t, const char *whole, const char *text)
{
    hpct_schedule *s = &t->optimizer.schedule;
    bool more = true;
    while (more) {
        if (s->num_boundaries == HPCT_MAX_BOUNDARIES)
            hpct_cli_usage("--schedule: '%s': at most %d epochs", whole, HPCT_MAX_BOUNDARIES);
        const char *begin = text;
        double epoch = next_number(whole, &text, ",:", 0, 1e6);
        if (s->num_boundaries > 0 && epoch <= t->boundary_epochs[s->num_boundaries - 1])
            hpct_cli_usage("--schedule: '%s': the epochs must increase", whole);
        t->boundary_epochs[s->num_boundaries++] = epoch;
        more = begin[strcspn(begin, ",:")] == ',';
    }
    t->factor = *text != '\0' ? next_number(whole, &text, "", 0, 1) : 0.1;
}

static const struct schedule_name {
    const char *name;
    hpct_schedule_kind kind;
    bool staircase, needs_value;
} schedules[] = {
    {"constant", HPCT_CONSTANT, false, false},
    {"step", HPCT_PIECEWISE_CONSTANT, false, true},
    {"exponential", HPCT_EXPONENTIAL_DECAY, false, true},
    {"staircase", HPCT_EXPONENTIAL_DECAY, true, true},
    {"cosine", HPCT_COSINE_DECAY, false, false},
    {"polynomial", HPCT_POLYNOMIAL_DECAY, false, false},
};
#define NUM_SCHEDULES (sizeof schedules / sizeof schedules[0])

static const struct schedule_name *find_schedule(const char *whole, size_t length)
{
    const char *names[NUM_SCHEDULES + 1] = {NULL};
    char name[32];
    for (size_t i = 0; i < NUM_SCHEDULES; i++)
        names[i] = schedules[i].name;
    snprintf(name, sizeof name, "%.*s", (int) length, whole);
    return &schedules[hpct_cli_name("schedule", name, names)];
}

/* NAME[:NUMBER…]; epochs become steps when it is known how many an epoch has. */
static void parse_schedule(hpct_cli_training *t, const char *whole)
{
    size_t length = strcspn(whole, ":");
    const struct schedule_name *found = find_schedule(whole, length);
    const char *text = whole[length] == ':' ? whole + length + 1 : whole + length;
    if (found->needs_value && *text == '\0')
        hpct_cli_usage("--schedule: '%s' needs a number: %s:NUMBER", whole, found->name);
    hpct_schedule *s = &t->optimizer.schedule;
    *s = (hpct_schedule){.kind = found->kind, .staircase = found->staircase};
    t->decay_epochs = 1;
    if (s->kind == HPCT_PIECEWISE_CONSTANT)
        parse_steps(t, whole, text);
    if (s->kind == HPCT_EXPONENTIAL_DECAY) {
        s->decay_rate = next_number(whole, &text, ":", 1e-9, 1);
        t->decay_epochs = *text != '\0' ? next_number(whole, &text, "", 1e-6, 1e6) : 1;
    }
    if (s->kind == HPCT_COSINE_DECAY && *text != '\0')
        s->alpha = next_number(whole, &text, "", 0, 1);
    if (s->kind == HPCT_POLYNOMIAL_DECAY && *text != '\0') {
        s->power = next_number(whole, &text, ":", 1e-3, 100);
        if (*text != '\0') {
            s->end_learning_rate = next_number(whole, &text, "", 0, 1e6);
            s->to_zero = s->end_learning_rate == 0;
        }
    }
    if (s->kind == HPCT_CONSTANT && *text != '\0')
        hpct_cli_usage("--schedule: '%s': constant takes no number", whole);
}

/* ---- options ---- */

static hpct_cli_scaling parse_scaling(const char *value)
{
    static const char *const names[] = {"none", "linear", "sqrt", NULL};
    return (hpct_cli_scaling) hpct_cli_name("lr-scaling", value, names);
}

static double positive(const char *option, const char *value)
{
    return hpct_cli_number(option, value, 1e-30, 1e6);
}

static void check(const hpct_cli_training *t)
{
    const hpct_optimizer *o = &t->optimizer;
    if (o->schedule.kind == HPCT_PIECEWISE_CONSTANT && t->boundary_epochs[0] <= t->warmup_epochs)
        hpct_cli_usage("--schedule: epoch %g is not after the warm-up of %g epochs",
                       t->boundary_epochs[0], t->warmup_epochs);
    if ((o->clipvalue > 0) + (o->clipnorm > 0) + (o->global_clipnorm > 0) > 1)
        hpct_cli_usage("--clip-value, --clip-norm, --global-clip-norm: give one");
    if (o->epsilon > 0 && (o->kind == HPCT_SGD || o->kind == HPCT_LARS))
        hpct_cli_usage("--epsilon: %s has none", hpct_optimizer_name(o->kind));
    if (o->kind == HPCT_LARS && o->learning_rate == 0)
        hpct_cli_usage("--learning-rate is missing: lars has no default");
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    hpct_cli_training *t = state->input;
    hpct_optimizer *o = &t->optimizer;
    switch (key) {
    case KEY_OPTIMIZER:
        if (hpct_optimizer_find(&o->kind, value) != HPCT_OK)
            hpct_cli_usage("--optimizer: %s", hpct_last_error());
        return 0;
    case KEY_LEARNING_RATE:
        o->learning_rate = positive("learning-rate", value);
        return 0;
    case KEY_LR_SCALING:
        t->scaling = parse_scaling(value);
        t->has_scaling = true;
        return 0;
    case KEY_SCHEDULE:
        parse_schedule(t, value);
        return 0;
    case KEY_WARMUP_EPOCHS:
        t->warmup_epochs = hpct_cli_number("warmup-epochs", value, 0, 1e6);
        return 0;
    case KEY_MOMENTUM:
        o->momentum = hpct_cli_number("momentum", value, 0, 1);
        return 0;
    case KEY_RHO:
        o->rho = hpct_cli_number("rho", value, 1e-30, 1);
        return 0;
    case KEY_CENTERED:
        o->centered = true;
        return 0;
    case KEY_EPSILON:
        o->epsilon = positive("epsilon", value);
        return 0;
    case KEY_NESTEROV:
        o->nesterov = true;
        return 0;
    case KEY_WEIGHT_DECAY:
        o->weight_decay = hpct_cli_number("weight-decay", value, 0, 1e6);
        return 0;
    case KEY_CLIP_VALUE:
        o->clipvalue = positive("clip-value", value);
        return 0;
    case KEY_CLIP_NORM:
        o->clipnorm = positive("clip-norm", value);
        return 0;
    case KEY_GLOBAL_CLIP_NORM:
        o->global_clipnorm = positive("global-clip-norm", value);
        return 0;
    case KEY_GRADIENT_ACCUMULATION:
        o->gradient_accumulation_steps =
            (int) hpct_cli_integer("gradient-accumulation", value, 1, 1 << 20);
        return 0;
    case KEY_LABEL_SMOOTHING:
        t->label_smoothing = hpct_cli_number("label-smoothing", value, 0, 1);
        return 0;
    case KEY_TOP_K:
        t->top_k = (int) hpct_cli_integer("top-k", value, 1, INT_MAX);
        return 0;
    case ARGP_KEY_END:
        check(t);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp hpct_cli_training_argp = {.options = options, .parser = parse};

/* ---- compilation ---- */

/* Label smoothing needs the loss over rows; class labels do for it. */
static hpct_loss with_rows(hpct_loss loss)
{
    if (loss == HPCT_BINARY_CROSSENTROPY || loss == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS)
        return loss;
    return loss == HPCT_SPARSE_CATEGORICAL_CROSSENTROPY ? HPCT_CATEGORICAL_CROSSENTROPY
                                                        : HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS;
}

static void fill_in_steps(hpct_optimizer *o, const hpct_cli_training *t, double steps_per_epoch,
                          int epochs)
{
    hpct_schedule *s = &o->schedule;
    s->first_step = (int64_t) (t->initial_epoch * steps_per_epoch);
    s->warmup_steps = (int64_t) round(t->warmup_epochs * steps_per_epoch);
    if (s->kind == HPCT_PIECEWISE_CONSTANT) {
        s->values[0] = o->learning_rate;
        for (int i = 0; i < s->num_boundaries; i++) {
            /* the last step with the value before */
            s->boundaries[i] =
                (int64_t) round(t->boundary_epochs[i] * steps_per_epoch) - 1 - s->warmup_steps;
            s->values[i + 1] = s->values[i] * t->factor;
        }
    } else if (s->kind == HPCT_EXPONENTIAL_DECAY) {
        s->decay_steps = (int64_t) fmax(1, round(t->decay_epochs * steps_per_epoch));
    } else if (s->kind != HPCT_CONSTANT) { /* over the rest of the run */
        double steps = steps_per_epoch * epochs - (double) s->warmup_steps;
        s->decay_steps = (int64_t) fmax(1, steps);
    }
}

hpct_status hpct_cli_compile(hpct_model *model, const hpct_cli_model *defaults,
                             const hpct_cli_training *t, int ranks, double steps_per_epoch,
                             int epochs)
{
    hpct_compile_options compile = {
        .loss = t->label_smoothing > 0 ? with_rows(defaults->loss) : defaults->loss,
        .precision = hpct_model_precision(model),
        .label_smoothing = t->label_smoothing,
        .top_k = t->top_k,
        .optimizer = t->optimizer,
    };
    hpct_optimizer *o = &compile.optimizer;
    if (o->learning_rate == 0)
        o->learning_rate = o->kind == HPCT_SGD ? defaults->learning_rate : 0.001;
    if (t->scaling == HPCT_CLI_SCALING_LINEAR)
        o->learning_rate *= ranks;
    if (t->scaling == HPCT_CLI_SCALING_SQRT)
        o->learning_rate *= sqrt(ranks);
    fill_in_steps(o, t, steps_per_epoch, epochs);
    return hpct_model_compile_with(model, &compile);
}
