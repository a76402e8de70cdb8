/* Checkpoints in a folder: what is saved is loaded; damage is named and the one before it taken;
 * the newest and the best stay. */
#include "agent/checkpoint/store.h"
#include "tests/unit/agent/checkpoint/folder.h"

#include <fcntl.h>
#include <hpctrain/checkpoint.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];
static hpct_ckpt_store *store;

static int setup(void **state)
{
    folder_make(dir);
    assert_int_equal(hpct_ckpt_store_open(&store, dir, 2, folder_note, NULL), HPCT_OK);
    folder_notes[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    hpct_ckpt_store_close(store);
    store = NULL;
    folder_remove(dir);
    return 0;
}

static void save(int64_t step, int value, bool best)
{
    if (folder_save(store, dir, step, value, best) != HPCT_OK)
        fail_msg("step %d: %s", (int) step, hpct_last_error());
}

static char *in(const char *name) /* "DIR/name" */
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void assert_error(const char *words)
{
    if (strstr(hpct_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, hpct_last_error());
}

/* ---- tensors ---- */

TEST_WITH(gives_back_all_types_and_shapes, setup, teardown)
{
    float f32[] = {1.5f, -2.0f, 3.25f};
    double f64[] = {1e300, -0.0};
    int64_t i64[] = {INT64_MIN, 7, INT64_MAX, 0};
    uint64_t u64 = UINT64_MAX;
    unsigned char u8[] = {0, 128, 255};
    const hpct_ckpt_store_tensor tensors[] = {
        {"bytes", HPCT_CKPT_STORE_U8, 1, {3}, 0, 0, u8},
        {"weights/f", HPCT_CKPT_STORE_F32, 3, {1, 3, 1}, 0, 0, f32},
        {"empty", HPCT_CKPT_STORE_F32, 2, {0, 3}, 0, 0, NULL},
        {"double", HPCT_CKPT_STORE_F64, 1, {2}, 0, 0, f64},
        {"whole \"numbers\"\xc3\xa9", HPCT_CKPT_STORE_I64, 2, {2, 2}, 0, 0, i64},
        {"counter", HPCT_CKPT_STORE_U64, 0, {0}, 0, 0, &u64},
    };
    hpct_ckpt_store_file file;
    hpct_ckpt *c;
    assert_int_equal(hpct_ckpt_store_write_part(dir, 0, 0, tensors, 6, &file), HPCT_OK);
    assert_string_equal(file.name, "part-00000.safetensors");
    assert_int_equal(hpct_ckpt_store_commit(store, 0, "any text", &file, 1, false), HPCT_OK);
    assert_int_equal(hpct_ckpt_store_load(&c, dir, folder_note, NULL), HPCT_OK);
    assert_string_equal(hpct_ckpt_state(c), "any text");
    assert_int_equal(hpct_ckpt_step(c), 0);
    assert_int_equal(hpct_ckpt_count(c), 6);
    for (size_t i = 0; i < 6; i++) {
        unsigned char got[64];
        size_t bytes = (size_t[]){3, 12, 0, 16, 32, 8}[i];
        assert_int_equal(hpct_ckpt_read(c, &tensors[i], got), HPCT_OK);
        assert_true(bytes == 0 || memcmp(got, tensors[i].data, bytes) == 0);
        hpct_ckpt_store_tensor found;
        assert_true(hpct_ckpt_find(c, tensors[i].name, &found));
        assert_int_equal(found.type, tensors[i].type);
        assert_int_equal(found.rank, tensors[i].rank);
        assert_memory_equal(found.shape, tensors[i].shape, (size_t) found.rank * 8);
    }
    assert_false(hpct_ckpt_find(c, "other", NULL));
    hpct_ckpt_free(c);
}

TEST_WITH(checks_what_is_asked_for, setup, teardown)
{
    static float data[16];
    hpct_ckpt *c;
    save(1, 1, false);
    assert_int_equal(hpct_ckpt_store_load(&c, dir, NULL, NULL), HPCT_OK);
    const struct {
        hpct_ckpt_store_tensor want;
        const char *words;
    } cases[] = {
        {{"weights/x", HPCT_CKPT_STORE_F32, 2, {5, 3}, 0, 0, NULL}, "no tensor \"weights/x\""},
        {{"weights/w", HPCT_CKPT_STORE_I64, 2, {5, 3}, 0, 0, NULL}, "is F32, not I64"},
        {{"weights/w", HPCT_CKPT_STORE_F32, 1, {15}, 0, 0, NULL}, "another shape"},
        {{"weights/w", HPCT_CKPT_STORE_F32, 2, {3, 5}, 0, 0, NULL}, "another shape"},
        {{"weights/w", HPCT_CKPT_STORE_F32, 2, {2, 3}, 0, 4, NULL}, "another shape"},
        {{"weights/w", HPCT_CKPT_STORE_F32, 2, {2, 3}, 4, 5, NULL}, "another shape"},
        {{"weights/w", HPCT_CKPT_STORE_F32, 2, {2, 3}, -1, 5, NULL}, "another shape"},
        {{"weights/w", HPCT_CKPT_STORE_F32, 2, {-1, 3}, 2, 5, NULL}, "another shape"},
        {{"weights/w", HPCT_CKPT_STORE_F32, 2, {INT64_MAX, 3}, 2, 5, NULL}, "another shape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(hpct_ckpt_read(c, &cases[i].want, data), HPCT_ERR_DATA);
        assert_error(cases[i].words);
    }
    hpct_ckpt_free(c);
}

/* Writes a tensor of 6 rows of 2 numbers in slices, one in each part; the load's status. */
static hpct_status join(const int64_t slices[][3], int count, hpct_ckpt **out)
{
    hpct_ckpt_store_file files[8];
    double data[12];
    for (int i = 0; i < 12; i++)
        data[i] = i;
    for (int i = 0; i < count; i++) {
        hpct_ckpt_store_tensor t = {
            "w",          HPCT_CKPT_STORE_F64,    2, {slices[i][1] - slices[i][0], 2}, slices[i][0],
            slices[i][2], data + 2 * slices[i][0]};
        assert_int_equal(hpct_ckpt_store_write_part(dir, 5, i, &t, 1, &files[i]), HPCT_OK);
    }
    assert_int_equal(hpct_ckpt_store_commit(store, 5, "", files, (size_t) count, false), HPCT_OK);
    folder_notes[0] = '\0';
    return hpct_ckpt_store_load(out, dir, folder_note, NULL);
}

TEST_WITH(joins_slices_and_reads_any_rows, setup, teardown)
{
    hpct_ckpt *c;
    static const int64_t slices[][3] = {{3, 6, 6}, {0, 1, 6}, {1, 1, 6}, {1, 3, 6}, {6, 6, 6}};
    assert_int_equal(join(slices, 5, &c), HPCT_OK);
    assert_int_equal(hpct_ckpt_count(c), 1);
    hpct_ckpt_store_tensor whole;
    hpct_ckpt_tensor(c, 0, &whole);
    assert_int_equal(whole.shape[0], 6);
    assert_int_equal(whole.of, 0);
    for (int64_t begin = 0; begin <= 6; begin++) {
        for (int64_t end = begin; end <= 6; end++) {
            double got[12] = {-1};
            hpct_ckpt_store_tensor want = {"w", HPCT_CKPT_STORE_F64, 2, {end - begin, 2}, begin, 6,
                                           NULL};
            assert_int_equal(hpct_ckpt_read(c, &want, got), HPCT_OK);
            for (int64_t i = 0; i < 2 * (end - begin); i++)
                assert_true(got[i] == (double) (2 * begin + i));
        }
    }
    hpct_ckpt_free(c);
}

TEST_WITH(refuses_gaps_overlaps_and_doubles, setup, teardown)
{
    static const struct {
        int64_t slices[3][3];
        int count;
        const char *words;
    } cases[] = {
        {{{0, 2, 6}, {3, 6, 6}}, 2, "rows from 2 on are missing"},
        {{{0, 2, 6}, {2, 5, 6}}, 2, "rows from 5 on are missing"},
        {{{1, 6, 6}}, 1, "rows from 0 on are missing"},
        {{{0, 4, 6}, {3, 6, 6}}, 2, "rows from 3 on are there twice"},
        {{{0, 6, 6}, {0, 6, 6}}, 2, "rows from 0 on are there twice"},
        {{{0, 6, 0}, {0, 6, 0}}, 2, "rows from 0 on are there twice"},
        {{{0, 6, 0}, {0, 6, 6}}, 2, "different types or shapes"},
        {{{0, 4, 6}, {4, 5, 5}}, 2, "different types or shapes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hpct_ckpt *c;
        assert_int_equal(join(cases[i].slices, cases[i].count, &c), HPCT_ERR_DATA);
        assert_error(cases[i].words);
        assert_error("tensor \"w\"");
    }
}

TEST_WITH(refuses_wrong_parts, setup, teardown)
{
    double data[4] = {0};
    hpct_ckpt_store_file file;
    const hpct_ckpt_store_tensor wrong[] = {
        {NULL, HPCT_CKPT_STORE_F64, 1, {4}, 0, 0, data},
        {"", HPCT_CKPT_STORE_F64, 1, {4}, 0, 0, data},
        {"__metadata__", HPCT_CKPT_STORE_F64, 1, {4}, 0, 0, data},
        {"a", (hpct_ckpt_store_type) 17, 1, {4}, 0, 0, data},
        {"a", HPCT_CKPT_STORE_F64, 9, {4}, 0, 0, data},
        {"a", HPCT_CKPT_STORE_F64, -1, {4}, 0, 0, data},
        {"a", HPCT_CKPT_STORE_F64, 1, {-4}, 0, 0, data},
        {"a", HPCT_CKPT_STORE_F64, 3, {INT64_MAX, INT64_MAX, 2}, 0, 0, data},
        {"a", HPCT_CKPT_STORE_F64, 1, {4}, 3, 6, data},
        {"a", HPCT_CKPT_STORE_F64, 1, {4}, -1, 6, data},
        {"a", HPCT_CKPT_STORE_F64, 0, {0}, 0, 6, data},
        {"a", HPCT_CKPT_STORE_F64, 1, {4}, 0, -1, data},
    };
    const hpct_ckpt_store_tensor right = {"a", HPCT_CKPT_STORE_F64, 1, {4}, 0, 0, data};
    const hpct_ckpt_store_tensor twice[] = {right, right};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(hpct_ckpt_store_write_part(dir, 1, 0, &wrong[i], 1, &file),
                         HPCT_ERR_USAGE);
    assert_int_equal(hpct_ckpt_store_write_part(dir, 1, 0, twice, 2, &file), HPCT_ERR_USAGE);
    assert_int_equal(hpct_ckpt_store_write_part(dir, -1, 0, &right, 1, &file), HPCT_ERR_USAGE);
    assert_int_equal(
        hpct_ckpt_store_write_part(dir, HPCT_CKPT_STORE_MAX_STEP + 1, 0, &right, 1, &file),
        HPCT_ERR_USAGE);
    assert_int_equal(hpct_ckpt_store_write_part(dir, 1, -1, &right, 1, &file), HPCT_ERR_USAGE);
    assert_int_equal(hpct_ckpt_store_write_part(dir, 1, 65536, &right, 1, &file), HPCT_ERR_USAGE);
    assert_int_equal(hpct_ckpt_store_write_part(in("none"), 1, 0, &right, 1, &file), HPCT_ERR_IO);
    assert_error("all nodes share");
    assert_int_equal(hpct_ckpt_store_write_part(dir, 1, 0, &right, 1, &file), HPCT_OK);
    hpct_ckpt_store_file other = file;
    other.bytes++;
    assert_int_equal(hpct_ckpt_store_commit(store, 1, "", &other, 1, false), HPCT_ERR_IO);
    other = file;
    other.name[0] = 'q';
    assert_int_equal(hpct_ckpt_store_commit(store, 1, "", &other, 1, false), HPCT_ERR_IO);
    assert_error("all nodes share");
    strcpy(other.name, "../x");
    assert_int_equal(hpct_ckpt_store_commit(store, 1, "", &other, 1, false), HPCT_ERR_USAGE);
    memset(other.name, 'x', sizeof other.name);
    assert_int_equal(hpct_ckpt_store_commit(store, 1, "", &other, 1, false), HPCT_ERR_USAGE);
    assert_int_equal(folder_load(dir, NULL), -HPCT_ERR_NO_INPUT);
}

/* ---- which one ---- */

TEST_WITH(keeps_the_newest_and_the_best, setup, teardown)
{
    int64_t step;
    for (int i = 1; i <= 6; i++)
        save(10 * i, i, i == 2);
    assert_int_equal(folder_load(dir, &step), 6);
    assert_int_equal(step, 60);
    assert_int_equal(folder_count(dir, "step-"), 3);
    assert_true(folder_has(dir, "step-0000000020/manifest.json"));
    assert_true(folder_has(dir, "step-0000000050/manifest.json"));
    save(70, 7, true);
    assert_false(folder_has(dir, "step-0000000020"));
    assert_int_equal(folder_count(dir, "step-"), 2);
}

/* The best one is older than the newest: the oldest stays, and the others go. */
TEST_WITH(with_a_damaged_best_file_the_oldest_stays, setup, teardown)
{
    static const char *const damaged[] = {"",
                                          "{",
                                          "null",
                                          "[]",
                                          "{\"format\":1}",
                                          "{\"format\":1,\"step\":10,\"sequence\":1}",
                                          "\xff\xfe{"};
    const int64_t count = (int64_t) (sizeof damaged / sizeof *damaged);
    save(10, 1, true);
    save(20, 2, false);
    for (int64_t i = 0; i < count; i++) {
        folder_write(dir, "best.json", damaged[i], strlen(damaged[i]));
        save(30 + 10 * i, 3, false);
        assert_true(folder_has(dir, "step-0000000010/manifest.json"));
        assert_int_equal(folder_count(dir, "step-"), 3);
    }
    save(400, 4, true);
    assert_int_equal(folder_count(dir, "step-"), 2);
}

/* After going on from an older checkpoint, smaller steps are newer. */
TEST_WITH(the_newest_is_the_one_committed_last, setup, teardown)
{
    int64_t step;
    save(100, 1, false);
    save(200, 2, false);
    save(50, 3, false);
    assert_int_equal(folder_load(dir, &step), 3);
    assert_int_equal(step, 50);
    assert_true(folder_has(dir, "step-0000000200/manifest.json"));
    assert_false(folder_has(dir, "step-0000000100/manifest.json"));
    save(60, 4, false);
    assert_int_equal(folder_load(dir, NULL), 4);
    assert_false(folder_has(dir, "step-0000000200/manifest.json"));
}

TEST_WITH(parts_of_a_later_step_stay, setup, teardown)
{
    double data = 1;
    const hpct_ckpt_store_tensor t = {"a", HPCT_CKPT_STORE_F64, 0, {0}, 0, 0, &data};
    hpct_ckpt_store_file early, late;
    save(100, 1, false);
    assert_int_equal(hpct_ckpt_store_write_part(dir, 10, 0, &t, 1, &early), HPCT_OK);
    assert_int_equal(hpct_ckpt_store_write_part(dir, 100, 0, &t, 1, &late), HPCT_OK);
    assert_string_equal(late.name, "part-00000.2.safetensors");
    save(50, 2, false);
    save(60, 3, false);
    assert_false(folder_has(dir, "step-0000000010"));
    assert_false(folder_has(dir, "step-0000000100/manifest.json"));
    assert_int_equal(hpct_ckpt_store_commit(store, 100, "", &late, 1, false), HPCT_OK);
    assert_int_equal(folder_count(in("step-0000000100"), ""), 3);
}

TEST_WITH(a_step_is_replaced_by_its_next_attempt, setup, teardown)
{
    double data = 1;
    const hpct_ckpt_store_tensor t = {"a", HPCT_CKPT_STORE_F64, 0, {0}, 0, 0, &data};
    hpct_ckpt_store_file file;
    save(10, 1, false);
    assert_int_equal(hpct_ckpt_store_write_part(dir, 10, 0, &t, 1, &file), HPCT_OK);
    assert_int_equal(folder_load(dir, NULL), 1); /* until the next one is complete */
    save(10, 2, false);
    assert_int_equal(folder_load(dir, NULL), 2);
    assert_int_equal(folder_count(in("step-0000000010"), ""), 4);
    save(10, 3, false);
    assert_int_equal(folder_load(dir, NULL), 3);
    assert_true(folder_has(dir, "step-0000000010/state.json"));
    assert_int_equal(folder_count(in("step-0000000010"), ""), 4);
}

TEST_WITH(a_new_run_removes_what_others_left, setup, teardown)
{
    save(10, 1, false);
    hpct_ckpt_store_close(store);
    mkdir(in("step-0000000020"), 0777);
    mkdir(in("step-0000000030"), 0777);
    folder_write(dir, "step-0000000010/part-00000.tmp-0123456789abcdef", "x", 1);
    folder_write(dir, "step-0000000010/notes.txt", "x", 1);
    folder_write(dir, "step-0000000020/part-00000.safetensors", "x", 1);
    folder_write(dir, "step-0000000020/manifest.json.tmp-0123456789abcdef", "x", 1);
    folder_write(dir, "step-0000000030/notes.txt", "x", 1);
    folder_write(dir, "step-0000000030/state.json", "x", 1);
    folder_write(dir, "lock.tmp-0123456789abcdef", "x", 1);
    folder_write(dir, "lock.tmp-0123456789abcdea", "x", 1);
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    utimensat(AT_FDCWD, in("lock.tmp-0123456789abcdef"), old, 0);
    assert_int_equal(hpct_ckpt_store_open(&store, dir, 2, folder_note, NULL), HPCT_OK);
    assert_false(folder_has(dir, "step-0000000020"));
    assert_int_equal(folder_count(in("step-0000000010"), "tmp-"), 0);
    assert_true(folder_has(dir, "step-0000000010/notes.txt")); /* a user's */
    assert_true(folder_has(dir, "step-0000000030/notes.txt"));
    assert_false(folder_has(dir, "step-0000000030/state.json"));
    assert_false(folder_has(dir, "lock.tmp-0123456789abcdef"));
    assert_true(folder_has(dir, "lock.tmp-0123456789abcdea")); /* perhaps in use */
    assert_int_equal(folder_load(dir, NULL), 1);
}

/* ---- damage ---- */

TEST_WITH(every_damage_is_named_and_the_one_before_taken, setup, teardown)
{
    static const char *const names[] = {"part-00000.safetensors", "part-00001.safetensors",
                                        "state.json", "manifest.json"};
    save(10, 1, false);
    save(20, 2, false);
    for (size_t n = 0; n < 4; n++) {
        char name[64];
        size_t size;
        snprintf(name, sizeof name, "step-0000000020/%s", names[n]);
        char *data = folder_read(dir, name, &size);
        for (int how = 0; how < 24; how++) {
            size_t at = size * (size_t) how / 20;
            if (how == 20)
                folder_write(dir, name, "", 0);
            else if (how == 21)
                folder_write(dir, name, data, size - 1);
            else if (how == 22)
                folder_write(dir, name, data, size + 1);
            else if (how == 23)
                assert_int_equal(unlink(in(name)), 0);
            else if (data[at] == ' ' || data[at] == '\n')
                continue; /* of a manifest: blanks mean nothing */
            else {
                data[at] = (char) (data[at] ^ 1);
                folder_write(dir, name, data, size);
                data[at] = (char) (data[at] ^ 1);
            }
            assert_int_equal(folder_load(dir, NULL), 1);
            if (n != 3 || how != 23) { /* without a manifest it was never complete */
                assert_non_null(strstr(folder_notes, "step-0000000020 is damaged"));
                assert_non_null(strstr(folder_notes, n == 3 ? "manifest.json" : names[n]));
            }
            folder_write(dir, name, data, size);
        }
        assert_int_equal(folder_load(dir, NULL), 2);
        free(data);
    }
}

TEST_WITH(damaged_ones_are_all_named, setup, teardown)
{
    save(10, 1, false);
    save(20, 2, false);
    folder_write(dir, "step-0000000010/state.json", "{}", 2);
    folder_write(dir, "step-0000000020/manifest.json", "{}", 2);
    assert_int_equal(folder_load(dir, NULL), -HPCT_ERR_DATA);
    assert_error("all checkpoints are damaged");
    assert_error("step-0000000010/state.json");
    assert_error("step-0000000020/manifest.json");
    save(30, 3, false); /* with one that is whole, the damaged ones stay */
    assert_true(folder_has(dir, "step-0000000020/manifest.json"));
    save(40, 4, false); /* with as many as are kept, they go */
    assert_int_equal(folder_count(dir, "step-"), 2);
}

/* A checkpoint whose files are gone does not count as one that is kept. */
TEST_WITH(only_whole_ones_count_as_kept, setup, teardown)
{
    save(10, 1, false);
    save(20, 2, false);
    assert_int_equal(unlink(in("step-0000000020/part-00001.safetensors")), 0);
    save(30, 3, false);
    assert_true(folder_has(dir, "step-0000000010/manifest.json"));
    assert_false(folder_has(dir, "step-0000000020/manifest.json"));
}

TEST_WITH(nothing_is_no_input, setup, teardown)
{
    assert_int_equal(folder_load(dir, NULL), -HPCT_ERR_NO_INPUT);
    assert_int_equal(folder_load(in("none"), NULL), -HPCT_ERR_NO_INPUT);
    assert_int_equal(folder_load(in("step-0000000010"), NULL), -HPCT_ERR_NO_INPUT);
    mkdir(in("step-0000000010"), 0777);
    folder_write(dir, "step-0000000010/state.json", "x", 1);
    assert_int_equal(folder_load(dir, NULL), -HPCT_ERR_NO_INPUT); /* never was complete */
    assert_int_equal(folder_load(in("step-0000000010"), NULL), -HPCT_ERR_DATA);
    assert_error("ended before it was complete");
    assert_int_equal(hpct_ckpt_store_open(&(hpct_ckpt_store *){NULL}, dir, 0, NULL, NULL),
                     HPCT_ERR_USAGE);
}

TEST_WITH(one_may_be_given, setup, teardown)
{
    hpct_ckpt *c;
    save(10, 1, false);
    save(20, 2, false);
    assert_int_equal(folder_load(in("step-0000000010"), NULL), 1);
    assert_int_equal(folder_load(in("step-0000000010//"), NULL), 1);
    char *to = strdup(in("good"));
    assert_int_equal(rename(in("step-0000000010"), to), 0);
    assert_int_equal(folder_load(to, NULL), 1);
    assert_int_equal(rename(to, in("step-0000000011")), 0); /* as step 11 it is not what it says */
    assert_int_equal(folder_load(in("step-0000000011"), NULL), -HPCT_ERR_DATA);
    assert_error("step 10");
    free(to);
    assert_int_equal(hpct_ckpt_open(&c, in("step-0000000020")), HPCT_OK);
    assert_int_equal(folder_value(c), 2);
    hpct_ckpt_free(c);
}

/* hpct_ckpt_open reads headers only; what is damaged is found when it is read. */
TEST_WITH(reading_verifies, setup, teardown)
{
    hpct_ckpt *c;
    size_t size;
    save(10, 1, false);
    char *data = folder_read(dir, "step-0000000010/part-00001.safetensors", &size);
    data[size - 1] ^= 1;
    folder_write(dir, "step-0000000010/part-00001.safetensors", data, size);
    free(data);
    assert_int_equal(hpct_ckpt_open(&c, in("step-0000000010")), HPCT_OK);
    float w[15];
    double m[15];
    hpct_ckpt_store_tensor want = {"weights/w", HPCT_CKPT_STORE_F32, 2, {5, 3}, 0, 0, NULL};
    assert_int_equal(hpct_ckpt_read(c, &want, w), HPCT_OK);
    want = (hpct_ckpt_store_tensor){"optimizer/m", HPCT_CKPT_STORE_F64, 2, {5, 3}, 0, 0, NULL};
    assert_int_equal(hpct_ckpt_read(c, &want, m), HPCT_ERR_DATA);
    assert_error("part-00001.safetensors is damaged");
    hpct_ckpt_free(c);
}

TEST_WITH(pipes_and_folders_are_no_files, setup, teardown)
{
    save(10, 1, false);
    save(20, 2, false);
    assert_int_equal(unlink(in("step-0000000020/part-00000.safetensors")), 0);
    assert_int_equal(mkfifo(in("step-0000000020/part-00000.safetensors"), 0666), 0);
    assert_int_equal(folder_load(dir, NULL), 1);
    hpct_ckpt *c;
    assert_int_equal(hpct_ckpt_open(&c, in("step-0000000020")), HPCT_ERR_DATA);
    assert_error("part-00000.safetensors is not a file");
    assert_int_equal(unlink(in("step-0000000020/manifest.json")), 0);
    assert_int_equal(mkfifo(in("step-0000000020/manifest.json"), 0666), 0);
    assert_int_equal(folder_load(dir, NULL), 1);
    assert_int_equal(unlink(in("step-0000000020/manifest.json")), 0);
    assert_int_equal(mkdir(in("step-0000000020/manifest.json"), 0777), 0);
    assert_int_equal(folder_load(dir, NULL), 1);
}

/* ---- the commands ---- */

static char *printed; /* by the last command */

static void command(hpct_status (*print)(const char *path, FILE *stream), hpct_status want)
{
    size_t size;
    free(printed);
    printed = NULL;
    FILE *stream = open_memstream(&printed, &size);
    assert_non_null(stream);
    hpct_status status = print(dir, stream);
    fclose(stream);
    assert_int_equal(status, want);
}

static size_t place_of(const char *words)
{
    const char *at = strstr(printed, words);
    if (at == NULL)
        fail_msg("'%s' is not in: %s", words, printed);
    return (size_t) (at - printed);
}

TEST_WITH(lists_and_verifies, setup, teardown)
{
    command(hpct_checkpoint_list, HPCT_ERR_NO_INPUT);
    save(10, 11, true);
    save(20, 25, false);
    mkdir(in("step-0000000030"), 0777);
    command(hpct_checkpoint_list, HPCT_OK);
    assert_true(place_of("        20       2  20") < place_of("complete, best")); /* newest first */
    assert_true(place_of("complete, best") < place_of("incomplete"));
    command(hpct_checkpoint_verify, HPCT_OK);
    assert_null(strstr(printed, "DAMAGED"));
    place_of("ok ");
    place_of("step-0000000020/part-00001.safetensors");
    folder_write(dir, "step-0000000010/state.json", "{}", 2);
    command(hpct_checkpoint_list, HPCT_OK);
    place_of("damaged, best");
    command(hpct_checkpoint_verify, HPCT_ERR_DATA);
    assert_error("step-0000000010/state.json");
    place_of("DAMAGED");
    place_of("step-0000000010/part-00000.safetensors"); /* the others, too */
}

TEST_WITH(a_damaged_best_file_is_named, setup, teardown)
{
    save(10, 1, true);
    folder_write(dir, "best.json", "{}", 2);
    command(hpct_checkpoint_verify, HPCT_ERR_DATA);
    assert_error("best.json: ");
    place_of("DAMAGED");
    command(hpct_checkpoint_list, HPCT_OK);
    place_of("which one is the best is not known: ");
}

TEST_WITH(exports_weights_and_class_names, setup, teardown)
{
    size_t size;
    float w[] = {1, 2, 3};
    unsigned char mask[] = {1};
    const hpct_ckpt_store_tensor tensors[] = {
        {"optimizer/m", HPCT_CKPT_STORE_F32, 1, {3}, 0, 0, w},
        {"weights/a", HPCT_CKPT_STORE_U8, 1, {1}, 0, 0, mask},
        {"weights/b/c", HPCT_CKPT_STORE_F32, 1, {3}, 0, 0, w}};
    hpct_ckpt_store_file file;
    assert_int_equal(hpct_ckpt_store_write_part(dir, 1, 0, tensors, 1, &file), HPCT_OK);
    assert_int_equal(hpct_ckpt_store_commit(store, 1, "", &file, 1, false), HPCT_OK);
    assert_int_equal(hpct_checkpoint_export(dir, in("w.safetensors"), stderr), HPCT_ERR_DATA);
    assert_error("has no weights");
    assert_int_equal(hpct_ckpt_store_write_part(dir, 2, 0, tensors, 3, &file), HPCT_OK);
    assert_int_equal(
        hpct_ckpt_store_commit(store, 2, "{\"class_names\": [\"cat\", \"dog\"]}", &file, 1, false),
        HPCT_OK);
    char *path = strdup(in("w.safetensors")), *text = NULL;
    FILE *stream = open_memstream(&text, &size);
    assert_int_equal(hpct_checkpoint_export(dir, path, stream), HPCT_OK);
    fclose(stream);
    assert_non_null(strstr(text, "2 tensors of step 2"));
    free(text);
    char *data = folder_read(dir, "w.safetensors", &size);
    static const char header[] =
        "{\"__metadata__\":{\"class_names\":\"[\\\"cat\\\",\\\"dog\\\"]\"},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[12,13]},"
        "\"b/c\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}";
    assert_memory_equal(data + 8, header, sizeof header - 1);
    assert_memory_equal(data + size - 13, w, 12);
    assert_int_equal(data[size - 1], 1);
    free(data);
    free(path);
}
