/* The walk and the writer: what is listed, what is made of it, and what a hostile description
 * cannot do. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/cases.h"

#include "spank/stage/tree/folders.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/walk.h"
#include "spank/stage/tree/writer.h"

static char base[] = "/tmp/hpc-train-test.XXXXXX";
static int base_fd, into_fd;
static hpct_stage_report quiet;

static void in_base(char path[PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", base, name);
}

static void put_file(const char *name, const void *data, size_t size)
{
    int fd = openat(base_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), (ssize_t) size);
    close(fd);
}

static int set_up(void **state)
{
    assert_non_null(mkdtemp(base));
    base_fd = open(base, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mkdirat(base_fd, "into", 0700), 0);
    into_fd = openat(base_fd, "into", O_RDONLY | O_DIRECTORY);
    hpct_stage_report_start(&quiet, false, -1);
    return 0;
}

static int tear_down(void **state)
{
    close(into_fd);
    close(base_fd);
    hpct_stage_tree_remove(AT_FDCWD, base, NULL);
    return 0;
}

static int empty(void **state)
{
    hpct_stage_tree_remove(into_fd, "t", NULL);
    hpct_stage_tree_remove(base_fd, "src", NULL);
    return 0;
}

/* ---- names ---- */

static hpct_status check_path(const parse_case *c, char *got, size_t size)
{
    return accepted_if(hpct_stage_item_path_ok(c->text));
}

TEST(paths_stay_below_the_tree)
{
    static const parse_case cases[] = {
        {"", HPCT_OK},
        {"a", HPCT_OK},
        {"a/b c\n/\xff", HPCT_OK},
        {"..a", HPCT_OK},
        {"a/...", HPCT_OK},
        {"-", HPCT_OK},
        {"/", HPCT_ERR_USAGE},
        {"/a", HPCT_ERR_USAGE},
        {"a/", HPCT_ERR_USAGE},
        {"a//b", HPCT_ERR_USAGE},
        {".", HPCT_ERR_USAGE},
        {"..", HPCT_ERR_USAGE},
        {"a/..", HPCT_ERR_USAGE},
        {"../a", HPCT_ERR_USAGE},
        {"./a", HPCT_ERR_USAGE},
        {"a/./b", HPCT_ERR_USAGE},
    };
    RUN_CASES(check_path, cases);
}

TEST(paths_have_bounded_lengths_and_depths)
{
    char path[PATH_MAX + 2];
    memset(path, 'a', 256);
    path[256] = '\0';
    assert_false(hpct_stage_item_path_ok(path));
    path[255] = '\0';
    assert_true(hpct_stage_item_path_ok(path));
    for (int i = 0; i < PATH_MAX; i++)
        path[i] = i % 200 == 199 ? '/' : 'a';
    path[PATH_MAX] = '\0';
    assert_false(hpct_stage_item_path_ok(path));
    path[PATH_MAX - 1] = '\0';
    assert_true(hpct_stage_item_path_ok(path));
    for (int i = 0; i < 2 * HPCT_STAGE_ITEM_DEPTH; i++)
        path[i] = i % 2 == 1 ? '/' : 'a';
    path[2 * HPCT_STAGE_ITEM_DEPTH - 1] = '\0';
    assert_true(hpct_stage_item_path_ok(path));
    strcpy(path + 2 * HPCT_STAGE_ITEM_DEPTH - 1, "/a");
    assert_false(hpct_stage_item_path_ok(path));
}

/* With: what the link contains. */
static hpct_status check_link(const parse_case *c, char *got, size_t size)
{
    return accepted_if(hpct_stage_item_link_stays(c->text, c->with));
}

