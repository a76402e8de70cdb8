/* What hpc-train report understands of a run's files, and how it writes foreign text. */
#include "agent/report/content.h"
#include "tests/unit/unit.h"

#include <math.h>

static hpct_report_pool pool;
static hpct_report_run run;

static int clear(void **state)
{
    hpct_report_run_clear(&run, &pool);
    return 0;
}

static int release(void **state)
{
    hpct_report_run_free(&run);
    hpct_report_release(&pool);
    return 0;
}

static void assert_remark(const char *words)
{
    assert_int_equal(run.num_remarks, 1);
    assert_string_equal(run.remarks[0], words);
}

/* As a run that went back has them; and a column that is not a metric of ours. */
TEST_WITH(epochs_done_again_replace_the_first_ones, clear, release)
{
    static const char text[] = "epoch,accuracy,learning_rate,loss,odd,val_loss\n"
                               "0,0.5,0.1,2,a,3\n1,0.6,0.1,1.5,7,NA\n1,0.75,0.05,1.25,8,2.5\n"
                               "2,0.8,x,1,9,2\n2,0.8,0.0";
    assert_true(hpct_report_read_history(&run, text, sizeof text - 1));
    assert_true(run.validated && run.num_points == 2);
    const hpct_report_point *last = &run.points[1];
    size_t odd = hpct_report_column(hpct_report_find_metric(&run, "odd"), false);
    assert_true(last->epoch == 2 && last->learning_rate == 0.05);
    assert_true(hpct_report_value(last, HPCT_REPORT_LOSS) == 1.25);
    assert_true(hpct_report_value(last, HPCT_REPORT_VAL_LOSS) == 2.5);
    assert_true(isnan(hpct_report_value(&run.points[0], odd)));
    assert_true(hpct_report_value(last, odd) == 8);
    assert_remark("history.csv: 2 lines cannot be read, first line 5");
}

TEST_WITH(cut_line_is_remarked_unless_the_run_goes_on, clear, release)
{
    static const char text[] = "epoch,loss\n0,2\n1,1.";
    assert_true(hpct_report_read_history(&run, text, sizeof text - 1));
    assert_int_equal(run.num_points, 1);
    assert_remark("history.csv: line 3, the last, is cut");
    clear(state);
    run.state = "running";
    assert_true(hpct_report_read_history(&run, text, sizeof text - 1));
    assert_int_equal(run.num_remarks, 0);
    assert_false(hpct_report_read_history(&run, "a,b\n1,2\n", 8));
}

/* Step 5 is there twice: the later line counts. The second rank was not there at first. */
TEST_WITH(pace_is_the_mean_of_the_last_lines, clear, release)
{
    char text[2048] = "";
    static const char *const lines[] = {"0,\"step\":5,\"steps\":5,\"step_ms\":[900,900]",
                                        "0,\"step\":5,\"steps\":5,\"step_ms\":[10,null]",
                                        "0,\"step\":10,\"steps\":15,\"step_ms\":[30,40]"};
    for (int i = 0; i < 3; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "{\"epoch\":%s,\"input_ms\":[1,1],\"forward_ms\":[2,2],\"backward_ms\":[3,3],"
                 "\"wait_ms\":[4,4],\"update_ms\":[0,0],\"memory_mb\":[%d,7]}\n",
                 lines[i], 100 - i);
    assert_true(hpct_report_read_pace(&run, text, strlen(text)));
    assert_true(run.num_ranks == 2 && run.paced_steps == 20);
    assert_true(run.ranks[0].step_ms == 25 && run.ranks[1].step_ms == 40);
    assert_true(run.ranks[0].part_ms[HPCT_REPORT_REST] == 15 && run.ranks[0].memory_mb == 99);
    assert_true(hpct_report_rank_own(&run.ranks[1]) == 36);
}

TEST(foreign_text_is_nothing_but_text)
{
    static const char foreign[] = "=<a> & \"b\"|\n\x01\xff\xc3\xa9",
                      as_xml[] = "=&lt;a&gt; &amp; &quot;b&quot;| \xef\xbf\xbd\xef\xbf\xbd\xc3\xa9";
    static const struct {
        void (*escape)(FILE *out, const char *text);
        const char *want;
    } cases[] = {
        {hpct_report_escape, as_xml},
        {hpct_report_escape_md,
         "=&lt;a&gt; &amp; &quot;b&quot;\\| \xef\xbf\xbd\xef\xbf\xbd\xc3\xa9"},
        {hpct_report_escape_csv, "\"'=<a> & \"\"b\"\"| \xef\xbf\xbd\xef\xbf\xbd\xc3\xa9\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[128] = "";
        FILE *out = fmemopen(got, sizeof got, "w");
        cases[i].escape(out, foreign);
        fclose(out);
        assert_string_equal(got, cases[i].want);
    }
    assert_int_equal(hpct_report_width(foreign), 15);
}
