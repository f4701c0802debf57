import { Clock, Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import type { Endpoint } from "../domain/endpoint.ts"
import { changeEndpoint } from "../endpoints/endpoint-store.ts"
import { generateSecret, secretProblem } from "../endpoints/signing.ts"
import { spanText } from "../history/span.ts"
import { byFlag } from "./asked-by.ts"
import { durationExpected, readDuration } from "./duration.ts"
import { rotatedSecrets, secretText } from "./endpoint-change.ts"
import { endpointArgument, endpointFlags } from "./endpoint-flags.ts"
import { givenSecrets } from "./endpoint-secrets.ts"
import { endpointJson } from "./endpoint-view.ts"
import { Refused } from "./refused.ts"
import { connected, report } from "./root-command.ts"

const keepOldFlag = Flag.String("keep-old").pipe(
  Flag.withMetavar("DURATION"),
  Flag.withDescription(
    "How long the old secret signs too; 0s drops it at once (default: 24 hours)"
  ),
  Flag.withDefault("24 hours"),
  Flag.filterMap(
    (text) => Option.fromUndefinedOr(readDuration(text)),
    () => durationExpected
  )
)

const oneSignature =
  "GitHub style carries one signature, and the new secret makes it from now on: a receiver that does not know it yet refuses what comes"

const oldText = ({ secrets, sign }: Endpoint, now: number): string => {
  if (sign === "github") return ", which signs from now on"
  const lasting = Math.max(0, ...secrets.map(({ until = now }) => until - now))
  return lasting === 0
    ? "; the old one is gone"
    : `; the old one stays valid for ${spanText(lasting)}`
}

export const rotate = Command.make(
  "rotate",
  {
    name: endpointArgument,
    secretFile: endpointFlags.secretFile,
    secret: endpointFlags.secret,
    keepOld: keepOldFlag,
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, keepOld, name, ...flags }) {
    const { secret } = yield* givenSecrets({ ...flags, header: [], headerFile: undefined })
    const now = yield* Clock.currentTimeMillis
    const label = `${name.tenant}/${name.id}`
    let made: string | undefined
    const change = (endpoint: Endpoint) =>
      Effect.gen(function* () {
        const { secrets, sign } = endpoint
        if (sign === "none")
          return yield* new Refused({
            message: `${label} is not signed, so it has no secret: \`petrel endpoint set ${label} --sign standard\` gives it one`
          })
        const problem = secret === undefined ? undefined : secretProblem(sign, secret)
        if (problem !== undefined)
          return yield* new Refused({ message: `the secret does not fit: ${problem}` })
        if (secrets.some(({ value }) => value === secret))
          return yield* new Refused({
            message: `the secret is one that ${label} has already: give another, or leave the flag out for a new one`
          })
        const value = secret ?? (yield* generateSecret(sign))
        made = secret === undefined ? value : undefined
        return {
          ...endpoint,
          secrets: rotatedSecrets(secrets, value, Duration.toMillis(keepOld), now),
          updatedAt: now
        }
      })
    const stored = yield* changeEndpoint(name.tenant, name.id, change, by).pipe(
      Effect.provide(connected)
    )
    const { endpoint } = stored
    if (endpoint.sign === "github") yield* Effect.logWarning(oneSignature)
    yield* report(
      {
        ...endpointJson(stored, false),
        ...(made === undefined ? {} : { secret: made })
      },
      [
        `${label} has a new secret${oldText(endpoint, now)}`,
        ...(made === undefined ? [] : [secretText(endpoint, made)])
      ].join("\n")
    )
  })
).pipe(
  Command.withDescription("Give an endpoint a new secret; the old one stays valid for a while")
)
