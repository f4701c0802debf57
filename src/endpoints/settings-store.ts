import { Clock, Effect, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { readUser } from "../broker/user.ts"
import { isConflict, writeValue } from "../broker/values.ts"
import type { Fact } from "../domain/fact.ts"
import { type ExpectedRevision, refuseOther } from "../domain/problem.ts"
import { toldOf } from "../domain/settings/setting.ts"
import { systemKey, TenantSettings, tenantSettings } from "../domain/settings/tenant-table.ts"
import { nobody } from "../domain/token.ts"
import { authorHeaders } from "../history/configuration.ts"
import { appendFact } from "../history/facts.ts"
import type { SettingsInForce } from "./inherited-settings.ts"
import { decodeSettings, settingsText } from "./stored-values.ts"

/** Settings with the revision of their key in the endpoints bucket; 0 where none were ever set. */
export interface StoredSettings {
  readonly settings: TenantSettings
  readonly revision: number
}

/** Settings of which none is set. */
const noSettings: TenantSettings = { v: 1, updatedAt: 0 }

/**
 * Reads the settings under a key from the leader.
 *
 * @param key the tenant, or `systemKey`.
 */
export const readSettings = Effect.fnUntraced(function* (key: string) {
  const { entry: read, names } = yield* Broker
  const entry = yield* read(names.buckets.endpoints, key)
  if (entry?.operation !== "PUT")
    return { settings: noSettings, revision: entry?.revision ?? 0 } satisfies StoredSettings
  const settings = yield* Effect.fromResult(decodeSettings(key, entry.string()))
  return { settings, revision: entry.revision } satisfies StoredSettings
})

/** Reads what holds for a tenant's endpoints from the leader. Settings that do not parse are none. */
export const readSettingsInForce = Effect.fnUntraced(function* (tenant: string) {
  const read = (key: string) =>
    readSettings(key).pipe(
      Effect.map(({ settings }) => settings),
      Effect.catchTag("SettingsUnreadable", () => Effect.succeed(noSettings))
    )
  const [own, system] = yield* Effect.all([read(tenant), read(systemKey)], { concurrency: 2 })
  return { tenant: own, system } satisfies SettingsInForce
})

/** A change was stored, and the history did not take its fact. */
export class ChangeUnrecorded extends Schema.TaggedError<ChangeUnrecorded>()("ChangeUnrecorded", {
  reason: Schema.String
}) {
  override get message() {
    return `the settings are changed, but the history has no fact of it: ${this.reason}`
  }
}

const kind = "settings-changed"
const encode = Schema.encodeSync(TenantSettings)

const appendChange = Effect.fnUntraced(function* (
  key: string,
  { revision, settings }: StoredSettings,
  author: Pick<Fact, "by" | "user">
) {
  const at = settings.updatedAt
  const fact: Fact = {
    ...{ v: 1, kind, at, tenant: key, endpoint: nobody, ...author },
    settings: { revision, now: toldOf(tenantSettings, encode(settings)) }
  }
  yield* appendFact(fact, `${kind}.${key}.${revision}.${at}`)
})

/**
 * Changes settings by compare-and-set, and appends the change to the history. `change` is called
 * again with the current value if another write was faster. It returns undefined to leave them as
 * they are.
 *
 * No plan depends on settings, so only who changes them records it, unlike changes of endpoints.
 *
 * @param key the tenant, or `systemKey`.
 * @param by who changes them, recorded in the history.
 * @param expected the revisions that may be changed; fails with OtherRevision for another. (Default:
 *   any)
 */
export const changeSettings = <E, R>(
  key: string,
  change: (settings: TenantSettings) => Effect.Effect<TenantSettings | undefined, E, R>,
  by: string,
  expected?: ExpectedRevision
) =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const user = yield* readUser
    while (true) {
      const stored = yield* readSettings(key)
      yield* refuseOther(
        key === systemKey ? "the settings of the system" : `the settings of ${key}`,
        stored.revision,
        expected
      )
      const changed = yield* change(stored.settings)
      if (changed === undefined) return stored
      const settings = { ...changed, updatedAt: yield* Clock.currentTimeMillis }
      const written = yield* writeValue(names.buckets.endpoints, key, settingsText(settings), {
        expected: stored.revision,
        headers: authorHeaders({ by, user })
      }).pipe(
        Effect.map(({ seq }) => seq),
        Effect.catchIf(isConflict, () => Effect.succeed(undefined))
      )
      if (written === undefined) continue
      const after: StoredSettings = { settings, revision: written }
      yield* appendChange(key, after, { by, user }).pipe(
        Effect.mapError(({ message }) => new ChangeUnrecorded({ reason: message }))
      )
      return after
    }
  })
