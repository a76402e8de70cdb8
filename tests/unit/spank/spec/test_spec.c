/* spank/spec: sizes, what to stage in, what to copy out and under which names. */
#include "spank/spec/bytes.h"
#include "spank/spec/entry.h"
#include "spank/spec/out_entry.h"
#include "spank/spec/stage_plan.h"
#include "tests/unit/cases.h"

#include <inttypes.h>

static hpct_status show_bytes(const parse_case *c, char *got, size_t size)
{
    hpct_spec_bytes_show(strtoull(c->text, NULL, 10), got, size);
    return HPCT_OK;
}

static hpct_status parse_bytes(const parse_case *c, char *got, size_t size)
{
    uint64_t bytes = 0;
    bool read = hpct_spec_bytes_parse(c->text, &bytes);
    snprintf(got, size, "%" PRIu64, bytes);
    return accepted_if(read);
}

TEST(sizes_are_printed_in_powers_of_1000)
{
    static const parse_case cases[] = {
        {"0", HPCT_OK, "0 B"},
        {"999", HPCT_OK, "999 B"},
        {"1500", HPCT_OK, "1.5 kB"},
        {"130000000000", HPCT_OK, "130 GB"},
        {"18446744073709551615", HPCT_OK, "18 EB"},
    };
    RUN_CASES(show_bytes, cases);
}