TEST(links_stay_below_the_tree)
{
    static const parse_case cases[] = {
        {"l", HPCT_OK, NULL, 0, "a"},
        {"l", HPCT_OK, NULL, 0, "."},
        {"a/l", HPCT_OK, NULL, 0, ".."},
        {"a/b/l", HPCT_OK, NULL, 0, "../.././c//d/"},
        {"l", HPCT_ERR_USAGE, NULL, 0, ".."},
        {"a/l", HPCT_ERR_USAGE, NULL, 0, "../.."},
        {"a/l", HPCT_ERR_USAGE, NULL, 0, "/etc"},
        {"a/b/l", HPCT_ERR_USAGE, NULL, 0, "c/.."},
        {"a/b/l", HPCT_ERR_USAGE, NULL, 0, "../c/../.."},
        {"l", HPCT_ERR_USAGE, NULL, 0, ""},
        {"", HPCT_ERR_USAGE, NULL, 0, "a"},
    };
    RUN_CASES(check_link, cases);
}

/* ---- hashes ---- */

TEST(hashes_are_xxh3_whatever_the_pieces)
{
    size_t size = (size_t) HPCT_STAGE_HASH_BLOCK * 2 + 12345;
    unsigned char *data = calloc(1, size);
    hpct_stage_hasher *hasher = hpct_stage_hasher_new();
    uint64_t blocks[3];
    assert_int_equal(hpct_stage_hash("", 0), 0x2D06800538D394C2); /* XXH3's own for no bytes */
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char) (i * 7 + i / 1000);
    memset(data + 1000, 0, HPCT_STAGE_HASH_BLOCK + 100); /* what could be a hole */
    uint64_t whole = hpct_stage_hash(data, size);
    for (size_t step = 999; step < size; step = step * 3 + 1) {
        hpct_stage_hasher_reset(hasher);
        for (size_t at = 0; at < size; at += step)
            hpct_stage_hasher_add(hasher, data + at, size - at < step ? size - at : step);
        assert_int_equal(hpct_stage_hasher_end(hasher), whole);
    }
    hpct_stage_hasher_reset(hasher);
    hpct_stage_hasher_add(hasher, data, 1000);
    hpct_stage_hasher_add(hasher, NULL, HPCT_STAGE_HASH_BLOCK + 100);
    hpct_stage_hasher_add(hasher, data + HPCT_STAGE_HASH_BLOCK + 1100,
                          size - HPCT_STAGE_HASH_BLOCK - 1100);
    assert_int_equal(hpct_stage_hasher_end(hasher), whole);
    for (int i = 0; i < 3; i++)
        blocks[i] = hpct_stage_hash(data + (size_t) i * HPCT_STAGE_HASH_BLOCK,
                                    i == 2 ? 12345 : (size_t) HPCT_STAGE_HASH_BLOCK);
    assert_int_equal(hpct_stage_hash_blocks(blocks, 3), whole);
    memset(data, 0, size);
    for (size_t n = HPCT_STAGE_HASH_BLOCK - 1; n < size; n += HPCT_STAGE_HASH_BLOCK / 2 + 1) {
        hpct_stage_hasher_reset(hasher);
        hpct_stage_hasher_add(hasher, NULL, n);
        assert_int_equal(hpct_stage_hasher_end(hasher), hpct_stage_hash(data, n));
    }
    hpct_stage_hasher_reset(hasher);
    hpct_stage_hasher_add(hasher, NULL, HPCT_STAGE_HASH_BLOCK);
    assert_int_equal(hpct_stage_hasher_end(hasher), hpct_stage_hash(data, HPCT_STAGE_HASH_BLOCK));
    hpct_stage_hasher_free(hasher);
    free(data);
}

/* ---- from one to the other ---- */

