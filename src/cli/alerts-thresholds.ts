import { Duration, Effect, Option, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { StoredThresholds } from "../alerts/alert-store.ts"
import {
  readThresholds,
  storeSystemThresholds,
  storeTenantThresholds
} from "../alerts/alert-store.ts"
import { thresholdsFrom } from "../alerts/thresholds.ts"
import { AlertSettings, SystemAlertSettings, TenantAlertSettings } from "../domain/alert.ts"
import { isToken } from "../domain/token.ts"
import { plainText } from "../history/line.ts"
import { durationText } from "../operations/text/time.ts"
import type { AlertThresholds } from "../policy/alert-thresholds.ts"
import { readAlertChoice } from "./alert-settings.ts"
import { isSet } from "./endpoint-flags.ts"
import { Refused, refusal } from "./refused.ts"
import { connected, report } from "./root-command.ts"

const tenantArgument = Argument.String("TENANT").pipe(
  Argument.withDescription("Whose and whose endpoints'; without it those of all and of the system"),
  Argument.filterMap(
    (text) => (isToken(text) ? Option.some(text) : Option.none()),
    () => "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
  ),
  Argument.optional,
  Argument.map(Option.getOrUndefined)
)

const times = new Set(["medianTime", "p99Time", "window"])
const toggles = new Set(["circuitOpened", "endpointDisabled", "deliveriesMissing"])

const shownValue = (name: string, value: number | undefined): number | string => {
  if (value === undefined) return "off"
  if (toggles.has(name)) return "on"
  return times.has(name) ? durationText(Duration.millis(value)) : value
}

/** Returns thresholds for people: `off` for alerts that never raise, durations in words. */
const shownThresholds = (
  thresholds: AlertThresholds,
  fields: ReadonlyArray<string>
): Readonly<Record<string, number | string>> => {
  const values = new Map(Object.entries(thresholds))
  return Object.fromEntries(fields.map((name) => [name, shownValue(name, values.get(name))]))
}

const show = Effect.fnUntraced(function* (tenant: string | undefined, stored: StoredThresholds) {
  const thresholds = thresholdsFrom(stored)
  const fields = Object.keys((tenant === undefined ? SystemAlertSettings : AlertSettings).fields)
  const now = tenant === undefined ? thresholds.system() : thresholds.tenant(tenant)
  const set = tenant === undefined ? stored.system : stored.tenants.get(tenant)
  const own = new Set(typeof set === "object" ? Object.keys(set) : [])
  const shown = shownThresholds(now, fields)
  const contact = tenant === undefined ? undefined : thresholds.contact(tenant)
  const width = Math.max(...fields.map((name) => name.length))
  const source = (name: string) => (set === "off" || own.has(name) ? "  (set)" : "")
  yield* report(
    {
      ...(tenant === undefined ? {} : { tenant }),
      thresholds: shown,
      ...(contact === undefined ? {} : { contact }),
      set: [...own]
    },
    [
      `Alerts about ${tenant === undefined ? "the system, and all tenants and endpoints that have no thresholds of their own" : `${tenant} and its endpoints that have none of their own`}:`,
      ...fields.map((name) => `  ${name.padEnd(width)}  ${shown[name]}${source(name)}`),
      ...(contact === undefined
        ? []
        : [`  ${"contact".padEnd(width)}  ${plainText(contact)}  (set)`])
    ].join("\n")
  )
})

/** Shows and changes the thresholds of alerts. */
export const thresholds = Command.make(
  "thresholds",
  {
    tenant: tenantArgument,
    set: Flag.String("set").pipe(
      Flag.withMetavar("JSON"),
      Flag.withDescription(
        `Instead of what was set before, such as '{"successWarnPercent":98,"window":"30 minutes"}'; for a tenant also off, and "contact": whom to tell`
      ),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    ),
    unset: isSet("unset", "Back to what holds without it")
  },
  Effect.fnUntraced(function* ({ set, tenant, unset }) {
    if (set !== undefined && unset)
      return yield* new Refused({ message: "--set and --unset exclude each other" })
    const read:
      | Result.Result<"off" | SystemAlertSettings | TenantAlertSettings, ReadonlyArray<string>>
      | undefined =
      set === undefined
        ? undefined
        : tenant === undefined
          ? readAlertChoice("set", set, SystemAlertSettings)
          : readAlertChoice("set", set, TenantAlertSettings)
    if (read !== undefined && Result.isFailure(read)) return yield* refusal(read.failure)
    const choice = read?.success
    if (tenant === undefined && choice === "off")
      return yield* new Refused({
        message: `--set off is for a tenant or an endpoint: for the system say which alerts, such as '{"waitingGrowth":"off"}'`
      })
    const work = Effect.gen(function* () {
      if (choice !== undefined || unset) {
        if (tenant !== undefined) yield* storeTenantThresholds(tenant, choice)
        else if (choice !== "off") yield* storeSystemThresholds(choice)
      }
      return yield* readThresholds
    })
    yield* show(tenant, yield* work.pipe(Effect.provide(connected)))
  })
).pipe(
  Command.withDescription("Show when alerts are raised, or change it"),
  Command.withExamples([
    { command: "petrel alerts thresholds", description: "Those of all" },
    { command: `petrel alerts thresholds acme --set '{"successWarnPercent":98}'` }
  ])
)
