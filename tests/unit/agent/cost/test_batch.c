/* Batch sizes from the memory plan: what ranks share, what is chosen, what is refused, and that the
 * plan says what the process grows by. */
#include "agent/data/dataset.h"
#include "agent/rank/context.h"
#include "agent/rank/memory.h"
#include "base/memory.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/unit.h"

#include <hpctrain/hpctrain.h>

#define MIB ((size_t) 1 << 20)

/* ---- memory that ranks share ---- */

/* A comm that answers for ranks on two nodes: rank i is on the caller's where here[i], and then in
 * the same cgroups as the caller where same[i]. */
typedef struct crowd {
    hpct_comm comm;
    const bool *here, *same;
} crowd;

/* A record begins with the node's name; ids follow. */
static hpct_status crowd_allgather(hpct_comm *comm, const void *mine, void *all, size_t bytes)
{
    const crowd *c = (const crowd *) comm;
    for (int rank = 0; rank < comm->size; rank++) {
        char *record = (char *) all + (size_t) rank * bytes;
        memcpy(record, mine, bytes);
        if (!c->here[rank])
            memcpy(record, "other", 6);
        if (!c->same[rank]) /* all but the first id, the machine's */
            memset(record + 64 + sizeof(uint64_t), 0x55, bytes - 64 - sizeof(uint64_t));
    }
    return HPCT_OK;
}

static void put_file(const char *folder, const char *name, const char *text)
{
    pictures_write(folder, name, text, strlen(text), false);
}

TEST(ranks_of_a_node_share)
{
    static const bool here[5] = {true, true, false, true, true};
    static const bool same[5] = {true, false, true, true, false};
    static const hpct_comm_ops ops = {.name = "crowd", .allgather = crowd_allgather};
    crowd c = {.comm = {.ops = &ops, .rank = 0, .size = 5}, .here = here, .same = same};
    const char *folder = pictures_folder();
    char proc[4096], cgroups[4096];
    snprintf(proc, sizeof proc, "%s/proc", folder);
    snprintf(cgroups, sizeof cgroups, "%s/cg", folder);
    put_file(folder, "proc/meminfo", "MemAvailable: 8000 kB\n");
    put_file(folder, "proc/self/status", "VmSize: 900000 kB\nVmRSS: 1024 kB\n");
    put_file(folder, "proc/self/cgroup", "0::/job/step\n");
    put_file(folder, "cg/job/memory.max", "6000000\n");
    put_file(folder, "cg/job/memory.current", "400000\n");
    assert_int_equal(hpct_memory_share_in(proc, cgroups).bytes, 5600000); /* alone, so far */
    assert_int_equal(hpct_rank_memory_meet_in(&c.comm, "node", proc, cgroups), HPCT_OK);
    hpct_memory_share share = hpct_memory_share_in(proc, cgroups);
    assert_int_equal(share.bytes, 8000 * 1024 / 4); /* the machine's, among four */
    assert_int_equal(share.ranks, 4);
    assert_string_equal(share.whose, "machine");
    put_file(folder, "cg/job/memory.max", "3000000\n"); /* the cgroup's, among two */
    share = hpct_memory_share_in(proc, cgroups);
    assert_int_equal(share.bytes, 1300000);
    assert_int_equal(share.ranks, 2);
    assert_string_equal(share.whose, "cgroup");

    /* Slurm's word counts where no cgroup has a limit, and each rank pays from its part */
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_MEM_PER_NODE", "5", 1);
    assert_int_equal(hpct_memory_share_in(proc, cgroups).bytes, 1300000);
    put_file(folder, "cg/job/memory.max", "max\n");
    assert_int_equal(hpct_rank_memory_meet_in(&c.comm, "node", proc, cgroups), HPCT_OK);
    share = hpct_memory_share_in(proc, cgroups);
    assert_string_equal(share.whose, "Slurm job");
    assert_int_equal(share.bytes, 5 * MIB / 2 - 1024 * 1024);
    unsetenv("SLURM_MEM_PER_NODE");
    setenv("SLURM_MEM_PER_CPU", "1", 1);
    setenv("SLURM_CPUS_ON_NODE", "3", 1);
    assert_int_equal(hpct_memory_share_in(proc, cgroups).bytes, 3 * MIB / 2 - 1024 * 1024);
    unsetenv("SLURM_STEP_ID");
    unsetenv("SLURM_MEM_PER_CPU");
    unsetenv("SLURM_CPUS_ON_NODE");
    put_file(folder, "proc/self/cgroup", "5:memory:/job\n"); /* v1's word for no limit */
    put_file(folder, "cg/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    put_file(folder, "cg/memory/job/memory.usage_in_bytes", "1000\n");
    assert_string_equal(hpct_memory_share_in(proc, cgroups).whose, "machine");
}

/* ---- batches ---- */

static size_t memory; /* that this rank may take, before the reserve */
hpct_memory_share __wrap_hpct_memory_share_now(void);
hpct_memory_share __wrap_hpct_memory_share_now(void)
{
    return (hpct_memory_share){.bytes = memory, .whose = "cgroup", .ranks = 2};
}

/* Bytes behind a key of /proc/self/status. */
static size_t of_process(const char *key)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (kib == 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0)
            sscanf(line + strlen(key), ": %zu", &kib);
    }
    fclose(file);
    return kib * 1024;
}

