//! Map ABI, wire formats and the pure packet decision.
#![no_std]
