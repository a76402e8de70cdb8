/* The built-in models by name. */
#include "nn/model/builtin.h"

#include "base/status.h"

#include <string.h>

static const hpct_builtin *const builtins[] = {&hpct_builtin_mnist_cnn,
                                               &hpct_builtin_mnist_convnet};
#define NUM_BUILTINS (sizeof builtins / sizeof *builtins)

hpct_status hpct_model_builtin(hpct_model **out, const char *name)
{
    char names[256] = "";
    for (size_t i = 0; i < NUM_BUILTINS; i++) {
        if (strcmp(builtins[i]->name, name) == 0) {
            hpct_model *model = hpct_model_new(name, builtins[i]->input);
            if (model == NULL)
                return hpct_fail_memory(0);
            builtins[i]->describe(model);
            *out = model;
            return HPCT_OK;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ", builtins[i]->name);
    }
    return hpct_fail(HPCT_ERR_USAGE, "there is no model \"%s\"; there are: %s", name, names);
}
