import { Duration, Effect, Schema } from "effect"
import { SystemAlertSettings, TenantAlertChoice } from "../../domain/alert.ts"
import { PositiveDuration } from "../../domain/duration.ts"
import { RetryPolicy } from "../../domain/retry-policy.ts"
import { textsOf } from "../../domain/settings/setting.ts"
import { tenantSettings } from "../../domain/settings/tenant-table.ts"
import { type Preset, presets } from "../../policy/presets.ts"
import { ladder, totalTime } from "../../policy/retry-outline.ts"
import {
  setSystemThresholds,
  setTenantThresholds,
  showThresholds,
  ThresholdsView
} from "../alerts/alerts.ts"
import { shortPolicy } from "../endpoints/cautions.ts"
import { OutlinedPolicy, outlined } from "../endpoints/outlined-policy.ts"
import { documented, operation, operationGroup } from "../operation.ts"
import { Tenant, tenantPath } from "../parameters.ts"
import { changing, ifMatch, tagged } from "../preconditions.ts"
import {
  ChangedTenant,
  setTenant,
  showTenant,
  TenantPatch,
  TenantSettingsView
} from "./tenant-settings.ts"

const ofTenant = { tenant: Tenant }
const settings = `${tenantPath}/settings` as const
const thresholds = `${tenantPath}/alert-thresholds` as const
const texts = textsOf(tenantSettings)

const Settings = documented(TenantSettingsView, {
  identifier: "TenantSettings",
  description: "What is set for all endpoints of a tenant together, or of the system.",
  fields: texts
})

const Changed = documented(ChangedTenant, {
  identifier: "ChangedTenantSettings",
  description: "Settings of a tenant, or of the system, after a change.",
  fields: { ...texts, changed: "The settings that differ from before." }
})

const Patch = documented(TenantPatch, {
  identifier: "TenantPatch",
  description: "A change of settings: what is left out stays as it is, null removes a setting.",
  fields: texts,
  examples: [{ hostCap: 20 }]
})

const Thresholds = documented(ThresholdsView, {
  identifier: "AlertThresholds",
  description: "When alerts are raised.",
  fields: {
    thresholds: "Of each alert; `off` and `on` for an alert as a whole, durations in words.",
    contact: "Whom to notify of problems of endpoints without a contact of their own.",
    systemAlertsTo: "The tenant whose operational endpoints get the alerts about the system.",
    set: "The names of those that were set here.",
    off: "All alerts about the tenant and its endpoints were turned off."
  }
})

const TenantChoice = Schema.Struct({
  alerts: Schema.NullOr(TenantAlertChoice).annotateKey({
    description: "Thresholds of the tenant, `off`, or null."
  })
}).annotate({
  identifier: "TenantAlerts",
  description:
    "What replaces all that was set: thresholds, `off`, or null for those of the system.",
  examples: [{ alerts: { successWarnPercent: 98, contact: "ops@example.com" } }]
})

const SystemChoice = Schema.Struct({
  alerts: Schema.NullOr(SystemAlertSettings).annotateKey({
    description: "Thresholds of the system, or null."
  })
}).annotate({
  identifier: "SystemAlerts",
  description: "What replaces all that was set: thresholds, or null for the defaults.",
  examples: [{ alerts: { successWarnPercent: 98 } }]
})

const RetryPreset = documented(
  Schema.Struct({
    name: Schema.String.annotateKey({ description: "What `retry` of an endpoint may name." }),
    source: Schema.String.annotateKey({ description: "Whose policy it is." }),
    policy: RetryPolicy,
    caution: Schema.optionalKey(Schema.String).annotateKey({
      description: "What may not be intended, as the rest of a sentence about the endpoint."
    }),
    waits: Schema.Array(PositiveDuration).annotateKey({
      description: "Between attempts, without jitter."
    }),
    total: PositiveDuration,
    outline: OutlinedPolicy
  }),
  {
    identifier: "RetryPreset",
    description: "A retry policy that has a name.",
    fields: { total: "Sum of all waits, without jitter." }
  }
)

const showSettings = operation("tenant", "GET", settings, {
  scope: "endpoints:read",
  summary: "Show what is set for all endpoints of a tenant",
  hasRevision: true,
  params: ofTenant,
  output: Settings,
  run: ({ params: { tenant } }) => Effect.map(showTenant(tenant), (shown) => tagged(shown))
})

