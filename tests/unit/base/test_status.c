/* base/status: the message kept with a status. */
#include "base/status.h"
#include "tests/unit/unit.h"

TEST(message_is_kept)
{
    assert_int_equal(hpct_fail(HPCT_ERR_DATA, "%s: label %d", "a.gz", 12), HPCT_ERR_DATA);
    assert_string_equal(hpct_last_error(), "a.gz: label 12");
}

TEST(prefix_is_prepended)
{
    hpct_fail(HPCT_ERR_IO, "cannot write");
    assert_int_equal(hpct_fail_within(HPCT_ERR_IO, "rank 2"), HPCT_ERR_IO);
    assert_string_equal(hpct_last_error(), "rank 2: cannot write");
}

TEST(control_characters_do_not_reach_a_terminal)
{
    hpct_fail(HPCT_ERR_DATA, "%s", "a\033[2Jb\nc");
    assert_string_equal(hpct_last_error(), "a?[2Jb?c");
}

TEST(long_messages_are_truncated)
{
    char text[20000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    hpct_fail(HPCT_ERR_DATA, "%s", text);
    assert_int_equal(strlen(hpct_last_error()), 12287);
}
