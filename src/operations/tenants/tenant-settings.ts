import { Effect, Schema } from "effect"
import { type ExpectedRevision, Invalid } from "../../domain/problem.ts"
import {
  changeProblems,
  column,
  namesOfChanged,
  settingsAfter,
  withoutSettings
} from "../../domain/settings/setting.ts"
import {
  systemKey,
  type TenantSettings,
  tenantSettings
} from "../../domain/settings/tenant-table.ts"
import type { StoredSettings } from "../../endpoints/settings-store.ts"
import { changeSettings, readSettings } from "../../endpoints/settings-store.ts"

/** A change of settings. What is left out stays as it is; null removes a setting. */
export const TenantPatch = Schema.Struct(column(tenantSettings, "patch"))
export type TenantPatch = typeof TenantPatch.Type

/** What is set, and always a list of headers. */
const settingsFields = {
  ...column(tenantSettings, "stored"),
  forwardHeaders: Schema.Array(Schema.String)
}

/** The settings of a tenant, or of the system. */
export const TenantSettingsView = Schema.Struct({
  tenant: Schema.optionalKey(Schema.String).annotateKey({ description: "Absent for the system." }),
  ...settingsFields,
  system: Schema.optionalKey(Schema.Struct(settingsFields)).annotateKey({
    description:
      "What the system has set, which holds for the tenant's endpoints, too. Absent for the system."
  }),
  revision: Schema.Int.annotateKey({
    description: "The revision in the endpoints bucket; 0 where nothing was ever set."
  })
})
export type TenantSettingsView = typeof TenantSettingsView.Type

/** Settings after a change. */
export const ChangedTenant = Schema.Struct({
  ...TenantSettingsView.fields,
  changed: Schema.Array(Schema.String).annotateKey({
    description: "The names of the settings that differ from before."
  })
})
export type ChangedTenant = typeof ChangedTenant.Type

const shown = ({ updatedAt: _, v: __, ...settings }: TenantSettings) => ({
  ...settings,
  forwardHeaders: settings.forwardHeaders ?? []
})

const viewOf = Effect.fnUntraced(function* (
  tenant: string | undefined,
  { revision, settings }: StoredSettings
) {
  const own = { ...shown(settings), revision }
  const view: TenantSettingsView =
    tenant === undefined
      ? own
      : { tenant, ...own, system: shown((yield* readSettings(systemKey)).settings) }
  return view
})

/** Shows the settings of a tenant, or of the system. */
export const showTenant = (tenant: string | undefined) =>
  Effect.flatMap(readSettings(tenant ?? systemKey), (stored) => viewOf(tenant, stored))

/** Returns the settings after a change, without the time. Fails with Invalid. */
export const changedSettings = Effect.fnUntraced(function* (
  before: TenantSettings,
  patch: TenantPatch
) {
  const problems = changeProblems(tenantSettings, before, patch)
  if (problems.length > 0) return yield* new Invalid({ problems })
  return {
    ...withoutSettings(tenantSettings, before),
    ...settingsAfter(tenantSettings, before, patch)
  } satisfies TenantSettings
})

/**
 * Changes the given settings of a tenant and keeps the others. Fails with Invalid for settings that
 * are refused.
 *
 * @param tenant undefined for the system.
 * @param by who changes them, recorded in the history.
 * @param expected the revisions that may be changed; fails with OtherRevision for another. (Default:
 *   any)
 */
export const setTenant = Effect.fnUntraced(function* (
  tenant: string | undefined,
  patch: TenantPatch,
  by: string,
  expected?: ExpectedRevision
) {
  let changed: ReadonlyArray<string> = []
  const stored = yield* changeSettings(
    tenant ?? systemKey,
    (before) =>
      Effect.map(changedSettings(before, patch), (after) => {
        changed = namesOfChanged(before, after)
        return changed.length === 0 ? undefined : after
      }),
    by,
    expected
  )
  return { ...(yield* viewOf(tenant, stored)), changed } satisfies ChangedTenant
})
