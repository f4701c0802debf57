import { Effect, Option, Schema } from "effect"
import { natsClients } from "./clients.ts"

/** The subject on which each server tells a client who it is, whatever its account. */
const subject = "$SYS.REQ.USER.INFO"
/** Time-out, ms. */
const answerWithinMs = 5_000
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
  const { ask, connection } = yield* natsClients
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
