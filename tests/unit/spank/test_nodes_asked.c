/* spank/nodes_asked: several nodes, components and job arrays, found in command lines and scripts.
 */
#include "spank/nodes_asked.h"
#include "tests/unit/cases.h"
#include "tests/unit/spank/words.h"

#include <unistd.h>

static hpct_status several(const parse_case *c, char *got, size_t size)
{
    words w;
    return accepted_if(hpct_spank_nodes_asked_several(split_words(&w, c->text)));
}

static hpct_status components(const parse_case *c, char *got, size_t size)
{
    words w;
    return accepted_if(hpct_spank_nodes_asked_parts(split_words(&w, c->text)));
}

TEST(srun_options_say_several_nodes)
{
    static const parse_case cases[] = {
        {"srun -N2 true", HPCT_OK},
        {"srun -lN 2-4 true", HPCT_OK},
        {"srun -p main --nodes=3", HPCT_OK},
        {"srun --mem=4G --nodes 3", HPCT_OK},
        {"srun -K --label -N4", HPCT_OK},
        /* one, or not known */
        {"srun -N1 true", HPCT_ERR_USAGE},
        {"srun -N1-4 true", HPCT_ERR_USAGE},
        {"srun -n8 true", HPCT_ERR_USAGE},
        {"srun --nodes", HPCT_ERR_USAGE},
        {"srun -N", HPCT_ERR_USAGE},
        /* the program's own, or perhaps */
        {"srun -l prog -N4", HPCT_ERR_USAGE},
        {"srun --label prog -N4", HPCT_ERR_USAGE},
        {"srun -JN4 prog --nodes=4", HPCT_ERR_USAGE},
        {"srun -- -N4", HPCT_ERR_USAGE},
    };
    RUN_CASES(several, cases);
}

TEST(a_colon_separates_components)
{
    static const parse_case cases[] = {
        {"srun -N1 a : b", HPCT_OK},
        {"srun -N1 a:b", HPCT_ERR_USAGE},
    };
    RUN_CASES(components, cases);
}

typedef struct scripts {
    char array[40], other[40]; /* their files */
} scripts;

static void write_script(char *path, const char *text)
{
    strcpy(path, "/tmp/hpc-train-options-XXXXXX");
    int fd = mkstemp(path);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* array.sh and other.sh stand for the scripts. */
static hpct_status array(const parse_case *c, char *got, size_t size)
{
    words w;
    scripts paths = *(const scripts *) c->with;
    split_words(&w, c->text);
    for (int i = 0; i < w.argc; i++) {
        if (strcmp(w.argv[i], "array.sh") == 0)
            w.argv[i] = paths.array;
        else if (strcmp(w.argv[i], "other.sh") == 0)
            w.argv[i] = paths.other;
    }
    snprintf(got, size, "%d", hpct_spank_nodes_asked_array(w.argv));
    return HPCT_OK;
}

TEST(sbatch_options_or_its_script_say_array)
{
    scripts paths;
    write_script(paths.array,
                 "#!/bin/bash\n# a job\n\n#SBATCH -N1\n#SBATCH -J x --array=1-3%2\ntrue\n");
    write_script(paths.other, "#!/bin/bash\n#SBATCH -A acct -Ja\ntrue\n#SBATCH --array=1-3\n");
#define ASKS(line, answer)                                                                         \
    {                                                                                              \
        "/usr/bin/sbatch " line, HPCT_OK, answer, 0, &paths                                        \
    }
    const parse_case cases[] = {
        ASKS("array.sh", "1"),
        ASKS("-N1 array.sh x", "1"),
        ASKS("-a 1-3 other.sh", "1"),
        ASKS("-Wa1-3 other.sh", "1"),
        ASKS("--array=1-3 --wrap=true", "1"),
        ASKS("--arr 1 other.sh", "1"),
        /* none, also where the script has words like it */
        ASKS("other.sh -a --array=1", "0"),
        ASKS("-A acct other.sh", "0"),
        ASKS("'--wrap=run -a 1'", "0"),
        {"salloc x -a", HPCT_OK, "0", 0, &paths},
        /* the script comes from standard input */
        ASKS("-N1", "-1"),
    };
    RUN_CASES(array, cases);
    unlink(paths.array);
    unlink(paths.other);
}
