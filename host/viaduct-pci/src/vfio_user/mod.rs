// SPDX-License-Identifier: Apache-2.0
//! The vfio-user protocol, version 0.1: a PCI function served to, or reached in, another process over a Unix socket.
