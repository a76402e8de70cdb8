/* Walks over the values in the same order on all ranks; a rank that fails takes part in the
 * collectives all the same, and the ranks agree at the end. */
#include "agent/train/run_state.h"

#include "base/digest.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES "ranks/values"
#define NUMBERS "ranks/numbers"
#define LAYOUT "ranks/layout"

/* What ranks tell each other when the state is opened. */
typedef struct holding {
    int64_t own_floats; /* values of its own */
    uint64_t hash[2];   /* of which values, and of their rows */
    int64_t writes;
} holding;

struct hpct_train_run_state {
    hpct_context *context;
    hpct_comm *comm;
    hpct_model *model; /* the plan's */
    hpct_strategy *strategy;
    const struct hpct_strategy_state_ops *ops;
    hpct_run_state_list list;
    hpct_strategy_state_share *shares; /* [list.count] */
    float *totals;                     /* [list.count] copies of all ranks */
    holding *holdings;                 /* [ranks] */
    int64_t own_begin, all_own, most_own;
    int writers;
    int num_numbers; /* of each rank */
    double *numbers; /* [ranks][num_numbers] */
    float *own;      /* [own_floats] */
    float *rows;     /* of the model's values that this rank saves */
    float *value;    /* [list.largest] */
    float *sum;      /* [list.largest] */
    float *layout;   /* copy of ops->layout_floats */
    size_t layout_floats;
    hpct_ckpt_store_tensor *tensors;
    size_t num_tensors;
};

static int64_t row_floats(const hpct_run_state_value *value)
{
    int64_t rows = value->shape.size[0];
    return rows > 0 ? (int64_t) value->count / rows : 0;
}

static bool leads(const hpct_train_run_state *s)
{
    return s->comm->rank == 0;
}

/* ---- opening ---- */

static hpct_status share_values(hpct_train_run_state *s)
{
    size_t count = (size_t) s->list.count + 1;
    s->shares = calloc(count, sizeof *s->shares);
    s->totals = calloc(count, sizeof *s->totals);
    s->holdings = calloc((size_t) s->comm->size, sizeof *s->holdings);
    if (s->shares == NULL || s->totals == NULL || s->holdings == NULL)
        return hpct_fail_memory(count * sizeof *s->shares);
    for (int i = 0; i < s->list.count; i++) {
        s->ops->share(s->strategy, &s->list.values[i], &s->shares[i]);
        s->totals[i] = (float) s->shares[i].copies;
    }
    return HPCT_OK;
}

static hpct_status describe_own(const hpct_train_run_state *s, holding *out)
{
    holding mine = {.writes = leads(s)};
    hpct_digest *digest = hpct_digest_new();
    if (digest == NULL)
        return hpct_fail_memory(0);
    for (int i = 0; i < s->list.count; i++) {
        const hpct_strategy_state_share *share = &s->shares[i];
        int64_t facts[] = {i, share->copies, share->differs, share->begin, share->rows};
        hpct_digest_add(digest, facts, sizeof facts);
        mine.own_floats += share->copies * (int64_t) s->list.values[i].count;
        mine.writes |= share->rows > 0;
    }
    mine.writes |= mine.own_floats > 0;
    hpct_digest_end(digest, mine.hash);
    hpct_digest_free(digest);
    *out = mine;
    return HPCT_OK;
}

static void note_holdings(hpct_train_run_state *s)
{
    for (int rank = 0; rank < s->comm->size; rank++) {
        const holding *h = &s->holdings[rank];
        if (rank < s->comm->rank)
            s->own_begin += h->own_floats;
        s->all_own += h->own_floats;
        s->most_own = h->own_floats > s->most_own ? h->own_floats : s->most_own;
        s->writers += h->writes != 0;
    }
}

static void add_tensor(hpct_train_run_state *s, hpct_ckpt_store_tensor tensor)
{
    s->tensors[s->num_tensors++] = tensor;
}

static hpct_ckpt_store_tensor whole_of(const hpct_run_state_value *value)
{
    hpct_ckpt_store_tensor t = {
        .name = value->name, .type = HPCT_CKPT_STORE_F32, .rank = value->shape.rank};
    for (int k = 0; k < t.rank; k++)
        t.shape[k] = value->shape.size[k];
    return t;
}

static hpct_ckpt_store_tensor own_values(const hpct_train_run_state *s, int64_t begin,
                                         int64_t floats)
{
    return (hpct_ckpt_store_tensor){.name = VALUES,
                                    .type = HPCT_CKPT_STORE_F32,
                                    .rank = 1,
                                    .shape = {floats},
                                    .begin = begin,
                                    .of = s->all_own,
                                    .data = s->own};
}

