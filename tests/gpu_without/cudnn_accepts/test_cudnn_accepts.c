/* cuDNN itself judges every graph that a training step of each model asks for, in each precision,
 * on described devices: whether it has engines. With --write as the only argument: the tables of
 * doc/gpu-graphs.md on stdout. Two devices; with HPC_TRAIN_LONG all, with HPC_TRAIN_SHORT two
 * models. */
#include "base/status.h"
#include "nn/backend/cuda/dnn_graph.h"
#include "tests/gpu_without/cudnn_accepts/code.h"
#include "tests/gpu_without/cudnn_accepts/table.h"
#include "tests/gpu_without/libraries/described_gpu.h"
#include "tests/unit/unit.h"

static bool is_short(void)
{
    return getenv("HPC_TRAIN_SHORT") != NULL;
}

static bool all_devices; /* with HPC_TRAIN_LONG, or to write */

static bool takes_device(const char *name)
{
    return all_devices || strcmp(name, "sm_80_a100") == 0 || strcmp(name, "sm_90_h100") == 0;
}

static bool takes_model(const char *name)
{
    return !is_short() || strcmp(name, "mnist-convnet") == 0 || strcmp(name, "resnet50v2") == 0;
}

static bool lacks(int device, int precision)
{
    return precision == HPCT_BF16 && accepts_about[device].major < 8;
}

static void describe(int device)
{
    accepts_about[device] =
        (accepts_device){.major = hpct_cuda_gpu.major, .minor = hpct_cuda_gpu.minor};
    accepts_device *about = &accepts_about[device];
    about->engines = accepts_count_code("libcudnn_engines_precompiled", about->major, about->minor);
    about->others = accepts_count_code("libcudnn_cnn", about->major, about->minor);
}

/* All models in all precisions; a precision that the device lacks is an error of configuration. */
static hpct_status ask_device(int device)
{
    hpct_cuda_choices *choices = NULL;
    HPCT_TRY(hpct_cuda_choices_open(&choices, "", "a device"));
    hpct_status status = described_gpu_open(accepts_devices[device], choices);
    if (status == HPCT_OK)
        describe(device);
    for (int m = 0; m < MODELS_ALL && status == HPCT_OK; m++) {
        for (int p = 0; p < HPCT_PRECISIONS && status == HPCT_OK; p++) {
            if (!takes_model(accepts_models[m]))
                continue;
            status = accepts_ask(device, m, (hpct_precision) p);
            if (lacks(device, p))
                status = status == HPCT_ERR_CONFIG ? HPCT_OK : HPCT_ERR_INTERNAL;
        }
    }
    hpct_cuda_choices_close(choices);
    described_gpu_close();
    return status;
}

static hpct_status ask_all(void)
{
    for (int d = 0; d < DEVICES_ALL; d++) {
        if (takes_device(accepts_devices[d]))
            HPCT_TRY(ask_device(d));
    }
    return HPCT_OK;
}

/* Graphs of these that are refused, and left to direct kernels. */
static int report(int device, hpct_precision precision)
{
    int asked = 0, found = 0, last = 0;
    for (int i = 0; i < accepts_num_graphs; i++) {
        const accepts_graph *g = &accepts_graphs[i];
        const accepts_answer *a = &g->answer[device];
        if (g->precision != precision || a->models == 0)
            continue;
        asked++;
        found += a->accepted;
        last += !a->accepted && accepts_is_last(g);
        if (!a->accepted)
            print_message("# %s, %s: refused: %s, %s\n", accepts_devices[device],
                          hpct_precision_name(precision), accepts_kind_names[g->kind], g->shape);
    }
    print_message("# %s, %s: engines for %d of %d graphs\n", accepts_devices[device],
                  hpct_precision_name(precision), found, asked);
    assert_true(asked > 50 || lacks(device, (int) precision));
    return last;
}

/* None is left to the direct kernels, which are slow. */
static void every_graph_has_engines(void **state)
{
    int last = 0;
    if (ask_all() != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    for (int d = 0; d < DEVICES_ALL; d++) {
        for (int p = 0; p < HPCT_PRECISIONS && takes_device(accepts_devices[d]); p++)
            last += report(d, (hpct_precision) p);
    }
    assert_int_equal(last, 0);
}

/* Of each kind there are graphs, and engines are named for them. */
static void every_kind_is_asked(void **state)
{
    int kinds[ACCEPTS_KINDS] = {0}, uneven = 0;
    for (int i = 0; i < accepts_num_graphs; i++) {
        const accepts_graph *g = &accepts_graphs[i];
        kinds[g->kind]++;
        uneven += g->uneven;
        for (int d = 0; d < DEVICES_ALL; d++)
            assert_true(g->answer[d].accepted == (g->answer[d].engines.count > 0));
    }
    for (int k = 0; k < ACCEPTS_KINDS; k++)
        assert_true(kinds[k] > 0);
    assert_true(uneven > 0 || is_short());
}

/* A gradient in fp32 of a kernel from operands in bf16: engines for it are compiled at run time. */
static hpct_status ask_refused(hpct_dnn_plan **plan)
{
    const int64_t image[] = {64, 32, 16, 16}, kernel[] = {32, 32, 3, 3};
    const hpct_dnn_window window = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};
    hpct_dnn_graph *graph = NULL;
    HPCT_TRY(hpct_dnn_graph_new(&graph));
    int src = hpct_dnn_tensor(graph, CUDNN_DATA_BFLOAT16, image, false),
        diff = hpct_dnn_tensor(graph, CUDNN_DATA_FLOAT, kernel, false),
        dst = hpct_dnn_tensor(graph, CUDNN_DATA_BFLOAT16, image, false);
    hpct_dnn_convolution(graph, HPCT_DNN_WEIGHTS, &window, src, diff, dst);
    char why[HPCT_DNN_WHY];
    return hpct_dnn_find(plan, graph, why);
}

