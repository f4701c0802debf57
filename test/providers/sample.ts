import { createHmac } from "node:crypto"
import type { Provider, ReceivedRequest } from "../../src/providers/provider.ts"

/** What a test signs with, and what the receiver is given to verify it. They may be one. */
export interface Key {
  readonly signing: string
  readonly verifying: string
}

export interface SignedInput {
  readonly body: Buffer
  /** ms, a multiple of 1,000. */
  readonly at: number
  readonly key: Key
}

/** Requests of a provider, as its own library signs them where there is one. */
export interface Sample {
  readonly name: string
  /** What tells it from another sample of the same provider. */
  readonly variant?: string
  /** Two keys that differ. */
  readonly keys: readonly [Key, Key]
  readonly make: (secrets: ReadonlyArray<string>, toleranceMs?: number) => Provider
  readonly body: Buffer
  /** Returns the body with the time, or with the signature, where they are part of it. */
  readonly stamp?: (body: Buffer, at: number, key: Key) => Buffer
  readonly sign: (input: SignedInput) => ReceivedRequest | Promise<ReceivedRequest>
  /** The header with the signature; undefined where it is in the body. */
  readonly header?: string
  /** The header whose time is signed; undefined where none is, or where it is elsewhere. */
  readonly timeHeader?: string
  readonly isTimeSigned: boolean
  /** Whether the signature is of the body. */
  readonly isBodySigned: boolean
  /** Whether a receiver has one key only. */
  readonly isOneKeyOnly?: boolean
}

/** Returns a request of a sample, signed at a time in ms, a multiple of 1,000. */
export const signedRequest = async (
  { body, sign, stamp }: Sample,
  at: number,
  key: Key
): Promise<ReceivedRequest> => sign({ body: stamp?.(body, at, key) ?? body, at, key })

export const plain = (text: string): Key => ({ signing: text, verifying: text })
export const whsec = (fill: number) => plain(`whsec_${Buffer.alloc(32, fill).toString("base64")}`)

export const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

export const request = (
  headers: Record<string, string>,
  body: Buffer,
  { method = "POST", url = "https://hooks.example.com/in" } = {}
): ReceivedRequest => ({
  method,
  url,
  headers: { "content-type": "application/json", ...headers },
  body
})

export const hmac = (key: string | Uint8Array, ...parts: ReadonlyArray<string | Uint8Array>) => {
  const made = createHmac("sha256", key)
  for (const part of parts) made.update(part)
  return made
}

export const seconds = (at: number) => String(at / 1_000)
