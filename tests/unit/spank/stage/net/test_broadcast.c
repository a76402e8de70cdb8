/* What a broadcast is made of, without a network: the trees, the frames, the packed items and what
 * becomes of wrong ones, the file of nodes, identities of sources. */
#include <config.h>

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/cases.h"

#include "base/status.h"
#include "spank/stage/net/broadcast_link.h"
#include "spank/stage/net/broadcast_team.h"
#include "spank/stage/net/pack.h"
#include "spank/stage/net/unpacker.h"
#include "spank/stage/tree/folders.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/identity.h"
#include "spank/stage/tree/thread_pool.h"

/* A changed size may ask for more memory than there is, which must be an error and no end. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static char base[64];
static int base_fd;
static hpct_stage_report quiet;

static int set_up(void **state)
{
    snprintf(base, sizeof base, "%s/hpc-train-test.XXXXXX", unit_folder());
    assert_non_null(mkdtemp(base));
    base_fd = open(base, O_RDONLY | O_DIRECTORY);
    hpct_stage_report_start(&quiet, false, -1);
    return 0;
}

static int tear_down(void **state)
{
    close(base_fd);
    hpct_stage_tree_remove(AT_FDCWD, base, NULL);
    return 0;
}

/* ---- the trees ---- */

static void check_tree(int tree, int count, int *inner)
{
    int parent, children[HPCT_STAGE_MAX_CHILDREN], its_parent,
        its_children[HPCT_STAGE_MAX_CHILDREN], log = 0;
    while (1 << log < count)
        log++;
    for (int me = 0; me < count; me++) {
        int found = hpct_stage_tree_place(tree, count, me, &parent, children), steps = 0;
        assert_within(found, 0, me == 0 ? 1 : HPCT_STAGE_MAX_CHILDREN);
        assert_true((parent < 0) == (me == 0));
        inner[me] += found > 0 && me > 0;
        for (int i = 0; i < found; i++) {
            hpct_stage_tree_place(tree, count, children[i], &its_parent, its_children);
            assert_int_equal(its_parent, me);
        }
        for (int at = me; at > 0; at = parent, steps++)
            hpct_stage_tree_place(tree, count, at, &parent, children);
        assert_within(steps, 0, log + 1);
    }
}

TEST(each_node_is_twice_in_the_trees_and_sends_in_one)
{
    for (int count = 2; count <= 130; count++) {
        int *inner = calloc((size_t) count, sizeof *inner);
        assert_non_null(inner);
        for (int tree = 0; tree < HPCT_STAGE_NUM_TREES; tree++)
            check_tree(tree, count, inner);
        for (int i = 1; i < count; i++)
            assert_within(inner[i], 0, 1); /* so nobody sends more than he gets */
        free(inner);
    }
}

/* ---- frames ---- */

TEST(frames_are_decoded_as_encoded)
{
    uint8_t head[HPCT_STAGE_WIRE_HEADER];
    char data[100] = "some bytes";
    hpct_stage_wire_header header = {.type = HPCT_STAGE_WIRE_BLOCK,
                                     .size = sizeof data,
                                     .sequence = 1ull << 40},
                           read;
    hpct_stage_wire_encode(head, &header, data);
    assert_true(hpct_stage_wire_decode(&read, head));
    assert_int_equal(read.type, HPCT_STAGE_WIRE_BLOCK);
    assert_int_equal(read.size, sizeof data);
    assert_true(read.sequence == 1ull << 40);
    assert_true(hpct_stage_wire_check(&read, data));
    for (size_t i = 0; i < 8 * sizeof data; i++) {
        data[i / 8] = (char) (data[i / 8] ^ 1 << i % 8);
        assert_false(hpct_stage_wire_check(&read, data));
        data[i / 8] = (char) (data[i / 8] ^ 1 << i % 8);
    }
}