/* What this rank will write: addresses stay the same from one checkpoint to the next. */
static void list_tensors(hpct_train_run_state *s)
{
    const float *at = s->rows;
    for (int i = 0; i < s->list.count; i++) {
        const hpct_strategy_state_share *share = &s->shares[i];
        hpct_ckpt_store_tensor t = whole_of(&s->list.values[i]);
        if (share->rows == 0)
            continue;
        if (share->rows < t.shape[0]) {
            t.begin = share->begin;
            t.of = t.shape[0];
            t.shape[0] = share->rows;
        }
        t.data = at;
        at += share->rows * row_floats(&s->list.values[i]);
        add_tensor(s, t);
    }
    if (s->holdings[s->comm->rank].own_floats > 0)
        add_tensor(s, own_values(s, s->own_begin, s->holdings[s->comm->rank].own_floats));
    if (!leads(s))
        return;
    add_tensor(s, (hpct_ckpt_store_tensor){.name = NUMBERS,
                                           .type = HPCT_CKPT_STORE_F64,
                                           .rank = 2,
                                           .shape = {s->comm->size, s->num_numbers},
                                           .data = s->numbers});
    if (s->layout_floats > 0)
        add_tensor(s, (hpct_ckpt_store_tensor){.name = LAYOUT,
                                               .type = HPCT_CKPT_STORE_F32,
                                               .rank = 1,
                                               .shape = {(int64_t) s->layout_floats},
                                               .data = s->layout});
}

static hpct_status allocate(hpct_train_run_state *s)
{
    size_t rows = 0, own = (size_t) s->holdings[s->comm->rank].own_floats;
    for (int i = 0; i < s->list.count; i++)
        rows += (size_t) (s->shares[i].rows * row_floats(&s->list.values[i]));
    if (s->ops->layout_floats != NULL)
        s->ops->layout_floats(s->strategy, &s->layout_floats);
    s->num_numbers = HPCT_RUN_STATE_NUMBERS + s->ops->num_numbers;
    s->numbers = calloc((size_t) s->comm->size * (size_t) s->num_numbers, sizeof *s->numbers);
    s->own = calloc(own + 1, sizeof *s->own);
    s->rows = calloc(rows + 1, sizeof *s->rows);
    s->value = calloc(s->list.largest, sizeof *s->value);
    s->sum = calloc(s->list.largest, sizeof *s->sum);
    s->layout = calloc(s->layout_floats + 1, sizeof *s->layout);
    s->tensors = calloc((size_t) s->list.count + 3, sizeof *s->tensors);
    if (s->numbers == NULL || s->own == NULL || s->rows == NULL || s->value == NULL ||
        s->sum == NULL || s->layout == NULL || s->tensors == NULL)
        return hpct_fail_memory((own + rows + s->layout_floats) * sizeof(float));
    list_tensors(s);
    return HPCT_OK;
}

static hpct_status open_state(hpct_train_run_state *s)
{
    hpct_status status = hpct_run_state_list_make(&s->list, s->model);
    if (status == HPCT_OK && s->ops->extend != NULL)
        status = s->ops->extend(s->strategy, &s->list);
    if (status == HPCT_OK)
        status = share_values(s);
    holding mine = {0};
    if (status == HPCT_OK)
        status = describe_own(s, &mine);
    HPCT_TRY(hpct_context_agree(s->context, status));
    HPCT_TRY(s->comm->ops->allgather(s->comm, &mine, s->holdings, sizeof mine));
    HPCT_TRY(s->comm->ops->allreduce_sum(s->comm, s->totals, (size_t) s->list.count));
    note_holdings(s);
    return hpct_context_agree(s->context, allocate(s));
}

hpct_status hpct_train_run_state_open(hpct_train_run_state **out, hpct_context *context,
                                      hpct_model *model, hpct_strategy *strategy)
{
    hpct_train_run_state *s = calloc(1, sizeof *s);
    HPCT_TRY(hpct_context_agree(context, s == NULL ? hpct_fail_memory(sizeof *s) : HPCT_OK));
    s->context = context;
    s->comm = hpct_context_comm(context);
    s->model = model;
    s->strategy = strategy;
    s->ops = strategy->ops->state;
    hpct_status status = open_state(s);
    if (status == HPCT_OK)
        *out = s;
    else
        hpct_train_run_state_close(s);
    return status;
}

