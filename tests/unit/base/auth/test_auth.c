/* base/auth: the key and its file; the handshake, with each byte changed and each message put in
 * another's place; seals. */
#include "base/auth/forget.h"
#include "base/auth/mac.h"
#include "base/auth/proof.h"
#include "base/auth/seal.h"
#include "base/status.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const hpct_auth_key key = {{1, 2, 3}};
static const hpct_auth auth = {.key = &key, .run = "42.0"};

/* ---- the key ---- */

TEST(keys_are_text)
{
    hpct_auth_key a, b, none;
    char text[HPCT_AUTH_KEY_TEXT + 2];
    assert_int_equal(hpct_auth_key_draw(&a), HPCT_OK);
    assert_int_equal(hpct_auth_key_draw(&b), HPCT_OK);
    assert_memory_not_equal(&a, &b, sizeof a);
    hpct_auth_key_to_text(text, &a);
    assert_int_equal(strspn(text, "0123456789abcdef"), 64);
    assert_true(hpct_auth_key_from_text(&b, text));
    assert_memory_equal(&a, &b, sizeof a);
    strcat(text, "\n");
    assert_true(hpct_auth_key_from_text(&b, text));
    strcat(text, "\n");
    assert_false(hpct_auth_key_from_text(&none, text));
    text[63] = '\0';
    assert_false(hpct_auth_key_from_text(&none, text));
    text[63] = 'G';
    text[64] = '\0';
    assert_false(hpct_auth_key_from_text(&none, text));
    assert_false(hpct_auth_key_from_text(&none, ""));
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void refused(const char *path, const char *why)
{
    hpct_auth_key *read;
    assert_int_equal(hpct_auth_key_read(&read, path), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), path));
    assert_non_null(strstr(hpct_last_error(), why));
}

/* In all places that a core dump has, also beyond a page; parts of a copy count. */
TEST(copies_are_forgotten)
{
    enum { ROOM = 1 << 20 };
    static char fixed[HPCT_AUTH_KEY_TEXT];
    char local[HPCT_AUTH_KEY_TEXT + 5], zeros[HPCT_AUTH_KEY_TEXT] = "";
    hpct_auth_key *kept, *inside;
    assert_int_equal(hpct_auth_key_new(&kept), HPCT_OK);
    assert_int_equal(hpct_auth_key_draw(kept), HPCT_OK);
    char *heap = calloc(1, ROOM);
    const size_t places[] = {1, 4093, 65536 - 30, 65536 * 3 - 1, ROOM - HPCT_AUTH_KEY_TEXT};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        hpct_auth_key_to_text(heap + places[i], kept);
    hpct_auth_key_to_text(fixed, kept);
    hpct_auth_key_to_text(local + 5, kept);
    memset(local + 5, '+', 40); /* in use again */
    memcpy(heap + 777, kept, sizeof *kept);
    inside = malloc(sizeof *inside);
    *inside = *kept;
    hpct_auth_key_forget(inside);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        assert_memory_equal(heap + places[i], zeros, HPCT_AUTH_KEY_TEXT);
    assert_memory_equal(heap + 777, zeros, sizeof *kept);
    assert_memory_equal(fixed, zeros, sizeof fixed);
    assert_memory_equal(inside, zeros, sizeof *inside);
    assert_memory_equal(local + 5 + 48, zeros, 16);
    assert_int_equal(local[5], '+');
    assert_memory_not_equal(kept, zeros, sizeof *kept);
    free(inside);
    free(heap);
    hpct_auth_key_free(kept);
}

TEST(files_that_others_may_read_are_refused)
{
    char folder[] = "/tmp/test_auth.XXXXXX", path[64], other[64], text[HPCT_AUTH_KEY_TEXT];
    hpct_auth_key *read;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/key", folder);
    snprintf(other, sizeof other, "%s/link", folder);
    refused(path, strerror(ENOENT));
    hpct_auth_key_to_text(text, &key);
    write_file(path, text, 0600);
    assert_int_equal(hpct_auth_key_read(&read, path), HPCT_OK);
    assert_memory_equal(read, &key, sizeof key);
    hpct_auth_key_free(read);
    assert_int_equal(symlink(path, other), 0);
    refused(other, strerror(ELOOP));
    write_file(path, text, 0640);
    refused(path, "0600");
    write_file(path, text, 0604);
    refused(path, "0600");
    write_file(path, "0123", 0600);
    refused(path, "64 hexadecimal digits");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(path, "plain file");
    if (geteuid() == 0) {
        write_file(path, text, 0600);
        assert_int_equal(chown(path, 65534, 65534), 0);
        refused(path, "another user");
    }
    unlink(path);
    unlink(other);
    rmdir(folder);
}

