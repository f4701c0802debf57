import { Clock, Effect, Random, Result } from "effect"
import { Command } from "effect/cli"
import { addEndpoint } from "../endpoints/endpoint-store.ts"
import { byFlag } from "./asked-by.ts"
import {
  blankEndpoint,
  cautions,
  changedEndpoint,
  nothingRemoved,
  secretText,
  urlMissing
} from "./endpoint-change.ts"
import { readFields } from "./endpoint-fields.ts"
import { endpointArgument, endpointFlags } from "./endpoint-flags.ts"
import { givenSecrets } from "./endpoint-secrets.ts"
import { endpointJson, typesText } from "./endpoint-view.ts"
import { refusal } from "./refused.ts"
import { connected, report } from "./root-command.ts"

const hexDigits = 8

const makeGeneration = Effect.gen(function* () {
  const half = Effect.map(Random.nextIntBetween(0, 2 ** 32), (number) =>
    number.toString(16).padStart(hexDigits, "0")
  )
  return `${yield* half}${yield* half}`
})

export const add = Command.make(
  "add",
  { name: endpointArgument, ...endpointFlags, by: byFlag },
  Effect.fnUntraced(function* ({ by, name, ...flags }) {
    const read = readFields({ ...flags, ...(yield* givenSecrets(flags)) })
    if (Result.isFailure(read))
      return yield* refusal([...(flags.url === undefined ? [urlMissing] : []), ...read.failure])
    const now = yield* Clock.currentTimeMillis
    const { endpoint, made } = yield* changedEndpoint(
      blankEndpoint(name, yield* makeGeneration, now),
      read.success,
      nothingRemoved,
      now
    )
    const stored = yield* addEndpoint(endpoint, by).pipe(Effect.provide(connected))
    for (const caution of cautions(endpoint)) yield* Effect.logWarning(caution)
    yield* report(
      {
        ...endpointJson(stored, false),
        ...(made === undefined ? {} : { secret: made })
      },
      [
        `${name.tenant}/${name.id} is added: ${typesText(endpoint)} to ${endpoint.url}`,
        ...(made === undefined ? [] : [secretText(endpoint, made)])
      ].join("\n")
    )
  })
).pipe(
  Command.withDescription("Add an endpoint"),
  Command.withExamples([
    { command: "petrel endpoint add acme/billing --url https://example.com/hooks" },
    {
      command:
        "petrel endpoint add acme/crm --url https://example.com/h --types 'invoice.>' --retry stripe"
    },
    {
      command:
        "petrel endpoint add acme/shop --url https://example.com/s --secret-file s.secret --header-file s.headers"
    }
  ])
)