static hpct_context *alone(void)
{
    hpct_context *context;
    assert_int_equal(hpct_context_open_alone(&context), HPCT_OK);
    return context;
}

static hpct_model *cnn(hpct_optimizer_kind kind)
{
    hpct_model *model;
    hpct_optimizer optimizer = {.kind = kind, .learning_rate = 1e-3};
    assert_int_equal(hpct_model_builtin(&model, "mnist-cnn"), HPCT_OK);
    assert_int_equal(
        hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &optimizer),
        HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 0), HPCT_OK);
    return model;
}

static hpct_dataset *made_up(size_t samples, bool flip)
{
    hpct_dataset *dataset;
    hpct_dataset_options options = {.flip = flip, .threads = 1};
    assert_int_equal(
        hpct_dataset_synthetic(&dataset, HPCT_SHAPE(28, 28, 1), 10, samples, HPCT_TRAIN, &options),
        HPCT_OK);
    return dataset;
}

/* Whether memory and time are the program's own: not under valgrind, nor with sanitizers. */
static bool undisturbed(void)
{
#ifdef __SANITIZE_ADDRESS__
    return false;
#else
    return getenv("HPC_TRAIN_SHORT") == NULL;
#endif
}

/* Trains with what was chosen: the process grows by the need, to a fifth less (pages of buffers
 * that so few steps do not touch) and an eighth more; twice as many would not fit. `flip`: the
 * pipeline has buffers of its own. */
TEST(the_plan_is_what_the_process_grows_by)
{
    static const struct {
        hpct_optimizer_kind kind;
        bool flip;
    } cases[] = {{HPCT_SGD, false}, {HPCT_ADAM, true}};
    if (!undisturbed())
        skip();
    memory = 260 * MIB;
    for (size_t i = 0; i < 2; i++) {
        hpct_context *context = alone();
        hpct_model *model = cnn(cases[i].kind);
        hpct_dataset *data = made_up(2100, cases[i].flip);
        hpct_batch_choice choice;
        assert_int_equal(
            hpct_batch_choose(context, model, &(hpct_batch_options){.data = data}, &choice),
            HPCT_OK);
        assert_int_equal(choice.batch_size, 1024);
        assert_true(choice.need <= choice.memory && choice.memory == memory - memory / 16);
        assert_non_null(strstr(choice.line, "batch size 1024 takes "));
        assert_non_null(strstr(choice.line, "243.8 MiB that a rank may take (cgroup, shared by 2 "
                                            "ranks); 2048 would take 3"));
        FILE *peak = fopen("/proc/self/clear_refs", "w");
        assert_non_null(peak);
        fputs("5", peak); /* VmHWM begins anew */
        fclose(peak);
        size_t before = of_process("VmRSS");
        hpct_fit_options options = {.batch_size = choice.batch_size,
                                    .steps_per_epoch = cases[i].flip ? 3 : 1};
        assert_int_equal(hpct_fit(context, model, data, &options, NULL), HPCT_OK);
        double grown = (double) (of_process("VmHWM") - before);
        print_message("need %.1f MiB, grown %.1f MiB\n", (double) choice.need / MIB, grown / MIB);
        assert_true(grown > 0.8 * (double) choice.need && grown < 1.125 * (double) choice.need);
        hpct_dataset_free(data);
        hpct_model_free(model);
        hpct_context_close(context);
    }
}

TEST(batch_is_limited_by_the_data)
{
    memory = 64 << 20;
    hpct_context *context = alone();
    hpct_model *model = cnn(HPCT_SGD);
    hpct_dataset *data = made_up(100, false);
    hpct_batch_choice choice;
    hpct_batch_options options = {.data = data};
    assert_int_equal(hpct_batch_choose(context, model, &options, &choice), HPCT_OK);
    assert_int_equal(choice.batch_size, 64);
    assert_non_null(strstr(choice.line, "more is not in a rank's share"));
    hpct_dataset_free(data);
    options.data = data = made_up(3000, false);
    assert_int_equal(hpct_batch_choose(context, model, &options, &choice), HPCT_OK);
    int training = choice.batch_size;
    options.evaluate = true; /* without gradients */
    assert_int_equal(hpct_batch_choose(context, model, &options, &choice), HPCT_OK);
    assert_true(choice.batch_size > training);
    hpct_dataset_free(data);
    hpct_model_free(model);
    hpct_context_close(context);
}

