import { Effect, Option, Schema } from "effect"
import { Invalid } from "../domain/problem.ts"

/**
 * Makes the cursors of a list: opaque texts that hold where a page begins. A text that is none
 * fails with a problem of the field `cursor`.
 *
 * @param name of the list, so that a cursor of another one is refused.
 */
export const makeCursor = <A>(name: string, position: Schema.Codec<A, unknown>) => {
  const schema = Schema.fromJsonString(Schema.Tuple([Schema.Literal(name), position]))
  const encode = Schema.encodeSync(schema)
  const decode = Schema.decodeUnknownOption(schema)
  const write = (at: A): string => Buffer.from(encode([name, at])).toString("base64url")
  return {
    /** Where the next page begins; nothing at the end. */
    next: (at: A | undefined): { readonly next?: string } =>
      at === undefined ? {} : { next: write(at) },
    write,
    read: (text: string | undefined): Effect.Effect<A | undefined, Invalid> => {
      if (text === undefined) return Effect.succeed(undefined)
      const found = decode(Buffer.from(text, "base64url").toString("utf8"))
      return Option.isSome(found)
        ? Effect.succeed(found.value[1])
        : Effect.fail(
            new Invalid({
              problems: [
                { field: "cursor", message: "is none of this list: take `next` of its last page" }
              ]
            })
          )
    }
  }
}
