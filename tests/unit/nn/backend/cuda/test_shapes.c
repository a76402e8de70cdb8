/* What the GPU module computes on the host: paddings, kernels' layouts, the direct convolution's
 * sums (as its kernels have them), and the file of choices. */
#include "nn/backend/cuda/choices.h"
#include "nn/backend/cuda/direct_shape.h"
#include "nn/backend/cuda/transpose.h"
#include "nn/backend/cuda/window.h"
#include "nn/backend/ref/kernels.h"
#include "tests/unit/nn/nn_case.h"
#include "tests/unit/unit.h"

#include "nn/graph/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The direct convolution's sums, from the file that its kernels are made of. */
#define HPCT_ELEMENT static inline
#define HPCT_LOAD(x) (x)
#define HPCT_NAME(name) name
#define HPCT_VALUE float
#include "nn/backend/cuda/direct_body.h"

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_graph_uniform(7, 1, draws++) * (float) (high - low + 1));
}

static float *random_floats(size_t count)
{
    float *floats = malloc(count * sizeof *floats);
    assert_non_null(floats);
    for (size_t i = 0; i < count; i++)
        floats[i] = 2 * hpct_graph_uniform(7, 2, draws++) - 1;
    return floats;
}

static int windows_that_fit(int in, int before, int after, int reach, int stride)
{
    int room = in + before + after - reach;
    return room < 0 ? 0 : room / stride + 1;
}

/* Whatever padding is given: so many windows fit, and it is `before` where that is possible. */
TEST(test_padding_gives_the_result_its_size)
{
    for (int trial = 0; trial < 20000; trial++) {
        int in = pick(1, 30), reach = pick(1, 9), stride = pick(1, 4), before = pick(0, reach - 1),
            given = pick(0, reach - 1), out = windows_that_fit(in, before, given, reach, stride);
        if (out < 1)
            continue;
        int after = hpct_cuda_window_pad_after(in, out, reach, stride, before);
        assert_true(after >= 0);
        assert_int_equal(windows_that_fit(in, before, after, reach, stride), out);
        if (windows_that_fit(in, before, before, reach, stride) == out)
            assert_int_equal(after, before);
        else
            assert_true(after <= given);
    }
}

TEST(test_padding_of_known_layers)
{
    assert_int_equal(hpct_cuda_window_pad_after(224, 112, 7, 2, 3), 3); /* ResNet's first */
    assert_int_equal(hpct_cuda_window_pad_after(224, 112, 3, 2, 0), 1); /* `same`, stride 2 */
    assert_int_equal(hpct_cuda_window_pad_after(28, 26, 3, 1, 0), 0);   /* `valid` */
    assert_int_equal(hpct_cuda_window_pad_after(28, 28, 4, 1, 1), 2);   /* `same`, even kernel */
    assert_int_equal(hpct_cuda_window_pad_after(10, 2, 3, 1, 0), -1);   /* windows are missing */
}

TEST(test_padded_pictures_need_no_padding)
{
    hpct_graph_window w = nn_dilated_window((int[]){9, 12, 3}, 5, (int[]){4, 3}, (int[]){2, 3},
                                            (int[]){1, 2}, 1, true);
    hpct_graph_window padded = hpct_cuda_window_with_padding(&w);
    assert_int_equal(padded.pad_top, 0);
    assert_int_equal(padded.pad_left, 0);
    assert_int_equal(windows_that_fit(padded.in_h, 0, 0, 4, 2), w.out_h);
    assert_int_equal(windows_that_fit(padded.in_w, 0, 0, 5, 3), w.out_w);
}

TEST(test_kernels_are_turned)
{
    size_t in = 70, out = 45;
    float *keras = random_floats(in * out), *arena = malloc(in * out * sizeof *arena),
          *back = malloc(in * out * sizeof *back);
    hpct_cuda_transpose(in, out, keras, arena);
    hpct_cuda_transpose(out, in, arena, back);
    assert_true(arena[3 * in + 17] == keras[17 * out + 3]);
    assert_memory_equal(back, keras, in * out * sizeof *keras);
    free(keras);
    free(arena);
    free(back);
}

static hpct_graph_window pick_window(void)
{
    int groups = pick(1, 3), in[] = {pick(1, 9), pick(1, 9), groups * pick(1, 3)};
    int kernel[] = {pick(1, 4), pick(1, 4)}, strides[] = {pick(1, 3), pick(1, 3)};
    int dilation[] = {pick(1, 2), pick(1, 2)};
    bool fits = hpct_graph_window_reach(kernel[0], dilation[0]) <= in[0] &&
                hpct_graph_window_reach(kernel[1], dilation[1]) <= in[1];
    hpct_graph_window w = nn_dilated_window(in, groups * pick(1, 3), kernel, strides, dilation,
                                            groups, !fits || pick(0, 1) == 0);
    if (pick(0, 3) == 0) {
        w.first_cell = pick(0, w.out_h * w.out_w - 1);
        w.cells = pick(1, w.out_h * w.out_w - w.first_cell);
    }
    return w;
}

