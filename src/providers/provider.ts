/**
 * What Petrel knows of a sender of webhooks: how its requests are verified, and what they carry.
 *
 * Used by the receiver's kit, by the gateway and by `petrel receive`. Pure: nothing here asks for the time, opens a
 * connection or reads a file. A provider that needs a certificate is given a function that returns it.
 */

/** One request as it came, before anything parsed it. */
export interface ReceivedRequest {
  readonly method: string
  /** The URL as the sender wrote it, with scheme and host: some senders sign it. A proxy may have changed what arrives. */
  readonly url: string
  /** By name in lower case. A header that came several times is joined with ", ". */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The body's bytes, unchanged. */
  readonly body: Uint8Array
}

/** Why a request is not from the sender, or not from now. */
export type VerificationProblem =
  | "signature-missing"
  | "signature-malformed"
  | "signature-mismatch"
  | "timestamp-missing"
  | "timestamp-malformed"
  | "timestamp-too-old"
  | "timestamp-too-new"
  | "body-mismatch"
  | "certificate-refused"

export type Verification =
  /** `secret` is the place of the secret that fitted in the list of secrets; `at` the signed time in ms, if one is signed. */
  | { readonly ok: true; readonly secret: number; readonly at?: number }
  /** `text` is one sentence for whoever operates the receiver. It carries no secret and no signature. */
  | { readonly ok: false; readonly problem: VerificationProblem; readonly text: string }

/** One event that a request carries. */
export interface ProviderEvent {
  /** The sender's id of the event, the same at each repeat. Missing where the sender gives none. */
  readonly id?: string
  /** The sender's own word, such as `invoice.paid`. */
  readonly type: string
  /** When it happened, in ms, by the sender's clock. */
  readonly at?: number
  /** What it is about, such as a customer: events of one subject are in order. */
  readonly subject?: string
  /** The event's own bytes: the whole body, or one item of a batch. */
  readonly body: Uint8Array
  readonly contentType: string
}

export type Reading =
  | { readonly ok: true; readonly events: ReadonlyArray<ProviderEvent> }
  /** Verified, but not of the shape that the provider documents. `text` is one sentence. */
  | { readonly ok: false; readonly text: string }

/** What is answered at once, to a request that carries no event, such as a challenge when a webhook is set up. */
export interface HandshakeAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Provider {
  /** `stripe`, `github`, … */
  readonly name: string
  /**
   * Checks a request against each secret in turn, in constant time for each. `nowMs` is the
   * receiver's clock. Rejects where a certificate could not be fetched: that says nothing of the
   * request, and is answered with 503.
   */
  verify(request: ReceivedRequest, nowMs: number): Verification | Promise<Verification>
  /** The events that a verified request carries. Never throws, whatever the body is. */
  read(request: ReceivedRequest): Reading
  /** The answer to a request that only asks who is here. Undefined for all others. Verifies what is signed of it. */
  handshake?(request: ReceivedRequest, nowMs: number): HandshakeAnswer | undefined
  /**
   * Whether two bodies with the same id are one event, sent twice. Undefined where a repeat has the
   * same bytes.
   */
  isRepeat?(before: Uint8Array, after: Uint8Array): boolean
  /** For how long the sender may send an event again, in ms: by itself, by hand, or by a listing. */
  readonly repeatsForMs: number
  /** How long the sender waits for an answer, in ms. Undefined where it does not say. */
  readonly waitsForMs?: number
  /** Whether the sender wants 204 without a body, where others take any 2xx. */
  readonly wantsNoContent?: boolean
  /** Whether the sender is known to try again after 429. Others get 503. */
  readonly retries429: boolean
}
