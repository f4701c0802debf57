import { Schema } from "effect"

/** Headers of a message, in order. Names and values must hold no line breaks. */
export type HeaderList = ReadonlyArray<readonly [name: string, value: string]>

/** Where a message is stored, and whether it was stored before under its `Nats-Msg-Id`. */
export interface PubAck {
  readonly stream: string
  readonly seq: number
  readonly duplicate: boolean
}

/** The broker refused to store a message, or did not answer in time (it may have stored it). */
export class PublishError extends Schema.TaggedError<PublishError>()("PublishError", {
  subject: Schema.String,
  reason: Schema.Literals(["timeout", "no-stream", "rejected", "closed"]),
  /** JetStream's err_code, or 0. */
  code: Schema.Number,
  detail: Schema.String
}) {
  override get message() {
    return `could not store on ${this.subject}: ${this.detail}`
  }
}

/**
 * JetStream's error code for a message that is larger than its stream takes. A message that is larger
 * than the broker takes at all is not sent, and has the same code.
 */
export const messageTooLarge = 10054
/** JetStream's error code for headers that are too large. */
const headersTooLarge = 10097

/** True where a message can never be stored, for its size. */
export const isTooLarge = (error: unknown): boolean =>
  error instanceof PublishError && [messageTooLarge, headersTooLarge].includes(error.code)