static void copy_item(hpct_stage_walk *walk, size_t i, hpct_stage_writer *w)
{
    char path[PATH_MAX], target[PATH_MAX];
    hpct_stage_item item;
    uint64_t hash = 0;
    hpct_stage_walk_item(walk, i, &item, path, target);
    if (item.kind != HPCT_STAGE_ITEM_FILE) {
        assert_int_equal(hpct_stage_writer_add(w, &item), HPCT_OK);
        return;
    }
    char *data = malloc((size_t) item.size + 1);
    if (i % 2 == 0) {
        assert_int_equal(hpct_stage_walk_whole(walk, i, data), HPCT_OK);
        assert_int_equal(hpct_stage_writer_whole(w, &item, data, &hash), HPCT_OK);
        assert_int_equal(hash, hpct_stage_hash(data, (size_t) item.size));
        free(data);
        return;
    }
    hpct_stage_sink *sink = NULL;
    int fd = -1;
    assert_int_equal(hpct_stage_walk_file(walk, i, &fd), HPCT_OK);
    assert_int_equal(hpct_stage_writer_begin(w, &item, &sink), HPCT_OK);
    for (uint64_t at = 0, end = 0; at < item.size; at = end) {
        bool hole = false;
        assert_int_equal(hpct_stage_walk_extent(walk, i, fd, at, &end, &hole), HPCT_OK);
        if (hole) {
            assert_int_equal(hpct_stage_sink_data(sink, NULL, end - at), HPCT_OK);
            memset(data + at, 0, (size_t) (end - at));
            continue;
        }
        assert_int_equal(hpct_stage_walk_read(walk, i, fd, data + at, (size_t) (end - at), at),
                         HPCT_OK);
        assert_int_equal(hpct_stage_sink_data(sink, data + at, (size_t) (end - at)), HPCT_OK);
    }
    assert_int_equal(hpct_stage_walk_unchanged(walk, i, fd), HPCT_OK);
    close(fd);
    assert_int_equal(hpct_stage_sink_end(sink, &hash), HPCT_OK);
    assert_int_equal(hash, hpct_stage_hash(data, (size_t) item.size));
    free(data);
}

/* What `find` and `diff` say of two trees. */
static void assert_same(void)
{
    char command[4 * PATH_MAX];
    snprintf(command, sizeof command,
             "cd %s/src && find . -printf '%%P|%%y|%%m|%%s|%%T@|%%l|%%n\\0' | sort -z >%s/1 && "
             "cd %s/into/t && find . -printf '%%P|%%y|%%m|%%s|%%T@|%%l|%%n\\0' | sort -z >%s/2 && "
             "sed -z -i '/|d|/s/|[0-9]*|/|/3' %s/1 %s/2 && cmp %s/1 %s/2 && "
             "diff -r --no-dereference %s/src %s/into/t",
             base, base, base, base, base, base, base, base, base, base);
    assert_int_equal(system(command), 0);
}

TEST_WITH(trees_are_copied_unchanged, NULL, empty)
{
    char command[4 * PATH_MAX], large[3000];
    hpct_stage_walk *walk = NULL;
    hpct_stage_writer *w = NULL;
    static const hpct_stage_walk_options keep;
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char) i;
    snprintf(command, sizeof command,
             "cd %s && mkdir -p 'src/sub dir/empty' src/z/locked src/many && cd src && "
             "printf one >one && : >nothing && printf odd >\"$(printf 'sub dir/n\\nl \\377')\" && "
             "ln -s one link && ln -s ../one 'sub dir/up' && ln -s missing dangling && "
             "head -c 3000000 /dev/urandom >large && "
             "truncate -s 40000000 holes && printf x | dd of=holes bs=1 seek=20000000 "
             "conv=notrunc status=none && ln one 'sub dir/second' && ln one a-first && "
             "printf x >z/locked/f && for i in $(seq 100); do echo $i >many/$i; done && "
             "chmod 750 'sub dir' && chmod 4755 large && chmod 000 nothing && "
             "touch -d '2001-02-03 04:05:06.789' one 'sub dir/empty' && chmod 555 z/locked z && "
             "chmod u-s large",
             base);
    assert_int_equal(system(command), 0);
    int src = openat(base_fd, "src", O_RDONLY | O_DIRECTORY);
    mode_t old = umask(077);
    assert_int_equal(hpct_stage_walk_open(&walk, src, "src", &keep, &quiet), HPCT_OK);
    assert_int_equal(hpct_stage_walk_sum(walk).entries, 117);
    assert_true(hpct_stage_walk_sum(walk).bytes < 4000000); /* holes are not counted */
    hpct_stage_writer_options options = {.name = "src"};
    assert_int_equal(hpct_stage_writer_open(&w, into_fd, "t", &options), HPCT_OK);
    for (size_t i = 0; i < hpct_stage_walk_count(walk); i++)
        copy_item(walk, i, w);
    assert_int_equal(hpct_stage_writer_finish(w), HPCT_OK);
    hpct_stage_writer_close(w);
    umask(old);
    assert_same();
    struct stat info;
    assert_int_equal(fstatat(into_fd, "t/holes", &info, 0), 0);
    assert_true(info.st_blocks * 512 < 1000000);

    /* What is listed twice is listed in the same order. */
    hpct_stage_walk *again = NULL;
    assert_int_equal(hpct_stage_walk_open(&again, src, "src", &keep, &quiet), HPCT_OK);
    assert_int_equal(hpct_stage_walk_count(again), hpct_stage_walk_count(walk));
    for (size_t i = 0; i < hpct_stage_walk_count(walk); i++) {
        char one[PATH_MAX], two[PATH_MAX];
        hpct_stage_item a, b;
        hpct_stage_walk_item(walk, i, &a, one, NULL);
        hpct_stage_walk_item(again, i, &b, two, NULL);
        assert_string_equal(one, two);
        assert_int_equal(a.kind, b.kind);
    }
    hpct_stage_walk_close(again);
    hpct_stage_walk_close(walk);
    close(src);
}

