/* Operation times of a model: measurement without communication, and the file. */
#include "agent/cost/compute.h"

#include "agent/cost/made_up.h"
#include "agent/results/json_file.h"
#include "base/status.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/profile.h"
#include "nn/run/step.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1

const hpct_cost_compute_effort hpct_cost_compute_careful = {
    .least_steps = 5, .seconds = 2, .rates = true};

void hpct_cost_compute_free(hpct_cost_compute *compute)
{
    free(compute->parts);
    for (int i = 0; i < 2; i++) {
        for (int way = 0; way < HPCT_COST_COMPUTE_WAYS; way++)
            free(compute->seconds[i][way].parts);
    }
    *compute = (hpct_cost_compute){0};
}

/* Static properties of the model. */
static hpct_status describe(hpct_cost_compute *compute, const hpct_model *model)
{
    *compute = (hpct_cost_compute){.num_parts = hpct_model_count_parts(model)};
    size_t count = (size_t) compute->num_parts;
    compute->parts = calloc(count, sizeof *compute->parts);
    bool fine = compute->parts != NULL;
    for (int i = 0; i < 2; i++) {
        for (int way = 0; way < HPCT_COST_COMPUTE_WAYS; way++) {
            hpct_run_step_seconds *seconds = &compute->seconds[i][way];
            seconds->parts = calloc(count, sizeof *seconds->parts);
            fine = fine && seconds->parts != NULL;
        }
    }
    if (!fine) {
        hpct_cost_compute_free(compute);
        return hpct_fail_memory(count * sizeof *compute->parts);
    }
    compute->whole = model;
    snprintf(compute->model, sizeof compute->model, "%s", hpct_model_name(model));
    compute->precision = hpct_model_precision(model);
    for (int i = 0; i < compute->num_parts; i++)
        compute->parts[i] = hpct_model_part(model, i);
    return HPCT_OK;
}

/* ---- measuring ---- */

static double total(const hpct_cost_compute *compute, const hpct_run_step_seconds *seconds)
{
    double sum = seconds->loss + seconds->update;
    for (int i = 0; i < compute->num_parts; i++)
        sum += seconds->parts[i].forward + seconds->parts[i].backward;
    return sum;
}

/* Times enough steps for a steady median. */
static hpct_status time_steps(const hpct_cost_compute *compute, hpct_model *model, int n,
                              bool fuse_update, const hpct_cost_compute_effort *effort,
                              hpct_run_step_seconds *seconds)
{
    hpct_run_build_options options = {
        .backend = "cpu", .batch_sizes = &n, .num_batch_sizes = 1, .fuse_update = fuse_update};
    HPCT_TRY(hpct_model_build(model, &options));
    HPCT_TRY(hpct_cost_made_up_batch(model, n, 0));
    HPCT_TRY(hpct_model_time_parts(model, n, 1, seconds));
    double steps = fmax(effort->seconds / fmax(total(compute, seconds), 1e-6), effort->least_steps);
    return hpct_model_time_parts(model, n, (int) fmin(steps, HPCT_COST_COMPUTE_STEPS), seconds);
}

hpct_status hpct_cost_compute_measure(hpct_cost_compute *compute, hpct_model *model, int samples,
                                      const hpct_cost_compute_effort *effort)
{
    hpct_backend_rates rates = {.bytes = INFINITY};
    hpct_status status = describe(compute, model);
    if (status != HPCT_OK)
        return status;
    compute->threads = hpct_cpu_threads();
    compute->samples[0] = samples;
    compute->samples[1] = samples / 2;
    for (int i = 0; i < 2 && compute->samples[i] > 0; i++) {
        for (int way = 0; way < HPCT_COST_COMPUTE_WAYS && status == HPCT_OK; way++)
            status = time_steps(compute, model, compute->samples[i], way == HPCT_COST_FUSED, effort,
                                &compute->seconds[i][way]);
    }
    if (status == HPCT_OK && effort->rates)
        status = hpct_model_measure_rates(model, &rates);
    if (status != HPCT_OK) {
        hpct_cost_compute_free(compute);
        return status;
    }
    compute->bytes_per_second = rates.bytes;
    return HPCT_OK;
}

double hpct_cost_compute_alone(const hpct_cost_compute *compute, int which)
{
    return total(compute, &compute->seconds[which][HPCT_COST_FUSED]);
}

/* ---- linear models ---- */

/* Through both points; through the first and the origin if there is one point, or if noise would
 * make a coefficient negative. */
