import { Schema } from "effect"

/** A command does not do what it was asked to. The message is the sentence its user reads. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}

/** All that is wrong, in one sentence. */
export const refusal = (problems: ReadonlyArray<string>): Refused =>
  new Refused({ message: problems.join("; ") })
