/* Signals are blocked except while waiting: a handler only takes a note. */
#include "agent/top/terminal.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
#define CTRL_D 4

static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
#define NUM_SIGNALS (sizeof signals / sizeof signals[0])

static struct terminal {
    FILE *stream;
    bool has_keys; /* standard input is a terminal, too */
    struct termios keys;
    sigset_t mask; /* of before */
    struct sigaction before[NUM_SIGNALS];
} terminal;

static volatile sig_atomic_t arrived[NSIG];

static void note(int number)
{
    arrived[number] = 1;
}

bool hpct_top_terminal_is(FILE *stream)
{
    const char *kind = getenv("TERM");
    return isatty(fileno(stream)) && kind != NULL && kind[0] != '\0' && strcmp(kind, "dumb") != 0;
}

/* ---- entering and leaving ---- */

static void enter(void)
{
    struct termios keys = terminal.keys;
    keys.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    if (terminal.has_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    fputs(ENTER, terminal.stream);
    fflush(terminal.stream);
}

static void leave(void)
{
    fputs(LEAVE, terminal.stream);
    fflush(terminal.stream);
    if (terminal.has_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &terminal.keys);
}

void hpct_top_terminal_open(FILE *stream)
{
    struct sigaction action = {.sa_handler = note};
    sigset_t ours;
    terminal = (struct terminal){.stream = stream};
    terminal.has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &terminal.keys) == 0;
    sigemptyset(&ours);
    for (size_t i = 0; i < NUM_SIGNALS; i++)
        sigaddset(&ours, signals[i]);
    sigprocmask(SIG_BLOCK, &ours, &terminal.mask);
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < NUM_SIGNALS; i++) {
        arrived[signals[i]] = 0;
        sigaction(signals[i], NULL, &terminal.before[i]);
        if (terminal.before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
    enter();
}

void hpct_top_terminal_close(void)
{
    leave();
    for (size_t i = 0; i < NUM_SIGNALS; i++)
        sigaction(signals[i], &terminal.before[i], NULL);
    sigprocmask(SIG_SETMASK, &terminal.mask, NULL);
}

/* ---- drawing ---- */

void hpct_top_terminal_size(int *width, int *height)
{
    struct winsize size;
    bool known = ioctl(fileno(terminal.stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 &&
                 size.ws_row > 0;
    *width = known ? size.ws_col : 80;
    *height = known ? size.ws_row : 24;
}

void hpct_top_terminal_show(const char *text)
{
    fputs("\033[H", terminal.stream);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\n')
            fputs("\033[K\r", terminal.stream);
        fputc(*c, terminal.stream);
    }
    fputs("\033[K\033[J", terminal.stream);
    fflush(terminal.stream);
}

/* ---- waiting ---- */

/* Does to this process what the signal does without us. */
static void pass_on(int number)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, ours;
    sigset_t one, mask;
    sigemptyset(&one);
    sigaddset(&one, number);
    leave();
    sigaction(number, &usual, &ours);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, &mask); /* here it stops or ends */
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(number, &ours, NULL);
    enter();
}

/* What has arrived; the order is that of the table. */
static hpct_top_terminal_event heed(void)
{
    for (size_t i = 0; i < NUM_SIGNALS; i++) {
        if (!arrived[signals[i]])
            continue;
        arrived[signals[i]] = 0;
        if (signals[i] == SIGINT)
            return HPCT_TOP_TERMINAL_QUIT;
        if (signals[i] != SIGWINCH)
            pass_on(signals[i]);
    }
    return HPCT_TOP_TERMINAL_DRAW;
}

static bool is_quit(void)
{
    char key;
    ssize_t bytes = read(STDIN_FILENO, &key, 1);
    return bytes <= 0 || key == 'q' || key == 'Q' || key == CTRL_D;
}

static double seconds_until(const struct timespec *end)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) (end->tv_sec - now.tv_sec) + 1e-9 * (double) (end->tv_nsec - now.tv_nsec);
}

hpct_top_terminal_event hpct_top_terminal_wait(double seconds)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t) seconds;
    for (double left; !ferror(terminal.stream) && (left = seconds_until(&end)) > 0;) {
        struct timespec time = {.tv_sec = (time_t) left};
        time.tv_nsec = (long) (1e9 * (left - (double) time.tv_sec));
        struct pollfd keys = {.fd = terminal.has_keys ? STDIN_FILENO : -1, .events = POLLIN};
        int ready = ppoll(&keys, 1, &time, &terminal.mask);
        if (ready < 0)
            return heed();
        if (ready > 0 && is_quit())
            return HPCT_TOP_TERMINAL_QUIT;
    }
    return ferror(terminal.stream) ? HPCT_TOP_TERMINAL_QUIT : HPCT_TOP_TERMINAL_DRAW;
}