/* ---- the handshake ---- */

typedef struct wire {
    uint8_t hello[HPCT_AUTH_PROOF_HELLO], answer[HPCT_AUTH_PROOF_ANSWER],
        last[HPCT_AUTH_PROOF_LAST], accept[HPCT_AUTH_PROOF_ACCEPT];
} wire;

enum {
    HELLO_END = HPCT_AUTH_PROOF_HELLO,
    ANSWER_END = HELLO_END + HPCT_AUTH_PROOF_ANSWER,
    LAST_END = ANSWER_END + HPCT_AUTH_PROOF_LAST,
    ALL = LAST_END + HPCT_AUTH_PROOF_ACCEPT
};

/* Rank 3 connects to rank 0, and byte `at` of all that they say is changed on the way (-1: none).
 * How many messages were believed; and, when all are, whether both have the same keys. */
static int shake_hands(const hpct_auth *connector, const hpct_auth *listener, uint32_t to, int at)
{
    wire w;
    hpct_auth_proof c, l;
    hpct_auth_key in[2], out[2];
    assert_int_equal(hpct_auth_proof_begin(&c, connector, HPCT_AUTH_FOR_WATCH, 3, 0), HPCT_OK);
    memcpy(w.hello, c.hello, sizeof w.hello);
    if (at >= 0 && at < HELLO_END)
        w.hello[at] ^= 1;
    if (!hpct_auth_proof_hear(&l, listener, to, w.hello))
        return 0;
    assert_int_equal(l.from, 3);
    assert_int_equal(l.purpose, HPCT_AUTH_FOR_WATCH);
    memcpy(w.answer, l.answer, sizeof w.answer);
    if (at >= HELLO_END && at < ANSWER_END)
        w.answer[at - HELLO_END] ^= 1;
    if (!hpct_auth_proof_answered(&c, w.answer, w.last))
        return 1;
    if (at >= ANSWER_END && at < LAST_END)
        w.last[at - ANSWER_END] ^= 1;
    if (!hpct_auth_proof_believed(&l, w.last))
        return 2;
    assert_true(hpct_auth_proof_accept(&l, w.accept));
    if (at >= LAST_END)
        w.accept[at - LAST_END] ^= 1;
    if (!hpct_auth_proof_accepted(&c, w.accept))
        return 3;
    assert_true(hpct_auth_proof_finish(&c, &out[0], &in[0]));
    assert_true(hpct_auth_proof_finish(&l, &in[1], &out[1]));
    assert_memory_equal(&in[0], &out[1], sizeof key);
    assert_memory_equal(&in[1], &out[0], sizeof key);
    assert_memory_not_equal(&in[0], &in[1], sizeof key);
    assert_memory_not_equal(&in[0], &key, sizeof key);
    return 4;
}

TEST(both_ends_are_authenticated)
{
    const hpct_auth_key other = {{1, 2, 4}};
    const hpct_auth stranger = {.key = &other, .run = "42.0"}, next = {.key = &key, .run = "42.1"};
    assert_int_equal(shake_hands(&auth, &auth, 0, -1), 4);
    assert_int_equal(shake_hands(&stranger, &auth, 0, -1), 0);
    assert_int_equal(shake_hands(&auth, &stranger, 0, -1), 0);
    assert_int_equal(shake_hands(&next, &auth, 0, -1), 0);
    assert_int_equal(shake_hands(&auth, &auth, 1, -1), 0); /* it was meant for another rank */
    for (int at = 0; at < ALL; at++)
        assert_int_equal(shake_hands(&auth, &auth, 0, at), at < HELLO_END    ? 0
                                                           : at < ANSWER_END ? 1
                                                           : at < LAST_END   ? 2
                                                                             : 3);
}

