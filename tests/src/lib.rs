//! Namespaces, topologies and traffic for the tests.
