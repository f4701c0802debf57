import { Schema } from "effect"

/** A command does not do what it was asked to. The message is the sentence its user reads. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}
