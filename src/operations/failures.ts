import { Schema } from "effect"

/** A bound is reached: the same may be asked for again later. The message says what to do. */
export class Busy extends Schema.TaggedError<Busy>()("Busy", {
  message: Schema.String,
  /** Seconds until it is worth trying again. */
  retryAfter: Schema.Int
}) {}

/** The caller may use the operation, and not for this. */
export class NotAllowed extends Schema.TaggedError<NotAllowed>()("NotAllowed", {
  message: Schema.String
}) {}