static hpct_cost_work line(const hpct_cost_compute *compute, double first, double second)
{
    int n = compute->samples[0], half = compute->samples[1];
    if (half == 0 || second > first)
        return half == 0 ? (hpct_cost_work){0, first / n} : (hpct_cost_work){first, 0};
    double each = fmin((first - second) / (n - half), first / n);
    return (hpct_cost_work){first - n * each, each};
}

static double at(const hpct_cost_compute *compute, int n, double first, double second)
{
    if (n == compute->samples[0])
        return first;
    if (n == compute->samples[1])
        return second;
    hpct_cost_work work = line(compute, first, second);
    return work.fixed + n * work.each;
}

void hpct_cost_compute_at(const hpct_cost_compute *compute, hpct_cost_compute_way way, int n,
                          hpct_run_step_seconds *out)
{
    const hpct_run_step_seconds *a = &compute->seconds[0][way], *b = &compute->seconds[1][way];
    for (int i = 0; i < compute->num_parts; i++) {
        out->parts[i].forward = at(compute, n, a->parts[i].forward, b->parts[i].forward);
        out->parts[i].backward = at(compute, n, a->parts[i].backward, b->parts[i].backward);
    }
    out->loss = at(compute, n, a->loss, b->loss);
    out->update = a->update;
}

static void work_of(const hpct_cost_compute *compute, hpct_cost_compute_way way,
                    hpct_cost_part_work *work)
{
    const hpct_run_step_seconds *a = &compute->seconds[0][way], *b = &compute->seconds[1][way];
    for (int i = 0; i < compute->num_parts; i++) {
        work[i].forward = line(compute, a->parts[i].forward, b->parts[i].forward);
        work[i].backward = line(compute, a->parts[i].backward, b->parts[i].backward);
    }
}

void hpct_cost_compute_cost(const hpct_cost_compute *compute, hpct_cost_part_work *work,
                            hpct_cost_model *cost)
{
    const hpct_run_step_seconds *stored = compute->seconds[0], *fused = &stored[HPCT_COST_FUSED];
    work_of(compute, HPCT_COST_STORED, work);
    work_of(compute, HPCT_COST_FUSED, work + compute->num_parts);
    *cost = (hpct_cost_model){
        .parts = compute->parts,
        .num_parts = compute->num_parts,
        .work = work,
        .loss = line(compute, stored->loss, compute->seconds[1][HPCT_COST_STORED].loss),
        .update = stored->update,
        .fused = work + compute->num_parts,
        .fused_update = fused->update,
        .alone =
            line(compute, hpct_cost_compute_alone(compute, 0), hpct_cost_compute_alone(compute, 1)),
        .bytes_per_second = compute->bytes_per_second,
        .model = compute->whole,
    };
}

/* ---- the file ---- */

static const char *const ways[HPCT_COST_COMPUTE_WAYS] = {
    [HPCT_COST_STORED] = "stored", [HPCT_COST_FUSED] = "fused"};

static json_t *seconds_to_json(const hpct_cost_compute *compute, int which, int way)
{
    const hpct_run_step_seconds *seconds = &compute->seconds[which][way];
    json_t *forward = json_array(), *backward = json_array();
    for (int i = 0; i < compute->num_parts; i++) {
        json_array_append_new(forward, json_real(seconds->parts[i].forward));
        json_array_append_new(backward, json_real(seconds->parts[i].backward));
    }
    return json_pack("{s:f s:f s:o s:o}", "loss_seconds", seconds->loss, "update_seconds",
                     seconds->update, "forward_seconds", forward, "backward_seconds", backward);
}

hpct_status hpct_cost_compute_write(const hpct_cost_compute *compute, const char *path)
{
    json_t *parts = json_array(), *measured = json_array();
    for (int i = 0; i < compute->num_parts; i++)
        json_array_append_new(parts, json_pack("{s:s s:s s:I}", "layer", compute->parts[i].layer,
                                               "kind", compute->parts[i].kind, "results",
                                               (json_int_t) compute->parts[i].results));
    for (int i = 0; i < 2 && compute->samples[i] > 0; i++)
        json_array_append_new(measured, json_pack("{s:i s:o s:o}", "samples", compute->samples[i],
                                                  ways[0], seconds_to_json(compute, i, 0), ways[1],
                                                  seconds_to_json(compute, i, 1)));
    return hpct_results_json_write(
        json_pack("{s:i s:s s:s s:i s:f s:o s:o}", "version", VERSION, "model", compute->model,
                  "precision", hpct_precision_name(compute->precision), "threads", compute->threads,
                  "bytes_per_second", compute->bytes_per_second, "parts", parts, "measured",
                  measured),
        path);
}

static bool is_time(double seconds)
{
    return seconds >= 0 && seconds < 1e6;
}

