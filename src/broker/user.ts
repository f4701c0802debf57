import { Effect, Option, Schema } from "effect"
import { Broker } from "./connection.ts"

/** On which each server answers a client with who it is, whatever its account. */
const subject = "$SYS.REQ.USER.INFO"
/** How long the answer may take, ms. */
const answerWithinMs = 5_000
/** What the broker says in place of a token. */
const redacted = "[REDACTED]"

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ data: Schema.Struct({ user: Schema.NonEmptyString }) }))
)

/**
 * As whom the broker knows this connection: the name of a user with a password, the public key of one
 * with an nkey or a JWT. Undefined where it has no users, where it has no system account, and where
 * this user may not ask. Never fails.
 */
export const readUser = Effect.gen(function* () {
  const { ask, connection } = yield* Broker
  const answer = yield* Effect.option(
    ask("ask as whom the broker knows us", () =>
      connection.request(subject, "", { timeout: answerWithinMs })
    )
  )
  const user = Option.flatMap(answer, (message) => decode(message.string()))
  return Option.match(user, {
    onNone: () => undefined,
    onSome: ({ data }) => (data.user === redacted ? undefined : data.user)
  })
})
