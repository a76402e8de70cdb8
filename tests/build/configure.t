#!/bin/bash
# configure names what is missing, and the package that has it.
. "$top_srcdir/tests/build/lib.sh"

[ ! -e "$top_srcdir/config.status" ] || skip_all "the source folder itself is configured"
tree=$(mktemp -d)
at_exit "rm -rf '$tree'"
cd "$tree" || exit 1

capture env PKG_CONFIG_LIBDIR=/nonexistent PKG_CONFIG_PATH= "$top_srcdir/configure" -q
is "$status" 1 'configure fails without jansson and zlib'
like "$err" 'jansson not found: install libjansson-dev' 'and names the package for jansson'
like "$err" 'zlib not found: install zlib1g-dev' 'and in the same run the one for zlib'

capture "$top_srcdir/configure" -q --with-mpi=/nonexistent
is "$status" 1 'a prefix that is not there is refused'
like "$err" '--with-mpi=/nonexistent' 'by the name of its option'
done_testing
