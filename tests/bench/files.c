/* files FOLDER: CPU time of making 60,000 files of 900 bytes, 5,000 in a folder, by one thread:
 * what the kernel takes for it, below which no way of staging them can be. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
static double cpu(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double) (r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double) (r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    static const char *const what[] = {"create and close", "and write", "and read back",
                                       "and set the time"};
    char data[900] = {1}, back[900], name[300];
    const struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    for (int level = 0; argc == 2 && level < 4; level++) {
        int folder = -1;
        double start = cpu();
        for (int i = 0; i < 60000; i++) {
            if (i % 5000 == 0) {
                snprintf(name, sizeof name, "%s/%d.%d", argv[1], level, i / 5000);
                mkdir(name, 0755);
                if (folder >= 0)
                    close(folder);
                folder = open(name, O_RDONLY | O_DIRECTORY);
            }
            snprintf(name, sizeof name, "%05d.jpg", i);
            int f = openat(folder, name, O_RDWR | O_CREAT | O_EXCL, 0644);
            if (f < 0 || (level > 0 && pwrite(f, data, sizeof data, 0) != 900))
                return 1;
            if (level > 1 && pread(f, back, sizeof back, 0) != 900)
                return 1;
            if (level > 2 && futimens(f, times) != 0)
                return 1;
            close(f);
        }
        printf("%-18s %5.2f us a file\n", what[level], (cpu() - start) / 60000 * 1e6);
        if (folder >= 0)
            close(folder);
    }
    return argc != 2;
}
