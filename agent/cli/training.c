/* Optimizer, schedule and loss: options, and compilation of the model with them. */
#include "agent/cli/cli.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- schedules ---- */

/* Parses the next number of TEXT, which must end with one of `ends`, and advances TEXT. */
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

/* NAME[:NUMBER…]; epochs are converted to steps later. */
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

static void set_schedule(const char *option, const char *value, void *at)
{
    (void) option;
    parse_schedule(at, value);
}

/* ---- options ---- */

#define FILLS hpct_cli_training
#define LEAST 1e-30 /* positive */
#define MOST 1e6

static void set_optimizer(const char *option, const char *value, void *at)
{
    hpct_optimizer *o = at;
    if (hpct_optimizer_find(&o->kind, value) != HPCT_OK)
        hpct_cli_usage("--%s: %s", option, hpct_last_error());
}

static void set_scaling(const char *option, const char *value, void *at)
{
    static const char *const names[] = {"none", "linear", "sqrt", NULL};
    hpct_cli_training *t = at;
    t->scaling = (hpct_cli_scaling) hpct_cli_name(option, value, names);
    t->has_scaling = true;
}

/* PATTERN=FACTOR; a pattern may contain '='. */
static void add_rate(const char *option, const char *value, void *at)
{
    hpct_cli_training *t = at;
    const char *equals = strrchr(value, '=');
    int i = 0;
    while (t->rates[i].patterns != NULL)
        i++;
    if (equals == NULL || equals == value)
        hpct_cli_usage("--%s: '%s' should be PATTERN=FACTOR, such as conv*=0.1", option, value);
    if (i == HPCT_CLI_PATTERNS - 1)
        hpct_cli_usage("--%s: at most %d times; one value may have several patterns: a*,b*=0.1",
                       option, HPCT_CLI_PATTERNS - 1);
    if (equals[1] == '0' && equals[1 + strspn(equals + 1, "0.")] == '\0')
        hpct_cli_usage("--%s: '%s': to keep the weights of layers, give --freeze '%.*s'", option,
                       value, (int) (equals - value), value);
    t->rates[i].factor = hpct_cli_number(option, equals + 1, LEAST, MOST);
    t->rates[i].patterns = strndup(value, (size_t) (equals - value));
    if (t->rates[i].patterns == NULL)
        hpct_cli_usage("--%s: out of memory", option);
}

static void apply_rates(hpct_model *model, const hpct_cli_training *t)
{
    for (int i = 0; t->rates[i].patterns != NULL; i++) {
        hpct_status status =
            hpct_model_set_rate_factor(model, t->rates[i].patterns, t->rates[i].factor);
        if (status != HPCT_OK)
            hpct_cli_usage("--learning-rate-of: %s", hpct_last_error());
    }
}

/* Names of --loss, the loss of probabilities, and that of logits. */
const char *const hpct_cli_losses[] = {"auto",
                                       "categorical_crossentropy",
                                       "sparse_categorical_crossentropy",
                                       "binary_crossentropy",
                                       "categorical_focal_crossentropy",
                                       "binary_focal_crossentropy",
                                       "mean_squared_error",
                                       "huber",
                                       "kl_divergence",
                                       NULL};
static const hpct_loss of_outputs[][2] = {
    {0, 0},
    {HPCT_CATEGORICAL_CROSSENTROPY, HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS},
    {HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS},
    {HPCT_BINARY_CROSSENTROPY, HPCT_BINARY_CROSSENTROPY_FROM_LOGITS},
    {HPCT_CATEGORICAL_FOCAL_CROSSENTROPY, HPCT_CATEGORICAL_FOCAL_CROSSENTROPY_FROM_LOGITS},
    {HPCT_BINARY_FOCAL_CROSSENTROPY, HPCT_BINARY_FOCAL_CROSSENTROPY_FROM_LOGITS},
    {HPCT_MEAN_SQUARED_ERROR, HPCT_MEAN_SQUARED_ERROR},
    {HPCT_HUBER, HPCT_HUBER},
    {HPCT_KL_DIVERGENCE, HPCT_KL_DIVERGENCE},
};

