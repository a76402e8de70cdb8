/* A program's output and how it ended, whatever it does. */
#include "base/ask.h"
#include "tests/unit/cases.h"

static bool cancelled(void *context)
{
    return *(int *) context != 0;
}

/* With a shell's command; `number` not 0: cancelled. */
static hpct_status run_shell(const parse_case *c, char *got, size_t size)
{
    char text[16], command[256];
    int cancel = c->number;
    snprintf(command, sizeof command, "%s", c->text);
    char *const arguments[] = {"sh", "-c", command, NULL};
    const hpct_ask ask = {
        .arguments = arguments, .seconds = 2, .is_cancelled = cancelled, .context = &cancel};
    hpct_status status = hpct_ask_run(&ask, text, sizeof text);
    snprintf(got, size, "%s", text);
    return status;
}

TEST(what_it_prints_is_returned)
{
    static const parse_case cases[] = {
        {"echo a; echo b", HPCT_OK, "a\nb\n"},
        {"", HPCT_OK, ""},
        {"cat; echo x >&2", HPCT_OK, ""},
        {"echo a; exit 3", HPCT_ERR_IO, "sh has failed (exit status 3)"},
        {"kill -KILL $$", HPCT_ERR_IO, "sh has failed (signal 9)"},
        {"echo 0123456789abcde", HPCT_ERR_IO, "sh has printed 16 bytes or more"},
        {"sleep 100", HPCT_ERR_IO, "sh has not answered within 2 s"},
        {"exec >&-; sleep 100", HPCT_ERR_IO, "sh has not answered within 2 s"},
        {"sleep 100", HPCT_ERR_IO, NULL, 1},
    };
    RUN_CASES(run_shell, cases);
}

TEST(a_program_that_is_missing_is_named)
{
    char text[16];
    char *const arguments[] = {"no-such-program", NULL};
    const hpct_ask ask = {.arguments = arguments, .seconds = 2};
    assert_int_equal(hpct_ask_run(&ask, text, sizeof text), HPCT_ERR_IO);
    /* "cannot be run: No such file"; under valgrind, whose vfork is a fork, "has failed" */
    assert_non_null(strstr(hpct_last_error(), "no-such-program "));
}
