/* tests/fuzz/driver.c - runs a fuzz target without libFuzzer: first every file of the folder
 * tests/fuzz/corpus/NAME (NAME: the program's, without "fuzz_"), then mutations of them with a
 * fixed seed. Prints TAP; a crash or a sanitizer's finding ends it and so fails.
 * HPC_TRAIN_FUZZ_RUNS sets the number of mutations; without it they are 20000, or what a core does
 * in two seconds; in half a second with HPC_TRAIN_SHORT. */
#include <dirent.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MAX_SIZE 65536
#define MAX_SEEDS 256
#define EACH_SECONDS 20  /* of a core; an input that takes longer is a finding too */
#define WAIT_SECONDS 600 /* and one that waits for so long */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct seed {
    uint8_t *data;
    size_t size;
} seeds[MAX_SEEDS];
static int num_seeds;

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static size_t pick(size_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t) (random_state % n);
}

/* The target sees memory of exactly its size, so that a sanitizer notices a read behind it. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        exit(70);
    memcpy(copy, data, size);
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = EACH_SECONDS}, NULL);
    alarm(WAIT_SECONDS);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* the same in every locale */
}

static void load_file(const char *path)
{
    FILE *file = num_seeds == MAX_SEEDS ? NULL : fopen(path, "rb");
    if (file == NULL)
        return;
    uint8_t *data = malloc(MAX_SIZE);
    if (data == NULL)
        exit(70);
    seeds[num_seeds++] = (struct seed){data, fread(data, 1, MAX_SIZE, file)};
    fclose(file);
}

static void load(const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        char path[8192];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            load_file(path);
        free(entries[i]);
    }
    free(entries);
}

/* One small change: flip, set, drop, double or move bytes, cut, join two seeds. */
static size_t change(uint8_t *data, size_t size)
{
    static const char edges[] = "[],:-()x0919\"{}\\ \n/=\0\xff\x80";
    const struct seed *other = &seeds[pick((size_t) num_seeds)];
    size_t take = other->size > MAX_SIZE - size ? MAX_SIZE - size : other->size;
    size_t at = size > 0 ? pick(size) : 0, span = size > 0 ? 1 + pick(size - at) : 0;
    span = span > 64 ? 64 : span;
    switch (size == 0 ? 6 : pick(8)) {
    case 0:
        data[at] = (uint8_t) (data[at] ^ (1u << pick(8)));
        return size;
    case 1:
        data[at] = (uint8_t) pick(256);
        return size;
    case 2:
        data[at] = (uint8_t) edges[pick(sizeof edges)];
        return size;
    case 3:
        memmove(data + at, data + at + span, size - at - span);
        return size - span;
    case 4:
        if (size + span > MAX_SIZE)
            return size;
        memmove(data + at + span, data + at, size - at);
        return size + span;
    case 5:
        return at;
    case 6:
        memcpy(data + size, other->data, take);
        return size + take;
    default:
        data[at] = data[pick(size)];
        return size;
    }
}

/* Of processors, by this process and by those that it has waited for. */
static double seconds_used(void)
{
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    return (double) clock() / CLOCKS_PER_SEC +
           (double) (children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
           (double) (children.ru_utime.tv_usec + children.ru_stime.tv_usec) / 1e6;
}

/* Returns how many. */
static long run_mutations(long runs, double seconds)
{
    static uint8_t data[MAX_SIZE];
    double end = seconds_used() + seconds;
    long i = 0;
    for (; i < runs && seconds_used() < end; i++) {
        const struct seed *seed = &seeds[pick((size_t) num_seeds)];
        size_t size = seed->size;
        memcpy(data, seed->data, size);
        for (size_t n = 1 + pick(8); n > 0; n--)
            size = change(data, size);
        run(data, size);
    }
    return i;
}

int main(int argc, char **argv)
{
    const char *top = getenv("top_srcdir"), *runs = getenv("HPC_TRAIN_FUZZ_RUNS");
    const char *name = strrchr(argv[0], '/');
    name = name == NULL ? argv[0] : name + 1;
    name = strncmp(name, "lt-", 3) == 0 ? name + 3 : name;
    name = strncmp(name, "fuzz_", 5) == 0 ? name + 5 : name;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", top == NULL ? "." : top, name);
    load(argc > 1 ? argv[1] : folder);

    printf("1..2\n");
    for (int i = 0; i < num_seeds; i++)
        run(seeds[i].data, seeds[i].size);
    printf("%sok 1 - %s: %d files of the corpus\n", num_seeds > 0 ? "" : "not ", name, num_seeds);
    fflush(stdout);
    if (num_seeds == 0)
        return 1;
    double patience = getenv("HPC_TRAIN_SHORT") != NULL ? 0.5 : 2;
    long done = runs == NULL ? run_mutations(20000, patience) : run_mutations(atol(runs), INFINITY);
    printf("ok 2 - %s: %ld mutations\n", name, done);
    return 0;
}
