import { Effect, Option, Result } from "effect"
import { Argument, Command } from "effect/cli"
import { SystemAlertSettings, TenantAlertSettings } from "../../../domain/alert.ts"
import { isToken } from "../../../domain/token.ts"
import { plainText } from "../../../history/line.ts"
import type { ThresholdsView } from "../../../operations/alerts/alert-thresholds.ts"
import {
  setSystemThresholds,
  setTenantThresholds,
  showThresholds
} from "../../../operations/alerts/alert-thresholds.ts"
import { readAlertChoice } from "../../flags/alert-settings.ts"
import { isSet, textFlag } from "../../flags/shared.ts"
import { refusal } from "../../refused.ts"
import { connected, report } from "../../root-command.ts"

/** The tenant that a command about alerts is for; undefined for the system. */
export const tenantArgument = Argument.String("TENANT").pipe(
  Argument.withDescription("Whose and whose endpoints'; without it those of all and of the system"),
  Argument.filterMap(
    (text) => (isToken(text) ? Option.some(text) : Option.none()),
    () => "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
  ),
  Argument.optional,
  Argument.map(Option.getOrUndefined)
)

const viewText = (view: ThresholdsView): string => {
  const { contact, off, set, systemAlertsTo, tenant, thresholds } = view
  const own = new Set(set)
  const names = Object.keys(thresholds)
  const width = Math.max(...names.map((name) => name.length))
  const source = (name: string) => (off === true || own.has(name) ? "  (set)" : "")
  return [
    `Alerts about ${tenant === undefined ? "the system, and all tenants and endpoints that have no thresholds of their own" : `${tenant} and its endpoints that have none of their own`}:`,
    ...names.map((name) => `  ${name.padEnd(width)}  ${thresholds[name]}${source(name)}`),
    ...(systemAlertsTo === undefined
      ? []
      : [`  ${"systemAlertsTo".padEnd(width)}  ${systemAlertsTo}  (set)`]),
    ...(contact === undefined ? [] : [`  ${"contact".padEnd(width)}  ${plainText(contact)}  (set)`])
  ].join("\n")
}

type ThresholdChange = "off" | SystemAlertSettings | TenantAlertSettings

/** Parses the value of --set. */
const readChoice = (
  set: string,
  tenant: string | undefined
): Result.Result<ThresholdChange, ReadonlyArray<string>> =>
  tenant === undefined
    ? readAlertChoice("set", set, SystemAlertSettings)
    : readAlertChoice("set", set, TenantAlertSettings)

/** Shows and changes the thresholds of alerts. */
export const thresholds = Command.make(
  "thresholds",
  {
    tenant: tenantArgument,
    set: textFlag(
      "set",
      "JSON",
      `Instead of what was set before, such as '{"successWarnPercent":98,"window":"30 minutes"}'; for a tenant also off, and "contact": whom to tell; for the system "systemAlertsTo": the tenant whose operational endpoints get its alerts`
    ),
    unset: isSet("unset", "Back to what holds without it")
  },
  Effect.fnUntraced(function* ({ set, tenant, unset }) {
    if (set !== undefined && unset) return yield* refusal(["--set and --unset exclude each other"])
    const read = set === undefined ? undefined : readChoice(set, tenant)
    if (read !== undefined && Result.isFailure(read)) return yield* refusal(read.failure)
    const choice = read?.success
    const isChange = choice !== undefined || unset
    if (tenant === undefined && choice === "off")
      return yield* refusal([
        `--set off is for a tenant or an endpoint: for the system say which alerts, such as '{"waitingGrowth":"off"}'`
      ])
    const work = Effect.suspend(() => {
      if (!isChange) return showThresholds(tenant)
      if (tenant !== undefined) return setTenantThresholds(tenant, choice)
      return setSystemThresholds(choice === "off" ? undefined : choice)
    })
    const view = yield* work.pipe(Effect.provide(connected))
    yield* report(view, viewText(view))
  })
).pipe(
  Command.withDescription("Show when alerts are raised, or change it"),
  Command.withExamples([
    { command: "petrel alerts thresholds", description: "Those of all" },
    { command: `petrel alerts thresholds acme --set '{"successWarnPercent":98}'` }
  ])
)
