import { Clock, Effect, Result, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { readPresent } from "../../cluster/roster.ts"
import { type Configuration, urlDigest } from "../../domain/configuration.ts"
import {
  circuitOf,
  type Endpoint,
  type EndpointJson,
  endpointKey,
  endpointLabel,
  remadeWithout,
  type Secret
} from "../../domain/endpoint.ts"
import type { FactKind } from "../../domain/fact.ts"
import { Health, healthy, isHealthy } from "../../domain/health.ts"
import { invalid } from "../../domain/problem.ts"
import { present } from "../../domain/record.ts"
import { endpointSettings } from "../../domain/settings/endpoint-table.ts"
import { isFullyTold } from "../../domain/settings/setting.ts"
import { addEndpoint, listEndpoints } from "../../endpoints/endpoint-store.ts"
import { eraseHealth, listHealth, writeHealth } from "../../endpoints/health-store.ts"
import {
  type LostEndpoint,
  readLostEndpoints,
  readLostSettings
} from "../../endpoints/lost-endpoints.ts"
import { changeSettings } from "../../endpoints/settings-store.ts"
import { decodeEndpoint } from "../../endpoints/stored-values.ts"
import { readRecord, strictly } from "../../history/fact-record.ts"
import {
  afterEndpointFact,
  completed,
  differencesOf,
  type EndpointLife,
  healthFrom,
  newEndpoint
} from "../../history/fold/endpoint.ts"
import { secretsFor } from "./endpoint-secrets.ts"

/** An endpoint, or a tenant's settings, made again from the history. */
export const RebuiltEndpoint = Schema.Struct({
  /** `<tenant>/<endpoint>`, or the tenant whose settings it is (`_`: the system's). */
  endpoint: Schema.String,
  /** What the history does not hold, as flags of `petrel endpoint set`. It is paused if there is any. */
  gone: Schema.Array(Schema.String),
  /** Why it cannot be made again. */
  problem: Schema.optionalKey(Schema.String),
  /** False for a dry run, and where it cannot be made again. */
  written: Schema.Boolean
})
export type RebuiltEndpoint = typeof RebuiltEndpoint.Type

/** The settings that the history tells wholly. */
const wholly = Object.entries(endpointSettings).flatMap(([name, setting]) =>
  isFullyTold(setting) ? [name] : []
)

/** All that the history tells of a URL. */
const toldUrl = ({ origin }: Configuration): string => `${origin}/`

const isWhole = (told: Configuration): boolean => urlDigest(toldUrl(told)) === told.urlDigest

/** What the history does not hold of a configuration, as flags that set it. */
const goneOf = (told: Configuration): ReadonlyArray<string> => [
  ...(isWhole(told) ? [] : ["--url URL"]),
  ...(told.sign === "none" ? [] : ["--secret -"]),
  ...told.headers.map((name) => `--header '${name}: …'`)
]

/** Returns an endpoint as far as the history holds it: paused if something of it is gone. */
const remade = (
  { configuration: told, endpoint: id, storedAt, tenant }: LostEndpoint,
  secrets: ReadonlyArray<Secret>,
  by: string,
  now: number
) => {
  const gone = goneOf(told)
  const known = Object.fromEntries(Object.entries(told).filter(([name]) => wholly.includes(name)))
  const { disabled, generation, paused, suspended } = told
  const reason = remadeWithout(gone.map((flag) => flag.split(" ")[0]).join(", "))
  const json: Partial<EndpointJson> = {
    v: 1,
    tenant,
    id,
    generation,
    ...known,
    url: toldUrl(told),
    headers: {},
    secrets,
    ...present({ disabled, suspended }),
    ...(gone.length > 0
      ? { paused: { at: now, by, reason, ...(isWhole(told) ? {} : { lacksUrl: true }) } }
      : paused === undefined
        ? {}
        : { paused }),
    createdAt: Math.min(storedAt, ...told.secrets.map(({ createdAt }) => createdAt)),
    updatedAt: now
  }
  return { gone, decoded: decodeEndpoint(endpointKey(tenant, id), JSON.stringify(json)) }
}

/**
 * Makes again the endpoints and settings that were lost with a former bucket, from the history. It
 * holds neither secrets nor values of headers, and of a URL only the origin: an endpoint that lacks
 * one gets a new secret and is paused, so that its deliveries wait until somebody has set the rest.
 *
 * @param by who asks for it, recorded in the history.
 */
export const rebuildEndpoints = Effect.fnUntraced(function* ({
  by,
  dryRun
}: {
  readonly by: string
  readonly dryRun: boolean
}) {
  const rebuilt: Array<RebuiltEndpoint> = []
  const now = yield* Clock.currentTimeMillis
  for (const { change, key } of yield* readLostSettings) {
    if (!dryRun)
      yield* changeSettings(key, () => Effect.succeed({ v: 1, ...change.now, updatedAt: now }), by)
    rebuilt.push({ endpoint: key, gone: [], written: !dryRun })
  }
  for (const lost of yield* readLostEndpoints) {
    const { secrets } = yield* secretsFor(lost.configuration.sign, [], undefined, now)
    const { decoded, gone } = remade(lost, secrets, by, now)
    const endpoint = endpointLabel({ tenant: lost.tenant, id: lost.endpoint })
    if (Result.isFailure(decoded)) {
      rebuilt.push({ endpoint, gone, problem: decoded.failure.message, written: false })
      continue
    }
    // Somebody may have added it meanwhile.
    if (!dryRun)
      yield* addEndpoint(decoded.success, by).pipe(
        Effect.catchTag("EndpointExists", () => Effect.void)
      )
    rebuilt.push({ endpoint, gone, written: !dryRun })
  }
  return rebuilt
})

/** An endpoint whose stored health differs from the history. */
export const RebuiltHealth = Schema.Struct({
  /** `<tenant>/<endpoint>` */
  endpoint: Schema.String,
  differences: Schema.Array(
    Schema.Struct({
      field: Schema.String,
      stored: Schema.Unknown,
      /** According to the history. */
      told: Schema.Unknown
    })
  ),
  /** False for a dry run. */
  written: Schema.Boolean
})
export type RebuiltHealth = typeof RebuiltHealth.Type

const codecs: ReadonlyMap<string, Schema.Codec<unknown, unknown>> = new Map(
  [
    ...Object.entries<Schema.Codec<unknown, unknown>>(Health.fields),
    ...Object.entries<Schema.Codec<unknown, unknown>>(Health.fields.circuit.fields).map(
      ([name, field]) => [`circuit.${name}`, field] as const
    )
  ].map(([name, field]) => [name, Schema.toCodecJson(field)] as const)
)

/** Returns a field of the health as it is answered: a time is a text. */
const answered = (field: string, value: unknown): unknown => {
  const codec = codecs.get(field)
  return codec === undefined || value === undefined ? value : Schema.encodeUnknownSync(codec)(value)
}

/** Facts that affect an endpoint's health. */
const kinds: ReadonlySet<unknown> = new Set<FactKind>([
  "delivered",
  "circuit-half-opened",
  "circuit-closed",
  "endpoint-enabled",
  "attempt-failed",
  "dead-lettered",
  "circuit-opened",
  "endpoint-disabled",
  "endpoint-suspended",
  "endpoint-resumed"
])

/** Computes the health of each existing endpoint from the history. */
const readLives = Effect.fnUntraced(function* (endpoints: ReadonlyMap<string, Endpoint>) {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  const lives = new Map<string, EndpointLife>()
  yield* readThrough(
    {
      stream: names.history,
      // Filtering by kind takes the broker a hundred times as long.
      subjects: [names.subjects.allFacts],
      from: state.first_seq,
      to: state.last_seq
    },
    ({ message }) => {
      const record = readRecord(message.string())
      if (record === undefined || !kinds.has(record.kind)) return
      const fact = strictly(record)
      if (fact === undefined) return
      const key = endpointKey(fact.tenant, fact.endpoint)
      const endpoint = endpoints.get(key)
      // The fact may be about an earlier endpoint of the same name.
      if (endpoint === undefined || fact.at < endpoint.createdAt) return
      lives.set(key, afterEndpointFact(lives.get(key) ?? newEndpoint, fact))
    }
  )
  return lives
})

/** Fails while a worker runs. */
const refuseWorkers = Effect.gen(function* () {
  const { present } = yield* readPresent
  if (present.length === 0) return
  return yield* invalid(
    "",
    `a running worker would overwrite the result with the health that it has in memory: stop ${present.map(({ id }) => id).join(", ")} first, or look with \`dryRun\``
  )
})

/** Returns the revision of an erased key, which a write must expect; 0 if the key never existed. */
const revisionOf = Effect.fnUntraced(function* (key: string) {
  const { names, readMessage } = yield* Broker
  const bucket = names.buckets.health
  const last_by_subj = `$KV.${bucket}.${key}`
  const message = yield* readMessage("look at an endpoint's health", `KV_${bucket}`, {
    last_by_subj
  })
  return message?.seq ?? 0
})

/**
 * Computes the health of all endpoints from the history, and stores it where it differs. Returns
 * the differences and the number of endpoints.
 */
export const rebuildHealth = Effect.fnUntraced(function* ({
  dryRun
}: {
  readonly dryRun: boolean
}) {
  if (!dryRun) yield* refuseWorkers
  const stored = new Map((yield* listHealth).map((record) => [record.key, record]))
  const all = (yield* listEndpoints()).map(({ endpoint }) => endpoint)
  const endpoints = new Map(all.map((one) => [endpointKey(one.tenant, one.id), one]))
  const lives = yield* readLives(endpoints)
  const rebuilt: Array<RebuiltHealth> = []
  for (const [key, endpoint] of endpoints) {
    const { generation } = endpoint
    const before = stored.get(key)
    const isGivenUp = endpoint.disabled !== undefined || endpoint.suspended !== undefined
    const life = isGivenUp ? undefined : lives.get(key)
    const computed = completed(
      healthFrom(life ?? newEndpoint, generation, circuitOf(endpoint).giveUpAfter),
      before?.health
    )
    const differences = differencesOf(before?.health ?? healthy(generation), computed)
    if (differences.length === 0) continue
    rebuilt.push({
      endpoint: endpointLabel(endpoint),
      differences: differences.map(({ field, folded, stored }) => ({
        field,
        stored: answered(field, stored),
        told: answered(field, folded)
      })),
      written: !dryRun
    })
    if (dryRun) continue
    // A concurrent write takes precedence: this write then fails, and the operation can be repeated.
    if (isHealthy(computed)) yield* eraseHealth(key, before?.revision)
    else yield* writeHealth(key, computed, before?.revision ?? (yield* revisionOf(key)))
  }
  return { rebuilt, endpoints: endpoints.size }
})