static void a_refusal_is_heard(void **state)
{
    const int device = 5; /* an H100 */
    hpct_cuda_choices *choices = NULL;
    hpct_dnn_plan *plan = NULL;
    assert_int_equal(hpct_cuda_choices_open(&choices, "", "a device"), HPCT_OK);
    assert_int_equal(described_gpu_open(accepts_devices[device], choices), HPCT_OK);
    accepts_forget();
    accepts_listen(device, 0);
    assert_int_equal(ask_refused(&plan), HPCT_OK);
    assert_null(plan);
    assert_int_equal(accepts_num_graphs, 1);
    const accepts_graph *g = &accepts_graphs[0];
    assert_true(g->kind == ACCEPTS_WEIGHTS && g->precision == HPCT_BF16 && accepts_is_last(g));
    assert_true(g->answer[device].models == 1 && !g->answer[device].accepted);
    assert_string_equal(hpct_cuda_choices_find(choices, g->key),
                        "none"); /* kept: not asked again */
    assert_true(g->answer[device].compiled.count > 0 && g->answer[device].engines.count == 0);
    hpct_cuda_choices_close(choices);
    described_gpu_close();
}

/* ---- doc/gpu-graphs.md ---- */

static char *read_document(void)
{
    const char *folder = getenv("top_srcdir");
    char path[4096];
    snprintf(path, sizeof path, "%s/doc/gpu-graphs.md", folder != NULL ? folder : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = NULL;
    size_t size = 0;
    assert_true(getdelim(&text, &size, '\0', file) > 0);
    fclose(file);
    return text;
}

/* What the function writes. */
static char *written(void (*write)(FILE *out))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    write(out);
    fclose(out);
    return text;
}

static bool is_of_this_cudnn(const char *document)
{
    char version[32], title[64];
    accepts_version(version, sizeof version);
    snprintf(title, sizeof title, "with cuDNN %s\n", version);
    return strstr(document, title) != NULL;
}

/* All tables, or the lines of two devices. */
static void the_document_has_these_tables(void **state)
{
    char *document = read_document();
    if (is_short() || !is_of_this_cudnn(document)) {
        print_message("# doc/gpu-graphs.md is of another cuDNN, or of more models\n");
        free(document);
        skip();
    }
    char *tables = written(accepts_write), *lines = written(accepts_write_kinds), *rest = lines;
    if (all_devices && strstr(document, tables) == NULL)
        fail_msg("doc/gpu-graphs.md has other tables: tests/gpu_without/cudnn_accepts/write");
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (strstr(document, line) == NULL)
            fail_msg("doc/gpu-graphs.md has no line \"%s\": tests/gpu_without/cudnn_accepts/write",
                     line);
    }
    free(lines);
    free(tables);
    free(document);
}

/* ---- machine code ---- */

static void cubins_are_counted(void **state)
{
    const struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
        struct {
            uint16_t kind, version;
            uint32_t header_bytes;
            uint64_t bytes;
            uint32_t unused[3], capability;
        } entry[3];
    } fat = {0xba55ed50,
             1,
             16,
             96,
             {{2, 0x101, 32, 0, {0}, 80}, {2, 0x101, 32, 0, {0}, 86}, {1, 0x101, 32, 0, {0}, 80}}};
    assert_int_equal(accepts_count_cubins(&fat, sizeof fat, 8, 0), 1);
    assert_int_equal(accepts_count_cubins(&fat, sizeof fat, 8, 9), 2);
    assert_int_equal(accepts_count_cubins(&fat, sizeof fat, 9, 0), 0);
    for (size_t cut = 0; cut < sizeof fat; cut++) /* an entry that is cut does not count */
        assert_int_equal(accepts_count_cubins(&fat, cut, 8, 9), 0);
}

static void skips(void **state)
{
    print_message("# cuDNN takes descriptions of devices from 9.11 on\n");
    skip();
}

static int write_tables(void)
{
    if (ask_all() != HPCT_OK) {
        fprintf(stderr, "%s\n", hpct_last_error());
        return 1;
    }
    accepts_write(stdout);
    return fflush(stdout) == 0 ? 0 : 74;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest none[] = {cmocka_unit_test(skips)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_graph_has_engines),
        cmocka_unit_test(every_kind_is_asked),
        cmocka_unit_test(the_document_has_these_tables),
        cmocka_unit_test(a_refusal_is_heard),
        cmocka_unit_test(cubins_are_counted),
    };
    bool writes = argc == 2 && strcmp(argv[1], "--write") == 0;
    all_devices = writes || getenv("HPC_TRAIN_LONG") != NULL;
    if (writes)
        return write_tables();
    return described_gpu_supported() ? cmocka_run_group_tests(tests, NULL, NULL)
                                     : cmocka_run_group_tests(none, NULL, NULL);
}