/* What was overheard of one handshake, said in another, or back to who said it. */
TEST(replays_are_rejected)
{
    hpct_auth_proof c, l, again;
    uint8_t last[HPCT_AUTH_PROOF_LAST], accept[HPCT_AUTH_PROOF_ACCEPT],
        reflected[HPCT_AUTH_PROOF_LAST];
    assert_int_equal(hpct_auth_proof_begin(&c, &auth, HPCT_AUTH_FOR_PEERS, 3, 0), HPCT_OK);
    assert_true(hpct_auth_proof_hear(&l, &auth, 0, c.hello));
    assert_true(hpct_auth_proof_hear(&again, &auth, 0, c.hello)); /* said again: it is answered */
    assert_memory_not_equal(l.answer, again.answer, sizeof l.answer);
    assert_true(hpct_auth_proof_answered(&c, l.answer, last));
    assert_true(hpct_auth_proof_believed(&l, last));
    assert_false(hpct_auth_proof_believed(&again, last)); /* and not believed */
    assert_true(hpct_auth_proof_accept(&l, accept));
    assert_false(hpct_auth_proof_accepted(&c, last));
    assert_false(hpct_auth_proof_believed(&again, accept));
    /* the listener's own words, to a connector that waits for an answer */
    hpct_auth_proof other;
    assert_int_equal(hpct_auth_proof_begin(&other, &auth, HPCT_AUTH_FOR_PEERS, 3, 0), HPCT_OK);
    assert_false(hpct_auth_proof_answered(&other, l.answer, reflected));
    assert_false(hpct_auth_proof_answered(
        &other, other.hello + HPCT_AUTH_PROOF_HELLO - HPCT_AUTH_PROOF_ANSWER, reflected));
}

/* ---- seals ---- */

TEST(message_codes_enforce_order)
{
    hpct_auth_seal *out, *in;
    uint8_t tags[3][HPCT_AUTH_SEAL_TAG];
    assert_int_equal(hpct_auth_seal_new(&out, &key), HPCT_OK);
    for (int i = 0; i < 3; i++) {
        hpct_auth_seal_add(out, "same ", 5);
        hpct_auth_seal_add(out, "text", 4);
        assert_true(hpct_auth_seal_end(out, tags[i]));
    }
    assert_memory_not_equal(tags[0], tags[1], HPCT_AUTH_SEAL_TAG);
    assert_int_equal(hpct_auth_seal_new(&in, &key), HPCT_OK);
    hpct_auth_seal_add(in, "same text", 9); /* in how many pieces does not count */
    assert_true(hpct_auth_seal_check(in, tags[0]));
    hpct_auth_seal_add(in, "same text", 9);
    assert_false(hpct_auth_seal_check(in, tags[2])); /* one was left out */
    hpct_auth_seal_add(in, "same text", 9);
    assert_false(hpct_auth_seal_check(in, tags[2])); /* nothing is good behind a wrong one */
    hpct_auth_seal_free(out);
    hpct_auth_seal_free(in);
}

/* GMAC: a nonce of zeros, which is the first message's, over nothing with the zero key is test case
 * 13 of McGrew and Viega's GCM. HMAC: Python's hmac.new(bytes(range(32)), b"hpc-train", "sha256").
 */
TEST(libcrypto_matches_test_vectors)
{
    static const uint8_t case13[HPCT_AUTH_SEAL_TAG] = {0x53, 0x0f, 0x8a, 0xfb, 0xc7, 0x45,
                                                       0x36, 0xb9, 0xa9, 0x63, 0xb4, 0xf1,
                                                       0xc4, 0xcb, 0x73, 0x8b};
    static const uint8_t of_python[HPCT_AUTH_MAC_BYTES] = {
        0xd3, 0x30, 0xab, 0x09, 0xe3, 0x2e, 0xd2, 0x86, 0x15, 0x73, 0xbe,
        0x06, 0x69, 0x9e, 0x9a, 0x0b, 0x7a, 0x38, 0xbf, 0x8e, 0x1b, 0x86,
        0x04, 0x13, 0x85, 0x29, 0x97, 0xf8, 0xfc, 0x4f, 0xc4, 0x52};
    const hpct_auth_key zero = {{0}};
    hpct_auth_key range;
    hpct_auth_seal *seal;
    uint8_t tag[HPCT_AUTH_SEAL_TAG];
    assert_int_equal(hpct_auth_seal_new(&seal, &zero), HPCT_OK);
    assert_true(hpct_auth_seal_end(seal, tag));
    assert_memory_equal(tag, case13, sizeof tag);
    hpct_auth_seal_free(seal);
    for (int i = 0; i < HPCT_AUTH_KEY_BYTES; i++)
        range.bytes[i] = (uint8_t) i;
    assert_true(hpct_auth_mac_check(of_python, &range, "hpc-train", 9));
    assert_false(hpct_auth_mac_check(of_python, &range, "hpc-trail", 9));
}
