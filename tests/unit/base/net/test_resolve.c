/* Addresses by name from a name service that answers late or never, and connections by name. */
#include "base/net/resolve.h"

#include "base/net/link.h"
#include "tests/unit/base/net/name_service.h"
#include "tests/unit/cases.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *address_text(const hpct_net_addresses *a, int i, char text[64])
{
    const struct sockaddr_in *in = (const void *) &a->at[i];
    char number[32];
    inet_ntop(AF_INET, &in->sin_addr, number, sizeof number);
    snprintf(text, 64, "%s:%d", number, ntohs(in->sin_port));
    return text;
}

TEST(names_and_numbers_have_addresses)
{
    hpct_net_addresses found;
    char text[64];
    assert_int_equal(hpct_net_resolve(&found, "127.0.0.3", 80, 1000), HPCT_OK);
    assert_int_equal(found.num, 1);
    assert_string_equal(address_text(&found, 0, text), "127.0.0.3:80");
    assert_int_equal(names_so_far(), 0);
    assert_int_equal(hpct_net_resolve(&found, "two", 22000, 60000), HPCT_OK);
    assert_int_equal(found.num, 2);
    assert_string_equal(address_text(&found, 0, text), "127.0.0.1:22000");
    assert_string_equal(address_text(&found, 1, text), "127.0.0.2:22000");
}

TEST(a_name_without_an_address_is_named)
{
    hpct_net_addresses found;
    assert_int_equal(hpct_net_resolve(&found, "nobody", 80, 60000), HPCT_ERR_PEER);
    assert_string_equal(hpct_last_error(),
                        "the address of nobody cannot be found: Name or service not known");
    assert_int_equal(hpct_net_resolve(&found, "full", 80, 60000), HPCT_ERR_PEER);
    assert_string_equal(hpct_last_error(),
                        "the address of full cannot be found: Too many open files");
}

/* Without a limit this would not return. */
TEST(a_name_service_that_hangs_is_given_up)
{
    hpct_net_addresses found;
    int before = names_so_far();
    open_names(false);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hpct_net_resolve(&found, "hung", 80, 1 + i * 20), HPCT_ERR_PEER);
        assert_string_equal(
            hpct_last_error(),
            "the address of hung cannot be found: the name service does not answer");
    }
    assert_int_equal(hpct_net_resolve(&found, "127.0.0.1", 80, 20), HPCT_OK);
    assert_int_equal(hpct_net_resolve(&found, "two", 80, 60000), HPCT_OK);
    open_names(true);
    assert_int_equal(hpct_net_resolve(&found, "hung", 80, 60000), HPCT_OK);
    assert_int_equal(names_so_far(), before + 2); /* one lookup for all four calls */
    assert_int_equal(hpct_net_resolve(&found, "hung", 80, 60000), HPCT_OK);
    assert_int_equal(names_so_far(), before + 3); /* its answer was taken */
}

/* Nor does it leave a thread behind. */
TEST(without_time_names_are_not_asked_for)
{
    hpct_net_addresses found;
    int before = names_so_far();
    open_names(true);
    assert_int_equal(hpct_net_resolve(&found, "hung", 80, 0), HPCT_ERR_PEER);
    assert_string_equal(hpct_last_error(), "the address of hung cannot be found: there is no time "
                                           "left to ask the name service");
    assert_int_equal(hpct_net_resolve(&found, "two", 80, 60000), HPCT_OK);
    assert_int_equal(hpct_net_resolve(&found, "127.0.0.1", 80, 0), HPCT_OK);
    assert_int_equal(names_so_far(), before + 1);
}

/* The thread of a lookup stays behind with the parent. */
TEST(a_fork_asks_anew)
{
    hpct_net_addresses found;
    int end;
    open_names(false);
    assert_int_equal(hpct_net_resolve(&found, "hung", 80, 20), HPCT_ERR_PEER);
    pthread_mutex_lock(&name_lock); /* so that the child can */
    pid_t pid = fork();
    pthread_mutex_unlock(&name_lock);
    assert_true(pid >= 0);
    if (pid == 0) {
        names_open = true;
        _exit(hpct_net_resolve(&found, "hung", 80, 20000) == HPCT_OK ? 0 : 1);
    }
    open_names(true);
    assert_int_equal(waitpid(pid, &end, 0), pid);
    assert_int_equal(end, 0);
    assert_int_equal(hpct_net_resolve(&found, "hung", 80, 60000), HPCT_OK);
}

static void *resolve_hung(void *argument)
{
    hpct_net_addresses *found = argument;
    return hpct_net_resolve(found, "hung", 80, 60000) == HPCT_OK ? found : NULL;
}

TEST(callers_share_an_answer)
{
    enum { CALLERS = 4 };
    hpct_net_addresses found[CALLERS];
    pthread_t threads[CALLERS];
    char text[64];
    open_names(false);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, resolve_hung, &found[i]), 0);
    usleep(20000); /* so that several wait, mostly; whether they do is not asked */
    open_names(true);
    for (int i = 0; i < CALLERS; i++) {
        void *is_found;
        pthread_join(threads[i], &is_found);
        assert_non_null(is_found);
        assert_string_equal(address_text(&found[i], 0, text), "127.0.0.1:80");
    }
}

TEST(connections_wait_no_longer_for_a_name)
{
    int fd, listener, port = 0;
    char address[64];
    open_names(false);
    assert_int_equal(hpct_net_link_connect(&fd, "hung:22000", 20), HPCT_ERR_PEER);
    assert_string_equal(hpct_last_error(),
                        "the address of hung cannot be found: the name service does not answer");
    assert_int_equal(fd, -1);
    open_names(true);
    assert_int_equal(hpct_net_link_listen(&listener, &port, "here", 1), HPCT_OK);
    snprintf(address, sizeof address, "hung:%d", port);
    assert_int_equal(hpct_net_link_connect(&fd, address, 60000), HPCT_OK);
    close(fd);
    close(listener);
    snprintf(address, sizeof address, "two:%d", port);
    assert_int_equal(hpct_net_link_connect(&fd, address, 60000), HPCT_ERR_PEER);
    assert_non_null(strstr(hpct_last_error(), "cannot connect to two:"));
}
