// SPDX-License-Identifier: Apache-2.0
//! The card's virtio functions: who they are attached to, and their user sides as endpoints of apps.

pub mod connect;
pub mod virtio;
