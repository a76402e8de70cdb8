/* Stochastic gradient descent with momentum, in Keras' form. */
#include "nn/ref/kernels.h"

void HPCT_REF(sgd)(size_t count, hpct_real rate, hpct_real momentum, const hpct_real *grad,
                   hpct_real *velocity, hpct_real *param)
{
    for (size_t i = 0; i < count; i++) {
        hpct_real change = -rate * grad[i];
        if (velocity != NULL)
            change = velocity[i] = momentum * velocity[i] + change;
        param[i] += change;
    }
}
