import { Effect, Option, Result, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { PositiveDuration } from "../../domain/duration.ts"
import type { NamesBy } from "../../domain/settings/setting.ts"
import type { QuotaName, TenantSettingName } from "../../domain/settings/tenant-table.ts"
import {
  defaultMaxTimeoutMs,
  defaultQuotas,
  tenantSettings
} from "../../domain/settings/tenant-table.ts"
import { isToken } from "../../domain/token.ts"
import type { TenantSettingsView } from "../../operations/tenants/tenant-settings.ts"
import { setTenant, showTenant, TenantPatch } from "../../operations/tenants/tenant-settings.ts"
import { countText, spanText } from "../../text/quantities.ts"
import { flagProblems, readField, settingName } from "../flags/flag-problems.ts"
import {
  allNull,
  contradictions,
  type FlagTable,
  flagsOf,
  forwardFlag,
  isGiven,
  namesRemoved,
  noForwardHeader,
  one,
  type Read,
  readGiven,
  readNumber,
  readTime,
  removalFlags
} from "../flags/setting-flags.ts"
import { byFlag, isSet } from "../flags/shared.ts"
import { type Refused, refusal } from "../refused.ts"
import { connected, report } from "../root-command.ts"

const whose = {
  tenant: Argument.String("TENANT").pipe(
    Argument.withDescription("Whose settings"),
    Argument.filterMap(
      (text) => (isToken(text) ? Option.some(text) : Option.none()),
      () => "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
    ),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  ),
  system: isSet("system", "Those of the system, which hold for the endpoints of all tenants")
}

/** Returns the tenant, or undefined for the system. */
const chosen = ({
  system,
  tenant
}: {
  readonly system: boolean
  readonly tenant: string | undefined
}): Effect.Effect<string | undefined, Refused> =>
  system === (tenant === undefined)
    ? Effect.succeed(tenant)
    : refusal([
        system
          ? "a tenant and --system cannot be combined"
          : "say whose settings: a tenant such as acme, or --system"
      ])

const encodeTime = Schema.encodeSync(PositiveDuration)

const label = ({ tenant }: Pick<TenantSettingsView, "tenant">): string => tenant ?? "the system"

const headers = (names: ReadonlyArray<string>) => (names.length === 0 ? "none" : names.join(", "))

const cap = (most: number | undefined, whose: string) =>
  most === undefined
    ? "no limit"
    : `${most} at the same time to one host, over all endpoints ${whose}`

/** What is set for a tenant counts, else what is for the system, else the default. */
const quotaLines =
  (name: QuotaName) =>
  ({ [name]: own, system }: TenantSettingsView): ReadonlyArray<string> => {
    if (own !== undefined) return [countText(own)]
    const inherited = system?.[name]
    return inherited === undefined
      ? [`${countText(defaultQuotas[name])} (the default)`]
      : [`${countText(inherited)} (the system's)`]
  }

/** How people see a setting: its name, and lines of what the tenant and the system have set. */
const shownSettings: Readonly<
  Record<
    TenantSettingName,
    readonly [name: string, lines: (view: TenantSettingsView) => ReadonlyArray<string>]
  >
> = {
  hostCap: [
    "host cap",
    ({ hostCap, system, tenant }) => [
      cap(hostCap, tenant === undefined ? "of all tenants" : `of ${tenant}`),
      ...(system?.hostCap === undefined ? [] : [`and ${cap(system.hostCap, "of all tenants")}`])
    ]
  ],
  maxTimeout: [
    "longest time-out",
    ({ maxTimeout, system }) => [
      maxTimeout ??
        (system?.maxTimeout === undefined
          ? `${spanText(defaultMaxTimeoutMs)} (the default)`
          : `${system.maxTimeout} (the system's)`)
    ]
  ],
  maxEndpoints: ["max endpoints", quotaLines("maxEndpoints")],
  maxTokens: ["max tokens", quotaLines("maxTokens")],
  forwardHeaders: [
    "forwards headers",
    ({ forwardHeaders, system }) => [
      headers(forwardHeaders),
      ...(system === undefined || system.forwardHeaders.length === 0
        ? []
        : [`and those of the system: ${headers(system.forwardHeaders)}`])
    ]
  ]
}

const viewText = (view: TenantSettingsView): string =>
  [
    label(view),
    ...Object.values(shownSettings).flatMap(([name, lines]) =>
      lines(view).map((line, index) => `  ${(index === 0 ? name : "").padEnd(18)}${line}`)
    )
  ].join("\n")

const show = Command.make(
  "show",
  whose,
  Effect.fnUntraced(function* (flags) {
    const tenant = yield* chosen(flags)
    const view = yield* showTenant(tenant).pipe(Effect.provide(connected))
    yield* report(view, viewText(view))
  })
).pipe(Command.withDescription("Show the settings of a tenant, or of the system"))

const settingFlags = {
  hostCap: one(
    "N",
    "Requests at the same time to one host, shared by all endpoints whose URL names it",
    readNumber(TenantPatch.fields.hostCap)
  ),
  maxTimeout: one(
    "DURATION",
    "Longest time-out of an attempt that endpoints may have; longer ones that are stored are cut",
    (text, name) =>
      Result.flatMap(readTime(text, name), (time) =>
        readField(name, TenantPatch.fields.maxTimeout, encodeTime(time))
      )
  ),
  maxEndpoints: one("N", "Endpoints that it may have", readNumber(TenantPatch.fields.maxEndpoints)),
  maxTokens: one(
    "N",
    "Tokens of the HTTP API that it may have",
    readNumber(TenantPatch.fields.maxTokens)
  ),
  forwardHeaders: forwardFlag("All its endpoints get this header of events; may be repeated")
} satisfies FlagTable<TenantPatch>

const removals = {
  hostCap: "As many requests to one host as its endpoints may have",
  maxTimeout: "Back to the system's longest time-out, else to 5 minutes",
  maxEndpoints: "As many endpoints as the system has set, else 1,000",
  maxTokens: "As many tokens as the system has set, else 1,000"
} satisfies Record<NamesBy<typeof tenantSettings, "null">, string>

const set = Command.make(
  "set",
  {
    ...whose,
    given: flagsOf(settingFlags, tenantSettings, () => ""),
    removed: removalFlags(removals),
    noForwardHeader,
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, given, noForwardHeader, removed, ...flags }) {
    const tenant = yield* chosen(flags)
    if (!isGiven(given) && !isGiven(removed) && noForwardHeader.length === 0)
      return yield* refusal([
        "nothing to change: name a setting, such as --host-cap 20; see `petrel tenant set --help`"
      ])
    const read: Read<TenantPatch> = readGiven(settingFlags, {
      ...given,
      forwardHeaders: { ...given.forwardHeaders, noForwardHeader }
    })
    const gone = namesRemoved(removed)
    const problems = [
      ...(Result.isFailure(read) ? read.failure : []),
      ...contradictions(gone, given)
    ]
    if (Result.isFailure(read) || problems.length > 0) return yield* refusal(problems)
    const patch: TenantPatch = { ...read.success, ...allNull(gone) }
    const changed = yield* setTenant(tenant, patch, by).pipe(
      Effect.catchTag("Invalid", ({ problems }) => refusal(flagProblems(problems))),
      Effect.provide(connected)
    )
    yield* report(
      changed,
      changed.changed.length === 0
        ? `${label(changed)} is unchanged: it has these settings already`
        : `${label(changed)} is changed: ${changed.changed.map(settingName).join(", ")}`
    )
  })
).pipe(
  Command.withDescription("Change the given settings, and leave the rest"),
  Command.withExamples([
    {
      command: "petrel tenant set acme --host-cap 20",
      description: "At most 20 requests at the same time to one host for all of acme's endpoints"
    },
    { command: "petrel tenant set acme --forward-header x-correlation-id" },
    {
      command: "petrel tenant set --system --host-cap 100",
      description: "The same for the endpoints of all tenants together"
    },
    {
      command: "petrel tenant set acme --max-timeout 15m",
      description: "Endpoints of acme may have time-outs of up to 15 minutes"
    }
  ])
)

export const tenant = Command.make("tenant").pipe(
  Command.withDescription("Settings for all endpoints of a tenant, or of the system"),
  Command.withSubcommands([show, set])
)
