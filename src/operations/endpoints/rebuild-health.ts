import { Effect, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { readPresent } from "../../cluster/roster.ts"
import type { Endpoint } from "../../domain/endpoint.ts"
import { circuitOf, endpointKey } from "../../domain/endpoint.ts"
import type { FactKind } from "../../domain/fact.ts"
import { healthy, isHealthy } from "../../domain/health.ts"
import { invalid } from "../../domain/problem.ts"
import { listEndpoints } from "../../endpoints/endpoint-store.ts"
import { listHealth } from "../../endpoints/health-record.ts"
import { eraseHealth, writeHealth } from "../../endpoints/health-store.ts"
import { readRecord, strictly } from "../../history/fact-record.ts"
import type { EndpointLife } from "../../history/fold/endpoint.ts"
import { afterEndpointFact, healthFrom, newEndpoint } from "../../history/fold/endpoint.ts"
import { completed, differencesOf } from "../../history/fold/health-difference.ts"
import { endpointLabel } from "./endpoint-settings.ts"

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
    `a worker knows the health of its endpoints itself and would write over what is stored: stop ${present.map(({ id }) => id).join(", ")} first, or look with \`dryRun\``
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
        stored,
        told: folded
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
