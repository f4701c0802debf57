import { Schema } from "effect"
import { ErrorClass } from "./outcome.ts"
import { Timestamp } from "./timestamp.ts"

const Trouble = Schema.Struct({ class: ErrorClass, message: Schema.String })

/** A certificate of the chain that a receiver shows. Times in ms since the epoch. */
export const ShownCertificate = Schema.Struct({
  /** Its common name, or its first alternative name. */
  subject: Schema.String,
  issuer: Schema.String,
  validFrom: Timestamp,
  validUntil: Timestamp
})
export type ShownCertificate = typeof ShownCertificate.Type

/** The TLS handshake at one address. */
export const HandshakeCheck = Schema.Struct({
  /** Such as TLSv1.3. */
  protocol: Schema.String,
  /** The receiver's own certificate first. */
  chain: Schema.Array(ShownCertificate),
  /** Why requests would not trust the certificate. */
  distrust: Schema.optionalKey(Schema.String)
})
export type HandshakeCheck = typeof HandshakeCheck.Type

/** A connection to one address of a receiver. */
export const AddressCheck = Schema.Struct({
  address: Schema.String,
  /** TCP and TLS together, ms. */
  durationMs: Schema.Number,
  /** Absent for http, and where no handshake was completed. */
  tls: Schema.optionalKey(HandshakeCheck),
  /** Why there is no connection. */
  error: Schema.optionalKey(Trouble)
})
export type AddressCheck = typeof AddressCheck.Type

/** How a worker reaches the host of an endpoint, without a request. */
export const ConnectionCheck = Schema.Struct({
  host: Schema.String,
  port: Schema.Int,
  isSecure: Schema.Boolean,
  /** The look-up of the name, ms. Absent where the host is an address. */
  lookupMs: Schema.optionalKey(Schema.Number),
  /** Why no address is known, or none may be connected to. */
  error: Schema.optionalKey(Trouble),
  /** Addresses that this worker may not connect to. They are not named: see `AddressRefused`. */
  refused: Schema.Int,
  /** The allowed addresses, in the order in which requests try them. */
  addresses: Schema.Array(AddressCheck)
})
export type ConnectionCheck = typeof ConnectionCheck.Type
