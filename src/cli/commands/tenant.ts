import { Effect, Option, Result } from "effect"
import { Argument, Command } from "effect/cli"
import { isToken } from "../../domain/token.ts"
import type { TenantSettingsView } from "../../operations/tenants/tenant-settings.ts"
import { setTenant, showTenant, TenantPatch } from "../../operations/tenants/tenant-settings.ts"
import { flagProblems, readField, settingName } from "../flags/flag-problems.ts"
import { noForwardHeader, readForwarded } from "../flags/forward-flags.ts"
import { shown } from "../flags/json-text.ts"
import { byFlag, isSet, repeated, textFlag } from "../flags/shared.ts"
import { Refused, refusal } from "../refused.ts"
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
    : new Refused({
        message: system
          ? "a tenant and --system exclude each other"
          : "say whose settings: a tenant such as acme, or --system"
      })

const label = ({ tenant }: Pick<TenantSettingsView, "tenant">): string => tenant ?? "the system"

const viewText = (view: TenantSettingsView): string => {
  const { forwardHeaders, hostCap, system, tenant } = view
  const whom = tenant === undefined ? "of all tenants" : `of ${tenant}`
  const cap = (most: number | undefined, whose: string) =>
    most === undefined
      ? "no limit"
      : `${most} at the same time to one host, over all endpoints ${whose}`
  const headers = (names: ReadonlyArray<string>) => (names.length === 0 ? "none" : names.join(", "))
  return [
    label(view),
    `  host cap          ${cap(hostCap, whom)}`,
    ...(system?.hostCap === undefined
      ? []
      : [`                    and ${cap(system.hostCap, "of all tenants")}`]),
    `  forwards headers  ${headers(forwardHeaders)}`,
    ...(system === undefined || system.forwardHeaders.length === 0
      ? []
      : [`                    and those of the system: ${headers(system.forwardHeaders)}`])
  ].join("\n")
}

const show = Command.make(
  "show",
  whose,
  Effect.fnUntraced(function* (flags) {
    const tenant = yield* chosen(flags)
    const view = yield* showTenant(tenant).pipe(Effect.provide(connected))
    yield* report(view, viewText(view))
  })
).pipe(Command.withDescription("Show the settings of a tenant, or of the system"))

const readHostCap = (
  text: string
): Result.Result<number | null | undefined, ReadonlyArray<string>> =>
  /^-?\d+$/.test(text.trim())
    ? readField("hostCap", TenantPatch.fields.hostCap, Number(text))
    : Result.fail([`--host-cap ${shown(text)} must be a whole number`])

const set = Command.make(
  "set",
  {
    ...whose,
    hostCap: textFlag(
      "host-cap",
      "N",
      "Requests at the same time to one host, shared by all endpoints whose URL names it"
    ),
    noHostCap: isSet("no-host-cap", "As many requests to one host as its endpoints may have"),
    forwardHeader: repeated(
      "forward-header",
      "NAME",
      "All its endpoints get this header of events; may be repeated"
    ),
    noForwardHeader,
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, ...flags }) {
    const tenant = yield* chosen(flags)
    const { forwardHeader, hostCap, noHostCap } = flags
    const headers = [...forwardHeader, ...flags.noForwardHeader]
    if (hostCap === undefined && !noHostCap && headers.length === 0)
      return yield* new Refused({
        message:
          "nothing is to be changed: say what, such as --host-cap 20; see `petrel tenant set --help`"
      })
    const cap = hostCap === undefined ? Result.succeed(undefined) : readHostCap(hostCap)
    const forwarded = readForwarded(forwardHeader, flags.noForwardHeader)
    const problems = [
      ...(Result.isFailure(cap) ? cap.failure : []),
      ...(Result.isFailure(forwarded) ? forwarded.failure : []),
      ...(noHostCap && hostCap !== undefined
        ? ["--host-cap and --no-host-cap exclude each other"]
        : [])
    ]
    if (Result.isFailure(cap) || Result.isFailure(forwarded) || problems.length > 0)
      return yield* refusal(problems)
    const patch: TenantPatch = {
      hostCap: noHostCap ? null : cap.success,
      forwardHeaders: forwarded.success
    }
    const changed = yield* setTenant(tenant, patch, by).pipe(
      Effect.catchTag("Invalid", ({ problems }) => refusal(flagProblems(problems))),
      Effect.provide(connected)
    )
    yield* report(
      changed,
      changed.changed.length === 0
        ? `${label(changed)} is as it was: that is how it is set already`
        : `${label(changed)} is changed: ${changed.changed.map(settingName).join(", ")}`
    )
  })
).pipe(
  Command.withDescription("Change what is given, and leave the rest"),
  Command.withExamples([
    {
      command: "petrel tenant set acme --host-cap 20",
      description: "At most 20 requests at the same time to one host for all of acme's endpoints"
    },
    { command: "petrel tenant set acme --forward-header x-correlation-id" },
    {
      command: "petrel tenant set --system --host-cap 100",
      description: "The same for the endpoints of all tenants together"
    }
  ])
)

export const tenant = Command.make("tenant").pipe(
  Command.withDescription("What holds for all endpoints of a tenant, or of the system"),
  Command.withSubcommands([show, set])
)
