import { Schema } from "effect"
import { ErrorClass } from "./outcome.ts"
import { Timestamp } from "./timestamp.ts"

const Trouble = Schema.Struct({
  class: ErrorClass.annotateKey({ description: "The class of the error." }),
  message: Schema.String.annotateKey({ description: "What the error says." })
})

/** A certificate of the chain that a receiver shows. Times in ms since the epoch. */
export const ShownCertificate = Schema.Struct({
  subject: Schema.String.annotateKey({
    description: "Its common name, or its first alternative name."
  }),
  issuer: Schema.String.annotateKey({ description: "Who issued the certificate." }),
  validFrom: Timestamp.annotateKey({ description: "When the certificate begins to be valid." }),
  validUntil: Timestamp.annotateKey({ description: "When the certificate ceases to be valid." })
})
export type ShownCertificate = typeof ShownCertificate.Type

/** The TLS handshake at one address. */
export const HandshakeCheck = Schema.Struct({
  protocol: Schema.String.annotateKey({ description: "Such as TLSv1.3." }),
  chain: Schema.Array(ShownCertificate).annotateKey({
    description: "The receiver's own certificate first."
  }),
  distrust: Schema.optionalKey(Schema.String).annotateKey({
    description: "Why requests would not trust the certificate."
  })
})
export type HandshakeCheck = typeof HandshakeCheck.Type

/** A connection to one address of a receiver. */
export const AddressCheck = Schema.Struct({
  address: Schema.String.annotateKey({ description: "The address." }),
  durationMs: Schema.Number.annotateKey({ description: "TCP and TLS together, ms." }),
  tls: Schema.optionalKey(HandshakeCheck).annotateKey({
    description: "Absent for http, and if no handshake was completed."
  }),
  error: Schema.optionalKey(Trouble).annotateKey({ description: "Why there is no connection." })
})
export type AddressCheck = typeof AddressCheck.Type

/** How a worker reaches the host of an endpoint, without a request. */
export const ConnectionCheck = Schema.Struct({
  host: Schema.String.annotateKey({ description: "The host of the URL." }),
  port: Schema.Int.annotateKey({ description: "The port." }),
  isSecure: Schema.Boolean.annotateKey({ description: "Whether TLS is used." }),
  lookupMs: Schema.optionalKey(Schema.Number).annotateKey({
    description: "The look-up of the name, ms. Absent if the host is an address."
  }),
  error: Schema.optionalKey(Trouble).annotateKey({
    description: "Why no address is known, or none may be connected to."
  }),
  refused: Schema.Int.annotateKey({
    description:
      "Addresses that this worker may not connect to. They are not named: see `AddressRefused`."
  }),
  addresses: Schema.Array(AddressCheck).annotateKey({
    description: "The allowed addresses, in the order in which requests try them."
  })
})
export type ConnectionCheck = typeof ConnectionCheck.Type
