import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { eraseValue, isConflict, readEntry, readValues, writeValue } from "../broker/values.ts"
import {
  type Alert,
  StandingAlert,
  SystemAlertSettings,
  TenantAlertChoice
} from "../domain/alert.ts"
import { Fact, type ThresholdsChange } from "../domain/fact.ts"
import { type ExpectedRevision, refuseOther } from "../domain/problem.ts"
import { nobody } from "../domain/token.ts"

/** What alerts are about: an endpoint, a tenant (endpoint `_`), or the system (both `_`). */
export interface AlertSubject {
  readonly tenant: string
  readonly endpoint: string
}

/** The subject of alerts about the system. */
export const theSystem: AlertSubject = { tenant: nobody, endpoint: nobody }

/** Whether the subject is an endpoint, a tenant or the system. */
export const aboutOf = ({ endpoint, tenant }: AlertSubject): Alert["about"] => {
  if (endpoint !== nobody) return "endpoint"
  return tenant === nobody ? "system" : "tenant"
}

/** Which alerts are raised about something: the value under `alertKey` in the bucket of alerts. */
export const AlertRecord = Schema.Struct({
  v: Schema.Literal(1),
  /** The endpoint's generation: a new endpoint under the same name starts without alerts. */
  generation: Schema.optionalKey(Schema.String),
  raised: Schema.Array(StandingAlert),
  /** The latest change, until it is in the history. */
  unrecorded: Schema.optionalKey(Fact)
})
export type AlertRecord = typeof AlertRecord.Type

export const nothingRaised: AlertRecord = { v: 1, raised: [] }

/** The key of what is raised; `raised.` and three tokens at most. */
export const alertKey = (subject: AlertSubject): string => {
  switch (aboutOf(subject)) {
    case "endpoint":
      return `raised.endpoint.${subject.tenant}.${subject.endpoint}`
    case "tenant":
      return `raised.tenant.${subject.tenant}`
    case "system":
      return "raised.system"
  }
}

const decodeRecord = Schema.decodeUnknownOption(Schema.fromJsonString(AlertRecord))

/** Parses a stored record; undefined if this version cannot read it. */
export const parseRecord = (text: string): AlertRecord | undefined =>
  Option.getOrUndefined(decodeRecord(text))

/** What is raised about something, as the bucket holds it. */
interface StoredAlerts extends AlertSubject {
  readonly record: AlertRecord
  readonly revision: number
}

const subjectIn = (key: string): AlertSubject => {
  const [, , tenant = nobody, endpoint = nobody] = key.split(".")
  return { tenant, endpoint }
}

/**
 * What is raised.
 *
 * @param keys of which ones, as a subject. (Default: of all)
 */
export const listAlerts = Effect.fnUntraced(function* (keys = "raised.>") {
  const { names } = yield* Broker
  const stored = yield* Stream.runCollect(readValues(names.buckets.alerts, keys))
  return stored.flatMap(({ key, revision, text }): ReadonlyArray<StoredAlerts> => {
    const record = parseRecord(text)
    return record === undefined ? [] : [{ ...subjectIn(key), record, revision }]
  })
})

/** What is raised about a tenant and its endpoints. */
export const listAlertsOf = (tenant: string) =>
  Effect.map(
    Effect.all([listAlerts(`raised.tenant.${tenant}`), listAlerts(`raised.endpoint.${tenant}.*`)]),
    (found) => found.flat()
  )

/** What is raised about something now. */
export const readRaised = Effect.fnUntraced(function* (subject: AlertSubject) {
  const { names } = yield* Broker
  const { text } = yield* readEntry(names.buckets.alerts, alertKey(subject))
  return (text === undefined ? undefined : parseRecord(text))?.raised ?? []
})

/** An alert with what it is about. */
export interface RaisedAlert {
  readonly tenant: string
  readonly endpoint: string
  readonly alert: StandingAlert
}

const order = ["system", "tenant", "endpoint"]

/** Alerts one by one: of the system first, then of tenants, then of endpoints. */
export const raisedIn = (stored: ReadonlyArray<StoredAlerts>): ReadonlyArray<RaisedAlert> =>
  stored
    .flatMap(({ endpoint, record, tenant }) =>
      record.raised.map((alert) => ({ tenant, endpoint, alert }))
    )
    .toSorted(
      (a, b) =>
        order.indexOf(a.alert.about) - order.indexOf(b.alert.about) ||
        a.alert.raisedAt - b.alert.raisedAt
    )

