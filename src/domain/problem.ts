import { Schema } from "effect"

/** One thing that is wrong with the input of an operation. */
export const Problem = Schema.Struct({
  field: Schema.String.annotateKey({
    description:
      "The field of the input, with dots for a field of a field: `circuit.coolDown`. Empty for the input as a whole."
  }),
  message: Schema.String.annotateKey({
    description:
      "The sentence about the field, without its subject: `must be between 1 and 1000`. It names other fields in backticks."
  })
})
export type Problem = typeof Problem.Type

/** An operation was refused because of its input. It has changed nothing. */
export class Invalid extends Schema.TaggedError<Invalid>()("Invalid", {
  problems: Schema.Array(Problem)
}) {
  override get message() {
    return this.problems.map(({ field, message }) => `${field} ${message}`.trim()).join("; ")
  }
}

/** Returns the refusal for one problem. */
export const invalid = (field: string, message: string): Invalid =>
  new Invalid({ problems: [{ field, message }] })

/**
 * An operation was refused because of how things are, and not because of its input: the same may be
 * asked for again once they have changed.
 */
export class NotNow extends Invalid {}

/** Returns the refusal for how things are, as a sentence. */
export const notNow = (message: string): NotNow =>
  new NotNow({ problems: [{ field: "", message }] })