TEST(sizes_are_read_in_powers_of_1024)
{
    static const parse_case cases[] = {
        {"3K", HPCT_OK, "3072"}, {"1T", HPCT_OK, "1099511627776"}, {"", HPCT_ERR_USAGE},
        {"K", HPCT_ERR_USAGE},   {"1KB", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_bytes, cases);
}

/* "SRC > DST; ..." */
static hpct_status parse_stage_list(const parse_case *c, char *got, size_t size)
{
    hpct_spec_stage_list list;
    HPCT_TRY(hpct_spec_stage_list_parse(c->text, &list));
    for (int i = 0; i < list.count; i++) {
        size_t used = strlen(got);
        snprintf(got + used, size - used, "%s%s > %s", i > 0 ? "; " : "", list.entries[i].src,
                 list.entries[i].dst);
    }
    hpct_spec_stage_list_free(&list);
    return HPCT_OK;
}

TEST(stage_lists_are_split_at_commas_and_colons)
{
    static const parse_case cases[] = {
        {"/a/b/,c\\,d\\:e:x/y,/data/my set:z\\\\", HPCT_OK,
         "/a/b > b; c,d:e > x/y; /data/my set > z\\"},
    };
    RUN_CASES(parse_stage_list, cases);
}

/* Number: the mode. */
static hpct_status parse_mode(const parse_case *c, char *got, size_t size)
{
    hpct_spec_stage_request request;
    HPCT_TRY(hpct_spec_stage_request_parse(c->text, &request));
    assert_int_equal(request.mode, c->number);
    snprintf(got, size, "%s", request.extract ? "extract" : "");
    return HPCT_OK;
}

TEST(stage_modes_are_parsed)
{
    static const parse_case cases[] = {
        {"extract,broadcast", HPCT_OK, "extract", HPCT_SPEC_STAGE_BROADCAST},
        {"auto", HPCT_OK, "", HPCT_SPEC_STAGE_AUTO},
        {"copy,broadcast", HPCT_ERR_USAGE},
        {"", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_mode, cases);
}

static hpct_spec_stage_mode choose(int nodes, bool shared, bool extract, uint64_t bytes,
                                   uint64_t entries, const char *because)
{
    char why[256] = "";
    const hpct_spec_stage_plan plan =
        hpct_spec_stage_plan_make((hpct_spec_stage_request){.extract = extract}, 1, nodes, true);
    const hpct_spec_stage_view view = {
        .shared = shared, .extract = extract, .bytes = bytes, .entries = entries};
    hpct_spec_stage_mode mode = hpct_spec_stage_plan_mode(&plan, &view, why, sizeof why);
    assert_non_null(strstr(why, because));
    return mode;
}

TEST(mode_is_chosen_by_size_count_and_nodes)
{
    const uint64_t GB = 1000000000;
    assert_int_equal(choose(1, true, false, 100 * GB, 1, "as asked for"), HPCT_SPEC_STAGE_COPY);
    assert_int_equal(choose(8, false, false, 100 * GB, 1, "local"), HPCT_SPEC_STAGE_COPY);
    assert_int_equal(choose(8, true, false, 1000, 2, "few enough"), HPCT_SPEC_STAGE_COPY);
    assert_int_equal(choose(2, true, false, 100 * GB, 10, "large files"), HPCT_SPEC_STAGE_COPY);
    assert_int_equal(choose(2, true, false, GB, 60000, "read once"), HPCT_SPEC_STAGE_BROADCAST);
    assert_int_equal(choose(8, true, false, 100 * GB, 10, "read once"), HPCT_SPEC_STAGE_BROADCAST);
    assert_int_equal(choose(1000, true, false, 1000000, 1, "read once"), HPCT_SPEC_STAGE_BROADCAST);
}

static hpct_spec_stage_mode of_all(hpct_spec_stage_mode asked, bool staged)
{
    char why[256];
    const hpct_spec_stage_plan plan =
        hpct_spec_stage_plan_make((hpct_spec_stage_request){.mode = asked}, 1, 8, true);
    const hpct_spec_stage_view view = {.staged = staged, .bytes = 1};
    return hpct_spec_stage_plan_mode(&plan, &view, why, sizeof why);
}

TEST(a_mode_that_is_asked_for_is_kept)
{
    assert_int_equal(of_all(HPCT_SPEC_STAGE_BROADCAST, false), HPCT_SPEC_STAGE_BROADCAST);
    assert_int_equal(of_all(HPCT_SPEC_STAGE_COPY, false), HPCT_SPEC_STAGE_COPY);
    assert_int_equal(of_all(HPCT_SPEC_STAGE_BROADCAST, true), HPCT_SPEC_STAGE_AUTO);
    assert_int_equal(of_all(HPCT_SPEC_STAGE_COPY, true), HPCT_SPEC_STAGE_AUTO);
}

static bool connects(hpct_spec_stage_mode mode, int sources, int nodes, bool trusted)
{
    const hpct_spec_stage_request request = {.mode = mode};
    return hpct_spec_stage_plan_make(request, sources, nodes, trusted).connect;
}

TEST(nodes_connect_where_they_may_send)
{
    assert_true(connects(HPCT_SPEC_STAGE_AUTO, 1, 2, true));
    assert_true(connects(HPCT_SPEC_STAGE_BROADCAST, 1, 2, false)); /* then refused, with a reason */
    assert_false(connects(HPCT_SPEC_STAGE_AUTO, 1, 2, false));
    assert_false(connects(HPCT_SPEC_STAGE_COPY, 1, 2, true));
    assert_false(connects(HPCT_SPEC_STAGE_BROADCAST, 0, 2, true));
    assert_false(connects(HPCT_SPEC_STAGE_BROADCAST, 1, 1, true));
}

TEST(archives_are_counted_while_they_are_written)
{
    hpct_spec_stage_need need = {.known = true};
    hpct_spec_stage_need_add(&need,
                             &(hpct_spec_stage_view){.bytes = 10, .blocks = 4096, .entries = 1});
    hpct_spec_stage_need_add(&need, &(hpct_spec_stage_view){.bytes = 99, .staged = true});
    assert_true(need.known);
    assert_int_equal(need.bytes, 10);
    assert_int_equal(hpct_spec_stage_need_check(&need, 10), HPCT_OK);
    assert_int_equal(hpct_spec_stage_need_check(&need, 9), HPCT_ERR_CONFIG);
    hpct_spec_stage_need_add(&need, &(hpct_spec_stage_view){.bytes = 50, .extract = true});
    assert_false(need.known);
    assert_int_equal(need.bytes, 10);
    assert_int_equal(hpct_spec_stage_limit(100, 50, 20), 30);
    assert_int_equal(hpct_spec_stage_limit(0, 50, 20), 30);
    assert_int_equal(hpct_spec_stage_limit(10, 50, 20), 1);
}

typedef struct out_job {
    const hpct_spec_out_array *array;
    const char *cwd;
} out_job;

/* Number: the job. */
static hpct_status check_array(const parse_case *c, char *got, size_t size)
{
    const out_job *job = c->with;
    hpct_spec_out_list list;
    assert_int_equal(hpct_spec_out_list_parse(c->text, &list), HPCT_OK);
    hpct_status status =
        hpct_spec_out_list_check_array(&list, job->array, (uint32_t) c->number, job->cwd);
    hpct_spec_out_list_free(&list);
    return status;
}

static const hpct_spec_out_array none = {0}, asked = {.is = true},
                                 third = {.is = true, .job = 40, .task = 3},
                                 one = {true, 40, 1, .first = 1, .last = 2, .count = 2},
                                 two = {true, 40, 2, .first = 1, .last = 2, .count = 2};

TEST(jobs_of_an_array_need_distinct_outputs)
{
#define JOB(array, cwd) (&(const out_job){&(array), cwd})
    const parse_case cases[] = {
        {"a:/b/%A_%a,c.%t:/d/%j.%t", HPCT_OK, NULL, 0, JOB(asked, NULL)},
        {"a:/b/%4a", HPCT_OK, NULL, 0, JOB(asked, NULL)},
        {"a:/b,c:/d-%j", HPCT_ERR_USAGE,
         "each job of the array would write to '/b', one over the other: add %a", 0,
         JOB(asked, NULL)},
        {"a.%t:/b.%t", HPCT_ERR_USAGE, NULL, 0, JOB(asked, NULL)},
        {"a:/b-%A-%n-%N-%s", HPCT_ERR_USAGE, NULL, 0, JOB(asked, "/w/3")},
        {"a:/b-%%a", HPCT_ERR_USAGE, NULL, 0, JOB(asked, NULL)},
        /* within the array, what a shell has written out will do */
        {"a:/b/run-003", HPCT_OK, NULL, 43, JOB(third, "/w")},
        {"a:/b/43.out", HPCT_OK, NULL, 43, JOB(third, "/w")},
        {"a:out", HPCT_OK, NULL, 43, JOB(third, "/w/run3")},
        {"a:/out", HPCT_ERR_USAGE, NULL, 43, JOB(third, "/w/run3")},
        {"a:/b/40-33", HPCT_ERR_USAGE, NULL, 43, JOB(third, "/w")},
        /* what has the numbers of all of its jobs belongs to the last of them alone */
        {"a:/b/2024-01-02/out", HPCT_ERR_USAGE, NULL, 43, JOB(one, "/w")},
        {"a:/b/2024-01-02/out", HPCT_OK, NULL, 43, JOB(two, "/w")},
        {"a:out", HPCT_ERR_USAGE, NULL, 43, JOB(one, "/exp1/v2")},
        {"a:/data/exp2/1", HPCT_OK, NULL, 43, JOB(one, "/w")},
        {"a:run-1", HPCT_OK, NULL, 43, JOB(one, "/home/u1/v2")},
        {"a:/b/2024-02-02/out", HPCT_OK, NULL, 43, JOB(two, "/exp1")},
        {"a:/b/1-2/43", HPCT_OK, NULL, 43, JOB(two, "/w")},
        /* letters that mean nothing elsewhere */
        {"a:/b,c:/d-%j", HPCT_OK, NULL, 7, JOB(none, NULL)},
        {"a:/b-%a", HPCT_ERR_USAGE, "write %j for the job, or submit it with --array", 0,
         JOB(none, NULL)},
        {"a-%A:/b", HPCT_ERR_USAGE, NULL, 0, JOB(none, NULL)},
    };
    RUN_CASES(check_array, cases);
}

/* With: the working folder. */
static hpct_status check_place(const parse_case *c, char *got, size_t size)
{
    hpct_spec_out_list list;
    const hpct_spec_out_names names = {.job = 43, .step = "0", .host = "n"};
    assert_int_equal(hpct_spec_out_list_parse(c->text, &list), HPCT_OK);
    hpct_status status =
        hpct_spec_out_list_check_place(&list, &names, c->with, "/tmp/hpc-train/43");
    hpct_spec_out_list_free(&list);
    return status;
}

TEST(outputs_within_the_job_directory_are_refused)
{
    static const parse_case cases[] = {
        {"a:/b,a.%t:out.%t", HPCT_OK, NULL, 0, "/home/me"},
        {"a:/b,c:out", HPCT_ERR_USAGE, "'/tmp/hpc-train/43/out' lies in the job directory", 0,
         "/tmp/hpc-train/43"},
        {"a:/tmp/hpc-train/%j/b", HPCT_ERR_USAGE, NULL, 0, "/home/me"},
        {"a:/tmp/hpc-train/434/b", HPCT_OK, NULL, 0, "/home/me"},
    };
    RUN_CASES(check_place, cases);
}

static hpct_status name_output(const parse_case *c, char *got, size_t size)
{
    const hpct_spec_out_names names = {.job = 43, .array = third, .step = "0", .host = "n"};
    char *name = hpct_spec_out_name(c->text, &names);
    snprintf(got, size, "%s", name);
    free(name);
    return HPCT_OK;
}

TEST(patterns_are_replaced_in_output_names)
{
    static const parse_case cases[] = {
        {"%A_%a/%3a-%j", HPCT_OK, "40_3/003-43"},
    };
    RUN_CASES(name_output, cases);
}