TEST(altered_headers_are_rejected)
{
    uint8_t head[HPCT_STAGE_WIRE_HEADER];
    hpct_stage_wire_header header = {.type = HPCT_STAGE_WIRE_LETTER, .size = 3, .sequence = 7},
                           read;
    hpct_stage_wire_encode(head, &header, "abc");
    for (size_t i = 0; i < 8 * sizeof head; i++) {
        head[i / 8] = (uint8_t) (head[i / 8] ^ 1 << i % 8);
        assert_false(hpct_stage_wire_decode(&read, head));
        head[i / 8] = (uint8_t) (head[i / 8] ^ 1 << i % 8);
    }
    header =
        (hpct_stage_wire_header){.type = HPCT_STAGE_WIRE_BLOCK, .size = HPCT_STAGE_BLOCK_BYTES + 1};
    hpct_stage_wire_encode_again(head, &header);
    assert_false(hpct_stage_wire_decode(&read, head));
}

TEST(error_messages_are_made_printable)
{
    uint8_t out[HPCT_STAGE_WIRE_FAILURE_MAX];
    hpct_stage_wire_failure failure = {.node = 3, .status = HPCT_ERR_IO, .text = "a\033[2Jb"}, read;
    size_t size = hpct_stage_wire_put_failure(out, &failure);
    assert_true(hpct_stage_wire_get_failure(&read, out, size));
    assert_int_equal(read.node, 3);
    assert_int_equal(read.status, HPCT_ERR_IO);
    assert_string_equal(read.text, "a?[2Jb");
    assert_false(hpct_stage_wire_get_failure(&read, out, 4));
    out[4] = 0; /* a failure that is none */
    assert_false(hpct_stage_wire_get_failure(&read, out, size));
}

/* ---- packed items ---- */

static hpct_stage_item an_item(hpct_stage_item_kind kind, const char *path)
{
    return (hpct_stage_item){.kind = kind,
                             .path = path,
                             .mode = kind == HPCT_STAGE_ITEM_FOLDER ? 0750 : 0640,
                             .times = {{.tv_sec = 5, .tv_nsec = 6}, {.tv_sec = 7, .tv_nsec = 8}}};
}

static void put(hpct_stage_pack *pack, hpct_stage_pack_record record, const void *content)
{
    uint8_t *data = NULL;
    uint64_t size = record.kind == HPCT_STAGE_PACK_WHOLE ? record.item.size : record.size;
    assert_true(hpct_stage_pack_put(pack, &record, &data));
    if (content != NULL)
        memcpy(data, content, (size_t) size);
}

/* A folder, a small file, and one that comes in two pieces with a hole between them. */
static void pack_tree(hpct_stage_pack *pack)
{
    static const char text[] = "0123456789";
    hpct_stage_item small = an_item(HPCT_STAGE_ITEM_FILE, "a/small"),
                    large = an_item(HPCT_STAGE_ITEM_FILE, "large");
    char whole[10 + 4096 + 10] = {0};
    memcpy(whole, text, 10);
    memcpy(whole + 10 + 4096, text, 10);
    small.size = 10;
    large.size = sizeof whole;
    put(pack,
        (hpct_stage_pack_record){.kind = HPCT_STAGE_PACK_ITEM,
                                 .item = an_item(HPCT_STAGE_ITEM_FOLDER, "")},
        NULL);
    put(pack,
        (hpct_stage_pack_record){.kind = HPCT_STAGE_PACK_ITEM,
                                 .item = an_item(HPCT_STAGE_ITEM_FOLDER, "a")},
        NULL);
    put(pack,
        (hpct_stage_pack_record){
            .kind = HPCT_STAGE_PACK_WHOLE, .item = small, .hash = hpct_stage_hash(text, 10)},
        text);
    put(pack, (hpct_stage_pack_record){.kind = HPCT_STAGE_PACK_BEGIN, .item = large, .stream = 2},
        NULL);
    put(pack, (hpct_stage_pack_record){.kind = HPCT_STAGE_PACK_DATA, .stream = 2, .size = 10},
        text);
    put(pack, (hpct_stage_pack_record){.kind = HPCT_STAGE_PACK_HOLE, .stream = 2, .size = 4096},
        NULL);
    put(pack, (hpct_stage_pack_record){.kind = HPCT_STAGE_PACK_DATA, .stream = 2, .size = 10},
        text);
    put(pack,
        (hpct_stage_pack_record){
            .kind = HPCT_STAGE_PACK_END, .stream = 2, .hash = hpct_stage_hash(whole, sizeof whole)},
        NULL);
    put(pack, (hpct_stage_pack_record){.kind = HPCT_STAGE_PACK_DONE, .size = 4}, NULL);
}

