# What a machine with a GPU is for: run there by hand, on a bundle or in a checkout.
EXTRA_DIST += tests/gpu/bundle tests/gpu/lib.sh tests/gpu/peer.py \
	tests/gpu/properties.py tests/gpu/run tests/gpu/steps.sh tests/gpu/table.py
