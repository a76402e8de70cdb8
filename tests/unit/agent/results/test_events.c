/* Event files: the bytes of records, which TensorBoard's own Python modules (event_pb2, its CRC and
 * histogram_pb; version 2.21) gave for the same values; and the names of the files. */
#include "agent/results/event_files.h"
#include "agent/results/events.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>

TEST(crc_is_castagnoli)
{
    assert_int_equal(hpct_results_events_crc("123456789", 9),
                     0xe3069283); /* the check value of its family */
    assert_int_equal(hpct_results_events_crc((uint8_t[32]){0}, 32), 0x8a9136aa); /* RFC 3720, B.4 */
    assert_int_equal(hpct_results_events_crc("", 0), 0);
}

/* ---- protobuf ---- */

/* From the examples of protobuf.dev/programming-guides/encoding, and the limits of 1, 2 and 10
 * bytes. */
TEST(integers_are_varints)
{
    static const struct {
        int64_t value;
        size_t size;
        uint8_t bytes[10];
    } cases[] = {
        {0, 1, {0}},
        {1, 1, {1}},
        {127, 1, {0x7f}},
        {128, 2, {0x80, 1}},
        {150, 2, {0x96, 1}},
        {300, 2, {0xac, 2}},
        {16383, 2, {0xff, 0x7f}},
        {16384, 3, {0x80, 0x80, 1}},
        {-1, 10, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}},
        {-2, 10, {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hpct_protobuf to = {0};
        hpct_protobuf_integer(&to, 1, cases[i].value);
        assert_int_equal(to.size, 1 + cases[i].size);
        assert_int_equal(to.data[0], 0x08);
        assert_memory_equal(to.data + 1, cases[i].bytes, cases[i].size);
        free(to.data);
    }
}

TEST(long_messages_nest)
{
    char text[200];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    hpct_protobuf to = {0};
    size_t outer = hpct_protobuf_begin(&to, 3), inner = hpct_protobuf_begin(&to, 20);
    hpct_protobuf_text(&to, 1, text);
    hpct_protobuf_end(&to, inner);
    hpct_protobuf_end(&to, outer);
    /* field 3, 206 bytes; field 20 (a tag of two bytes), 202 bytes; field 1, 199 bytes */
    static const uint8_t head[] = {0x1a, 0xce, 1, 0xa2, 1, 0xca, 1, 0x0a, 0xc7, 1, 'x'};
    assert_int_equal(to.size, 3 + 206);
    assert_memory_equal(to.data, head, sizeof head);
    free(to.data);
}

/* ---- records ---- */

static void assert_bytes(hpct_protobuf *got, const uint8_t *want, size_t size)
{
    assert_false(got->failed);
    assert_int_equal(got->size, size);
    assert_memory_equal(got->data, want, size);
    free(got->data);
}

static const uint8_t version[] = {0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xa3, 0x7f,
                                  0x4b, 0x22, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8,
                                  0x3f, 0x1a, 0x0d, 0x62, 0x72, 0x61, 0x69, 0x6e, 0x2e, 0x45,
                                  0x76, 0x65, 0x6e, 0x74, 0x3a, 0x32, 0x2a, 0x28, 0x64, 0x6c};
static const uint8_t start[] = {0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x95, 0xfb, 0xfe,
                                0x18, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x10,
                                0xac, 0x02, 0x3a, 0x02, 0x08, 0x01, 0x71, 0x3b, 0x78, 0x8a};
static const uint8_t scalar[] = {
    0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x29, 0xed, 0xa9, 0x50, 0x09, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0xf8, 0x3f, 0x10, 0x02, 0x2a, 0x13, 0x0a, 0x11, 0x0a, 0x0a, 0x65, 0x70, 0x6f,
    0x63, 0x68, 0x5f, 0x6c, 0x6f, 0x73, 0x73, 0x15, 0x00, 0x00, 0x80, 0x3e, 0x0f, 0x82, 0x92, 0x65};
static const uint8_t text[] = {
    0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0x70, 0x16, 0x4a, 0x09, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x2a, 0x1d, 0x0a, 0x1b, 0x0a, 0x01, 0x74,
    0x42, 0x0a, 0x08, 0x07, 0x12, 0x00, 0x42, 0x04, 0x2a, 0x68, 0x69, 0x2a, 0x4a, 0x0a,
    0x0a, 0x06, 0x0a, 0x04, 0x74, 0x65, 0x78, 0x74, 0x20, 0x02, 0x13, 0xe5, 0x09, 0x05};
static const uint8_t hparams[] = {
    0x5d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x61, 0x5b, 0xbb, 0xb9, 0x09, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0xf8, 0x3f, 0x2a, 0x52, 0x0a, 0x50, 0x0a, 0x1c, 0x5f, 0x68, 0x70, 0x61, 0x72,
    0x61, 0x6d, 0x73, 0x5f, 0x2f, 0x73, 0x65, 0x73, 0x73, 0x69, 0x6f, 0x6e, 0x5f, 0x73, 0x74, 0x61,
    0x72, 0x74, 0x5f, 0x69, 0x6e, 0x66, 0x6f, 0x42, 0x06, 0x08, 0x01, 0x12, 0x02, 0x12, 0x00, 0x4a,
    0x28, 0x0a, 0x24, 0x0a, 0x07, 0x68, 0x70, 0x61, 0x72, 0x61, 0x6d, 0x73, 0x12, 0x19, 0x1a, 0x17,
    0x0a, 0x0c, 0x0a, 0x05, 0x6d, 0x6f, 0x64, 0x65, 0x6c, 0x12, 0x03, 0x1a, 0x01, 0x6d, 0x29, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x20, 0x02, 0xe7, 0x81, 0xbf, 0x09};

TEST(records_have_the_bytes_of_tensorboard)
{
    hpct_protobuf to = {0};
    hpct_results_events_version(&to, 1.5);
    assert_bytes(&to, version, sizeof version);
    to = (hpct_protobuf){0};
    hpct_results_events_start(&to, &(hpct_results_event){1.5, 300});
    assert_bytes(&to, start, sizeof start);
    to = (hpct_protobuf){0};
    hpct_results_events_scalar(&to, &(hpct_results_event){1.5, 2}, "epoch_loss", 0.25);
    assert_bytes(&to, scalar, sizeof scalar);
    to = (hpct_protobuf){0};
    hpct_results_events_text(&to, &(hpct_results_event){1.5, 0}, "t", "*hi*");
    assert_bytes(&to, text, sizeof text);
    to = (hpct_protobuf){0};
    hpct_results_events_hparams(&to, &(hpct_results_event){1.5, 0},
                                &(hpct_results_hparam){"model", "m", 0}, 1);
    assert_bytes(&to, hparams, sizeof hparams);
}

TEST(histogram_has_the_bytes_of_tensorboard)
{
    const float values[] = {0, 1, 1, 30, 29.5f, 15};
    hpct_results_histogram histogram;
    hpct_protobuf to = {0};
    hpct_results_histogram_make(&histogram, values, 6);
    hpct_results_events_histogram(&to, &(hpct_results_event){1.5, 0}, "x", &histogram);
    assert_int_equal(to.size, 790);
    assert_int_equal(hpct_results_events_crc(to.data, to.size), 0x26729a9e);
    free(to.data);
}

/* ---- histograms ---- */

static double count_all(const hpct_results_histogram *h)
{
    double all = 0;
    for (int i = 0; i < HPCT_RESULTS_HISTOGRAM_BUCKETS; i++)
        all += h->count[i];
    return all;
}

TEST(histogram_counts_values_in_buckets)
{
    const float values[] = {-1, 2, NAN, 0.5f, INFINITY, -INFINITY, 1.95f};
    hpct_results_histogram h;
    hpct_results_histogram_make(&h, values, 7);
    assert_true(h.left[0] == -1 && h.right[29] == 2 && count_all(&h) == 4);
    assert_true(h.count[0] == 1 && h.count[15] == 1 && h.count[29] == 2);
    for (int i = 1; i < HPCT_RESULTS_HISTOGRAM_BUCKETS; i++)
        assert_true(fabs(h.left[i] - h.right[i - 1]) < 1e-12);
    hpct_results_histogram_make(&h, (const float[]){3, 3, 3}, 3);
    assert_true(h.left[0] == 3 && h.right[29] == 3 && h.count[29] == 3 && count_all(&h) == 3);
    hpct_results_histogram_make(&h, (const float[]){NAN}, 1);
    assert_true(count_all(&h) == 0 && h.left[0] == 0 && h.right[29] == 0);
    hpct_results_histogram_make(&h, NULL, 0);
    assert_true(count_all(&h) == 0);
}

/* ---- files ---- */

/* The names in FOLDER/NAME, sorted, each with a space after it. */
static const char *names_in(const char *folder, const char *name)
{
    static char all[4096];
    char path[4096];
    struct dirent **entries;
    all[0] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            strcat(all, entries[i]->d_name);
            strcat(all, " ");
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return all;
}

static void put_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/train", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/train/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static hpct_results_event_files *open_files(const char *folder, int num, bool continues)
{
    hpct_results_event_files *files;
    hpct_protobuf records = {0};
    assert_int_equal(hpct_results_event_files_open(&files, folder, num, continues), HPCT_OK);
    hpct_results_events_version(&records, 1.5);
    hpct_results_event_files_add(files, HPCT_RESULTS_EVENTS_TRAIN, &records);
    hpct_results_event_files_add(files, HPCT_RESULTS_EVENTS_VALIDATION, &records);
    free(records.data);
    return files;
}

/* Of a node whose clock is behind. */
#define AHEAD "events.out.tfevents.4000000000.node9.1.0"

TEST(later_file_has_a_later_name)
{
    const char *folder = pictures_folder();
    put_file(folder, AHEAD);
    hpct_results_event_files *files = open_files(folder, 1, true);
    assert_int_equal(hpct_results_event_files_close(files), HPCT_OK);
    assert_non_null(strstr(names_in(folder, "train"), AHEAD " events.out.tfevents.4000000001."));
    assert_string_equal(names_in(folder, "validation"), "");
    assert_string_equal(names_in(folder, "earlier-events"), "");
}

TEST(earlier_files_stay_until_an_epoch_is_good)
{
    const char *folder = pictures_folder();
    put_file(folder, AHEAD);
    put_file(folder, "notes.txt");
    hpct_results_event_files *files = open_files(folder, 2, false);
    assert_int_equal(hpct_results_event_files_flush(files, false, true), HPCT_OK);
    assert_int_equal(hpct_results_event_files_flush(files, true, false), HPCT_OK);
    assert_string_equal(names_in(folder, "train"), AHEAD " notes.txt ");
    assert_int_equal(hpct_results_event_files_flush(files, true, true), HPCT_OK);
    assert_string_equal(names_in(folder, "earlier-events/train"), AHEAD " ");
    assert_non_null(strstr(names_in(folder, "train"), "events.out.tfevents.4000000001."));
    assert_null(strstr(names_in(folder, "train"), AHEAD));
    assert_non_null(strstr(names_in(folder, "train"), "notes.txt"));
    assert_non_null(strstr(names_in(folder, "validation"), "events.out.tfevents.4000000001."));
    assert_int_equal(hpct_results_event_files_close(files), HPCT_OK);
    files = open_files(folder, 1, false); /* without validation: an earlier run's is moved, too */
    hpct_results_event_files_mark(files);
    assert_non_null(strstr(names_in(folder, "earlier-2-events/train"), "tfevents.4000000001."));
    assert_non_null(strstr(names_in(folder, "earlier-2-events/validation"), "tfevents.40000"));
    assert_string_equal(names_in(folder, "validation"), "");
    assert_int_equal(hpct_results_event_files_close(files), HPCT_OK);
}

TEST(diverged_run_is_put_beside)
{
    const char *folder = pictures_folder();
    put_file(folder, AHEAD);
    hpct_results_event_files *files = open_files(folder, 1, false);
    assert_int_equal(hpct_results_event_files_close(files), HPCT_OK); /* no epoch has ended */
    assert_string_equal(names_in(folder, "train"), AHEAD " ");
    assert_string_equal(names_in(folder, "diverged-events"), "");
    files = open_files(folder, 1, false);
    assert_int_equal(hpct_results_event_files_flush(files, true, false), HPCT_OK);
    assert_int_equal(hpct_results_event_files_close(files), HPCT_OK);
    assert_string_equal(names_in(folder, "train"), AHEAD " ");
    assert_non_null(strstr(names_in(folder, "diverged-events/train"), "tfevents.4000000001."));
}

TEST(folder_that_is_a_file_is_named)
{
    char path[4096];
    const char *folder = pictures_folder();
    hpct_results_event_files *files;
    snprintf(path, sizeof path, "%s/validation", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(hpct_results_event_files_open(&files, folder, 2, false), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), path));
}