TEST_WITH(single_files_are_copied, NULL, empty)
{
    hpct_stage_walk *walk = NULL;
    hpct_stage_writer *w = NULL;
    static const hpct_stage_walk_options keep;
    char data[16];
    put_file("src", "content", 7);
    int src = openat(base_fd, "src", O_RDONLY);
    assert_int_equal(hpct_stage_walk_open(&walk, src, "file", &keep, &quiet), HPCT_OK);
    assert_int_equal(hpct_stage_walk_count(walk), 1);
    hpct_stage_writer_options options = {.name = "file"};
    assert_int_equal(hpct_stage_writer_open(&w, into_fd, "t", &options), HPCT_OK);
    copy_item(walk, 0, w);
    assert_int_equal(hpct_stage_writer_finish(w), HPCT_OK);
    hpct_stage_writer_close(w);
    int fd = openat(into_fd, "t", O_RDONLY);
    assert_int_equal(read(fd, data, sizeof data), 7);
    assert_memory_equal(data, "content", 7);
    close(fd);

    /* It changes after it was listed. */
    put_file("src", "CONTENT", 7);
    assert_int_equal(hpct_stage_walk_whole(walk, 0, data), HPCT_ERR_IO);
    assert_string_equal(hpct_last_error(), "file changed while it was copied");
    put_file("src", "CONTENTS", 8);
    assert_int_equal(hpct_stage_walk_whole(walk, 0, data), HPCT_ERR_IO);
    put_file("src", "C", 1);
    assert_int_equal(hpct_stage_walk_read(walk, 0, src, data, 7, 0), HPCT_ERR_IO);
    assert_string_equal(hpct_last_error(), "file became shorter while it was copied");
    hpct_stage_walk_close(walk);
    close(src);
}

TEST_WITH(links_out_of_the_source_are_rejected, NULL, empty)
{
    hpct_stage_walk *walk = NULL;
    static const hpct_stage_walk_options keep, follow = {.follow = true};
    char path[PATH_MAX];
    assert_int_equal(mkdirat(base_fd, "src", 0700), 0);
    assert_int_equal(mkdirat(base_fd, "src/in", 0700), 0);
    put_file("other", "outside", 7);
    int src = openat(base_fd, "src", O_RDONLY | O_DIRECTORY);
    assert_int_equal(symlinkat("../../other", src, "in/out"), 0);
    assert_int_equal(hpct_stage_walk_open(&walk, src, "src", &keep, &quiet), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "src/in/out is a link to '../../other', out of"));
    assert_int_equal(hpct_stage_walk_open(&walk, src, "src", &follow, &quiet), HPCT_OK);
    hpct_stage_item item;
    assert_int_equal(hpct_stage_walk_count(walk), 3);
    hpct_stage_walk_item(walk, 2, &item, path, NULL);
    assert_int_equal(item.kind, HPCT_STAGE_ITEM_FILE);
    assert_int_equal(item.size, 7);
    char data[8] = "";
    assert_int_equal(hpct_stage_walk_whole(walk, 2, data), HPCT_OK);
    assert_string_equal(data, "outside");
    hpct_stage_walk_close(walk);
    /* A folder that it lies in: round and round. */
    in_base(path, "src");
    assert_int_equal(symlinkat(path, src, "in/loop"), 0);
    assert_int_equal(hpct_stage_walk_open(&walk, src, "src", &follow, &quiet), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "in/loop is a link to a folder that it lies in"));
    unlinkat(src, "in/loop", 0);
    unlinkat(src, "in/out", 0);
    assert_int_equal(mkfifoat(src, "in/pipe", 0600), 0);
    assert_int_equal(hpct_stage_walk_open(&walk, src, "src", &keep, &quiet), HPCT_ERR_DATA);
    assert_non_null(strstr(hpct_last_error(), "in/pipe is neither a file"));
    close(src);
}

