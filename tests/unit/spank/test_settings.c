/* spank/settings: the arguments in plugstack.conf. */
#include "spank/settings.h"
#include "tests/unit/cases.h"
#include "tests/unit/spank/words.h"

static hpct_status read_settings(char *const *arguments, hpct_spank_settings *settings)
{
    int count = 0;
    while (arguments[count] != NULL)
        count++;
    return hpct_spank_settings_read(count, arguments, settings);
}

#define ARGUMENTS(...) ((char *const[]){__VA_ARGS__, NULL})
#define S(text) ((char[]){text})

TEST(settings_have_defaults_and_are_read)
{
    hpct_spank_settings settings;
    assert_int_equal(hpct_spank_settings_read(0, NULL, &settings), HPCT_OK);
    assert_string_equal(settings.tmpdir, "/tmp/hpc-train");
    assert_int_equal(settings.wait, 300);
    assert_false(settings.on_by_default || settings.has_ports || settings.verbose);
    assert_int_equal(settings.stage_max, 0);
    hpct_spank_settings_free(&settings);
    assert_int_equal(
        read_settings(ARGUMENTS(S("tmpdir=/local/jobs"), S("ports=21000-21999"), S("default=on"),
                                S("stage_max=2G"), S("stage_src=/home,/project"),
                                S("stage_links=follow"), S("helper=/opt/x/hpc-train-stage"),
                                S("gpu_helper=/opt/y/gpus"), S("log=info"), S("wait=600")),
                      &settings),
        HPCT_OK);
    assert_string_equal(settings.tmpdir, "/local/jobs");
    assert_int_equal(settings.ports.high, 21999);
    assert_true(settings.on_by_default && settings.verbose);
    assert_int_equal(settings.stage_max, 2ul << 30);
    assert_true(settings.stage_follow);
    assert_int_equal(settings.wait, 600);
    assert_int_equal(settings.num_stage_src, 2);
    assert_string_equal(settings.stage_src[1], "/project");
    assert_string_equal(settings.helper, "/opt/x/hpc-train-stage");
    assert_string_equal(settings.gpu_helper, "/opt/y/gpus");
    hpct_spank_settings_free(&settings);
    /* as people write folders */
    assert_int_equal(
        read_settings(ARGUMENTS(S("tmpdir=/local//"), S("stage_src=/a/,/b")), &settings), HPCT_OK);
    assert_string_equal(settings.tmpdir, "/local");
    assert_string_equal(settings.stage_src[0], "/a");
    hpct_spank_settings_free(&settings);
}

/* The comments of hpc-train.conf: what is written there is right, and what bounds nothing is the
 * default. */
TEST(examples_of_the_shipped_file_are_valid)
{
    char path[512], line[512], *examples[32], *defaults[32];
    int count = 0, kept = 0;
    hpct_spank_settings plain, given;
    const char *top = getenv("top_builddir");
    snprintf(path, sizeof path, "%s/etc/plugstack.conf.d/hpc-train.conf", top != NULL ? top : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (count < 32 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "#   ", 4) != 0 || line[4] == ' ')
            continue;
        examples[count] = strndup(line + 4, strcspn(line + 4, " \n"));
        if (strncmp(examples[count], "stage_max=", 10) != 0 &&
            strncmp(examples[count], "stage_src=", 10) != 0)
            defaults[kept++] = examples[count];
        count++;
    }
    fclose(file);
    assert_true(kept > 5 && kept == count - 2);
    if (hpct_spank_settings_read(count, examples, &given) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    assert_true(given.stage_max > 0 && given.num_stage_src > 1);
    hpct_spank_settings_free(&given);
    assert_int_equal(hpct_spank_settings_read(0, NULL, &plain), HPCT_OK);
    assert_int_equal(hpct_spank_settings_read(kept, defaults, &given), HPCT_OK);
    hpct_cluster_port_range ports = hpct_cluster_port_range_default();
    assert_true(given.ports.low == ports.low && given.ports.high == ports.high);
    assert_string_equal(given.tmpdir, plain.tmpdir);
    assert_string_equal(given.helper, plain.helper);
    assert_string_equal(given.gpu_helper, plain.gpu_helper);
    assert_int_equal(given.on_by_default, plain.on_by_default);
    assert_int_equal(given.stage_follow, plain.stage_follow);
    assert_int_equal(given.last_try, plain.last_try);
    assert_int_equal(given.wait, plain.wait);
    assert_int_equal(given.verbose, plain.verbose);
    hpct_spank_settings_free(&plain);
    hpct_spank_settings_free(&given);
    for (int i = 0; i < count; i++)
        free(examples[i]);
}

static hpct_status read_line(const parse_case *c, char *got, size_t size)
{
    words w;
    hpct_spank_settings settings;
    hpct_status status = read_settings(split_words(&w, c->text), &settings);
    hpct_spank_settings_free(&settings);
    return status;
}

TEST(invalid_settings_are_rejected)
{
    static const parse_case cases[] = {
        {"tmpdir", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"tmpdir=", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"tmpdir=tmp", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"tmpdir=/", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"tmpdir=/a/../b", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"tmpdir=/a//b", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"tmpdir=//", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"ports=22000", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"ports=80-90", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"default=yes", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"stage_max=0", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"stage_max=1X", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"stage_max=-1", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"stage_links=maybe", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"stage_src=home", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"stage_src=,", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"helper=sh", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"log=debug", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"tmp_dir=/a", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"=x", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"unknown", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"stage_max=99999999T", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"gpu_helper=x", HPCT_ERR_CONFIG, "plugstack.conf"},
        {"log=info log=info", HPCT_ERR_CONFIG, "twice"},
    };
    RUN_CASES(read_line, cases);
}