/* A row of numbers for each sample, in the model and beside it, for training and for evaluation. */
TEST(rows_of_targets_are_counted)
{
    enum { SAMPLES = 1024, OUTPUTS = 10 };
    memory = 260 * MIB;
    hpct_context *context = alone();
    hpct_model *model = cnn(HPCT_SGD);
    hpct_optimizer optimizer = {.learning_rate = 1e-3};
    assert_int_equal(hpct_model_compile(model, HPCT_BINARY_CROSSENTROPY_FROM_LOGITS, &optimizer),
                     HPCT_OK);
    hpct_dataset *data = made_up(SAMPLES, false);
    hpct_batch_choice choice;
    for (int evaluate = 0; evaluate < 2; evaluate++) {
        size_t need[2];
        for (int rows = 0; rows < 2; rows++) {
            hpct_batch_options options = {.data = data, .evaluate = evaluate};
            if (rows)
                data->targets = calloc(SAMPLES * OUTPUTS, sizeof *data->targets);
            data->num_targets = rows ? OUTPUTS : 0;
            data->kind = rows ? HPCT_TARGETS_BINARY : HPCT_TARGETS_CLASS;
            assert_int_equal(hpct_batch_choose(context, model, &options, &choice), HPCT_OK);
            assert_int_equal(choice.batch_size, SAMPLES);
            need[rows] = choice.need;
        }
        assert_int_equal(need[1] - need[0], (2 * SAMPLES + 1) * OUTPUTS * sizeof(float));
        free(data->targets);
        data->targets = NULL;
    }
    hpct_dataset_free(data);
    hpct_model_free(model);
    hpct_context_close(context);
}

/* Nothing is trained with a batch that does not fit; the message names one that does. */
TEST(too_large_batches_are_refused)
{
    hpct_context *context = alone();
    hpct_model *model = cnn(HPCT_ADAM);
    hpct_dataset *data = made_up(3000, false);
    hpct_batch_choice choice;
    hpct_bench_result bench;
    hpct_metrics metrics;
    memory = 100 * MIB;
    assert_int_equal(
        hpct_batch_choose(context, model, &(hpct_batch_options){.data = data}, &choice), HPCT_OK);
    char advice[64];
    snprintf(advice, sizeof advice, "at most %d fits", choice.batch_size);
    hpct_fit_options options = {.batch_size = 2000};
    assert_int_equal(hpct_fit(context, model, data, &options, NULL), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "batch size 2000 takes 3"));
    assert_non_null(strstr(hpct_last_error(), "more than the 93.8 MiB that a rank may take"));
    assert_non_null(strstr(hpct_last_error(), "(most activations in backward of layer "));
    assert_non_null(strstr(hpct_last_error(), advice));
    assert_int_equal(strncmp(hpct_last_error(), "batch size 2000 takes", 21), 0);
    options.batch_size = 4096; /* of which there are 3000: both numbers are said */
    assert_int_equal(hpct_fit(context, model, data, &options, NULL), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(),
                           "batch size 4096 of 3000 pictures in all: batch size 3000 takes "));
    hpct_fit_options global = {.global_batch_size = 4096};
    assert_int_equal(hpct_fit(context, model, data, &global, NULL), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(),
                           "global batch size 4096 of 3000 pictures in all: batch size 3000 "));
    options.batch_size = choice.batch_size;
    options.validation = data; /* does not fit in batches of 100 more than of these */
    options.steps_per_epoch = 1;
    if (undisturbed())
        assert_int_equal(hpct_fit(context, model, data, &options, NULL), HPCT_OK);
    assert_int_equal(
        hpct_bench(context, model, &(hpct_bench_options){.batch_size = 2000, .steps = 1}, &bench),
        HPCT_ERR_CONFIG);
    assert_int_equal(hpct_evaluate(context, model, data, 2900, &metrics), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_evaluate(context, model, data, 5000, &metrics), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "batch size 5000 of 3000 pictures in all: batch "));
    memory = 1 * MIB;
    hpct_model *other = cnn(HPCT_ADAM);
    assert_int_equal(
        hpct_batch_choose(context, other, &(hpct_batch_options){.data = data}, &choice),
        HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "not even 1 fits"));
    hpct_dataset_free(data);
    hpct_model_free(model);
    hpct_model_free(other);
    hpct_context_close(context);
}