/* ---- hostile items ---- */

static hpct_status add(hpct_stage_writer *w, hpct_stage_item_kind kind, const char *path,
                       const char *target)
{
    hpct_stage_item item = {.kind = kind, .path = path, .target = target, .mode = 07777};
    return hpct_stage_writer_add(w, &item);
}

static hpct_status file(hpct_stage_writer *w, const char *path, const char *data)
{
    hpct_stage_item item = {
        .kind = HPCT_STAGE_ITEM_FILE, .path = path, .size = strlen(data), .mode = 04777};
    return hpct_stage_writer_whole(w, &item, data, NULL);
}

TEST_WITH(archives_cannot_write_outside_the_tree, NULL, empty)
{
    hpct_stage_writer *w = NULL;
    struct stat info;
    hpct_stage_writer_options options = {.name = "a.tar", .loose = true};
    put_file("outside", "safe", 4);
    assert_int_equal(hpct_stage_writer_open(&w, into_fd, "t", &options), HPCT_OK);
    assert_int_equal(file(w, "early", "x"), HPCT_ERR_DATA);
    assert_int_equal(add(w, HPCT_STAGE_ITEM_SYMLINK, "", "x"), HPCT_ERR_DATA);
    assert_int_equal(add(w, HPCT_STAGE_ITEM_FOLDER, "", NULL), HPCT_OK);
    assert_int_equal(add(w, HPCT_STAGE_ITEM_FOLDER, "", NULL), HPCT_OK); /* archives do */
    static const char *const bad[] = {"../outside", "/etc/x", "a/../../outside", "..", ".", "a//b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(file(w, bad[i], "x"), HPCT_ERR_DATA);
        assert_int_equal(add(w, HPCT_STAGE_ITEM_FOLDER, bad[i], NULL), HPCT_ERR_DATA);
        assert_int_equal(add(w, HPCT_STAGE_ITEM_SYMLINK, bad[i], "x"), HPCT_ERR_DATA);
        assert_int_equal(add(w, HPCT_STAGE_ITEM_HARDLINK, "h", bad[i]), HPCT_ERR_DATA);
    }
    assert_int_equal(add(w, HPCT_STAGE_ITEM_SYMLINK, "l", "../outside"), HPCT_ERR_DATA);
    assert_int_equal(add(w, HPCT_STAGE_ITEM_SYMLINK, "l", "/etc/passwd"), HPCT_ERR_DATA);
    /* No link is walked through, not even one that stays within. */
    assert_int_equal(add(w, HPCT_STAGE_ITEM_FOLDER, "in", NULL), HPCT_OK);
    assert_int_equal(add(w, HPCT_STAGE_ITEM_SYMLINK, "l", "in"), HPCT_OK);
    assert_int_equal(file(w, "l/x", "x"), HPCT_ERR_DATA);
    /* One that someone else put there. */
    assert_int_equal(symlinkat("../..", into_fd, "t/away"), 0);
    assert_int_equal(file(w, "away/x", "x"), HPCT_ERR_DATA);
    assert_int_equal(add(w, HPCT_STAGE_ITEM_HARDLINK, "h", "away/outside"), HPCT_ERR_DATA);
    assert_int_equal(symlinkat("../../outside", into_fd, "t/to"), 0);
    assert_int_equal(file(w, "to", "broken"), HPCT_OK); /* takes the link's place */
    assert_int_equal(fstatat(into_fd, "t/to", &info, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_int_equal(info.st_mode & 07777, 0777); /* no bits that give rights */
    /* A file cannot be where a folder is, nor something below a file. */
    assert_int_equal(file(w, "in", "x"), HPCT_ERR_DATA);
    assert_int_equal(file(w, "to/x", "x"), HPCT_ERR_DATA);
    /* More and less than was said. */
    hpct_stage_item item = {.kind = HPCT_STAGE_ITEM_FILE, .path = "s", .size = 4};
    hpct_stage_sink *sink = NULL;
    assert_int_equal(hpct_stage_writer_begin(w, &item, &sink), HPCT_OK);
    assert_int_equal(hpct_stage_sink_data(sink, "abcde", 5), HPCT_ERR_DATA);
    assert_int_equal(hpct_stage_sink_data(sink, "abc", 3), HPCT_OK);
    assert_int_equal(hpct_stage_sink_data(sink, NULL, 2), HPCT_ERR_DATA);
    assert_int_equal(hpct_stage_sink_data(sink, NULL, UINT64_MAX), HPCT_ERR_DATA);
    assert_int_equal(hpct_stage_sink_end(sink, NULL), HPCT_ERR_DATA);
    assert_int_equal(hpct_stage_writer_finish(w), HPCT_OK);
    hpct_stage_writer_close(w);
    char data[8] = "";
    int fd = openat(base_fd, "outside", O_RDONLY);
    assert_int_equal(read(fd, data, sizeof data), 4);
    assert_string_equal(data, "safe");
    close(fd);
}

/* Who waits for a big tree to be removed hears of it. */
TEST(trees_are_removed_with_progress)
{
    hpct_stage_report report;
    int ends[2];
    char name[32], byte = 1;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    hpct_stage_report_start(&report, false, ends[1]);
    assert_int_equal(mkdirat(into_fd, "t", 0700), 0);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "t/%d", i);
        assert_int_equal(mkdirat(into_fd, name, 0700), 0);
    }
    hpct_stage_tree_remove(into_fd, "t", &report);
    assert_int_equal(faccessat(into_fd, "t", F_OK, 0), -1);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
}