static hpct_status take(const uint8_t *data, size_t size)
{
    const hpct_stage_unpacker_target target = {
        .entry = 0, .folder = base_fd, .root = "tree", .options = {.name = "SRC"}};
    hpct_stage_unpacker *unpacker = hpct_stage_unpacker_new(&target, 1, &quiet);
    assert_non_null(unpacker);
    hpct_status status = hpct_stage_unpacker_block(unpacker, data, size);
    if (status == HPCT_OK)
        status = hpct_stage_unpacker_end(unpacker);
    hpct_stage_unpacker_free(unpacker);
    return status;
}

TEST(packed_trees_are_unpacked_unchanged)
{
    uint8_t data[8192];
    char text[64] = "";
    struct stat info;
    hpct_stage_pack pack = {.data = data, .room = sizeof data};
    pack_tree(&pack);
    assert_int_equal(take(data, pack.size), HPCT_OK);
    int fd = openat(base_fd, "tree/a/small", O_RDONLY);
    assert_int_equal(read(fd, text, sizeof text), 10);
    assert_string_equal(text, "0123456789");
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_int_equal(info.st_mtim.tv_sec, 7);
    assert_int_equal(info.st_mtim.tv_nsec, 8);
    close(fd);
    fd = openat(base_fd, "tree/large", O_RDONLY);
    assert_int_equal(pread(fd, text, sizeof text, 10 + 4096), 10);
    close(fd);
    assert_int_equal(fstatat(base_fd, "tree/a", &info, 0), 0);
    assert_int_equal(info.st_mode & 07777, 0750);
    hpct_stage_tree_remove(base_fd, "tree", NULL);
}

/* Each byte changed, the block cut anywhere: never accepted as something else than it was, never
 * outside the tree. (On the way the frame's hash would find it out first.) */
TEST(damaged_items_are_rejected)
{
    uint8_t data[8192], wrong[8192];
    hpct_stage_pack pack = {.data = data, .room = sizeof data};
    struct stat info;
    pack_tree(&pack);
    for (size_t i = 0; i < pack.size; i++) {
        memcpy(wrong, data, pack.size);
        assert_true(take(wrong, i) != HPCT_OK);
        hpct_stage_tree_remove(base_fd, "tree", NULL);
    }
    for (size_t i = 0; i < pack.size; i++) {
        memcpy(wrong, data, pack.size);
        wrong[i] ^= 0x11;
        /* other names, modes and times are as good as the right ones */
        if (take(wrong, pack.size) == HPCT_OK && fstatat(base_fd, "tree/large", &info, 0) == 0)
            assert_int_equal(info.st_size, 10 + 4096 + 10);
        hpct_stage_tree_remove(base_fd, "tree", NULL);
        assert_int_equal(fstatat(AT_FDCWD, base, &info, 0), 0);
    }
}

static void expect(const hpct_stage_pack_record *records, size_t count, bool good)
{
    uint8_t data[4096];
    hpct_stage_pack pack = {.data = data, .room = sizeof data};
    const hpct_stage_pack_record root = {.kind = HPCT_STAGE_PACK_ITEM,
                                         .item = an_item(HPCT_STAGE_ITEM_FOLDER, "")};
    put(&pack, root, NULL);
    for (size_t i = 0; i < count; i++)
        put(&pack, records[i], NULL);
    assert_true((take(data, pack.size) == HPCT_OK) == good);
    hpct_stage_tree_remove(base_fd, "tree", NULL);
}

static void expect_nonsense(const hpct_stage_pack_record *records, size_t count)
{
    expect(records, count, false);
}