static void check_direct(const hpct_graph_window *w, int n)
{
    const hpct_cuda_direct d = hpct_cuda_window_direct(w, n);
    size_t ins = (size_t) (w->in_c / w->groups), in = (size_t) (w->kernel_h * w->kernel_w) * ins,
           outs = (size_t) w->out_c;
    size_t src_count = (size_t) (n * w->in_h * w->in_w * w->in_c),
           dst_count = (size_t) (n * d.cells) * outs;
    float *src = random_floats(src_count), *keras = random_floats(in * outs),
          *diff_dst = random_floats(dst_count), *kernel = random_floats(in * outs);
    float *dst = random_floats(dst_count), *diff_src = random_floats(src_count),
          *diff_keras = random_floats(in * outs), *diff_kernel = random_floats(in * outs);
    hpct_cuda_transpose(in, outs, keras, kernel);
    hpct_ref_conv2d_forward(w, n, src, keras, NULL, dst);
    hpct_ref_conv2d_backward_data(w, n, diff_dst, keras, diff_src);
    hpct_ref_conv2d_backward_weights(w, n, src, diff_dst, diff_keras, NULL);
    hpct_cuda_transpose(in, outs, diff_keras, diff_kernel);
    for (size_t i = 0; i < dst_count; i++) {
        int o = (int) (i % outs), cell = (int) (i / outs) % d.cells, s = (int) (i / outs) / d.cells;
        assert_true(fabsf(forward_at(&d, src, kernel, s, cell, o) - dst[i]) < 1e-4f);
    }
    for (size_t i = 0; i < src_count; i++) {
        int c = (int) i % w->in_c, rest = (int) i / w->in_c, x = rest % w->in_w,
            y = rest / w->in_w % w->in_h, s = rest / w->in_w / w->in_h;
        assert_true(fabsf(data_at(&d, diff_dst, kernel, s, y, x, c) - diff_src[i]) < 1e-4f);
    }
    for (size_t i = 0; i < in * outs; i++) {
        int c = (int) (i % ins), rest = (int) (i / ins), v = rest % w->kernel_w,
            u = rest / w->kernel_w % w->kernel_h, o = rest / w->kernel_w / w->kernel_h;
        size_t cells = (size_t) (n * d.cells), half = cells / 2;
        assert_int_equal(hpct_cuda_direct_kernel_offset(&d, o, u, v, c), i);
        float sum = weights_at(&d, src, diff_dst, o, u, v, c, 0, half, 2) +
                    weights_at(&d, src, diff_dst, o, u, v, c, 1, half, 2) +
                    weights_at(&d, src, diff_dst, o, u, v, c, half, cells, 1);
        assert_true(fabsf(sum - diff_kernel[i]) < 1e-4f);
    }
    float *all[] = {src, keras, diff_dst, kernel, dst, diff_src, diff_keras, diff_kernel};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

TEST(test_direct_sums_are_the_reference)
{
    for (int trial = 0; trial < 300; trial++) {
        hpct_graph_window w = pick_window();
        check_direct(&w, pick(1, 3));
    }
}

/* ---- choices ---- */

static char folder[] = "/tmp/hpct-choices.XXXXXX", path[256];

static int make_folder(void **state)
{
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static hpct_cuda_choices *opened(const char *identity)
{
    hpct_cuda_choices *choices = NULL;
    assert_int_equal(hpct_cuda_choices_open(&choices, path, identity), HPCT_OK);
    return choices;
}

static void write_all(hpct_cuda_choices *choices)
{
    assert_int_equal(hpct_cuda_choices_write(choices), HPCT_OK);
}

/* A new file, with one choice in it. */
static void begin(const char *name)
{
    snprintf(path, sizeof path, "%s/%s/deep/er", folder, name);
    hpct_cuda_choices *choices = opened("device 1");
    assert_int_equal(hpct_cuda_choices_keep(choices, "a conv", "e1 k2=3"), HPCT_OK);
    assert_int_not_equal(access(path, F_OK), 0); /* not each by itself */
    write_all(choices);
    hpct_cuda_choices_close(choices);
}

static bool knows(const char *identity, const char *key, const char *value)
{
    hpct_cuda_choices *choices = opened(identity);
    const char *found = hpct_cuda_choices_find(choices, key);
    bool same = found != NULL && strcmp(found, value) == 0;
    hpct_cuda_choices_close(choices);
    return same;
}

TEST(test_choices_are_kept)
{
    begin("kept");
    assert_true(knows("device 1", "a conv", "e1 k2=3"));
    hpct_cuda_choices *choices = opened("device 1");
    assert_null(hpct_cuda_choices_find(choices, "another"));
    for (int i = 0; i < 100; i++) {
        char key[32];
        snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(hpct_cuda_choices_keep(choices, key, key), HPCT_OK);
    }
    assert_int_equal(hpct_cuda_choices_keep(choices, "a conv", "e2"), HPCT_OK);
    write_all(choices);
    hpct_cuda_choices_close(choices);
    assert_true(knows("device 1", "a conv", "e2"));
    assert_true(knows("device 1", "key 99", "key 99"));
}

TEST(test_choices_of_two_processes_meet)
{
    begin("two");
    hpct_cuda_choices *one = opened("device 1"), *other = opened("device 1");
    assert_int_equal(hpct_cuda_choices_keep(one, "one", "1"), HPCT_OK);
    assert_int_equal(hpct_cuda_choices_keep(other, "other", "2"), HPCT_OK);
    write_all(one);
    write_all(other);
    assert_string_equal(hpct_cuda_choices_find(other, "one"), "1");
    hpct_cuda_choices_close(one);
    hpct_cuda_choices_close(other);
    assert_true(knows("device 1", "one", "1"));
    assert_true(knows("device 1", "other", "2"));
}

TEST(test_foreign_choices_are_ignored_and_replaced)
{
    begin("foreign");
    assert_false(knows("device 2", "a conv", "e1 k2=3"));
    hpct_cuda_choices *choices = opened("device 2");
    assert_int_equal(hpct_cuda_choices_keep(choices, "b", "2"), HPCT_OK);
    write_all(choices);
    hpct_cuda_choices_close(choices);
    assert_true(knows("device 2", "b", "2"));
    assert_false(knows("device 1", "a conv", "e1 k2=3"));
}

/* Every byte matters: whatever one is changed, and wherever the file ends, nothing of it is taken.
 */
TEST(test_damaged_choices_are_ignored)
{
    begin("damaged");
    char text[512] = "";
    FILE *file = fopen(path, "rb");
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_within(size, 30, sizeof text - 1);
    for (size_t at = 0; at < size; at++) {
        for (int cut = 0; cut < 2; cut++) {
            char other[sizeof text];
            memcpy(other, text, sizeof text);
            other[at] ^= 4;
            file = fopen(path, "wb");
            fwrite(cut ? text : other, 1, cut ? at : size, file);
            fclose(file);
            assert_false(knows("device 1", "a conv", "e1 k2=3"));
        }
    }
}

TEST(test_choices_stay_in_memory_where_the_disk_refuses)
{
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *file = fopen(path, "wb");
    fclose(file);
    snprintf(path, sizeof path, "%s/file/below", folder);
    hpct_cuda_choices *choices = opened("device 1");
    assert_int_equal(hpct_cuda_choices_keep(choices, "a", "1"), HPCT_OK);
    assert_int_equal(hpct_cuda_choices_write(choices), HPCT_ERR_IO);
    write_all(choices); /* which does not try again */
    assert_string_equal(hpct_cuda_choices_find(choices, "a"), "1");
    hpct_cuda_choices_close(choices);
    path[0] = '\0';
    choices = opened("device 1");
    assert_int_equal(hpct_cuda_choices_keep(choices, "a", "1"), HPCT_OK);
    assert_string_equal(hpct_cuda_choices_find(choices, "a"), "1");
    assert_int_equal(hpct_cuda_choices_keep(choices, "a\tb", "1"), HPCT_ERR_INTERNAL);
    hpct_cuda_choices_close(choices);
}

TEST(test_choices_lie_in_the_cache)
{
    char one[128], other[128];
    setenv("XDG_CACHE_HOME", "/somewhere", 1);
    assert_true(hpct_cuda_choices_path(one, sizeof one, "device 1"));
    assert_true(hpct_cuda_choices_path(other, sizeof other, "device 2"));
    assert_int_equal(strncmp(one, "/somewhere/hpc-train/choices-", 29), 0);
    assert_string_not_equal(one, other);
    setenv("XDG_CACHE_HOME", "relative", 1); /* is to be ignored */
    setenv("HOME", "/home/me", 1);
    assert_true(hpct_cuda_choices_path(one, sizeof one, "device 1"));
    assert_int_equal(strncmp(one, "/home/me/.cache/hpc-train/choices-", 34), 0);
    unsetenv("HOME");
    assert_false(hpct_cuda_choices_path(one, sizeof one, "device 1"));
    assert_string_equal(one, "");
}

int main(void)
{
    return unit_run(make_folder, remove_folder);
}