const changeSettings = operation("changeTenant", "PATCH", settings, {
  // The subject names the tenant, and whoever asks on it is no operator.
  insteadOverNats: "change them over HTTP",
  scope: "operator",
  summary: "Change what is set for all endpoints of a tenant",
  hasRevision: true,
  params: ofTenant,
  headers: ifMatch,
  payload: Patch,
  output: Changed,
  refusals: ["revision-mismatch"],
  run: ({ headers, params: { tenant }, payload }) =>
    changing(headers, (by, expected) => setTenant(tenant, payload, by, expected))
})

const showSystem = operation("system", "GET", "/v1/settings", {
  scope: "operator",
  summary: "Show what is set for the endpoints of all tenants",
  hasRevision: true,
  output: Settings,
  run: () => Effect.map(showTenant(undefined), (shown) => tagged(shown))
})

const changeSystem = operation("changeSystem", "PATCH", "/v1/settings", {
  scope: "operator",
  summary: "Change what is set for the endpoints of all tenants",
  hasRevision: true,
  headers: ifMatch,
  payload: Patch,
  output: Changed,
  refusals: ["revision-mismatch"],
  run: ({ headers, payload }) =>
    changing(headers, (by, expected) => setTenant(undefined, payload, by, expected))
})

const tenantThresholds = operation("thresholds", "GET", thresholds, {
  scope: "endpoints:read",
  summary: "Show when alerts are raised about a tenant and its endpoints",
  hasRevision: true,
  params: ofTenant,
  output: Thresholds,
  run: ({ params: { tenant } }) => Effect.map(showThresholds(tenant), (shown) => tagged(shown))
})

const changeThresholds = operation("setThresholds", "PUT", thresholds, {
  scope: "endpoints:write",
  summary: "Replace when alerts are raised about a tenant and its endpoints",
  hasRevision: true,
  params: ofTenant,
  headers: ifMatch,
  payload: TenantChoice,
  output: Thresholds,
  refusals: ["revision-mismatch"],
  run: ({ headers, params: { tenant }, payload: { alerts } }) =>
    changing(headers, (by, expected) =>
      setTenantThresholds(tenant, alerts ?? undefined, by, expected)
    )
})

const systemThresholds = operation("systemThresholds", "GET", "/v1/alert-thresholds", {
  scope: "operator",
  summary: "Show when alerts are raised about the system, and about tenants without thresholds",
  hasRevision: true,
  output: Thresholds,
  run: () => Effect.map(showThresholds(), (shown) => tagged(shown))
})

const changeSystemThresholds = operation("setSystemThresholds", "PUT", "/v1/alert-thresholds", {
  scope: "operator",
  summary: "Replace when alerts are raised about the system, and about tenants without thresholds",
  hasRevision: true,
  headers: ifMatch,
  payload: SystemChoice,
  output: Thresholds,
  refusals: ["revision-mismatch"],
  run: ({ headers, payload: { alerts } }) =>
    changing(headers, (by, expected) => setSystemThresholds(alerts ?? undefined, by, expected))
})

const describePreset = ({ name, policy, source }: Preset): typeof RetryPreset.Type => {
  const caution = shortPolicy(policy)
  return {
    ...{ name, source, policy },
    ...(caution === undefined ? {} : { caution }),
    waits: ladder(policy).map((ms) => Duration.millis(ms)),
    total: Duration.millis(totalTime(policy)),
    outline: outlined(name, policy)
  }
}

let described: ReadonlyArray<typeof RetryPreset.Type> | undefined

/** The same for all who ask, and 6 ms of work. */
const describePresets = () => {
  described ??= [...presets.values()].map(describePreset)
  return { presets: described }
}

const listPresets = operation("presets", "GET", `${tenantPath}/retry-presets`, {
  scope: "endpoints:read",
  summary: "List the retry policies that have a name",
  params: ofTenant,
  output: Schema.Struct({
    presets: Schema.Array(RetryPreset).annotateKey({ description: "The presets." })
  }).annotate({
    identifier: "RetryPresetList"
  }),
  run: () => Effect.sync(describePresets)
})

/** Operations on what holds for a tenant or the system as a whole. */
export const settingsOperations = operationGroup(
  "settings",
  "Settings for all endpoints of a tenant, or of the system.",
  showSettings,
  changeSettings,
  tenantThresholds,
  changeThresholds,
  listPresets,
  showSystem,
  changeSystem,
  systemThresholds,
  changeSystemThresholds
)
