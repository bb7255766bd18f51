/* Copyright Viaduct contributors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the simulated card takes through its configuration port: a container of 20 little-endian 32-bit words
 * that names an app's object and its hash. The object is <image_dir>/<name>/<name>.so. Any number of words
 * may follow, which the container counts and the card ignores: an image as long as a partial bitstream.
 */
#ifndef VIADUCT_IMAGE_H
#define VIADUCT_IMAGE_H

#define VIADUCT_IMAGE_BYTES 80
#define VIADUCT_IMAGE_MAGIC "VIA1" /* bytes 0..3 */
#define VIADUCT_IMAGE_VERSION 1u   /* bytes 4..7 */
#define VIADUCT_IMAGE_GEOMETRY 8   /* offset of the geometry, as viaduct_slot_api.geometry */
#define VIADUCT_IMAGE_PADDING 12   /* offset of the number of words that follow the container */
#define VIADUCT_IMAGE_NAME 16   /* offset of the name: 1 to 31 of a-z 0-9 _, padded to 32 bytes with zeros */
#define VIADUCT_IMAGE_DIGEST 48 /* offset of the SHA-256 of the object */

/* Code in register ICAP_STATUS after an image. */
enum viaduct_image_status {
  VIADUCT_IMAGE_LOADED = 0,
  VIADUCT_IMAGE_BAD_CONTAINER = 1,  /* wrong length, magic, version or name */
  VIADUCT_IMAGE_NOT_FOUND = 2,      /* no such object in the image folder */
  VIADUCT_IMAGE_WRONG_HASH = 3,     /* the object is not the one the container was made for */
  VIADUCT_IMAGE_WRONG_GEOMETRY = 4, /* made for a card with another data width or number of streams */
  VIADUCT_IMAGE_WRONG_ABI = 5,      /* made for another version of the card model */
  VIADUCT_IMAGE_BROKEN = 6,         /* the object cannot be opened, or is no app */
  VIADUCT_IMAGE_NO_MEMORY = 7,
  VIADUCT_IMAGE_NO_SLOT = 8,       /* the card has no slot of that number */
  VIADUCT_IMAGE_NO_DESCRIPTORS = 9 /* this process may not have more files open */
};

#endif
