//! The connection engine, seen from outside: bytes in, bytes and events out.

mod raw;
mod smoke;