/** What was set for tenants, and for the system. */
export interface StoredThresholds {
  readonly system: SystemAlertSettings | undefined
  readonly tenants: ReadonlyMap<string, TenantAlertChoice>
}

const ofSystem = "thresholds.system"
const ofTenants = "thresholds.tenant."

const decodeSystem = Schema.decodeUnknownOption(Schema.fromJsonString(SystemAlertSettings))
const decodeTenant = Schema.decodeUnknownOption(Schema.fromJsonString(TenantAlertChoice))

/** Reads all thresholds that were set. Ignores values that do not parse. */
export const readThresholds = Effect.gen(function* () {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(readValues(names.buckets.alerts, "thresholds.>"))
  let system: SystemAlertSettings | undefined
  const tenants = new Map<string, TenantAlertChoice>()
  for (const { key, text } of values) {
    if (key === ofSystem) {
      system = Option.getOrUndefined(decodeSystem(text))
      continue
    }
    const choice = Option.getOrUndefined(decodeTenant(text))
    if (choice !== undefined) tenants.set(key.slice(ofTenants.length), choice)
  }
  return { system, tenants } satisfies StoredThresholds
})

/**
 * Reads the thresholds of the system, and of one tenant if one is given. `revision` is that of what
 * was set for the tenant, or else for the system; 0 where nothing is known of it.
 */
export const readThresholdsOf = Effect.fnUntraced(function* (tenant: string | undefined) {
  const { names } = yield* Broker
  const read = (key: string) => readEntry(names.buckets.alerts, key)
  const stored = yield* read(ofSystem)
  const system = Option.getOrUndefined(decodeSystem(stored.text ?? ""))
  if (tenant === undefined) return { system, tenants: new Map(), revision: stored.revision }
  const { revision, text = "" } = yield* read(`${ofTenants}${tenant}`)
  const choice = Option.getOrUndefined(decodeTenant(text))
  const tenants = new Map(choice === undefined ? [] : [[tenant, choice]])
  return { system, tenants, revision }
})

const encodeSystem = Schema.encodeSync(SystemAlertSettings)
const encodeTenant = Schema.encodeSync(TenantAlertChoice)

/**
 * Stores what is set under a key by compare-and-set. Returns what changed; undefined where it was so
 * before.
 *
 * @param what is set, as the beginning of a sentence.
 * @param isExpected the revisions that may be replaced; fails with OtherRevision for another.
 */
const store = Effect.fnUntraced(function* (
  key: string,
  what: string,
  now: ThresholdsChange["now"] | undefined,
  isExpected: ExpectedRevision | undefined
) {
  const { names } = yield* Broker
  const bucket = names.buckets.alerts
  const text = now === undefined ? undefined : JSON.stringify(now)
  while (true) {
    const { revision: expected, text: before } = yield* readEntry(bucket, key)
    yield* refuseOther(what, expected, isExpected)
    if (text === before) return undefined
    const stored = yield* (
      text === undefined
        ? eraseValue(bucket, key, expected)
        : writeValue(bucket, key, text, { expected })
    ).pipe(Effect.catchIf(isConflict, () => Effect.succeed(undefined)))
    if (stored === undefined) continue
    return {
      revision: stored.seq,
      ...(now === undefined ? {} : { now })
    } satisfies ThresholdsChange
  }
})

/**
 * Sets the thresholds of the system and of all tenants; undefined removes them. Returns what
 * changed; undefined where they were so before.
 *
 * @param expected the revisions that may be replaced; fails with OtherRevision for another. (Default:
 *   any)
 */
export const storeSystemThresholds = (
  settings: SystemAlertSettings | undefined,
  expected?: ExpectedRevision
) =>
  store(
    ofSystem,
    "the thresholds of the system",
    settings === undefined ? undefined : encodeSystem(settings),
    expected
  )

/**
 * Sets the thresholds of a tenant and its endpoints; undefined removes them. Returns what changed;
 * undefined where they were so before.
 *
 * @param expected as of the system's.
 */
export const storeTenantThresholds = (
  tenant: string,
  choice: TenantAlertChoice | undefined,
  expected?: ExpectedRevision
) =>
  store(
    `${ofTenants}${tenant}`,
    `the thresholds of ${tenant}`,
    choice === undefined ? undefined : encodeTenant(choice),
    expected
  )
