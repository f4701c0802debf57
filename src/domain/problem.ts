import { Effect, Schema } from "effect"

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

/** The revisions of something that a change is meant for; `any`: whichever is there. */
export type ExpectedRevision = ReadonlyArray<number> | "any"

/** Settings or a source are at another revision than the one that a change was meant for. */
export class OtherRevision extends Schema.TaggedError<OtherRevision>()("OtherRevision", {
  /** Plural, as the beginning of a sentence. */
  what: Schema.String,
  revision: Schema.Int
}) {
  override get message() {
    return `${this.what} are at revision ${this.revision} now: read them again, and decide again`
  }
}

/** Fails where something is at another revision than the expected ones. */
export const refuseOther = (
  what: string,
  revision: number,
  expected: ExpectedRevision = "any"
): Effect.Effect<void, OtherRevision> =>
  expected === "any" || expected.includes(revision)
    ? Effect.void
    : Effect.fail(new OtherRevision({ what, revision }))
