import { Context, Schema } from "effect"

/** Longest key, in characters. */
const maxKey = 255

/** How long a key is known, ms: as long as clients retry at most. */
export const keyKnownMs = 24 * 60 * 60 * 1_000

/** The header by which repeating a request is safe. */
export const idempotencyKey = {
  "idempotency-key": Schema.optionalKey(
    Schema.NonEmptyString.check(Schema.isMaxLength(maxKey)).annotateKey({
      description:
        "Makes repeating safe: for 24 hours, the same request with the same token and the same key is carried out once, and a repetition gets the first answer again (`Idempotency-Replayed: true`). With other fields the answer is 422; while the first request is still being carried out, 409. A request that failed may be repeated with its key.",
      examples: ["retry-7f3a"]
    })
  )
}

/** A key was given with another request before. */
export class KeyReused extends Schema.TaggedError<KeyReused>()("KeyReused", {}) {
  override get message() {
    return "the Idempotency-Key was used for another request before: give each request its own key, and only its repetitions the same one"
  }
}

/** The request with this key is being carried out. */
export class KeyInUse extends Schema.TaggedError<KeyInUse>()("KeyInUse", {}) {
  /** Seconds until it is worth trying again. */
  readonly retryAfter = 1
  override get message() {
    return "a request with this Idempotency-Key is being carried out: repeat it when that has ended"
  }
}

/** The request was carried out, and what it was answered is not kept. */
export class AnswerNotKept extends Schema.TaggedError<AnswerNotKept>()("AnswerNotKept", {}) {
  override get message() {
    return "the request with this Idempotency-Key was carried out already, and its answer was too large to be kept"
  }
}

/** A request that is carried out once, also where a console dies in the middle of it. */
export interface Once {
  /** The same each time that it is tried: 64 hexadecimal digits. */
  readonly id: string
  /** When it was first tried, ms since the epoch. */
  readonly at: number
}

/** What is carried out once; undefined where nobody asks for that. */
export const CurrentOnce = Context.Reference<Once | undefined>("petrel/operations/CurrentOnce", {
  defaultValue: () => undefined
})
