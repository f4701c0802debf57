import { Schema } from "effect"

/** The caller may use the operation, and not for this. */
export class NotAllowed extends Schema.TaggedError<NotAllowed>()("NotAllowed", {
  message: Schema.String
}) {}
