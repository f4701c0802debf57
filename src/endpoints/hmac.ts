import { hash } from "node:crypto"

/** Bytes of a block of SHA-256. */
const blockBytes = 64
const digestBytes = 32

/** A key of HMAC-SHA256, ready for use. */
export interface HmacKey {
  /** The key with the inner padding: one block. */
  readonly inner: Uint8Array
  /** The key with the outer padding, and space for a digest. */
  readonly outer: Buffer
}

/** @param secret of any length. Longer than a block it counts as its digest. */
export const hmacKey = (secret: Uint8Array): HmacKey => {
  const key = secret.length > blockBytes ? hash("sha256", secret, "buffer") : secret
  const inner = new Uint8Array(blockBytes).fill(0x36)
  const outer = Buffer.alloc(blockBytes + digestBytes, 0x5c)
  for (const [at, byte] of key.entries()) {
    inner[at] = byte ^ 0x36
    outer[at] = byte ^ 0x5c
  }
  return { inner, outer }
}

/** Holds the message of one call. It grows to the longest one, about the broker's `max_payload`. */
let message = Buffer.allocUnsafeSlow(4096)

/**
 * Returns the HMAC-SHA256 of a prefix (ASCII) and a body, as RFC 2104 composes it from two hashes.
 *
 * An object of `createHmac` for each delivery takes twice the time of the hashes: it has a part
 * outside of V8's heap, which the collection of garbage must free.
 */
export const hmac = (
  { inner, outer }: HmacKey,
  prefix: string,
  body: Uint8Array,
  encoding: "base64" | "hex"
): string => {
  const from = blockBytes + prefix.length
  const length = from + body.length
  if (length > message.length) message = Buffer.allocUnsafeSlow(length)
  message.set(inner)
  message.write(prefix, blockBytes, "latin1")
  message.set(body, from)
  // As text, because each buffer that is returned has such a part, too.
  outer.write(hash("sha256", message.subarray(0, length), "latin1"), blockBytes, "latin1")
  return hash("sha256", outer, encoding)
}