static bool read_seconds(const json_t *array, const hpct_cost_compute *compute, double *out,
                         size_t stride)
{
    if (!json_is_array(array) || json_array_size(array) != (size_t) compute->num_parts)
        return false;
    for (size_t i = 0; i < (size_t) compute->num_parts; i++) {
        double value = json_number_value(json_array_get(array, i));
        if (!json_is_number(json_array_get(array, i)) || !is_time(value))
            return false;
        out[i * stride] = value;
    }
    return true;
}

static bool read_way(json_t *object, const hpct_cost_compute *compute,
                     hpct_run_step_seconds *seconds)
{
    const json_t *forward, *backward;
    enum { STRIDE = sizeof *seconds->parts / sizeof(double) };
    return json_unpack(object, "{s:F s:F s:o s:o}", "loss_seconds", &seconds->loss,
                       "update_seconds", &seconds->update, "forward_seconds", &forward,
                       "backward_seconds", &backward) == 0 &&
           is_time(seconds->loss) && is_time(seconds->update) &&
           read_seconds(forward, compute, &seconds->parts[0].forward, STRIDE) &&
           read_seconds(backward, compute, &seconds->parts[0].backward, STRIDE) &&
           total(compute, seconds) > 0;
}

static bool read_measured(const json_t *object, hpct_cost_compute *compute, int which)
{
    json_int_t samples = json_integer_value(json_object_get(object, "samples"));
    if (samples < 1 || samples > INT_MAX / 2)
        return false;
    compute->samples[which] = (int) samples;
    for (int way = 0; way < HPCT_COST_COMPUTE_WAYS; way++) {
        if (!read_way(json_object_get(object, ways[way]), compute, &compute->seconds[which][way]))
            return false;
    }
    return true;
}

/* Whether the file has the same operations. */
static bool is_of_model(const hpct_cost_compute *compute, const json_t *parts)
{
    if (json_array_size(parts) != (size_t) compute->num_parts)
        return false;
    for (int i = 0; i < compute->num_parts; i++) {
        const json_t *part = json_array_get(parts, (size_t) i);
        const char *layer = json_string_value(json_object_get(part, "layer"));
        const char *kind = json_string_value(json_object_get(part, "kind"));
        json_int_t results = json_integer_value(json_object_get(part, "results"));
        if (layer == NULL || kind == NULL || strcmp(layer, compute->parts[i].layer) != 0 ||
            strcmp(kind, compute->parts[i].kind) != 0 ||
            results != (json_int_t) compute->parts[i].results)
            return false;
    }
    return true;
}

static hpct_status read_all(hpct_cost_compute *compute, json_t *root, const char *path)
{
    const char *model, *precision;
    json_t *parts, *measured;
    int version;
    if (json_unpack(root, "{s:i s:s s:s s:i s:F s:o s:o}", "version", &version, "model", &model,
                    "precision", &precision, "threads", &compute->threads, "bytes_per_second",
                    &compute->bytes_per_second, "parts", &parts, "measured", &measured) != 0 ||
        !json_is_array(parts) || json_array_size(measured) < 1 || json_array_size(measured) > 2 ||
        !(compute->bytes_per_second > 0))
        return hpct_fail(
            HPCT_ERR_DATA,
            "%s is not a file of compute times: hpc-train plan --compute-json writes one", path);
    if (version != VERSION)
        return hpct_fail(HPCT_ERR_DATA, "%s has version %d; this program reads %d", path, version,
                         VERSION);
    if (!is_of_model(compute, parts) ||
        strcmp(precision, hpct_precision_name(compute->precision)) != 0)
        return hpct_fail(HPCT_ERR_USAGE, "%s has the times of %s in %s, not of this model in %s",
                         path, model, precision, hpct_precision_name(compute->precision));
    for (size_t i = 0; i < json_array_size(measured); i++) {
        if (!read_measured(json_array_get(measured, i), compute, (int) i))
            return hpct_fail(HPCT_ERR_DATA, "%s: \"measured\", entry %zu, is wrong or incomplete",
                             path, i);
    }
    if (json_array_size(measured) == 2 && compute->samples[1] >= compute->samples[0])
        return hpct_fail(HPCT_ERR_DATA, "%s: the second measured batch must be the smaller one",
                         path);
    return HPCT_OK;
}

hpct_status hpct_cost_compute_read(hpct_cost_compute *compute, const hpct_model *model,
                                   const char *path)
{
    json_t *root = NULL;
    HPCT_TRY(describe(compute, model));
    hpct_status status = hpct_results_json_read(&root, path);
    if (status == HPCT_OK)
        status = read_all(compute, root, path);
    json_decref(root);
    if (status != HPCT_OK)
        hpct_cost_compute_free(compute);
    return status;
}
