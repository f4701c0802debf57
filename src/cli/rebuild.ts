import { Clock, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { Broker } from "../broker/connection.ts"
import { readPresent } from "../cluster/roster.ts"
import type { Endpoint } from "../domain/endpoint.ts"
import { circuitOf, endpointKey } from "../domain/endpoint.ts"
import type { FactKind } from "../domain/fact.ts"
import { healthy, isHealthy } from "../domain/health.ts"
import { listEndpoints } from "../endpoints/endpoint-store.ts"
import { listHealth } from "../endpoints/health-record.ts"
import { eraseHealth, writeHealth } from "../endpoints/health-store.ts"
import { readThrough } from "../history/audit/reading.ts"
import { readRecord, strictly } from "../history/audit/record.ts"
import type { EndpointLife } from "../history/fold/endpoint.ts"
import { afterEndpointFact, healthFrom, newEndpoint } from "../history/fold/endpoint.ts"
import type { Difference } from "../history/fold/health-difference.ts"
import { completed, differencesOf } from "../history/fold/health-difference.ts"
import { plainText } from "../history/line.ts"
import { plural } from "../operations/text/number-format.ts"
import { Refused } from "./refused.ts"
import { connected, petrel, report } from "./root-command.ts"
import { remark } from "./terminal.ts"

/** Facts that affect an endpoint's health. */
const kinds: ReadonlySet<unknown> = new Set<FactKind>([
  "delivered",
  "circuit-half-opened",
  "circuit-closed",
  "endpoint-enabled",
  "attempt-failed",
  "dead-lettered",
  "circuit-opened",
  "endpoint-disabled"
])

/** Computes the health of each existing endpoint from the history. */
const readLives = Effect.fnUntraced(function* (endpoints: ReadonlyMap<string, Endpoint>) {
  const { ask, jsm, names } = yield* Broker
  const { state } = yield* ask("look at the history", () => jsm.streams.info(names.history))
  const lives = new Map<string, EndpointLife>()
  yield* readThrough(
    {
      stream: names.history,
      // Filtering by kind takes the broker a hundred times as long.
      subjects: [names.subjects.allFacts],
      from: Math.max(1, state.first_seq),
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

const refuseWorkers = Effect.gen(function* () {
  const { present } = yield* readPresent
  if (present.length === 0) return
  return yield* new Refused({
    message: `a worker knows the health of its endpoints itself and would write over what is stored: stop ${present.map(({ id }) => id).join(", ")} first, or look with --dry-run`
  })
})

const shown = (value: unknown): string => (value === undefined ? "-" : plainText(String(value)))

const differenceText = ({ field, stored, folded }: Difference): string =>
  `  ${field}: stored ${shown(stored)}, told ${shown(folded)}`

const rebuildHealth = Effect.fnUntraced(function* (isDry: boolean) {
  if (!isDry) yield* refuseWorkers
  const stored = new Map((yield* listHealth).map((record) => [record.key, record]))
  const all = (yield* listEndpoints()).map(({ endpoint }) => endpoint)
  const endpoints = new Map(all.map((one) => [endpointKey(one.tenant, one.id), one]))
  const lives = yield* readLives(endpoints)
  const found: Array<{ readonly key: string; readonly differences: ReadonlyArray<Difference> }> = []
  for (const [key, endpoint] of endpoints) {
    const { generation } = endpoint
    const before = stored.get(key)
    const life = endpoint.disabled === undefined ? lives.get(key) : undefined
    const computed = completed(
      healthFrom(life ?? newEndpoint, generation, circuitOf(endpoint).giveUpAfter),
      before?.health
    )
    const differences = differencesOf(before?.health ?? healthy(generation), computed)
    if (differences.length === 0) continue
    found.push({ key, differences })
    if (isDry) continue
    // A concurrent write takes precedence: this write then fails, and the command can be repeated.
    if (isHealthy(computed)) yield* eraseHealth(key, before?.revision)
    else yield* writeHealth(key, computed, before?.revision ?? (yield* revisionOf(key)))
  }
  return { found, endpoints: endpoints.size }
})

/** Returns the revision of an erased key, which a write must expect; 0 if the key never existed. */
const revisionOf = Effect.fnUntraced(function* (key: string) {
  const { ask, jsm, names } = yield* Broker
  const bucket = names.buckets.health
  const last_by_subj = `$KV.${bucket}.${key}`
  const message = yield* ask("look at an endpoint's health", () =>
    jsm.streams.getMessage(`KV_${bucket}`, { last_by_subj })
  )
  return message?.seq ?? 0
})

const health = Command.make(
  "health",
  {
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withDescription("Only say what differs"),
      Flag.withDefault(false),
      Flag.withoutNegation
    )
  },
  Effect.fnUntraced(function* ({ dryRun }) {
    const { json } = yield* petrel
    const began = yield* Clock.currentTimeMillis
    const { endpoints, found } = yield* Effect.provide(rebuildHealth(dryRun), connected)
    for (const { differences, key } of found)
      yield* report(
        { endpoint: key.replace(".", "/"), differences, written: !dryRun },
        [key.replace(".", "/"), ...differences.map(differenceText)].join("\n")
      )
    const ms = (yield* Clock.currentTimeMillis) - began
    const done = dryRun ? "differ from what the history tells" : "written anew from the history"
    if (!json)
      yield* remark(`${found.length} of ${plural(endpoints, "endpoint")} ${done}, in ${ms} ms`)
  })
).pipe(
  Command.withDescription(
    "Work out the health of all endpoints from the history, and store it where it differs. No worker may run meanwhile."
  )
)

/** Commands that rebuild data from the history. */
export const rebuild = Command.make("rebuild").pipe(
  Command.withDescription("Make again, from the history, what was lost or damaged"),
  Command.withSubcommands([health])
)