const hpct_cli_option hpct_cli_training_options[] = {
    {.doc = "Optimizer and loss:", .group = 3},
    {"optimizer", "NAME", "sgd, adam, adamw, lars, lamb or rmsprop (default sgd)", 3, 0,
     CALL(optimizer, set_optimizer)},
    {"learning-rate", "X",
     "learning rate (default: sgd with mnist-cnn 0.2, with others 0.01; adam, adamw, lamb and "
     "rmsprop 0.001)",
     3, 0, NUMBER(optimizer.learning_rate, LEAST, MOST)},
    {.name = "lr", .group = 3, .kind = HPCT_CLI_ALIAS},
    {"learning-rate-of", "PATTERN=FACTOR",
     "multiply the learning rate of the layers of these names: 'conv*=0.1', or several, "
     "'conv*,bn?=0.1'; may be given more than once, the last one counts",
     3, 0, HPCT_CLI_CALL, .set = add_rate},
    {"lr-scaling", "HOW",
     "multiply the learning rate by the number of ranks (linear) or its square root (sqrt) "
     "(default none)",
     3, 0, HPCT_CLI_CALL, .set = set_scaling},
    {"schedule", "HOW",
     "constant, step:E1,E2,...[:FACTOR], exponential:RATE[:EPOCHS], staircase:RATE[:EPOCHS], "
     "cosine[:ALPHA] or polynomial[:POWER[:END]] (default constant)",
     3, 0, HPCT_CLI_CALL, .set = set_schedule},
    {"warmup-epochs", "X", "the learning rate rises linearly from 0 during the first X epochs", 3,
     0, NUMBER(warmup_epochs, 0, MOST)},
    {"momentum", "X", "momentum of sgd and rmsprop (default 0) or lars (default 0.9)", 3, 0,
     NUMBER(optimizer.momentum, 0, 1)},
    {"rho", "X", "rmsprop: decay of the mean of squared gradients (default 0.9)", 3, 0,
     NUMBER(optimizer.rho, LEAST, 1)},
    {"centered", NULL, "rmsprop: normalize by the gradient's variance", 3, 0,
     FLAG(optimizer.centered)},
    {"epsilon", "X", "epsilon of adam, adamw, lamb and rmsprop (default 1e-7)", 3, 0,
     NUMBER(optimizer.epsilon, LEAST, MOST)},
    {"nesterov", NULL, "sgd: Nesterov momentum", 3, 0, FLAG(optimizer.nesterov)},
    {"weight-decay", "X", "weight decay (default: adamw 0.004, else 0)", 3, 0,
     NUMBER(optimizer.weight_decay, 0, MOST)},
    {"clip-value", "X", "clip each value of the gradient", 3, 0,
     NUMBER(optimizer.clipvalue, LEAST, MOST)},
    {"clip-norm", "X", "clip the norm of each parameter's gradient", 3, 0,
     NUMBER(optimizer.clipnorm, LEAST, MOST)},
    {"global-clip-norm", "X", "clip the norm of the whole gradient", 3, 0,
     NUMBER(optimizer.global_clipnorm, LEAST, MOST)},
    {"gradient-accumulation", "N", "steps per update, with the mean of their gradients (default 1)",
     3, 0, INTEGER(optimizer.gradient_accumulation_steps, 1, 1 << 20)},
    {"loss", "NAME",
     "auto (default: the cross-entropy that fits the model's outputs), or as in Keras: "
     "categorical_crossentropy, sparse_categorical_crossentropy, binary_crossentropy, "
     "categorical_focal_crossentropy, binary_focal_crossentropy, mean_squared_error, huber, "
     "kl_divergence",
     3, 0, NAME(loss, hpct_cli_losses)},
    {"focal-gamma", "X", "gamma of focal losses, above 0 (default 2)", 3, 0,
     NUMBER(focal_gamma, LEAST, MOST)},
    {"focal-alpha", "X",
     "alpha of focal losses, 0 to 1: categorical_focal_crossentropy: default 0.25; "
     "binary_focal_crossentropy: weight of class 1, that of class 0 is 1 - X (default: both are 1)",
     3, 0, NUMBER(focal_alpha, LEAST, 1)},
    {"huber-delta", "X", "huber: the loss is linear for errors above X (default 1)", 3, 0,
     NUMBER(huber_delta, LEAST, MOST)},
    {"class-weight", "auto|FILE.json",
     "weights of the training samples' losses by class: auto, so that all classes weigh the same, "
     "or a JSON file with a number by class name or number",
     3, HPCT_CLI_FIT, TEXT(class_weight)},
    {"label-smoothing", "X", "label smoothing, 0 to 1 (default 0)", 3, 0,
     NUMBER(label_smoothing, 0, 1)},
    {"top-k", "K", "also report top-k accuracy", 3, 0, INTEGER(top_k, 1, INT_MAX)},
    {0},
};