void hpct_train_run_state_close(hpct_train_run_state *s)
{
    if (s == NULL)
        return;
    hpct_run_state_list_free(&s->list);
    free(s->shares);
    free(s->totals);
    free(s->holdings);
    free(s->numbers);
    free(s->own);
    free(s->rows);
    free(s->value);
    free(s->sum);
    free(s->layout);
    free(s->tensors);
    free(s);
}

bool hpct_train_run_state_ready(const hpct_train_run_state *s)
{
    return s->ops->ready == NULL || s->ops->ready(s->strategy);
}

int hpct_train_run_state_writers(const hpct_train_run_state *s)
{
    return s->writers;
}

bool hpct_train_run_state_writes(const hpct_train_run_state *s)
{
    return s->holdings[s->comm->rank].writes != 0;
}

const hpct_ckpt_store_tensor *hpct_train_run_state_tensors(const hpct_train_run_state *s,
                                                           size_t *count)
{
    *count = s->num_tensors;
    return s->tensors;
}

/* ---- taking ---- */

static void note(hpct_status *all, hpct_status status)
{
    if (*all == HPCT_OK)
        *all = status;
}

/* `sum` becomes the model's value from the copies of all ranks, which follow at *own. */
static hpct_status combine(hpct_train_run_state *s, int i, float **own, hpct_status *failed)
{
    const hpct_run_state_value *v = &s->list.values[i];
    const hpct_strategy_state_share *share = &s->shares[i];
    memset(s->sum, 0, v->count * sizeof *s->sum);
    for (int copy = 0; copy < share->copies; copy++) {
        note(failed, hpct_strategy_get(s->strategy, v, copy, *own));
        for (size_t k = 0; k < v->count; k++)
            s->sum[k] += (*own)[k];
        *own += v->count;
    }
    HPCT_TRY(s->comm->ops->allreduce_sum(s->comm, s->sum, v->count));
    for (size_t k = 0; k < v->count && !share->adds; k++)
        s->sum[k] /= s->totals[i];
    return HPCT_OK;
}

static hpct_status take_values(hpct_train_run_state *s, hpct_status *failed)
{
    float *own = s->own, *rows = s->rows;
    for (int i = 0; i < s->list.count; i++) {
        const hpct_run_state_value *v = &s->list.values[i];
        const hpct_strategy_state_share *share = &s->shares[i];
        const float *whole = share->differs ? s->sum : s->value;
        int64_t row = row_floats(v);
        if (share->differs)
            HPCT_TRY(combine(s, i, &own, failed));
        else if (share->meets)
            HPCT_TRY(hpct_strategy_get(s->strategy, v, 0, s->value));
        else if (share->rows > 0)
            note(failed, hpct_strategy_get(s->strategy, v, 0, s->value));
        memcpy(rows, whole + share->begin * row, (size_t) (share->rows * row) * sizeof *rows);
        rows += share->rows * row;
    }
    return HPCT_OK;
}

hpct_status hpct_train_run_state_take(hpct_train_run_state *s)
{
    double mine[HPCT_RUN_STATE_NUMBERS + HPCT_STRATEGY_STATE_MOST_NUMBERS] = {0};
    hpct_status failed = hpct_strategy_get_numbers(s->strategy, mine);
    size_t count = 0;
    if (s->ops->numbers != NULL)
        s->ops->numbers(s->strategy, mine + HPCT_RUN_STATE_NUMBERS, false);
    HPCT_TRY(
        s->comm->ops->allgather(s->comm, mine, s->numbers, (size_t) s->num_numbers * sizeof *mine));
    HPCT_TRY(take_values(s, &failed));
    if (s->layout_floats > 0)
        memcpy(s->layout, s->ops->layout_floats(s->strategy, &count),
               s->layout_floats * sizeof *s->layout);
    return hpct_context_agree(s->context, failed);
}

/* ---- what a copy is of ---- */

/* Runs with the same text have the same values of their own. */
static void own_text(const hpct_train_run_state *s, char text[24])
{
    uint64_t hash[2];
    hpct_digest_of(s->holdings, (size_t) s->comm->size * sizeof *s->holdings, hash);
    snprintf(text, 24, "%016" PRIx64, hash[1]);
}

static void layout_text(const hpct_train_run_state *s, char text[24])
{
    snprintf(text, 24, "%016" PRIx64, hpct_model_layout_fingerprint(s->strategy->model));
}

