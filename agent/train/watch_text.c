/* The options' text: "val_loss:patience=3,restore_best". */
#include "agent/train/watch.h"

#include "base/nearest.h"
#include "base/status.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EARLY_STOPPING "--early-stopping"
#define PLATEAU "--reduce-lr-on-plateau"
#define STOP_AT "--stop-at"
#define MOST_EPOCHS 1000000000

typedef struct text {
    hpct_train_watch_options options;
    char mode[8];
} text;

enum kind { NUMBER, COUNT, WORD, FLAG };

typedef struct key {
    const char *name;
    enum kind kind;
    size_t offset, has; /* has: of a bool that is set, 0: none */
} key;

#define AT(member) offsetof(text, member)
static const key stopping[] = {{"patience", COUNT, AT(options.patience), 0},
                               {"min_delta", NUMBER, AT(options.min_delta), 0},
                               {"mode", WORD, AT(mode), 0},
                               {"baseline", NUMBER, AT(options.baseline), AT(options.has_baseline)},
                               {"restore_best", FLAG, AT(options.restore_best), 0},
                               {"start_from_epoch", COUNT, AT(options.start_from_epoch), 0},
                               {0}};
static const key plateau[] = {{"factor", NUMBER, AT(options.factor), 0},
                              {"patience", COUNT, AT(options.patience), 0},
                              {"min_delta", NUMBER, AT(options.min_delta), 0},
                              {"mode", WORD, AT(mode), 0},
                              {"cooldown", COUNT, AT(options.cooldown), 0},
                              {"min_lr", NUMBER, AT(options.min_lr), 0},
                              {0}};

static bool parse_number(double *out, const char *value)
{
    char *end;
    errno = 0;
    *out = strtod(value, &end);
    return value[0] != '\0' && *end == '\0' && errno == 0 && isfinite(*out);
}

static hpct_status set_value(text *out, const key *k, const char *option, const char *value)
{
    char *at = (char *) out + k->offset;
    double number = 0;
    if (k->kind == FLAG ? value != NULL : value == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "%s: '%s' %s", option, k->name,
                         k->kind == FLAG ? "has no value" : "needs a value: KEY=VALUE");
    if (k->kind == NUMBER || k->kind == COUNT) {
        bool fine = parse_number(&number, value);
        if (!fine || (k->kind == COUNT &&
                      !(number >= 0 && number <= MOST_EPOCHS && number == floor(number))))
            return hpct_fail(HPCT_ERR_USAGE, "%s: '%s' is '%s', it must be %s", option, k->name,
                             value, k->kind == COUNT ? "a number of epochs" : "a number");
    }
    if (k->kind == NUMBER)
        memcpy(at, &number, sizeof number);
    else if (k->kind == COUNT)
        *(int64_t *) (void *) at = (int64_t) number;
    else if (k->kind == FLAG)
        *(bool *) at = true;
    else
        snprintf(at, sizeof out->mode, "%s", value);
    if (k->has != 0)
        *((bool *) out + k->has) = true;
    return HPCT_OK;
}

static hpct_status set_word(text *out, const key *keys, const char *option, char *word)
{
    char hint[HPCT_NEAREST_HINT];
    hpct_nearest nearest = {0};
    char *value = strchr(word, '=');
    if (value != NULL)
        *value++ = '\0';
    for (const key *k = keys; k->name != NULL; k++) {
        if (strcmp(k->name, word) == 0)
            return set_value(out, k, option, value);
        hpct_nearest_try(&nearest, word, k->name);
    }
    return hpct_fail(HPCT_ERR_USAGE, "%s has no '%s'%s (man hpc-train-fit)", option, word,
                     hpct_nearest_hint(&nearest, hint));
}

/* `copy`: is cut into words. */
static hpct_status parse(text *out, const key *keys, const char *option, char *copy,
                         hpct_results_metric_choice choice)
{
    char *rest = strchr(copy, ':');
    if (rest != NULL)
        *rest++ = '\0';
    while (rest != NULL) {
        char *next = strchr(rest, ',');
        if (next != NULL)
            *next++ = '\0';
        HPCT_TRY(set_word(out, keys, option, rest));
        rest = next;
    }
    char mode_option[64];
    snprintf(mode_option, sizeof mode_option, "%s: 'mode'", option);
    return hpct_train_monitor_find(&out->options.monitor, option, copy, mode_option,
                                   out->mode[0] != '\0' ? out->mode : NULL, choice);
}

static hpct_status parse_copy(text *out, const key *keys, const char *option, const char *from,
                              hpct_results_metric_choice choice)
{
    char *copy = strdup(from);
    if (copy == NULL)
        return hpct_fail_memory(strlen(from));
    hpct_status status = parse(out, keys, option, copy, choice);
    free(copy);
    return status;
}

hpct_status hpct_train_watch_parse_stopping(hpct_train_watch_options *out, const char *from,
                                            hpct_results_metric_choice choice)
{
    text parsed = {0};
    HPCT_TRY(parse_copy(&parsed, stopping, EARLY_STOPPING, from, choice));
    *out = parsed.options;
    return HPCT_OK;
}

hpct_status hpct_train_watch_parse_plateau(hpct_train_watch_options *out, const char *from,
                                           hpct_results_metric_choice choice)
{
    text parsed = {.options = {.factor = 0.1, .patience = 10, .min_delta = 1e-4}};
    HPCT_TRY(parse_copy(&parsed, plateau, PLATEAU, from, choice));
    if (!(parsed.options.factor > 0 && parsed.options.factor < 1))
        return hpct_fail(HPCT_ERR_USAGE, PLATEAU ": 'factor' is %g, it must be between 0 and 1",
                         parsed.options.factor);
    if (parsed.options.min_lr < 0)
        return hpct_fail(HPCT_ERR_USAGE, PLATEAU ": 'min_lr' is %g, it cannot be negative",
                         parsed.options.min_lr);
    *out = parsed.options;
    return HPCT_OK;
}

hpct_status hpct_train_watch_parse_target(hpct_train_monitor *monitor, double *target,
                                          const char *from, hpct_results_metric_choice choice)
{
    char name[64];
    const char *value = strchr(from, '=');
    if (value == NULL || !parse_number(target, value + 1))
        return hpct_fail(HPCT_ERR_USAGE, STOP_AT " is '%s', it must be METRIC=NUMBER", from);
    snprintf(name, sizeof name, "%.*s", (int) (value - from < 63 ? value - from : 63), from);
    return hpct_train_monitor_find(monitor, STOP_AT, name, STOP_AT, NULL, choice);
}