void hpct_cli_check_training(const hpct_cli_training *t)
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

/* ---- compilation ---- */

/* Label smoothing needs the loss over rows (one-hot); it accepts class labels, too. */
static hpct_loss with_rows(hpct_loss loss)
{
    if (loss == HPCT_BINARY_CROSSENTROPY || loss == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS)
        return loss;
    return loss == HPCT_SPARSE_CATEGORICAL_CROSSENTROPY ? HPCT_CATEGORICAL_CROSSENTROPY
                                                        : HPCT_CATEGORICAL_CROSSENTROPY_FROM_LOGITS;
}

static hpct_loss loss_of(const hpct_model *model, const hpct_cli_model *defaults,
                         const hpct_cli_training *t)
{
    hpct_loss own = defaults->loss, loss = of_outputs[t->loss][0];
    bool logits = own == HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS ||
                  own == HPCT_BINARY_CROSSENTROPY_FROM_LOGITS;
    if (t->loss == 0)
        return t->label_smoothing > 0 ? with_rows(own) : own;
    bool several = loss == HPCT_CATEGORICAL_CROSSENTROPY ||
                   loss == HPCT_SPARSE_CATEGORICAL_CROSSENTROPY ||
                   loss == HPCT_CATEGORICAL_FOCAL_CROSSENTROPY || loss == HPCT_KL_DIVERGENCE;
    if (several && hpct_model_output_shape(model).size[0] == 1)
        hpct_cli_usage("--loss %s needs an output per class, %s has a single one",
                       hpct_cli_losses[t->loss], hpct_model_name(model));
    if (logits && loss == HPCT_KL_DIVERGENCE)
        hpct_cli_usage("--loss %s needs probabilities, the outputs of %s are logits: end it with "
                       "a softmax",
                       hpct_cli_losses[t->loss], hpct_model_name(model));
    return of_outputs[t->loss][logits];
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
            /* last step with the previous value */
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
        .loss = loss_of(model, defaults, t),
        .precision = hpct_model_precision(model),
        .label_smoothing = t->label_smoothing,
        .focal_gamma = t->focal_gamma,
        .focal_alpha = t->focal_alpha,
        .huber_delta = t->huber_delta,
        .class_weights = t->class_weights,
        .num_class_weights = t->num_class_weights,
        .top_k = t->top_k,
        .optimizer = t->optimizer,
    };
    hpct_optimizer *o = &compile.optimizer;
    apply_rates(model, t);
    if (o->learning_rate == 0)
        o->learning_rate = o->kind == HPCT_SGD ? defaults->learning_rate : 0.001;
    if (t->scaling == HPCT_CLI_SCALING_LINEAR)
        o->learning_rate *= ranks;
    if (t->scaling == HPCT_CLI_SCALING_SQRT)
        o->learning_rate *= sqrt(ranks);
    fill_in_steps(o, t, steps_per_epoch, epochs);
    return hpct_model_compile_with(model, &compile);
}
