import { Schema } from "effect"

/** A command is refused. The message is the sentence that the user reads. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}

/** Returns a refusal that names all problems in one sentence. */
export const refusal = (problems: ReadonlyArray<string>): Refused =>
  new Refused({ message: problems.join("; ") })
