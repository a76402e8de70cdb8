# tests/packages/: the Debian and RPM packages, built and used in systems of their own. They need root and the network.
package_tests = tests/packages/debian.t tests/packages/rpm.t
long_tests += $(package_tests)
