# etc/examples/: programs against the public headers, installed as source and built by make check.
examplesdir = $(docdir)/examples
dist_examples_DATA = etc/examples/mnist.c \
	etc/examples/mnist_tensorflow.py etc/examples/mnist_tensorflow.sbatch \
	etc/examples/mnist_torch.py etc/examples/mnist_torch.sbatch
check_PROGRAMS += etc/examples/mnist
etc_examples_mnist_SOURCES = etc/examples/mnist.c
etc_examples_mnist_CPPFLAGS = -I$(top_srcdir)/include
etc_examples_mnist_LDADD = libhpctrain.la
