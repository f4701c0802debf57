import { Clock, Effect, Result, Schema } from "effect"
import { Command } from "effect/cli"
import { Endpoint } from "../domain/endpoint.ts"
import { changeEndpoint } from "../endpoints/endpoint-store.ts"
import { byFlag } from "./asked-by.ts"
import { cautions, changedEndpoint, secretText } from "./endpoint-change.ts"
import { readFields } from "./endpoint-fields.ts"
import { changeFlags, endpointArgument, isSet, repeated } from "./endpoint-flags.ts"
import { givenSecrets } from "./endpoint-secrets.ts"
import { endpointJson } from "./endpoint-view.ts"
import { Refused, refusal } from "./refused.ts"
import { connected, report } from "./root-command.ts"

const encode = Schema.encodeSync(Endpoint)

/** Returns the names of the settings that differ. */
const differences = (before: Endpoint, after: Endpoint): ReadonlyArray<string> => {
  const [old, now] = [encode(before), encode(after)].map((it) => new Map(Object.entries(it)))
  return [...new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])].filter(
    (name) =>
      name !== "updatedAt" && JSON.stringify(old?.get(name)) !== JSON.stringify(now?.get(name))
  )
}

/** Returns the flag's form of a field: `max-in-flight` for `maxInFlight`. */
export const settingName = (field: string): string =>
  field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

export const set = Command.make(
  "set",
  {
    name: endpointArgument,
    ...changeFlags,
    noHeader: repeated("no-header", "NAME", "Sends this header no more; may be repeated"),
    noContact: isSet("no-contact", "Its alerts name nobody"),
    noRate: isSet("no-rate", "As many requests as it takes"),
    noTimeout: isSet("no-timeout", "Back to the retry policy's time-out"),
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, name, noContact, noHeader, noRate, noTimeout, ...flags }) {
    const given = Object.values(flags).some((value) =>
      Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false
    )
    if (!given && !noContact && !noRate && !noTimeout && noHeader.length === 0)
      return yield* new Refused({
        message: `nothing is to be changed: say what, such as --url or --retry; see \`petrel endpoint set --help\``
      })
    const read = readFields({ ...flags, ...(yield* givenSecrets(flags)) })
    if (Result.isFailure(read)) return yield* refusal(read.failure)
    const now = yield* Clock.currentTimeMillis
    let made: string | undefined
    let changes: ReadonlyArray<string> = []
    let warnings: ReadonlyArray<string> = []
    const change = (before: Endpoint) =>
      Effect.gen(function* () {
        const changed = yield* changedEndpoint(
          before,
          read.success,
          { headers: noHeader, timeout: noTimeout, rate: noRate, contact: noContact },
          now
        )
        const { endpoint } = changed
        made = changed.made
        changes = differences(before, endpoint)
        const known = cautions(before)
        warnings = cautions(endpoint).filter((caution) => !known.includes(caution))
        return changes.length === 0 ? undefined : endpoint
      })
    const stored = yield* changeEndpoint(name.tenant, name.id, change, by).pipe(
      Effect.provide(connected)
    )
    for (const warning of warnings) yield* Effect.logWarning(warning)
    const label = `${name.tenant}/${name.id}`
    yield* report(
      {
        ...endpointJson(stored, false),
        changed: changes,
        ...(made === undefined ? {} : { secret: made })
      },
      [
        changes.length === 0
          ? `${label} is as it was: that is how it is set already`
          : `${label} is changed: ${changes.map(settingName).join(", ")}`,
        ...(made === undefined ? [] : [secretText(stored.endpoint, made)])
      ].join("\n")
    )
  })
).pipe(Command.withDescription("Change what is given, and leave the rest"))
