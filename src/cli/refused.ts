import { Schema } from "effect"

/** A command is refused. The message is the sentence that the user reads. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  message: Schema.String,
  /** The invocation is wrong, and nothing was done. */
  isInput: Schema.optionalKey(Schema.Literal(true))
}) {}

/** Returns the refusal of a wrong invocation. It names all problems in one sentence. */
export const refusal = (problems: ReadonlyArray<string>): Refused =>
  new Refused({ message: problems.join("; "), isInput: true })
