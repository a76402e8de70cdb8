# etc/examples/: programs against the public headers, installed as source and built by make check.
examplesdir = $(docdir)/examples
dist_examples_DATA = etc/examples/mnist.c etc/examples/own_loop.c etc/examples/train_and_evaluate.c \
	etc/examples/mnist_tensorflow.py etc/examples/mnist_tensorflow.sbatch \
	etc/examples/mnist_torch.py etc/examples/mnist_torch.sbatch etc/examples/transfer_learning.py
check_PROGRAMS += etc/examples/mnist etc/examples/own_loop etc/examples/train_and_evaluate
etc_examples_mnist_SOURCES = etc/examples/mnist.c
etc_examples_mnist_CPPFLAGS = -I$(top_srcdir)/include
etc_examples_mnist_LDADD = libhpctrain.la
etc_examples_own_loop_SOURCES = etc/examples/own_loop.c
etc_examples_own_loop_CPPFLAGS = -I$(top_srcdir)/include
etc_examples_own_loop_LDADD = libhpctrain.la
etc_examples_train_and_evaluate_SOURCES = etc/examples/train_and_evaluate.c
etc_examples_train_and_evaluate_CPPFLAGS = -I$(top_srcdir)/include
etc_examples_train_and_evaluate_LDADD = libhpctrain.la
