# nn/: tensors, the model graph, layers, losses, optimizers, models. Knows nothing of ranks.
hpctrain_HEADERS += include/hpctrain/model.h
