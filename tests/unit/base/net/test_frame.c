/* base/net: frames that are altered, addresses, ports. */
#include "base/net/frame.h"
#include "base/net/link.h"
#include "tests/unit/cases.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static const hpct_auth_key key = {{1, 2, 3}};

static hpct_auth_seal *seal(void)
{
    hpct_auth_seal *seal;
    assert_int_equal(hpct_auth_seal_new(&seal, &key), HPCT_OK);
    return seal;
}

TEST(frames_are_decoded_as_encoded)
{
    uint8_t bytes[HPCT_NET_FRAME_BYTES];
    hpct_auth_seal *writer = seal(), *reader = seal();
    hpct_net_frame in = {.type = HPCT_NET_FRAME_ABORT, .status = 66, .rank = 70000}, out;
    hpct_net_frame_set(in.node, sizeof in.node, "node1");
    hpct_net_frame_set(in.text, sizeof in.text, "no such file");
    assert_true(hpct_net_frame_encode(bytes, &in, writer));
    assert_true(hpct_net_frame_decode(&out, bytes, reader));
    assert_int_equal(out.type, HPCT_NET_FRAME_ABORT);
    assert_int_equal(out.status, 66);
    assert_int_equal(out.rank, 70000);
    assert_string_equal(out.node, "node1");
    assert_string_equal(out.text, "no such file");
    hpct_auth_seal_free(writer);
    hpct_auth_seal_free(reader);
}

/* Whether a frame with these bytes is taken, sealed by somebody with the key, or as it is. */
static bool is_taken(hpct_net_frame *out, const uint8_t frame[HPCT_NET_FRAME_BYTES],
                     bool sealed_anew)
{
    uint8_t bytes[HPCT_NET_FRAME_BYTES];
    hpct_auth_seal *writer = seal(), *reader = seal();
    memcpy(bytes, frame, sizeof bytes);
    hpct_auth_seal_add(writer, bytes, 16);
    hpct_auth_seal_add(writer, bytes + 32, sizeof bytes - 32);
    if (sealed_anew)
        assert_true(hpct_auth_seal_end(writer, bytes + 16));
    bool taken = hpct_net_frame_decode(out, bytes, reader);
    hpct_auth_seal_free(writer);
    hpct_auth_seal_free(reader);
    return taken;
}

TEST(altered_frames_are_rejected)
{
    uint8_t good[HPCT_NET_FRAME_BYTES], bytes[HPCT_NET_FRAME_BYTES];
    hpct_auth_seal *writer = seal();
    hpct_net_frame in = {.type = HPCT_NET_FRAME_HELLO, .rank = 1}, out;
    assert_true(hpct_net_frame_encode(good, &in, writer));
    hpct_auth_seal_free(writer);
    assert_true(is_taken(&out, good, false));
    for (int i = 0; i < HPCT_NET_FRAME_BYTES; i++) {
        memcpy(bytes, good, sizeof bytes);
        bytes[i] ^= 0x40;
        assert_false(is_taken(&out, bytes, false));
        if (i < 8 && i != 6) /* magic, version, type, 0 */
            assert_false(is_taken(&out, bytes, true));
    }
    memcpy(bytes, good, sizeof bytes);
    memset(bytes + 32, 'x', 64); /* a node name without an end */
    assert_false(is_taken(&out, bytes, true));
    memcpy(bytes, good, sizeof bytes);
    memcpy(bytes + 32, "a\033[2J", 6);
    assert_true(is_taken(&out, bytes, true));
    assert_string_equal(out.node, "a?[2J"); /* it may be printed on a terminal */
}

static hpct_status split_address(const parse_case *c, char *got, size_t size)
{
    char host[32];
    int port = 0;
    HPCT_TRY(accepted_if(hpct_net_link_split_address(c->text, host, sizeof host, &port)));
    snprintf(got, size, "%s %d", host, port);
    return HPCT_OK;
}

TEST(addresses_are_host_and_port)
{
    static const parse_case cases[] = {
        {"node0:22000", HPCT_OK, "node0 22000"},
        {"[fe80::1]:80", HPCT_OK, "fe80::1 80"},
        {"node0", HPCT_ERR_USAGE},
        {":80", HPCT_ERR_USAGE},
        {"node0:", HPCT_ERR_USAGE},
        {"node0:0", HPCT_ERR_USAGE},
        {"node0:65536", HPCT_ERR_USAGE},
        {"node0:8x", HPCT_ERR_USAGE},
        {"a-name-that-is-longer-than-32-bytes:80", HPCT_ERR_USAGE},
    };
    RUN_CASES(split_address, cases);
}

TEST(listen_reports_a_port_in_use)
{
    int first, second, port = 0;
    assert_int_equal(hpct_net_link_listen(&first, &port, "here", 1), HPCT_OK);
    assert_true(port > 0);
    assert_int_equal(hpct_net_link_listen(&second, &port, "here", 1), HPCT_ERR_CONFIG);
    char text[64];
    snprintf(text, sizeof text, "port %d on here is in use", port);
    assert_non_null(strstr(hpct_last_error(), text));
    assert_non_null(strstr(hpct_last_error(), "--hpc-train-port"));
    close(first);
}

static int option_of(int fd, int option)
{
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, IPPROTO_TCP, option, &value, &size) == 0 ? value : -1;
}

#define RTO_MAX_MS 44 /* of Linux 6.15 */

/* With the pause between repetitions limited at both ends, as the kernel can; else with as long a
 * pause after an outage as it lasted. */
TEST(silence_is_longer_than_an_outage)
{
    int port = 0, ends[2], listening, plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char address[64];
    assert_int_equal(hpct_net_link_listen(&listening, &port, "here", 1), HPCT_OK);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    assert_int_equal(hpct_net_link_connect(&ends[0], address, 60000), HPCT_OK);
    struct pollfd waits = {.fd = listening, .events = POLLIN};
    assert_int_equal(poll(&waits, 1, 60000), 1);
    ends[1] = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    bool limits = option_of(plain, RTO_MAX_MS) > 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(option_of(ends[i], TCP_NODELAY), 1);
        assert_int_equal(option_of(ends[i], RTO_MAX_MS), limits ? HPCT_NET_LINK_REPEAT_MS : -1);
        assert_int_equal(hpct_net_link_silence_ms(ends[i], 6000), limits ? 8000 : 13000);
        close(ends[i]);
    }
    assert_int_equal(hpct_net_link_silence_ms(plain, 6000), 13000);
    close(plain);
    close(listening);
}
