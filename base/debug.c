/* HPC_TRAIN_DEBUG. */
#include "base/debug.h"

#include "base/word_list.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const names[] = {"comm", "plan", "ops"};
#define NUM_TOPICS ((int) (sizeof names / sizeof *names))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned topics; /* a bit each */

static void read_topics(void)
{
    topics = hpct_word_list("HPC_TRAIN_DEBUG", names, NUM_TOPICS, "comm, plan and ops");
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