TEST_WITH(streams_out_of_order_or_too_large_are_rejected, NULL, empty)
{
    hpct_stage_writer *w = NULL;
    hpct_stage_writer_options options = {.name = "stream", .max_bytes = 10, .max_entries = 4};
    assert_int_equal(hpct_stage_writer_open(&w, into_fd, "t", &options), HPCT_OK);
    assert_int_equal(hpct_stage_writer_finish(w), HPCT_ERR_DATA); /* nothing came */
    assert_int_equal(add(w, HPCT_STAGE_ITEM_FOLDER, "", NULL), HPCT_OK);
    assert_int_equal(add(w, HPCT_STAGE_ITEM_FOLDER, "", NULL), HPCT_ERR_DATA);
    assert_int_equal(file(w, "no/folder", "x"), HPCT_ERR_DATA);
    assert_int_equal(file(w, "a", "12345678"), HPCT_OK);
    assert_int_equal(file(w, "a", "x"), HPCT_ERR_DATA);
    assert_int_equal(add(w, HPCT_STAGE_ITEM_FOLDER, "more", NULL), HPCT_ERR_CONFIG);
    hpct_stage_writer_close(w);
    hpct_stage_tree_remove(into_fd, "t", NULL);
    options.max_entries = 0;
    assert_int_equal(hpct_stage_writer_open(&w, into_fd, "t", &options), HPCT_OK);
    assert_int_equal(add(w, HPCT_STAGE_ITEM_FOLDER, "", NULL), HPCT_OK);
    assert_int_equal(file(w, "a", "12345678"), HPCT_OK);
    assert_int_equal(file(w, "b", "123"), HPCT_ERR_CONFIG);
    hpct_stage_writer_close(w);
}

int main(void)
{
    return unit_run(set_up, tear_down);
}
