/* The optimizers and checks of their settings. */
#include "nn/graph/optimizer.h"

#include "base/nearest.h"
#include "base/status.h"
#include "nn/graph/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const hpct_graph_optimizer_class hpct_graph_optimizers[HPCT_OPTIMIZER_KINDS] = {
    [HPCT_SGD] = {.name = "sgd", .slots = {"momentum"}, .learning_rate = 0.01},
    [HPCT_ADAM] = {.name = "adam", .slots = {"momentum", "velocity"}, .learning_rate = 0.001},
    [HPCT_ADAMW] = {.name = "adamw",
                    .slots = {"momentum", "velocity"},
                    .learning_rate = 0.001,
                    .weight_decay = 0.004},
    [HPCT_LARS] = {.name = "lars", .slots = {"momentum"}, .by_parameter = true, .momentum = 0.9},
    [HPCT_LAMB] = {.name = "lamb",
                   .slots = {"momentum", "velocity"},
                   .by_parameter = true,
                   .learning_rate = 0.001},
    [HPCT_RMSPROP] = {.name = "rmsprop",
                      .slots = {"velocity", "momentum", "average_gradient"},
                      .learning_rate = 0.001},
};

hpct_status hpct_optimizer_find(hpct_optimizer_kind *kind, const char *name)
{
    char names[128] = "", hint[HPCT_NEAREST_HINT];
    hpct_nearest best = {0};
    for (int i = 0; i < HPCT_OPTIMIZER_KINDS; i++) {
        hpct_nearest_try(&best, name, hpct_graph_optimizers[i].name);
        if (strcmp(hpct_graph_optimizers[i].name, name) == 0) {
            *kind = (hpct_optimizer_kind) i;
            return HPCT_OK;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                 hpct_graph_optimizers[i].name);
    }
    return hpct_fail(HPCT_ERR_USAGE, "there is no optimizer \"%s\"%s; there are: %s", name,
                     hpct_nearest_hint(&best, hint), names);
}

const char *hpct_optimizer_name(hpct_optimizer_kind kind)
{
    return (int) kind >= 0 && kind < HPCT_OPTIMIZER_KINDS ? hpct_graph_optimizers[kind].name : "?";
}

static void fill_in(double *value, double standard)
{
    if (*value == 0)
        *value = standard;
}

static hpct_status check_numbers(const hpct_optimizer *o)
{
    const char *name = hpct_graph_optimizers[o->kind].name;
    if (!isfinite(o->learning_rate) || o->learning_rate < 0)
        return hpct_fail(HPCT_ERR_USAGE, "learning rate %g must be a number from 0 on",
                         o->learning_rate);
    if (o->learning_rate == 0 && o->schedule.kind != HPCT_PIECEWISE_CONSTANT)
        return hpct_fail(HPCT_ERR_USAGE, "%s has no default learning rate: give one", name);
    if (!(o->momentum >= 0 && o->momentum < 1))
        return hpct_fail(HPCT_ERR_USAGE, "momentum %g must lie in [0, 1)", o->momentum);
    if (!(o->beta_1 >= 0 && o->beta_1 < 1) || !(o->beta_2 >= 0 && o->beta_2 < 1))
        return hpct_fail(HPCT_ERR_USAGE, "beta_1 %g and beta_2 %g must lie in [0, 1)", o->beta_1,
                         o->beta_2);
    if (!(o->rho >= 0 && o->rho < 1))
        return hpct_fail(HPCT_ERR_USAGE, "rho %g must lie in [0, 1)", o->rho);
    const double others[] = {o->epsilon,   o->weight_decay, o->trust_coefficient,
                             o->clipvalue, o->clipnorm,     o->global_clipnorm};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!isfinite(others[i]) || others[i] < 0)
            return hpct_fail(HPCT_ERR_USAGE,
                             "%s: epsilon, weight decay, trust coefficient and clipping must be "
                             "numbers from 0 on, not %g",
                             name, others[i]);
    }
    return HPCT_OK;
}

static hpct_status check_combination(const hpct_optimizer *o)
{
    const char *name = hpct_graph_optimizers[o->kind].name;
    if (o->momentum > 0 && o->kind != HPCT_SGD && o->kind != HPCT_LARS && o->kind != HPCT_RMSPROP)
        return hpct_fail(HPCT_ERR_USAGE, "%s has beta_1, not a momentum", name);
    if (o->nesterov && o->kind != HPCT_SGD)
        return hpct_fail(HPCT_ERR_USAGE, "nesterov belongs to sgd, not to %s", name);
    if ((o->rho > 0 || o->centered) && o->kind != HPCT_RMSPROP)
        return hpct_fail(HPCT_ERR_USAGE, "rho and centered belong to rmsprop, not to %s", name);
    if ((o->clipvalue > 0) + (o->clipnorm > 0) + (o->global_clipnorm > 0) > 1)
        return hpct_fail(HPCT_ERR_USAGE,
                         "only one of clipvalue, clipnorm and global_clipnorm can be given");
    if (o->gradient_accumulation_steps < 0)
        return hpct_fail(HPCT_ERR_USAGE, "gradient_accumulation_steps is %d, it must be positive",
                         o->gradient_accumulation_steps);
    return HPCT_OK;
}

hpct_status hpct_graph_optimizer_resolve(hpct_optimizer *out, const hpct_optimizer *optimizer)
{
    hpct_optimizer o = *optimizer;
    if ((int) o.kind < 0 || o.kind >= HPCT_OPTIMIZER_KINDS)
        return hpct_fail(HPCT_ERR_USAGE, "there is no optimizer %d", (int) o.kind);
    const hpct_graph_optimizer_class *class = &hpct_graph_optimizers[o.kind];
    fill_in(&o.learning_rate, class->learning_rate);
    fill_in(&o.momentum, class->momentum);
    fill_in(&o.weight_decay, class->weight_decay);
    fill_in(&o.beta_1, 0.9);
    fill_in(&o.beta_2, 0.999);
    fill_in(&o.epsilon, 1e-7);
    if (o.kind == HPCT_RMSPROP)
        fill_in(&o.rho, 0.9);
    fill_in(&o.trust_coefficient, 0.001);
    if (o.gradient_accumulation_steps == 0)
        o.gradient_accumulation_steps = 1;
    hpct_status status = check_numbers(&o);
    if (status == HPCT_OK)
        status = check_combination(&o);
    if (status == HPCT_OK)
        status = hpct_graph_schedule_resolve(&o.schedule);
    if (status == HPCT_OK)
        *out = o;
    return status;
}

int hpct_graph_optimizer_num_slots(const hpct_optimizer *optimizer)
{
    if (optimizer->kind == HPCT_SGD && optimizer->momentum == 0)
        return 0;
    if (optimizer->kind == HPCT_RMSPROP)
        return 1 + (optimizer->momentum > 0) + optimizer->centered;
    const char *const *slots = hpct_graph_optimizers[optimizer->kind].slots;
    int count = 0;
    while (count < HPCT_GRAPH_MAX_SLOTS && slots[count] != NULL)
        count++;
    return count;
}

bool hpct_graph_optimizer_by_parameter(const hpct_optimizer *optimizer)
{
    return hpct_graph_optimizers[optimizer->kind].by_parameter || optimizer->clipnorm > 0;
}

bool hpct_graph_optimizer_is_plain(const hpct_optimizer *o)
{
    return o->kind == HPCT_SGD && o->momentum == 0 && o->weight_decay == 0 && o->clipvalue == 0 &&
           o->clipnorm == 0 && o->global_clipnorm == 0 && o->gradient_accumulation_steps == 1;
}
