import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { readStream } from "../broker/scan.ts"
import { Configuration } from "../domain/configuration.ts"
import { endpointKey } from "../domain/endpoint.ts"
import type { FactKind } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"
import { SettingsChange } from "../domain/settings/tenant-table.ts"

/** The configuration of an endpoint that was lost with a former bucket, as the history has it. */
export interface LostEndpoint {
  readonly tenant: string
  readonly endpoint: string
  readonly configuration: Configuration
  /** When the former bucket stored it, ms since the epoch. */
  readonly storedAt: number
}

/** Settings of a tenant, or of the system, that were lost with a former bucket. */
interface LostSettings {
  readonly key: string
  readonly change: SettingsChange
}

const EndpointFact = Schema.Struct({
  tenant: Schema.String,
  endpoint: Schema.String,
  change: Schema.Struct({
    revision: Schema.Int,
    storedAt: Schema.Number,
    now: Schema.optionalKey(Schema.toEncoded(Configuration))
  })
})
const SettingsFact = Schema.Struct({ tenant: Schema.String, settings: SettingsChange })

const decodeEndpointFact = Schema.decodeUnknownOption(Schema.fromJsonString(EndpointFact))
const decodeSettingsFact = Schema.decodeUnknownOption(Schema.fromJsonString(SettingsFact))

/**
 * The first revision of the endpoints bucket; undefined unless it was made again. All revisions of
 * the former bucket are lower.
 */
const firstRevision = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const bucket = names.buckets.endpoints
  const { config } = yield* streamInfo(`look at ${bucket}`, `KV_${bucket}`)
  const { first_seq: first = 0 }: { readonly first_seq?: number } = config
  return first > 1 ? first : undefined
})

/** Passes the last fact of a kind under each subject. */
const lastFacts = Effect.fnUntraced(function* (
  stream: string,
  kind: FactKind,
  take: (text: string) => void
) {
  const { names, see } = yield* Broker
  const subjects = [names.subjects.fact("*", "*", factResult(kind), kind)]
  yield* Effect.scoped(
    see({ stream, subjects, lastOfSubjects: true }, 1, (message) => {
      take(message.string())
      return false
    })
  )
})

/** Keys of the bucket, those of removed values too. */
const keysOf = Effect.fnUntraced(function* (bucket: string) {
  const prefix = `$KV.${bucket}.`
  const keys = new Set<string>()
  const entries = { stream: `KV_${bucket}`, subjects: [`${prefix}>`], headersOnly: true }
  yield* Stream.runForEach(readStream(entries), ({ subject }) =>
    Effect.sync(() => keys.add(subject.slice(prefix.length)))
  )
  return keys
})

/**
 * Returns the endpoints that the history has, and that are not in the bucket since it was made
 * again. None of them was removed: a removal leaves a marker, and a fact.
 */
export const readLostEndpoints = Effect.gen(function* () {
  const first = yield* firstRevision
  if (first === undefined) return []
  const { names } = yield* Broker
  const keys = yield* keysOf(names.buckets.endpoints)
  // A later fact of the same endpoint may come after an earlier one.
  const lost = new Map<string, LostEndpoint>()
  yield* lastFacts(names.configuration, "endpoint-changed", (text) => {
    const fact = Option.getOrUndefined(decodeEndpointFact(text))
    if (fact === undefined) return
    const { change, endpoint, tenant } = fact
    const key = endpointKey(tenant, endpoint)
    const { now: configuration, revision, storedAt } = change
    if (configuration === undefined || revision >= first || keys.has(key)) lost.delete(key)
    else lost.set(key, { tenant, endpoint, configuration, storedAt })
  })
  return [...lost.values()]
})

/** Returns the same for settings of tenants and of the system, as far as the history reaches. */
export const readLostSettings = Effect.gen(function* () {
  const first = yield* firstRevision
  if (first === undefined) return []
  const { names } = yield* Broker
  const keys = yield* keysOf(names.buckets.endpoints)
  const lost = new Map<string, LostSettings>()
  yield* lastFacts(names.history, "settings-changed", (text) => {
    const fact = Option.getOrUndefined(decodeSettingsFact(text))
    if (fact === undefined) return
    const { settings: change, tenant: key } = fact
    const isNone = Object.keys(change.now).length === 0
    if (isNone || change.revision >= first || keys.has(key)) lost.delete(key)
    else lost.set(key, { key, change })
  })
  return [...lost.values()]
})

/** Pause between looks whether lost endpoints are there again, ms. */
const lookAgainMs = 2_000

/**
 * Waits while endpoints are lost. Without them, their deliveries would be dead letters, and events
 * would be routed to nobody.
 */
export const untilNoneIsLost = Effect.gen(function* () {
  let said = false
  while (true) {
    const { length } = yield* readLostEndpoints
    if (length === 0) return
    if (!said)
      yield* Effect.logWarning(
        "the bucket of endpoints was made again and lacks endpoints that the history has, so nothing is routed: run `petrel rebuild endpoints`",
        { lost: length }
      )
    said = true
    yield* Effect.sleep(lookAgainMs)
  }
})