TEST(inconsistent_items_are_rejected)
{
    hpct_stage_item file = an_item(HPCT_STAGE_ITEM_FILE, "file"),
                    link = an_item(HPCT_STAGE_ITEM_SYMLINK, "link");
    const hpct_stage_pack_record begin = {.kind = HPCT_STAGE_PACK_BEGIN, .item = file};
    const hpct_stage_pack_record end = {.kind = HPCT_STAGE_PACK_END,
                                        .hash = hpct_stage_hash("", 0)};
    const hpct_stage_pack_record done = {.kind = HPCT_STAGE_PACK_DONE, .size = 2};
    const hpct_stage_pack_record data = {.kind = HPCT_STAGE_PACK_HOLE, .size = 5};
    const hpct_stage_pack_record many = {.kind = HPCT_STAGE_PACK_END, .stream = 1000};
    const hpct_stage_pack_record other = {.kind = HPCT_STAGE_PACK_DONE, .entry = 1, .size = 1};
    const hpct_stage_pack_record few = {.kind = HPCT_STAGE_PACK_DONE, .size = 3};
    link.target = "../../../etc/passwd";
    const hpct_stage_pack_record out = {.kind = HPCT_STAGE_PACK_ITEM, .item = link};
    const hpct_stage_pack_record up = {.kind = HPCT_STAGE_PACK_ITEM,
                                       .item = an_item(HPCT_STAGE_ITEM_FOLDER, "../up")};
    expect((hpct_stage_pack_record[]){begin, end, done}, 3, true);
    expect_nonsense((hpct_stage_pack_record[]){begin, begin}, 2); /* begun twice */
    expect_nonsense((hpct_stage_pack_record[]){end}, 1);          /* an end of nothing */
    expect_nonsense((hpct_stage_pack_record[]){data}, 1);
    expect_nonsense((hpct_stage_pack_record[]){many}, 1);
    expect_nonsense((hpct_stage_pack_record[]){other}, 1);            /* nobody asked for it */
    expect_nonsense((hpct_stage_pack_record[]){begin, done}, 2);      /* one not ended */
    expect_nonsense((hpct_stage_pack_record[]){begin, data, end}, 3); /* longer than it said */
    expect_nonsense((hpct_stage_pack_record[]){begin, end, few}, 3);  /* one missing */
    expect_nonsense((hpct_stage_pack_record[]){begin, end, done, end}, 4);
    expect_nonsense((hpct_stage_pack_record[]){begin, end, done, done}, 4);
    expect_nonsense((hpct_stage_pack_record[]){begin, end}, 2); /* no end of all */
    expect_nonsense((hpct_stage_pack_record[]){out, done}, 2);
    expect_nonsense((hpct_stage_pack_record[]){up, done}, 2);
}

/* ---- the workers ---- */

#define NUM_BLOCKS 500

typedef struct work {
    uint8_t blocks[NUM_BLOCKS];
    atomic_int done[NUM_BLOCKS], done_in_all;
    int back;
    int bad; /* block that fails, or -1 */
} work;

static hpct_status do_block(void *context, const uint8_t *data, size_t size)
{
    work *w = context;
    int number = (int) (data - w->blocks);
    assert_int_equal(size, 1);
    if (number % 7 == 0) /* so that later ones overtake it */
        usleep(200);
    w->done[number]++;
    w->done_in_all++;
    return number == w->bad ? hpct_fail(HPCT_ERR_IO, "block %d", number) : HPCT_OK;
}

static void get_back(void *context)
{
    work *w = context;
    if (w->bad < 0)
        assert_int_equal(w->done[w->back], 1); /* the oldest one, and not before it was done */
    w->back++;
}

TEST(blocks_are_released_in_order)
{
    work *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->bad = -1;
    const hpct_stage_pool_job job = {.work = do_block, .back = get_back, .context = w};
    hpct_stage_pool *workers = hpct_stage_pool_new(&job, 4, 12);
    for (int i = 0; i < NUM_BLOCKS; i++) {
        if (i % 5 == 0) { /* the caller's own */
            w->done[i]++;
            hpct_stage_pool_give_done(workers);
        } else {
            assert_int_equal(hpct_stage_pool_give(workers, &w->blocks[i], 1), HPCT_OK);
        }
    }
    assert_int_equal(hpct_stage_pool_wait(workers), HPCT_OK);
    assert_int_equal(w->back, NUM_BLOCKS);
    hpct_stage_pool_free(workers);
    free(w);
}

