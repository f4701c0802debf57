import { Effect, Schema } from "effect"
import { type ExpectedRevision, type Invalid, invalid } from "../domain/problem.ts"
import { type Asker, Caller } from "./caller.ts"
import { Replied } from "./operation.ts"

/** A change is made only of a revision that the caller knows. */
export const ifMatch = {
  "if-match": Schema.optionalKey(
    Schema.String.annotateKey({
      description:
        'The ETag that you know, such as `"42"`, or several separated by commas: the change is refused (412) if none of them is current. `*`: only if it is there. A weak tag (`W/"42"`) never matches.',
      examples: ['"42"']
    })
  )
}

/** Something is added only where there is nothing yet. */
export const onlyNew = {
  "if-none-match": Schema.optionalKey(
    Schema.Literal("*").annotateKey({
      description: "`*`: only if there is no such endpoint yet, else 412."
    })
  )
}

/** Something is read only if it has changed. */
export const ifNoneMatch = {
  "if-none-match": Schema.optionalKey(
    Schema.String.annotateKey({
      description:
        "One or more ETags that you know: if one of them is still current, the answer is 304 without a body. An ETag covers the settings only: the endpoint's health may change while it stays the same.",
      examples: ['"42"']
    })
  )
}

const oneTag = /\s*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)/y

/** An ETag of a request. Those that are no revision are not of this API. */
interface Tag {
  readonly revision: number | undefined
  readonly isWeak: boolean
}

/** Reads a list of ETags; undefined if it is none. */
const tagsIn = (text: string): ReadonlyArray<Tag> | undefined => {
  const tags: Array<Tag> = []
  for (oneTag.lastIndex = 0; oneTag.lastIndex < text.length; ) {
    const [, weak, value = ""] = oneTag.exec(text) ?? [undefined, undefined, undefined]
    if (oneTag.lastIndex === 0) return undefined
    const revision = /^\d{1,15}$/.test(value) ? Number(value) : undefined
    tags.push({ revision, isWeak: weak !== undefined })
  }
  return tags.length === 0 ? undefined : tags
}

const badTags = (header: string) =>
  invalid(header, 'must be * or an ETag, such as "42" with quotes')

/** Reads the revisions in If-Match; undefined without one. Weak tags are none that it can name. */
export const expectedIn = (
  header: string | undefined
): Effect.Effect<ExpectedRevision | undefined, Invalid> => {
  if (header === undefined) return Effect.succeed(undefined)
  if (header.trim() === "*") return Effect.succeed("any")
  const tags = tagsIn(header)
  return tags === undefined
    ? Effect.fail(badTags("if-match"))
    : Effect.succeed(
        tags.flatMap(({ isWeak, revision }) => (isWeak || revision === undefined ? [] : [revision]))
      )
}

/** Returns true if what is at a revision is what the caller of If-None-Match knows. */
export const isKnown = (
  header: string | undefined,
  revision: number
): Effect.Effect<boolean, Invalid> => {
  if (header === undefined) return Effect.succeed(false)
  if (header.trim() === "*") return Effect.succeed(true)
  const tags = tagsIn(header)
  return tags === undefined
    ? Effect.fail(badTags("if-none-match"))
    : Effect.succeed(tags.some((tag) => tag.revision === revision))
}

/**
 * Answers with the revision of what is shown, as its ETag.
 *
 * @param location of something that was made without saying where.
 */
export const tagged = <A extends { readonly revision: number }>(
  shown: A,
  isNew = false,
  location?: string
) =>
  new Replied({
    output: shown,
    revision: shown.revision,
    ...(isNew ? { status: 201 } : {}),
    ...(location === undefined ? {} : { location })
  })

/** Does something with the revision that the caller expects, in the caller's name. */
export const expecting = <A, E, R>(
  headers: { readonly "if-match"?: string },
  run: (caller: Asker, expected: ExpectedRevision | undefined) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    return yield* run(yield* Caller, yield* expectedIn(headers["if-match"]))
  })

/** Makes a change, as `expecting`. */
export const changing = <A extends { readonly revision: number }, E, R>(
  headers: { readonly "if-match"?: string },
  change: (by: string, expected: ExpectedRevision | undefined) => Effect.Effect<A, E, R>
) =>
  Effect.map(
    expecting(headers, ({ by }, expected) => change(by, expected)),
    (after) => tagged(after)
  )