json_t *hpct_train_run_state_describe(const hpct_train_run_state *s)
{
    char own[24], layout[24];
    own_text(s, own);
    layout_text(s, layout);
    return json_pack("{s:s,s:i,s:s,s:s}", "strategy", s->strategy->ops->name, "ranks",
                     s->comm->size, "shares", own, "layout", layout);
}

/* ---- restoring ---- */

/* What rank 0 knows of the checkpoint. */
typedef struct known {
    int same_strategy;
    int same;        /* and ranks: all get what was theirs */
    int same_layout; /* and `layout` is of use */
} known;

static bool is_text(const json_t *description, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(description, key));
    return value != NULL && strcmp(value, text) == 0;
}

static known compare(const hpct_train_run_state *s, const json_t *description)
{
    char own[24], layout[24];
    own_text(s, own);
    layout_text(s, layout);
    known k = {.same_strategy = is_text(description, "strategy", s->strategy->ops->name)};
    k.same = k.same_strategy && is_text(description, "shares", own) &&
             json_integer_value(json_object_get(description, "ranks")) == s->comm->size;
    k.same_layout = k.same && is_text(description, "layout", layout);
    return k;
}

/* Runs without compression have no residues. */
static hpct_status read_value(hpct_train_run_state *s, hpct_ckpt *from,
                              const hpct_run_state_value *v)
{
    hpct_ckpt_store_tensor t = whole_of(v);
    if (v->slot == HPCT_STRATEGY_STATE_RESIDUE && !hpct_ckpt_find(from, v->name, NULL)) {
        memset(s->value, 0, v->count * sizeof *s->value);
        return HPCT_OK;
    }
    return hpct_ckpt_read(from, &t, s->value);
}

/* The model's values, for every rank. What ranks had of their own and adds up is divided among
 * them. */
static hpct_status put_values(hpct_train_run_state *s, hpct_ckpt *from, hpct_status *failed)
{
    for (int i = 0; i < s->list.count; i++) {
        const hpct_run_state_value *v = &s->list.values[i];
        if (leads(s))
            note(failed, read_value(s, from, v));
        HPCT_TRY(s->comm->ops->broadcast(s->comm, s->value, v->count * sizeof *s->value, 0));
        for (size_t k = 0; k < v->count && s->shares[i].adds && s->totals[i] > 0; k++)
            s->value[k] /= s->totals[i];
        hpct_status status = hpct_strategy_put(s->strategy, v, HPCT_STRATEGY_STATE_ALL, s->value);
        if (s->shares[i].meets)
            HPCT_TRY(status);
        note(failed, status);
    }
    return HPCT_OK;
}

static hpct_status put_own(hpct_train_run_state *s)
{
    const float *at = s->own;
    for (int i = 0; i < s->list.count; i++) {
        const hpct_run_state_value *v = &s->list.values[i];
        for (int copy = 0; copy < s->shares[i].copies; copy++) {
            HPCT_TRY(hpct_strategy_put(s->strategy, v, copy, at));
            at += v->count;
        }
    }
    return HPCT_OK;
}

/* Rank 0 reads every rank's values. */
static hpct_status restore_own(hpct_train_run_state *s, hpct_ckpt *from, hpct_status *failed)
{
    float *floats = malloc((size_t) (s->most_own + 1) * sizeof *floats);
    int64_t begin = 0;
    hpct_status status = hpct_context_agree(
        s->context,
        floats != NULL ? HPCT_OK : hpct_fail_memory((size_t) s->most_own * sizeof *floats));
    for (int rank = 0; rank < s->comm->size && status == HPCT_OK; rank++) {
        int64_t count = s->holdings[rank].own_floats;
        hpct_ckpt_store_tensor t = own_values(s, begin, count);
        begin += count;
        if (count == 0)
            continue;
        if (leads(s))
            note(failed, hpct_ckpt_read(from, &t, floats));
        status = s->comm->ops->broadcast(s->comm, floats, (size_t) count * sizeof *floats, 0);
        if (rank == s->comm->rank && status == HPCT_OK)
            memcpy(s->own, floats, (size_t) count * sizeof *floats);
    }
    free(floats);
    if (status == HPCT_OK)
        note(failed, put_own(s));
    return status;
}

static hpct_status restore_layout(hpct_train_run_state *s, hpct_ckpt *from, hpct_status *failed)
{
    size_t count;
    float *floats = s->ops->layout_floats(s->strategy, &count);
    hpct_ckpt_store_tensor t = {
        .name = LAYOUT, .type = HPCT_CKPT_STORE_F32, .rank = 1, .shape = {(int64_t) count}};
    if (leads(s))
        note(failed, hpct_ckpt_read(from, &t, floats));
    return s->comm->ops->broadcast(s->comm, floats, count * sizeof *floats, 0);
}

