/* HPC_TRAIN_DEBUG. */
#include "base/debug.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"comm", "plan", "ops"};
#define NUM_TOPICS ((int) (sizeof names / sizeof *names))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned topics; /* a bit each */

static void read_word(const char *word, size_t length)
{
    for (int i = 0; i < NUM_TOPICS; i++) {
        if (length == strlen(names[i]) && strncmp(word, names[i], length) == 0) {
            topics |= 1U << i;
            return;
        }
    }
    if (length > 0)
        fprintf(stderr, "hpc-train: HPC_TRAIN_DEBUG: '%.*s' is none of comm, plan and ops\n",
                (int) length, word);
}

static void read_topics(void)
{
    const char *list = getenv("HPC_TRAIN_DEBUG");
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ",");
        read_word(list, length);
        list += length + (list[length] == ',');
    }
}

bool hpct_debugs(hpct_debug_topic topic)
{
    pthread_once(&once, read_topics);
    return (topics >> topic & 1U) != 0;
}

void hpct_debug(hpct_debug_topic topic, const char *format, ...)
{
    char line[2048];
    va_list arguments;
    if (!hpct_debugs(topic))
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "hpc-train: debug %s: %s\n", names[topic], line);
}