TEST(worker_threads_report_the_first_error)
{
    work *w = calloc(1, sizeof *w);
    hpct_status status = HPCT_OK;
    assert_non_null(w);
    w->bad = 3;
    const hpct_stage_pool_job job = {.work = do_block, .back = get_back, .context = w};
    hpct_stage_pool *workers = hpct_stage_pool_new(&job, 4, 12);
    for (int i = 0; i < NUM_BLOCKS && status == HPCT_OK; i++)
        status = hpct_stage_pool_give(workers, &w->blocks[i], 1);
    assert_int_equal(status, HPCT_ERR_IO);
    assert_string_equal(hpct_last_error(), "block 3");
    assert_int_equal(hpct_stage_pool_wait(workers), HPCT_ERR_IO);
    assert_within(w->done_in_all, 4, 3 + 12 + 1);
    hpct_stage_pool_free(workers);
    free(w);
}

/* ---- the file of nodes ---- */

static hpct_status read_team(const char *text, hpct_stage_team *team)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/nodes", base);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    *team = (hpct_stage_team){0};
    hpct_status status = hpct_stage_team_read(path, 0, team);
    if (status != HPCT_OK)
        hpct_stage_team_free(team);
    return status;
}

static hpct_status parse_team(const parse_case *c, char *got, size_t size)
{
    hpct_stage_team team;
    HPCT_TRY(read_team(c->text, &team));
    for (int i = 0; i < team.count; i++) {
        size_t used = strlen(got);
        snprintf(got + used, size - used, "%s%s %d", i > 0 ? ", " : "", team.hosts[i],
                 team.ports[i]);
    }
    hpct_stage_team_free(&team);
    return HPCT_OK;
}

TEST(node_lists_are_parsed)
{
    static const parse_case cases[] = {
        {"n009:22000\nn010.cluster:1\n[fe80::1]:65535", HPCT_OK,
         "n009 22000, n010.cluster 1, fe80::1 65535"},
        {"", HPCT_ERR_USAGE},
        {"n1", HPCT_ERR_USAGE},
        {"n1:0\n", HPCT_ERR_USAGE},
        {"n1:65536\n", HPCT_ERR_USAGE},
        {":22\n", HPCT_ERR_USAGE},
        {"a b:1\n", HPCT_ERR_USAGE},
        {"n1:22\n\n", HPCT_ERR_USAGE},
        {"[a:1\n", HPCT_ERR_USAGE},
        {"n1:x\n", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_team, cases);
}

/* ---- the same source ---- */

TEST(a_server_names_what_it_serves)
{
    static const char *const remote[] = {
        "nas:/home", "10.0.0.1:/x", "[fe80::1]:/x", "//nas/data", "10.0.0.1@tcp:/lustre",
        "u@nas:",    "bucket:set"};
    static const char *const local[] = {"/dev/sda1",     "tmpfs",          "none", "localhost:/x",
                                        "127.0.0.1:/x",  "u@localhost:/x", ":/x",  "/a:b",
                                        "//localhost/x", "pool/data:x",    ""};
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        assert_true(hpct_stage_origin_is_remote(remote[i]));
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        assert_false(hpct_stage_origin_is_remote(local[i]));
}

TEST(server_file_is_identified_on_all_nodes)
{
    struct stat one = {.st_ino = 5, .st_size = 7, .st_mtim = {8, 9}, .st_ctim = {10, 11}};
    struct stat other = one;
    hpct_stage_identity first, own;
    hpct_stage_identity_set(&first, &one, 0);
    hpct_stage_identity_set(&own, &one, 0);
    assert_true(hpct_stage_identity_same(&first, &own));
    other.st_ino++; /* as each node's FUSE numbers it */
    hpct_stage_identity_set(&own, &other, 0);
    assert_false(hpct_stage_identity_same(&first, &own));
    own.origin = 77;
    assert_false(hpct_stage_identity_same(&first, &own));
    first.origin = 77;
    assert_true(hpct_stage_identity_same(&first, &own));
    first.origin = 78;
    assert_false(hpct_stage_identity_same(&first, &own));
    first.origin = 77;
    other.st_mtim.tv_nsec++;
    hpct_stage_identity_set(&own, &other, 77);
    assert_false(hpct_stage_identity_same(&first, &own));
}

int main(void)
{
    return unit_run(set_up, tear_down);
}