/* Counters are whole numbers, and a file may hold anything. */
static hpct_status check_numbers(const hpct_train_run_state *s, const hpct_ckpt *from)
{
    for (int i = 0; i < s->comm->size * s->num_numbers; i++) {
        bool is_undo = i % s->num_numbers == 2 || i % s->num_numbers == 3;
        if (!isfinite(s->numbers[i]) || s->numbers[i] < 0 ||
            (!is_undo && s->numbers[i] > (i % s->num_numbers == 4 ? INT32_MAX : 1e15)) ||
            (i % s->num_numbers == 5 && s->numbers[i] > INT32_MAX))
            return hpct_fail(HPCT_ERR_DATA, "%s: tensor \"%s\" has impossible numbers",
                             hpct_ckpt_folder(from), NUMBERS);
    }
    return HPCT_OK;
}

/* Every rank gets its own, or, of other runs, rank 0's; of other strategies without counters. */
static hpct_status read_numbers(hpct_train_run_state *s, hpct_ckpt *from, const known *k)
{
    hpct_ckpt_store_tensor t = {
        .name = NUMBERS, .type = HPCT_CKPT_STORE_F64, .rank = 2, .data = NULL};
    if (!hpct_ckpt_find(from, NUMBERS, &t) || t.rank != 2 || t.shape[0] < 1 ||
        t.shape[1] < HPCT_RUN_STATE_NUMBERS || t.shape[1] > 64 || t.shape[0] > INT32_MAX)
        return hpct_fail(HPCT_ERR_DATA, "%s has no tensor \"%s\" of this form",
                         hpct_ckpt_folder(from), NUMBERS);
    bool counters = k->same_strategy && t.shape[1] == s->num_numbers;
    if (k->same && counters && t.shape[0] == s->comm->size) {
        HPCT_TRY(hpct_ckpt_read(from, &t, s->numbers));
    } else {
        double row[64];
        hpct_ckpt_store_tensor first = t;
        first.of = t.shape[0];
        first.shape[0] = 1;
        HPCT_TRY(hpct_ckpt_read(from, &first, row));
        for (int rank = 0; rank < s->comm->size; rank++) {
            double *to = s->numbers + (size_t) rank * (size_t) s->num_numbers;
            memset(to, 0, (size_t) s->num_numbers * sizeof *to);
            memcpy(to, row,
                   (size_t) (counters ? s->num_numbers : HPCT_RUN_STATE_NUMBERS) * sizeof *to);
        }
    }
    return check_numbers(s, from);
}

static hpct_status restore_numbers(hpct_train_run_state *s, hpct_ckpt *from, const known *k,
                                   hpct_status *failed)
{
    size_t each = (size_t) s->num_numbers;
    const double *mine = s->numbers + (size_t) s->comm->rank * each;
    if (leads(s))
        note(failed, read_numbers(s, from, k));
    HPCT_TRY(s->comm->ops->broadcast(s->comm, s->numbers,
                                     (size_t) s->comm->size * each * sizeof *mine, 0));
    HPCT_TRY(hpct_context_agree(s->context, *failed)); /* before they are believed */
    note(failed, hpct_strategy_put_numbers(s->strategy, mine));
    if (s->model != s->strategy->model)
        note(failed, hpct_run_state_put_numbers(s->model, mine));
    if (s->ops->numbers != NULL) {
        double own[HPCT_STRATEGY_STATE_MOST_NUMBERS];
        memcpy(own, mine + HPCT_RUN_STATE_NUMBERS, (size_t) s->ops->num_numbers * sizeof *own);
        s->ops->numbers(s->strategy, own, true);
    }
    return HPCT_OK;
}

hpct_status hpct_train_run_state_restore(hpct_train_run_state *s, hpct_ckpt *from,
                                         const json_t *description)
{
    known k = {0};
    hpct_status failed = HPCT_OK;
    if (leads(s))
        k = compare(s, description);
    HPCT_TRY(s->comm->ops->broadcast(s->comm, &k, sizeof k, 0));
    HPCT_TRY(restore_numbers(s, from, &k, &failed));
    HPCT_TRY(put_values(s, from, &failed));
    if (k.same && s->all_own > 0)
        HPCT_TRY(restore_own(s, from, &failed));
    if (k.same_layout && s->layout_floats > 0)
        HPCT_TRY(restore_layout(s, from, &failed));
    return hpct_context_agree(s->context, failed);
}
