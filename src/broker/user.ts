import { Effect, Option, Schema } from "effect"
import { Broker } from "./broker.ts"

/** The broker's placeholder for a token. */
const redacted = "[REDACTED]"

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ data: Schema.Struct({ user: Schema.NonEmptyString }) }))
)

/**
 * Returns the broker's name for the user of this connection: the name of a user with a password,
 * the public key of one with an nkey or a JWT. Returns undefined if the broker has no users or no
 * system account, or this user lacks the permission. Never fails.
 */
export const readUser = Effect.gen(function* () {
  const user = Option.flatMap(yield* Effect.option((yield* Broker).userInfo), decode)
  return Option.match(user, {
    onNone: () => undefined,
    onSome: ({ data }) => (data.user === redacted ? undefined : data.user)
  })
})
